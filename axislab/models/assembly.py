"""Puts the pieces of a streamed reply together into the reply a server gives as a whole."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from axislab.messages import Json
from axislab.models.deltas import Delta, DeltaKind, OnDelta
from axislab.models.outgoing import clean
from axislab.models.thoughts import Piece, ThoughtSplitter
from axislab.models.tokens import estimate_text

NATIVE: Final = "axislab_native"
"""In the last chunk of a provider of ours: what a whole reply says besides."""


class _Call:
    """One tool call as far as it has come."""

    def __init__(self, index: object) -> None:
        self.index = index
        self.id: str | None = None
        self.name = ""
        self.arguments = ""
        self.told = False
        self.named = False
        """A function was named, were it by no name; a call without one is no call."""

    @property
    def whole(self) -> bool:
        """Are the arguments complete JSON already?"""
        try:
            json.loads(self.arguments)
        except (ValueError, RecursionError):
            return False
        return True

    def to_dict(self) -> dict[str, Json]:
        out: dict[str, Json] = {"type": "function"}
        if self.named:
            out["function"] = {"name": self.name or None, "arguments": self.arguments}
        return {"id": self.id, **out} if self.id else out


class _Thinking:
    """One block of thinking as the provider signs it."""

    def __init__(self, index: object, said: dict[str, Json]) -> None:
        self.index = index
        self.said = said

    def add(self, piece: Mapping[str, Json]) -> bool:
        """Go on with the block, unless it is closed or the piece is a block of its own."""
        if self.said.get("signature") or "data" in self.said or "data" in piece:
            return False
        thought = f"{self.said.get('thinking') or ''}{piece.get('thinking') or ''}"
        self.said = {**self.said, **piece, "thinking": thought}
        return True


class Assembler:
    """Takes chunks of a stream and tells what is new in them.

    Args:
        on_delta: Hears it.
    """

    def __init__(self, on_delta: OnDelta) -> None:
        self._on_delta = on_delta
        self._splitter = ThoughtSplitter()
        self._calls: list[_Call] = []
        self._legacy: _Call | None = None
        self._texts: dict[str, str] = {}
        self._thinking: list[_Thinking] = []
        self._told = ""
        """What was told as text."""
        self._head: dict[str, Json] = {}
        self._finish: str | None = None
        self._usage: dict[str, Json] = {}
        self.heard = False
        """Something of a chat reply came."""
        self.finished = False
        """The provider has said why the reply ends, or what it took in all."""

    @property
    def characters(self) -> int:
        """How much of a text has come."""
        return sum(map(len, self._texts.values()))

    def take(self, chunk: object) -> None:
        """Take a chunk shaped like OpenAI's; choices other than the first are left out."""
        for name in ("id", "model", "created"):
            if (value := _get(chunk, name)) is not None:
                self._head.setdefault(name, value)
        if usage := _plain(_get(chunk, "usage")):
            self._usage = newer_usage(self._usage, usage)
        choices = _get(chunk, "choices")
        if usage and not choices and (self.characters or self._calls):
            self.finished = True  # some report the usage first as well
        for choice in choices if isinstance(choices, Sequence) else ():
            if not _get(choice, "index"):
                self.heard = True
                self._take_choice(choice)

    def take_generic(self, chunk: Mapping[str, Any]) -> None:
        """Take a chunk of litellm's own shape: text, tool_use, is_finished, usage."""
        tool, usage, text = chunk.get("tool_use"), chunk.get("usage"), chunk.get("text")
        ended = bool(chunk.get("is_finished"))
        if not (text or tool or usage or ended):
            return  # litellm says so of a line it could not read, or of a comment
        self.heard = True
        if text:
            self._add("content", str(text))
        if tool:
            self._take_call(tool)
        if usage := _plain(usage):
            self._usage = newer_usage(self._usage, usage)
        if ended:
            self._finish, self.finished = str(chunk.get("finish_reason") or "stop"), True
        native = dict((chunk.get("provider_specific_fields") or {}).get(NATIVE) or {})
        if native.pop("content", None) == "":
            self._texts.setdefault("content", "")  # said nothing, which is not "no content"
        self._head.update(native)

    def usage_so_far(self, told: Mapping[str, Json]) -> dict[str, Json]:
        """What is known to be used of a reply that broke off: no less than its text has.

        Args:
            told: The provider's own report, if it was seen.
        """
        usage = told or self._usage
        made = sum(estimate_text(text) for text in self._texts.values())
        made += sum(estimate_text(call.name + call.arguments) for call in self._calls)
        name = "output_tokens" if "input_tokens" in usage else "completion_tokens"
        known = usage.get(name)
        least = max(made, known) if isinstance(known, int) else made
        return {**usage, name: least} if usage or least else {}

    def close(self) -> None:
        """The stream is over: tell what was held back."""
        for piece in self._splitter.flush():
            self._tell_piece(piece)

    def body(self) -> dict[str, Json]:
        """The reply as a chat completion that was not streamed."""
        message: dict[str, Json] = {"role": "assistant", "content": None, **self._texts}
        if self._thinking:
            message["thinking_blocks"] = [block.said for block in self._thinking]
        if self._calls:
            message["content"] = message["content"] or None
            message["tool_calls"] = [call.to_dict() for call in self._calls]
        if self._legacy is not None:
            message["content"] = message["content"] or None
            message["function_call"] = self._legacy.to_dict()["function"]
        body: dict[str, Json] = {
            **self._head,
            "object": "chat.completion",
            "choices": [{"index": 0, "finish_reason": self._finish, "message": message}],
        }
        if self._usage:
            body["usage"] = self._usage
        return body

    def _take_choice(self, choice: object) -> None:
        delta = _get(choice, "delta")
        reasoning = _get(delta, "reasoning_content")
        if not isinstance(reasoning, str):
            reasoning = _get(delta, "reasoning")
        if isinstance(reasoning, str):
            self._add("reasoning_content", reasoning)
        for name in ("content", "refusal"):
            if isinstance(value := _get(delta, name), str):
                self._add(name, value)
            elif value is not None:
                raise ValueError(f"{name} is no text but {str(value)[:80]!r}")
        blocks = _get(delta, "thinking_blocks")
        for block in blocks if isinstance(blocks, Sequence) else ():
            self._take_thinking(_plain(block))
        calls = _get(delta, "tool_calls")
        for call in calls if isinstance(calls, Sequence) else ():
            self._take_call(call)
        if (legacy := _get(delta, "function_call")) is not None:
            self._legacy = self._legacy or _Call(None)
            self._fill(self._legacy, legacy, number=0)
        if isinstance(finish := _get(choice, "finish_reason"), str) and finish:
            self._finish, self.finished = finish, True

    def _add(self, name: str, text: str) -> None:
        if text and self._finish is None:
            self.finished = False  # what was taken for the last report was none
        self._texts[name] = self._texts.get(name, "") + text
        if name != "content":
            self._tell_text(text, thought=name == "reasoning_content")
            return
        for piece in self._splitter.feed(text):
            self._tell_piece(piece)

    def _tell_piece(self, piece: Piece) -> None:
        if not piece.turned:
            self._tell_text(piece.text, thought=piece.thought)
            return
        thought = self._told + piece.text
        self._on_delta(Delta(kind=DeltaKind.AGAIN))
        self._tell_text(self._texts.get("reasoning_content", "") + thought, thought=True)

    def _tell_text(self, text: str, *, thought: bool) -> None:
        kind = DeltaKind.REASONING if thought else DeltaKind.TEXT
        if not thought:
            self._told += text
        self._on_delta(Delta(kind=kind, text=clean(text)))

    def _take_thinking(self, piece: dict[str, Json]) -> None:
        """Signed thinking comes in pieces; the signature comes last."""
        index = piece.pop("index", None)
        last = self._thinking[-1] if self._thinking else None
        if last is None or last.index != index or not last.add(piece):
            self._thinking.append(_Thinking(index, piece))

    def _take_call(self, piece: object) -> None:
        function = _get(piece, "function")
        call_id = _get(piece, "id")
        call_id = call_id if isinstance(call_id, str) and call_id else None
        call = self._place(_get(piece, "index"), call_id, function)
        call.id = call.id or call_id
        self._fill(call, function, number=self._calls.index(call))

    def _place(self, index: object, call_id: str | None, function: object) -> _Call:
        """The call that a piece goes on with, or a new one."""
        place = len(self._calls) - 1
        while index is not None and place >= 0 and self._calls[place].index != index:
            place -= 1
        if place >= 0 and not self._begins(self._calls[place], call_id, function):
            return self._calls[place]
        self._calls.append(_Call(index))
        return self._calls[-1]

    @staticmethod
    def _begins(call: _Call, call_id: str | None, function: object) -> bool:
        """Is the piece the beginning of another call, though nothing else tells the two apart?"""
        if call_id is not None and call.id is not None:
            return call_id != call.id
        named = bool(_get(function, "name"))
        return named and bool(call.name) and call.whole

    def _fill(self, call: _Call, function: object, *, number: int) -> None:
        name, arguments = _get(function, "name"), _get(function, "arguments")
        call.named = call.named or function is not None
        if isinstance(name, str) and name != call.name:
            # Whole in the first piece with all providers known; the protocol allows more pieces.
            call.name += name
        if arguments is None:
            arguments = ""
        elif not isinstance(arguments, str):
            arguments = json.dumps(_plain(arguments) or arguments, ensure_ascii=False)
        call.arguments += arguments
        if not call.told and (call.name or arguments):
            call.told = True
            self._on_delta(Delta(kind=DeltaKind.CALL, text=clean(call.name), number=number))
        self._on_delta(Delta(kind=DeltaKind.ARGUMENTS, text=clean(arguments), number=number))


def newer_usage(known: Mapping[str, Json], later: Mapping[str, Json]) -> dict[str, Json]:
    """Two reports as one: a number replaces an earlier one, a zero none: it may be "not said"."""
    return {**known, **{k: v for k, v in later.items() if v or k not in known}}


def _get(holder: object, name: str) -> Any:
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def _plain(value: object) -> dict[str, Json]:
    """An object of a client library as JSON; empty for anything else."""
    if isinstance(value, Mapping):
        return {str(key): item for key, item in value.items() if item is not None}
    dump = getattr(value, "model_dump", None)
    return dict(dump(exclude_none=True)) if callable(dump) else {}
