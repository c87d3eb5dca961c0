"""plot_attempts: every further attempt is held against the one before it."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

import axislab as al
from axislab.errors import DataError
from axislab.plots.attempts import attempts_bought, plot_attempts

RECIPE = al.recipes.boxed_math(max_turns=2, max_rollbacks=0)


def run_of(*said, arm="a", expected="4", **knobs):
    lab = al.Lab(al.ScriptedModel([*said], after="repeat"))
    recipe = RECIPE.with_(answer_stage="always", answer_attempts=3, **knobs)
    return lab.run(recipe, al.Task("t", "2 + 2?", expected), arm=arm)


def box(text):
    return f"It is \\boxed{{{text}}}."


def counts(runs, **how):
    return {(bar.arm, bar.attempt): dict(bar.counts) for bar in attempts_bought(runs, **how)}


def test_an_answer_that_comes_late_is_recovered():
    run = run_of("thinking it over", "no box here", box(4))
    frame = al.answers_df(run)
    assert run.correct is True
    assert frame.answer.dropna().tolist() == ["4"]
    assert counts([run]) == {("a", 2): {"recovered": 1}}


def test_what_stays_without_an_answer_is_unchanged():
    found = counts([run_of("thinking", "nothing", "nothing", "nothing")])
    assert found == {
        ("a", 2): {"unchanged, not right": 1},
        ("a", 3): {"unchanged, not right": 1},
    }


def test_runs_without_a_further_attempt_or_an_expected_answer_have_no_bar():
    assert counts([run_of("thinking", box(4))]) == {}
    assert counts([run_of("thinking", "no", box(4), expected=None)]) == {}


def test_arms_have_bars_of_their_own_in_order():
    runs = [
        run_of("hm", "no", box(4), arm="z"),
        run_of("hm", "no", box(5), arm="b"),
        run_of("hm", "no", "no", box(4), arm="z"),
    ]
    bars = attempts_bought(runs)
    assert [(bar.arm, bar.attempt, bar.attempts) for bar in bars] == [
        ("z", 2, 2), ("z", 3, 1), ("b", 2, 1),
    ]  # fmt: skip
    assert counts(runs)["z", 2] == {"recovered": 1, "unchanged, not right": 1}
    assert counts(runs)["b", 2] == {"unchanged, not right": 1}


def test_another_scorer_judges_the_answers_on_the_way():
    run = run_of("hm", "no", box(5))
    assert counts([run], scorer=lambda answer, _: answer == "5") == {("a", 2): {"recovered": 1}}


def test_whole_tries_can_be_held_against_each_other():
    run = run_of("hm", "no", "no", "no", "a summary", box(4), tries=2)
    assert len(al.attempts_df(run)) == 2
    assert sum(sum(found.values()) for found in counts([run], of="tries").values()) == 1


def test_an_unknown_level_is_refused():
    with pytest.raises(DataError, match="did you mean 'tries'"):
        attempts_bought([], of="trys")


def test_the_picture_says_what_it_shows():
    ax = plot_attempts([run_of("hm", "no", box(4))], ax=Figure().subplots())
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["recovered (1)"]
    assert "simulated" in " ".join(t.get_text() for t in ax.figure.texts + ax.texts)
    assert plot_attempts([]).texts[0].get_text() == "no further attempts"
