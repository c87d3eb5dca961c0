"""The ids that tool calls bear on the wire: the provider's own wherever it takes them back."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence

from axislab.messages import ToolCall
from axislab.models.profiles import ProviderProfile

_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class CallIds:
    """Gives the calls of one conversation their ids, in order, and remembers them."""

    def __init__(self, profile: ProviderProfile) -> None:
        self._pattern = None if profile.id_pattern is None else re.compile(profile.id_pattern)
        self._length = profile.id_length
        self._once = profile.unique_ids == "conversation"
        self._sent: dict[str, str] = {}
        self._taken: set[str] = set()

    def of(self, own: str) -> str:
        """The id under which a call of ours was sent; ours if it was not."""
        return self._sent.get(own, own)

    def give(self, calls: Sequence[ToolCall]) -> list[str]:
        """The ids for the calls of one message.

        The provider's, or ours where it gave none, gave it twice, or takes it back no more.
        """
        given = [call.provider_id for call in calls]
        again = {name for name, count in Counter(given).items() if count > 1} if given[1:] else ()
        kept = {
            name
            for name in given
            if name
            and name not in again
            and self._fits(name)
            and not (self._once and name in self._taken)
        }
        ids: list[str] = []
        for index, call in enumerate(calls):
            if call.provider_id in kept and call.provider_id:
                ids.append(call.provider_id)
            else:
                ids.append(self._own(call.id or f"call_{index}", {*kept, *ids}))
        self._taken.update(ids)
        self._sent.update(zip((call.id for call in calls), ids, strict=True))
        return ids

    def _fits(self, name: str) -> bool:
        """True if the provider takes it, and if it can be sent at all: no lone surrogates."""
        try:
            name.encode()
        except UnicodeEncodeError:
            return False
        return self._pattern is None or self._pattern.fullmatch(name) is not None

    def _own(self, own: str, others: set[str]) -> str:
        wire = self._shaped(own)
        while wire in others or wire in self._taken:
            own += "_"
            wire = self._shaped(own)
        return wire

    def _shaped(self, name: str) -> str:
        """The name, or letters and digits made of it: the same in every request."""
        if self._fits(name):
            return name
        digest = hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=26).digest()
        return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest)[: self._length]
