"""Takes the secrets a model was given out of what came back: its replies, and its exceptions.

A server may quote a key, in an error or in a reply. An error's text is for people, so everything
that looks like a secret is masked. A reply is data: only secrets that were used, and that no
text holds by chance, are replaced in it, and all else stays as the model wrote it.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import unquote

from axislab.models.base import ModelReply
from axislab.models.deltas import Delta, DeltaKind, OnDelta
from axislab.models.redact import (
    MASK,
    is_secret_name,
    is_secret_variable,
    links_of,
    redact,
    secret_place,
    url_secrets,
)

_TELLING: Final = re.compile(r"(?=.*\d)(?!\d{4}-\d\d)(?!https?://).{10,}", re.DOTALL)
"""A text that is a secret wherever it stands; a key such as "none", a date, a region or an address
is not."""
_TEXTS: Final = (
    "text",
    "reasoning",
    "signed_reasoning",
    "finish_reason",
    "request_id",
    "model",
)


def secrets_of(
    *, api_key: str | None, api_base: str | None, extra: Mapping[str, Any]
) -> tuple[str, ...]:
    """The secrets among what a model was given, in every form in which they go out.

    Args:
        api_key: The key.
        api_base: The address, perhaps with a user, a password or a query.
        extra: Further parameters; those with a secret's name count, at any depth.
    """
    found = [api_key or "", *_inside(extra)]
    parts = url_secrets(api_base or "")
    found += [*parts, *map(unquote, parts)]
    # A user and password become a header.
    found += [base64.b64encode(unquote(part).encode()).decode() for part in parts if ":" in part]
    return tuple(dict.fromkeys(filter(None, found)))


def telling(secrets: Iterable[str]) -> tuple[str, ...]:
    """Those of the secrets, and of the environment's, that are masked in replies; longest first."""
    given = [value for name, value in os.environ.items() if is_secret_variable(name)]
    return tuple(sorted(filter(_TELLING.fullmatch, {*secrets, *given}), key=len, reverse=True))


def masked_reply(reply: ModelReply, secrets: Iterable[str]) -> ModelReply:
    """The reply without the secrets; itself if there are none in it.

    Args:
        reply: As it was read.
        secrets: From `telling`.
    """
    texts = [getattr(reply, name) for name in _TEXTS]
    texts += [text for call in reply.tool_calls for text in (call.name, call.arguments)]
    texts += [call.provider_id for call in reply.tool_calls]
    held = [secret for secret in secrets if any(text and secret in text for text in texts)]
    if not held:
        return reply

    def clear(text: Any) -> Any:
        for secret in held:
            text = text.replace(secret, MASK) if text else text
        return text

    calls = tuple(
        replace(
            call,
            name=clear(call.name),
            arguments=clear(call.arguments),
            provider_id=clear(call.provider_id),
        )
        for call in reply.tool_calls
    )
    fields = {name: clear(getattr(reply, name)) for name in _TEXTS}
    return replace(reply, tool_calls=calls, **fields)


class MaskedDeltas:
    """Passes on the pieces of a reply without the secrets in it, also one that is cut in two.

    What may be the beginning of a secret waits for the next piece. What waits at the end is told
    with the whole reply, as everything is that the pieces lack.

    Args:
        on_delta: Hears the pieces.
        secrets: From `telling`.
    """

    def __init__(self, on_delta: OnDelta, secrets: tuple[str, ...]) -> None:
        self._on_delta = on_delta
        self._secrets = secrets
        self._held: dict[tuple[DeltaKind, int], str] = {}

    def __call__(self, delta: Delta) -> None:
        """Hear one piece."""
        if delta.kind is DeltaKind.AGAIN:
            self._held.clear()
        part = (delta.kind, delta.number)
        text = self._held.pop(part, "") + delta.text
        sure = _sure(text, self._secrets)
        if sure < len(text):
            self._held[part], text = text[sure:], text[:sure]
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        if text or not delta.text:
            self._on_delta(replace(delta, text=text))


def _sure(text: str, secrets: Iterable[str]) -> int:
    """How many characters at the beginning of a text cannot be a part of a secret to come.

    A secret that is there already may be the beginning of a longer one, or end like one begins:
    none is cut in two.
    """
    known = tuple(secrets)
    sure = len(text) - max((_begun(text, secret) for secret in known), default=0)
    again = True
    while again:
        again = False
        for secret in known:
            at = text.find(secret, max(0, sure - len(secret) + 1))
            if 0 <= at < sure < at + len(secret):
                sure, again = at, True
    return sure


def _begun(text: str, secret: str) -> int:
    """How many characters at the end of a text are the beginning of a secret."""
    most = min(len(text), len(secret) - 1)
    return next((n for n in range(most, 0, -1) if secret.startswith(text[-n:])), 0)


def mask_problem(problem: BaseException, secrets: Iterable[str]) -> None:
    """Take secrets out of the texts of an exception, and of those under it.

    Args:
        problem: What a provider's client raised; a notebook may show any of its attributes.
        secrets: Texts that must not be in it.
    """
    hidden = tuple(secrets)
    for link in links_of(problem):
        link.args = tuple(_masked(part, hidden) for part in link.args)
        own: dict[str, Any] = getattr(link, "__dict__", {})
        for name, value in own.items():
            own[name] = _masked(value, hidden)


def _masked(value: Any, secrets: tuple[str, ...]) -> Any:
    """A value with its texts masked; what is not made of plain JSON is left alone."""
    if isinstance(value, str):
        return redact(value, secrets)
    if type(value) is dict:
        return {key: _masked(part, secrets) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_masked(part, secrets) for part in value)
    return value


def _inside(value: object) -> Iterator[str]:
    """The texts in a value that stand under a secret's name, or have its shape."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _texts(part) if is_secret_name(str(name)) else _inside(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _inside(part)
    elif isinstance(value, str) and secret_place(value, "") is not None:
        yield value


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
