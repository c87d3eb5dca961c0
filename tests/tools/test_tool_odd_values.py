"""What tools and middleware give that is not what was asked for ends as an observation."""

import asyncio
import io
import itertools
import re
import threading
import time

import pytest

from axislab.config import ToolPolicy
from axislab.errors import ToolDefinitionError
from axislab.messages import ToolCall, ToolResult, ToolStatus
from axislab.tools.base import Tool, ToolFailure
from axislab.tools.executor import ToolExecutor
from axislab.tools.middleware import Ask, Deny, Edit

ANY = {"type": "object"}


def run_one(function, *, timeout=None, blocking=True, **hooks):
    executor = ToolExecutor(
        [Tool("t", ANY, function, blocking=blocking, timeout=timeout)], ToolPolicy(), **hooks
    )
    call = ToolCall(id="c1", name="t", arguments="{}")
    (result,) = asyncio.run(executor.begin_task().run_round([call])).results
    assert isinstance(result.content, str)
    assert result.reason is None or isinstance(result.reason, str)
    return result


class Lazy:
    def tolist(self):
        raise KeyError("lost")


def endless():
    raise_at_the_end = itertools.count()
    yield from raise_at_the_end


def breaks_off():
    yield 1
    raise KeyError("lost")


@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (endless, "more than 100,000 values"),
        (lambda: [endless()], "more than 100,000 values"),
        (breaks_off, "lost"),
        (Lazy, "lost"),
        (lambda: io.StringIO("x"), "it is an open file: return what is in it"),
    ],
)
def test_a_lazy_value_that_never_ends_or_breaks_is_a_failed_call(make, said, blocking):
    result = run_one(lambda: make(), blocking=blocking)
    assert (result.status, result.reason) == (ToolStatus.FAILED, "execution_error")
    assert said in result.content


def test_an_iterator_that_ends_is_a_list():
    assert run_one(lambda: (n for n in range(3))).content == "[0, 1, 2]"


def test_a_value_becomes_text_in_the_tools_own_thread_and_time():
    threads = []

    def slowly():
        for n in range(100):
            threads.append(threading.current_thread().name)
            time.sleep(0.02)
            yield n

    result = run_one(lambda: slowly(), timeout=0.1)
    assert result.reason == "timeout"
    assert all(name.startswith("axislab-tool") for name in threads)


@pytest.mark.parametrize(("message", "content"), [(None, "None"), (7, "7"), (ValueError("x"), "x")])
def test_a_failure_whose_message_is_no_text_is_told_as_text(message, content):
    result = run_one(lambda: ToolFailure(message, reason=7))
    assert (result.status, result.content, result.reason) == (ToolStatus.FAILED, content, "7")


def test_two_halves_of_a_character_are_joined():
    assert run_one(lambda: "\ud83d\ude00 \ud83d").content == "\N{GRINNING FACE} ?"


@pytest.mark.parametrize(
    "answer",
    [
        Deny(None),
        Deny("no", reason=3),
        Ask(5),
        Edit(None),
        Edit([1]),
        Edit({"a": object()}),
        10**5000,
        True,
    ],
    ids=lambda answer: type(answer).__name__,
)
def test_a_guard_that_answers_nonsense_lets_nothing_through(answer):
    ran = []
    result = run_one(lambda **_: ran.append(1), before=[lambda request: answer])
    assert (result.status, result.reason) == (ToolStatus.REJECTED, "middleware_error")
    assert len(result.content) < 500
    assert not ran


@pytest.mark.parametrize(
    "change",
    [{"content": 5}, {"content": None}, {"status": "weird"}, {"reason": 3}],
    ids=lambda change: next(iter(change)),
)
def test_an_after_that_gives_no_proper_result_makes_the_call_a_failure(change):
    odd = ToolResult(**{"call_id": "x", "name": "y", "content": "ok", **change})
    result = run_one(lambda: "fine", after=[lambda request, result: odd])
    assert (result.status, result.reason) == (ToolStatus.FAILED, "middleware_error")


async def never(*_):
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("place", "status"), [("before", ToolStatus.REJECTED), ("after", ToolStatus.FAILED)]
)
def test_middleware_that_never_answers_is_given_up_in_time(place, status):
    started = time.monotonic()
    result = run_one(lambda: "fine", timeout=0.05, **{place: [never]})
    assert (result.status, result.reason) == (status, "middleware_error")
    assert "took longer than 0.05 seconds" in result.content
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"query": 5}, "query=5"),
        ({"description": None}, "description=None must be text"),
        ({"max_calls_message": 5}, "max_calls_message=5 must be text or None"),
        ({"same_args_message": []}, "same_args_message="),
        ({"strict": "no"}, "strict='no' must be True or False"),
        ({"idempotent": None}, "idempotent=None"),
        ({"requires_approval": "yes"}, "requires_approval='yes' must be True or False, or a func"),
        ({"blocking": None}, "blocking=None"),
        ({"identity": {"x": object()}}, "identity={'x': <object"),
        ({"identity": None}, "identity=None"),
    ],
)
def test_an_option_of_another_type_is_refused_when_the_tool_is_made(options, said):
    with pytest.raises(ToolDefinitionError, match=re.escape(said)):
        Tool("t", ANY, lambda: 1, **options)


@pytest.mark.parametrize("problem", [ZeroDivisionError, RuntimeError, KeyboardInterrupt])
def test_a_query_that_cannot_be_told_is_no_duplicate(problem):
    def query(arguments):
        raise problem

    made = Tool("t", ANY, lambda: "x", query=query)
    found = []
    thread = threading.Thread(target=lambda: found.append(made.query_key({})))
    thread.start()
    thread.join()
    assert found == [None]


def test_half_a_character_in_a_tool_does_not_break_its_fingerprint():
    one, other = (Tool("t", ANY, lambda: 1, description=text) for text in ("\ud800", "\ud801"))
    assert one.fingerprint != other.fingerprint
