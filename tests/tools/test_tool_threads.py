from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from axislab.tools.threads import WorkerThreads


def test_an_idle_thread_is_used_again():
    pool = WorkerThreads()
    names = {pool.submit(lambda: threading.current_thread().name).future.result(5) for _ in "abc"}
    assert pool.started <= 2  # the first may still be on its way back when the second is asked for
    assert all(name.startswith("axislab-tool-") for name in names)


def test_jobs_beyond_the_limit_wait_for_a_thread():
    pool = WorkerThreads(limit=2)
    release = threading.Event()
    jobs = [pool.submit(lambda: release.wait(5)) for _ in range(5)]
    assert pool.started == 2
    release.set()
    assert all(job.future.result(5) for job in jobs)
    assert pool.started == 2


def test_a_job_that_hangs_and_is_given_up_takes_no_place():
    pool = WorkerThreads(limit=1)
    release = threading.Event()
    running = threading.Event()

    def hang():
        running.set()
        release.wait(5)

    hanging = pool.submit(hang)
    running.wait(5)
    waiting = pool.submit(lambda: "done")
    pool.give_up(hanging)
    pool.give_up(hanging)
    assert waiting.future.result(5) == "done"
    assert pool.submit(lambda: "more").future.result(5) == "more"
    assert pool.started == 2
    release.set()


def test_a_job_given_up_before_it_began_never_runs():
    pool = WorkerThreads(limit=1)
    release = threading.Event()
    ran = []
    first = pool.submit(lambda: release.wait(5))
    second = pool.submit(lambda: ran.append(1))
    third = pool.submit(lambda: "third")
    pool.give_up(second)
    release.set()
    assert first.future.result(5)
    assert third.future.result(5) == "third"
    assert ran == []


def test_giving_up_a_finished_job_changes_nothing():
    pool = WorkerThreads(limit=1)
    job = pool.submit(lambda: 1)
    assert job.future.result(5) == 1
    pool.give_up(job)
    assert pool.submit(lambda: 2).future.result(5) == 2
    assert pool.started == 1


def test_an_exception_reaches_whoever_waits_and_the_thread_lives_on():
    pool = WorkerThreads(limit=1)
    for problem in (ValueError("boom"), KeyboardInterrupt()):

        def fail(problem=problem):
            raise problem

        with pytest.raises(type(problem)):
            pool.submit(fail).future.result(5)
    assert pool.submit(lambda: 3).future.result(5) == 3
    assert pool.started == 1


def test_many_jobs_of_many_threads_all_get_done():
    pool = WorkerThreads(limit=8)
    done = []

    def feed():
        jobs = [pool.submit(lambda n=n: n) for n in range(100)]
        done.append(sum(job.future.result(10) for job in jobs))

    feeders = [threading.Thread(target=feed) for _ in range(4)]
    for feeder in feeders:
        feeder.start()
    for feeder in feeders:
        feeder.join()
    assert done == [4950] * 4
    assert pool.started <= 8


def test_a_hanging_tool_does_not_keep_a_script_from_ending():
    code = (
        "import time; from axislab.tools.threads import THREADS;"
        "THREADS.submit(lambda: time.sleep(60)); time.sleep(0.1)"
    )
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
    assert time.perf_counter() - started < 25


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_gets_threads_of_its_own():
    code = (
        "import os; from axislab.tools.threads import THREADS\n"
        "assert THREADS.submit(lambda: 1).future.result(5) == 1\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    os._exit(0 if THREADS.submit(lambda: 2).future.result(5) == 2 else 1)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=30)
