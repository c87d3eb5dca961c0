"""Reading: facts, hits and names that stand in a visible text.

Four forms of a sentence state a fact ("The R of E is V.", "E's R is V.", "V is the R of E.",
"Its R is V."), and so do the keys of a JSON object and lines of "key: value". "Its" is the title
of the document the sentence stands in. What is cut off in the middle states nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from axislab.messages import Json
from axislab.models.sim_language import plain

_R = r"([a-z][\w \-]*?)"
_V = r"([^\s.!?…](?:[^.!?…\n]|(?<=\d)\.(?=\d))*)"
_E = r"([^\s.,;:!?][^.,;:!?\n]*?)"
_FORMS = (
    # The second form comes last of those with a name: "The …" is no possessor.
    re.compile(rf"^[Tt]he {_R} of {_E} (?:is|was|are) {_V}$"),
    re.compile(rf"^[Ii]ts {_R} (?:is|was|are) {_V}$"),
    re.compile(rf"^{_V} (?:is|was|are) the {_R} of {_E}$"),
    re.compile(rf"^{_E}['’]s? {_R} (?:is|was|are) {_V}$"),
)
_LONGEST = 300
"""Characters of a sentence that may state a fact."""
_SENTENCE = re.compile(r"\s*(.+?)([.!?](?=\s|$)|$)", re.DOTALL)
_HIT = re.compile(r"^\W{0,3}\[([^\]\s]+)\]\s*([^:\n]+?)\s*(?::\s*(.*))?$")
_LINE = re.compile(r"^[-*•]?\s*([A-Za-z][\w \-]{0,40})\s*[:=]\s+(\S.*)$")
_BULLET = re.compile(r"^\s*(?:[-*•]\s*|\d+[.)]\s+)")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NAME_KEYS = ("name", "title", "entity", "label", "symbol")
_ID_KEYS = ("id", "doc id", "document id", "docid", "url", "page id", "key")
_TEXT_KEYS = ("snippet", "text", "content", "summary", "extract", "body")


@dataclass(frozen=True, slots=True)
class Fact:
    """Something a text states: the relation of the entity is the value."""

    entity: str
    relation: str
    value: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A document a search result names."""

    id: str
    title: str
    snippet: str


@dataclass(frozen=True, slots=True)
class Reading:
    """All that one text says, in its order."""

    facts: tuple[Fact, ...] = ()
    hits: tuple[Hit, ...] = ()
    value: str | None = None
    """The whole text, where it is one short bare value."""


def number_in(text: str) -> float | None:
    """The number a value begins with or holds, None where there is none."""
    match = _NUMBER.search(text.replace(",", ""))
    return float(match[0]) if match else None


@lru_cache(maxsize=8192)
def read_text(text: str, asked: str = "") -> Reading:
    """What a text says; `asked` is the name a tool was asked about, for texts without a title."""
    stripped = text.strip()
    if stripped[:1] in ("{", "["):
        try:
            data = json.loads(stripped)
        except ValueError:
            data = None
        if isinstance(data, dict | list):
            return _read_json(data, asked)
    return _read_lines(stripped, asked)


def _read_lines(text: str, asked: str) -> Reading:
    lines = text.splitlines()
    facts: list[Fact] = []
    hits: list[Hit] = []
    title = asked
    if len(lines) > 2 and lines[0].strip() and not lines[1].strip() and not _HIT.match(lines[0]):
        title = lines[0].strip().lstrip("# ")
        lines = lines[1:]
    for line in lines:
        subject, body = title, line
        # Without a full stop a sentence may have been cut, unless it is an item or stands alone.
        loose = len(lines) == 1 or bool(_BULLET.match(line))
        if hit := _HIT.match(line):
            hits.append(Hit(hit[1], hit[2], hit[3] or ""))
            subject, body, loose = hit[2], hit[3] or "", False
        elif (pair := _LINE.match(line)) and title and not line.rstrip().endswith(("…", "...")):
            facts.append(Fact(title, plain(pair[1]), pair[2].strip().rstrip(".")))
        facts.extend(_facts_of(body, subject, loose=loose))
    short = len(lines) == 1 and len(text.split()) <= 6 and not facts and not hits
    return Reading(tuple(facts), tuple(hits), text.strip(". ") if short and text else None)


def _facts_of(body: str, title: str, *, loose: bool) -> Iterator[Fact]:
    if " is " not in body and " was " not in body and " are " not in body:
        return
    for match in _SENTENCE.finditer(_BULLET.sub("", body)):
        stated = match[2] in (".", "!") or (loose and not match[2])
        if len(match[1]) > _LONGEST:
            continue
        if stated and (fact := _fact(match[1].strip(), title)):
            yield fact


def _fact(sentence: str, title: str) -> Fact | None:
    if match := _FORMS[0].match(sentence):
        return Fact(match[2], plain(match[1]), match[3].strip())
    if (match := _FORMS[1].match(sentence)) and title:
        return Fact(title, plain(match[1]), match[2].strip())
    if match := _FORMS[2].match(sentence):
        return Fact(match[3].strip(), plain(match[2]), match[1].strip())
    if match := _FORMS[3].match(sentence):
        return Fact(match[1], plain(match[2]), match[3].strip())
    return None


def _read_json(data: Json, asked: str) -> Reading:
    facts: list[Fact] = []
    hits: list[Hit] = []
    for entry in data if isinstance(data, list) else [data]:
        if isinstance(entry, dict):
            _read_object(entry, asked, facts, hits)
    return Reading(tuple(facts), tuple(hits))


def _read_object(entry: Mapping[str, Json], asked: str, facts: list[Fact], hits: list[Hit]) -> None:
    keys = {plain(_CAMEL.sub(" ", str(key))): value for key, value in entry.items()}
    name = next((str(keys[k]) for k in _NAME_KEYS if isinstance(keys.get(k), str)), "")
    number = next((str(keys[k]) for k in _ID_KEYS if isinstance(keys.get(k), str | int)), "")
    snippet = next((str(keys[k]) for k in _TEXT_KEYS if isinstance(keys.get(k), str)), "")
    if number and name:
        hits.append(Hit(number, name, snippet))
    for subject in dict.fromkeys(s for s in (asked, name) if s):
        facts.extend(_facts_of(snippet, name or asked, loose=False))
        facts.extend(
            Fact(subject, key, _spell(value))
            for key, value in keys.items()
            if isinstance(value, str | int | float)
            and key not in _TEXT_KEYS
            and not (hits and key in _ID_KEYS)
        )
    for key, value in entry.items():
        if isinstance(value, dict):  # {"Osk": {"capital": …}}, or one more level of keys
            _read_object({"name": key, **value} if key[:1].isupper() else value, asked, facts, hits)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, dict):
                    _read_object(item, "", facts, hits)


def _spell(value: str | float) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
