"""What each rule said about a recorded reply."""

from __future__ import annotations

import pytest

import axislab as al
from axislab.errors import TraceError
from axislab.models.scripted import ScriptedModel


@al.tool
def lookup(name: str) -> str:
    """Look a place up.

    Args:
        name: What to look up.
    """
    return f"{name} lies in Verren"


def recorded(tmp_path):
    script = [ScriptedModel.call("lookup", name="Osk"), "I cannot help with that.", "It is Verren."]
    recipe = al.Recipe(tools=lookup).with_(max_rollbacks=2, detector="structured")
    return al.Lab(ScriptedModel(script), folder=tmp_path).run(recipe, "Where is Osk?")


def fired(reports):
    return [r.rule for r in reports if r.outcome == "fired"]


def test_a_recorded_reply_is_explained_rule_by_rule(tmp_path):
    run = al.load_run(recorded(tmp_path).path)
    rules = [s.data["rule"] for s in run.trace.of("step") if s.data["operation"] == "assistant"]
    steps = [s.data["step"] for s in run.trace.of("step") if s.data["operation"] == "assistant"]
    assert rules == ["tool_calls", "refusal", "completed"]
    assert [fired(run.explain(step)) for step in steps] == [[rule] for rule in rules]
    assert fired(run.explain()) == ["completed"]
    refusal = next(r for r in run.explain(steps[1]) if r.rule == "refusal")
    assert "I cannot help" in refusal.because


def test_a_step_that_judged_no_reply_is_refused_with_those_that_did(tmp_path):
    with pytest.raises(TraceError, match=r"step 0 judged no reply; steps that did: \[1, 3, 4\]"):
        recorded(tmp_path).explain(0)


def test_a_run_shows_its_whole_conversation_and_what_the_model_saw(tmp_path):
    run = recorded(tmp_path)
    assert [str(m.role) for m in run.messages].count("ConversationRuntime") == 1
    assert [m.text for m in run.visible][-1] == "It is Verren."
    assert len(run.messages) == len(run.visible) + 2
