"""Arms that differ only from the answer stage on make one main loop, and go on from its end."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
from collections import Counter

import pytest

import axislab as al
from axislab.errors import ConfigError
from axislab.models.scripted import ScriptedModel
from axislab.work import shared_groups
from tests.studykit import lasting, tasks

TURNS = 12


@al.tool
def look(n: int) -> str:
    """Look something up.

    Args:
        n: Where.
    """
    return f"Nothing at {n}."


def reply(request):
    """Twelve turns, the last without a box; then an answer stage that may need several calls."""
    if request.purpose == "main_loop":
        turn = sum(bool(message.tool_calls) for message in request.messages)
        return ScriptedModel.call("look", n=turn) if turn < TURNS - 1 else "It is nearly there."
    draw = hashlib.sha256(request.draw.encode()).digest()[0]
    return r"\boxed{4}" if draw < 90 else "Still no box."


def model(**options):
    return ScriptedModel(reply, usage="estimate", **options)


RECIPE = al.Recipe(name="agent", tools=(look,)).with_(answer_stage="always")
FOUR = al.grid(RECIPE, answer_attempts=[1, 2, 3, 4])


def compare(lab, made=None, n=10, **options):
    return lab.compare(
        made or FOUR, tasks(n), **{"name": "s", "progress": False, "concurrency": 6, **options}
    )


def came_to(study):
    return [(o.arm, o.task_id, o.repeat, o.end, o.correct, o.tokens) for o in study.outcomes]


def test_four_arms_make_one_main_loop_and_the_same_outcomes_as_apart():
    shared_model, separate_model = model(), model()
    shared = compare(al.Lab(shared_model, coupling="common"))
    separate = compare(al.Lab(separate_model, coupling="common"), prefix="separate")
    assert shared.shared == (tuple(FOUR),)
    assert separate.shared == ()
    purposes = Counter(request.purpose for request in shared_model.requests)
    assert purposes["main_loop"] == 10 * TURNS
    assert len(shared_model.requests) <= 0.4 * len(separate_model.requests)
    assert came_to(shared) == came_to(separate)
    assert shared.saving.calls == 3 * 10 * TURNS
    assert shared.saving.of == len(separate_model.requests)
    assert shared.new_calls == len(shared_model.requests)
    assert "shared prefix: 360 of" in repr(shared)


def test_tokens_are_shared_or_own_whoever_sent_them():
    summary = compare(al.Lab(model())).summary()
    assert summary.shared_requests.tolist() == [120] * 4
    assert summary.shared_tokens.nunique() == 1
    assert (summary.shared_tokens + summary.own_tokens).tolist() == (
        summary.input_tokens + summary.output_tokens
    ).tolist()
    assert summary.own_tokens.is_monotonic_increasing
    assert summary.cached.tolist() == [0] * 4
    apart = compare(al.Lab(model()), prefix="separate").summary()
    assert apart.shared_requests.tolist() == apart.shared_tokens.tolist() == [0] * 4


def test_each_arm_has_a_whole_trace_of_its_own(tmp_path):
    study = compare(al.Lab(model(), folder=tmp_path), n=3)
    for run in study.runs:
        assert al.fsck(run.path).ok
        assert run.turns >= TURNS
    by_arm = {arm: [r for r in study.runs if r.arm == arm] for arm in study.arms}
    loops = {
        arm: [[m.to_dict() for m in run.messages[: 2 * TURNS]] for run in runs]
        for arm, runs in by_arm.items()
    }
    assert len({str(loop) for loop in loops.values()}) == 1


def test_repeats_and_tasks_have_main_loops_of_their_own(tmp_path):
    one = model()
    study = compare(al.Lab(one, folder=tmp_path), n=3, repeats=2)
    sent = [r for r in one.requests if r.purpose == "main_loop"]
    assert len(sent) == 3 * 2 * TURNS
    assert study.independence.dropped == 0


def test_a_stopped_study_goes_on_with_the_main_loops_it_has(tmp_path):
    first = model(delay=0.003)
    threading.Timer(0.7, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        compare(al.Lab(first, folder=tmp_path), n=40)
    begun = len(al.load_study(tmp_path / "s").runs)
    assert 0 < begun < 160
    second = model()
    study = compare(al.Lab(second, folder=tmp_path), n=40)
    assert study.complete
    loops = [r for m in (first, second) for r in m.requests if r.purpose == "main_loop"]
    assert 40 * TURNS <= len(loops) <= 40 * TURNS + 6  # those in flight
    assert lasting(study).equals(lasting(compare(al.Lab(model()), n=40)))


def test_the_simulated_agent_answers_alike_apart_and_shared():
    corpus = al.load_corpus("atlas")
    recipe = al.recipes.research_qa(corpus=corpus, max_turns=6).with_(answer_stage="always")
    made = al.grid(recipe, answer_attempts=[1, 3])
    asked = al.load_tasks("atlas")[:8]
    found = [
        al.Lab("axislab/simulated", coupling="common").compare(
            made, asked, name="s", prefix=prefix, progress=False
        )
        for prefix in ("auto", "separate")
    ]
    assert came_to(found[0]) == came_to(found[1])
    assert found[0].new_calls < 0.7 * found[1].new_calls


def test_arms_that_share_are_found_by_comparing_recipes():
    other = {"turns": RECIPE.with_(max_turns=4), **FOUR}
    assert shared_groups(other) == (tuple(FOUR),)
    twice = {"a": RECIPE, "again": RECIPE, "b": RECIPE.with_(answer_attempts=2)}
    assert shared_groups(twice) == (("a", "b"),)  # equal arms compare chance with chance
    assert shared_groups(al.grid(RECIPE, temperature=[0.0, 1.0])) == ()


def test_another_prefix_is_another_study(tmp_path):
    lab = al.Lab(model(), folder=tmp_path)
    compare(lab, n=2)
    with pytest.raises(ConfigError, match="arms with a shared prefix"):
        compare(lab, n=2, prefix="separate")
    with pytest.raises(ConfigError, match="prefix='none'"):
        compare(lab, n=2, prefix="none")
    assert compare(lab, n=2).new_calls == 0
