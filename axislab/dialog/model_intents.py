"""ModelIntents: a language model says what somebody wants, in the form of a schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace

from axislab.answers.extract import extract_json
from axislab.config import Sampling
from axislab.errors import ModelError
from axislab.fsm.dialog_values import Intent, Relation
from axislab.fsm.intents import Skill, skills_by_name
from axislab.messages import Json, Message, ToolSpec
from axislab.models.base import ModelReply, ModelRequest

Ask = Callable[[ModelRequest], ModelReply]
"""Sends a request through the one exit to a model, and waits for the reply."""

TOOL = "understood"
NOTHING = "none"
_SYSTEM = (
    "You read one message of a user and say which of the listed skills it asks for, by calling "
    f"the tool {TOOL!r}. Answer {NOTHING!r} if it asks for none of them, and a low confidence if "
    "it is unclear. `relation` says how it stands to the goal being worked on: the same, a change "
    "of it, or something in addition. `about` is what it is about, such as a version or a node, "
    "in the user's own word, or empty. The message may be in any language."
)


class ModelIntents:
    """Recognises skills with a model call.

    A reply that does not keep to the schema, or a model that cannot be asked, is an intent without
    a name and with confidence 0; its `why` says what happened.

    Args:
        skills: What can be asked for.
        ask: Sends the request.

    Examples:
        >>> from axislab.fsm.dialog_values import PlanStep
        >>> skill = Skill(name="greet", steps=[PlanStep(name="hello")])
        >>> reply = '{"intent": "greet", "confidence": 0.9, "relation": "new"}'
        >>> hear = ModelIntents([skill], lambda request: ModelReply(text=reply))
        >>> hear("Say hello", None).name
        'greet'
    """

    def __init__(self, skills: Iterable[Skill], ask: Ask) -> None:
        self.skills = skills_by_name(skills)
        self._ask = ask

    @property
    def schema(self) -> dict[str, Json]:
        """The JSON Schema of an answer."""
        return {
            "type": "object",
            "properties": {
                "intent": {"type": "string", "enum": [*self.skills, NOTHING]},
                "confidence": {"type": "number", "minimum": 0, "maximum": 1},
                "relation": {"type": "string", "enum": [str(relation) for relation in Relation]},
                "about": {"type": "string"},
                "why": {"type": "string"},
            },
            "required": ["intent", "confidence", "relation"],
        }

    @property
    def _tool(self) -> ToolSpec:
        return ToolSpec(
            name=TOOL, description="Say what the message asks for.", parameters=self.schema
        )

    def __call__(self, text: str, goal: Intent | None) -> Intent:
        """What a text asks for."""
        try:
            reply = self._ask(self._request(text, goal))
        except ModelError as problem:
            return _nothing(text, f"the model could not be asked: {problem}")
        return self.read(reply, text, goal)

    def read(self, reply: ModelReply, text: str, goal: Intent | None) -> Intent:
        """The intent in a reply: in the call of the tool, or as JSON in its text."""
        import jsonschema

        try:
            answer = json.loads(_answer(reply))
            jsonschema.validate(answer, self.schema)
        except (ValueError, RecursionError, jsonschema.ValidationError) as problem:
            first = str(problem).splitlines()[0]
            return _nothing(text, f"the model's answer does not keep to the schema: {first[:160]}")
        if answer["intent"] == NOTHING:
            return _nothing(text, str(answer.get("why") or "none of the skills"))
        relation = Relation.NEW if goal is None else Relation(answer["relation"])
        if goal is not None and relation is Relation.NEW:
            relation = Relation.SAME if answer["intent"] == goal.name else Relation.CHANGED
        found = Intent(
            name=answer["intent"],
            text=text,
            confidence=float(answer["confidence"]),
            relation=relation,
            about=str(answer.get("about") or ""),
            why=str(answer.get("why") or "the model's word"),
        )
        return found if found.about or goal is None else replace(found, about=goal.about)

    def _request(self, text: str, goal: Intent | None) -> ModelRequest:
        known = "\n".join(f"- {skill.name}: {_words(skill)}" for skill in self.skills.values())
        doing = "nothing" if goal is None else f"{goal.name}, about {goal.about!r}: {goal.text!r}"
        return ModelRequest(
            messages=[
                Message.system(f"{_SYSTEM}\n\nSkills:\n{known}"),
                Message.user(f"Goal being worked on: {doing}\n\nMessage: {text}"),
            ],
            tools=(self._tool,),
            sampling=Sampling(temperature=0.0),
            purpose="intent",
        )


def _words(skill: Skill) -> str:
    words = ", ".join(skill.keywords)
    return f"{skill.description or skill.name}{f' (such as: {words})' if words else ''}"


def _answer(reply: ModelReply) -> str:
    call = next((call for call in reply.tool_calls if call.name == TOOL), None)
    if call is not None:
        return call.arguments
    text = reply.text or ""
    start, end = text.find("{"), text.rfind("}")
    if extract_json(text, "intent").answer is None or start < 0:
        raise ValueError("it holds neither the call nor a JSON object")
    return text[start : end + 1]


def _nothing(text: str, why: str) -> Intent:
    return Intent(name="", text=text, confidence=0.0, why=why)
