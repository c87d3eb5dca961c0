"""Intents: recognised in two languages with a confidence; drift is found and says its cost."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axislab.errors import ConfigError
from axislab.fsm.dialog_values import DialogContext, Intent, PlanStep, Relation, StepResult
from axislab.fsm.intents import (
    KeywordIntents,
    Skill,
    about_of,
    find_drift,
    plan_for,
    skills_by_name,
)

BUILD = PlanStep(name="build", prompt="Build {about}.")
SHIP = PlanStep(name="ship", prompt="Ship {about}.", key=True)
TRY = PlanStep(name="try", prompt="Ship {about} to 5 %.", key=True)
SKILLS = [
    Skill(name="deploy", keywords=["deploy", "release", "部署", "发布"], steps=[BUILD, SHIP]),
    Skill(
        name="canary",
        keywords=["canary", "灰度"],
        steps=[BUILD, TRY],
        refines=["deploy"],
    ),
    Skill(name="repair", keywords=["repair", "fix", "修复", "排查"], steps=[PlanStep(name="look")]),
    Skill(name="wipe", keywords=["wipe"], steps=[PlanStep(name="wipe", key=True)], risky=True),
]
NAMED = skills_by_name(SKILLS)
hear = KeywordIntents(SKILLS)
GOAL = hear("deploy v2", None)


@pytest.mark.parametrize(
    ("text", "name", "about"),
    [
        ("Please deploy v2", "deploy", "v2"),
        ("部署 v2 版本", "deploy", "v2"),
        ("部署v2版本", "deploy", "v2"),
        ("DEPLOYING Ｖ２", "deploy", "v2"),
        ("排查集群故障并自动修复", "repair", ""),
        ("先灰度发布", "canary", ""),
        ("canary release of 2.1.0", "canary", "2.1.0"),
        ("don't repair node-7, deploy v3", "deploy", "node-7 v3"),
        ("不要修复,部署 v3", "deploy", "v3"),
    ],
)
def test_a_skill_is_recognised_with_confidence(text, name, about):
    found = hear(text, None)
    assert (found.name, found.about) == (name, about)
    assert found.confidence > 0.8
    assert found.relation is Relation.NEW
    assert name in found.why


@pytest.mark.parametrize(
    "text",
    [
        "deploy and repair",
        "部署还是修复",
        "maybe deploy v2",
        "要不要部署",
        "hello there",
        "don't deploy",
        "不要部署",
        "",
        "redeployed",
    ],
)
def test_what_is_unclear_is_not_confident(text):
    assert hear(text, None).confidence <= 0.8


@pytest.mark.parametrize(
    ("text", "name", "relation"),
    [
        ("canary first", "canary", Relation.CHANGED),
        ("先灰度发布", "canary", Relation.CHANGED),
        ("repair the cluster instead", "repair", Relation.CHANGED),
        ("改成修复集群", "repair", Relation.CHANGED),
        ("also repair the cluster", "repair", Relation.ADDED),
        ("顺便排查一下", "repair", Relation.ADDED),
        ("deploy v2", "deploy", Relation.SAME),
        ("deploy it", "deploy", Relation.SAME),
        ("deploy v3", "deploy", Relation.CHANGED),
        ("v3 please", "deploy", Relation.CHANGED),
        ("v2 please", "deploy", Relation.SAME),
    ],
)
def test_in_the_middle_of_a_task_the_relation_to_its_goal_is_found(text, name, relation):
    found = hear(text, GOAL)
    assert (found.name, found.relation) == (name, relation)
    assert found.about in ("v2", "v3")


def test_another_goal_that_says_nothing_of_the_first_is_less_sure():
    found = hear("repair the cluster", GOAL)
    assert found.relation is Relation.CHANGED
    assert 0.8 < found.confidence < 0.9


def working(*, done=(), left=(SHIP,)):
    return DialogContext(intents=[GOAL], executed=list(done), steps=list(left))


BUILT = StepResult(step="build", conclusion="built", asked="Build v2.")
SHIPPED = StepResult(step="ship", conclusion="shipped", asked="Ship v2.", key=True)


def test_a_change_keeps_the_results_that_the_new_plan_would_ask_for_again():
    drift = find_drift(hear("先灰度发布", GOAL), working(done=[BUILT]), NAMED)
    assert [step.name for step in drift.plan.steps] == ["try"]
    assert (drift.plan.kept, drift.plan.dropped) == (("build",), ("ship",))
    assert drift.risk == ""
    assert str(drift) == "Changed goal: canary v2; drops ship; keeps build"


def test_a_result_for_another_version_is_not_kept():
    drift = find_drift(hear("deploy v3", GOAL), working(done=[BUILT]), NAMED)
    assert [step.prompt for step in drift.plan.steps] == ["Build v3.", "Ship v3."]
    assert drift.plan.kept == ()


@pytest.mark.parametrize(
    ("later", "kept"),
    [
        ([], True),
        ([replace(SHIPPED, asked="Ship v3.")], False),
        ([replace(SHIPPED, step="wipe", asked="Wipe.", goal="wipe")], False),
        ([replace(SHIPPED, step="announce", asked="Tell all.")], True),
        ([replace(BUILT, asked="Build v3.", goal="other")], True),
    ],
)
def test_what_a_key_operation_did_is_kept_until_another_undoes_it(later, kept):
    plan = plan_for(GOAL, working(done=[BUILT, SHIPPED, *later]), NAMED)
    assert ("ship" in plan.kept) is kept
    assert ("ship" in [step.name for step in plan.steps]) is not kept
    assert "build" in plan.kept


@pytest.mark.parametrize(
    ("text", "done", "words"),
    [
        ("canary first", [BUILT, SHIPPED], "ship has been done already"),
        ("repair the cluster", [], "confidence 0.85"),
        ("wipe it instead", [], "wipe is marked risky"),
        ("also wipe it", [], "wipe is marked risky"),
    ],
)
def test_a_risky_change_says_why(text, done, words):
    assert words in find_drift(hear(text, GOAL), working(done=done), NAMED).risk


def test_an_added_goal_leaves_the_plan_as_it_is():
    drift = find_drift(hear("also repair the cluster", GOAL), working(), NAMED)
    assert drift.plan.steps == (SHIP,)
    assert (drift.plan.dropped, drift.risk) == ((), "")


@pytest.mark.parametrize("text", ["deploy v2", "deploy"])
def test_the_same_goal_again_is_no_drift(text):
    assert find_drift(hear(text, GOAL), working(), NAMED) is None
    assert find_drift(hear(text, None), DialogContext(), NAMED) is None


def test_a_plan_fills_in_what_the_goal_is_about():
    plan = plan_for(GOAL, DialogContext(), NAMED)
    assert [step.prompt for step in plan.steps] == ["Build v2.", "Ship v2."]
    assert {step.goal for step in plan.steps} == {"deploy"}
    bare = plan_for(replace(GOAL, about=""), DialogContext(), NAMED)
    assert bare.steps[1].prompt == "Ship ."


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Skill(name="", steps=[BUILD]), "give a name"),
        (lambda: Skill(name="x"), "give a name, and steps"),
        (lambda: Skill(name="x", steps=[BUILD, BUILD]), "names that differ"),
        (lambda: Skill(name="x", steps=[BUILD], keywords="x"), r"\['x'\]"),
        (lambda: Skill(name="x", steps=[BUILD], remedies={"y": [SHIP]}), "remedies for"),
        (lambda: KeywordIntents([Skill(name="x", steps=[BUILD])]), "no keywords"),
        (lambda: skills_by_name([]), "give some"),
        (lambda: skills_by_name([SKILLS[0], SKILLS[0]]), "names that differ"),
        (lambda: skills_by_name([SKILLS[1]]), r"refines \['deploy'\]"),
    ],
)
def test_skills_that_cannot_be_are_refused(make, words):
    with pytest.raises(ConfigError, match=words):
        make()


@given(st.text(max_size=60), st.sampled_from([None, GOAL]))
def test_any_text_gives_an_intent_and_never_an_error(text, goal):
    found = hear(text, goal)
    assert 0 <= found.confidence <= 1
    assert found.name in {"", *NAMED}
    assert (found.name == "") == (found.confidence == 0)


def test_things_with_a_number_are_what_it_is_about():
    assert about_of("Move node-7 and v2.1 to 50") == "node-7 v2.1 50"
    assert about_of("nothing") == ""


def test_an_intent_is_a_value():
    assert Intent(name="x") == Intent(name="x")
