"""Every error axislab raises, in one tree.

```
AxislabError
├── ConfigError (ValueError)            a knob with an unknown name or a value out of range
├── ConversationError
│   ├── OperationRefused (RuntimeError) the operation is not possible in this stage
│   ├── InvalidMessage (ValueError)     the message does not belong here
│   ├── TemplateError (KeyError)        a prompt template names something other than {task}
│   └── HookError (RuntimeError)        a hook or rule of the user raised
├── TransitionNotAllowed (ValueError)   a state machine has no such arrow
├── MachineError (ValueError)           a table of rules that cannot be a state machine
├── ToolError                           a tool says that it failed; the model sees it
│   └── ToolDefinitionError (ValueError)  a function or schema that cannot become a tool
├── ModelError                          a call to a model ended without a reply; see ErrorKind
├── RunError                            a run that did not complete, raised on request
│   └── RunInterrupted                  it was stopped or killed
├── TraceError                          a trace that cannot be read, written or trusted
│   ├── TraceCorrupt                    lines of it break the rules of a trace
│   └── TraceLocked                     another process is writing it
└── DataError (ValueError)              a data set, task or frame that is not as described
```

A message shows the value, what is allowed and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from enum import StrEnum


class AxislabError(Exception):
    """The root: catching it catches everything axislab raises by itself."""


class ConfigError(AxislabError, ValueError):
    """A knob with an unknown name or a value out of range."""


class ConversationError(AxislabError):
    """A conversation refused an operation; nothing in it has changed."""


class OperationRefused(ConversationError, RuntimeError):
    """The operation is not possible in this stage."""


class InvalidMessage(ConversationError, ValueError):
    """The message does not belong here."""


class TemplateError(ConversationError, KeyError):
    """A prompt template names something other than {task}."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class HookError(ConversationError, RuntimeError):
    """A hook or rule of the user raised; its own exception is the cause."""


class TransitionNotAllowed(AxislabError, ValueError):
    """A state machine has no such arrow; the message names the events that would do."""


class MachineError(AxislabError, ValueError):
    """A table of rules that cannot be a state machine."""


class ToolError(AxislabError):
    """A tool says that it failed: raise it inside a tool, the model reads the message."""


class ToolDefinitionError(ToolError, ValueError):
    """A function or schema that cannot become a tool."""


class ErrorKind(StrEnum):
    """What became of a model call that gave no reply."""

    TIMEOUT = "timeout"
    """No complete answer within the time allowed."""
    CONNECTION = "connection"
    """The provider could not be reached, or the connection broke."""
    RATE_LIMIT = "rate_limit"
    """Too many requests; the provider may say when to come back."""
    QUOTA = "quota"
    """The account is used up; trying again cannot help."""
    SERVER = "server"
    """The provider failed (5xx)."""
    OVERLOADED = "overloaded"
    """The provider is temporarily out of capacity (503, 529)."""
    CONTEXT_LIMIT = "context_limit"
    """The prompt, or prompt and answer together, do not fit the model's window."""
    TRUNCATED = "truncated"
    """The provider rejected tool arguments that were cut off."""
    CONTENT_POLICY = "content_policy"
    """The provider's safety system rejected the request."""
    AUTH = "auth"
    """The key was rejected."""
    MISSING_KEY = "missing_key"
    """No key was found; nothing was sent."""
    NOT_FOUND = "not_found"
    """No such model."""
    BAD_REQUEST = "bad_request"
    """The provider rejected the request as it stands."""
    MALFORMED_REPLY = "malformed_reply"
    """A status of success with something that is not a reply."""
    BUDGET = "budget"
    """A ceiling of the lab leaves no room for the request; nothing was sent."""
    CANCELLED = "cancelled"
    """The call was given up by our side."""
    UNKNOWN = "unknown"
    """Anything else; the original says what."""


class ModelError(AxislabError):
    """A call to a model ended without a reply.

    Args:
        message: One short sentence; the provider's own error stays in `original`.
        kind: What happened.
        retry_after: Seconds the provider asked to wait, if it did.
        status: HTTP status, if there was one.
        window: Tokens the model's context holds, where a context error says so.
        requested: Tokens that were asked for, where a context error says so.
        original: The exception this one was made from.
        usage: A Usage, where the provider says what the request was billed for all the same.
        cost_usd: What that comes to in US dollars; None if it is not known.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: ErrorKind = ErrorKind.UNKNOWN,
        retry_after: float | None = None,
        status: int | None = None,
        window: int | None = None,
        requested: int | None = None,
        original: BaseException | None = None,
        usage: object | None = None,
        cost_usd: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = ErrorKind(kind)
        self.retry_after = retry_after
        self.status = status
        self.window = window
        self.requested = requested
        self.original = original
        self.usage = usage
        self.cost_usd = cost_usd


class RunError(AxislabError):
    """A run that did not complete, raised by `run.raise_for_status()`."""


class RunInterrupted(RunError):
    """The run was stopped or its process was killed."""


class TraceError(AxislabError):
    """A trace that cannot be read, written or trusted."""


class TraceCorrupt(TraceError):
    """Lines of the trace break the rules of a trace."""


class TraceLocked(TraceError):
    """Another process is writing this trace."""


class DataError(AxislabError, ValueError):
    """A data set, task or frame that is not as described."""


def did_you_mean(given: object, allowed: Iterable[object]) -> str:
    """A half sentence that helps: the names that are like it or hold it, else all of them."""
    names = sorted(map(str, allowed))
    holding = [name for name in names if given and given in name.split("_")]
    near = get_close_matches(str(given), names, n=1, cutoff=0.75 if holding else 0.6)
    likely = list(dict.fromkeys([*near, *holding]))[:9]
    if likely:
        return f"did you mean {' or '.join(map(repr, likely))}?"
    return "allowed: " + (", ".join(names) or "nothing")
