"""Accounts of what is spent, and ceilings on it: a request reserves its worst case first.

Safe for threads and event loops. All figures are tokens, or US dollars.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Final

from axislab.errors import ConfigError, ErrorKind, ModelError
from axislab.messages import Usage
from axislab.models.base import ChatModel, ModelReply, ModelRequest
from axislab.models.price import Price, price_of
from axislab.models.tokens import estimate_message, estimate_text

MAYBE_BILLED: Final = frozenset({ErrorKind.TIMEOUT, ErrorKind.MALFORMED_REPLY, ErrorKind.CANCELLED})
"""Failed requests the provider may have worked on: without a report, all they reserved counts."""

_MOST_OFF: Final = 4.0
"""No prompt is taken to be more than this many times its estimate."""


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
        self._off: dict[str, float] = {}
        """By model: how many times its estimate a prompt was at most."""

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

    def check(self, model: ChatModel) -> None:
        """Find out now whether a ceiling in US dollars can be kept with a model.

        Raises:
            ConfigError: What its tokens cost is not known.
        """
        if any(c.usd is not None for c in self.ceilings):
            known_price(model)

    def meter(self, model: ChatModel) -> Meter:
        """What measures a run that starts now with a model.

        Raises:
            ConfigError: A ceiling is in US dollars and the model's price is not known.
        """
        self.check(model)
        return Meter(self, (self.total, *self.ceilings), model)

    def factor(self, model: str) -> float:
        """By what a prompt's estimate is multiplied, to be safe."""
        return self._off.get(model, 1.0)

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

    def settle(
        self, need: Need, spent: Spent, accounts: Sequence[Account], *, off: float, model: str
    ) -> None:
        """Release a reservation and book what was spent."""
        with self._lock:
            for account in accounts:
                account.hold(need, -1)
                account.spent = _sum(account.spent, spent)
            self._off[model] = max(self._off.get(model, 1.0), min(off, _MOST_OFF))
            woken, self._waiting = self._waiting, []
        for turn in woken:
            if turn.set_running_or_notify_cancel():
                turn.set_result(None)


class Meter:
    """Measures the requests of one run: reserves before each, books after each."""

    def __init__(self, ledger: Ledger, accounts: Sequence[Account], model: ChatModel) -> None:
        self._ledger = ledger
        self._accounts = accounts
        self._model = model
        self._priced = any(account.usd is not None for account in accounts)

    async def reserve(self, request: ModelRequest, *, estimated: int | None) -> Hold:
        """Make room for a request, waiting while others may give back what they reserved.

        Raises:
            ModelError: BUDGET: there is no room; the request must not be sent.
        """
        guess = estimated
        if guess is None:
            guess = sum(estimate_message(message) for message in request.messages)
        while True:
            need = self._need(guess, request.sampling.max_output_tokens)
            turn = self._ledger.try_hold(need, self._accounts)
            if turn is None:
                return Hold(self, need, guess=guess)
            await asyncio.wrap_future(turn)

    def settle(self, need: Need, spent: Spent, *, off: float) -> None:
        """Release a reservation and book what was spent."""
        self._ledger.settle(need, spent, self._accounts, off=off, model=self._model.name)

    def at_most(self, given: int, made: int) -> float | None:
        """The most these tokens can have cost; None where no price is needed."""
        if not self._priced:
            return None
        price = known_price(self._model, prompt=given)
        return price.at_most(input_tokens=given, output_tokens=made)

    def _need(self, guess: int, output: int) -> Need:
        given = math.ceil(guess * self._ledger.factor(self._model.name))
        return Need(input_tokens=given, output_tokens=output, usd=self.at_most(given, output))


class Hold:
    """One reservation; it is settled once."""

    def __init__(self, meter: Meter, need: Need, *, guess: int) -> None:
        self._meter = meter
        self._need = need
        self._guess = guess

    def settle(self, result: ModelReply | ModelError | None) -> None:
        """Book what the request came to; None is one that was given up."""
        spent, off = self._spent(result), 1.0
        usage = result.usage if isinstance(result, ModelReply) else None
        if usage is not None and usage.input_tokens and self._guess > 0:
            off = usage.input_tokens / self._guess
        self._meter.settle(self._need, spent, off=off)

    def _spent(self, result: ModelReply | ModelError | None) -> Spent:
        told = result.usage if result is not None else None
        usage = told if isinstance(told, Usage) else Usage()
        given, made = usage.input_tokens, usage.output_tokens
        assumed = given is None or made is None or usage.estimated
        if isinstance(result, ModelReply):
            given = self._need.input_tokens if given is None else given
            made = _length(result) if made is None else made
        elif given is None and (result is None or result.kind in MAYBE_BILLED):
            given, made = self._need.input_tokens, self._need.output_tokens
        given, made = given or 0, made or 0
        cost = None if result is None else result.cost_usd
        # A ceiling in dollars must hold where a reply's cost is not known, too.
        booked = self._meter.at_most(given, made) if cost is None and given + made else cost
        return Spent(
            requests=1,
            input_tokens=given,
            output_tokens=made,
            assumed_tokens=given + made if assumed else 0,
            known_usd=booked or 0.0,
            unpriced=int(bool(given + made) and booked is None),
        )


def known_price(model: ChatModel, *, prompt: int = 0) -> Price:
    """The price of a model, for a prompt of that many tokens.

    Raises:
        ConfigError: It is not known, so no ceiling in US dollars can be kept.
    """
    price = price_of(model, prompt=prompt)
    if price is None:
        why = "simulated" if model.simulated else "no price is known for it"
        raise ConfigError(
            f"a budget in usd cannot be kept with {model.name!r} ({why}): give its price, "
            "Lab(model, price=axislab.Price(input=…, output=…)) in USD for a million tokens, or "
            "set the budget in tokens: lab.budget(tokens=…)"
        )
    return price


def _length(reply: ModelReply) -> int:
    """Tokens of a reply, by its characters."""
    calls = "".join(call.name + call.arguments for call in reply.tool_calls)
    return sum(estimate_text(text or "") for text in (reply.text, reply.reasoning, calls))


def _sum(one: Spent, other: Spent) -> Spent:
    return Spent(
        requests=one.requests + other.requests,
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        assumed_tokens=one.assumed_tokens + other.assumed_tokens,
        known_usd=one.known_usd + other.known_usd,
        unpriced=one.unpriced + other.unpriced,
    )
