from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import json
import threading
import time
from datetime import date
from decimal import Decimal

import numpy as np
import pytest
from pydantic import BaseModel

from axislab.config import ToolPolicy
from axislab.errors import ToolDefinitionError, ToolError
from axislab.messages import ToolCall, ToolResult, ToolStatus
from axislab.tools.base import Tool, ToolFailure, tool
from axislab.tools.executor import ToolExecutor
from axislab.tools.middleware import Allow, ApprovalDecision, Ask, Deny, Edit

ANY = {"type": "object"}


def call(name: str, arguments="{}", *, id: str = "c1") -> ToolCall:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(id=id, name=name, arguments=text)


def run(executor: ToolExecutor, *calls: ToolCall, approve=None, **options):
    async def go():
        return await executor.begin_task(approve=approve).run_round(calls, **options)

    return asyncio.run(go())


def run_one(function, arguments="{}", *, policy=None, **options) -> ToolResult:
    made = function if isinstance(function, Tool) else Tool("t", ANY, function)
    came = run(ToolExecutor([made], policy, **options), call(made.name, arguments))
    return came.results[0]


# Results


class Point(BaseModel):
    x: int


@dataclasses.dataclass
class Pair:
    left: int
    right: str


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", "text"),
        ("", ""),
        (None, "null"),
        (True, "true"),
        (3, "3"),
        (2.5, "2.5"),
        ({"b": 1, "a": "é键"}, '{"a": "é键", "b": 1}'),
        ([1, "a", None], '[1, "a", null]'),
        ((1, 2), "[1, 2]"),
        ({2, 1}, "[1, 2]"),
        (Point(x=1), '{"x": 1}'),
        (Pair(1, "a"), '{"left": 1, "right": "a"}'),
        ([Point(x=1)], '[{"x": 1}]'),
        ({1: "a", "b": 2}, '{"1": "a", "b": 2}'),
        (date(2026, 2, 3), '"2026-02-03"'),
        (Decimal("1.50"), '"1.50"'),
        (np.int64(3), "3"),
        (np.array([1.0, 2.0]), "[1.0, 2.0]"),
        ("a\ud800b", "a?b"),
        ({"a": "\ud800"}, '{"a": "?"}'),
    ],
)
def test_text_stays_and_any_other_value_becomes_json(value, content):
    result = run_one(lambda: value)
    assert (result.content, result.status, result.reason) == (content, ToolStatus.SUCCESS, None)


def test_a_value_that_is_neither_text_nor_json_is_a_failure():
    circle: list = []
    circle.append(circle)
    for value in (object(), threading.Lock(), circle):
        result = run_one(lambda value=value: value)
        assert (result.status, result.reason) == (ToolStatus.FAILED, "execution_error")
        assert "neither text nor JSON" in result.content


class Odd(Exception):
    def __str__(self) -> str:
        return ""


@pytest.mark.parametrize(
    ("problem", "content"),
    [
        (ValueError("boom"), "boom"),
        (ToolError("no such page"), "no such page"),
        (KeyError("x"), "KeyError: 'x'"),
        (Odd(), "Odd"),
        (StopIteration("end"), "end"),
        (SystemExit(1), "SystemExit: 1"),
        (TimeoutError("own"), "own"),
        (asyncio.CancelledError("inner"), "CancelledError: inner"),
        (RecursionError("deep"), "deep"),
    ],
)
@pytest.mark.parametrize("kind", ["thread", "in_place", "async"])
def test_whatever_a_tool_raises_becomes_an_observation(problem, content, kind):
    def plain():
        raise problem

    async def coroutine():
        raise problem

    if kind == "async" and isinstance(problem, StopIteration):
        content = "coroutine raised StopIteration"
    made = Tool("t", ANY, coroutine if kind == "async" else plain, blocking=kind == "thread")
    result = run_one(made)
    assert (result.status, result.reason) == (ToolStatus.FAILED, "execution_error")
    assert result.content == content
    assert result.latency is not None


@pytest.mark.parametrize("blocking", [True, False])
def test_an_interrupt_is_never_swallowed(blocking):
    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_one(Tool("t", ANY, stop, blocking=blocking))


