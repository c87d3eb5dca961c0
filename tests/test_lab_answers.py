"""Answer policies through the lab: on the simulated model, and over more than one run."""

from __future__ import annotations

import json

import pytest

import axislab as al
from axislab.errors import ConfigError
from axislab.trace.fsck import fsck
from axislab.trace.replay import replay
from tests.orchestrator.test_answer_stage import BOX


@pytest.fixture(scope="module")
def recipe() -> al.Recipe:
    return al.recipes.research_qa(corpus=al.load_corpus("atlas"), max_turns=6)


@pytest.mark.parametrize(
    "knobs",
    [
        {"answer_attempts": 3},
        {"answer_policy": "accuracy_first"},
        {"answer_policy": "usability_first"},
        {"answer_policy": "miroflow", "tries": 2},
        {"verify_answer": "second_opinion"},
        {"context_policy": "compact", "shorten_above_tokens": 900},
        {"context_policy": "discard_all", "shorten_above_tokens": 900},
    ],
    ids=lambda knobs: "-".join(map(str, knobs.values())),
)
def test_every_arm_leaves_sound_traces_that_come_out_the_same(recipe, knobs):
    tasks = al.load_tasks("atlas").sample(12, seed=3)
    runs = al.Lab().run_many(recipe.with_(**knobs), tasks, progress=False)
    assert len(runs) == 12
    for run in runs:
        assert fsck(run).ok, str(fsck(run))
        assert replay(run).ok, str(replay(run))
        assert run.status in ("COMPLETED", "FAILED")


def test_further_attempts_recover_answers_that_one_call_loses(recipe):
    tasks = al.load_tasks("atlas").sample(40, seed=1)
    arms = al.grid(recipe, answer_attempts=[1, 3])
    lab = al.Lab(coupling="common")
    runs = lab.run_many(arms, tasks, progress=False)
    frame = al.runs_df(runs)
    ok = frame[frame["answer_status"] == "ok"].groupby("arm").size()
    assert ok["answer_attempts=3"] > ok["answer_attempts=1"]
    calls = al.answers_df(runs)
    assert set(calls["arm"]) == {"answer_attempts=3"}
    assert calls["purpose"].str.startswith("final_answer 2/3").any()
    once, thrice = (
        frame[frame["arm"] == "answer_attempts=1"],
        frame[frame["arm"] != "answer_attempts=1"],
    )
    kept = once[once["answer_status"] == "ok"].merge(thrice, on="task_id")
    assert (kept["answer_x"] == kept["answer_y"]).all(), "common draws: what was found stays found"


def test_a_run_goes_on_with_the_tries_of_an_earlier_one(tmp_path):
    recipe = al.Recipe(name="r").with_(tries=3)
    first = al.Lab(al.ScriptedModel(["a", "account one", "b", "two", BOX]), folder=tmp_path)
    path = first.run(recipe, "Where is Osk?").path
    lines = path.read_text("utf-8").splitlines(keepends=True)
    killed_after = next(n for n, line in enumerate(lines) if json.loads(line)["kind"] == "try")
    path.write_text("".join(lines[: killed_after + 2]), "utf-8")
    killed = al.load_run(path)
    assert killed.status == "INTERRUPTED"
    model = al.ScriptedModel([BOX])
    run = al.Lab(model, folder=tmp_path).run(recipe, "Where is Osk?", after=killed)
    assert run.answer == "Verren"
    assert run.parent == killed.id
    assert al.attempts_df(run)["attempt"].tolist() == [2]
    assert "account one" in model.requests[0].messages[-1].text
    with pytest.raises(ConfigError, match="give the recipe it was made by"):
        first.run(recipe.with_(tries=4), "Where is Osk?", after=killed)
    with pytest.raises(ConfigError, match="was asked"):
        first.run(recipe, "Where is Tal?", after=killed)


def test_a_run_without_an_answer_stage_is_one_attempt():
    run = al.Lab(al.ScriptedModel([BOX])).run(al.Recipe(name="r"), "Where is Osk?")
    frame = al.attempts_df(run)
    assert frame[["attempt", "status", "source"]].to_numpy().tolist() == [[1, "ok", "final_text"]]
    assert len(al.answers_df(run)) == 0
