"""Turns what litellm returns into a ModelReply; what the provider did not say stays unknown."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from axislab.errors import ErrorKind, ModelError
from axislab.messages import Json, ToolCall, Usage
from axislab.models.base import ModelReply
from axislab.models.outgoing import clean
from axislab.models.thoughts import split_thinking
from axislab.models.usage import read_usage

_PLAIN_STOPS: Final = frozenset(
    {"stop", "end_turn", "stop_sequence", "complete", "eos", "eos_token"}
)


@dataclass(slots=True)
class RawReply:
    """The provider's own JSON, where litellm shows it: litellm fills gaps, this does not."""

    data: Mapping[str, Json] | None = None
    """None where it was not seen, or is not shaped like a chat completion."""
    usage: Mapping[str, Json] | None = None
    """What it says was used, in its own words; empty if it says nothing, None if not seen."""

    def see(self, details: Mapping[str, Any]) -> None:
        """Take it from what litellm hands to a `logger_fn`."""
        text = details.get("original_response")
        if details.get("log_event_type") != "post_api_call" or not isinstance(text, str):
            return
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            return
        if not isinstance(data, dict):
            return
        if isinstance(data.get("choices"), list):
            self.data = data
        used = data.get("usage") or data.get("usageMetadata")
        self.usage = used if isinstance(used, dict) else {}

    @property
    def choice(self) -> Mapping[str, Json]:
        """The first choice, or an empty one."""
        choices = self.data.get("choices") if self.data else None
        first = choices[0] if choices else None
        return first if isinstance(first, Mapping) else {}

    @property
    def message(self) -> Mapping[str, Json]:
        """Its message, or an empty one."""
        message = self.choice.get("message")
        return message if isinstance(message, Mapping) else {}

    @property
    def call_ids(self) -> list[str | None]:
        """The ids of the tool calls as the provider gave them."""
        calls = self.message.get("tool_calls")
        if not isinstance(calls, Sequence):
            return []
        ids = [call.get("id") if isinstance(call, Mapping) else None for call in calls]
        return [value if isinstance(value, str) and value else None for value in ids]


def read_reply(response: Any, *, model: str, raw: RawReply | None = None) -> ModelReply:
    """The reply in a litellm response.

    Args:
        response: A litellm ModelResponse.
        model: Named in errors.
        raw: What the provider sent, if it was seen.

    Raises:
        ModelError: MALFORMED_REPLY, if there is no message in it.
    """
    raw = raw or RawReply()
    choices = getattr(response, "choices", None) or ()
    if not choices:
        raise _malformed(model, "no choices")
    choice = choices[0]
    message = getattr(choice, "message", None)
    if message is None:
        raise _malformed(model, "a choice without a message")
    text, reasoning = _texts(message, raw)
    calls = _calls(message, raw)
    if calls:
        text = text or None  # some servers say "" where others say nothing
    return ModelReply(
        text=text,
        reasoning=reasoning,
        signed_reasoning=_signed(message),
        tool_calls=calls,
        finish_reason=_finish_reason(choice, raw),
        usage=_usage(response, raw, empty=not (text or reasoning or calls)),
        # litellm makes an id up where the provider gave none
        request_id=_text(getattr(response, "id", None) if raw.data is None else raw.data.get("id")),
        model=_text(getattr(response, "model", None)),
    )


def _malformed(model: str, what: str) -> ModelError:
    return ModelError(
        f"{model}: the answer is no chat reply: {what}", kind=ErrorKind.MALFORMED_REPLY
    )


def _text(value: object) -> str | None:
    return clean(value) if isinstance(value, str) else None


def _texts(message: Any, raw: RawReply) -> tuple[str | None, str | None]:
    """Content and reasoning; a refusal counts as content, think blocks in it as reasoning."""
    told = raw.message
    if isinstance(told.get("content"), str) and (content := _text(told["content"])):
        spoken = split_thinking(content)
        if spoken.thought is not None:  # litellm takes out some blocks, by another rule
            given = told.get("reasoning_content", told.get("reasoning"))
            return spoken.said, ((_text(given) or "") + spoken.thought) or None
    text = _text(getattr(message, "content", None))
    reasoning = _text(getattr(message, "reasoning_content", None))
    if not text:
        fields = getattr(message, "provider_specific_fields", None) or {}
        refusal = getattr(message, "refusal", None) or fields.get("refusal")
        text = _text(refusal) or text
    if not text:
        return text, reasoning
    spoken = split_thinking(text)
    thought = spoken.thought
    if thought and thought.strip() not in (reasoning or ""):  # litellm may have told it already
        reasoning = (reasoning or "") + thought
    return spoken.said, reasoning


def _signed(message: Any) -> str | None:
    """Thinking with the provider's signatures, which only it can make."""
    blocks = getattr(message, "thinking_blocks", None)
    if not isinstance(blocks, Sequence) or isinstance(blocks, str):
        return None
    signed = [b for b in blocks if isinstance(b, Mapping) and (b.get("signature") or b.get("data"))]
    try:
        return clean(json.dumps(signed, ensure_ascii=False)) if signed else None
    except TypeError:
        return None


def _calls(message: Any, raw: RawReply) -> tuple[ToolCall, ...]:
    found = getattr(message, "tool_calls", None) or ()
    if not found:
        legacy = getattr(message, "function_call", None)
        return (_call(legacy, provider_id=None),) if legacy is not None else ()
    ids = [_text(getattr(item, "id", None)) or None for item in found]
    told = raw.call_ids
    if len(told) == len(ids):
        ids = told  # litellm makes ids up where the provider gave none
    return tuple(
        _call(getattr(item, "function", None), provider_id=provider_id)
        for item, provider_id in zip(found, ids, strict=True)
    )


def _call(function: Any, *, provider_id: str | None) -> ToolCall:
    arguments = getattr(function, "arguments", None)
    if arguments is None:
        arguments = ""
    elif not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return ToolCall(
        id="",
        name=_text(getattr(function, "name", None)) or "",
        arguments=clean(arguments),
        provider_id=provider_id,
    )


def _finish_reason(choice: Any, raw: RawReply) -> str | None:
    """The reason in OpenAI's words where it is one of them; litellm calls all others "stop".

    With calls it says "tool_calls", whatever the provider said.
    """
    mapped = _text(getattr(choice, "finish_reason", None))
    if mapped == "tool_calls" and raw.choice:
        told = _text(raw.choice.get("finish_reason")) or None
        return "stop" if (told or "").lower() in _PLAIN_STOPS else mapped if told else None
    if mapped != "stop":
        return mapped
    fields = getattr(choice, "provider_specific_fields", None) or {}
    told = raw.choice.get("finish_reason") if raw.choice else fields.get("native_finish_reason")
    if not raw.choice and told is None:
        return mapped
    if not isinstance(told, str) or not told:
        return None
    return mapped if told.lower() in _PLAIN_STOPS else told


def _usage(response: Any, raw: RawReply, *, empty: bool) -> Usage | None:
    """The tokens reported."""
    if raw.data is not None and not raw.usage:
        return None
    # A report litellm reads and we do not see (another wire format) is taken as litellm has it.
    return read_usage(getattr(response, "usage", None), raw=raw.usage or None, empty=empty)
