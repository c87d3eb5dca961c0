"""Every scenario of the misbehaving server ends as the table of bad days says, in every way."""

from __future__ import annotations

import asyncio
import gc
import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from bad_days import FACADES, KEY, Day, observed, search, spend, wire_faults
from misbehaving.server import GROUPS, SCENARIOS, MisbehavingServer

import axislab as al
from axislab.datasets import BAD_DAYS, data_folder
from axislab.errors import RunError
from axislab.events import ModelRequested
from axislab.models.call import RETRIED, call_model
from axislab.running import LoopThread

WAYS = ("plain", "streamed")
SLACK = 30.0
"""Seconds a run may take beyond what its requests may; it catches one that hangs."""

Row = dict[str, Any]
ROWS: list[Row] = [
    json.loads(line) for line in (data_folder() / "bad_days.jsonl").read_text("utf-8").splitlines()
]
CASES = {
    f"{row['scenario']}-{way}": (row, way)
    for row in ROWS
    for way in (WAYS if row["way"] == "both" else (row["way"],))
}
EXPECTED = set(BAD_DAYS) - {"scenario", "group", "way", "server", "request_timeout", "why"}


@pytest.fixture(scope="module")
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer() as misbehaving:
        yield misbehaving


@pytest.fixture(scope="module")
def spent(
    server: MisbehavingServer, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Row, str], Day]:
    days: dict[tuple[str, str], Day] = {}

    def one(row: Row, way: str) -> Day:
        folder = tmp_path_factory.mktemp("bad")
        seconds = row.get("request_timeout")
        return spend(server, row["scenario"], way=way, seconds=seconds, folder=folder)

    def day(row: Row, way: str) -> Day:
        if (row["scenario"], way) not in days:
            # Those that wait for a timeout wait together.
            hung = [r for r, w in CASES.values() if w == way and "request_timeout" in r]
            rows = hung if row in hung else [row]
            with ThreadPoolExecutor(len(rows)) as pool:
                for each, spent in zip(rows, pool.map(lambda r: one(r, way), rows), strict=True):
                    days[each["scenario"], way] = spent
        return days[row["scenario"], way]

    return day


# The table ---------------------------------------------------------------------------------------


def test_the_table_and_the_server_list_the_same_scenarios() -> None:
    single = [row for row in ROWS if row["group"] != "sequences"]
    assert {row["scenario"] for row in single} == set(SCENARIOS)
    assert len(SCENARIOS) == 113
    assert {row["scenario"]: row["group"] for row in single} == {
        name: group for group, scenarios in GROUPS.items() for name in scenarios
    }
    sequences = [row["scenario"] for row in ROWS if row["group"] == "sequences"]
    steps = {s.partition(":")[0] for q in sequences for s in q.removeprefix("seq:").split(",")}
    assert len(sequences) > 10
    assert steps <= set(SCENARIOS)


def test_every_scenario_has_an_outcome_for_both_ways_once() -> None:
    scenarios = [row["scenario"] for row in ROWS]
    assert sorted(CASES) == sorted(f"{name}-{way}" for name in {*scenarios} for way in WAYS)
    assert len(CASES) == sum(2 if row["way"] == "both" else 1 for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['scenario']}-{row['way']}")
def test_a_row_says_what_the_retry_policy_says(row: Row) -> None:
    assert list(row) == [name for name in BAD_DAYS if name in row]
    assert row["server"].endswith(".")
    assert row["why"].endswith(".")
    assert row["outcome"] in ("ok", *al.ErrorKind)
    if row["group"] != "sequences":
        failed = row["outcome"] != "ok"
        assert row["requests"] == (3 if failed and RETRIED[al.ErrorKind(row["outcome"])] else 1)
    if row["status"] == "FAILED" and row["ending"] == "model_error":
        assert row["error_kind"] in tuple(al.ErrorKind)


def test_the_table_loads_as_a_frame() -> None:
    table = al.load_bad_days()
    assert tuple(table.columns) == BAD_DAYS
    assert len(table) == len(ROWS)
    assert str(table["requests"].dtype) == "Int64"
    texts = table.set_index(["scenario", "way"])["text"]
    assert texts["reasoning", "both"] == "42"
    assert table["error_kind"].isna().sum() == sum("error_kind" not in row for row in ROWS)


