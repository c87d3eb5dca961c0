"""A dialog: the two stories of the seed, and what else can happen to one on the way."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import axislab as al
from axislab.dialog.recipe import DialogRecipe
from axislab.dialog.session import TYPES
from axislab.dialog.steps import judge, task_of
from axislab.errors import ConfigError, MachineError, ModelError, TraceError, TransitionNotAllowed
from axislab.fsm.dialog import DialogState as S
from axislab.fsm.dialog_values import DialogContext, Intent, PlanStep, StepResult
from axislab.fsm.intents import Skill
from axislab.fsm.machine import TransitionRule
from axislab.models.scripted import ScriptedModel
from axislab.recipes.ops_dialog import RECOVERED
from axislab.trace.snapshot_file import read_snapshots
from tests.dialog.ops_world import World, opened, operator

# The stories of the seed -------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["troubleshoot the cluster and fix it", "排查集群故障并自动修复"])
def test_the_diagnosis_of_step_one_is_not_made_again_when_the_third_fails(words):
    world, chat = opened()
    assert chat.say(words).asks == "operation"
    assert world.calls == ["diagnose"]
    reply = chat.confirm()
    # The restart did not help: three looks at the service, then recovery, which has another idea.
    assert world.calls == ["diagnose", "restart node-7", *["check_service"] * 3]
    assert "RECOVERING" in [t.target for t in chat.transitions]
    assert reply.asks == "operation"
    assert "Move the service" in reply.text
    assert chat.context.kept == ["diagnose", "restart"]
    assert chat.context.failure_count == 0
    chat.confirm()
    assert chat.state is S.COMPLETED
    assert world.calls.count("diagnose") == 1
    assert world.calls[-2:] == ["move_service node-7", "check_service"]
    assert chat.conclusions["verify"] == "the service has recovered"


@pytest.mark.parametrize(
    ("first", "second"), [("deploy v2", "canary first"), ("部署 v2 版本", "先灰度发布")]
)
def test_deploy_changed_to_canary_first_never_deploys_to_all(first, second):
    world, chat = opened()
    assert "Deploy version v2 to all nodes" in chat.say(first).text
    reply = chat.say(second)
    assert "drops deploy all; keeps build" in reply.text
    assert reply.asks == "operation"
    assert world.calls == ["build v2"]
    chat.confirm()
    assert chat.state is S.COMPLETED
    assert world.shares == {"v2": 5}
    assert world.calls == ["build v2", "deploy v2 5", "error_rate v2"]


def test_drift_between_two_steps_is_noticed_too():
    world, chat = opened()
    chat.say("deploy v2", steps=1)
    assert chat.machine.path[1].name == "BETWEEN_STEPS"
    chat.say("canary first")
    chat.confirm()
    assert world.shares == {"v2": 5}


# Changes of goal ---------------------------------------------------------------------------------


def deployed_to_canary():
    """v2 runs on 5 % of the nodes, and the check has not been made yet."""
    world, chat = opened()
    chat.say("canary release of v2")
    chat.confirm(steps=1)
    assert world.shares == {"v2": 5}
    return world, chat


def test_a_change_after_something_was_done_is_asked_about_inside_executing():
    world, chat = deployed_to_canary()
    reply = chat.say("deploy v3 to everyone")
    assert reply.asks == "change"
    assert reply.state == "EXECUTING/WAITING_PERSON"
    assert "deploy canary has been done already" in reply.text
    assert world.calls == ["build v2", "deploy v2 5"]
    reply = chat.confirm()
    assert reply.asks == "operation"
    assert [i.about for i in chat.intents] == ["v3"]
    assert world.calls[-1] == "build v3"


def test_a_refused_change_leaves_goal_and_plan_as_they_were():
    world, chat = deployed_to_canary()
    chat.say("deploy v3")
    assert "First: " in chat.say("hello?").text
    chat.reject("later")
    assert chat.state is S.COMPLETED
    assert world.calls == ["build v2", "deploy v2 5", "error_rate v2"]


def test_a_change_that_is_asked_about_while_an_operation_waits():
    world, chat = opened()
    chat.say("deploy v2")
    reply = chat.say("repair the cluster")
    assert (reply.asks, reply.state) == ("change", "CONFIRMING")
    with pytest.raises(TransitionNotAllowed):
        chat.machine.fire("user_confirmed")
    reply = chat.reject()
    assert (reply.asks, reply.state) == ("operation", "CONFIRMING")
    chat.say("repair the cluster")
    chat.confirm()
    assert chat.context.goal.name == "repair"
    assert world.calls == ["build v2", "diagnose"]


def test_an_added_goal_is_worked_on_after_the_first():
    world, chat = opened()
    chat.say("deploy v2")
    chat.say("also troubleshoot the cluster")
    assert [i.name for i in chat.intents] == ["repair", "deploy"]
    chat.confirm()
    assert world.calls == ["build v2", "deploy v2 100", "error_rate v2", "diagnose"]
    assert [i.name for i in chat.intents] == ["repair"]


def test_what_is_no_change_changes_nothing():
    world, chat = opened()
    chat.say("deploy v2")
    for text, why in (("deploy v2!", "the goal is the same"), ("what?", "not understood")):
        assert why in chat.say(text).text
    assert "maybe" in chat.say("maybe canary?").text
    assert chat.state is S.CONFIRMING
    assert world.calls == ["build v2"]


def test_a_yes_in_words_confirms_nothing():
    world, chat = opened()
    chat.say("deploy v2")
    chat.say("yes, confirm it")
    assert chat.state is S.CONFIRMING
    assert world.shares == {}


def test_a_goal_that_is_negated_is_no_other_goal_and_is_told_as_such():
    world, chat = opened()
    chat.say("deploy v2")
    for text in ("don't deploy v2", "不要部署"):
        assert "Nothing changes: not understood (negated: " in chat.say(text).text
    assert world.shares == {}


# Confirmations -----------------------------------------------------------------------------------


def test_a_refused_operation_is_not_done_and_the_plan_waits():
    world, chat = opened()
    chat.say("deploy v2")
    reply = chat.reject("not on a Friday")
    assert reply.state == "TASK_PLAN"
    assert "not on a Friday" in reply.text
    assert "go_on() goes on without it (check)" in reply.text
    assert chat.context.refusals == ["deploy all: not on a Friday"]
    chat.say("canary")
    chat.confirm()
    assert world.shares == {"v2": 5}


def test_after_a_refusal_one_can_go_on_without_it():
    world, chat = opened()
    chat.say("deploy v2")
    chat.reject()
    chat.go_on()
    assert chat.state is S.COMPLETED
    assert world.calls == ["build v2", "error_rate v2"]


@pytest.mark.parametrize("decide", ["confirm", "reject"])
def test_there_is_nothing_to_decide_before_something_is_asked(decide):
    _, chat = opened()
    with pytest.raises(TransitionNotAllowed, match="'user_input'"):
        getattr(chat, decide)()
    assert chat.transitions[-1].outcome == "refused"


# Failures ----------------------------------------------------------------------------------------


def failing(times, then=operator):
    """A model that cannot be asked so many times, and then can."""
    left = [times]

    def line(request):
        if left[0] > 0:
            left[0] -= 1
            return ModelError("the provider is down")
        return then(request)

    return ScriptedModel(line)


def test_a_step_that_fails_is_tried_again_and_told_so():
    world, chat = opened(model=failing(2))
    chat.say("deploy v2")
    assert chat.state is S.CONFIRMING
    assert world.calls == ["build v2"]
    assert len(chat.context.failures) == 2
    assert "Failed before:\n- build: the run is FAILED" in chat.runs[-1].prompt


def test_recovery_before_any_step_plans_anew():
    _, chat = opened(model=failing(3))
    chat.say("deploy v2")
    assert chat.state is S.CONFIRMING
    assert ("RECOVERING", "TASK_PLAN") in [(t.source, t.target) for t in chat.transitions]


def test_what_no_recovery_helps_fails_with_its_reason():
    _, chat = opened(model=failing(10_000), max_failures=2, max_recoveries=1)
    reply = chat.say("deploy v2")
    assert chat.state is S.FAILED
    assert "1 recoveries did not help: build: the run is FAILED" in reply.text
    assert len(chat.runs) == 4
    with pytest.raises(TransitionNotAllowed, match="FAILED is final"):
        chat.say("again")


def test_what_breaks_the_step_itself_is_raised_and_is_no_failure_of_it():
    _, chat = opened()

    def broken(task):
        raise KeyboardInterrupt

    chat._run_step, kept = broken, chat._run_step
    with pytest.raises(KeyboardInterrupt):
        chat.say("deploy v2")
    assert chat.machine.path[1].name == "BETWEEN_STEPS"
    assert chat.context.failure_count == 0
    assert "KeyboardInterrupt" in chat.context.failures[0]
    chat._run_step = kept
    assert chat.go_on().asks == "operation"


def test_an_answer_without_what_the_step_expects_is_a_failure():
    step = PlanStep(name="verify", prompt="Check", expect=RECOVERED)
    for answer, good in [
        ("the service has recovered", True),
        ("服务已恢复", True),
        ("the service has not recovered", False),
        ("it is still down", False),
        ("服务没有恢复", False),
        ("unknown", False),
    ]:
        lab = al.Lab(ScriptedModel([f"\\boxed{{{answer}}}"]))
        judged = judge(step, lab.run(al.recipes.boxed_math(), "x"))
        assert (judged.result is not None) is good, answer
        assert bool(judged.why) is not good
    lab = al.Lab(ScriptedModel(["it is down"]))
    judged = judge(PlanStep(name="a", expect="up"), lab.run(al.Recipe(name="plain"), "x"))
    assert judged.why == "'it is down' is not what the step expects ('up')"


def test_a_step_is_told_what_is_known():
    context = DialogContext(
        session_id="s", executed=[StepResult(step="diagnose", conclusion="node-7")]
    )
    task = task_of(PlanStep(name="restart", prompt="Restart it."), context)
    assert task.prompt == (
        "Restart it.\n\nAlready known, not to be found out again:\n- diagnose: node-7"
    )


# Tasks one after the other -----------------------------------------------------------------------


def test_a_new_task_starts_with_nothing_of_the_old_one():
    world, chat = opened()
    chat.say("deploy v2")
    chat.confirm()
    chat.say("deploy v3")
    assert chat.context.heard == ["deploy v3"]
    assert list(chat.conclusions) == ["build"]
    assert world.calls[-1] == "build v3"


def test_what_is_not_understood_leaves_it_idle_and_says_what_it_can_do():
    _, chat = opened()
    reply = chat.say("sing a song")
    assert reply.state == "IDLE"
    assert "repair, deploy, canary" in reply.text
    assert chat.say("deploy v2").asks == "operation"


def test_it_can_be_cancelled_at_any_time():
    _, chat = opened()
    chat.say("deploy v2")
    assert chat.cancel("enough").text == "Cancelled: enough."
    assert chat.state is S.CANCELLED
    assert chat.context.pending is None


@pytest.mark.parametrize("text", ["", "  ", None, 3])
def test_saying_nothing_is_refused(text):
    with pytest.raises(ConfigError, match="say something"):
        opened()[1].say(text)


# Memory ------------------------------------------------------------------------------------------


def test_it_shows_itself_as_it_was_at_any_moment():
    _, chat = opened()
    chat.say("deploy v2")
    seq = len(chat.transitions) - 1
    then = chat.context
    chat.say("canary first")
    chat.confirm()
    moment = chat.at(seq)
    assert moment.context == then
    assert moment.path == ("CONFIRMING",)
    assert chat.at(0).context.heard == []
    assert chat.state is S.COMPLETED


def test_a_session_goes_on_in_another_process(tmp_path):
    world, chat = opened(folder=tmp_path, session="ops")
    chat.say("deploy v2")
    _, again = opened(world, folder=tmp_path, session="ops")
    with pytest.raises(TraceError, match="is closed: open it again"):
        chat.confirm()  # the cell ran again: another has taken over
    assert chat.state is S.CONFIRMING
    assert again.state is S.CONFIRMING
    assert again.last.asks == "operation"
    again.say("先灰度发布")
    again.confirm()
    assert world.calls == ["build v2", "deploy v2 5", "error_rate v2"]
    assert len(al.load_runs(tmp_path)) == 3
    again.close()
    history = read_snapshots(tmp_path / "ops.dialog", types=TYPES)
    assert history.recover().context == again.context


SCRIPT = """
import os, sys, time
from tests.dialog.ops_world import World, opened
import axislab as al

