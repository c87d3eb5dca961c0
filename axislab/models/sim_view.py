"""The visible messages, as the simulated agent understands them; nothing else enters a decision."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from axislab.messages import Json, Message, Role, ToolCall
from axislab.models.base import ModelRequest
from axislab.models.sim_language import Question, parse_question, plain
from axislab.models.sim_pairing import pair
from axislab.models.sim_prompts import Style, Want, is_complaint, style_of, task_of, want_of
from axislab.models.sim_reading import Fact, Hit, read_text
from axislab.models.sim_tools import Handle, Kit, kit_of


class Outcome(StrEnum):
    """What became of an earlier call, as far as its result is still visible."""

    GOOD = "good"
    HIDDEN = "hidden"
    """The result is not visible any more."""
    RETRY = "retry"
    """It went wrong in a way that another try may mend."""
    FAILED = "failed"
    SPENT = "spent"
    """The tool, or every tool, cannot be used any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """An earlier tool call and its result."""

    call: ToolCall
    values: Mapping[str, Json] | None
    """The arguments; None where they are no JSON object."""
    result: str | None
    outcome: Outcome
    asked: str
    """The name, id or query it asked about."""
    topic: str
    """The same, with the id of a document replaced by its title."""
    about: str
    """Name and description of the tool."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A fact and the message it was read in."""

    fact: Fact
    index: int
    told: bool
    """It stands in a prompt or a summary, not in the result of a tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything visible, read."""

    question: Question | None
    task: str
    """The prompt that holds the question."""
    want: Want
    style: Style
    warned: bool
    """The last observation says that a reply had the wrong form."""
    exchanges: tuple[Exchange, ...]
    sightings: tuple[Sighting, ...]
    hits: tuple[Hit, ...]
    """Documents that searches named; once for each snippet."""
    bare: tuple[tuple[Exchange, str], ...]
    """Results that are one bare value."""
    kit: Kit
    tools: tuple[str, ...]
    """Names of all tools offered."""


_HIDDEN = re.compile(
    r"\b(?:omitted|hidden|removed|cleared|elided|no longer (?:shown|visible))\b", re.I
)
_BAD = re.compile(
    r"^\W*(?:error|not run|unknown tool|invalid|failed|failure|rejected|denied|timed out|timeout|"
    r"tool .{0,40}(?:failed|error)|exception|traceback|the (?:call|person|reviewer).{0,40}"
    r"(?:reject|denied|refus))|\b(?:was (?:rejected|denied)|not approved)\b",
    re.I,
)
_SPENT = re.compile(
    r"\b(?:budget|used up|exhausted|no (?:more|further) calls|limit (?:is )?reached)\b", re.I
)
_AGAIN = re.compile(
    r"argument|parameter|json|valid|required|missing|time|temporar|too many tool calls in one|"
    r"unknown tool|busy|again later",
    re.I,
)
_SAME = re.compile(
    r"\bthis very call\b|\bsame (?:call|arguments?)\b|\bduplicate\b|\balready\b", re.I
)


@dataclass(slots=True, kw_only=True)
class _Gathered:
    """What has been read so far, message by message."""

    handles: Mapping[str, Handle]
    exchanges: list[Exchange] = field(default_factory=list)
    sightings: list[Sighting] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)
    listed: dict[Hit, None] = field(default_factory=dict)
    bare: list[tuple[Exchange, str]] = field(default_factory=list)

    def prompt(self, text: str, index: int) -> None:
        """A prompt, or a summary."""
        self.sightings.extend(Sighting(fact, index, True) for fact in read_text(text).facts)

    def exchange(self, call: ToolCall, text: str | None, place: int | None) -> None:
        """A call and its result."""
        exchange = _exchange(call, text, self.handles.get(call.name), self.titles)
        self.exchanges.append(exchange)
        if exchange.outcome is not Outcome.GOOD or place is None:
            return
        reading = read_text(exchange.result or "", exchange.topic)
        self.titles.update((hit.id, hit.title) for hit in reading.hits)
        self.listed.update(dict.fromkeys(reading.hits))
        self.sightings.extend(Sighting(fact, place, False) for fact in reading.facts)
        if reading.value is not None:
            self.bare.append((exchange, reading.value))


