"""Loads litellm once, quietly and without network, and knows the providers that are ours."""

from __future__ import annotations

import importlib
import logging
import os
import re
import threading
import warnings
from collections.abc import Mapping
from difflib import get_close_matches
from types import TracebackType
from typing import Any, Final, Protocol, runtime_checkable

OURS: Final = {"axislab": "axislab.models.provider", "axislab-local": "axislab.models.local"}
"""Our litellm providers, and the module whose `register()` makes each known to litellm."""

_NOISY: Final = re.compile(r"(pydantic|litellm|openai|httpx|aiohttp)(\.|$)")
_IGNORED: Final = ("ignore", None, Warning, _NOISY, 0)
"""An entry of `warnings.filters`, put there by hand: `warnings.filterwarnings` would also make
Python forget which warnings of others it has shown already."""
_lock = threading.RLock()
_loaded: list[Any] = []


class _Quiet:
    """Hides warnings of litellm and what is under it while any call is under way.

    litellm works in threads and tasks of its own, where `warnings.catch_warnings` would restore
    the filters in the wrong order; a counted filter cannot.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            current: Any = warnings.filters
            if not current or current[0] != _IGNORED:
                current.insert(0, _IGNORED)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._inside -= 1
            current: Any = warnings.filters  # maybe another list than on the way in
            while not self._inside and _IGNORED in current:
                current.remove(_IGNORED)


quiet: Final = _Quiet()
"""`with quiet:` around whatever imports or calls litellm."""


@runtime_checkable
class OwnProvider(Protocol):
    """What a custom provider of ours says about a model beyond answering for it."""

    def check(self, model: str) -> None:
        """Raise a ModelError if the model cannot answer as things stand."""

    def info(self, model: str) -> Mapping[str, Any]:
        """What identifies the model, for the trace header."""


def load_litellm() -> Any:
    """The litellm module, imported on the first call with everything noisy switched off.

    Nothing is fetched: prices come from litellm's own file, tokenizers from its wheel.
    """
    if _loaded:
        return _loaded[0]
    with _lock:
        if not _loaded:
            # Read while litellm is imported: without it a price list is fetched from the web.
            os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            _hush()  # what it says while it is imported, should the root logger let all through
            with quiet:
                litellm: Any = importlib.import_module("litellm")
            litellm.suppress_debug_info = True
            litellm.disable_hf_tokenizer_download = True
            _hush()
            _loaded.append(litellm)
    return _loaded[0]


def _hush() -> None:
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.ERROR)


def register_provider(name: str, handler: object) -> None:
    """Make a custom provider known to litellm; those of others stay as they are.

    Args:
        name: The part of a model string before the first slash.
        handler: A `litellm.CustomLLM`; it replaces an earlier one of the same name.
    """
    litellm = load_litellm()
    with _lock:
        others = [item for item in litellm.custom_provider_map if item["provider"] != name]
        litellm.custom_provider_map = [*others, {"provider": name, "custom_handler": handler}]


def provider_handler(name: str) -> object | None:
    """The handler registered for a custom provider, or None."""
    for item in load_litellm().custom_provider_map:
        if item["provider"] == name:
            handler: object = item["custom_handler"]
            return handler
    return None


def ensure_provider(model: str) -> None:
    """Register the provider of a model string that is one of ours, unless it is registered."""
    name, slash, _ = model.partition("/")
    if slash and name in OURS:
        with _lock:
            if provider_handler(name) is None:
                importlib.import_module(OURS[name]).register()


def similar_model(name: str, litellm: Any, *, server: bool) -> str:
    """Half a sentence with a string that may be the one meant."""
    if server:
        return f"; for a server that speaks OpenAI's protocol: 'hosted_vllm/{name}'"
    head, slash, tail = name.partition("/")
    providers = [str(getattr(p, "value", p)) for p in litellm.provider_list]
    if slash and tail and (near := get_close_matches(head.lower(), providers, n=1, cutoff=0.75)):
        return f"; did you mean '{near[0]}/{tail}'?"
    listed = [key for key in litellm.model_cost if key.rpartition("/")[2] == name and "/" in key]
    if listed:
        return f"; did you mean {min(listed, key=len)!r}?"
    near = get_close_matches(name, list(litellm.model_cost), n=1, cutoff=0.8)
    return f"; did you mean {near[0]!r}?" if near else ""
