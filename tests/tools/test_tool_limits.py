from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axislab.config import ToolPolicy
from axislab.messages import ToolCall, ToolResult, ToolStatus
from axislab.tools.base import Tool, ToolFailure
from axislab.tools.executor import ToolExecutor
from tests.conformance import tools as conformance

CASES = Path(__file__).parents[1] / "cases" / "tool_cases.json"
SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}


async def ok(**arguments):
    await asyncio.sleep(0)
    return arguments


async def fail(**arguments):
    return ToolFailure("failed")


async def boom(**arguments):
    raise RuntimeError("boom")


FUNCTIONS = {"ok": ok, "also_ok": ok, "fail": fail, "boom": boom}


@pytest.mark.parametrize(
    ("name", "check"),
    [pytest.param(n, c, id=n) for n, c in conformance.cases(json.loads(CASES.read_text()))],
)
def test_the_case_holds(name, check):
    assert check() is None


def test_the_adapter_tells_tool_cases_from_others_and_names_what_differs():
    data = json.loads(CASES.read_text())
    assert conformance.accepts(data)
    assert not conformance.accepts({"cases": [{"history": []}]})
    assert not conformance.accepts({"cases": []})
    wrong = json.loads(json.dumps(data["cases"][0]))
    wrong["expect"]["rounds"][0]["results"][0]["status"] = "failed"
    assert conformance.check(wrong) == ("rounds[0].results[0].status: 'success', expected 'failed'")
    wrong = json.loads(json.dumps(data["cases"][0]))
    wrong["expect"]["metrics"]["ok"]["requested"] = 2
    assert conformance.check(wrong).startswith("metrics.ok: ")


@dataclass
class Model:
    """The rules of the specification again, as plainly as they can be written."""

    step: int | None
    task: int | None
    each: int | None
    same: int | None
    own: dict[str, int]
    own_same: dict[str, int]
    total: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    memory: dict[str, tuple[dict, int]] = field(default_factory=dict)

    def round(self, calls: list[tuple[str, dict]]) -> list[str]:
        taken, said, good, repeated = 0, [], {}, {}
        for name, args in calls:
            verdict = self.judge(name, args, taken)
            said.append(verdict)
            if verdict in {"success", "failed", "raised", "unfit"}:
                taken += 1
            if verdict in {"success", "failed", "raised"}:
                self.total += 1
                self.calls[name] += 1
            if verdict == "success":
                good[name] = args
            if verdict == "same":
                repeated[name] = self.memory[name]
        new = dict(repeated)
        for name, args in good.items():
            count = 1
            if name in self.memory and self.memory[name][0] == args:
                count = self.memory[name][1] + 1
            new[name] = (args, count)
        self.memory = new
        return said

    def judge(self, name: str, args: dict, taken: int) -> str:
        if self.step is not None and taken >= self.step:
            return "step"
        if name not in FUNCTIONS:
            return "unknown"
        if self.task is not None and self.total >= self.task:
            return "task"
        limit = self.own.get(name, self.each)
        if limit is not None and self.calls[name] >= limit:
            return "tool"
        same = self.own_same.get(name, self.same)
        if same is not None and name in self.memory:
            before, count = self.memory[name]
            if before == args and count >= same:
                return "same"
        if set(args) != {"text"}:
            return "unfit"
        return {"fail": "failed", "boom": "raised"}.get(name, "success")

    @property
    def exhausted(self) -> bool:
        if self.task is not None and self.total >= self.task:
            return True
        limits = {name: self.own.get(name, self.each) for name in FUNCTIONS}
        return all(limits[n] is not None and self.calls[n] >= limits[n] for n in FUNCTIONS)


def verdict(result: ToolResult) -> str:
    words = {
        "per_step_limit_exceeded": "step",
        "unknown_tool": "unknown",
        "task_budget_exceeded": "task",
        "call_budget_exceeded": "tool",
        "consecutive_same_args": "same",
        "parameter_error": "unfit",
        "execution_error": "raised",
    }
    return words[result.reason] if result.reason else str(result.status)


def calls_of(rows, number=0):
    return [
        ToolCall(id=f"c{number + i}", name=name, arguments=json.dumps(args))
        for i, (name, args) in enumerate(rows)
    ]


limit = st.none() | st.integers(1, 3)
arguments = st.sampled_from([{"text": "a"}, {"text": "b"}, {"wrong": "a"}])
rows = st.tuples(st.sampled_from(["ok", "ok", "also_ok", "fail", "boom", "nope"]), arguments)
rounds_of_calls = st.lists(st.lists(rows, max_size=4), max_size=7)
own_limits = st.dictionaries(st.sampled_from(list(FUNCTIONS)), st.integers(1, 3), max_size=4)


