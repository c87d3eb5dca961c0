"""Lab.budget and Lab.spent: what stops, when, and how it is told."""

from __future__ import annotations

import asyncio
import warnings

import pytest

import axislab as al
from axislab.errors import ConfigError, RunError
from axislab.messages import Usage
from axislab.models.base import ModelReply
from axislab.models.scripted import ScriptedModel

PLAIN = al.Recipe(name="plain").with_(max_turns=4, max_output_tokens=20, answer_format="text")
BUDGET = "budget_exhausted"


@al.tool
def look(name: str) -> str:
    """Look something up.

    Args:
        name: What.
    """
    return f"{name} is here."


def answers(*, tokens=30, **options):
    usage = Usage(input_tokens=tokens - 5, output_tokens=5)
    return ScriptedModel(["four"], after="repeat", usage=usage, **options)


def reasons(runs):
    return [run.done_reason for run in runs]


class Priced(ScriptedModel):
    def list_price(self, *, prompt=0):
        return al.Price(input=1000, output=2000)


def test_a_budget_ends_a_run_before_the_request_that_would_pass_it(tmp_path):
    model = answers()
    lab = al.Lab(model, folder=tmp_path)
    lab.budget(tokens=100)
    runs = [lab.run(PLAIN, "2 + 2?") for _ in range(4)]
    last = runs[-1]
    assert (last.status, last.done_reason, last.error_kind) == ("FAILED", BUDGET, "budget")
    assert "lab.budget(tokens=" in last.error
    assert last.correct is None
    assert len(model.requests) == sum(run.done_reason != BUDGET for run in runs)
    assert lab.spent.tokens == 30 * len(model.requests) <= 100
    assert all(al.fsck(run.path).ok for run in runs)
    with pytest.raises(RunError):
        last.raise_for_status()


def test_a_refused_request_is_no_row_of_the_trace():
    lab = al.Lab(answers())
    lab.budget(tokens=1)
    run = lab.run(PLAIN, "2 + 2?")
    assert (run.requests, run.done_reason) == (0, BUDGET)
    assert lab.spent.requests == 0


def test_a_run_is_stopped_in_the_middle_and_what_it_said_is_kept(tmp_path):
    script = [ScriptedModel.call("look", name="Osk")]
    usage = Usage(input_tokens=25, output_tokens=5)
    lab = al.Lab(ScriptedModel(script, after="repeat", usage=usage), folder=tmp_path)
    recipe = PLAIN.with_(tools=(look,), max_turns=50)
    with lab.budget(tokens=1000) as budget:
        run = lab.run(recipe, "Where is Osk?")
    assert run.done_reason == BUDGET
    assert run.requests > 2
    assert budget.spent.tokens == run.usage.input_tokens + run.usage.output_tokens <= 1000
    assert al.fsck(run.path).ok
    assert al.runs_df(run).error_kind.tolist() == ["budget"]


def test_a_block_is_over_at_its_end_even_if_it_fails():
    lab = al.Lab(answers())

    def block():
        with lab.budget(tokens=1):
            assert lab.run(PLAIN, "x").done_reason == BUDGET
            raise KeyError

    with pytest.raises(KeyError):
        block()
    assert lab.run(PLAIN, "x").status == "COMPLETED"
    assert lab.spent.left_tokens is None


def test_a_block_holds_beside_the_budget_that_stands():
    lab = al.Lab(answers())
    standing = lab.budget(tokens=10_000)
    with lab.budget(tokens=5_000) as inner:
        lab.run(PLAIN, "x")
        assert (inner.spent.tokens, standing.spent.tokens) == (30, 30)
        assert lab.spent.left_tokens == 4_970
    lab.run(PLAIN, "x")
    assert (inner.spent.tokens, standing.spent.tokens) == (30, 60)
    assert lab.spent.left_tokens == 9_940


def test_a_plain_budget_takes_the_place_of_the_one_before():
    lab = al.Lab(answers())
    lab.budget(tokens=1)
    assert lab.run(PLAIN, "x").done_reason == BUDGET
    raised = lab.budget(tokens=1000)
    assert lab.run(PLAIN, "x").status == "COMPLETED"
    raised.lift()
    assert lab.spent.left_tokens is None


def test_nested_blocks_both_hold():
    lab = al.Lab(answers())
    with lab.budget(tokens=10_000), lab.budget(tokens=1):
        assert lab.run(PLAIN, "x").done_reason == BUDGET
    with lab.budget(tokens=1), lab.budget(tokens=10_000):
        assert lab.run(PLAIN, "x").done_reason == BUDGET


def test_a_run_keeps_to_the_budget_it_started_under():
    lab = al.Lab(answers(delay=0.2))
    with lab.budget(tokens=1000) as budget:
        handle = lab.start(PLAIN, "x")
    assert handle.result().status == "COMPLETED"
    assert budget.spent.tokens == 30


