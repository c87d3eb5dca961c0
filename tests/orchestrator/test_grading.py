"""A model as the scorer: traced, remembered, apart from what the agent cost."""

from __future__ import annotations

import pytest

from axislab.answers.grader import ModelGrader
from axislab.errors import ConfigError, ErrorKind, ModelError
from axislab.frames.runs import runs_df
from axislab.lab import Lab
from axislab.messages import Usage
from axislab.models.scripted import ScriptedModel
from axislab.recipe import Recipe
from axislab.tasks import Task
from tests.orchestrator.test_answer_stage import BOX, purposes, run_of

RIGHT, WRONG = "Same place. VERDICT: RIGHT", "Another place. VERDICT: WRONG"


def grader(*said, **options) -> ModelGrader:
    return ModelGrader(ScriptedModel(said), **options)


def graded(scorer: ModelGrader, script=(BOX,), **knobs):
    said = script if isinstance(script, ScriptedModel) else list(script)
    return run_of(said, recipe=Recipe(name="r", scorer=scorer), **knobs)


def test_a_model_judges_and_its_calls_are_rows_of_the_trace():
    run = graded(grader(RIGHT))
    assert (run.correct, run.score) == (True, 1.0)
    assert purposes(run) == ["main_loop", "grading 1/1"]
    assert run.trace.of("model.request")[-1].data["call"] == 1


def test_the_majority_decides_and_disagreement_is_reported():
    run = graded(grader(WRONG, RIGHT, WRONG, votes=3))
    row = runs_df(run).iloc[0]
    assert run.correct is False
    assert row["grader_disagreement"] == pytest.approx(1 / 3)
    assert not row["grader_agrees_with_text"]


@pytest.mark.parametrize(
    ("said", "correct"), [([RIGHT, WRONG], False), ([RIGHT, "hm"], True)], ids=["tie", "unclear"]
)
def test_a_tie_is_wrong_and_an_unclear_vote_does_not_count(said, correct):
    assert graded(grader(*said, votes=2)).correct is correct


def test_a_grade_is_remembered_by_content():
    judge = grader(RIGHT)
    first, second = graded(judge), graded(judge)
    assert second.correct is True
    assert purposes(second) == ["main_loop"]
    assert [r.trace.of("grade")[0].data["cached"] for r in (first, second)] == [False, True]


def test_no_answer_is_wrong_without_a_call():
    run = graded(grader(RIGHT), script=["no box"])
    assert run.correct is False
    assert purposes(run) == ["main_loop"]


@pytest.mark.parametrize(
    "said", [ModelError("no key", kind=ErrorKind.AUTH), "no verdict"], ids=["error", "unclear"]
)
def test_without_a_verdict_right_and_wrong_stay_unknown(said):
    with pytest.warns(UserWarning, match="the grader raised"):
        run = graded(ModelGrader(ScriptedModel([said], name=f"judge {said!r}")))
    assert (run.correct, run.score, run.status) == (None, None, "COMPLETED")
    assert run.error_kind == "scorer"
    assert run.answer == "Verren"


def test_grading_is_no_part_of_what_the_agent_used():
    usage = Usage(input_tokens=100, output_tokens=10)
    judge = ModelGrader(ScriptedModel([RIGHT], usage=usage))
    mine = Usage(input_tokens=7, output_tokens=1)
    run = graded(judge, script=ScriptedModel([BOX], usage=mine))
    assert run.usage.input_tokens == 7
    row = runs_df(run).iloc[0]
    assert (row["requests"], row["model_calls"], row["input_tokens"]) == (1, 1, 7)


def test_a_grader_is_part_of_the_recipe():
    one, same, other = grader(RIGHT), grader(RIGHT), grader(RIGHT, votes=3)
    prints = [Recipe(name="r", scorer=s).fingerprint for s in (one, same, other)]
    assert prints[0] == prints[1] != prints[2]
    with pytest.raises(ConfigError, match="votes=0"):
        grader(RIGHT, votes=0)
    with pytest.raises(ConfigError, match="lacks"):
        grader(RIGHT, prompt="{question} {answer}")
    with pytest.raises(ConfigError, match="give it to a Recipe"):
        one("a", "a")


class Paid(ScriptedModel):
    """Counts as a real model, so that its replies are worth keeping."""

    simulated = False


def test_grades_can_be_kept_beyond_the_process(tmp_path):
    asked = []
    for _ in range(2):
        judge = Paid([RIGHT], name="judge")
        run = graded(ModelGrader(judge, cache=tmp_path / "grades"))
        assert run.correct is True
        asked.append(len(judge.requests))
    assert asked == [1, 0]
    assert run.trace.of("model.request")[-1].data["cached"] is True


def test_what_a_grader_uses_counts_under_the_ceilings_of_the_lab():
    usage = Usage(input_tokens=100, output_tokens=10)
    judge = ModelGrader(ScriptedModel([RIGHT], usage=usage, after="repeat"))
    mine = Usage(input_tokens=7, output_tokens=1)
    lab = Lab(ScriptedModel([BOX], usage=mine, after="repeat"))
    recipe = Recipe(name="r", scorer=judge).with_(max_output_tokens=20, max_turns=2)
    run = lab.run(recipe, Task("t", "Which?", "Verren"))
    assert run.correct is True
    assert (lab.spent.requests, lab.spent.tokens) == (2, 118)
    with (
        lab.budget(tokens=60),
        pytest.warns(UserWarning, match="grader raised.*the lab's budget"),
    ):
        other = lab.run(recipe, Task("u", "Which one?", "Verren"))
    assert other.correct is None, "there was no room to ask the grader"
    assert lab.spent.requests == 3