def test_a_tool_may_return_a_failure_with_or_without_a_reason():
    assert run_one(lambda: ToolFailure("no")).reason is None
    result = run_one(lambda: ToolFailure("no", reason="not_found"))
    assert (result.content, result.status, result.reason) == ("no", ToolStatus.FAILED, "not_found")


def test_failures_are_counted_by_their_reason():
    executor = ToolExecutor([Tool("t", ANY, lambda: ToolFailure("no", reason="not_found"))])

    async def go():
        session = executor.begin_task()
        await session.run_round([call("t")])
        return session.metrics["t"].to_dict()

    assert asyncio.run(go())["failures"] == {"not_found": 1}


@pytest.mark.parametrize("size", [100, 101, 150, 5000])
def test_a_long_result_is_cut_to_size_and_says_how_much(size):
    result = run_one(lambda: "键" * size, policy=ToolPolicy(max_result_chars=100))
    if size <= 100:
        assert (result.content, result.truncated) == ("键" * size, 0)
        return
    assert len(result.content) <= 100
    kept = result.content.count("键")
    assert result.truncated == size - kept
    assert result.content.endswith(f"[cut: {size - kept} of {size} characters are not shown]")


def test_without_a_cap_nothing_is_cut():
    result = run_one(lambda: "x" * 50_000, policy=ToolPolicy(max_result_chars=None))
    assert (len(result.content), result.truncated) == (50_000, 0)


# Arguments


def test_a_tool_never_runs_on_arguments_that_cannot_be_read():
    ran = []
    made = Tool("t", {"type": "object", "required": ["a"]}, lambda **a: ran.append(a))
    for text in ("", "null", "[]", '{"a": ', '"x"', "5"):
        result = run_one(made, text)
        assert (result.status, result.reason) == (ToolStatus.FAILED, "parameter_error")
        assert (result.latency, result.arguments) == (None, None)
    assert ran == []


def test_no_arguments_are_enough_where_none_is_required():
    result = run_one(lambda **arguments: arguments, "")
    assert (result.content, result.arguments, result.repairs) == ("{}", "{}", ("empty_arguments",))


def test_the_result_tells_the_arguments_it_ran_with_and_how_they_were_mended():
    made = Tool("t", ANY, lambda **arguments: "x")
    assert run_one(made, '{"a":  1}').arguments == '{"a":  1}'
    fenced = run_one(made, '```json\n{"a":  1}\n```')
    assert (fenced.arguments, fenced.repairs) == ('{"a": 1}', ("unwrap_code_fence",))


def test_prepared_calls_are_not_prepared_again():
    count = []

    def hook(name, arguments):
        count.append(name)
        return {**arguments, "a": arguments["a"] + "!"}

    made = Tool(
        "t", {"type": "object", "properties": {"a": {}}}, lambda a="": a, strict=False, query="a"
    )
    policy = ToolPolicy(repair_arguments=True)
    executor = ToolExecutor([made], policy, argument_hook=hook)

    async def go():
        session = executor.begin_task()
        prepared = session.prepare(call("t", {"a": "x"}))
        assert prepared.query_key == "t: x!"
        return await session.run_round([prepared])

    result = asyncio.run(go()).results[0]
    assert (result.content, result.repairs, count) == ("x!", ("custom_hook",), ["t"])
    assert executor.prepare(call("none")).query_key is None
    assert executor.prepare(call("t", "[]")).query_key is None


def test_the_hook_is_only_asked_where_repair_is_on():
    def hook(name, arguments):
        raise AssertionError("must not be called")

    for policy, strict in ((ToolPolicy(), False), (ToolPolicy(repair_arguments=True), True)):
        made = Tool("t", ANY, lambda **a: "ran", strict=strict)
        assert run_one(made, policy=policy, argument_hook=hook).content == "ran"


def test_a_hook_that_raises_means_that_the_tool_is_not_run():
    def hook(name, arguments):
        return arguments["missing"]

    made = Tool("t", ANY, lambda **a: "ran", strict=False)
    result = run_one(made, policy=ToolPolicy(repair_arguments=True), argument_hook=hook)
    assert (result.status, result.reason) == (ToolStatus.FAILED, "argument_hook_error")
    assert "KeyError" in result.content


