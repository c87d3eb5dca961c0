"""Which parameters a litellm call has, and which of them are axislab's own to set."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from axislab.config import Sampling
from axislab.errors import ErrorKind, ModelError
from axislab.models._litellm import OURS, load_litellm

RESERVED: Final = frozenset(
    {
        "model", "messages", "tools", "functions", "stream", "stream_options", "n", "timeout",
        "max_retries", "num_retries", "retry_policy", "fallbacks", "logger_fn", "axislab_draw",
        "context_window_fallback_dict", "api_key", "api_base", "base_url", "max_tokens",
        "temperature", "top_p",
    }
)  # fmt: skip
"""Parameters of a call that are set by axislab, or that would change what one call is."""


def sampling_parameters(sampling: Sampling) -> dict[str, Any]:
    """The parameters of a litellm call that follow from the recipe's knobs.

    Raises:
        ModelError: BAD_REQUEST, if `extra` holds what axislab sets itself.
    """
    if bad := RESERVED & sampling.extra.keys():
        raise ModelError(
            f"sampling.extra holds {sorted(bad)}: axislab sets it; use the knob of that name",
            kind=ErrorKind.BAD_REQUEST,
        )
    out = dict(sampling.extra)
    out["max_tokens"] = sampling.max_output_tokens
    for name in ("temperature", "top_p", "reasoning_effort"):
        if (value := getattr(sampling, name)) is not None:
            out[name] = value
    return out


def address_parameters(
    api_base: str, extra: Mapping[str, Any], *, provider: str = "openai"
) -> dict[str, Any]:
    """The parameters of a litellm call that follow from a server's address.

    OpenAI's client refuses to send a user and password beside a key's header, so they become that
    header. The client of other providers puts them in its place by itself.

    Args:
        api_base: The address.
        extra: The model's further parameters; headers in it stay, and go before ours.
        provider: litellm's name of who is reached there.

    Examples:
        >>> address_parameters("http://me:pw@localhost:8000/v1", {})["api_base"]
        'http://localhost:8000/v1'
    """
    parts = urlsplit(api_base)
    user, at, host = parts.netloc.rpartition("@")
    if not at or provider != "openai":
        return {"api_base": api_base}
    told = b64encode(unquote(user).encode()).decode()
    headers = {"Authorization": f"Basic {told}", **(extra.get("extra_headers") or {})}
    return {"api_base": parts._replace(netloc=host).geturl(), "extra_headers": headers}


def asks_to_think(parameters: Mapping[str, Any]) -> bool:
    """True if a call asks the model to think."""
    asked = parameters.get("thinking")
    on = isinstance(asked, Mapping) and asked.get("type") != "disabled"
    return on or parameters.get("reasoning_effort") not in (None, "none")


def streaming_parameters(model: str, provider: str) -> dict[str, Any]:
    """What a litellm call has besides, if its answer is to be streamed."""
    known = load_litellm().get_supported_openai_params(model=model, custom_llm_provider=provider)
    if model.partition("/")[0] in OURS or "stream_options" in (known or ()):
        return {"stream": True, "stream_options": {"include_usage": True}}
    return {"stream": True}