# What it says, in every way ------------------------------------------------------------------


@pytest.mark.parametrize("facade", FACADES)
@pytest.mark.parametrize("case", CASES)
def test_a_bad_day_ends_as_the_table_says(
    case: str, facade: str, spent: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    row, way = CASES[case]
    day = spent(row, way)
    run = day.runs[facade]
    assert observed(run) == {name: row[name] for name in EXPECTED if name in row}
    assert len(day.bodies[facade]) == run.requests
    assert [fault for body in day.bodies[facade] for fault in wire_faults(body)] == []
    allowed = row["requests"] * row.get("request_timeout", 0.0) + SLACK
    assert day.seconds < allowed
    assert printed(capfd, way) == ""
    tells_no_key(run)


def printed(capfd: pytest.CaptureFixture[str], way: str) -> str:
    """What was written that nobody asked for; streamed, replies are shown on standard output."""
    seen = capfd.readouterr()
    noise = re.search(f"litellm|traceback|warning|{KEY}", seen.out, re.IGNORECASE)
    return seen.err + (seen.out if way == "plain" or noise else "")


def tells_no_key(run: al.Run) -> None:
    assert run.path is not None
    texts = [run.path.read_text("utf-8"), repr(run), run._repr_html_(), str(run.error)]
    if run.status == "FAILED":
        texts += [frame(run).to_html() for frame in (al.budgets_df, al.runs_df)]
        with pytest.raises(RunError) as caught:
            run.raise_for_status()
        texts.append(str(caught.value))
    assert not [text for text in texts if KEY in text]


FAILING = [
    case
    for case, (row, way) in CASES.items()
    if way == "plain" and row["outcome"] != "ok" and "request_timeout" not in row
]


@pytest.mark.parametrize("case", FAILING)
def test_a_call_raises_the_typed_error_of_the_table(
    case: str, server: MisbehavingServer, run: Any
) -> None:
    row, _ = CASES[case]
    head, colon, rest = row["scenario"].partition(":")
    name = f"{head}@call{colon}{rest}"
    model = al.LiteLLMModel(f"openai/{name}", api_base=server.url, api_key=KEY)
    retry = al.RetryPolicy(backoff=0.01)
    request = al.ModelRequest(messages=(al.Message.user("Hi."),), tools=(search.spec,))
    rows: list[ModelRequested] = []

    async def ask() -> None:
        await call_model(model, request, retry=retry, emit=rows.append, call=0, step=1)

    with pytest.raises(al.ModelError) as caught:
        run(ask())
    assert caught.value.kind == row["outcome"]
    assert KEY not in str(caught.value)
    assert len(str(caught.value)) < 500
    assert len(server.asked(name)) == len(rows) == row["requests"]


def test_windows_and_waits_are_read_from_the_errors(server: MisbehavingServer, run: Any) -> None:
    def error(name: str) -> al.ModelError:
        model = al.LiteLLMModel(f"openai/{name}", api_base=server.url, api_key=KEY)
        with pytest.raises(al.ModelError) as caught:
            run(model.complete(al.ModelRequest(messages=(al.Message.user("Hi."),))))
        return caught.value

    windows = {
        "err_context": (8192, 9001),
        "err_context_vllm": (4096, 5000),
        "err_context_llamacpp": (2048, 5000),
        "err_context_anthropic": (200_000, 205_000),
        "err_context_code": (None, None),
    }
    for name, known in windows.items():
        found = error(name)
        assert (found.window, found.requested) == known, name
    waits = {"err_rate:7": 7.0, "err_rate_ms": 0.03, "err_rate_date": 0.0, "err_overloaded:2": 2.0}
    assert {name: error(name).retry_after for name in waits} == waits


def test_nothing_is_left_behind() -> None:
    gc.collect()

    async def others() -> list[str]:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        return [name for task in tasks if "LoggingWorker" not in (name := str(task.get_coro()))]

    loop = LoopThread.current().loop
    assert asyncio.run_coroutine_threadsafe(others(), loop).result(5) == []
