"""Short words for the tests of the conversation runtime."""

from axislab.config import (
    AssistantRollbackConfig,
    ContextLimitConfig,
    ConversationConfig,
    FormatErrorConfig,
)
from axislab.messages import Message, ToolCall
from axislab.runtime.conversation import ConversationRuntime

STOP = "STOP: answer now."
GROUPS = {
    "context_limit": ContextLimitConfig,
    "format_error": FormatErrorConfig,
    "assistant_rollback": AssistantRollbackConfig,
}


class Letters:
    """An estimator that is easy to reckon with: a token for each character, nothing else."""

    additive = True
    includes_tools = False

    def count(self, messages):
        return sum(len(m.text) for m in messages)


def config(**knobs):
    """A config from flat knobs; no system message and a short force prompt unless asked."""
    values = {"system_prompt": None, "early_stop_prompt": STOP, **knobs}
    for group, cls in GROUPS.items():
        inner = {k: values.pop(k) for k in cls.model_fields if k in values}
        values[group] = cls(**inner)
    return ConversationConfig(**values)


def begun(task="task", *, runtime=None, **knobs):
    """A conversation that waits for its first reply; `runtime` goes to the constructor."""
    conversation = ConversationRuntime(config(**knobs), **(runtime or {}))
    conversation.initialize_conversation(task)
    return conversation


def calls(*ids, text=None, name="search"):
    """A reply that calls tools."""
    made = [ToolCall(id=i, name=name, arguments='{"query": "x"}') for i in ids]
    return Message.assistant(text, made)


def say(conversation, text, finish_reason="stop"):
    """Apply a text reply."""
    return conversation.apply_assistant_message(Message.assistant(text), finish_reason)


def answer(conversation, text="result", **more):
    """Answer all pending calls with the same text."""
    results = [Message.tool(text, tool_call_id=c.id) for c in conversation.pending]
    return conversation.apply_batch_tool_messages(results, **more)


def exchange(conversation, *ids, text="result"):
    """One reply with calls, and their results."""
    conversation.apply_assistant_message(calls(*ids))
    return answer(conversation, text)


def texts(conversation):
    """What the model sees, as texts."""
    return [m.text for m in conversation.visible]
