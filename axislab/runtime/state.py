"""The state of one conversation, as a value: every operation makes the next one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from axislab.messages import Message, ToolCall
from axislab.runtime.budget import Calibration
from axislab.runtime.markers import Marker, Rollback
from axislab.runtime.stages import ConversationStage, check_move
from axislab.runtime.transcript import Transcript


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Everything a conversation remembers."""

    transcript: Transcript
    stage: ConversationStage = ConversationStage.NOT_INITIALIZED
    turn_idx: int = 0
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
    """One operation in the making: it becomes the state only when all of it succeeded."""

    __slots__ = ("appended", "path", "start", "state")

    def __init__(self, state: State) -> None:
        self.start = state
        self.state = state
        self.path: list[ConversationStage] = [state.stage]
        self.appended: list[Message] = []

    def set(self, **changes: object) -> None:
        """Change fields of the state."""
        self.state = replace(self.state, **changes)  # type: ignore[arg-type]

    def move(self, *stages: ConversationStage) -> None:
        """Go through stages, each a legal move."""
        at = self.state.stage
        for stage in stages:
            check_move(at, stage)
            self.path.append(stage)
            at = stage
        self.set(stage=at)

    def append(self, message: Message) -> None:
        """Append a message that is no marker."""
        self.appended.append(message)
        self.set(transcript=self.state.transcript.append(message))

    def mark(self, marker: Marker) -> None:
        """Append a marker, with its effect on what the calibration knows."""
        self._mark(marker.to_message(), spliced=not isinstance(marker, Rollback))

    def mark_raw(self, message: Message, *, spliced: bool) -> None:
        """Append a marker message as it stands."""
        self._mark(message, spliced=spliced)

    def _mark(self, message: Message, *, spliced: bool) -> None:
        before = self.state.transcript
        after = before.append_raw(message)
        changed = after.visible.key != before.visible.key
        self.appended.append(message)
        self.set(
            transcript=after,
            calibration=self.state.calibration.after(
                visible_count=after.visible_count, spliced=spliced and changed
            ),
        )