class Slow(World):
    def release_tools(self):
        build, deploy, rate = super().release_tools()
        @al.tool
        def deploy(version: str, percent: int) -> str:
            "Deploy a version."
            print("deploying", flush=True)
            time.sleep(60)
        return [build, deploy, rate]

_, chat = opened(Slow(), folder=sys.argv[1], session="ops")
chat.say("deploy v2")
chat.confirm()
"""


def test_a_key_operation_in_flight_when_the_process_was_killed_is_asked_about_again(tmp_path):
    root = str(Path(al.__file__).parents[1])
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": root},
    )
    try:
        assert child.stdout.readline() == "deploying\n"
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()
    world, chat = opened(folder=tmp_path, session="ops")
    assert chat.machine.path[1].name == "BETWEEN_STEPS"
    assert "whether it had its effect is not known" in chat.context.failures[-1]
    assert chat.context.failure_count == 0
    reply = chat.go_on()
    assert reply.asks == "operation"
    assert world.calls == []
    chat.confirm()
    assert world.calls == ["deploy v2 100", "error_rate v2"]
    assert "whether it had its effect" in chat.runs[0].prompt


@pytest.mark.parametrize(
    ("events", "place"),
    [
        ([("user_input", {"text": "deploy v2"})], "IDLE"),
        (
            [
                ("user_input", {"text": "deploy v2"}),
                ("intent_resolved", {"intent": Intent(name="deploy", about="v2")}),
                ("steps_confirmed", {"steps": [PlanStep(name="build")]}),
                ("step_started", {}),
                ("execution_failed", {"why": "down"}),
            ],
            "TASK_PLAN",
        ),
    ],
)
def test_a_session_left_in_the_middle_of_a_thought_can_be_gone_on_with(tmp_path, events, place):
    world, chat = opened(folder=tmp_path, session="ops", max_failures=1)
    for event, payload in events:
        chat.machine.fire(event, **payload)
    chat.close()
    _, again = opened(world, folder=tmp_path, session="ops", max_failures=1)
    assert again.last.state == place
    assert again.context.steps == ([] if place == "IDLE" else [PlanStep(name="build")])
    again.say("deploy v2") if place == "IDLE" else again.go_on()
    assert again.last.asks == "operation"


def test_after_all_was_refused_the_next_goal_is_worked_on_if_there_is_one():
    world, chat = opened()
    chat.say("deploy v2")
    chat.say("also fix the cluster")
    chat.reject()
    chat.go_on()
    assert world.calls == ["build v2", "error_rate v2", "diagnose"]


def test_where_all_there_was_to_do_is_refused_nothing_is_called_done():
    skill = Skill(name="wipe", keywords=["wipe"], steps=[PlanStep(name="wipe", key=True)])
    lab = al.Lab(ScriptedModel(operator))
    chat = lab.dialog(al.recipes.boxed_math(), skills=[skill])
    chat.say("wipe it")
    chat.reject("never")
    with pytest.raises(TransitionNotAllowed, match="has_steps does not hold"):
        chat.go_on()
    assert chat.state is S.TASK_PLAN


# Recipes -----------------------------------------------------------------------------------------


def test_a_plain_recipe_needs_skills():
    lab = al.Lab(ScriptedModel(lambda request: "\\boxed{it is said}"))
    agent = al.recipes.boxed_math()
    with pytest.raises(ConfigError, match="skills="):
        lab.dialog(agent)
    with pytest.raises(ConfigError, match="DialogRecipe"):
        lab.dialog("ops")
    skill = Skill(name="greet", keywords=["greet"], steps=[PlanStep(name="hello")])
    chat = lab.dialog(agent, skills=[skill])
    assert chat.say("greet me").state == "COMPLETED"
    assert chat.conclusions == {"hello": "it is said"}


def test_rules_of_ones_own_and_classifiers_of_ones_own():
    rule = TransitionRule(
        S.EXECUTING, "execution_failed", S.FAILED, lambda c, p: "FAILED" in p["why"]
    )
    world = World()
    lab = al.Lab(failing(1))
    recipe = al.recipes.ops_dialog(tools=world.tools(), rules=[rule])
    chat = lab.dialog(
        recipe, intents=lambda text, goal: Intent(name="deploy", about="v9", confidence=0.99)
    )
    chat.say("whatever")
    assert chat.state is S.FAILED


def test_a_session_goes_on_only_with_skills_that_have_its_goal(tmp_path):
    _, chat = opened(folder=tmp_path, session="ops")
    chat.say("deploy v2")
    chat.close()
    skill = Skill(name="greet", keywords=["greet"], steps=[PlanStep(name="hello")])
    with pytest.raises(ConfigError, match=r"works at \['deploy'\], which is none"):
        opened(folder=tmp_path, session="ops", skills=[skill])
    assert opened(folder=tmp_path, session="ops")[1].state is S.CONFIRMING


def test_a_plan_without_a_goal_fails_and_says_so():
    rule = TransitionRule(S.IDLE, "jump", S.TASK_PLAN)
    _, chat = opened(rules=[rule])
    chat.machine.fire("jump")
    assert chat.go_on().text == "Failed: there is no goal to plan for."


def test_recovery_without_a_plan_plans_anew():
    rule = TransitionRule(S.TASK_PLAN, "stumble", S.RECOVERING)
    _, chat = opened(rules=[rule])
    chat.machine.fire("user_input", text="deploy v2")
    chat.machine.fire("intent_resolved", intent=Intent(name="deploy", about="v2"))
    chat.machine.fire("stumble")
    assert chat.go_on().asks == "operation"


def test_an_agent_that_says_nothing_has_done_nothing():
    lab = al.Lab(ScriptedModel(["  "]))
    run = lab.run(al.Recipe(name="silent").with_(on_empty_reply="accept"), "x")
    assert judge(PlanStep(name="a"), run).why == "the run ended without an answer"


@pytest.mark.parametrize("gives", ["deploy", Intent(name="dance"), None])
def test_a_classifier_that_gives_no_intent_of_the_skills_is_refused(gives):
    _, chat = opened(intents=lambda text, goal: gives)
    with pytest.raises(ConfigError, match="repair, deploy, canary"):
        chat.say("deploy v2")
    assert chat.state is S.IDLE


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"skills": []}, ConfigError, "give some"),
        ({"agent": "x"}, ConfigError, "give a Recipe"),
        ({"min_confidence": 1}, ConfigError, "min_confidence=1"),
        ({"max_failures": 0}, ConfigError, "max_failures=0"),
        ({"max_recoveries": True}, ConfigError, "max_recoveries=True"),
        ({"rules": [TransitionRule(S.IDLE, "user_input", S.IDLE)]}, MachineError, "never win"),
        ({"nonsense": 1}, ConfigError, "is no knob"),
    ],
)
def test_a_recipe_that_cannot_be_is_refused(fields, error, words):
    with pytest.raises(error, match=words):
        al.recipes.ops_dialog(tools=[], **fields)


def test_fields_go_to_the_dialog_and_knobs_to_its_agent():
    recipe = al.recipes.ops_dialog(tools=[], max_failures=1, max_turns=3)
    assert recipe.max_failures == 1
    assert recipe.agent.config.knob("max_turns") == 3
    assert isinstance(recipe, DialogRecipe)
    assert repr(recipe).startswith("DialogRecipe('ops_dialog', skills repair, deploy, canary")


def test_an_unknown_classifier_is_refused():
    with pytest.raises(ConfigError, match="intents='magic': 'keywords', 'model'"):
        opened(intents="magic")


# What it looks like ------------------------------------------------------------------------------


def test_it_renders_itself_and_everything_anybody_wrote_is_escaped():
    evil = "<script>alert(1)</script>"
    _, chat = opened(model=ScriptedModel(lambda r: f"\\boxed{{{evil}}}"))
    assert "CONFIRMING" in chat.say(f"deploy v2 {evil}")._repr_html_()
    chat.reject(evil)
    page = chat._repr_html_() + chat.last._repr_html_()
    assert evil not in page
    assert "&lt;script&gt;" in page
    assert "simulated" in page
    assert re.search(r"\(\d+ of \d+\)", page)
    chat.say(f"canary {evil}")
    assert "asks about the operation" in chat.last._repr_html_()
    assert evil not in chat._repr_html_()


def test_its_repr_is_one_line_that_says_where_it_is():
    _, chat = opened(session="ops")
    assert repr(chat) == "<Dialog ops IDLE, 1 events>"
    assert repr(chat.say("deploy v2")).startswith("[CONFIRMING] deploy all is a key operation")
    assert "simulated" in repr(chat)
    assert str(chat.last) == chat.last.text


def test_runs_know_their_session_so_that_frames_can_group_them():
    _, chat = opened(session="ops")
    chat.say("deploy v2")
    frame = al.runs_df(chat.runs)
    assert frame["study"].tolist() == ["ops"]
    assert frame["kind"].tolist() == ["step"]


# Any way through ---------------------------------------------------------------------------------

SAYINGS = ["deploy v2", "deploy v3", "先灰度发布", "fix the cluster", "also fix the cluster", "hm"]
MOVES = st.sampled_from([*SAYINGS, "confirm", "reject", "go_on", "one step"])


@settings(max_examples=25, deadline=None)
@given(st.lists(MOVES, max_size=9))
def test_whatever_is_said_no_key_operation_runs_without_a_yes_of_its_own(moves):
    world, chat = opened(max_failures=1)
    allowed = 0
    for move in moves:
        operation, before = chat.context.pending, len(world.key_calls)
        try:
            if move == "confirm":
                chat.confirm()
                allowed += 1
            elif move in ("reject", "go_on"):
                getattr(chat, move)()
            else:
                chat.say("deploy v9" if move == "one step" else move, steps=1)
        except TransitionNotAllowed:
            assert chat.transitions[-1].outcome == "refused"
        if len(world.key_calls) > before:
            assert move == "confirm"
            assert operation is not None
        assert len(world.key_calls) <= allowed
        assert chat.history.recover().context == chat.context
        assert chat.history.recover().path == tuple(s.name for s in chat.machine.path)
        assert (chat.last.asks == "") == (not chat.context.pending and not chat.context.change)
