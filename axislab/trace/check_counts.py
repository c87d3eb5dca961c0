"""Checks of a trace's accounts: tool calls, requests and the totals at the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from axislab.events import ModelRequested, RunFinished, StepTaken, ToolFinished, ToolStarted
from axislab.trace.check_history import HistoryCheck
from axislab.trace.check_life import LifeCheck
from axislab.trace.findings import Findings
from axislab.trace.trace import Record

_PIECES = ("uncached_tokens", "cached_tokens", "cache_write_tokens")
_TOKENS = ("input_tokens", "output_tokens", *_PIECES, "reasoning_tokens")
_PARTS = (*((piece, "input_tokens") for piece in _PIECES), ("reasoning_tokens", "output_tokens"))
_CUT_SHORT = frozenset({"INTERRUPTED", "CANCELLED", "FAILED"})


class ToolCheck:
    """Every call that was started is finished, once."""

    def __init__(self, findings: Findings, history: HistoryCheck, life: LifeCheck) -> None:
        self._found = findings
        self._history = history
        self._life = life
        self._in_flight: dict[str, tuple[int, int]] = {}
        """Call id to the line it started in and how often the run had been resumed by then."""
        self._started: set[str] = set()
        self._finished: set[str] = set()

    def see(self, line: int, record: Record) -> None:
        """Take the next line."""
        if record.kind == ToolStarted.kind:
            self._check_start(line, record.data)
        elif record.kind == ToolFinished.kind:
            self._check_finish(line, record.data)
        elif record.kind == StepTaken.kind and record.data["operation"] == "tools":
            self._check_all_finished(f"when step {record.data['step']} took the results")
        elif record.kind == RunFinished.kind and record.data["status"] not in _CUT_SHORT:
            self._check_all_finished("when the run ended")

    def close(self) -> None:
        """Say which calls were in flight when the trace ended."""
        for call_id, (line, _) in self._in_flight.items():
            self._found.note(line, "in_flight", f"tool call {call_id!r} was started, not finished")

    def _check_start(self, line: int, data: Mapping[str, Any]) -> None:
        call_id, resumed = data["call_id"], self._life.resumed
        self._check_call(line, data)
        again = call_id in self._finished
        if call_id in self._in_flight:
            again = self._in_flight[call_id][1] == resumed
        if again:
            self._found.problem(line, "tool_twice", f"tool call {call_id!r} was started again")
        self._started.add(call_id)
        self._in_flight[call_id] = (line, resumed)

    def _check_finish(self, line: int, data: Mapping[str, Any]) -> None:
        call_id = data["call_id"]
        self._check_call(line, data)
        if call_id in self._finished:
            self._found.problem(line, "tool_twice", f"tool call {call_id!r} was finished again")
        if call_id not in self._started and data.get("latency") is not None:
            self._found.problem(line, "tool_start", f"tool call {call_id!r} ran without a start")
        self._finished.add(call_id)
        self._in_flight.pop(call_id, None)

    def _check_call(self, line: int, data: Mapping[str, Any]) -> None:
        if data["call_id"] not in self._history.call_ids:
            wrong = f"tool call {data['call_id']!r} was asked for by no message"
            self._found.problem(line, "tool_call", wrong)
        if data["step"] != self._history.steps:
            wrong = f"tool event of step {data['step']}, but step {self._history.steps} is next"
            self._found.problem(line, "tool_step", wrong)

    def _check_all_finished(self, when: str) -> None:
        for call_id, (line, _) in self._in_flight.items():
            wrong = f"tool call {call_id!r} was started and had no end {when}"
            self._found.problem(line, "tool_unfinished", wrong)
        self._in_flight.clear()


class AccountCheck:
    """Requests are numbered, their tokens make sense, and the totals are the sums of the rows."""

    def __init__(self, findings: Findings, history: HistoryCheck, life: LifeCheck) -> None:
        self._found = findings
        self._history = history
        self._life = life
        self._last: tuple[int, int] | None = None
        self._resumed = 0
        self._sums: dict[str, int | None] = dict.fromkeys(_TOKENS, 0)

    def see(self, line: int, record: Record) -> None:
        """Take the next line."""
        if record.kind == ModelRequested.kind:
            self._check_number(line, record.data)
            self._check_tokens(line, record.data)
        elif record.kind == RunFinished.kind:
            self._check_totals(line, record.data)

    def _check_number(self, line: int, data: Mapping[str, Any]) -> None:
        number = (data["call"], data["attempt"])
        fresh = self._last is None or self._resumed != self._life.resumed
        call, attempt = self._last or (-1, 1)
        if number not in ((call, attempt + 1), (call + 1, 1)) and not (fresh and number[1] == 1):
            wrong = f"call {number[0]}, attempt {number[1]} after call {call}, attempt {attempt}"
            self._found.problem(line, "request_number", wrong)
        self._last, self._resumed = number, self._life.resumed

    def _check_tokens(self, line: int, data: Mapping[str, Any]) -> None:
        for name in _TOKENS:
            tokens, total = data.get(name), self._sums[name]
            if tokens is not None and tokens < 0:
                self._found.problem(line, "tokens", f"{name} is {tokens}")
            if tokens is not None:
                self._sums[name] = None if total is None else total + tokens
            elif data["outcome"] == "ok" or data.get("input_tokens") is not None:
                self._sums[name] = None
        for part, whole in _PARTS:
            some, all_ = data.get(part), data.get(whole)
            if some is not None and all_ is not None and some > all_:
                self._found.problem(line, "tokens", f"{part} {some} of {whole} {all_}")
        pieces, given = [data.get(name) for name in _PIECES], data.get("input_tokens")
        known = [piece for piece in pieces if piece is not None]
        if given is not None and len(known) == len(pieces) and sum(known) != given:
            wrong = f"uncached, cached and cache write {known} do not make input_tokens {given}"
            self._found.problem(line, "tokens", wrong)

    def _check_totals(self, line: int, data: Mapping[str, Any]) -> None:
        totals = {"steps": self._history.steps, "turns": self._history.turn, **self._sums}
        for name, total in totals.items():
            given = data.get(name)
            if given is not None and total is not None and given != total:
                wrong = f"run.finished says {name} {given}, the lines make {total}"
                self._found.problem(line, "totals", wrong)
