"""What other people's code may do to us, and for how long."""

import asyncio
import threading
import time

import pytest

import axislab as al
from axislab.borders import GRACE, Overdue, ends_us, shown, text_of, within


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


async def hold_on() -> None:
    """A loop with a bare except: it cannot be cancelled."""
    end = time.monotonic() + 3 * GRACE
    while time.monotonic() < end:
        try:
            await asyncio.sleep(0.05)
        except BaseException:
            continue


def in_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), SystemExit(1)])
def test_an_interrupt_or_exit_is_real_in_the_main_thread_only(problem):
    assert ends_us(problem)
    assert not in_thread(lambda: ends_us(problem))


def test_a_cancellation_is_real_if_the_task_was_cancelled():
    async def cancels_itself_or_not(really):
        if really:
            asyncio.current_task().cancel()
        try:
            await asyncio.sleep(0)
            raise asyncio.CancelledError
        except asyncio.CancelledError as problem:
            return ends_us(problem)

    assert asyncio.run(cancels_itself_or_not(False)) is False
    assert asyncio.run(cancels_itself_or_not(True)) is True


def test_closing_a_coroutine_is_real_where_no_task_runs_it():
    async def inside():
        return ends_us(GeneratorExit())

    assert ends_us(GeneratorExit())
    assert asyncio.run(inside()) is False


def test_an_ordinary_exception_never_ends_us():
    assert not ends_us(ValueError("x"))
    assert not ends_us(BaseException("x"))


def test_texts_and_reprs_are_told_whatever_their_methods_do():
    assert text_of(ValueError("x")) == "x"
    assert text_of(Mute()) == "(its text cannot be told: RuntimeError)"
    assert shown("x") == "'x'"
    assert shown(Mute()) == "<a Mute whose repr raises RuntimeError>"
    assert len(shown("x" * 10_000)) == 300


def test_what_the_work_gives_or_raises_is_given_or_raised():
    async def gives(value):
        return value

    async def raises(problem):
        raise problem

    assert asyncio.run(within(gives(3), 5)) == 3
    assert asyncio.run(within(gives(3), None)) == 3
    for problem in (ValueError("x"), SystemExit(2), BaseException("x"), asyncio.CancelledError()):
        with pytest.raises(type(problem)):
            asyncio.run(within(raises(problem), 5))


def test_work_that_takes_too_long_is_cancelled():
    said = []

    async def slow():
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            said.append("cancelled")
            raise

    with pytest.raises(Overdue):
        asyncio.run(within(slow(), 0.02))
    assert said == ["cancelled"]


def test_work_that_will_not_be_cancelled_is_left_behind():
    async def main():
        started = time.monotonic()
        with pytest.raises(Overdue):
            await within(hold_on(), 0.02)
        return time.monotonic() - started

    assert asyncio.run(main()) < 2 * GRACE


def test_whoever_waits_for_work_that_will_not_be_cancelled_can_be():
    async def main():
        waiting = asyncio.create_task(within(hold_on(), 60))
        await asyncio.sleep(0.05)
        started = time.monotonic()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return time.monotonic() - started

    assert asyncio.run(main()) < 2 * GRACE


def test_work_cancelled_before_it_began_leaves_no_warning():
    async def never_begun():
        raise AssertionError("it must not begin")

    async def main():
        before = asyncio.all_tasks()
        waiting = asyncio.ensure_future(within(never_begun(), 60))
        await asyncio.sleep(0)
        for task in asyncio.all_tasks() - before:
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())


STOPS = (KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError, BaseException)


class Own:
    """A user's own model, which does what it is told."""

    name, simulated, info = "own", False, {}

    def __init__(self, act):
        self.act = act

    def check(self):
        """Fine."""

    async def complete(self, request):
        return await self.act()


@pytest.mark.parametrize("problem", [*STOPS, Mute])
def test_whatever_a_model_raises_fails_its_run_and_no_other(problem):
    async def act():
        raise problem

    run = al.Lab(Own(act)).run(al.Recipe(), "Why?")
    assert run.status == "FAILED"
    assert run.error
    assert al.Lab(al.ScriptedModel(["fine"])).run(al.Recipe(), "Why?").status == "COMPLETED"


@pytest.mark.parametrize("problem", [*STOPS, Mute])
@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.parametrize("calls", [1, 2])
def test_whatever_a_tool_raises_in_a_lab_is_read_by_the_model(problem, blocking, calls):
    def act():
        raise problem

    made = al.Tool("act", {"type": "object"}, act, blocking=blocking)
    model = al.ScriptedModel([[al.ScriptedModel.call("act")] * calls, "fine"])
    run = al.Lab(model).run(al.Recipe(tools=(made,)), "Why?")
    assert run.status == "COMPLETED"
    assert [r.data["status"] for r in run.trace.of("tool.finished")] == ["failed"] * calls


@pytest.mark.parametrize("problem", [*STOPS, Mute])
@pytest.mark.parametrize("place", ["before_tool", "after_tool"])
def test_whatever_middleware_raises_in_a_lab_is_read_by_the_model(problem, place):
    def check(*_):
        raise problem

    made = al.Tool("act", {"type": "object"}, lambda: "done", blocking=False)
    model = al.ScriptedModel([[al.ScriptedModel.call("act")] * 2, "fine"])
    run = al.Lab(model).run(al.Recipe(tools=(made,), **{place: (check,)}), "Why?")
    assert run.status == "COMPLETED"
    assert {r.data["reason"] for r in run.trace.of("tool.finished")} == {"middleware_error"}


@pytest.mark.parametrize("problem", [KeyboardInterrupt, SystemExit, GeneratorExit, BaseException])
def test_a_rule_that_raises_what_ends_processes_fails_its_run(problem):
    def check(turn):
        raise problem

    chain = (al.Rule("mine", "L0", check), *al.CHAIN)
    run = al.Lab(al.ScriptedModel(["fine"])).run(al.Recipe(chain=chain), "Why?")
    assert run.status == "FAILED"
    assert problem.__name__ in run.error


@pytest.mark.filterwarnings("ignore:the scorer raised")
@pytest.mark.parametrize("problem", [*STOPS, Mute])
def test_a_scorer_that_raises_what_ends_processes_leaves_the_answer(problem):
    def judge(answer, expected):
        raise problem

    model = al.ScriptedModel([r"\boxed{4}"])
    run = al.Lab(model).run(al.Recipe(scorer=judge), al.Task("t", "2 + 2?", "4"))
    assert (run.status, run.answer, run.correct) == ("COMPLETED", "4", None)
    assert problem.__name__ in run.error


def test_a_model_that_will_not_be_cancelled_does_not_hold_its_run():
    policy = {"attempts": 1, "request_timeout": 0.05}
    started = time.monotonic()
    run = al.Lab(Own(hold_on)).run(al.Recipe().with_(**policy), "Why?")
    assert run.error_kind == "timeout"
    assert time.monotonic() - started < 2 * GRACE


def test_a_run_whose_model_will_not_be_cancelled_can_be_stopped():
    handle = al.Lab(Own(hold_on)).start(al.Recipe(), "Why?")
    time.sleep(0.1)
    handle.stop()
    assert handle.result(2.5 * GRACE).status == "INTERRUPTED"
