"""A ChatModel for every provider litellm knows."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from axislab.errors import ConfigError, ErrorKind, ModelError
from axislab.messages import Usage
from axislab.models._litellm import (
    OURS,
    OwnProvider,
    ensure_provider,
    load_litellm,
    provider_handler,
    quiet,
    similar_model,
)
from axislab.models.base import ModelReply, ModelRequest
from axislab.models.classify import classify
from axislab.models.deltas import OnDelta
from axislab.models.estimators import MessageCounter, litellm_estimator
from axislab.models.incoming import RawReply, read_reply
from axislab.models.masking import MaskedDeltas, mask_problem, masked_reply, secrets_of, telling
from axislab.models.opening import opened
from axislab.models.outgoing import tools_of, wire_messages, wire_tools
from axislab.models.parameters import (
    RESERVED,
    address_parameters,
    asks_to_think,
    sampling_parameters,
    streaming_parameters,
)
from axislab.models.price import Price, as_price, listed_price, no_price
from axislab.models.profiles import ProviderProfile, profile_named, profile_of
from axislab.models.redact import (
    forget_variables,
    is_secret_name,
    mask_url,
    redact,
    require_url,
)
from axislab.models.request_key import provider_identity
from axislab.models.streamed import read_stream, stream_error
from axislab.models.usage import reported_usage

SIMULATED: Final = "axislab"
"""The provider of the simulated agent."""

_EXAMPLES: Final = (
    "'openai/gpt-4o-mini', 'anthropic/claude-sonnet-4-5', 'gemini/gemini-2.5-flash', "
    "'ollama/llama3.2', 'hosted_vllm/NAME' with api_base=, 'axislab/simulated'"
)
_OF_AN_ADDRESS: Final = {ErrorKind.CONNECTION, ErrorKind.MALFORMED_REPLY, ErrorKind.NOT_FOUND}
"""Errors that may come of a wrong address, which are told with the one given."""
_KEYLESS: Final = frozenset({"bedrock", "bedrock_converse", "sagemaker", "vertex_ai", "ollama"})
"""Providers with other ways to identify themselves, or with no need to."""


class LiteLLMModel:
    """A model by its litellm string.

    litellm is imported by the first check or call, not before.

    Args:
        model: For example "openai/gpt-4o-mini", "ollama/llama3.2", "axislab/simulated".
        api_key: The provider's key; else litellm reads its environment variable.
        api_base: The server's address, where it is not the provider's own.
        price: What tokens cost, where litellm's own list does not say or is wrong.
        profile: What the provider demands of a conversation: a name of `PROFILES` or one of your
            own; by default it follows from the model string.
        timeout: Seconds for one request, a second line behind RetryPolicy.request_timeout.
        extra: Further parameters of every call, passed on as they are.

    Raises:
        ConfigError: No text, no address, or a parameter that axislab sets itself.

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
        price: Price | Mapping[str, float] | None = None,
        profile: ProviderProfile | str | None = None,
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
        if api_base is not None:
            require_url(api_base)
        if api_key is not None and not isinstance(api_key, str):
            raise ConfigError(f"api_key is a {type(api_key).__name__}: give it as text")
        self.price = as_price(price)
        self._profile = profile_named(profile) if isinstance(profile, str) else profile
        if not isinstance(self._profile, ProviderProfile | None):
            raise ConfigError(f"profile={profile!r}: give a ProviderProfile, or a name of PROFILES")
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
        if self._profile is not None:
            out["profile"] = self._profile.model_dump(exclude_defaults=True)
        if self._own:
            ensure_provider(self._name)
            handler = provider_handler(self._name.partition("/")[0])
            if isinstance(handler, OwnProvider):
                out.update(handler.info(self._name))
        return out

    @property
    def profile(self) -> ProviderProfile:
        """What the provider demands of a conversation."""
        if self._profile is not None:
            found = self._profile
        else:
            own_server = self._api_base is not None
            found = profile_of(self._provider, model=self._name, own_server=own_server)
        if found.trailing_assistant != "listed":
            return found
        return found.model_copy(update={"trailing_assistant": self._listed_trailing})

    @cached_property
    def _listed_trailing(self) -> str:
        return "continued" if self._listed.get("supports_assistant_prefill") else "folded"

    @cached_property
    def _listed(self) -> Mapping[str, Any]:
        """The model's entry in litellm's list, empty if it is not listed; looking takes 0.1 ms."""
        try:
            with quiet:
                known: Mapping[str, Any] = load_litellm().get_model_info(self._name)
        except Exception:  # a bare Exception for a model that is not listed
            return {}
        return known

    @property
    def cache_identity(self) -> Mapping[str, Any]:
        """What its replies depend on, beyond its name and the request; for the reply cache."""
        info = dict(self.info) if self._own else {"profile": self.profile.model_dump(mode="json")}
        return provider_identity(self._provider, self._extra, api_base=self._api_base, info=info)

    def tells_secrets(self, text: str) -> bool:
        """True if a key stands in the text, ours or one of the environment."""
        return redact(text, self._secrets()) != text

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

    def estimator(self) -> MessageCounter | None:
        """Counts prompts as the model's provider is thought to; None is by characters."""
        return litellm_estimator(self._name)

    def list_price(self, *, prompt: int = 0) -> Price | None:
        """The price given, else the one of litellm's list; None if neither says.

        Args:
            prompt: Input tokens of the request: some providers ask more above a length.
        """
        if self.price is not None:
            return self.price
        self.check()
        return listed_price(self._listed, prompt=prompt)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request with one request on the wire.

        Raises:
            ModelError: No reply; its kind says why.
        """
        await self._ready()
        raw = RawReply()
        try:
            with quiet:
                # No variable here holds the arguments: tracebacks may show it, with the key.
                response = await opened(
                    load_litellm().acompletion(**self._arguments(request), logger_fn=raw.see)
                )
        except Exception as problem:  # litellm raises what any provider's code raises
            error = classify(problem, model=self._name, secrets=self._secrets())
            forget_variables(problem)
            raise self._billed(error, raw) from None
        return self._read(response, raw)

    async def stream(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        """The same with a streamed answer, of which every piece is told.

        Args:
            request: What is asked.
            on_delta: Hears the pieces.

        Raises:
            ModelError: No reply, or a part of one; its kind says why.
        """
        await self._ready()
        raw = RawReply()
        streaming = streaming_parameters(self._name, self._provider)
        hear = MaskedDeltas(on_delta, self._telling) if self._telling else on_delta
        begun = False
        try:
            with quiet:
                response = await opened(
                    load_litellm().acompletion(**self._arguments(request), **streaming)
                )
                begun = True
                response = await read_stream(response, raw=raw, model=self._name, on_delta=hear)
        except Exception as problem:  # litellm raises what any provider's code raises
            judge = stream_error if begun else classify
            error = judge(problem, model=self._name, secrets=self._secrets())
            forget_variables(problem)
            raise self._billed(error, raw, part=True) from None
        return self._read(response, raw)

    async def _ready(self) -> None:
        if not self._checked:
            # The import takes seconds; in a thread the event loop goes on meanwhile.
            await asyncio.to_thread(self.check)

    def _read(self, response: Any, raw: RawReply) -> ModelReply:
        try:
            reply = read_reply(response, model=self._name, raw=raw)
        except ModelError as error:
            raise self._billed(error, raw) from None
        return self._priced(reply, response)

    def _arguments(self, request: ModelRequest) -> dict[str, Any]:
        """All parameters of the litellm call but `logger_fn`."""
        tools = request.tools
        profile = self.profile
        if not tools and profile.declares_tools:
            tools = tools_of(request.messages)
        out = {**self._extra, **sampling_parameters(request.sampling)}
        out.update(
            model=self._name,
            messages=wire_messages(
                request.messages, tools=tools, profile=profile, thinking=asks_to_think(out)
            ),
            timeout=self._timeout,
            max_retries=0,  # else one call is up to three requests, and none of them counted
        )
        if tools:
            out["tools"] = wire_tools(tools)
        if self._api_key is not None:
            out["api_key"] = self._api_key
        if self._api_base is not None:
            where = address_parameters(self._api_base, self._extra, provider=self._provider)
            out.update(where)
        if self.simulated and request.draw:
            out["axislab_draw"] = request.draw
        return out

    def _billed(self, error: ModelError, raw: RawReply, *, part: bool = False) -> ModelError:
        """The error, with what the provider says it was billed for all the same."""
        if error.original is not None:
            mask_problem(error.original, self._secrets())
        if error.kind in _OF_AN_ADDRESS and self._api_base:
            error.args = (f"{error} (at {mask_url(self._api_base)})",)
        usage = reported_usage(raw.usage)
        if usage is not None and part:  # what it took up to where it broke; the price is open
            error.usage = replace(usage, estimated=True)
        elif usage is not None:
            price = self.list_price(prompt=usage.input_tokens or 0)
            error.usage, error.cost_usd = usage, None if price is None else price.of(usage)
        return error

    def _priced(self, reply: ModelReply, response: Any) -> ModelReply:
        """The reply with its cost, or with the reason why there is none; and without secrets."""
        reply = masked_reply(reply, self._telling)
        if not _is_whole(reply.usage):
            return _with_cost(reply, missing="the provider did not report the tokens")
        if self.price is not None:
            return _with_cost(reply, usd=self.price.of(reply.usage))
        hidden = getattr(response, "_hidden_params", None) or {}
        cost = hidden.get("response_cost")
        if isinstance(cost, int | float) and not self._own:
            return _with_cost(reply, usd=float(cost))  # its list has steps ours has not
        told = reply.usage.input_tokens if reply.usage else None
        if (price := self.list_price(prompt=told or 0)) is not None:
            return _with_cost(reply, usd=price.of(reply.usage))
        return _with_cost(reply, missing=no_price(self._name, simulated=self.simulated))

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
        hint = similar_model(self._name, litellm, server=self._api_base is not None)
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

    def _secrets(self) -> tuple[str, ...]:
        return secrets_of(api_key=self._api_key, api_base=self._api_base, extra=self._extra)

    @cached_property
    def _telling(self) -> tuple[str, ...]:
        return telling(self._secrets())


def _is_whole(usage: Usage | None) -> bool:
    return usage is not None and None not in (usage.input_tokens, usage.output_tokens)


def _with_cost(reply: ModelReply, *, usd: float | None = None, missing: str = "") -> ModelReply:
    return replace(reply, cost_usd=usd, cost_missing=missing or None)
