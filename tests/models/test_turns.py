"""Turns: one thing at a time, in order, and nothing of one caller troubles another."""

import threading
import time
from concurrent.futures import CancelledError

import pytest

from axislab.models.turns import Turns


def threads(name: str) -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == name]


def gone(name: str) -> bool:
    deadline = time.monotonic() + 5
    while threads(name) and time.monotonic() < deadline:
        time.sleep(0.005)
    return not threads(name)


def test_what_was_asked_first_is_done_first_and_only_one_thing_at_a_time() -> None:
    turns, done, at_once = Turns("order"), [], []
    go = threading.Event()

    def work(number: int) -> int:
        at_once.append(len(threads("order")))
        done.append(number)
        return number * 2

    first = turns.take(go.wait)
    futures = [turns.take(lambda n=n: work(n)) for n in range(50)]
    go.set()
    assert first.result(5)
    assert [f.result(5) for f in futures] == [n * 2 for n in range(50)]
    assert done == list(range(50))
    assert set(at_once) == {1}


def test_who_asks_again_stands_behind_all_who_wait() -> None:
    turns, order = Turns("fair"), []
    go, over = threading.Event(), threading.Event()
    turns.take(go.wait)

    def ask(name: str, left: int) -> None:
        asked = turns.take(lambda: order.append(name))
        asked.add_done_callback(lambda _: ask(name, left - 1) if left else over.set())

    for name in "abcd":
        ask(name, 20)
    go.set()
    assert over.wait(5)
    turns.take(lambda: None).result(5)
    assert "".join(order) == "abcd" * 21


def test_who_gives_up_while_waiting_is_left_out() -> None:
    turns, done = Turns("given-up"), []
    go = threading.Event()
    turns.take(go.wait)
    unwanted, wanted = (turns.take(lambda n=n: done.append(n)) for n in (1, 2))
    assert unwanted.cancel()
    go.set()
    wanted.result(5)
    assert done == [2]
    with pytest.raises(CancelledError):
        unwanted.result(5)


def test_a_failure_belongs_to_who_asked() -> None:
    turns = Turns("failing")
    failed = turns.take(lambda: 1 / 0)
    assert turns.take(lambda: "fine").result(5) == "fine"
    with pytest.raises(ZeroDivisionError):
        failed.result(5)


def test_there_is_a_thread_only_while_there_is_work() -> None:
    turns = Turns("idle")
    for _ in range(3):
        assert turns.take(lambda: len(threads("idle"))).result(5) == 1
        assert gone("idle")
