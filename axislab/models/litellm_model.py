"""A ChatModel for every provider litellm knows."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, Final

from axislab.config import Sampling
from axislab.errors import ConfigError, ErrorKind, ModelError
from axislab.messages import Usage
from axislab.models._litellm import (
    OURS,
    OwnProvider,
    ensure_provider,
    load_litellm,
    provider_handler,
    quiet,
)
from axislab.models.base import ModelReply, ModelRequest
from axislab.models.classify import classify
from axislab.models.deltas import OnDelta
from axislab.models.incoming import RawReply, read_reply
from axislab.models.outgoing import tools_of, wire_messages, wire_tools
from axislab.models.price import Price
from axislab.models.redact import is_secret_name, mask_url, url_secrets
from axislab.models.streamed import read_stream, stream_error

SIMULATED: Final = "axislab"
"""The provider of the simulated agent."""

RESERVED: Final = frozenset(
    {
        "model", "messages", "tools", "functions", "stream", "stream_options", "n", "timeout",
        "max_retries", "num_retries", "retry_policy", "fallbacks", "logger_fn", "axislab_draw",
        "context_window_fallback_dict", "api_key", "api_base", "base_url", "max_tokens",
        "temperature", "top_p",
    }
)  # fmt: skip
"""Parameters of a call that are set by axislab, or that would change what one call is."""

_EXAMPLES: Final = (
    "'openai/gpt-4o-mini', 'anthropic/claude-sonnet-4-5', 'gemini/gemini-2.5-flash', "
    "'ollama/llama3.2', 'hosted_vllm/NAME' with api_base=, 'axislab/simulated'"
)
_KEYLESS: Final = frozenset({"bedrock", "bedrock_converse", "sagemaker", "vertex_ai", "ollama"})
"""Providers with other ways to identify themselves, or with no need to."""
_WANTS_TOOLS: Final = frozenset({"bedrock", "bedrock_converse"})
"""Providers that refuse a history with tool calls if no tool is declared."""


class LiteLLMModel:
    """A model by its litellm string.

    litellm is imported by the first check or call, not before.

    Args:
        model: For example "openai/gpt-4o-mini", "ollama/llama3.2", "axislab/simulated".
        api_key: The provider's key; else litellm reads its environment variable.
        api_base: The server's address, where it is not the provider's own.
        price: What tokens cost, where litellm's own list does not say or is wrong.
        timeout: Seconds for one request, a second line behind RetryPolicy.request_timeout.
        extra: Further parameters of every call, passed on as they are.

    Raises:
        ConfigError: No text, or a parameter that axislab sets itself.

    Examples:
        >>> LiteLLMModel("hosted_vllm/qwen", api_base="http://localhost:8000/v1")
        LiteLLMModel('hosted_vllm/qwen', api_base='http://localhost:8000/v1')
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        api_base: str | None = None,
        price: Price | None = None,
        timeout: float = 600.0,
        **extra: Any,
    ) -> None:
        if not isinstance(model, str) or not model.strip():
            raise ConfigError(f"model={model!r}: a litellm model string is wanted: {_EXAMPLES}")
        if bad := RESERVED & extra.keys():
            raise ConfigError(
                f"{sorted(bad)} cannot be set on a model: axislab sets it; sampling and retries "
                "are knobs of the recipe"
            )
        self.price = price
        self._name = model.strip()
        self._api_key = api_key
        self._api_base = api_base
        self._timeout = timeout
        self._extra = extra
        self._checked = False
        self._provider = self._name.partition("/")[0]

    def __repr__(self) -> str:
        base = f", api_base={mask_url(self._api_base)!r}" if self._api_base else ""
        return f"{type(self).__name__}({self._name!r}{base})"

    @property
    def name(self) -> str:
        """The litellm model string."""
        return self._name

    @property
    def simulated(self) -> bool:
        """True if axislab's simulated agent answers."""
        return self._name.startswith(f"{SIMULATED}/")

    @property
    def info(self) -> Mapping[str, Any]:
        """Address, parameters and what the provider says of itself; no secrets."""
        out: dict[str, Any] = {}
        if self._api_base:
            out["api_base"] = mask_url(self._api_base)
        shown = {k: v for k, v in self._extra.items() if not is_secret_name(k)}
        shown = {k: v for k, v in shown.items() if isinstance(v, str | int | float | bool)}
        if shown:
            out["extra"] = shown
        if self._own:
            ensure_provider(self._name)
            handler = provider_handler(self._name.partition("/")[0])
            if isinstance(handler, OwnProvider):
                out.update(handler.info(self._name))
        return out

    @property
    def _own(self) -> bool:
        return self._name.partition("/")[0] in OURS

    def check(self) -> None:
        """Find an unknown model or a missing key; nothing is sent.

        Raises:
            ModelError: NOT_FOUND or MISSING_KEY, saying what to write or to set.
        """
        if self._checked:
            return
        litellm = load_litellm()
        ensure_provider(self._name)
        with quiet:
            self._provider = self._find_provider(litellm)
            if not self._own:
                self._find_key(litellm)
        handler = provider_handler(self._provider)
        if isinstance(handler, OwnProvider):
            handler.check(self._name)
        self._checked = True

    def list_price(self) -> Price | None:
        """The price given, else the one of litellm's list; None if neither says."""
        if self.price is not None:
            return self.price
        self.check()
        try:
            with quiet:
                known = load_litellm().get_model_info(self._name)
        except Exception:  # a bare Exception for a model that is not listed
            return None
        per_token = (known.get("input_cost_per_token"), known.get("output_cost_per_token"))
        if None in per_token:
            return None
        cached = known.get("cache_read_input_token_cost")
        return Price(
            input=per_token[0] * 1e6,
            output=per_token[1] * 1e6,
            cached=None if cached is None else cached * 1e6,
        )

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request with one request on the wire.

        Raises:
            ModelError: No reply; its kind says why.
        """
        if not self._checked:
            # The import takes seconds; in a thread the event loop goes on meanwhile.
            await asyncio.to_thread(self.check)
        raw = RawReply()
        arguments = self._arguments(request)
        try:
            with quiet:
                response = await load_litellm().acompletion(**arguments, logger_fn=raw.see)
        except Exception as problem:  # litellm raises what any provider's code raises
            raise classify(problem, model=self._name, secrets=self._secrets()) from None
        reply = read_reply(response, model=self._name, raw=raw)
        return self._priced(reply, response)

    async def stream(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        """The same with a streamed answer, of which every piece is told.

        Args:
            request: What is asked.
            on_delta: Hears the pieces.

        Raises:
            ModelError: No reply, or a part of one; its kind says why.
        """
        if not self._checked:
            await asyncio.to_thread(self.check)
        arguments = {**self._arguments(request), "stream": True}
        if self._streams_usage():
            arguments["stream_options"] = {"include_usage": True}
        begun = False
        try:
            with quiet:
                response = await load_litellm().acompletion(**arguments)
                begun = True
                whole = await read_stream(
                    response, model=self._name, name=self._name, on_delta=on_delta
                )
        except Exception as problem:  # litellm raises what any provider's code raises
            judge = stream_error if begun else classify
            raise judge(problem, model=self._name, secrets=self._secrets()) from None
        return self._priced(
            read_reply(whole.response, model=self._name, raw=whole.raw), whole.response
        )

    def _streams_usage(self) -> bool:
        known = load_litellm().get_supported_openai_params(
            model=self._name, custom_llm_provider=self._provider
        )
        return self._own or "stream_options" in (known or ())

    def _arguments(self, request: ModelRequest) -> dict[str, Any]:
        """All parameters of the litellm call but `logger_fn`."""
        tools = request.tools
        if not tools and self._provider in _WANTS_TOOLS:
            tools = tools_of(request.messages)
        out = {**self._extra, **_sampling(request.sampling)}
        out.update(
            model=self._name,
            messages=wire_messages(request.messages, tools=tools),
            timeout=self._timeout,
            max_retries=0,  # else one call is up to three requests, and none of them counted
        )
        if tools:
            out["tools"] = wire_tools(tools)
        if self._api_key is not None:
            out["api_key"] = self._api_key
        if self._api_base is not None:
            out["api_base"] = self._api_base
        if self.simulated and request.draw:
            out["axislab_draw"] = request.draw
        return out

    def _priced(self, reply: ModelReply, response: Any) -> ModelReply:
        """The reply with its cost, or with the reason why there is none."""
        if not _is_whole(reply.usage):
            return _with_cost(reply, missing="the provider did not report the tokens")
        if self.price is not None:
            return _with_cost(reply, usd=self.price.of(reply.usage))
        hidden = getattr(response, "_hidden_params", None) or {}
        cost = hidden.get("response_cost")
        if isinstance(cost, int | float) and not self._own:
            return _with_cost(reply, usd=float(cost))
        return _with_cost(reply, missing=f"no price is known for {self._name!r}: give price=")

    def _find_provider(self, litellm: Any) -> str:
        try:
            bare, provider, _, _ = litellm.get_llm_provider(
                self._name,
                custom_llm_provider=self._extra.get("custom_llm_provider"),
                api_base=self._api_base,
            )
        except Exception as problem:  # a BadRequestError, or an IndexError inside it
            raise self._unknown(litellm, problem) from None
        if not bare:
            raise self._unknown(litellm, None)
        return str(provider)

    def _unknown(self, litellm: Any, problem: Exception | None) -> ModelError:
        hint = _suggest(self._name, litellm, server=self._api_base is not None)
        return ModelError(
            f"model {self._name!r} names no provider litellm knows{hint}. "
            f"Write provider/model, for example {_EXAMPLES}",
            kind=ErrorKind.NOT_FOUND,
            original=problem,
        )

    def _find_key(self, litellm: Any) -> None:
        if self._api_key or self._provider in _KEYLESS or litellm.api_key:
            return
        if getattr(litellm, f"{self._provider}_key", None) or any(
            is_secret_name(name) for name in self._extra
        ):
            return
        if self._api_base and self._provider != "openai":
            return  # a server of one's own may want none; openai's client always wants one
        wanted = litellm.validate_environment(self._name)["missing_keys"]
        missing = [n for n in wanted if n.endswith(("_KEY", "_TOKEN")) and n not in os.environ]
        if missing:
            also = " (any text, if the server asks for none)" if self._api_base else ""
            raise ModelError(
                f"{self._name}: no key was found, nothing was sent: set {' or '.join(missing)} "
                f"in the environment, or give api_key={also}",
                kind=ErrorKind.MISSING_KEY,
            )

    def _secrets(self) -> list[str]:
        found = [self._api_key or ""]
        found += [str(v) for k, v in self._extra.items() if is_secret_name(k)]
        return found + url_secrets(self._api_base or "")


def _sampling(sampling: Sampling) -> dict[str, Any]:
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


def _is_whole(usage: Usage | None) -> bool:
    return usage is not None and None not in (usage.input_tokens, usage.output_tokens)


def _with_cost(reply: ModelReply, *, usd: float | None = None, missing: str = "") -> ModelReply:
    return replace(reply, cost_usd=usd, cost_missing=missing or None)


def _suggest(name: str, litellm: Any, *, server: bool) -> str:
    """Half a sentence with a string that may be the one meant."""
    if server:
        return f"; for a server that speaks OpenAI's protocol: 'hosted_vllm/{name}'"
    head, slash, tail = name.partition("/")
    providers = [str(getattr(p, "value", p)) for p in litellm.provider_list]
    if slash and (near := get_close_matches(head.lower(), providers, n=1, cutoff=0.75)):
        return f"; did you mean '{near[0]}/{tail}'?"
    listed = [key for key in litellm.model_cost if key.rpartition("/")[2] == name and "/" in key]
    if listed:
        return f"; did you mean {min(listed, key=len)!r}?"
    near = get_close_matches(name, list(litellm.model_cost), n=1, cutoff=0.8)
    return f"; did you mean {near[0]!r}?" if near else ""
