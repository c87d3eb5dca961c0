"""Collects what an exception of a model call, and those under it, tell about what happened."""

from __future__ import annotations

import email.utils
import json
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from axislab.borders import text_of

_WRAPPERS: Final = frozenset(
    {"litellm", "openai", "anthropic", "httpx", "httpcore", "aiohttp", "axislab"}
)
_PREFIX: Final = re.compile(r"^(?:(?:litellm\.)?[A-Za-z_]*(?:Error|Exception|Timeout)\s?[:-]\s+)+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known of an exception and those under it."""

    names: frozenset[str]
    """Class names, bases included."""
    status: int | None
    """HTTP status that came over the wire."""
    claimed: int | None
    """Status the outermost exception carries; litellm makes some up."""
    codes: frozenset[str]
    """The provider's own codes and types."""
    text: str
    """All messages."""
    message: str
    """The one to show."""
    headers: Mapping[str, str]


def chain(problem: BaseException) -> Iterator[BaseException]:
    """The exception and those it was made from, outermost first."""
    seen: set[int] = set()
    link: BaseException | None = problem
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        cause = link.__cause__ or getattr(link, "original_exception", None)
        # A context is evidence only where a client library wraps; elsewhere it may be anything.
        if cause is None and type(link).__module__.partition(".")[0] in _WRAPPERS:
            cause = link.__context__
        link = cause if isinstance(cause, BaseException) else None


_VAGUE: Final = re.compile(r"connection error\.?", re.IGNORECASE)
_OBJECT: Final = re.compile(r" ?\w*:?<[^<>]{1,200} at 0x[0-9a-fA-F]+>")
"""The repr of an object: its address makes equal errors look different."""


def collect(problem: BaseException) -> Evidence:
    """Collect what the exception and those under it tell."""
    links = list(chain(problem))
    bodies = [body for link in links for body in _bodies(link)]
    texts = list(dict.fromkeys(text_of(link) for link in links))
    told = next((b["message"] for b in bodies if isinstance(b.get("message"), str)), "")
    return Evidence(
        names=frozenset(cls.__name__ for link in links for cls in type(link).__mro__),
        status=next((s for s in map(_wire_status, links) if s is not None), None),
        claimed=_integer(getattr(problem, "status_code", None)),
        codes=frozenset(_codes(links, bodies)),
        text="\n".join([*texts, told]),
        message=_plain(told or _with_cause(_own_words(problem), links)),
        headers=_headers(links),
    )


def _own_words(problem: BaseException) -> str:
    """What it says, with its type where that tells more than a wrapper's."""
    text = text_of(problem)
    if type(problem).__module__.partition(".")[0] in _WRAPPERS:
        return _PREFIX.sub("", text) or type(problem).__name__
    return f"{type(problem).__name__}: {text}" if text else type(problem).__name__


def _with_cause(words: str, links: Sequence[BaseException]) -> str:
    """The words; where a client says no more than that there was a fault, with what was below."""
    if not _VAGUE.fullmatch(words):
        return words
    below = (text_of(link) for link in reversed(links[1:]))
    cause = next((text for text in below if text and words not in text), None)
    return f"{words.rstrip('.')}: {cause}" if cause else words


def _bodies(link: BaseException) -> Iterator[Mapping[str, Any]]:
    """The provider's error object and those inside it; many clients only quote it in the text."""
    body = getattr(link, "body", None)
    if not isinstance(body, Mapping):
        body = _quoted(text_of(link))
    while isinstance(body, Mapping):
        yield body
        body = body.get("error") or body.get("innererror")


def _quoted(text: str) -> object:
    start = text.find("{")
    if start < 0:
        return None
    try:
        return json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return None


def _codes(links: Iterable[BaseException], bodies: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for link in links:
        yield from (str(getattr(link, name, None) or "") for name in ("code", "type"))
    for body in bodies:
        yield from (str(body.get(name) or "") for name in ("code", "type", "status"))


def _wire_status(link: BaseException) -> int | None:
    names = {cls.__name__ for cls in type(link).__mro__}
    if names & {"HTTPStatusError", "APIStatusError"} and not _is_litellm(link):
        return _integer(getattr(getattr(link, "response", None), "status_code", None))
    if "ClientResponseError" in names:
        return _integer(getattr(link, "status", None))
    return None


def _is_litellm(link: BaseException) -> bool:
    return type(link).__module__.startswith("litellm.exceptions")  # makes statuses up


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _headers(links: Iterable[BaseException]) -> dict[str, str]:
    found: dict[str, str] = {}
    for link in links:
        for source in (
            getattr(link, "litellm_response_headers", None),
            getattr(getattr(link, "response", None), "headers", None),
        ):
            if isinstance(source, Mapping):
                for name, value in source.items():
                    found.setdefault(str(name).lower(), str(value))
    return found


def _plain(text: str) -> str:
    told = _OBJECT.sub("", text.split("Traceback (most recent call last)")[0])
    return " ".join(told.split())


_WAIT: Final = re.compile(
    r"(?:try|retry)(?: again)? in (?:(?P<h>\d+)h)?(?:(?P<m>\d+)m(?!s))?"
    r"(?:(?P<s>\d+(?:\.\d+)?) ?s)?(?:(?P<ms>\d+(?:\.\d+)?) ?ms)?",
    re.IGNORECASE,
)
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def retry_after(seen: Evidence, *, now: Callable[[], float] = time.time) -> float | None:
    """Seconds the provider asks to wait, by its headers or else its words; None if it does not."""
    in_ms = _float(seen.headers.get("retry-after-ms"))
    if in_ms is not None:
        return max(0.0, in_ms / 1000)
    value = seen.headers.get("retry-after")
    seconds = _float(value)
    if seconds is not None:
        return max(0.0, seconds)
    if value:
        try:
            return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - now())
        except (TypeError, ValueError):
            pass
    for found in _WAIT.finditer(seen.text):
        parts = [float(v) * _SECONDS[k] for k, v in found.groupdict().items() if v]
        if parts:
            return sum(parts)
    return None


def _float(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None
