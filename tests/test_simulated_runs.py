"""Simulated runs, end to end: they depend on what the agent can see, and on nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

import axislab as al
from axislab.models.simulated import SimulatedModel

TASKS = al.load_tasks("atlas").where(kind=["single", "bridge"]).sample(12, seed=4)
CORPUS = al.load_corpus("atlas")
TIMES = ("latency", "seconds", "time", "run_id", "task", "retry_in")
VERDICTS = ("correct", "score")


def bare(run):
    """A trace without times, scores and the header's task."""
    return [
        (r.kind, {k: v for k, v in r.data.items() if k not in (*TIMES, *VERDICTS)})
        for r in run.trace.records
    ]


@pytest.fixture(scope="module")
def lab():
    return al.Lab(SimulatedModel("flaky"), concurrency=1)


def test_the_expected_answer_makes_no_difference_to_a_run(lab):
    recipe = al.recipes.research_qa(corpus=CORPUS, backoff=0.0)
    blind = TASKS.map(lambda task: replace(task, expected=None))
    with_answers = lab.run_many(recipe, TASKS, progress=False)
    without = lab.run_many(recipe, blind, progress=False)
    for one, other in zip(with_answers, without, strict=True):
        assert bare(one) == bare(other)
        assert other.correct is None
        assert one.answer == other.answer


def test_the_same_run_again_is_the_same_run(lab):
    recipe = al.recipes.research_qa(corpus=CORPUS, backoff=0.0)
    first, second = (lab.run(recipe, TASKS[0]) for _ in range(2))
    assert bare(first) == bare(second)


def test_seed_and_repeat_each_give_other_draws(lab):
    recipe = al.recipes.research_qa(corpus=CORPUS, backoff=0.0)
    runs = lab.run_many(recipe, TASKS, repeats=2, progress=False)
    other = lab.run_many(recipe, TASKS, seed=9, progress=False)
    assert any(bare(a) != bare(b) for a, b in zip(runs[::2], runs[1::2], strict=True))
    assert any(bare(a) != bare(b) for a, b in zip(runs[::2], other, strict=True))


def test_without_tools_almost_nothing_is_right(lab):
    recipe = al.recipes.research_qa(corpus=CORPUS, tools=(), backoff=0.0)
    runs = lab.run_many(recipe, al.load_tasks("atlas").sample(60, seed=2), progress=False)
    assert sum(bool(run.correct) for run in runs) <= 3


def test_every_run_is_labelled_simulated_wherever_it_is_shown(lab):
    run = lab.run(al.recipes.research_qa(corpus=CORPUS), TASKS[0])
    assert "simulated" in repr(run)
    assert "simulated" in run._repr_html_().lower()
    assert run.trace.header["simulated"] is True
    assert al.runs_df(run)["simulated"].tolist() == [True]
    figure = al.plot_stage_graph(run).figure
    texts = [t.get_text() for ax in figure.axes for t in ax.texts]
    texts += [t.get_text() for t in figure.texts]
    assert any("simulated" in text for text in texts)


def test_every_trace_passes_fsck_and_replays(lab, tmp_path):
    keeping = al.Lab(SimulatedModel("flaky"), folder=tmp_path, concurrency=4)
    recipe = al.recipes.research_qa(corpus=CORPUS, backoff=0.0)
    for run in keeping.run_many(recipe, TASKS, progress=False):
        assert al.fsck(run.path).ok
        assert al.replay(run).ok
