"""The answer stage and the tries of a run, from script to trace, frames and replay."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from axislab.errors import ErrorKind, ModelError
from axislab.frames.answers import answers_df
from axislab.frames.attempts import attempts_df
from axislab.messages import Usage
from axislab.models.base import ModelReply
from axislab.models.scripted import ScriptedModel
from axislab.orchestrator.attempts import EarlierTry
from axislab.orchestrator.task import RunIdentity, TaskOrchestrator
from axislab.recipe import Recipe
from axislab.recipes.miroflow import miroflow, miroflow_tool
from axislab.runtime.transcript import pairing_problem
from axislab.tasks import Task
from axislab.tools.base import tool
from axislab.trace.fsck import fsck
from axislab.trace.memory import MemoryRecorder
from axislab.trace.replay import replay
from axislab.trace.run import Run
from axislab.trace.trace import Trace
from axislab.trace.tries import earlier_tries
from tests.orchestrator.harness import QUICK, call

BOX = "It is \\boxed{Verren}."


@tool
def lookup(name: str) -> str:
    """Look up a place.

    Args:
        name: Its name.
    """
    return f"{name} is in Verren."


def run_of(script, *, task=None, earlier=(), recipe=None, **knobs) -> Run:
    """A run of a script; its trace must be sound and come out the same when replayed."""
    model = script if isinstance(script, ScriptedModel) else ScriptedModel(script)
    base = recipe or Recipe(name="test", tools=(lookup,))
    recorder, records = MemoryRecorder(), []
    orchestrator = TaskOrchestrator(
        base.with_(**{**QUICK, **knobs}),
        task or Task("t1", "Where is Osk?", "Verren"),
        model=model,
        identity=RunIdentity(run_id="r1"),
        emit=lambda event: records.append(recorder.record(event)),
        earlier=earlier,
    )
    asyncio.run(orchestrator.run())
    run = Run(Trace(records))
    report = fsck(run)
    assert report.ok, str(report)
    again = replay(run)
    assert again.ok, str(again)
    return run


def purposes(run: Run) -> list[str]:
    return [r.data["purpose"] for r in run.trace.of("model.request")]


def tries(run: Run) -> list[dict]:
    return [dict(r.data) for r in run.trace.of("try")]


def texts(run: Run) -> list[str]:
    return [m.text for m in run.trace.visible()]


def test_a_reply_without_an_answer_is_asked_for_one_again():
    run = run_of(["It is Verren.", "Verren, I said.", BOX], answer_attempts=3)
    assert purposes(run) == ["main_loop", "final_answer 2/3", "final_answer 3/3"]
    assert (run.answer, run.answer_status, run.correct) == ("Verren", "ok", True)
    assert texts(run)[-1] == BOX
    assert "Verren, I said." not in texts(run)
    assert "It is Verren." in texts(run), "the reply of the main loop stays in sight"


def test_an_answer_in_the_last_reply_costs_no_further_call():
    run = run_of([BOX], answer_attempts=3)
    assert purposes(run) == ["main_loop"]
    frame = answers_df(run)
    assert frame[["purpose", "outcome", "answer"]].to_numpy().tolist() == [
        ["main_loop", "ok", "Verren"]
    ]


def test_all_calls_used_up_is_a_format_error_without_an_answer():
    run = run_of(["a", "b", "c"], answer_attempts=3)
    assert (run.answer, run.answer_status, run.status) == (None, "format_error", "COMPLETED")
    assert answers_df(run)["outcome"].tolist() == ["format"] * 3


def test_a_failed_call_is_not_an_empty_reply():
    failing = ModelError("busy", kind=ErrorKind.SERVER)
    empty = run_of(["a", ""], answer_attempts=2)
    failed = run_of(["a", failing], answer_attempts=2, attempts=1)
    assert (empty.answer_status, failed.answer_status) == ("no_answer", "failed")
    assert (empty.status, failed.status) == ("COMPLETED", "FAILED")
    assert failed.error == "busy"
    assert answers_df([empty, failed])["outcome"].tolist() == [
        "format",
        "empty",
        "format",
        "server",
    ]


def test_an_error_never_ends_the_stream_of_events():
    failing = ModelError("busy", kind=ErrorKind.SERVER)
    run = run_of(["a", failing, failing, BOX], answer_attempts=4, attempts=1)
    assert run.answer == "Verren"
    assert [r.kind for r in run.trace.records][-1] == "run.finished"


def test_each_kind_of_error_has_its_own_retries_and_changes():
    script = ["a", "b", "", BOX]
    rules = {
        "format": {"attempts": 3, "temperature": 0.9, "prompt": "Box it: {task}"},
        "empty": {"attempts": 1},
    }
    model = ScriptedModel(script)
    run = run_of(model, answer_attempts=9, answer_retries=rules)
    assert answers_df(run)["outcome"].tolist() == ["format", "format", "empty"]
    assert answers_df(run)["changed"].tolist()[1:] == ["temperature, prompt"] * 2
    assert [r.sampling.temperature for r in model.requests] == [None, 0.9, 0.9]
    last = [m.text for m in model.requests[-1].messages]
    assert last.count("Box it: Where is Osk?") == 1, "a new prompt takes the place of the old one"
    assert run.answer_status == "no_answer"


def test_where_errors_of_the_provider_have_rules_no_request_is_repeated_below_them():
    late = ModelError("late", kind=ErrorKind.TIMEOUT)
    rules = {"timeout": {"attempts": 2}}
    run = run_of(["a", late, late, BOX], answer_attempts=9, answer_retries=rules, attempts=3)
    requests = [r.data for r in run.trace.of("model.request")]
    assert [(r["call"], r["attempt"]) for r in requests] == [(0, 1), (1, 1), (2, 1)]
    assert run.answer_status == "failed"


def test_an_unfinished_kind_of_reply_is_hidden_and_counts_as_failed():
    odd = ModelReply(text=BOX, finish_reason="content_filter")
    run = run_of(["a", odd, "b"], answer_attempts=3)
    assert answers_df(run)["outcome"].tolist() == ["format", "refusal", "format"]
    assert BOX not in texts(run)


def test_a_forced_reply_that_calls_tools_is_asked_again():
    run = run_of(
        [call("lookup", name="Osk"), call("lookup", name="Osk"), BOX],
        answer_attempts=2,
        max_turns=2,
    )
    assert run.answer == "Verren"
    assert run.status == "COMPLETED"
    assert pairing_problem(run.trace.visible()) is None


def test_the_newest_intermediate_answer_stands_in_where_the_policy_allows():
    script = [ModelReply(text="\\boxed{early}", tool_calls=(call("lookup", name="Osk"),))]
    script += ["no box", "still none"]
    plain = run_of(script, answer_attempts=2)
    usable = run_of(script, answer_attempts=2, fallback_on_last_try=True)
    strict = run_of(
        script,
        task=Task("t", "Where?", "early", metadata={"kind": "sum"}),
        answer_attempts=2,
        fallback_on_last_try=True,
        fallback_by_kind={"sum": "never"},
    )
    assert [r.answer for r in (plain, usable, strict)] == [None, "early", None]
    assert usable.done_reason == "answer_fallback"
    assert attempts_df(usable)["source"].tolist() == ["intermediate"]


def test_a_failed_try_leaves_an_account_to_the_next():
    model = ScriptedModel(["no box", "Failure type: form. Osk is in Verren.", BOX])
    run = run_of(model, tries=3)
    assert purposes(run) == ["main_loop", "failure_summary", "main_loop"]
    task = model.requests[2].messages[1].text
    assert task.startswith("Where is Osk?")
    assert "Attempt 1:\nFailure type: form. Osk is in Verren." in task
    assert len(model.requests[2].messages) == 2, "the first try is out of sight"
    frame = attempts_df(run)
    assert frame["attempt"].tolist() == [1, 2]
    assert frame["status"].tolist() == ["format_error", "ok"]
    assert frame["last"].tolist() == [False, True]
    assert frame["correct"].isna().tolist() == [True, False]
    assert frame["experiences"].tolist()[1] == "1"
    assert run.turns == 2


def test_accounts_keep_the_number_of_their_try():
    model = ScriptedModel(["a", "", "b", "second account", "c", BOX])
    run = run_of(model, tries=4)
    assert attempts_df(run)["failure_summary"].isna().tolist() == [True, False, False, True]
    assert attempts_df(run)["experiences"].fillna("").tolist() == ["", "", "2", "2, 3"]


def test_tries_used_up_never_succeed_with_a_text_about_it():
    run = run_of(["a", "account", "b"], tries=2)
    assert (run.answer, run.answer_status, run.correct) == (None, "format_error", False)
    assert [t["final"] for t in tries(run)] == [False, True]


def test_a_try_cut_off_is_not_asked_for_an_answer_unless_it_is_the_last():
    search = [call("lookup", name=str(n)) for n in range(2)]
    run = run_of([search[0], "account", search[1], BOX], tries=2, max_turns=2)
    assert purposes(run) == ["main_loop", "failure_summary", "main_loop", "main_loop"]
    assert attempts_df(run)["summary_kind"].tolist() == ["skipped", "answer"]
    assert attempts_df(run)["status"].tolist() == ["exhausted", "ok"]
    guessed = run_of([search[0], BOX], tries=2, max_turns=2, skip_when_cut_off=False)
    assert guessed.answer == "Verren"


def test_each_try_has_the_whole_turn_limit():
    steps = [call("lookup", name=str(n)) for n in range(4)]
    script = [*steps[:2], "none", "account", *steps[2:], BOX]
    run = run_of(script, tries=2, max_turns=3, skip_when_cut_off=False)
    assert attempts_df(run)["main_turns"].tolist() == [3, 3]
    assert run.answer == "Verren"


def test_a_broken_try_fails_the_run_and_is_not_repeated():
    run = run_of([ModelError("no such model", kind=ErrorKind.NOT_FOUND)], tries=3)
    assert (run.status, run.answer_status, run.answer) == ("FAILED", "failed", None)
    assert run.error_kind == "not_found"
    assert len(tries(run)) == 1


def test_a_hook_that_raises_fails_the_run_with_its_cause():
    def finder(text):
        raise KeyError("x")

    run = run_of(["a"], recipe=Recipe(name="r", answer_finder=finder), answer_attempts=2)
    assert run.status == "FAILED"
    assert "answer_finder raised KeyError" in run.error


def test_a_poor_account_is_asked_for_again_and_the_best_is_kept():
    good = "Failure type: incomplete. Tried a search; Osk is in Verren. Still missing: the river."
    model = ScriptedModel(["a", "I'm sorry.", good, BOX])
    run = run_of(model, tries=2, summary_quality=0.8, summary_attempts=2)
    assert purposes(run)[1:3] == ["failure_summary 1/2", "failure_summary 2/2"]
    assert "Your account lacks something" in model.requests[2].messages[-1].text
    frame = attempts_df(run)
    assert frame["failure_summary"][0] == good
    assert frame["summary_calls"][0] == 2
    assert frame["summary_quality"][0] >= 0.8


def test_tries_go_on_where_an_earlier_run_stopped():
    first = run_of(["a", "account one", "b"], tries=2)
    made = earlier_tries(first)
    assert made == (
        EarlierTry(number=0, failure_summary="account one"),
        EarlierTry(number=1),
    )
    model = ScriptedModel([BOX])
    run = run_of(model, tries=3, earlier=made)
    assert run.answer == "Verren"
    assert attempts_df(run)["attempt"].tolist() == [3]
    assert "Attempt 1:\naccount one" in model.requests[0].messages[-1].text


def test_an_answer_of_an_earlier_run_is_taken_without_a_call():
    model = ScriptedModel(["never said"])
    earlier = [EarlierTry(number=0, answer="Verren")]
    events = []
    orchestrator = TaskOrchestrator(
        Recipe(name="r").with_(tries=2),
        Task("t", "Where is Osk?", "Verren"),
        model=model,
        identity=RunIdentity(run_id="r"),
        emit=events.append,
        earlier=earlier,
    )
    ending = asyncio.run(orchestrator.run())
    assert ending.done_reason == "answered_before"
    assert events[-1].answer == "Verren"
    assert model.requests == []


def test_a_second_opinion_can_send_an_answer_back_once():
    script = ["\\boxed{Osk}", "It names the place itself. VERDICT: WRONG", BOX, "VERDICT: RIGHT"]
    run = run_of(script, verify_answer="second_opinion")
    assert purposes(run) == [
        "main_loop",
        "verification 1/2",
        "final_answer again 1/1",
        "verification 2/2",
    ]
    assert run.answer == "Verren"
    assert answers_df(run)["outcome"].tolist() == ["ok", "wrong", "ok", "right"]


@pytest.mark.parametrize("opinion", ["who knows", "VERDICT: RIGHT"])
def test_an_answer_that_is_not_doubted_stands(opinion):
    run = run_of([BOX, opinion], verify_answer="second_opinion")
    assert run.answer == "Verren"


def test_an_answer_that_cannot_be_given_again_stands():
    script = [BOX, "VERDICT: WRONG", "no box this time"]
    run = run_of(script, verify_answer="second_opinion")
    assert (run.answer, run.answer_status) == ("Verren", "ok")


def test_a_function_can_be_the_format_of_the_answer():
    recipe = Recipe(name="r", answer_finder=lambda text: text.partition("=>")[2] or None)
    run = run_of(["Verren", "<think>=> no</think> => Verren"], recipe=recipe, answer_attempts=2)
    assert run.answer == "Verren"


def test_with_native_calls_no_result_is_dropped_without_its_call():
    run = run_of(
        [call("lookup", name="Osk"), BOX],
        answer_policy="miroflow",
        max_turns=2,
        early_stop_prompt=None,
    )
    sent = [m for m in run.trace.visible() if m.role == "tool"]
    assert len(sent) == 1
    assert pairing_problem(run.trace.visible()) is None
    assert run.answer == "Verren"


def test_usage_of_the_stage_is_in_the_frame():
    model = ScriptedModel(["a", BOX], usage=Usage(input_tokens=7, output_tokens=2))
    frame = answers_df(run_of(model, answer_attempts=2))
    assert frame["input_tokens"].isna().tolist() == [True, False]
    assert frame["input_tokens"][1] == 7


def test_miroflow_records_an_empty_search_before_hiding_it():
    found = iter(['{"organic": []}', "again", "other"])
    search = miroflow_tool("google_search", lambda q: next(found))
    asked = [call("google_search", q=q) for q in ("a", "a", "b")]
    run = run_of([*asked, "done", BOX], recipe=miroflow(tools=[search]))
    reasons = [r.data.get("rollback_reason") for r in run.trace.of("step")]
    assert [r for r in reasons if r] == ["tool_error", "duplicate_query"]
    assert run.answer == "Verren"


def test_good_results_of_a_hidden_turn_may_be_asked_for_again():
    def search(q):
        return '{"organic": []}' if q == "b" else f"found {q}"

    made = miroflow_tool("google_search", search)
    both = [call("google_search", q="a"), call("google_search", q="b")]
    script = [both, call("google_search", q="a"), "done", BOX]
    run = run_of(script, recipe=miroflow(tools=[made]))
    reasons = [r.data.get("rollback_reason") for r in run.trace.of("step")]
    assert [r for r in reasons if r] == ["tool_error"]
    assert "found a" in texts(run)


def test_miroflow_asks_again_for_any_number_of_empty_replies():
    run = run_of([*[""] * 7, "done", BOX], recipe=miroflow(max_turns=3))
    assert (run.answer, run.turns) == ("Verren", 2)
    endless = ScriptedModel(lambda r: BOX if "final answer" in r.messages[-1].text else "")
    cut = run_of(endless, recipe=miroflow(max_turns=3))
    assert cut.answer == "Verren", "the answer stage follows a loop that would not end"
    assert attempts_df(cut)["cut_off"].tolist() == [True]


def test_miroflow_mends_the_names_of_arguments():
    seen = []

    def scrape(**arguments):
        seen.append(arguments)
        return "text"

    made = miroflow_tool("scrape_and_extract_info", scrape)
    code = miroflow_tool("run_python_code", scrape)
    script = [
        call("scrape_and_extract_info", url="u", description="the year"),
        call("run_python_code", code="1+1"),
        "done",
        BOX,
    ]
    run_of(script, recipe=miroflow(tools=[made, code]))
    assert seen == [
        {"url": "u", "info_to_extract": "the year"},
        {"code_block": "1+1", "sandbox_id": "default"},
    ]


def test_only_the_operations_meant_for_it_may_go_on_after_an_end():
    run = run_of(["a", BOX], answer_attempts=2)
    records = [
        replace(r, data={**r.data, "operation": "assistant"})
        if r.data.get("operation") == "ask_for_answer"
        else r
        for r in run.trace.records
    ]
    report = fsck(Trace(records))
    assert [p.code for p in report.problems] == ["stage_move"]


def test_a_side_question_has_no_estimate_of_the_visible_list():
    run = run_of(["a", "account", BOX], tries=2)
    rows = [r.data for r in run.trace.of("model.request")]
    known = [r.get("estimated_prompt_tokens") is not None for r in rows]
    assert known == [True, False, True]


def test_the_header_holds_the_whole_policy():
    run = run_of([BOX], answer_policy="accuracy_first")
    answer = json.loads(json.dumps(run.recipe["config"]))["answer"]
    assert (answer["tries"], answer["summary_quality"]) == (3, 0.6)
