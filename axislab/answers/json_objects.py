"""Finding JSON objects inside other text, in one pass and at any depth."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<string>"(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")
        | (?P<value>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?
            | true | false | null | NaN | -?Infinity)
        | (?P<sign>[{}\[\]:,])
    )""",
    re.VERBOSE,
)

# What may come next, and what is expected then; "push" opens a container, "pop" closes one.
_GRAMMAR = {
    "first key": {"string": "colon", "}": "pop"},
    "key": {"string": "colon"},
    "colon": {":": "member"},
    "member": {"string": "after member", "value": "after member", "{": "push", "[": "push"},
    "after member": {",": "key", "}": "pop"},
    "first item": {"string": "after item", "value": "after item", "{": "push", "[": "push"}
    | {"]": "pop"},
    "item": {"string": "after item", "value": "after item", "{": "push", "[": "push"},
    "after item": {",": "item", "]": "pop"},
}


@dataclass(frozen=True, slots=True)
class ObjectSpan:
    """Where an object stands, braces included."""

    start: int
    end: int


@dataclass(slots=True)
class _Container:
    """An object or array that is open."""

    start: int
    is_object: bool
    holds_key: bool = False


@dataclass(slots=True)
class _Scan:
    """Reads one object from its opening brace on, as far as it is JSON."""

    text: str
    key: str
    resume: int
    """Where the search for the next object goes on."""
    found: ObjectSpan | None = None
    """The last object to close that holds the key: an outer one closes after its inner ones."""
    _open: list[_Container] = field(default_factory=list)

    def run(self) -> None:
        """Read until the object closes or stops being JSON."""
        expected, end, resume = "member", self.resume, None
        while token := _TOKEN.match(self.text, end):
            kind = token["sign"] or str(token.lastgroup)
            step = _GRAMMAR[expected].get(kind)
            if step is None:
                break
            start, end = token.start(token.lastgroup or 0), token.end()
            if kind == "string":
                # Should this end badly, its quotes may have been paired the wrong way round.
                resume = start + 1
                if step == "colon":
                    self._note_key(token["string"])
            expected = self._next(step, kind, start)
            if not self._open:
                self.resume = end
                return
        self.resume = end if resume is None else resume

    def _next(self, step: str, kind: str, start: int) -> str:
        if step == "push":
            self._open.append(_Container(start, is_object=kind == "{"))
            return "first key" if kind == "{" else "first item"
        if step != "pop":
            return step
        container = self._open.pop()
        if container.holds_key:
            self.found = ObjectSpan(container.start, start + 1)
        return "after member" if self._open and self._open[-1].is_object else "after item"

    def _note_key(self, written: str) -> None:
        if written[1:-1] == self.key or ("\\" in written and self._decoded(written) == self.key):
            self._open[-1].holds_key = True

    @staticmethod
    def _decoded(written: str) -> object:
        return json.loads(written, strict=False)


def last_object_with(text: str, key: str) -> ObjectSpan | None:
    """The last JSON object of the text that holds the key itself; of nested ones the outermost."""
    found = None
    start = text.find("{")
    while start != -1:
        scan = _Scan(text, key, start)
        scan.run()
        found = scan.found or found
        start = text.find("{", scan.resume)
    return found