# Time, threads and cancellation


def test_an_async_tool_that_takes_too_long_is_cancelled():
    ended = []

    async def slow():
        try:
            await asyncio.sleep(10)
        finally:
            ended.append(True)

    result = run_one(slow, policy=ToolPolicy(tool_timeout=0.02))
    assert (result.status, result.reason, ended) == (ToolStatus.FAILED, "timeout", [True])
    assert result.content == "t took longer than 0.02 seconds and was given up."


def test_a_blocking_tool_that_takes_too_long_is_left_behind():
    go_on = threading.Event()
    started = time.perf_counter()
    result = run_one(Tool("t", ANY, lambda: go_on.wait(10), timeout=0.05))
    assert time.perf_counter() - started < 5
    go_on.set()
    assert result.reason == "timeout"
    assert "may still be running" in result.content


def test_a_tools_own_timeout_counts_over_the_policys():
    async def nap():
        await asyncio.sleep(0.05)
        return "rested"

    policy = ToolPolicy(tool_timeout=0.01)
    assert run_one(Tool("t", ANY, nap, timeout=5), policy=policy).content == "rested"
    assert run_one(nap, policy=ToolPolicy(tool_timeout=None)).content == "rested"


def test_a_call_that_timed_out_uses_budget():
    async def slow():
        await asyncio.sleep(10)

    executor = ToolExecutor(
        [Tool("t", ANY, slow, timeout=0.01)], ToolPolicy(max_tool_calls_per_task=1)
    )
    assert run(executor, call("t")).exhausted


def test_a_blocking_tool_does_not_stall_another_run():
    release = threading.Event()
    order = []

    @tool
    def blocks() -> str:
        release.wait(10)
        order.append("blocking")
        return "done"

    @tool
    async def quick() -> str:
        order.append("quick")
        return "done"

    executor = ToolExecutor([blocks, quick])

    async def go():
        first = asyncio.create_task(executor.begin_task().run_round([call("blocks")]))
        await asyncio.sleep(0.02)
        for _ in range(3):
            await executor.begin_task().run_round([call("quick")])
        assert not first.done()
        release.set()
        await first

    asyncio.run(go())
    assert order == ["quick", "quick", "quick", "blocking"]


def test_a_tool_declared_quick_runs_in_place():
    here = threading.get_ident()
    assert run_one(Tool("t", ANY, threading.get_ident, blocking=False)).content == str(here)
    assert run_one(Tool("t", ANY, threading.get_ident, blocking=lambda: False)).content == str(here)
    assert run_one(Tool("t", ANY, threading.get_ident)).content != str(here)


def test_a_plain_function_that_gives_a_coroutine_is_awaited():
    async def inner():
        return "inner"

    for blocking in (True, False):
        assert run_one(Tool("t", ANY, lambda: inner(), blocking=blocking)).content == "inner"


def test_tools_see_the_context_variables_of_the_run():
    variable = contextvars.ContextVar("variable", default="unset")

    async def coroutine():
        return variable.get()

    for made in (
        Tool("t", ANY, lambda: variable.get()),
        Tool("t", ANY, lambda: variable.get(), blocking=False),
        Tool("t", ANY, coroutine),
    ):

        async def go(made=made):
            variable.set("set")
            return await ToolExecutor([made]).begin_task().run_round([call("t")])

        assert asyncio.run(go()).results[0].content == "set"


def test_the_calls_of_a_turn_run_side_by_side_and_answer_in_their_order():
    waiting = 0
    most = 0

    @tool
    async def work(n: int) -> str:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        await asyncio.sleep(0.03 / n)
        waiting -= 1
        return str(n)

    finished: list[str] = []
    calls = [call("work", {"n": n}, id=f"c{n}") for n in (1, 2, 3)]
    came = run(
        ToolExecutor([work]), *calls, on_finish=lambda result: finished.append(result.content)
    )
    assert [r.content for r in came.results] == ["1", "2", "3"]
    assert finished == ["3", "2", "1"]
    assert most == 3

    finished.clear()
    most = 0
    alone = ToolExecutor([work], ToolPolicy(parallel_tools=False))
    run(alone, *calls, on_finish=lambda result: finished.append(result.content))
    assert (finished, most) == (["1", "2", "3"], 1)


