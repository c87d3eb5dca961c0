"""Lets a model without tool calls make them: the reply is held to a JSON schema while it is made.

The schema has one form for each tool and one for a plain answer, so a reply that was not cut is
always one of them. What it says is then told apart again.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from axislab.messages import Json, Message, Role, ToolCall, ToolSpec
from axislab.models.outgoing import clean

_CUT_CALL: Final = re.compile(
    r'^\s*\{\s*"tool"\s*:\s*"(?P<name>[^"]*)"(?:\s*,\s*"arguments"\s*:\s*(?P<rest>.*)|[^:]*)$',
    re.DOTALL,
)
_CUT_ANSWER: Final = re.compile(r'^\s*\{\s*"answer"\s*:\s*"(?P<rest>(?:[^"\\]|\\.)*)', re.DOTALL)
_ANSWER: Final = '{"answer": "..."}'
_TOKEN: Final = re.compile(r'[^"\\]+|\\u[0-9a-fA-F]{4}|\\[^u]', re.DOTALL)
"""A part of a JSON text: an escape is whole or none."""
_FIRST_HALF: Final = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}")
"""An escape that makes a character only together with the next one."""
_MAYBE_LATEX: Final = re.compile(r"[\x08\x0c][a-z]{0,3}\Z")


Say = Callable[[str], None]
"""Hears of each piece of text that was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a constrained reply says."""

    text: str | None = None
    calls: tuple[ToolCall, ...] = ()


def schema_for(tools: Sequence[ToolSpec], choice: str | None = None) -> dict[str, Json]:
    """The JSON schema a reply must fit.

    Args:
        tools: The tools offered.
        choice: None leaves it to the model, "required" forces a call, a name forces that tool.
    """
    forced = {tool.name for tool in tools} & {choice}
    forms = [
        _form(tool={"const": tool.name}, arguments=dict(tool.parameters))
        for tool in tools
        if not forced or tool.name in forced
    ]
    if choice != "required" and not forced:
        forms.append(_form(answer={"type": "string"}))
    return {"anyOf": forms}


def instructions_for(tools: Sequence[ToolSpec]) -> str:
    """What the model is told about replying with JSON, and about the tools.

    The samples hold dots where words belong: a small model copies whatever stands there.
    """
    lines = [
        "Each of your replies is one JSON object and nothing else: you use a tool, or you answer.",
        "Use a tool to find out what you do not know. "
        f"When you know the answer, give it: {_ANSWER}",
        "Tools:",
    ]
    for tool in tools:
        lines.append(f"- {tool.name}({', '.join(_fields(tool))}): {tool.description}")
        lines.append("  " + json.dumps({"tool": tool.name, "arguments": _sample(tool)}))
    return "\n".join(lines)


def _fields(tool: ToolSpec) -> list[str]:
    fields = tool.parameters.get("properties")
    return list(fields) if isinstance(fields, Mapping) else []


def _sample(tool: ToolSpec) -> dict[str, str]:
    return dict.fromkeys(_fields(tool)[:1], "...")


def plain_messages(
    messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()
) -> list[dict[str, Json]]:
    """The messages as role and text only, with the instructions in the system message.

    After a result the question is repeated. Earlier calls are told in a sentence: shown as the
    JSON that they were, a small model would make the same call until its turns are used up.
    """
    seen = [message for message in messages if message.role is not Role.RUNTIME]
    out = [{"role": _ROLES[message.role], "content": _plain(message)} for message in seen]
    if not tools:
        return out
    if seen and seen[-1].role is Role.TOOL:
        asked = next((message.text for message in seen if message.role is Role.USER), "")
        out[-1]["content"] = (
            f"{out[-1]['content']}\n\nThe question was: {asked}\n"
            f"If the result tells the answer, give it: {_ANSWER}"
        )
    told = instructions_for(tools)
    if out and out[0]["role"] == "system":
        out[0]["content"] = f"{out[0]['content']}\n\n{told}"
    else:
        out.insert(0, {"role": "system", "content": told})
    return out


def read_constrained(text: str, *, cut: bool = False) -> Said:
    """Tell what a constrained reply says; of a cut one, as much as there is."""
    try:
        value = json.loads(text)
    except ValueError:
        return _read_cut(text) if cut else Said(text=text)
    if isinstance(value, Mapping) and isinstance(value.get("tool"), str):
        arguments = json.dumps(value.get("arguments", {}), ensure_ascii=False)
        return Said(calls=(_call(value["tool"], arguments),))
    if isinstance(value, Mapping) and isinstance(value.get("answer"), str):
        return Said(text=_unescaped(value["answer"]))
    return Said(text=text)


def spoken(text: str) -> str:
    """Of the beginning of a constrained reply, as much of its answer as is certain by now.

    Each longer beginning says the same and maybe more.
    """
    found = _CUT_ANSWER.match(text)
    if found is None:
        return ""
    try:
        said = json.loads(f'"{_certain(found["rest"])}"')
    except ValueError:  # a control character, which no schema lets through
        return ""
    return clean(_unescaped(_MAYBE_LATEX.sub("", said)))


_ROLES: Final = {
    Role.SYSTEM: "system",
    Role.USER: "user",
    Role.ASSISTANT: "assistant",
    Role.TOOL: "user",
}


def _form(**properties: Json) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _plain(message: Message) -> str:
    if message.role is Role.TOOL:
        return f"Result of {message.name or 'the tool'}:\n{message.text}"
    lines = [message.text] if message.text else []
    lines += [f"I use {call.name} with {call.arguments or '{}'}." for call in message.tool_calls]
    return "\n".join(lines)


def _read_cut(text: str) -> Said:
    if found := _CUT_CALL.match(text):
        return Said(calls=(_call(found["name"], found["rest"] or ""),))
    if found := _CUT_ANSWER.match(text):
        rest = _certain(found["rest"])
        try:
            return Said(text=clean(_unescaped(json.loads(f'"{rest}"'))))
        except ValueError:
            return Said(text=rest)
    return Said(text=text)


def _certain(text: str) -> str:
    """The beginning of a JSON text that the characters after it cannot change."""
    place, last = 0, ""
    while token := _TOKEN.match(text, place):
        place, last = token.end(), token[0]
    return text[: place - len(last)] if _FIRST_HALF.fullmatch(last) else text[:place]


def _call(name: str, arguments: str) -> ToolCall:
    return ToolCall(
        id="", name=name, arguments=arguments, provider_id=f"call_{uuid.uuid4().hex[:12]}"
    )


def _unescaped(text: str) -> str:
    r"""Undo what JSON makes of a single backslash: \boxed and \frac begin like its escapes."""
    return text.replace("\x08oxed", "\\boxed").replace("\x0crac", "\\frac")


class Speaking:
    """Passes on what a constrained reply says, not the JSON in which it says it."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._text = self._said = ""

    def __call__(self, piece: str) -> None:
        """Hear one piece of the JSON."""
        self._text += piece
        said = spoken(self._text)
        if fresh := said[len(self._said) :]:
            self._said = said
            self._say(fresh)
