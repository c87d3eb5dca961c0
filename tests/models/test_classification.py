"""What an exception means, by its type, status, codes and words."""

from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from axislab.errors import ErrorKind, ModelError
from axislab.models.classify import PHRASES, classify
from axislab.models.evidence import collect, retry_after
from axislab.models.limits import context_limit


def http_error(
    status: int, text: str = "", *, code: str | None = None, headers: Mapping[str, str] = {}
) -> Exception:
    """What a client raises for a status, with the provider's error object as its body."""
    request = httpx.Request("POST", "http://server.invalid")
    answer = httpx.Response(status, request=request, headers=dict(headers))
    problem: Any = httpx.HTTPStatusError(text, request=request, response=answer)
    problem.body = {"error": {"message": text, "code": code}}
    return problem


def kind(problem: BaseException) -> ErrorKind:
    return classify(problem, model="m").kind


def test_every_kind_has_a_phrase() -> None:
    assert set(PHRASES) == set(ErrorKind)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, ErrorKind.BAD_REQUEST),
        (401, ErrorKind.AUTH),
        (402, ErrorKind.QUOTA),
        (403, ErrorKind.AUTH),
        (404, ErrorKind.NOT_FOUND),
        (408, ErrorKind.TIMEOUT),
        (409, ErrorKind.SERVER),
        (413, ErrorKind.CONTEXT_LIMIT),
        (418, ErrorKind.BAD_REQUEST),
        (422, ErrorKind.BAD_REQUEST),
        (425, ErrorKind.SERVER),
        (429, ErrorKind.RATE_LIMIT),
        (500, ErrorKind.SERVER),
        (502, ErrorKind.SERVER),
        (503, ErrorKind.OVERLOADED),
        (504, ErrorKind.TIMEOUT),
        (520, ErrorKind.SERVER),
        (529, ErrorKind.OVERLOADED),
    ],
)
def test_a_status_alone_says(status: int, expected: ErrorKind) -> None:
    found = classify(http_error(status, "Something."), model="m")
    assert (found.kind, found.status) == (expected, status)
    assert f"[{status}]" in str(found)


CODED = [
    (400, "context_length_exceeded", ErrorKind.CONTEXT_LIMIT),
    (400, "exceed_context_size_error", ErrorKind.CONTEXT_LIMIT),
    (400, "content_policy_violation", ErrorKind.CONTENT_POLICY),
    (400, "content_filter", ErrorKind.CONTENT_POLICY),
    (429, "insufficient_quota", ErrorKind.QUOTA),
    (429, "rate_limit_exceeded", ErrorKind.RATE_LIMIT),
    (400, "model_not_found", ErrorKind.NOT_FOUND),
    (400, "tool_use_failed", ErrorKind.MALFORMED_REPLY),
    (500, "overloaded_error", ErrorKind.OVERLOADED),
    (400, "unsupported_parameter", ErrorKind.BAD_REQUEST),
]


@pytest.mark.parametrize(("status", "code", "expected"), CODED)
def test_a_code_says_more_than_the_status(status: int, code: str, expected: ErrorKind) -> None:
    assert kind(http_error(status, "Something.", code=code)) is expected


WORDED = [
    (500, "Failed to parse tool call arguments as JSON: unexpected end", ErrorKind.TRUNCATED),
    (400, "Invalid 'messages[2].tool_calls[0].function.arguments': not JSON", ErrorKind.TRUNCATED),
    (
        400,
        'The "function.arguments" parameter of the code model must be in JSON format.',
        ErrorKind.TRUNCATED,
    ),
    (400, "Invalid function arguments", ErrorKind.TRUNCATED),
    (400, "Invalid schema for function 'search'", ErrorKind.BAD_REQUEST),
    (400, "Your request was rejected as a result of our safety system.", ErrorKind.CONTENT_POLICY),
    (429, "You exceeded your current quota, please check your plan.", ErrorKind.QUOTA),
    (429, "You exceeded your current quota. Please retry in 32.5s.", ErrorKind.RATE_LIMIT),
    (400, "Your credit balance is too low", ErrorKind.QUOTA),
    (400, "API key not valid. Please pass a valid API key.", ErrorKind.AUTH),
    (400, "what is the rate limit of this API?", ErrorKind.BAD_REQUEST),
    (401, "prompt is too long: 3 tokens > 2 maximum", ErrorKind.AUTH),
    (429, "Rate limit reached on tokens per min. Please try again in 6ms.", ErrorKind.RATE_LIMIT),
    (
        429,
        "Request too large for m on tokens per min (TPM): Limit 300, Requested 450. The input or "
        "output tokens must be reduced in order to run successfully.",
        ErrorKind.CONTEXT_LIMIT,
    ),
]


