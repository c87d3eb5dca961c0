"""Lab.estimate: from recorded runs where there are any, else by a rule of thumb; never a call."""

from __future__ import annotations

import pandas as pd
import pytest

import axislab as al
from axislab.errors import ConfigError
from axislab.estimate import CALLS_WITH_TOOLS, COLUMNS, REPLY_TOKENS
from axislab.messages import Usage
from axislab.models.base import ModelReply
from axislab.models.scripted import ScriptedModel

PLAIN = al.Recipe(name="plain").with_(max_turns=4, max_output_tokens=300, answer_format="text")
TASKS = [al.Task("a", "What is 2 + 2?"), al.Task("b", "What is 3 + 3?")]


@al.tool
def look(name: str) -> str:
    """Look something up.

    Args:
        name: What.
    """
    return f"{name} is here."


class Priced(ScriptedModel):
    def list_price(self, *, prompt=0):
        return al.Price(input=1, output=10)


def reply(given, made, usd=None):
    usage = Usage(input_tokens=given, output_tokens=made)
    return ModelReply(text="four", usage=usage, cost_usd=usd)


def only(frame):
    assert len(frame) == 1
    return frame.iloc[0]


def test_nothing_is_sent_or_spent(tmp_path):
    model = ScriptedModel(["x"])
    lab = al.Lab(model, folder=tmp_path)
    lab.estimate({"one": PLAIN, "two": PLAIN.with_(tools=(look,))}, TASKS)
    assert model.requests == []
    assert lab.spent.requests == 0
    assert list(tmp_path.iterdir()) == []


def test_it_knows_a_paid_model_without_asking_it():
    lab = al.Lab("openai/gpt-4o-mini", api_key="sk-x", api_base="http://127.0.0.1:9/v1")
    row = only(lab.estimate(PLAIN, TASKS, repeats=3))
    assert (row.arm, row.model) == ("plain", "openai/gpt-4o-mini")
    assert (row.basis, row.recorded_runs, row.runs, row.calls) == ("rule of thumb", 0, 6, 6)
    cost = row.input_tokens * 0.15 + row.output_tokens * 0.6
    assert row.usd == pytest.approx(cost / 1e6)
    assert pd.isna(row.cost_missing)
    assert "rule of thumb" in row.method


def test_the_columns_are_as_documented_even_without_tasks():
    frame = al.Lab(ScriptedModel(["x"])).estimate(PLAIN, [])
    assert {name: str(kind) for name, kind in frame.dtypes.items()} == dict(COLUMNS)
    assert only(frame)[["runs", "calls", "input_tokens", "output_tokens"]].tolist() == [0] * 4
    for name in COLUMNS:
        assert f"            {name} " in al.Lab.estimate.__doc__


def test_without_tools_a_run_is_one_call_and_with_tools_several():
    lab = al.Lab(ScriptedModel(["x"]))
    arms = {
        "plain": PLAIN,
        "final": PLAIN.with_(final_response_prompt="Sum up."),
        "tools": PLAIN.with_(tools=(look,), max_turns=50),
        "few turns": PLAIN.with_(tools=(look,), max_turns=2),
    }
    frame = lab.estimate(arms, TASKS[:1]).set_index("arm")
    assert frame.calls.tolist() == [1, 2, CALLS_WITH_TOOLS, 2]
    assert frame.output_tokens.tolist() == [REPLY_TOKENS * calls for calls in frame.calls]
    assert frame.input_tokens["tools"] > CALLS_WITH_TOOLS * frame.input_tokens["plain"]


def test_prompts_are_cut_at_the_window_and_replies_at_their_limit():
    lab = al.Lab(ScriptedModel(["x"]))
    recipe = PLAIN.with_(tools=(look,), max_turns=6, window=200, max_output_tokens=10)
    row = only(lab.estimate(recipe, TASKS[:1]))
    assert row.input_tokens <= 6 * 200
    assert row.output_tokens == 60


def test_recorded_runs_of_the_same_recipe_and_model_are_the_basis(tmp_path):
    model = ScriptedModel([reply(10, 1, 0.5), reply(30, 3, 1.5), reply(100, 10, 5.0)])
    lab = al.Lab(model, folder=tmp_path)
    for task in (TASKS[0], TASKS[0], TASKS[1]):
        lab.run(PLAIN, task)
    other = al.Recipe(name="other").with_(max_turns=1)
    again = al.Lab(ScriptedModel(["x"]), folder=tmp_path)
    frame = again.estimate({"same": PLAIN, "other": other}, [*TASKS, "new"]).set_index("arm")
    same = frame.loc["same"]
    assert (same.basis, same.recorded_runs, same.runs, same.calls) == ("recorded", 3, 3, 3)
    # Task a: 20 on average, b: 100, a new one: what tasks take on average.
    assert (same.input_tokens, same.output_tokens) == (20 + 100 + 60, 2 + 10 + 6)
    assert same.usd == pytest.approx(1 + 5 + 3)
    assert frame.basis["other"] == "rule of thumb"


def test_runs_of_another_model_say_so_and_are_priced_anew(tmp_path):
    al.Lab(ScriptedModel([reply(100, 10)]), folder=tmp_path).run(PLAIN, TASKS[0])
    lab = al.Lab(Priced(["x"], name="paid"), folder=tmp_path)
    row = only(lab.estimate(PLAIN, TASKS[:1], repeats=2))
    assert row.basis == "recorded with scripted"
    assert (row.input_tokens, row.output_tokens) == (200, 20)
    assert row.usd == pytest.approx((200 * 1 + 20 * 10) / 1e6)


