"""The ledger: reservations, ceilings, waiting, and what is booked for every kind of outcome."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axislab.config import RetryPolicy, Sampling
from axislab.errors import ConfigError, ErrorKind, ModelError
from axislab.messages import Message, Usage
from axislab.models.account import Account, Ledger, Margin, Need, Spent
from axislab.models.base import ModelReply, ModelRequest
from axislab.models.call import call_model
from axislab.models.meter import MAYBE_BILLED, Meter
from axislab.models.price import Price
from axislab.models.scripted import ScriptedModel

ASKED = ModelRequest(messages=[Message.user("hi")], sampling=Sampling(max_output_tokens=50))
QUICK = RetryPolicy(attempts=2, backoff=0, max_backoff=0, jitter=0)


class Priced(ScriptedModel):
    """A scripted model that knows a price."""

    def list_price(self, *, prompt: int = 0) -> Price:
        return Price(input=1_000_000 if prompt <= 100 else 2_000_000, output=1_000_000)


def reply(given: int | None = 10, made: int | None = 5, **more: Any) -> ModelReply:
    return ModelReply(text="four", usage=Usage(input_tokens=given, output_tokens=made), **more)


def under(model: ScriptedModel | None = None, **ceiling: Any) -> tuple[Ledger, Account]:
    ledger, account = Ledger(), Account(**ceiling)
    ledger.stand(account)
    return ledger, account


def ask(ledger: Ledger, model: ScriptedModel, *, estimated: int | None = 10) -> list[Any]:
    """One call; the events, and the error if it came to one."""
    events: list[Any] = []

    async def main() -> None:
        try:
            await call_model(
                model,
                ASKED,
                retry=QUICK,
                emit=events.append,
                call=0,
                step=0,
                estimated=estimated,
                meter=Meter(ledger, model),
            )
        except ModelError as error:
            events.append(error)

    asyncio.run(main())
    return events


def test_a_request_that_would_pass_the_ceiling_is_not_sent() -> None:
    ledger, _ = under(tokens=59)
    model = ScriptedModel([reply()])
    (error,) = ask(ledger, model)
    assert error.kind is ErrorKind.BUDGET
    assert model.requests == []
    assert "60 tokens" in str(error)
    assert "max_output_tokens" in str(error)
    assert ledger.spent() == Spent(left_tokens=59)


def test_a_request_that_just_fits_is_sent_and_what_it_used_is_booked() -> None:
    ledger, account = under(tokens=60)
    ask(ledger, ScriptedModel([reply()]))
    assert account.spent.tokens == 15
    assert (account.reserved_tokens, account.holds) == (0, 0)
    assert ledger.spent().left_tokens == 45


def test_each_attempt_needs_room_of_its_own() -> None:
    ledger, _ = under(tokens=100)
    late = ModelError("late", kind=ErrorKind.TIMEOUT)
    model = ScriptedModel([late, reply()])
    first, error = ask(ledger, model)
    assert (first.outcome, error.kind) == ("timeout", ErrorKind.BUDGET)
    assert len(model.requests) == 1


@pytest.mark.parametrize("kind", list(ErrorKind))
def test_a_failed_request_counts_only_where_it_may_have_been_billed(kind: ErrorKind) -> None:
    ledger, _ = under(tokens=10_000)
    model = ScriptedModel([ModelError("no", kind=kind)], after="repeat")
    requests = len(ask(ledger, model)) - 1
    expected = 60 * requests if kind in MAYBE_BILLED else 0
    spent = ledger.spent()
    assert (spent.tokens, spent.assumed_tokens, spent.requests) == (expected, expected, requests)


def test_what_a_failed_request_reports_counts_whatever_its_kind() -> None:
    ledger, _ = under(tokens=10_000)
    error = ModelError("no", kind=ErrorKind.AUTH, usage=Usage(input_tokens=7, output_tokens=1))
    ask(ledger, ScriptedModel([error]))
    assert (ledger.spent().tokens, ledger.spent().assumed_tokens) == (8, 0)


def test_a_reply_without_a_report_counts_by_its_characters() -> None:
    ledger, _ = under(tokens=10_000)
    ask(ledger, ScriptedModel([ModelReply(text="x" * 40)]))
    spent = ledger.spent()
    assert (spent.input_tokens, spent.output_tokens, spent.assumed_tokens) == (10, 10, 20)


def test_tokens_counted_by_us_are_assumed() -> None:
    ledger = Ledger()
    ask(ledger, ScriptedModel(["four"], usage="estimate"))
    assert ledger.spent().assumed_tokens == ledger.spent().tokens > 0


def test_a_prompt_that_was_larger_than_its_estimate_makes_the_next_reserve_more() -> None:
    ledger, _ = under(tokens=1000)
    ask(ledger, ScriptedModel([reply(given=30)]))
    assert ledger.prompt_at_most("scripted", 100) == 300
    (error,) = ask(ledger, ScriptedModel([reply()]), estimated=400)
    assert "about 1,200" in str(error)


def test_a_provider_that_adds_a_long_text_of_its_own_is_not_multiplied() -> None:
    ledger, _ = under(tokens=10_000)
    ask(ledger, ScriptedModel([reply(given=1_010)]))
    assert ledger.prompt_at_most("scripted", 10) == 40 + 970
    assert ledger.prompt_at_most("scripted", 1_000) == 4_970


@given(st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 20_000)), max_size=20))
def test_a_prompt_seen_before_always_fits_its_margin(seen: list[tuple[int, int]]) -> None:
    margin = Margin()
    for guess, observed in seen:
        margin = margin.after(guess, observed)
    assert all(margin.over(guess) >= observed for guess, observed in seen)


def test_without_an_estimate_the_prompt_is_counted_by_characters() -> None:
    ledger, _ = under(tokens=54)
    (error,) = ask(ledger, ScriptedModel([reply()]), estimated=None)
    assert "a prompt of about 5," in str(error)


def test_a_stopped_request_gives_its_reservation_back_and_counts_in_full() -> None:
    ledger, account = under(tokens=1000)

    async def main() -> None:
        model = ScriptedModel([reply()], delay=30)
        task = asyncio.create_task(
            call_model(
                model,
                ASKED,
                retry=QUICK,
                emit=lambda event: None,
                call=0,
                step=0,
                estimated=10,
                meter=Meter(ledger, model),
            )
        )
        await asyncio.sleep(0.05)
        assert account.reserved_tokens == 60
        assert ledger.spent().left_tokens == 940
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert (account.reserved_tokens, account.holds, account.spent.tokens) == (0, 0, 60)


def at_once(
    ledger: Ledger, number: int, make: Callable[[], ScriptedModel]
) -> tuple[int, list[ModelError]]:
    """How many of some calls made at once were answered, and the errors of the others."""
    models = [make() for _ in range(number)]

    async def one(model: ScriptedModel) -> ModelReply:
        return await call_model(
            model,
            ASKED,
            retry=QUICK,
            emit=lambda event: None,
            call=0,
            step=0,
            estimated=10,
            meter=Meter(ledger, model),
        )

    async def main() -> list[Any]:
        return await asyncio.gather(*map(one, models), return_exceptions=True)

    came = asyncio.run(main())
    errors = [one for one in came if isinstance(one, ModelError)]
    assert len(errors) + sum(isinstance(one, ModelReply) for one in came) == number
    return sum(len(model.requests) for model in models), errors


def test_what_others_have_reserved_is_waited_for_and_ends_no_run() -> None:
    ledger, account = under(tokens=130)  # room for two at once, and for all five in the end
    sent, errors = at_once(ledger, 5, lambda: ScriptedModel([reply()], delay=0.02))
    assert (sent, errors) == (5, [])
    assert account.spent.tokens == 75


def test_calls_at_once_never_pass_the_ceiling() -> None:
    ledger, account = under(tokens=200)
    sent, errors = at_once(ledger, 30, lambda: ScriptedModel([reply()], delay=0.001))
    # 15 tokens each; the last that is sent still had 60 tokens of room.
    assert sent == 10
    assert {error.kind for error in errors} == {ErrorKind.BUDGET}
    assert account.spent.tokens == 150


def test_threads_with_loops_of_their_own_share_one_ceiling() -> None:
    ledger, account = under(tokens=2_000)
    sent: list[int] = []

    def work(seed: int) -> None:
        chance = random.Random(seed)

        def make() -> ScriptedModel:
            return ScriptedModel([reply(10, chance.randint(1, 50))], delay=chance.random() / 200)

        sent.append(at_once(ledger, 20, make)[0])

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    assert account.spent.tokens <= 2_000
    assert account.spent.tokens > 2_000 - 60  # stopped only when there was no room
    assert account.spent.requests == sum(sent) == ledger.total.spent.requests
    assert (account.reserved_tokens, account.holds) == (0, 0)


@settings(max_examples=60, deadline=None)
@given(
    ceiling=st.integers(60, 600),
    used=st.lists(st.tuples(st.integers(1, 10), st.integers(0, 50)), min_size=1, max_size=30),
)
def test_replies_as_large_as_reserved_never_pass_the_ceiling(
    ceiling: int, used: list[tuple[int, int]]
) -> None:
    ledger, account = under(tokens=ceiling)
    script = iter(used)
    at_once(ledger, len(used), lambda: ScriptedModel([reply(*next(script))], delay=0.0))
    assert account.spent.tokens <= ceiling
    assert account.spent.tokens == ledger.total.spent.tokens


# -- US dollars ---------------------------------------------------------------------------------


def test_a_ceiling_in_dollars_reserves_the_most_a_request_can_cost() -> None:
    ledger, _ = under(usd=59.9)
    (error,) = ask(ledger, Priced([reply()]))
    assert "60 USD" in str(error)
    ledger, account = under(usd=60.0)
    ask(ledger, Priced([reply(cost_usd=12.5)]))
    assert account.spent.usd == 12.5
    assert ledger.spent().left_usd == 47.5


def test_a_ceiling_in_dollars_knows_that_long_prompts_cost_more() -> None:
    ledger, _ = under(usd=300.0)
    (error,) = ask(ledger, Priced([reply()]), estimated=150)
    assert "350 USD" in str(error)


def test_a_reply_of_unknown_cost_counts_with_the_most_it_can_have_cost() -> None:
    ledger, account = under(usd=100.0)
    ask(ledger, Priced([reply()]))
    assert account.spent.known_usd == 15.0


def test_a_ceiling_in_dollars_wants_a_price() -> None:
    ledger, _ = under(usd=1.0)
    with pytest.raises(ConfigError, match=r"'scripted' \(simulated\).*Price\(input"):
        Meter(ledger, ScriptedModel(["x"]))


def test_without_a_ceiling_no_price_is_needed_and_the_cost_is_unknown() -> None:
    ledger = Ledger()
    ask(ledger, ScriptedModel([reply()]))
    spent = ledger.spent()
    assert (spent.usd, spent.unpriced, spent.left_tokens, spent.left_usd) == (None, 1, None, None)
    assert "cost unknown" in str(spent)


def test_known_and_unknown_cost_together_are_unknown_and_both_told() -> None:
    ledger = Ledger()
    ask(ledger, ScriptedModel([reply(cost_usd=0.25)]))
    assert ledger.spent().usd == 0.25
    ask(ledger, ScriptedModel([reply()]))
    assert ledger.spent().usd is None
    assert "0.2500 USD and 1 requests of unknown cost" in str(ledger.spent())


def test_what_is_reserved_in_dollars_comes_back_to_nothing() -> None:
    account = Account(usd=1.0)
    needs = [Need(input_tokens=1, output_tokens=1, usd=usd) for usd in (0.1, 0.2, 0.3, 0.7)]
    for need in needs:
        account.hold(need, 1)
    for need in needs:
        account.hold(need, -1)
    assert account.left_usd() == 1.0
