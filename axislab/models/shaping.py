"""Puts messages that are ready for the wire into the order and shape a provider takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from axislab.messages import Json
from axislab.models.profiles import ProviderProfile

Wire: TypeAlias = dict[str, Json]

CONTINUE: Final = (
    "This is the beginning of your reply. Go on exactly where it stops, and do not repeat it:\n\n"
)
"""Stands before an assistant message that is folded into the prompt."""

_GAP: Final = "\n\n"


def shape(messages: Sequence[Wire], profile: ProviderProfile) -> list[Wire]:
    """The messages as the profile wants them; those given stay as they are.

    Args:
        messages: In order, each call followed by its results.
        profile: What the provider demands.
    """
    out = _with_system(list(messages), profile)
    if profile.trailing_assistant != "verbatim":
        out = _trailing(out, profile)
    if profile.blank is not None:
        out = [_filled(message, profile.blank) for message in out]
    if profile.bridge is not None:
        out = _bridged(out, profile.bridge)
    return _merged(out) if profile.roles == "merged" else out


def _with_system(messages: list[Wire], profile: ProviderProfile) -> list[Wire]:
    texts = [m["content"] for m in messages if m["role"] == "system"]
    if profile.system == "anywhere" or not texts:
        return messages
    others = [m for m in messages if m["role"] != "system"]
    text = _GAP.join(filter(None, texts))
    if profile.system == "first":
        return [{"role": "system", "content": text}, *others]
    if others and others[0]["role"] == "user":
        return [{**others[0], "content": _joined(text, others[0]["content"])}, *others[1:]]
    return [{"role": "user", "content": text}, *others]


def _trailing(messages: list[Wire], profile: ProviderProfile) -> list[Wire]:
    """The beginning of a reply is to be continued, or becomes part of the prompt."""
    last = messages[-1] if messages else {}
    if last.get("role") != "assistant" or last.get("tool_calls") or len(messages) == 1:
        return messages
    text = last["content"].rstrip()
    if not text:
        return _trailing(messages[:-1], profile)
    if profile.trailing_assistant != "continued":
        return [*messages[:-1], {"role": "user", "content": CONTINUE + text}]
    flag = {} if profile.continue_key is None else {profile.continue_key: True}
    return [*messages[:-1], {**last, "content": text, **flag}]


def _filled(message: Wire, text: str) -> Wire:
    if message.get("tool_calls") or (message["content"] or "").strip():
        return message
    return {**message, "content": text}


def _bridged(messages: list[Wire], text: str) -> list[Wire]:
    out: list[Wire] = []
    for message in messages:
        if out and out[-1]["role"] == "tool" and message["role"] == "user":
            out.append({"role": "assistant", "content": text})
        out.append(message)
    return out


def _merged(messages: list[Wire]) -> list[Wire]:
    out: list[Wire] = []
    for message in messages:
        before = out[-1] if out else {}
        same = before.get("role") == message["role"] and message["role"] in ("user", "assistant")
        if same and not before.get("tool_calls"):
            text = _joined(before["content"], message["content"])
            out[-1] = {**before, **message, **_thoughts(before, message), "content": text}
        else:
            out.append(message)
    return out


def _thoughts(before: Wire, after: Wire) -> Wire:
    """The reasoning of two neighbours; neither takes the other's place."""
    out: Wire = {}
    for name in ("reasoning_content", "thinking_blocks"):
        if before.get(name) and after.get(name):
            gap = _GAP if name == "reasoning_content" else []
            out[name] = before[name] + gap + after[name]
    return out


def _joined(before: str | None, after: str | None) -> str:
    return _GAP.join(filter(None, (before, after)))
