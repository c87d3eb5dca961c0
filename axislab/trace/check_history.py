"""Checks of a trace's conversation: messages, markers, steps and what was sent to a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from axislab.errors import InvalidMessage
from axislab.events import MessageAppended, ModelRequested, StepTaken
from axislab.messages import Message, Role
from axislab.runtime.markers import Compaction, Rollback, parse_marker
from axislab.runtime.stages import (
    REOPENABLE,
    REOPENS,
    STAGE_TO_ACTION,
    VALID_STAGE_TRANSITION,
    ConversationStage,
    StepAction,
)
from axislab.runtime.transcript import Transcript
from axislab.trace.findings import Findings
from axislab.trace.trace import Record

_STAGES = frozenset(ConversationStage)


@dataclass(frozen=True, slots=True)
class _Pairing:
    """Calls and results of a visible list up to one message."""

    waiting: tuple[str, ...] = ()
    """Ids of calls without a result so far."""
    fault: str | None = None
    """What is wrong, for good, with this list or a shorter one."""

    def after(self, message: Message) -> _Pairing:
        """The same with one more message."""
        waiting, fault = self.waiting, self.fault
        if message.role is Role.TOOL:
            for call_id in (message.tool_call_id or "").split(","):
                if call_id not in waiting:
                    fault = fault or f"a tool result without its call ({call_id!r})"
                waiting = tuple(w for w in waiting if w != call_id)
        elif waiting:
            fault = fault or f"a tool call without its result ({waiting[0]!r})"
            waiting = ()
        waiting += tuple(call.id for call in message.tool_calls)
        return _Pairing(waiting, fault)


class HistoryCheck:
    """Replays the messages as they come, and holds every step and request against them."""

    def __init__(self, findings: Findings) -> None:
        self._found = findings
        self._transcript = Transcript()
        self._pairings: list[_Pairing] = []
        self._next_message = 0
        self._uncertain = False
        """A message is missing: what was visible cannot be told any more."""
        self._reported_fault: str | None = None
        self._stage: str = ConversationStage.NOT_INITIALIZED
        self.call_ids: set[str] = set()
        self.steps = 0
        self.turn = 0
        self._open_step: int | None = None
        """Line of a message whose step has not come yet."""

    def see(self, line: int, record: Record) -> None:
        """Take the next line."""
        if record.kind == MessageAppended.kind:
            self._check_message(line, record)
        elif record.kind == StepTaken.kind:
            self._check_step(line, record)
        elif record.kind == ModelRequested.kind:
            self._check_request(line, record)

    def close(self) -> None:
        """Say what the end of the trace lacks."""
        if self._open_step is not None:
            message = f"step {self.steps} was cut off: its messages are there, its line is not"
            self._found.note(self._open_step, "step_cut", message)

    # Messages --------------------------------------------------------------------------------

    def _check_message(self, line: int, record: Record) -> None:
        index, step = record.data["index"], record.data["step"]
        if index != self._next_message:
            wrong = f"message {index}, expected {self._next_message}: visible lists not checked on"
            self._found.problem(line, "message_index", wrong)
            self._uncertain = True
        if step != self.steps:
            wrong = f"message of step {step}, but step {self.steps} is next"
            self._found.problem(line, "message_step", wrong)
        self._next_message = index + 1
        if self._open_step is None:
            self._open_step = line
        self._append(line, Message.from_dict(record.data["message"]))

    def _append(self, line: int, message: Message) -> None:
        before = self._transcript
        try:
            self._transcript = before.append(message)
        except InvalidMessage as problem:
            self._found.problem(line, "message_order", str(problem))
            self._transcript = before.append_raw(message)
        for call in message.tool_calls:
            if call.id in self.call_ids or not call.id:
                self._found.problem(line, "call_id", f"tool call id {call.id!r} is not unique")
            self.call_ids.add(call.id)
        if message.role is Role.RUNTIME:
            self._check_marker(line, message, before)
        else:
            self._pair((message,))

    def _check_marker(self, line: int, message: Message, before: Transcript) -> None:
        marker = parse_marker(message)
        if marker is None:
            wrong = f"marker {message.name!r} cannot be read: {message.text[:80]!r}"
            self._found.problem(line, "marker", wrong)
            return
        kept, had = self._transcript.visible_count, before.visible_count
        if isinstance(marker, Rollback):
            in_range = had - kept == marker.count
        elif isinstance(marker, Compaction):
            in_range = marker.prefix_len + marker.compressed_count <= had
            kept = min(marker.prefix_len, kept) if in_range else kept
        else:
            in_range = marker.prefix_len <= had
        if not in_range and not self._uncertain:
            wrong = f"{marker!r} is out of range: {had} messages were visible"
            self._found.problem(line, "marker_range", wrong)
        del self._pairings[kept:]
        self._pair(self._transcript.visible[kept:] if kept < self._transcript.visible_count else ())

    def _pair(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self._pairings.append(self._pairing.after(message))

    @property
    def _pairing(self) -> _Pairing:
        return self._pairings[-1] if self._pairings else _Pairing()

    # Steps -----------------------------------------------------------------------------------

    def _check_step(self, line: int, record: Record) -> None:
        step = record.data["step"]
        if step != self.steps:
            self._found.problem(line, "step_number", f"step {step}, expected {self.steps}")
        self._check_path(line, record)
        self._check_ends(line, record)
        if not self._uncertain:
            self._check_counts(line, record)
        self._stage = record.data["stage"]
        self.steps = step + 1
        self.turn = record.data["turn"]
        self._open_step = None

    def _check_path(self, line: int, record: Record) -> None:
        path, operation = record.data["stage_path"], record.data["operation"]
        unknown = [stage for stage in path if stage not in _STAGES]
        if unknown or not path:
            wrong = f"{unknown[0]!r} is no stage" if unknown else "the stage path is empty"
            self._found.problem(line, "stage", wrong)
            return
        if path[0] != self._stage:
            wrong = f"step {record.data['step']} starts in {path[0]}, the one before ended in "
            self._found.problem(line, "stage_joint", wrong + self._stage)
        for source, target in pairwise(path):
            reopened = REOPENS.get(operation) == target and (
                operation != "reopen" or source in REOPENABLE
            )
            if (source, target) not in VALID_STAGE_TRANSITION and not reopened:
                self._found.problem(line, "stage_move", f"no move from {source} to {target}")

    def _check_ends(self, line: int, record: Record) -> None:
        stage, path = record.data["stage"], record.data["stage_path"]
        if stage not in _STAGES:
            self._found.problem(line, "stage", f"{stage!r} is no stage")
            return
        if path and path[-1] != stage:
            wrong = f"the step is in {stage}, but its path ends in {path[-1]}"
            self._found.problem(line, "stage", wrong)
        action = STAGE_TO_ACTION.get(ConversationStage(stage))
        if record.data.get("action") != action:
            wrong = f"action {record.data.get('action')!r}, but stage {stage} asks for {action!s}"
            self._found.problem(line, "action", wrong)
        if (action is StepAction.DONE) != (record.data.get("done_reason") is not None):
            wrong = f"done_reason {record.data.get('done_reason')!r} in stage {stage}"
            self._found.problem(line, "done_reason", wrong)

    def _check_counts(self, line: int, record: Record) -> None:
        data, now = record.data, self._transcript
        for name, count in (("visible_count", now.visible_count), ("raw_count", now.full_count)):
            if data[name] != count:
                wrong = f"{name} {data[name]}, but the replay gives {count}"
                self._found.problem(line, name, wrong)
        asked = data["stage"] == ConversationStage.TOOL_CALLS
        waiting = sorted(self._pairing.waiting) if asked else []
        if sorted(data["pending"]) != waiting:
            wrong = f"pending {data['pending']}, but calls {waiting} wait for results"
            self._found.problem(line, "pending", wrong)

    # Requests --------------------------------------------------------------------------------

    def _check_request(self, line: int, record: Record) -> None:
        if record.data["step"] != self.steps:
            wrong = f"request for step {record.data['step']}, but step {self.steps} is next"
            self._found.problem(line, "request_step", wrong)
        if record.data["purpose"] != "main_loop":
            return
        known = self._stage in _STAGES
        action = STAGE_TO_ACTION.get(ConversationStage(self._stage)) if known else None
        if known and action is not StepAction.CALL_MODEL:
            wrong = f"a model was called in stage {self._stage}"
            self._found.problem(line, "request_stage", wrong)
        pairing = self._pairing
        fault = pairing.fault
        if fault is None and pairing.waiting:
            fault = f"a tool call without its result ({pairing.waiting[0]!r})"
        if fault is not None and fault != self._reported_fault and not self._uncertain:
            self._found.problem(line, "pairing", f"the model was sent {fault}")
            self._reported_fault = fault
