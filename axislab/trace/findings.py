"""What a check of a trace found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

MOST_OF_A_CODE = 50
"""Further findings of the same code are only counted."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing found in a trace."""

    line: int
    """Line of the file, from 1; 0 for the trace as a whole."""
    code: str
    """A word that stays the same, to count and filter by."""
    message: str

    def __str__(self) -> str:
        where = f"line {self.line}" if self.line else "trace"
        return f"{where}: {self.message} [{self.code}]"


@dataclass(frozen=True, slots=True)
class FsckReport:
    """What is wrong with a trace, and what is only worth knowing."""

    ok: bool
    """True if no rule of a trace is broken; a run that was killed is still ok."""
    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...]
    """A torn last line, a missing end, a tool call in flight, a clock that went back."""
    steps: int
    """Steps that were checked."""

    def __str__(self) -> str:
        verdict = "ok" if self.ok else f"{len(self.problems)} problems"
        rows = [f"{verdict}, {self.steps} steps"]
        rows += [f"  {problem}" for problem in self.problems]
        rows += [f"  note: {note}" for note in self.notes]
        return "\n".join(rows)


@dataclass(slots=True)
class Findings:
    """Collects what checks find, a bounded number of each kind."""

    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    _counts: Counter[str] = field(default_factory=Counter)

    def problem(self, line: int, code: str, message: str) -> None:
        """A rule of a trace is broken."""
        self._add(self.problems, Problem(line, code, message))

    def note(self, line: int, code: str, message: str) -> None:
        """Worth knowing, but no rule is broken."""
        self._add(self.notes, Problem(line, code, message))

    def _add(self, found: list[Problem], problem: Problem) -> None:
        self._counts[problem.code] += 1
        if self._counts[problem.code] <= MOST_OF_A_CODE:
            found.append(problem)

    def report(self, *, steps: int) -> FsckReport:
        """All of it, in the order of lines."""
        for found in (self.problems, self.notes):
            for code in {problem.code for problem in found}:
                if (more := self._counts[code] - MOST_OF_A_CODE) > 0:
                    found.append(Problem(0, code, f"{more} more of this kind"))
        problems, notes = (
            tuple(sorted(found, key=lambda p: p.line or float("inf")))
            for found in (self.problems, self.notes)
        )
        return FsckReport(ok=not problems, problems=problems, notes=notes, steps=steps)