@pytest.mark.parametrize(("status", "text", "expected"), WORDED)
def test_words_say_more_than_the_status(status: int, text: str, expected: ErrorKind) -> None:
    assert kind(http_error(status, text)) is expected


CONTEXT = [
    # OpenAI, old and new
    ("This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 "
     "tokens. Please reduce the length of the messages.", 8192, 9001),
    ("This model's maximum context length is 4097 tokens. However, you requested 4268 tokens (4012 "
     "in the messages, 256 in the completion).", 4097, 4268),
    ("This model's maximum context length is 4097 tokens, however you requested 5000 tokens (4000 "
     "in your prompt; 1000 for the completion).", 4097, 5000),
    ("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300001 "
     "tokens.", 272000, 300001),
    ("Your input exceeds the context window of this model. Please adjust your input and try "
     "again.", None, None),
    # OpenRouter
    ("This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 "
     "tokens (42832 of text input).", 32768, 42832),
    # vLLM
    ("This model's maximum context length is 262144 tokens. However, you requested 128000 output "
     "tokens and your prompt contains at least 134145 input tokens, for a total of at least 262145 "
     "tokens.", 262144, 262145),
    ("'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context "
     "length is 4096 tokens and your request has 50 input tokens (4096 > 4096 - 50).", 4096, 4146),
    ("You passed 202753 input tokens and requested 0 output tokens. However, the model's context "
     "length is only 202752 tokens, resulting in a maximum input length of 202752 tokens.",
     202752, 202753),
    ("The decoder prompt (length 3000) is longer than the maximum model length of 2048.",
     2048, 3000),
    # SGLang
    ("The input (5000 tokens) is longer than the model's context length (4096 tokens).",
     4096, 5000),
    ("Requested token count exceeds the model's maximum context length of 4096 tokens. You "
     "requested a total of 5000 tokens: 4000 tokens from the input messages and 1000 tokens for "
     "the completion.", 4096, 5000),
    # llama.cpp, LM Studio
    ("request (5000 tokens) exceeds the available context size (2048 tokens), try increasing it",
     2048, 5000),
    ("the request exceeds the available context size, try increasing it", None, None),
    ("Trying to keep the first 5021 tokens when context the overflows. However, the model is "
     "loaded with context length of only 4096 tokens, which is not enough.", 4096, 5021),
    # Anthropic, Bedrock
    ("prompt is too long: 208310 tokens > 200000 maximum", 200000, 208310),
    ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input "
     "length or `max_tokens` and try again", 200000, 210000),
    ("Input is too long for requested model.", None, None),
    # Gemini, Vertex
    ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
     1048576, 1200000),
    ("The input token count exceeds the maximum number of tokens allowed 1048576.",
     1048576, None),
    ("Unable to submit request because the input token count is 40000 but model only supports up "
     "to 32768.", 32768, 40000),
    # DashScope, Moonshot
    ("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]",
     98304, None),
    ("Invalid request: Your request exceeded model token limit: 8192", 8192, None),
    ("Your request exceeded model token limit: 131072 (requested: 150000)", 131072, 150000),
    ("model max length exceeded, max length:8192", 8192, None),
    # xAI, Mistral, Fireworks, Cohere, TGI, GitHub, MiniMax
    ("This model's maximum prompt length is 131072 but the request contains 150000 tokens.",
     131072, 150000),
    ("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum "
     "context length", 32768, 40000),
    ("The prompt is too long: 10000, model maximum context length: 8191", 8191, 10000),
    ("too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.",
     4081, 5000),
    ("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 8000 "
     "`inputs` tokens and 512 `max_new_tokens`", 8193, 8512),
    ("`inputs` must have less than 4096 tokens. Given: 5000", 4096, 5000),
    ("Request body too large for gpt-4o model. Max size: 8000 tokens.", 8000, None),
    ("invalid params, context window exceeds limit (2013)", None, None),
    ("This model's maximum context length is 1,048,576 tokens. However, you requested 1,200,000 "
     "tokens.", 1048576, 1200000),
]  # fmt: skip


