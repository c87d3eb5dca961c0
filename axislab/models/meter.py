"""Measures a run's requests: room is made before each, and what it used is booked after it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol, runtime_checkable

from axislab.errors import ConfigError, ErrorKind, ModelError
from axislab.messages import Usage
from axislab.models.account import Account, Ledger, Need, Spent
from axislab.models.base import ChatModel, ModelReply, ModelRequest
from axislab.models.price import Price, price_of
from axislab.models.tokens import estimate_message, estimate_text

MAYBE_BILLED: Final = frozenset({ErrorKind.TIMEOUT, ErrorKind.MALFORMED_REPLY, ErrorKind.CANCELLED})
"""Failed requests the provider may have worked on: without a report, all they reserved counts."""


@runtime_checkable
class Keeps(Protocol):
    """A model that may have a reply without sending anything."""

    def holds(self, request: ModelRequest) -> bool:
        """Whether the reply to this request is here."""


class Meter:
    """Measures the requests of one run, under the ceilings in force when it starts.

    Args:
        ledger: The lab's.
        model: Whom the run asks.
        own: A ceiling that holds for this run and those that are given the same.
        under: The accounts to book in, instead of those that follow from the ceilings.

    Raises:
        ConfigError: A ceiling is in US dollars and the model's price is not known.
    """

    def __init__(
        self,
        ledger: Ledger,
        model: ChatModel,
        *,
        own: Account | None = None,
        under: Sequence[Account] | None = None,
    ) -> None:
        if under is None:
            check_price(ledger, model)
            under = (ledger.total, *ledger.ceilings, *(() if own is None else (own,)))
        self._ledger = ledger
        self._accounts = tuple(under)
        self._model = model
        self._priced = any(account.usd is not None for account in self._accounts)
        self._bounded = any(account.bounded for account in self._accounts)

    def of(self, model: ChatModel) -> Meter:
        """The same for another model that the run asks, under the same ceilings.

        Raises:
            ConfigError: A ceiling is in US dollars and that model's price is not known.
        """
        if self._priced:
            known_price(model)
        return Meter(self._ledger, model, under=self._accounts)

    async def reserve(
        self, request: ModelRequest, *, estimated: int | None, by: ChatModel | None = None
    ) -> Hold:
        """Make room for a request, waiting while others may give back what they reserved.

        Args:
            request: What is asked.
            estimated: Tokens its prompt has by the budget's estimate.
            by: Who is asked; a reply that it keeps, and need not send for, takes no room.

        Raises:
            ModelError: BUDGET: there is no room; the request must not be sent.
        """
        guess = estimated
        if guess is None:
            guess = sum(estimate_message(message) for message in request.messages)
        if self._bounded and isinstance(by, Keeps) and by.holds(request):
            nothing = Need(input_tokens=0, output_tokens=0, usd=0.0)
            self._ledger.hold(nothing, self._accounts)
            return Hold(self, nothing, guess=guess)
        while True:
            need = self._need(guess, request.sampling.max_output_tokens)
            turn = self._ledger.try_hold(need, self._accounts)
            if turn is None:
                return Hold(self, need, guess=guess)
            await asyncio.wrap_future(turn)

    def settle(self, need: Need, spent: Spent) -> None:
        """Release a reservation and book what was spent."""
        self._ledger.settle(need, spent, self._accounts)

    def learn(self, *, guess: int, observed: int) -> None:
        """Take in how many tokens a prompt had."""
        self._ledger.learn(self._model.name, guess=guess, observed=observed)

    def at_most(self, given: int, made: int) -> float | None:
        """The most these tokens can have cost; None where no price is needed."""
        if not self._priced:
            return None
        price = known_price(self._model, prompt=given)
        return price.at_most(input_tokens=given, output_tokens=made)

    def _need(self, guess: int, output: int) -> Need:
        given = self._ledger.prompt_at_most(self._model.name, guess)
        return Need(input_tokens=given, output_tokens=output, usd=self.at_most(given, output))


class Hold:
    """One reservation; it is settled once."""

    def __init__(self, meter: Meter, need: Need, *, guess: int) -> None:
        self._meter = meter
        self._need = need
        self._guess = guess

    def settle(self, result: ModelReply | ModelError | None) -> None:
        """Book what the request came to; None is one that was given up."""
        usage = result.usage if isinstance(result, ModelReply) else None
        if usage is not None and usage.input_tokens:
            self._meter.learn(guess=self._guess, observed=usage.input_tokens)
        self._meter.settle(self._need, self._spent(result))

    def _spent(self, result: ModelReply | ModelError | None) -> Spent:
        if isinstance(result, ModelReply) and result.cached:
            return Spent()  # nothing was sent
        told = result.usage if result is not None else None
        usage = told if isinstance(told, Usage) else Usage()
        given, made = usage.input_tokens, usage.output_tokens
        assumed = given is None or made is None or usage.estimated
        if isinstance(result, ModelReply):
            given = self._need.input_tokens if given is None else given
            made = _length(result) if made is None else made
        elif given is None and (made or result is None or result.kind in MAYBE_BILLED):
            # Also one that broke off while it was streamed: what was made of it is billed.
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


def check_price(ledger: Ledger, model: ChatModel) -> None:
    """Find out now whether a ceiling in US dollars can be kept with a model.

    Raises:
        ConfigError: What its tokens cost is not known.
    """
    if any(account.usd is not None for account in ledger.ceilings):
        known_price(model)


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