def test_run_many_starts_no_more_runs_and_says_how_many():
    model = answers()
    lab = al.Lab(model, concurrency=1)
    with lab.budget(tokens=200), pytest.warns(UserWarning, match=r"\d+ of 20 runs were not start"):
        runs = lab.run_many(PLAIN, [f"task {n}" for n in range(20)], progress=False)
    assert runs.not_started == 20 - len(runs) > 0
    assert lab.last.not_started == runs.not_started
    assert f"{runs.not_started} not started (budget)" in repr(runs)
    assert reasons(runs).count(BUDGET) == 1
    assert len(runs.df) == len(runs)


@pytest.mark.parametrize("concurrency", [1, 8])
def test_many_runs_at_once_never_pass_the_ceiling(concurrency):
    model = answers(delay=0.005)
    lab = al.Lab(model, concurrency=concurrency)

    async def many():
        return await lab.arun_many(PLAIN, [f"task {n}" for n in range(60)])

    with lab.budget(tokens=1_000) as budget, pytest.warns(UserWarning, match="not started"):
        runs = asyncio.run(many())
    assert budget.spent.tokens == 30 * len(model.requests) <= 1_000
    assert budget.spent.tokens > 1_000 - 100
    assert set(reasons(runs)) == {"assistant_final_answer", BUDGET}


def test_a_budget_that_suffices_says_nothing():
    lab = al.Lab(answers())
    with lab.budget(tokens=100_000), warnings.catch_warnings():
        warnings.simplefilter("error")
        runs = lab.run_many(PLAIN, ["a", "b"], progress=False)
    assert (runs.not_started, len(runs)) == (0, 2)


def test_simulated_tokens_count_and_cost_nothing_known():
    lab = al.Lab("axislab/simulated-clean", seed=1)
    with lab.budget(tokens=1_000_000) as budget:
        run = lab.run(al.recipes.boxed_math(), "Compute 12 * (7 + 5).")
    usage = run.usage
    assert budget.spent.tokens == usage.input_tokens + usage.output_tokens > 0
    assert (lab.spent.usd, run.cost_usd) == (None, None)
    frame = al.runs_df(run)
    assert frame.cost_usd.isna().all()
    assert "no price is known" in frame.cost_missing[0]


@pytest.mark.parametrize("model", ["axislab/simulated", "openai/nobody-lists-this"])
def test_a_budget_in_dollars_is_refused_at_once_where_no_price_is_known(model):
    lab = al.Lab(model, api_key="sk-x") if model.startswith("openai") else al.Lab(model)
    with pytest.raises(ConfigError, match=r"price=axislab\.Price"):
        lab.budget(usd=1)
    assert lab.spent.left_usd is None


def test_a_budget_in_dollars_goes_by_the_list_or_the_given_price():
    al.Lab("openai/gpt-4o-mini", api_key="sk-x").budget(usd=1)
    price = al.Price(input=1, output=2)
    al.Lab("openai/nobody-lists-this", api_key="sk-x", price=price).budget(usd=1)


def test_a_recipe_whose_own_model_has_no_price_is_refused_before_it_runs(tmp_path):
    lab = al.Lab(Priced(["four"], after="repeat"), folder=tmp_path)
    own = PLAIN.with_(model="axislab/simulated")
    with lab.budget(usd=1):
        with pytest.raises(ConfigError, match="axislab/simulated"):
            lab.run(own, "x")
        with pytest.raises(ConfigError, match="axislab/simulated"):
            lab.run_many({"a": PLAIN, "b": own}, ["x"], progress=False)
    assert list(tmp_path.iterdir()) == []


def test_dollars_spent_and_left_are_told():
    usage = Usage(input_tokens=10, output_tokens=5)
    reply = ModelReply(text="four", usage=usage, cost_usd=0.02)
    lab = al.Lab(Priced([reply], after="repeat"))
    budget = lab.budget(usd=0.15)
    runs = [lab.run(PLAIN, "x") for _ in range(8)]
    assert reasons(runs)[-1] == BUDGET
    assert lab.spent.usd == pytest.approx(0.02 * lab.spent.requests)
    assert 0 < lab.spent.usd <= 0.15
    assert lab.spent.left_usd == pytest.approx(0.15 - lab.spent.usd)
    assert "USD left" in repr(budget)
    assert repr(budget).startswith("<Budget 0.15 USD: ")


@pytest.mark.parametrize(
    "ceiling",
    [{}, {"tokens": 0}, {"tokens": 1.5}, {"tokens": True}, {"tokens": "9"}]
    + [{"usd": usd} for usd in (0, -1, float("nan"), float("inf"), True, "1")],
)
def test_a_ceiling_that_is_none_is_refused(ceiling):
    lab = al.Lab(Priced(["x"]))
    with pytest.raises(ConfigError, match="budget"):
        lab.budget(**ceiling)


def test_two_labs_have_accounts_of_their_own():
    one, other = al.Lab(answers()), al.Lab(answers())
    one.budget(tokens=1)
    assert other.run(PLAIN, "x").status == "COMPLETED"
    assert (one.spent.requests, other.spent.requests) == (0, 1)
