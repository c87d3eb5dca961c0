"""Studies on the simulated agent: alike arms are found alike, and a known effect is found."""

from __future__ import annotations

import pytest

import axislab as al

TASKS = al.load_tasks("sums")


def aa(seed, n=16):
    lab = al.Lab("axislab/simulated-flaky")
    recipe = al.recipes.boxed_math(max_turns=4)
    same = {"a": recipe, "again": recipe}
    return lab.compare(
        same, TASKS.sample(n, seed=seed), name="aa", seed=seed, concurrency=16, progress=False
    )


@pytest.mark.parametrize("studies", [12, pytest.param(60, marks=pytest.mark.slow)])
def test_an_arm_is_not_told_from_itself_though_its_runs_differ(studies):
    found = [aa(seed).contrast("again") for seed in range(studies)]
    told_apart = sum(contrast.p <= 0.05 for contrast in found)
    assert told_apart <= max(2, 0.1 * studies)
    assert sum(contrast.found.informative for contrast in found) >= studies / 2
    assert all(contrast.copies == 0 for contrast in found)
    assert all(
        contrast.found.low <= 0 <= contrast.found.high for contrast in found if contrast.p > 0.05
    )


def test_common_draws_make_an_arm_its_own_copy_and_nothing_is_found():
    lab = al.Lab("axislab/simulated-flaky", coupling="common")
    recipe = al.recipes.boxed_math(max_turns=4)
    study = lab.compare({"a": recipe, "again": recipe}, TASKS[:12], name="aa", progress=False)
    found = study.contrast("again")
    assert (found.estimate, found.found.informative, found.p) == (0.0, 0, 1.0)


def test_an_arm_that_cannot_work_is_told_from_one_that_can():
    lab = al.Lab("axislab/simulated")
    recipe = al.recipes.boxed_math()
    made = {"tools": recipe, "none": recipe.with_(tools=(), system_prompt="Say nothing of use.")}
    study = lab.compare(made, TASKS[:30], name="s", progress=False, concurrency=16)
    found = study.contrast("none", minus="tools")
    assert found.p < 0.05
    assert found.estimate < 0
    assert found.verdict.startswith("On simulated runs, 'none' has lower accuracy than 'tools'")