@settings(max_examples=150, deadline=None)
@given(
    rounds_of_calls,
    limit,
    limit | st.just(6),
    limit,
    limit,
    own_limits,
    own_limits,
    st.booleans(),
)
def test_limits_memory_and_metrics_follow_the_specification(
    rounds, step, task, each, same, own, own_same, parallel
):
    policy = ToolPolicy(
        max_tool_calls_per_step=step,
        max_tool_calls_per_task=task,
        default_max_calls_per_tool_per_task=each,
        default_max_consecutive_calls_with_same_args=same,
        parallel_tools=parallel,
    )
    tools = [
        Tool(n, SCHEMA, f, max_calls=own.get(n), max_consecutive_same_args=own_same.get(n))
        for n, f in FUNCTIONS.items()
    ]
    model = Model(step, task, each, same, own, own_same)
    executor = ToolExecutor(tools, policy)

    async def play():
        session, replayed = executor.begin_task(), executor.begin_task()
        counts: dict[str, Counter[str]] = {n: Counter() for n in [*FUNCTIONS, "__unknown__"]}
        for rows in rounds:
            calls = calls_of(rows)
            came = await session.run_round(calls)
            expected = model.round(rows)
            assert [verdict(r) for r in came.results] == expected
            assert [r.call_id for r in came.results] == [c.id for c in calls]
            assert came.total_calls == session.total_calls == model.total
            assert came.exhausted == session.exhausted == model.exhausted
            for (name, _), word in zip(rows, expected, strict=True):
                counts[name if name in FUNCTIONS else "__unknown__"][word] += 1
            # What an earlier process did counts the same when it is only read back.
            again = await replayed.run_round(calls, known={r.call_id: r for r in came.results})
            assert again == came
        for name, metrics in session.metrics.items():
            assert metrics.requested == counts[name].total()
            assert metrics.success == counts[name]["success"]
            failures = {"failed", "raised", "unfit"}
            assert metrics.failed == sum(counts[name][w] for w in failures)
            assert metrics.rejected == metrics.requested - metrics.success - metrics.failed
            assert metrics.rejected == metrics.rejections.total()
            assert metrics.failed == metrics.failures.total()
        assert {n: m.to_dict() for n, m in session.metrics.items()} == {
            n: m.to_dict() for n, m in replayed.metrics.items()
        }
        assert session.unknown == replayed.unknown

    asyncio.run(play())


def play(executor, rounds, **options):
    async def run():
        session = executor.begin_task(**options)
        return [await session.run_round(calls_of(rows)) for rows in rounds]

    return asyncio.run(run())


def reasons(rounds):
    return [[r.reason for r in came.results] for came in rounds]


A, B = ("ok", {"text": "a"}), ("ok", {"text": "b"})


def test_a_repeat_rejected_beside_another_success_gives_way_to_the_success():
    policy = ToolPolicy(default_max_consecutive_calls_with_same_args=1)
    executor = ToolExecutor([Tool("ok", SCHEMA, ok)], policy)
    came = play(executor, [[A], [A, B], [A], [B]])
    assert reasons(came) == [[None], ["consecutive_same_args", None], [None], [None]]


def test_a_tool_that_was_not_called_for_a_turn_is_forgotten():
    policy = ToolPolicy(default_max_consecutive_calls_with_same_args=1)
    executor = ToolExecutor([Tool("ok", SCHEMA, ok), Tool("fail", SCHEMA, fail)], policy)
    came = play(executor, [[A], [("fail", {"text": "x"})], [A], [A]])
    assert reasons(came) == [[None], [None], [None], ["consecutive_same_args"]]


def test_a_limit_of_the_tool_counts_over_the_policys_and_speaks_its_own_words():
    made = Tool(
        "ok",
        SCHEMA,
        ok,
        max_calls=3,
        max_consecutive_same_args=2,
        max_calls_message="enough",
        same_args_message="again?",
    )
    policy = ToolPolicy(
        default_max_calls_per_tool_per_task=1, default_max_consecutive_calls_with_same_args=1
    )
    came = play(ToolExecutor([made], policy), [[A], [A], [A], [B], [B]])
    assert [r.content for one in came for r in one.results][2:] == [
        "again?",
        '{"text": "b"}',
        "enough",
    ]


def test_a_task_without_budget_rejects_everything_and_is_exhausted_from_the_start():
    executor = ToolExecutor([Tool("ok", SCHEMA, ok)], ToolPolicy(max_tool_calls_per_task=0))
    assert executor.begin_task().exhausted
    assert reasons(play(executor, [[A]])) == [["task_budget_exceeded"]]


def test_without_tools_and_without_a_budget_nothing_is_exhausted():
    assert not ToolExecutor([]).begin_task().exhausted
    assert ToolExecutor([Tool("ok", SCHEMA, ok, max_calls=0)]).begin_task().exhausted


def test_a_rejected_call_of_an_unknown_tool_names_the_tools_there_are():
    (came,) = play(ToolExecutor([Tool("ok", SCHEMA, ok)]), [[("nope", {})]])
    assert came.results[0].status is ToolStatus.REJECTED
    assert came.results[0].content == "Not run: there is no tool 'nope'. Tools: ok."
    assert came.rejected_ids == {"c0"}
    assert not came.any_success
