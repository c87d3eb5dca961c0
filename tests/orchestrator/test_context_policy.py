"""Context policies as arms: what each hides, and that the trace stays whole and replayable."""

from __future__ import annotations

import pytest

from axislab.errors import ConfigError, ErrorKind, ModelError
from axislab.messages import Role
from axislab.models.scripted import ScriptedModel
from axislab.orchestrator.prefix import ANSWER_STAGE_FIELDS, differing_fields, same_main_loop
from axislab.recipe import Recipe
from axislab.runtime.transcript import pairing_problem
from axislab.tools.base import tool
from tests.orchestrator.harness import call
from tests.orchestrator.test_answer_stage import BOX, purposes, run_of, texts

LONG = "word " * 200


@tool(query="name")
def report(name: str) -> str:
    """A long report.

    Args:
        name: On what.
    """
    return f"{name}: {LONG}"


def steps(*names: str) -> list:
    return [call("report", name=name) for name in names]


RECIPE = Recipe(name="r", tools=(report,))


@pytest.mark.parametrize(("keep", "shown"), [(0, 0), (1, 1), (5, 3)])
def test_none_or_the_newest_results_are_shown_and_the_trace_keeps_all(keep, shown):
    model = ScriptedModel([*steps("a", "b", "c"), BOX])
    run = run_of(model, recipe=RECIPE, context_policy="keep_newest", keep_tool_results=keep)
    last = [m.text for m in model.requests[-1].messages if m.role is Role.TOOL]
    assert sum(LONG in text for text in last) == shown
    assert sum(LONG in text for text in texts(run)) == 3


def test_older_exchanges_give_way_to_a_summary():
    model = ScriptedModel([*steps("a", "b"), "Osk is in Verren.", BOX])
    run = run_of(model, recipe=RECIPE, context_policy="compact", shorten_above_tokens=600)
    assert purposes(run) == ["main_loop", "main_loop", "compaction", "main_loop"]
    last = model.requests[-1].messages
    assert [m.role for m in last] == ["system", "user", "assistant", "assistant", "tool"]
    assert last[2].text == "Osk is in Verren."
    assert pairing_problem(last) is None
    assert any(LONG in m.text for m in run.trace.full if m.text.startswith("a:"))
    assert run.answer == "Verren"


def test_a_summary_that_fails_leaves_the_conversation_as_it_is():
    failing = ModelError("busy", kind=ErrorKind.BAD_REQUEST)
    script = [*steps("a", "b"), failing, BOX]
    run = run_of(script, recipe=RECIPE, context_policy="compact", shorten_above_tokens=600)
    assert sum(LONG in text for text in texts(run)) == 2
    assert run.answer == "Verren"


def test_a_discard_starts_again_from_the_task_and_what_was_asked_may_be_asked_again():
    model = ScriptedModel([*steps("a", "b", "a"), BOX])
    run = run_of(
        model,
        recipe=RECIPE,
        context_policy="discard_all",
        shorten_above_tokens=600,
        on_duplicate="rollback",
        max_rollbacks=3,
    )
    operations = [r.data["operation"] for r in run.trace.of("step")]
    assert operations.count("reopen") == 1
    assert [m.role for m in model.requests[2].messages] == ["system", "user"]
    assert not [r for r in run.trace.of("step") if r.data.get("rollback_reason")]
    assert run.turns == 4


def test_a_policy_that_does_not_know_when_to_act_is_refused():
    with pytest.raises(ConfigError, match="shorten_above_tokens"):
        Recipe(name="r").with_(context_policy="compact")
    assert Recipe(name="r").with_(window=1000, context_policy="compact")


def test_recipes_that_differ_from_the_answer_stage_on_share_a_main_loop():
    base = Recipe(name="r", tools=(report,))
    arms = [
        base,
        base.with_(answer_policy="accuracy_first"),
        base.with_(answer_policy="miroflow", scorer="exact"),
        base.with_(answer_finder=str.strip, name="other"),
    ]
    assert same_main_loop(arms)
    for knobs in ({"max_turns": 3}, {"temperature": 0.3}, {"on_duplicate": "stop"}, {"tools": ()}):
        assert not same_main_loop([base, base.with_(**knobs)]), knobs
    assert differing_fields(base, base.with_(tries=2)) == ("config.answer.tries",)
    assert "config.answer" in ANSWER_STAGE_FIELDS
