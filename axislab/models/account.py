"""Accounts of what is spent, and ceilings on it that reservations keep.

Safe for threads and event loops. All figures are tokens, or US dollars.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Final

from axislab.errors import ErrorKind, ModelError

_MOST_OFF: Final = 4.0
"""An estimate is multiplied by this at most; what goes beyond is added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What was spent so far.

    Examples:
        >>> Spent(requests=1, input_tokens=60, output_tokens=5).tokens
        65
    """

    requests: int = 0
    """Requests that have ended, failed ones included."""
    input_tokens: int = 0
    output_tokens: int = 0
    assumed_tokens: int = 0
    """Those of all tokens that no provider reported: counted by us."""
    known_usd: float = 0.0
    """US dollars of the requests whose cost is known; under a ceiling in US dollars, for one whose
    cost was not reported, the most it can have been."""
    unpriced: int = 0
    """Requests that used tokens and whose cost is not known."""
    left_tokens: int | None = None
    """Tokens up to the nearest ceiling, less what is reserved; None without one."""
    left_usd: float | None = None
    """US dollars up to the nearest ceiling, less what is reserved; None without one."""

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    @property
    def usd(self) -> float | None:
        """US dollars; None if the cost of a request is not known."""
        return None if self.unpriced else self.known_usd

    def __str__(self) -> str:
        cost = "cost unknown" if self.usd is None else f"{self.usd:.4f} USD"
        if self.usd is None and self.known_usd:
            cost = f"{self.known_usd:.4f} USD and {self.unpriced} requests of unknown cost"
        parts = [f"{self.requests:,} requests", f"{self.tokens:,} tokens", cost]
        if self.left_tokens is not None:
            parts.append(f"{self.left_tokens:,} tokens left")
        if self.left_usd is not None:
            parts.append(f"{self.left_usd:.4f} USD left")
        return " · ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a request takes at most, as far as its prompt's estimate is right."""

    input_tokens: int
    output_tokens: int
    usd: float | None = None

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Margin:
    """How far prompts were above their estimates at most: a factor, and what it leaves over.

    Examples:
        >>> Margin().after(100, 130).over(200)
        260
    """

    factor: float = 1.0
    extra: int = 0
    """Tokens: a provider may put a long text of its own before a short prompt."""

    def over(self, guess: int) -> int:
        """The tokens a prompt of that estimate may have."""
        return math.ceil(guess * self.factor) + self.extra

    def after(self, guess: int, observed: int) -> Margin:
        """The margin after one more prompt was counted."""
        off = min(observed / max(guess, 1), _MOST_OFF)
        left = observed - math.ceil(guess * _MOST_OFF)
        return Margin(max(self.factor, off), max(self.extra, left))


class Account:
    """What was spent, what is reserved, and how much may be.

    Args:
        tokens: Ceiling on input and output tokens together.
        usd: Ceiling in US dollars.
    """

    def __init__(self, *, tokens: int | None = None, usd: float | None = None) -> None:
        self.tokens = tokens
        self.usd = usd
        self.spent = Spent()
        self.reserved_tokens = 0
        self.reserved_usd = 0.0
        self.holds = 0
        """Reservations that are open."""

    @property
    def bounded(self) -> bool:
        """Whether it has a ceiling."""
        return self.tokens is not None or self.usd is not None

    def left_tokens(self, *, reserved: bool = True) -> int | None:
        """Tokens up to the ceiling; `reserved=False` as if nothing were reserved."""
        if self.tokens is None:
            return None
        return self.tokens - self.spent.tokens - (self.reserved_tokens if reserved else 0)

    def left_usd(self, *, reserved: bool = True) -> float | None:
        """US dollars up to the ceiling, likewise."""
        if self.usd is None:
            return None
        return self.usd - self.spent.known_usd - (self.reserved_usd if reserved else 0.0)

    def fits(self, need: Need, *, reserved: bool = True) -> bool:
        """Whether there is room for a request."""
        tokens, usd = self.left_tokens(reserved=reserved), self.left_usd(reserved=reserved)
        if tokens is not None and need.tokens > tokens:
            return False
        return usd is None or (need.usd is not None and need.usd <= usd)

    def hold(self, need: Need, sign: int) -> None:
        """Reserve (1) or release (-1)."""
        self.holds += sign
        self.reserved_tokens += sign * need.tokens
        # Without open reservations nothing is reserved; a sum of floats may say otherwise.
        self.reserved_usd = self.reserved_usd + sign * (need.usd or 0.0) if self.holds else 0.0

    def refusal(self, need: Need) -> str:
        """Why there is no room, and what to do."""
        size = f"{need.tokens:,} tokens (a prompt of about {need.input_tokens:,}, a reply of up to "
        size += f"{need.output_tokens:,})"
        if self.tokens is not None and need.tokens > self.tokens - self.spent.tokens:
            left, of = f"{self.left_tokens():,}", f"{self.tokens:,} tokens"
            knob = "tokens"
        else:
            size = f"{need.usd or 0:.4g} USD: {size}"
            left, of, knob = f"{self.left_usd() or 0:.4g}", f"{self.usd:.4g} USD", "usd"
        return (
            f"the lab's budget: the next request may take {size}, and {left} of {of} are left; "
            f"nothing was sent. Raise lab.budget({knob}=…) or lower max_output_tokens"
        )