def view_of(request: ModelRequest) -> View:
    """Read a request."""
    messages = request.messages
    kit = kit_of(request.tools)
    pairing = pair(messages)
    results = pairing.results
    task_index = task_of(messages, results)
    task = messages[task_index].text if task_index is not None else ""
    prompt = _last_prompt(messages, results)
    first = next((m.text for m in messages if m.role is Role.USER), "")
    read = _Gathered(handles={h.name: h for group in kit.groups() for h in group})
    for index, message in enumerate(messages):
        if index not in results and message.role is not Role.TOOL and not message.tool_calls:
            read.prompt(message.text, index)
        for paired in pairing.calls.get(index, ()):
            place = paired.place
            read.exchange(paired.call, None if place is None else messages[place].text, place)
    last = messages[-1].text if messages and messages[-1].role in (Role.USER, Role.TOOL) else ""
    return View(
        question=parse_question(task) if task else None,
        task=task,
        want=want_of(prompt, task=first),
        style=style_of(messages),
        warned=(prompt is not None or len(messages) - 1 in results) and is_complaint(last),
        exchanges=tuple(read.exchanges),
        sightings=tuple(read.sightings),
        hits=tuple(read.listed),
        bare=tuple(read.bare),
        kit=kit.without(_spent(read.exchanges, [tool.name for tool in request.tools])),
        tools=tuple(tool.name for tool in request.tools),
    )


def _last_prompt(messages: Sequence[Message], results: frozenset[int]) -> str | None:
    """The newest user message, if nothing but a prefix of the reply stands after it.

    The very first user message is the task, not a prompt about the work on it.
    """
    first = next((i for i, m in enumerate(messages) if m.role is Role.USER), None)
    last = len(messages) - 1
    if last > 0 and messages[last].role is Role.ASSISTANT and not messages[last].tool_calls:
        last -= 1
    if first is None or last <= first or last in results or messages[last].role is not Role.USER:
        return None
    return messages[last].text


@lru_cache(maxsize=4096)
def parse_arguments(text: str) -> Mapping[str, Json] | None:
    """The arguments of a call; None where they are no JSON object."""
    try:
        data = json.loads(text or "{}")
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def _exchange(
    call: ToolCall, text: str | None, handle: Handle | None, titles: Mapping[str, str]
) -> Exchange:
    values = parse_arguments(call.arguments)
    asked = ""
    if values:
        first = next((v for v in values.values() if isinstance(v, str)), "")
        asked = str(values.get(handle.slot, first)) if handle else first
    return Exchange(
        call=call,
        values=values,
        result=text,
        outcome=_outcome(text),
        asked=asked,
        topic=titles.get(asked, asked),
        about=handle.about if handle else plain(call.name),
    )


@lru_cache(maxsize=8192)
def _outcome(text: str | None) -> Outcome:
    if text is None or (len(text) < 200 and _HIDDEN.search(text) and not _BAD.search(text)):
        return Outcome.HIDDEN
    if not _BAD.search(text[:200]):
        return Outcome.GOOD
    if _SPENT.search(text[:200]):
        return Outcome.SPENT
    if _AGAIN.search(text[:200]) and not _SAME.search(text[:200]):
        return Outcome.RETRY
    return Outcome.FAILED


def _spent(exchanges: Sequence[Exchange], names: Sequence[str]) -> frozenset[str]:
    """Tools that cannot be used any more, going by their last result."""
    out: set[str] = set()
    for exchange in exchanges:
        if exchange.outcome is Outcome.SPENT:
            everything = re.search(r"\btask\b|\ball tools\b", exchange.result or "")
            of_tool = re.search(r"\bof this tool\b|\bthis tool\b", exchange.result or "")
            out.update(names if everything and not of_tool else [exchange.call.name])
    return frozenset(out)
