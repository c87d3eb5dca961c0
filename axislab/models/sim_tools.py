"""What the simulated agent makes of the tools it is offered, from their specifications alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from axislab.messages import Json, ToolSpec
from axislab.models.sim_language import plain

_FIND = re.compile(r"search|\bfind|query|queries|keywords?|retriev|matching documents", re.I)
_READ = re.compile(r"\bread|\bopen|fetch|document|page|article|\bget\b", re.I)
_COUNT = re.compile(r"calc|arithmetic|\bevaluat|\bcomput|expression|\bmath|\bsums?\b", re.I)
_ACT = re.compile(
    r"\b(?:notes?|memo|remember|write|save|store|send|mail|delete|remove|create|update|set|deploy|"
    r"restart|start|stop|run|execute|install|buy|pay|post|book|cancel|approve|submit|finish)\b",
    re.I,
)
_QUERY_SLOT = re.compile(r"^(?:q|query|queries|search.*|keywords?|terms?|text|question|prompt)$")
_ID_SLOT = re.compile(r"(?:^|[ _])(?:id|identifier|doc|document|url|uri|link|path)$")
_SUM_SLOT = re.compile(r"^(?:expr|expression|formula|equation|calculation|sum|input)$")
_RELATION_SLOT = re.compile(r"relation|attribute|propert|predicate|field|key|fact|aspect")


@dataclass(frozen=True, slots=True)
class Handle:
    """How to use one tool: which argument takes what is asked about."""

    name: str
    slot: str
    relation_slot: str | None = None
    """A second argument that takes the relation, where there is one."""
    fixed: Mapping[str, Json] = field(default_factory=dict)
    """Further arguments it cannot do without."""
    about: str = ""
    """Name and description, for a tool that knows one relation only."""

    def arguments(self, value: str, relation: str = "") -> dict[str, Json]:
        """The arguments that ask about a value."""
        out: dict[str, Json] = {self.slot: value}
        if self.relation_slot:
            out[self.relation_slot] = relation
        return {**out, **self.fixed}

    def knows(self, relation: str) -> bool:
        """Whether the tool says that it is about this relation."""
        return bool(re.search(rf"\b{re.escape(relation)}\b", self.about))


@dataclass(frozen=True, slots=True)
class Kit:
    """The usable tools, by what they are good for."""

    finders: tuple[Handle, ...] = ()
    """Take a query."""
    readers: tuple[Handle, ...] = ()
    """Take the id of a document a search named."""
    lookups: tuple[Handle, ...] = ()
    """Take the name of a thing."""
    counters: tuple[Handle, ...] = ()
    """Take an expression."""

    def without(self, names: frozenset[str]) -> Kit:
        """The kit with some tools put away."""
        if not names:
            return self
        return Kit(*(tuple(h for h in group if h.name not in names) for group in self.groups()))

    def groups(self) -> tuple[tuple[Handle, ...], ...]:
        """The four groups, in the order of the fields."""
        return (self.finders, self.readers, self.lookups, self.counters)


def kit_of(tools: Sequence[ToolSpec]) -> Kit:
    """The tools by what they take and say; one that seems to act on the world is left alone."""
    groups: tuple[list[Handle], ...] = ([], [], [], [])
    for tool in tools:
        handle = _handle(tool)
        if handle is not None and (place := _place(tool, handle)) is not None:
            groups[place].append(handle)
    return Kit(*(tuple(group) for group in groups))


def _handle(tool: ToolSpec) -> Handle | None:
    properties = tool.parameters.get("properties") or {}
    required = [n for n in tool.parameters.get("required") or () if n in properties]
    texts = [n for n, p in properties.items() if _is_text(p)]
    wanted = [n for n in required if n in texts] or (texts[:1] if not required else [])
    relation = next((n for n in wanted if _RELATION_SLOT.search(plain(n))), None)
    if relation is not None and len(wanted) > 1:
        wanted.remove(relation)
    else:
        relation = None
    if len(wanted) != 1:
        return None
    fixed = {}
    for name in required:
        if name not in (*wanted, relation):
            value = _some_value(properties[name])
            if value is None:
                return None
            fixed[name] = value
    about = plain(f"{tool.name} {tool.description}").replace("-", " ")
    return Handle(tool.name, wanted[0], relation, fixed, about)


def _is_text(schema: Json) -> bool:
    if not isinstance(schema, Mapping) or "enum" in schema:
        return False
    return bool(schema.get("type", "string") == "string")


def _some_value(schema: Json) -> Json:
    """A value the schema takes, for an argument the agent has no opinion on."""
    if not isinstance(schema, Mapping):
        return None
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    return {"integer": 5, "number": 5, "boolean": False}.get(str(schema.get("type")))


def _place(tool: ToolSpec, handle: Handle) -> int | None:
    slot, name = plain(handle.slot), plain(tool.name)
    if (_SUM_SLOT.match(slot) and _COUNT.search(handle.about)) or re.match(r"calc|math", name):
        return 3
    if _ACT.search(name):
        return None
    if _ID_SLOT.search(slot):
        return 1 if _READ.search(handle.about) else 2
    if _QUERY_SLOT.match(slot) or re.search(r"search|find", name):
        return 0 if not _COUNT.search(name) else 3
    return 0 if _FIND.search(name) else 2