class Ledger:
    """The accounts of a lab: one over everything, and one for each ceiling in force."""

    def __init__(self) -> None:
        self.total = Account()
        self._lock = threading.Lock()
        self._plain: Account | None = None
        self._blocks: tuple[Account, ...] = ()
        self._waiting: list[Future[None]] = []
        self._margins: dict[str, Margin] = {}
        """By model."""

    @property
    def ceilings(self) -> tuple[Account, ...]:
        """Those that runs started now are under."""
        return self._blocks if self._plain is None else (self._plain, *self._blocks)

    def stand(self, account: Account) -> Account | None:
        """Put a ceiling in the place of the one that stands; that one."""
        with self._lock:
            former, self._plain = self._plain, account
        return former

    def enter(self, account: Account, *, former: Account | None) -> None:
        """Make a ceiling that stands one of a block, beside the one it had replaced."""
        with self._lock:
            if self._plain is account:
                self._plain = former
            self._blocks = (*self._blocks, account)

    def lift(self, account: Account) -> None:
        """Take a ceiling off."""
        with self._lock:
            if self._plain is account:
                self._plain = None
            self._blocks = tuple(one for one in self._blocks if one is not account)

    def spent(self, account: Account | None = None) -> Spent:
        """What one account, or the lab, has spent, and what the ceilings leave."""
        with self._lock:
            over = (account,) if account is not None else self.ceilings
            tokens = [left for c in over if (left := c.left_tokens()) is not None]
            usd = [dollars for c in over if (dollars := c.left_usd()) is not None]
            return replace(
                (account or self.total).spent,
                left_tokens=max(0, min(tokens)) if tokens else None,
                left_usd=max(0.0, min(usd)) if usd else None,
            )

    def prompt_at_most(self, model: str, guess: int) -> int:
        """The tokens a prompt may have, going by how far estimates were off so far."""
        return self._margins.get(model, Margin()).over(guess)

    def try_hold(self, need: Need, accounts: Sequence[Account]) -> Future[None] | None:
        """Reserve in all accounts or none; a future says when to try again.

        Raises:
            ModelError: BUDGET: there would not be room even if nothing else were reserved.
        """
        with self._lock:
            for account in accounts:
                # What is reserved may come back, so it is no reason to end a run.
                if not account.fits(need, reserved=False):
                    raise ModelError(account.refusal(need), kind=ErrorKind.BUDGET)
            if all(account.fits(need) for account in accounts):
                for account in accounts:
                    account.hold(need, 1)
                return None
            turn: Future[None] = Future()
            self._waiting.append(turn)
            return turn

    def hold(self, need: Need, accounts: Sequence[Account]) -> None:
        """Reserve whatever room there is."""
        with self._lock:
            for account in accounts:
                account.hold(need, 1)

    def learn(self, model: str, *, guess: int, observed: int) -> None:
        """Take in how many tokens a prompt had."""
        with self._lock:
            self._margins[model] = self._margins.get(model, Margin()).after(guess, observed)

    def settle(self, need: Need, spent: Spent, accounts: Sequence[Account]) -> None:
        """Release a reservation and book what was spent."""
        with self._lock:
            for account in accounts:
                account.hold(need, -1)
                account.spent = _sum(account.spent, spent)
            woken, self._waiting = self._waiting, []
        for turn in woken:
            if turn.set_running_or_notify_cancel():
                turn.set_result(None)


def _sum(one: Spent, other: Spent) -> Spent:
    return Spent(
        requests=one.requests + other.requests,
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        assumed_tokens=one.assumed_tokens + other.assumed_tokens,
        known_usd=one.known_usd + other.known_usd,
        unpriced=one.unpriced + other.unpriced,
    )
