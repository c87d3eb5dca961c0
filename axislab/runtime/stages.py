"""The 15 conversation stages, what each asks of the orchestrator, and the legal moves.

Source: the ConversationRuntime of seed 000; the edges that upstream lacks are marked with the
ruling that added them.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType

from axislab.errors import OperationRefused


class ConversationStage(StrEnum):
    """Where a conversation stands."""

    NOT_INITIALIZED = "not_initialized"
    """Nothing was appended yet."""
    SYSTEM_MESSAGE_SET = "system_message_set"
    """The system message stands; passing."""
    INITIAL_USER = "initial_user_message_await_assistant"
    """The task stands; the model speaks next."""
    TOOL_MESSAGES = "tool_messages_await_assistant"
    """Tool results stand; the model speaks next."""
    RECEIVED = "assistant_message_received"
    """A reply is being judged; passing."""
    TOOL_CALLS = "assistant_tool_calls_await_tool"
    """The reply calls tools; they run next."""
    FINAL_PROMPT = "final_response_prompt_await_assistant"
    """A summary was asked for; the model speaks next."""
    REPROMPT = "tool_call_format_error_prompt_await_assistant"
    """A call written as text was pointed out; the model speaks next."""
    ROLLBACK = "assistant_message_rollback"
    """A reply is being hidden; passing."""
    CONTEXT_ROLLBACK = "context_limit_rollback"
    """The latest exchange is being hidden to make room; passing."""
    FORCE_FINAL = "force_final_await_assistant"
    """The final answer is forced; whatever comes next ends the conversation."""
    COMPLETED = "assistant_completed"
    """End: the model answered."""
    FORCE_COMPLETED = "assistant_force_completed"
    """End: the model answered when it was made to."""
    CALLS_REJECTED = "assistant_tool_calls_rejected_force_final"
    """End: the model called tools when it was made to answer."""
    TOKEN_EXCEEDED = "assistant_terminated_token_exceed"
    """End: no tokens were left for an answer."""

    # That of the text; an enumeration's own is not cached, and every step looks up stages.
    __hash__ = str.__hash__


class StepAction(StrEnum):
    """What the orchestrator does next."""

    CALL_MODEL = "call_model"
    EXECUTE_TOOLS = "execute_tools"
    DONE = "done"


class FinalizationTrigger(StrEnum):
    """Why the final answer was forced."""

    CONTEXT_LIMIT = "context_limit"
    TURN_LIMIT = "turn_limit"
    TOOLS_EXHAUSTED = "tools_exhausted"
    ROLLBACK_LIMIT = "rollback_limit"
    """Ours, with on_rollback_limit="stop"."""


class RollbackReason(StrEnum):
    """Why messages were hidden; any other text is accepted too."""

    CONTEXT_LIMIT = "context_limit"
    ASSISTANT_REFUSAL = "assistant_refusal"
    FORMAT_ERROR = "format_error"
    DUPLICATE_QUERY = "duplicate_query"
    TOOL_ERROR = "tool_error"
    TOKEN_EXHAUSTION = "token_exhaustion"
    EMPTY_REPLY = "empty_reply"
    """Ours, with on_empty_reply="retry"."""


_S = ConversationStage

STAGE_TO_ACTION = MappingProxyType(
    {
        _S.INITIAL_USER: StepAction.CALL_MODEL,
        _S.TOOL_MESSAGES: StepAction.CALL_MODEL,
        _S.FINAL_PROMPT: StepAction.CALL_MODEL,
        _S.REPROMPT: StepAction.CALL_MODEL,
        _S.FORCE_FINAL: StepAction.CALL_MODEL,
        _S.TOOL_CALLS: StepAction.EXECUTE_TOOLS,
        _S.COMPLETED: StepAction.DONE,
        _S.FORCE_COMPLETED: StepAction.DONE,
        _S.CALLS_REJECTED: StepAction.DONE,
        _S.TOKEN_EXCEEDED: StepAction.DONE,
    }
)
"""The action of every stage the orchestrator can see; the other five are internal."""

STAGE_KIND = MappingProxyType(
    {
        _S.NOT_INITIALIZED: "setup",
        _S.SYSTEM_MESSAGE_SET: "setup",
        _S.INITIAL_USER: "setup",
        _S.TOOL_MESSAGES: "normal",
        _S.RECEIVED: "normal",
        _S.TOOL_CALLS: "normal",
        _S.FINAL_PROMPT: "normal",
        _S.REPROMPT: "recovery",
        _S.ROLLBACK: "recovery",
        _S.CONTEXT_ROLLBACK: "finalization",
        _S.FORCE_FINAL: "finalization",
        _S.COMPLETED: "terminal",
        _S.FORCE_COMPLETED: "terminal",
        _S.CALLS_REJECTED: "terminal",
        _S.TOKEN_EXCEEDED: "terminal",
    }
)
"""setup, normal, recovery, finalization or terminal."""

LEGAL_MOVES = MappingProxyType(
    {
        _S.NOT_INITIALIZED: (_S.SYSTEM_MESSAGE_SET, _S.INITIAL_USER),
        _S.SYSTEM_MESSAGE_SET: (_S.INITIAL_USER,),
        _S.INITIAL_USER: (_S.RECEIVED, _S.FORCE_FINAL, _S.TOKEN_EXCEEDED),  # last: D8
        _S.TOOL_MESSAGES: (_S.RECEIVED, _S.CONTEXT_ROLLBACK, _S.FORCE_FINAL, _S.TOKEN_EXCEEDED),
        _S.RECEIVED: (
            _S.TOOL_CALLS,
            _S.REPROMPT,
            _S.FINAL_PROMPT,
            _S.FORCE_FINAL,
            _S.COMPLETED,
            _S.FORCE_COMPLETED,
            _S.CALLS_REJECTED,
            _S.TOKEN_EXCEEDED,
            _S.ROLLBACK,
            _S.CONTEXT_ROLLBACK,  # D6
        ),
        _S.TOOL_CALLS: (_S.TOOL_MESSAGES, _S.ROLLBACK),
        _S.REPROMPT: (_S.RECEIVED, _S.FORCE_FINAL, _S.TOKEN_EXCEEDED),  # last: D8
        _S.FINAL_PROMPT: (_S.RECEIVED, _S.FORCE_FINAL, _S.TOKEN_EXCEEDED),  # last: D8
        _S.CONTEXT_ROLLBACK: (_S.FORCE_FINAL, _S.TOKEN_EXCEEDED),
        _S.ROLLBACK: (_S.TOOL_MESSAGES, _S.INITIAL_USER, _S.REPROMPT, _S.FINAL_PROMPT),  # D2
        _S.FORCE_FINAL: (_S.RECEIVED, _S.CONTEXT_ROLLBACK),
        _S.COMPLETED: (),
        _S.FORCE_COMPLETED: (),
        _S.CALLS_REJECTED: (),
        _S.TOKEN_EXCEEDED: (),
    }
)
"""Stage to the stages it may go to."""

VALID_STAGE_TRANSITION = frozenset((a, b) for a, targets in LEGAL_MOVES.items() for b in targets)
"""The same as pairs (source, target); a conversation makes no other move.

A reopening after a discard goes back to the initial stage by a rule of its own (`REOPENABLE`).
"""

REOPENABLE = frozenset(s for s, a in STAGE_TO_ACTION.items() if a is not StepAction.DONE)
"""Stages that `reopen_after_context_reset` may leave (D10): initialised and unfinished."""

REOPENS = MappingProxyType(
    {
        "reopen": _S.INITIAL_USER,
        "begin_try": _S.INITIAL_USER,
        "ask_for_answer": _S.FORCE_FINAL,
    }
)
"""Operations that go to a waiting stage by a rule of their own, and that stage."""


def check_move(source: ConversationStage, target: ConversationStage) -> None:
    """Refuse a move the table does not have.

    Raises:
        OperationRefused: It is not legal; the message names the stages that are.
    """
    if target not in LEGAL_MOVES[source]:
        allowed = ", ".join(LEGAL_MOVES[source]) or "nothing: the conversation has ended"
        raise OperationRefused(f"no move from {source!s} to {target!s}; allowed: {allowed}")
