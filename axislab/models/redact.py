"""Keeps keys and credentials out of reprs, headers and error messages."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from axislab.errors import ConfigError

MASK: Final = "***"
_SECRET_NAME: Final = re.compile(
    r"key|token(?!s|_id|iz)|secret|passw|credential|auth|cookie|header|signature", re.IGNORECASE
)
_SECRET_ENV: Final = re.compile(r"(API_?KEY|TOKEN|SECRET|PASSWORD|ACCESS_KEY(_ID)?)$")
_KEY_SHAPES: Final = re.compile(
    r"\b(?:sk|gsk|xai|hf)[-_][A-Za-z0-9_\-*.]{8,}|\bAIza[A-Za-z0-9_\-]{20,}"
    r"|(?<=Bearer )[A-Za-z0-9._\-]{8,}"
)
_CERTAIN_NAME: Final = re.compile(
    r"api.?key|access.?key|^key$|secret|passw|credential|authorization|cookie"
    r"|^(?:(?:access|api|auth|bearer|id|refresh|session)[_-]?)?token$",
    re.IGNORECASE,
)
_SHORTEST: Final = 4
_SHORTEST_ENV: Final = 8
"""Shorter texts are not masked: they would take half the message with them."""


def is_secret_name(name: str) -> bool:
    """Does a parameter of this name hold something that must not be shown?"""
    return bool(_SECRET_NAME.search(name))


def is_secret_variable(name: str) -> bool:
    """Does a variable of the environment of this name hold something that must not be shown?"""
    return bool(_SECRET_ENV.search(name))


def require_url(url: object) -> None:
    """An address has a scheme and a host; without, what is secret in it could not be told.

    Raises:
        ConfigError: It has not; the message shows none of it that may be secret.
    """
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        if parts is not None and parts.scheme and parts.hostname and parts.port != 0:
            return
    except ValueError:  # half an IPv6 address, or a port out of range
        pass
    shown = f"…{str(url).rpartition('@')[2].partition('?')[0]}"
    raise ConfigError(
        f"api_base={shown!r} is no address: write scheme, host and path, "
        "such as 'http://localhost:8000/v1'"
    )


def secret_place(value: object, place: str) -> str | None:
    """Where in a value of JSON a secret stands, by its name or its shape; None if none does."""
    if isinstance(value, str):
        return place if _KEY_SHAPES.search(value) else None
    if isinstance(value, Mapping):
        for name, part in value.items():
            inner = f"{place}.{name}"
            if isinstance(part, str) and _CERTAIN_NAME.search(str(name)):
                return inner
            if (found := secret_place(part, inner)) is not None:
                return found
    if isinstance(value, list | tuple):
        parts = (secret_place(part, f"{place}[{n}]") for n, part in enumerate(value))
        return next((found for found in parts if found is not None), None)
    return None


def mask_url(url: str) -> str:
    """The address with user, password and the values of its query masked."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")
    netloc = f"{MASK}@{host[2]}" if host[1] else parts.netloc
    query = re.sub(r"=[^&]*", f"={MASK}", parts.query)
    return urlunsplit((parts.scheme, netloc, parts.path, query, ""))


def url_secrets(url: str) -> list[str]:
    """The parts of an address that `mask_url` hides."""
    parts = urlsplit(url)
    found = [parts.netloc.rpartition("@")[0], parts.username or "", parts.password or ""]
    return [*found, *(value for value in re.findall(r"=([^&]+)", parts.query))]


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without the given secrets, keys in the environment or anything shaped like a key."""
    hidden = {secret for secret in secrets if len(secret) >= _SHORTEST}
    for name, value in os.environ.items():
        if len(value) >= _SHORTEST_ENV and is_secret_variable(name):
            hidden.add(value)
    for secret in sorted(hidden, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return _KEY_SHAPES.sub(MASK, text)


def forget_variables(problem: BaseException) -> None:
    """Empty the frames an exception, and those under it, came through; their lines stay.

    A provider's client has the key in a dozen variables, and a notebook may show those of a
    traceback. They also hold requests and connections for as long as a failed run is kept.
    """
    for link in links_of(problem):
        traceback.clear_frames(link.__traceback__)


def links_of(problem: BaseException) -> Iterator[BaseException]:
    """An exception, and all those under it that a traceback or a notebook may show."""
    seen: set[int] = set()
    links: list[BaseException | None] = [problem]
    while links:
        link = links.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        original = getattr(link, "original_exception", None)
        links += [link.__cause__, link.__context__]
        links.append(original if isinstance(original, BaseException) else None)
