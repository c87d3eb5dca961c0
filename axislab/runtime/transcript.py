"""The two lists of a conversation: `full`, append-only, and `visible`, what the model sees.

Both are stacks that share their lower part with every earlier state, so appending, hiding from
the end, taking a snapshot and cloning cost the same however long the conversation is. `visible`
is `full` replayed through its markers, by the one function that applies a message: `append`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from axislab.errors import InvalidMessage, OperationRefused
from axislab.messages import Message, Role
from axislab.runtime.markers import Compaction, DiscardAll, Marker, Rollback, parse_marker

Cost = Callable[[Message], int]
"""Estimated tokens of one message."""


class _Node:
    """One message on a stack, knowing how many messages and tokens it stands on."""

    __slots__ = ("below", "cost", "message", "size")

    def __init__(self, message: Message, below: _Node | None, cost: int) -> None:
        self.message = message
        self.below = below
        self.size: int = below.size + 1 if below else 1
        self.cost: int = below.cost + cost if below else cost


class View(Sequence[Message]):
    """A list of messages as it stood at one moment; cheap to take, read when needed."""

    __slots__ = ("_items", "_top")

    def __init__(self, top: _Node | None = None) -> None:
        self._top = top
        self._items: tuple[Message, ...] | None = None

    def _read(self) -> tuple[Message, ...]:
        if self._items is None:
            self._items = tuple(reversed(list(self.newest_first())))
        return self._items

    def newest_first(self) -> Iterator[Message]:
        """The messages from the end, without reading them all."""
        node = self._top
        while node is not None:
            yield node.message
            node = node.below

    def same_as(self, other: Sequence[Message]) -> bool:
        """True if both hold the same messages; at once if both come from one moment."""
        if isinstance(other, View) and other._top is self._top:  # noqa: SLF001
            return True
        return len(self) == len(other) and self._read() == tuple(other)

    @property
    def key(self) -> int:
        """The same for two views of one moment, while either of them lives."""
        return id(self._top)

    def __len__(self) -> int:
        return self._top.size if self._top else 0

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        return self._read()[index]

    def __iter__(self) -> Iterator[Message]:
        return iter(self._read())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and not isinstance(other, str) and self.same_as(other)

    def __hash__(self) -> int:
        return hash(self._read())

    def __repr__(self) -> str:
        return f"View({len(self)} messages)"


@dataclass(frozen=True, slots=True)
class Transcript:
    """Both lists at one moment; every change gives a new transcript."""

    cost: Cost = lambda _: 0
    """Estimated tokens of a message, counted once when it is appended."""
    splices: int = 0
    """How often a compaction or discard has replaced part of the visible list."""
    _full: _Node | None = None
    _visible: _Node | None = None

    @property
    def full(self) -> View:
        """Everything ever appended, markers included."""
        return View(self._full)

    @property
    def visible(self) -> View:
        """What the model sees."""
        return View(self._visible)

    @property
    def full_count(self) -> int:
        """Length of the full list."""
        return self._full.size if self._full else 0

    @property
    def visible_count(self) -> int:
        """Length of the visible list."""
        return self._visible.size if self._visible else 0

    @property
    def visible_cost(self) -> int:
        """Estimated tokens of the visible list."""
        return self._visible.cost if self._visible else 0

    def append(self, message: Message) -> Transcript:
        """The transcript with one more message, or marker, and its effect.

        Raises:
            InvalidMessage: A system message that is not the first, or a first message that is
                neither system nor user.
        """
        if self._full is None and message.role not in (Role.SYSTEM, Role.USER):
            raise InvalidMessage(f"the first message must be system or user, got {message.role!s}")
        if self._full is not None and message.role is Role.SYSTEM:
            raise InvalidMessage("a system message can only be the very first message")
        return self.append_raw(message)

    def append_raw(self, message: Message) -> Transcript:
        """The same without any check: for imports, which take messages as they stand."""
        full = _Node(message, self._full, 0)
        if message.role is Role.RUNTIME:
            return self._marked(full, parse_marker(message))
        visible = _Node(message, self._visible, self.cost(message))
        return Transcript(self.cost, self.splices, full, visible)

    def checked(self, marker: Marker) -> Transcript:
        """The transcript with a marker that is in range and leaves the history well formed.

        Raises:
            OperationRefused: It would touch the system message or the task, part a tool call
                from its result, lies outside the visible list, or has a negative or empty range.
        """
        message = marker.to_message()
        if parse_marker(message) != marker:
            raise OperationRefused(f"{marker!r} is malformed: counts start at 0, a compaction at 1")
        kept = self.visible
        if not isinstance(marker, Rollback) and not _in_range(marker, len(kept)):
            raise OperationRefused(f"{marker!r} lies outside the {len(kept)} visible messages")
        after = self.append(message)
        left = after.visible
        head = task_prefix(kept)
        if left[:head] != kept[:head]:
            raise OperationRefused(
                f"{marker!r} would hide the system message or the task: the first {head} "
                f"messages must stay"
            )
        if (problem := pairing_problem(left, open_end=False)) is not None:
            raise OperationRefused(f"{marker!r} would leave {problem}; cut at a whole exchange")
        return after

    def _marked(self, full: _Node, marker: Marker | None) -> Transcript:
        """The transcript after a marker, which stands at the top of `full` already."""
        visible, splices = self._visible, self.splices
        if isinstance(marker, Rollback):
            visible = _drop(visible, marker.count)
        elif marker is not None and _in_range(marker, self.visible_count):
            splices += 1
            visible = _drop_to(visible, marker.prefix_len)
            if isinstance(marker, Compaction):
                end = marker.prefix_len + marker.compressed_count
                for message in (Message.assistant(marker.summary), *self.visible[end:]):
                    visible = _Node(message, visible, self.cost(message))
        return Transcript(self.cost, splices, full, visible)


def _in_range(marker: Compaction | DiscardAll, size: int) -> bool:
    if isinstance(marker, DiscardAll):
        return marker.prefix_len <= size
    return marker.prefix_len + marker.compressed_count <= size


def _drop(node: _Node | None, count: int) -> _Node | None:
    while count > 0 and node is not None and node.message.role is not Role.SYSTEM:
        node, count = node.below, count - 1
    return node


def _drop_to(node: _Node | None, size: int) -> _Node | None:
    while node is not None and node.size > size:
        node = node.below
    return node


def replay_visible(messages: Iterable[Message]) -> tuple[Message, ...]:
    """What the model sees of a full list: the list replayed through its markers."""
    transcript = Transcript()
    for message in messages:
        transcript = transcript.append_raw(message)
    return tuple(transcript.visible)


def task_prefix(messages: Sequence[Message]) -> int:
    """How many leading messages are never hidden: system messages and the first user message."""
    count = 0
    while count < len(messages) and messages[count].role is Role.SYSTEM:
        count += 1
    return count + (count < len(messages) and messages[count].role is Role.USER)


def pairing_problem(messages: Iterable[Message], *, open_end: bool = True) -> str | None:
    """What is wrong with the calls and results of a list, or None.

    Args:
        messages: A visible list.
        open_end: Calls of the very last assistant message may still wait for their results.
    """
    waiting: dict[str, str] = {}
    for message in messages:
        if message.role is Role.TOOL:
            answered = message.tool_call_id or ""
            # A merged rejection answers several calls: their ids stand joined by commas.
            for call_id in [answered] if answered in waiting else answered.split(","):
                if waiting.pop(call_id, None) is None:
                    return f"a tool result without its call ({call_id!r})"
        elif waiting:
            return f"a tool call without its result ({next(iter(waiting))!r})"
        for call in message.tool_calls:
            waiting[call.id] = call.name
    if waiting and not open_end:
        return f"a tool call without its result ({next(iter(waiting))!r})"
    return None
