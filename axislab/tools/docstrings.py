"""What a Google-style docstring says about a function and its arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from textwrap import dedent

_SECTION = re.compile(
    r"(?P<name>Args|Arguments|Parameters|Params|Returns?|Yields?|Raises|Warns|Examples?|Notes?"
    r"|Attributes|See Also|References|Todo)\s*:\s*"
)
_ARGUMENTS = {"Args", "Arguments", "Parameters", "Params"}
_ENTRY = re.compile(r"\*{0,2}(?P<name>\w+)\s*(\([^)]*\))?\s*:\s*(?P<text>.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Docstring:
    """The parts of a docstring a model is told."""

    description: str = ""
    """Everything before the first section."""
    arguments: Mapping[str, str] = field(default_factory=dict)
    """What `Args:` says of each argument, on one line each."""


def parse_docstring(text: str | None) -> Docstring:
    """Read a Google-style docstring; a section it does not know stays in the description."""
    intro: list[str] = []
    entries: list[str] = []
    current = intro
    for line in (text or "").splitlines():
        if line[:1].strip() and (match := _SECTION.fullmatch(line)):
            current = entries if match["name"] in _ARGUMENTS else []
        else:
            current.append(line)
    return Docstring(description="\n".join(intro).strip(), arguments=_entries(entries))


def _entries(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    name: str | None = None
    for line in dedent("\n".join(lines)).splitlines():
        match = _ENTRY.fullmatch(line)
        if match:
            name = match["name"]
            found[name] = [match["text"].strip()]
        elif name is not None and line.strip():
            found[name].append(line.strip())
    return {key: " ".join(part for part in parts if part) for key, parts in found.items()}