def test_start_is_told_right_before_a_tool_runs_and_finish_of_every_call():
    said: list[tuple[str, str]] = []

    @tool(max_calls=1)
    async def work(n: int) -> str:
        said.append(("ran", "a"))
        return "x"

    came = run(
        ToolExecutor([work]),
        call("work", {"n": 1}, id="a"),
        call("work", {"n": "x"}, id="b"),
        call("none", {}, id="c"),
        on_start=lambda one, arguments: said.append(("start", f"{one.id} {arguments}")),
        on_finish=lambda result: said.append(("finish", result.call_id)),
    )
    assert said == [
        ("finish", "b"),
        ("finish", "c"),
        ("start", "a {'n': 1}"),
        ("ran", "a"),
        ("finish", "a"),
    ]
    assert [str(r.status) for r in came.results] == ["success", "rejected", "rejected"]


def test_two_calls_of_one_id_get_a_result_each():
    @tool
    async def echo(text: str) -> str:
        return text

    calls = [call("echo", {"text": t}, id="same") for t in "abc"]
    came = run(ToolExecutor([echo]), *calls)
    assert [(r.call_id, r.content) for r in came.results] == [
        ("same", "a"),
        ("same", "b"),
        ("same", "c"),
    ]


@pytest.mark.parametrize("count", [1, 2])
def test_a_cancelled_round_cancels_its_tools_and_says_so(count):
    started, ended, finished = [], [], []

    @tool
    async def slow(n: int) -> str:
        started.append(n)
        try:
            await asyncio.sleep(10)
        finally:
            ended.append(n)
        return "x"

    async def go():
        session = ToolExecutor([slow]).begin_task()
        calls = [call("slow", {"n": n}, id=str(n)) for n in range(count)]
        task = asyncio.create_task(session.run_round(calls, on_finish=finished.append))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())
    assert started == ended == list(range(count))
    assert finished == []


def test_a_cancelled_round_does_not_wait_for_a_blocking_tool():
    release = threading.Event()

    async def go():
        session = ToolExecutor([Tool("t", ANY, lambda: release.wait(10))]).begin_task()
        task = asyncio.create_task(session.run_round([call("t")]))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 2)

    asyncio.run(go())
    release.set()


def test_an_error_of_a_listener_ends_the_round_and_cancels_the_other_calls():
    ended = []

    @tool
    async def work(n: int) -> str:
        try:
            await asyncio.sleep(0 if n == 0 else 10)
        finally:
            ended.append(n)
        return "x"

    def full(result):
        raise OSError("disk full")

    calls = [call("work", {"n": n}, id=str(n)) for n in range(3)]
    with pytest.raises(OSError, match="disk full"):
        run(ToolExecutor([work]), *calls, on_finish=full)
    assert sorted(ended) == [0, 1, 2]


def test_sessions_of_one_executor_share_nothing():
    @tool(max_calls=2)
    async def work(n: int) -> str:
        await asyncio.sleep(0)
        return str(n)

    executor = ToolExecutor([work])

    async def one(rounds: int):
        session = executor.begin_task()
        for n in range(rounds):
            await session.run_round([call("work", {"n": n})])
        return session

    async def go():
        return await asyncio.gather(*(one(n) for n in range(4)))

    sessions = asyncio.run(go())
    assert [s.total_calls for s in sessions] == [0, 1, 2, 2]
    assert [s.exhausted for s in sessions] == [False, False, True, True]
    assert [s.metrics["work"].rejected for s in sessions] == [0, 0, 0, 1]


