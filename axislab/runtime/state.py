"""The state of one conversation, as a value: every operation makes the next one."""

from __future__ import annotations

from dataclasses import dataclass, field

from axislab.messages import Message, Role, ToolCall
from axislab.runtime.budget import Calibration
from axislab.runtime.markers import Marker
from axislab.runtime.stages import ConversationStage, check_move
from axislab.runtime.transcript import Transcript


@dataclass(frozen=True, slots=True)
class State:
    """Everything a conversation remembers."""

    transcript: Transcript
    stage: ConversationStage = ConversationStage.NOT_INITIALIZED
    turn_idx: int = 0
    turn_base: int = 0
    """Turns before the current try; the turn limit is that of one try."""
    pending: tuple[ToolCall, ...] = ()
    received_in: ConversationStage = ConversationStage.INITIAL_USER
    """Stage the newest assistant message was received in."""
    rollbacks: int = 0
    reprompts: int = 0
    trigger: str | None = None
    """Why the final answer was forced."""
    force_prompted: bool = False
    """It was forced by a prompt the model saw."""
    calibration: Calibration = field(default_factory=Calibration)


class Draft:
    """One operation in the making: a working copy that becomes the state only when all succeeded.

    Its attributes are those of `State`, to be assigned; the stage changes by `move` alone.
    """

    def __init__(self, state: State) -> None:
        self.transcript = state.transcript
        self.stage = state.stage
        self.turn_idx = state.turn_idx
        self.turn_base = state.turn_base
        self.pending = state.pending
        self.received_in = state.received_in
        self.rollbacks = state.rollbacks
        self.reprompts = state.reprompts
        self.trigger = state.trigger
        self.force_prompted = state.force_prompted
        self.calibration = state.calibration
        self.path: list[ConversationStage] = [state.stage]
        """Every stage of this operation, starting with the one before it."""
        self.appended: list[Message] = []

    def state(self) -> State:
        """The state this draft has come to."""
        return State(
            self.transcript,
            self.stage,
            self.turn_idx,
            self.turn_base,
            self.pending,
            self.received_in,
            self.rollbacks,
            self.reprompts,
            self.trigger,
            self.force_prompted,
            self.calibration,
        )

    def move(self, *stages: ConversationStage) -> None:
        """Go through stages, each a legal move."""
        for stage in stages:
            check_move(self.stage, stage)
            self.path.append(stage)
            self.stage = stage

    def reopen(self, stage: ConversationStage = ConversationStage.INITIAL_USER) -> None:
        """Go to a waiting stage from any other, as only the operations of `REOPENS` do."""
        self.path.append(stage)
        self.stage = stage

    def append(self, message: Message) -> None:
        """Append a message; a marker takes effect, also on what the calibration knows."""
        before, after = self.transcript, self.transcript.append(message)
        self.transcript = after
        self.appended.append(message)
        if message.role is Role.RUNTIME:
            spliced = after.splices != before.splices
            self.calibration = self.calibration.after(after.visible_count, spliced=spliced)

    def mark(self, marker: Marker) -> None:
        """Append a marker."""
        self.append(marker.to_message())
