"""What of the visible history a model call shows, and how.

The trace keeps messages as they are; this is only how they look in one request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from axislab.config import AgentConfig
from axislab.messages import Message, Role, ToolCall

OMITTED = "[an older tool result, omitted to keep the context short]"


def changes_view(config: AgentConfig) -> bool:
    """True if a call may show something else than the visible list."""
    return (
        config.conversation.tool_result_role == "user"
        or config.context.context_policy == "keep_newest"
    )


def omits_results(config: AgentConfig) -> bool:
    """True if a call may show less than the visible list."""
    return config.context.context_policy == "keep_newest"


def render(messages: Sequence[Message], config: AgentConfig) -> Sequence[Message]:
    """The messages as the model is to see them.

    The list itself comes back where nothing changes, unread.
    """
    if not changes_view(config):
        return messages
    out = list(messages)
    if config.context.context_policy == "keep_newest":
        out = _omit_old_results(out, config.context.keep_tool_results)
    if config.conversation.tool_result_role == "user":
        out = [_as_text(message) for message in out]
    return out


def _omit_old_results(messages: list[Message], keep: int) -> list[Message]:
    places = [i for i, m in enumerate(messages) if m.role is Role.TOOL]
    for i in places[: max(len(places) - keep, 0)]:
        messages[i] = replace(messages[i], content=OMITTED)
    return messages


def _as_text(message: Message) -> Message:
    if message.role is Role.TOOL:
        return Message.user(message.text)
    if not message.tool_calls:
        return message
    calls = "\n".join(_call_text(call) for call in message.tool_calls)
    text = f"{message.text}\n{calls}" if message.text else calls
    return replace(message, content=text, tool_calls=())


def _call_text(call: ToolCall) -> str:
    return f'<tool_call>{{"name": "{call.name}", "arguments": {call.arguments}}}</tool_call>'