@pytest.mark.parametrize(("text", "window", "requested"), CONTEXT)
@pytest.mark.parametrize("status", [400, 500])
def test_context_errors_are_known_by_their_words_and_numbers(
    text: str, window: int | None, requested: int | None, status: int
) -> None:
    found = classify(http_error(status, text), model="m")
    assert found.kind is ErrorKind.CONTEXT_LIMIT
    assert (found.window, found.requested) == (window, requested)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Unsupported parameter: 'temperature' is not supported with this model.",
        "max_tokens is too large: 9000. This model supports at most 4096 completion tokens.",
        "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000.",
        "Range of max_tokens should be [1, 8192]",
        "The context of this request is missing.",
    ],
)
def test_other_texts_are_no_context_errors(text: str) -> None:
    assert context_limit(text) is None


@pytest.mark.parametrize(
    ("headers", "text", "seconds"),
    [
        ({"Retry-After": "7"}, "", 7.0),
        ({"retry-after": "0.5"}, "", 0.5),
        ({"retry-after": "-3"}, "", 0.0),
        ({"retry-after-ms": "50", "retry-after": "7"}, "", 0.05),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:10 GMT"}, "", 10.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:27:00 GMT"}, "", 0.0),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after": "nan"}, "", None),
        ({}, "Please try again in 6ms.", 0.006),
        ({}, "Please try again in 1m2.5s.", 62.5),
        ({}, "Please retry in 32.25s.", 32.25),
        ({}, "Please try again in 2h0m3s.", 7203.0),
        ({}, "Please try again later.", None),
        ({}, "Please try again in a while.", None),
    ],
)
def test_the_wait_a_provider_asks_for(
    headers: dict[str, str], text: str, seconds: float | None
) -> None:
    seen = collect(http_error(429, text, headers=headers))
    found = retry_after(seen, now=lambda: 1445412480.0)  # 21 Oct 2015 07:28:00 UTC
    assert found == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (TimeoutError(), ErrorKind.TIMEOUT),
        (httpx.ReadTimeout("slow"), ErrorKind.TIMEOUT),
        (ConnectionRefusedError("no"), ErrorKind.CONNECTION),
        (httpx.ConnectError("no"), ErrorKind.CONNECTION),
        (httpx.RemoteProtocolError("cut"), ErrorKind.CONNECTION),
        (ValueError("odd"), ErrorKind.UNKNOWN),
        (UnicodeEncodeError("utf-8", "\ud83d", 0, 1, "surrogates"), ErrorKind.BAD_REQUEST),
    ],
)
def test_errors_of_any_client_are_known_by_their_type(
    problem: Exception, expected: ErrorKind
) -> None:
    found = classify(problem, model="m")
    assert (found.kind, found.status, found.original) == (expected, None, problem)


def test_a_model_error_under_another_exception_is_kept() -> None:
    inner = ModelError("full", kind=ErrorKind.CONTEXT_LIMIT, window=5)
    outer = RuntimeError("wrapped")
    outer.__cause__ = inner
    assert classify(outer, model="m") is inner


def test_what_a_users_code_was_handling_is_no_evidence() -> None:
    problem = ValueError("odd")
    problem.__context__ = TimeoutError()
    assert kind(problem) is ErrorKind.UNKNOWN


def test_an_error_object_that_is_only_quoted_is_read() -> None:
    body = '{"error": {"message": "No money.", "code": "insufficient_quota"}}'
    request = httpx.Request("POST", "http://server.invalid")
    answer = httpx.Response(429, request=request)
    for text in (body, f"GroqException - {body}", f"[{body}]"):
        found = classify(httpx.HTTPStatusError(text, request=request, response=answer), model="m")
        assert found.kind is ErrorKind.QUOTA
        assert str(found) == "m: the account is used up [429]: No money."


@pytest.mark.parametrize("text", ["{", "{not json}", '{"error": "text"}', '{"message": {"a": 1}}'])
def test_what_is_no_error_object_does_no_harm(text: str) -> None:
    assert kind(ValueError(text)) is ErrorKind.UNKNOWN


def test_a_loop_of_causes_ends() -> None:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    assert kind(one) is ErrorKind.UNKNOWN


def test_messages_are_short_and_hold_no_secret() -> None:
    text = "Incorrect key: tr0ub4dor-and-more " + "x" * 5000
    found = classify(http_error(401, text), model="m", secrets=["tr0ub4dor-and-more"])
    assert "tr0ub4dor" not in str(found)
    assert len(str(found)) < 400
    assert str(found).startswith("m: the key was rejected")