def test_results_of_an_earlier_process_are_counted_but_not_run_or_told_again():
    ran, told = [], []
    made = Tool("t", ANY, lambda **a: ran.append(a) or "new", max_calls=2, blocking=False)
    executor = ToolExecutor([made])
    old = ToolResult(call_id="a", name="t", content="old", latency=0.1)
    came = run(
        executor,
        call("t", id="a"),
        call("t", id="b"),
        call("t", id="c"),
        known={"a": old},
        on_finish=told.append,
    )
    assert [r.content for r in came.results[:2]] == ["old", "new"]
    assert came.results[2].reason == "call_budget_exceeded"
    assert (len(ran), [r.call_id for r in told]) == (1, ["c", "b"])


# Middleware


@tool
async def greet(name: str) -> str:
    """Greet."""
    return f"hello {name}"


def test_middleware_may_allow_deny_and_edit_and_sees_only_valid_calls():
    seen = []

    def first(request):
        seen.append(request.arguments["name"])

    async def second(request):
        await asyncio.sleep(0)
        match request.arguments["name"]:
            case "bad":
                return Deny("not them")
            case "typo":
                return Edit({"name": "Typha"})
        return Allow()

    def third(request):
        seen.append(request.arguments["name"])

    executor = ToolExecutor([greet], before=[first, second, third])
    came = run(
        executor,
        call("greet", {"name": "bad"}, id="1"),
        call("greet", {"name": "typo"}, id="2"),
        call("greet", {"name": "Ana"}, id="3"),
        call("greet", {"nome": "x"}, id="4"),
    )
    assert [(r.content, r.reason) for r in came.results[:3]] == [
        ("not them", "denied"),
        ("hello Typha", None),
        ("hello Ana", None),
    ]
    assert came.results[3].reason == "parameter_error"
    assert seen == ["bad", "typo", "Typha", "Ana", "Ana"]
    assert [r.arguments for r in came.results[:2]] == [None, '{"name": "Typha"}']
    assert came.total_calls == 2


def test_a_denied_call_uses_neither_step_nor_budget():
    def guard(request):
        return Deny("no", reason="policy") if request.arguments["name"] == "bad" else None

    policy = ToolPolicy(max_tool_calls_per_step=1, max_tool_calls_per_task=1)
    came = run(
        ToolExecutor([greet], policy, before=[guard]),
        call("greet", {"name": "bad"}, id="1"),
        call("greet", {"name": "Ana"}, id="2"),
    )
    assert [r.reason for r in came.results] == ["policy", None]


def test_what_middleware_does_to_the_arguments_in_place_has_no_effect():
    def scribble(request):
        request.arguments["name"] = "else"

    result = run_one(greet, {"name": "Ana"}, before=[scribble])
    assert result.content == "hello Ana"


@pytest.mark.parametrize(
    "guard",
    [
        lambda request: 1 / 0,
        lambda request: True,
        lambda request: Edit({"name": 5}),
        lambda request: Edit({}),
    ],
)
def test_a_guard_that_breaks_lets_nothing_through(guard):
    result = run_one(greet, {"name": "Ana"}, before=[guard])
    assert (result.status, result.reason) == (ToolStatus.REJECTED, "middleware_error")
    assert "<lambda>" in result.content


def test_middleware_that_is_no_function_is_refused_at_once():
    with pytest.raises(ToolDefinitionError, match="middleware is a function"):
        ToolExecutor([greet], before=["guard"])


def test_after_may_edit_the_result_before_it_is_cut():
    def shout(request, result):
        return dataclasses.replace(result, content=result.content.upper() * 20, call_id="other")

    async def keep(request, result):
        assert request.arguments == {"name": "Ana"}

    policy = ToolPolicy(max_result_chars=100)
    result = run_one(greet, {"name": "Ana"}, after=[shout, keep], policy=policy)
    assert result.content.startswith("HELLO ANAHELLO ANA")
    assert (len(result.content), result.call_id) == (100, "c1")
    assert result.truncated > 0


def test_after_decides_how_a_call_is_counted():
    executor = ToolExecutor(
        [greet],
        after=[
            lambda request, result: dataclasses.replace(
                result, status=ToolStatus.FAILED, reason="empty"
            )
        ],
    )

    async def go():
        session = executor.begin_task()
        await session.run_round([call("greet", {"name": "Ana"})])
        return session.metrics["greet"]

    metrics = asyncio.run(go())
    assert (metrics.success, metrics.failures) == (0, {"empty": 1})


