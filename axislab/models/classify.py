"""Says what an exception of a model call means: one table of rules, the first that holds wins."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from axislab.errors import ErrorKind, ModelError
from axislab.models.evidence import Evidence, chain, collect, retry_after
from axislab.models.limits import ContextLimit, context_limit
from axislab.models.redact import redact


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """All that is given must hold; of names, codes and words one is enough."""

    kind: ErrorKind
    statuses: frozenset[int | None] | None = None
    names: frozenset[str] = frozenset()
    codes: frozenset[str] = frozenset()
    words: Callable[[str], object] | None = None
    """Finds in the text what gives it away."""

    def holds(self, seen: Evidence) -> bool:
        """Is this what happened?"""
        if self.statuses is not None and seen.status not in self.statuses:
            return False
        if not (self.names or self.codes or self.words):
            return True
        return bool(
            self.names & seen.names
            or self.codes & seen.codes
            or (self.words and self.words(seen.text))
        )


def _rule(
    kind: ErrorKind,
    *statuses: int | None,
    names: str = "",
    codes: str = "",
    words: str | Callable[[str], object] = "",
) -> Rule:
    return Rule(
        kind=kind,
        statuses=frozenset(statuses) or None,
        names=frozenset(names.split()),
        codes=frozenset(codes.split()),
        words=_finder(words) if isinstance(words, str) else words,
    )


def _finder(words: str) -> Callable[[str], object] | None:
    return re.compile(words, re.IGNORECASE).search if words else None


_BAD_INPUT: Final = (400, 413, 422, 424, 500, None)

RULES: Final[tuple[Rule, ...]] = (
    _rule(
        ErrorKind.TIMEOUT,
        None,
        names="APITimeoutError TimeoutException TimeoutError Timeout SocketTimeoutError",
    ),
    _rule(ErrorKind.TIMEOUT, 408, 504),
    _rule(
        ErrorKind.MISSING_KEY,
        None,
        words=r"missing credentials|api_key client option must be set|api.?key is required"
        r"|missing (?:anthropic|gemini|\w+) api.?key|api.?key not found|no key is set"
        r"|no api.?key (?:was )?(?:provided|found|passed)",
    ),
    _rule(
        ErrorKind.NOT_FOUND,
        None,
        words=r"llm provider not provided|unmapped llm provider|GetLLMProvider Exception",
    ),
    _rule(  # a client that takes no user and password in an address beside a key
        ErrorKind.BAD_REQUEST, None, 500, words=r"cannot combine authorization header with auth"
    ),
    _rule(ErrorKind.MALFORMED_REPLY, codes="tool_use_failed"),
    _rule(
        ErrorKind.TRUNCATED,
        *_BAD_INPUT,
        words=r"parse tool call arguments|tool_calls?\S*arguments\S*.{0,60}(?:json|parse|decod)"
        r"|function\.?\s?\S{0,2}arguments\S{0,2}.{0,60}json"
        r"|(?:invalid|malformed|broken|incomplete|truncated).{0,40}(?:function|tool).{0,20}"
        r"(?:arguments|parameters)"
        r"|tool_use\.input.{0,40}(?:valid )?dict",
    ),
    _rule(
        ErrorKind.CONTEXT_LIMIT,
        *_BAD_INPUT,
        429,
        names="ContextWindowExceededError",
        codes="context_length_exceeded exceed_context_size_error tokens_limit_reached"
        " string_above_max_length request_too_large model_context_window_exceeded",
        words=context_limit,
    ),
    _rule(ErrorKind.CONTEXT_LIMIT, 413),
    _rule(
        ErrorKind.CONTENT_POLICY,
        *_BAD_INPUT,
        403,
        451,
        names="ContentPolicyViolationError",
        codes="content_policy_violation content_filter ResponsibleAIPolicyViolation"
        " data_inspection_failed DataInspectionFailed sensitive",
        words=r"as a result of our safety system|content management policy"
        r"|flagged (?:as|by|for).{0,40}(?:policy|moderation|usage)|inappropriate content",
    ),
    # Gemini says "quota" for its limit a minute, with the seconds to wait.
    _rule(ErrorKind.RATE_LIMIT, 429, words=r"retry in \d|retryDelay|(?:try|retry) again in \d"),
    _rule(
        ErrorKind.QUOTA,
        400,
        403,
        429,
        None,
        codes="insufficient_quota billing_hard_limit_reached billing_not_active"
        " insufficient_balance credit_balance_too_low exceeded_current_quota_error Arrearage",
        words=r"exceeded your current quota|credit balance is too low|insufficient (?:balance|quota"
        r"|credits|funds)|余额不足|欠费",
    ),
    _rule(ErrorKind.QUOTA, 402),
    _rule(ErrorKind.AUTH, 401, 403),
    _rule(
        ErrorKind.AUTH,
        400,
        None,
        names="AuthenticationError PermissionDeniedError",
        codes="invalid_api_key API_KEY_INVALID",
        words=r"api key not valid|invalid api.?key|incorrect api key",
    ),
    _rule(ErrorKind.NOT_FOUND, 404, 410),
    _rule(ErrorKind.NOT_FOUND, 400, None, names="NotFoundError", codes="model_not_found"),
    _rule(ErrorKind.RATE_LIMIT, 429),
    _rule(ErrorKind.RATE_LIMIT, None, names="RateLimitError"),
    _rule(ErrorKind.OVERLOADED, 503, 529),
    _rule(ErrorKind.OVERLOADED, 500, 502, None, codes="overloaded_error", words=r"\boverloaded\b"),
    _rule(ErrorKind.OVERLOADED, None, names="ServiceUnavailableError"),
    _rule(ErrorKind.BAD_REQUEST, None, names="UnicodeEncodeError InvalidURL UnsupportedProtocol"),
    _rule(
        ErrorKind.MALFORMED_REPLY,
        200,
        None,
        names="JSONDecodeError UnicodeDecodeError APIResponseValidationError",
        words=r"invalid response object|empty or invalid response from llm|no 'choices'"
        r"|'choices' that is not a list",
    ),
    _rule(
        ErrorKind.CONNECTION,
        None,
        names="ConnectionError ConnectError NetworkError TransportError ClientConnectionError"
        " ClientPayloadError gaierror MidStreamFallbackError",
        words=r"connection error|connection refused|cannot connect|connect call failed"
        r"|name or service not known|server disconnected",
    ),
    # Ours or litellm's mistake in making the request, which litellm calls a server's.
    _rule(ErrorKind.UNKNOWN, None, names="ValueError TypeError"),
)
"""Sorted: what a text or code makes certain first, what only a status says last."""

PHRASES: Final[Mapping[ErrorKind, str]] = {
    ErrorKind.TIMEOUT: "no complete answer in time",
    ErrorKind.CONNECTION: "no connection to the provider",
    ErrorKind.RATE_LIMIT: "too many requests",
    ErrorKind.QUOTA: "the account is used up",
    ErrorKind.SERVER: "the provider failed",
    ErrorKind.OVERLOADED: "the provider is overloaded",
    ErrorKind.CONTEXT_LIMIT: "the prompt does not fit the context",
    ErrorKind.TRUNCATED: "the provider rejected the arguments of an earlier tool call",
    ErrorKind.CONTENT_POLICY: "rejected by the provider's safety system",
    ErrorKind.AUTH: "the key was rejected, or may not do this",
    ErrorKind.MISSING_KEY: "no key was found",
    ErrorKind.NOT_FOUND: "no such model",
    ErrorKind.BAD_REQUEST: "the provider rejected the request",
    ErrorKind.MALFORMED_REPLY: "the answer is no chat reply",
    ErrorKind.BUDGET: "no room under the lab's budget",
    ErrorKind.CANCELLED: "given up",
    ErrorKind.UNKNOWN: "the call failed",
}
"""The first half of each error's message."""


