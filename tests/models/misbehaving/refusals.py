"""Scenarios in which the server says no: statuses with all the bodies that come with them."""

from __future__ import annotations

from misbehaving.parts import Answer, Heard, Maker, fails, raw


def _err(heard: Heard) -> Answer:
    status = int(heard.argument or 500)
    return fails(status, f"The server says {status}.", type="api_error")(heard)


def _rate(heard: Heard) -> Answer:
    seconds = heard.argument or "0.05"
    text = "Rate limit reached for requests."
    headers = {"Retry-After": seconds}
    return fails(429, text, type="requests", code="rate_limit_exceeded", headers=headers)(heard)


def _overloaded(heard: Heard) -> Answer:
    headers = {"Retry-After": heard.argument or "0.05"}
    text = "The engine is currently overloaded."
    return fails(503, text, type="server_error", headers=headers)(heard)


def _vllm(heard: Heard) -> Answer:
    text = (
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens "
        "(4000 in the messages, 1000 in the completion). Please reduce the length of the messages."
    )
    body = {"object": "error", "message": text, "type": "BadRequestError", "code": 400}
    return Answer(body=body, status=400)


def _anthropic(heard: Heard) -> Answer:
    text = "prompt is too long: 205000 tokens > 200000 maximum"
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": text}}
    return Answer(body=body, status=400)


def _in_200(heard: Heard) -> Answer:
    return Answer(body=b'{"error": {"message": "Provider returned error", "code": 502}}')


_HTML = "text/html"

STATUSES: dict[str, Maker] = {
    "err": _err,
    "err_bad_request": fails(
        400,
        "Unsupported parameter: 'temperature' is not supported with this model.",
        code="unsupported_parameter",
        param="temperature",
    ),
    "err_context": fails(
        400,
        "This model's maximum context length is 8192 tokens. However, your messages resulted in "
        "9001 tokens. Please reduce the length of the messages.",
        code="context_length_exceeded",
        param="messages",
    ),
    "err_context_code": fails(400, "The input is too large.", code="context_length_exceeded"),
    "err_context_vllm": _vllm,
    "err_context_llamacpp": fails(
        400,
        "request (5000 tokens) exceeds the available context size (2048 tokens), try increasing it",
        type="exceed_context_size_error",
        code=400,
        n_prompt_tokens=5000,
        n_ctx=2048,
    ),
    "err_context_anthropic": _anthropic,
    "err_too_large": raw(b"<html><title>413 Too Large</title></html>", kind=_HTML, status=413),
    "err_policy": fails(
        400,
        "Your request was rejected as a result of our safety system.",
        code="content_policy_violation",
    ),
    "err_policy_azure": fails(
        400,
        "The response was filtered due to the prompt triggering the content management policy.",
        type=None,
        code="content_filter",
        innererror={"code": "ResponsibleAIPolicyViolation"},
    ),
    "err_auth": lambda heard: fails(
        401,
        # Some servers quote the key they were sent.
        f"Incorrect API key provided: {heard.body['_authorization']}.",
        code="invalid_api_key",
    )(heard),
    "err_permission": fails(403, "You may not sample from this model.", code="permission_denied"),
    "err_model": fails(404, "The model `x` does not exist.", code="model_not_found"),
    "err_rate": _rate,
    "err_rate_ms": fails(
        429,
        "Rate limit reached for tokens.",
        type="tokens",
        code="rate_limit_exceeded",
        headers={"retry-after-ms": "30"},
    ),
    "err_rate_date": fails(
        429,
        "Rate limit reached.",
        type="requests",
        code="rate_limit_exceeded",
        headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"},
    ),
    "err_rate_words": fails(
        400, "Invalid input: 'what is your rate limit?' is not allowed.", code="invalid_value"
    ),
    "err_quota": fails(
        429,
        "You exceeded your current quota, please check your plan and billing details.",
        type="insufficient_quota",
        code="insufficient_quota",
    ),
    "err_bad_gateway": raw(b"<html><h1>502 Bad Gateway</h1></html>", kind=_HTML, status=502),
    "err_overloaded": _overloaded,
    "err_empty": raw(b"", kind="text/plain", status=500),
    "err_in_200": _in_200,
}
"""The server answers with an error."""