@pytest.mark.parametrize("after", [lambda request, result: 1 / 0, lambda request, result: "text"])
def test_an_after_that_breaks_makes_the_call_a_failure(after):
    result = run_one(greet, {"name": "Ana"}, after=[after])
    assert (result.status, result.reason) == (ToolStatus.FAILED, "middleware_error")
    assert result.latency is not None


def ask(request):
    return Ask("is this wise?")


def test_a_call_that_needs_approval_is_rejected_where_nobody_can_give_it():
    result = run_one(greet, {"name": "Ana"}, before=[ask])
    assert (result.status, result.reason) == (ToolStatus.REJECTED, "approval_required")
    declared = greet.with_(requires_approval=True)
    assert run_one(declared, {"name": "Ana"}).reason == "approval_required"


def test_approval_may_depend_on_the_arguments_and_is_asked_for_when_that_cannot_be_told():
    picky = greet.with_(requires_approval=lambda arguments: arguments["name"] == "Ana")
    assert run_one(picky, {"name": "Bo"}).content == "hello Bo"
    assert run_one(picky, {"name": "Ana"}).reason == "approval_required"
    broken = greet.with_(requires_approval=lambda arguments: arguments["missing"])
    assert run_one(broken, {"name": "Bo"}).reason == "approval_required"


@pytest.mark.parametrize(
    ("said", "content", "reason"),
    [
        (True, "hello Ana", None),
        (False, "Not run: a person refused this call of greet.", "approval_denied"),
        (ApprovalDecision(approved=True), "hello Ana", None),
        (ApprovalDecision(approved=False, message="rude"), "rude", "approval_denied"),
        (ApprovalDecision(approved=True, arguments={"name": "Bo"}), "hello Bo", None),
    ],
)
def test_a_person_may_approve_refuse_and_edit(said, content, reason):
    asked = []

    async def approve(request, question):
        asked.append((request.arguments["name"], question.message))
        return said

    came = run(ToolExecutor([greet], before=[ask]), call("greet", {"name": "Ana"}), approve=approve)
    assert (came.results[0].content, came.results[0].reason) == (content, reason)
    assert asked == [("Ana", "is this wise?")]


def test_what_a_person_edited_is_validated():
    def approve(request, question):
        return ApprovalDecision(approved=True, arguments={"name": 5})

    came = run(ToolExecutor([greet], before=[ask]), call("greet", {"name": "Ana"}), approve=approve)
    assert came.results[0].reason == "approval_denied"


def test_nothing_of_a_turn_runs_before_every_approval_is_given():
    order = []

    @tool
    async def work(n: int) -> str:
        order.append(n)
        return "x"

    async def approve(request, question):
        await asyncio.sleep(0.01)
        order.append("approved")
        return True

    asks = [lambda request: Ask() if request.arguments["n"] == 2 else None]
    calls = [call("work", {"n": n}, id=str(n)) for n in (1, 2)]
    run(ToolExecutor([work], before=asks), *calls, approve=approve)
    assert order == ["approved", 1, 2]


def test_repeats_are_seen_in_the_models_own_arguments():
    policy = ToolPolicy(default_max_consecutive_calls_with_same_args=1)
    executor = ToolExecutor([greet], policy, before=[lambda request: Edit({"name": "Bo"})])

    async def go():
        session = executor.begin_task()
        rounds = [await session.run_round([call("greet", {"name": n})]) for n in ("A", "B", "B")]
        return [came.results[0].reason for came in rounds]

    assert asyncio.run(go()) == [None, None, "consecutive_same_args"]


def test_the_specs_are_those_of_the_tools_in_order():
    executor = ToolExecutor([greet, Tool("t", ANY, lambda: 1)])
    assert [spec.name for spec in executor.specs] == ["greet", "t"]
    with pytest.raises(ToolDefinitionError, match="two tools"):
        ToolExecutor([greet, greet])