def test_a_pilot_can_be_given_and_a_number_takes_the_newest(tmp_path):
    lab = al.Lab(ScriptedModel([reply(10, 1), reply(20, 2), reply(40, 4)]), folder=tmp_path)
    runs = [lab.run(PLAIN, "x") for _ in range(3)]
    assert only(lab.estimate(PLAIN, ["x"], sample=runs[:1])).input_tokens == 10
    assert only(lab.estimate(PLAIN, ["x"], sample=al.Lab().last)).basis == "rule of thumb"
    newest = only(lab.estimate(PLAIN, ["x"], sample=1))
    order = sorted(runs, key=lambda run: (run.started, run.id))
    assert (newest.recorded_runs, newest.input_tokens) == (1, order[-1].usage.input_tokens)


def test_runs_that_broke_off_are_no_basis(tmp_path):
    lab = al.Lab(ScriptedModel([reply(10, 1)]), folder=tmp_path)
    lab.run(PLAIN, "x")
    assert lab.run(PLAIN, "x").status == "FAILED"  # the script is used up
    with lab.budget(tokens=1):
        lab.run(PLAIN, "x")
    assert only(lab.estimate(PLAIN, ["x"])).recorded_runs == 1


def test_recorded_runs_without_reported_tokens_leave_them_unknown(tmp_path):
    lab = al.Lab(Priced(["four"], after="repeat"), folder=tmp_path)
    lab.run(PLAIN, "x")
    row = only(lab.estimate(PLAIN, ["x"]))
    assert (row.basis, row.calls) == ("recorded", 1)
    assert pd.isna(row.input_tokens)
    assert pd.isna(row.usd)
    assert "do not say how many tokens" in row.cost_missing


def test_a_cost_that_is_not_known_has_a_reason():
    row = only(al.Lab("axislab/simulated").estimate(PLAIN, TASKS))
    assert pd.isna(row.usd)
    assert pd.isna(row.usd_max)
    assert "no language model" in row.cost_missing
    row = only(al.Lab("openai/unlisted", api_key="sk-x").estimate(PLAIN, TASKS))
    assert "price=" in row.cost_missing


def test_a_recipes_own_model_is_the_one_estimated():
    row = only(al.Lab().estimate(PLAIN.with_(model=Priced(["x"], name="own")), TASKS))
    assert row.model == "own"
    assert row.usd > 0


@pytest.mark.parametrize("profile", ["stubborn", "flaky", "verbose"])
def test_no_run_takes_more_than_the_most_that_is_said(profile):
    lab = al.Lab(f"axislab/simulated-{profile}", seed=3)
    tasks = al.load_tasks("sums")[:6]
    arms = {
        "one turn": al.recipes.boxed_math(max_turns=1, window=4000),
        "rollbacks": al.recipes.boxed_math(max_turns=3, window=4000, max_rollbacks=2),
        "no tools": al.recipes.boxed_math(tools=(), max_turns=3, max_rollbacks=2),
    }
    frame = lab.estimate(arms, tasks, repeats=2).set_index("arm")
    runs = lab.run_many(arms, tasks, repeats=2, progress=False).df
    for arm, taken in runs.groupby("arm"):
        assert taken.model_calls.sum() <= frame.calls_max[arm]
        used = taken.input_tokens.sum() + taken.output_tokens.sum()
        assert used <= frame.tokens_max[arm]


def test_what_has_no_bound_has_none():
    lab = al.Lab(Priced(["x"]))
    arms = {
        "no turns": al.Recipe().with_(max_turns=None),
        "tools, no window": PLAIN.with_(tools=(look,)),
        "window": PLAIN.with_(tools=(look,), window=1000, max_output_tokens=100),
    }
    frame = lab.estimate(arms, TASKS).set_index("arm")
    assert frame.calls_max.isna().tolist() == [True, False, False]
    assert frame.tokens_max.isna().tolist() == [True, True, False]
    calls = frame.calls_max["window"]
    assert frame.tokens_max["window"] == calls * 1000
    assert frame.usd_max["window"] == pytest.approx((calls * 900 + calls * 100 * 10) / 1e6)


@pytest.mark.parametrize(
    "wrong",
    [
        {"repeats": 0},
        {"repeats": True},
        {"sample": 0},
        {"sample": True},
        {"sample": "traces"},
        {"sample": [1]},
    ],
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        al.Lab(ScriptedModel(["x"])).estimate(PLAIN, TASKS, **wrong)


def test_arms_must_be_recipes():
    with pytest.raises(ConfigError, match="arms="):
        al.Lab(ScriptedModel(["x"])).estimate({"a": "plain"}, TASKS)


@pytest.mark.parametrize(
    "knobs",
    [
        {"answer_attempts": 3},
        {"answer_policy": "accuracy_first", "verify_answer": "second_opinion"},
        {"answer_policy": "miroflow", "tries": 2},
        {"context_policy": "compact", "shorten_above_tokens": 200},
    ],
)
def test_the_bound_holds_for_answer_stages_and_further_tries(knobs):
    tasks = al.load_tasks("atlas").sample(10, seed=5)
    recipe = al.recipes.research_qa(corpus=al.load_corpus("atlas"), max_turns=4).with_(**knobs)
    lab = al.Lab()
    bound = lab.estimate(recipe, tasks).calls_max[0]
    runs = lab.run_many(recipe, tasks, progress=False)
    assert sum(run.requests for run in runs) <= bound


def test_empty_replies_without_a_bound_leave_none():
    frame = al.Lab().estimate(al.recipes.miroflow(), ["Where is Osk?"])
    assert frame.calls_max.isna().all()