_LONGEST: Final = 300
"""Characters of the provider's words that are shown."""
_STATUS_KINDS: Final = frozenset({ErrorKind.SERVER, ErrorKind.BAD_REQUEST, ErrorKind.RATE_LIMIT})
"""Where a status that only the exception claims is worth showing."""


def classify(problem: BaseException, *, model: str, secrets: Iterable[str] = ()) -> ModelError:
    """The ModelError for whatever a model raised; one already in the chain is kept.

    Args:
        problem: The exception.
        model: Named in the message.
        secrets: Texts that must not be in the message.
    """
    for link in chain(problem):
        if isinstance(link, ModelError):
            return link
    seen = collect(problem)
    kind = _kind(seen)
    limit = context_limit(seen.text) if kind is ErrorKind.CONTEXT_LIMIT else None
    limit = limit or ContextLimit()
    status = seen.status or (seen.claimed if kind in _STATUS_KINDS else None)
    # Secrets first: one that is cut in two would no longer be known.
    detail = _shortened(redact(seen.message, secrets))
    head = f"{model}: {PHRASES[kind]}" + (f" [{status}]" if status else "")
    return ModelError(
        f"{head}: {detail}" if detail else head,
        kind=kind,
        status=status,
        retry_after=retry_after(seen),
        window=limit.window,
        requested=limit.requested,
        original=problem,
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _kind(seen: Evidence) -> ErrorKind:
    for rule in RULES:
        if rule.holds(seen):
            return rule.kind
    status = seen.status or seen.claimed
    if status is None:
        network = "APIConnectionError" in seen.names
        return ErrorKind.CONNECTION if network else ErrorKind.UNKNOWN
    if status >= 500 or status in (409, 425):
        return ErrorKind.SERVER
    return ErrorKind.BAD_REQUEST if 400 <= status < 500 else ErrorKind.UNKNOWN
