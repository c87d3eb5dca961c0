"""The key of a request: one digest of all that decides its reply, and of nothing that does not.

In it are the model's name and its `cache_identity` (address, parameters, weights; never a key),
the messages, the tools, the sampling, and the request's draw: seed, task, repeat, arm unless the
arms are coupled, purpose, and how often it was sent. So a cell that runs again has the keys it
had, while repeats, seeds and the arms of a study have keys of their own.

Ids of tool calls are random words of a provider: they count by their order of appearance, which
keeps what matters, namely which result answers which call. A retry has the key of the first try,
because a try that failed has left no reply.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Final, Protocol, runtime_checkable

from axislab.messages import Json, Message, Role, ToolCall
from axislab.models.base import ChatModel, ModelRequest
from axislab.models.redact import MASK, is_secret_name, mask_url

CACHE_SCHEMA: Final = 1
"""Part of every key: with another number, nothing that was kept before is found."""

RETRY: Final = re.compile(r"(:\d+)#\d+$")
"""The end of a run's draw after the first attempt: `call_model` appends the attempt's number."""

_ADDRESSES: Final = ("API_BASE", "BASE_URL", "API_URL", "ENDPOINT", "HOST", "API_VERSION")
_MORE_OF_MESSAGES: Final = tuple(
    f.name
    for f in fields(Message)
    if f.name not in ("role", "content", "tool_calls", "tool_call_id")
)
_MORE_OF_CALLS: Final = tuple(
    f.name for f in fields(ToolCall) if f.name not in ("id", "provider_id")
)


@runtime_checkable
class Identified(Protocol):
    """A model that says what its replies depend on, beyond its name and the request."""

    @property
    def cache_identity(self) -> Mapping[str, Any]:
        """Address and parameters, without anything secret."""


def request_key(model: ChatModel, request: ModelRequest, *, sent: int = 1) -> str:
    """The key of a request: 64 hexadecimal digits, which tell nothing of what is in it.

    Two replies with one key are one draw: they are copies, not independent observations.

    Args:
        model: Who is asked.
        request: What.
        sent: How many times a run has come to a request with this content and draw, from 1.

    Examples:
        >>> from axislab.models.scripted import ScriptedModel
        >>> request = ModelRequest(messages=[Message.user("What is 2 + 2?")], draw="a:main_loop:1")
        >>> key = request_key(ScriptedModel(["4"]), request)
        >>> key == request_key(ScriptedModel(["4"]), request)
        True
    """
    return key_of(identity_of(model), request, sent=sent)


def key_of(identity: str, request: ModelRequest, *, sent: int = 1) -> str:
    """The same for a model whose identity is known.

    Args:
        identity: What `identity_of` gave.
        request: What is asked.
        sent: How many times, from 1.
    """
    sampling = request.sampling.model_dump()
    extra = sampling.pop("extra")
    content = [
        CACHE_SCHEMA,
        identity,
        _messages(request.messages),
        [tool.to_dict() for tool in request.tools],
        sorted(sampling.items()),
        [[name, plain(value)] for name, value in sorted(extra.items())],
        request.purpose,
        RETRY.sub(r"\1", request.draw),
        sent,
    ]
    return _digest(content)


def identity_of(model: ChatModel) -> str:
    """A digest of what a model is, so far as its replies depend on it."""
    told = model.cache_identity if isinstance(model, Identified) else model.info
    return _digest([type(model).__qualname__, model.name, plain(told)])


def provider_identity(
    provider: str, extra: Mapping[str, Any], *, api_base: str | None, info: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The `cache_identity` of a model behind litellm.

    Args:
        provider: litellm's name of it.
        extra: Parameters of every call; those with a secret's name are left out.
        api_base: The address given, if any; else the environment and litellm are asked for it.
        info: What the model says of itself.
    """
    base = [api_base] if api_base else _addresses(provider)
    return {
        "api_base": [_bare(part) for part in base],
        "extra": {name: without_secrets(extra[name]) for name in sorted(_open(extra))},
        "info": info,
    }


def plain(value: object) -> Json:
    """A value as JSON that is the same for the same value; the order of keys is kept."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return ["set", *sorted(repr(item) for item in value)]
    schema = getattr(value, "model_json_schema", None)
    if isinstance(value, type) and callable(schema):
        return [value.__qualname__, schema()]  # a class keeps its name when it is edited
    return [type(value).__qualname__, repr(value)]


def without_secrets(value: object) -> object:
    """The value without the entries that have a secret's name, at any depth."""
    if not isinstance(value, Mapping):
        return value
    return {key: without_secrets(value[key]) for key in _open(value)}


def _open(values: Mapping[str, Any]) -> Iterable[str]:
    """Names that hide nothing; a mapping with a secret's name, such as headers, is looked into."""
    return [
        key
        for key, value in values.items()
        if isinstance(value, Mapping) or not is_secret_name(str(key))
    ]


def _bare(url: str) -> str:
    """The address without user and password."""
    return mask_url(url).replace(f"//{MASK}@", "//").rstrip("/")


def _addresses(provider: str) -> list[str]:
    """Where requests go if the user gave no address: all that may say so."""
    prefix = re.sub(r"\W", "_", provider).upper()
    found = [os.environ.get(f"{prefix}_{suffix}") for suffix in _ADDRESSES]
    found.append(getattr(sys.modules.get("litellm"), "api_base", None))
    return [text for text in found if text]


def _messages(messages: Iterable[Message]) -> list[Json]:
    places: dict[str, int] = {}
    rows: list[Json] = []
    for message in messages:
        if message.role is Role.RUNTIME:
            continue  # a marker is never sent
        calls = [
            [places.setdefault(call.id, len(places)), *_more(call, _MORE_OF_CALLS)]
            for call in message.tool_calls
        ]
        answers = message.tool_call_id
        place = None if answers is None else places.setdefault(answers, len(places))
        more = _more(message, _MORE_OF_MESSAGES)
        rows.append([str(message.role), message.content, calls, place, *more])
    return rows


def _more(item: Message | ToolCall, names: tuple[str, ...]) -> list[Json]:
    return [plain(getattr(item, name)) for name in names]


def _digest(content: Json) -> str:
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()
