"""How the simulated agent words things: answers, intentions, refusals and calls written as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from axislab.messages import Json
from axislab.models.sim_draws import Draws
from axislab.models.sim_plan import PlannedCall
from axislab.models.sim_prompts import Style
from axislab.models.sim_reading import Fact

WORDS = 400
"""Extra words of a reply at verbosity 1, on average."""
UNKNOWN = "unknown"
"""What stands in a box that holds no answer."""
CANNOT = (
    "I am a simulated model: I follow questions about facts in documents and do sums, nothing "
    "else. I cannot work on this task."
)
OPEN = "What I can see does not state it, so the answer stays open."

_REFUSALS = (
    "I'm sorry, but I can't help with that request.",
    "I’m sorry, but I can’t assist with that.",
    "I'm sorry, I cannot solve this task.",
    "I apologize, but I am unable to help with this question.",
    "I cannot complete this under the given time constraint.",
)
_INTENTS = ("I will {}.", "Next I {}.", "Let me {}.", "To go on I {}.")
_FILLER = (
    "Let me think about what is asked before going on.",
    "It helps to take one step at a time and to keep an eye on what is still missing.",
    "So far the picture is not complete, which is why I would like to be careful here.",
    "There may be more than one way to find this out, and I will try the plain one first.",
    "I keep in mind that names can be alike and that numbers are easy to mix up.",
    "Before I say anything final I should go over the steps once more.",
    "None of this is settled until it has been checked against a source.",
    "In other words, I go from the inner part of the question to the outer part.",
    "That said, it seems sensible to continue in the same manner.",
    "I note this for myself and move on to the next point.",
)


def intent(call: PlannedCall, draws: Draws) -> str:
    """A sentence that says what a call is for."""
    return draws.pick(_INTENTS, "intent").format(call.purpose)


def refusal(draws: Draws) -> str:
    """Declines, in the words that models are known for."""
    return draws.pick(_REFUSALS, "refusal")


def filler(share: float, draws: Draws) -> str:
    """Words that say nothing; about `share` times WORDS of them."""
    wanted = share * WORDS * (0.5 + draws.uniform("length"))
    out: list[str] = []
    words = 0
    while words < wanted:
        sentence = _FILLER[int(draws.uniform("filler", len(out)) * len(_FILLER))]
        words += len(sentence.split())
        out.append(sentence)
    return " ".join(out)


def final(answer: str | None, style: Style) -> str:
    """A final answer in the form that was asked for; None is said to be unknown."""
    value = answer if answer is not None else UNKNOWN
    if style.kind == "json":
        return json.dumps({style.key or "answer": value}, ensure_ascii=False)
    lead = "" if answer is not None else f"{OPEN}\n"
    if style.kind == "boxed":
        return f"{lead}The answer is \\boxed{{{value}}}" if answer else f"{lead}\\boxed{{{value}}}"
    if style.kind == "line":
        return f"{lead}{style.key}: {value}"
    return answer if answer is not None else OPEN


def verdict(own: str | None, candidate: str) -> str:
    """Whether a candidate answer is what the agent reads out of what it sees."""
    if own is None:
        return f"{OPEN} I can neither confirm nor refute it."
    if own.casefold().strip() == candidate.casefold().strip():
        return "What I can see says the same.\n\nVERDICT: RIGHT"
    return f"By what I can see it should be {own}.\n\nVERDICT: WRONG"


def summary(facts: Iterable[Fact], missing: str | None) -> str:
    """What an attempt found out, in sentences that a later attempt can read."""
    lines = [f"- The {f.relation} of {f.entity} is {f.value}." for f in facts]
    found = "Found so far:\n" + "\n".join(lines) if lines else "Nothing was found so far."
    gap = f"\nStill missing: {missing}." if missing else "\nNothing else is missing."
    return f"{found}{gap}\nStart from what was found and do not look it up again."


def hermes(name: str, arguments: Mapping[str, Json]) -> str:
    """A call between tags, as Hermes and Qwen templates have it."""
    call = json.dumps({"name": name, "arguments": dict(arguments)}, ensure_ascii=False)
    return f"<tool_call>\n{call}\n</tool_call>"


def fenced(name: str, arguments: Mapping[str, Json]) -> str:
    """A call as JSON in a code fence."""
    call = json.dumps({"name": name, "arguments": dict(arguments)}, ensure_ascii=False, indent=1)
    return f"```json\n{call}\n```"


def bare(name: str, arguments: Mapping[str, Json]) -> str:
    """A call as in a program."""
    values = list(arguments.values())
    if len(values) == 1:
        return f"{name}({json.dumps(values[0], ensure_ascii=False)})"
    inner = ", ".join(f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in arguments.items())
    return f"{name}({inner})"


def broken(arguments: Mapping[str, Json], draws: Draws) -> str:
    """Arguments that are no JSON, though one sees what they mean."""
    text = json.dumps(dict(arguments), ensure_ascii=False)
    bad = (text[:-1], text.replace('"', "'"), text.replace('": ', '" = '), text[:-2])
    return draws.pick(bad, "broken")


def misnamed(arguments: Mapping[str, Json], slot: str, draws: Draws) -> dict[str, Json]:
    """Arguments with the name of one misspelt."""
    wrong = draws.pick((f"{slot}s", f" {slot}", f"{slot}_text", slot[:-1] or "x"), "misnamed")
    return {wrong if name == slot else name: value for name, value in arguments.items()}
