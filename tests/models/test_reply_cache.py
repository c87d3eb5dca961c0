"""The file of the reply cache: what is kept, by whom, and what happens when it breaks."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import axislab
from axislab.errors import ConfigError, DataError
from axislab.messages import ToolCall, Usage
from axislab.models.base import ModelReply
from axislab.models.cache import ReplyCache, default_path, open_cache, why_not_kept
from axislab.models.reply_json import reply_from_json, reply_to_json

GOOD = ModelReply(
    text="It is 4.",
    reasoning="2 + 2",
    tool_calls=(ToolCall(id="", name="note", arguments='{"a": 1}', provider_id="toolu_1"),),
    finish_reason="stop",
    usage=Usage(input_tokens=11, output_tokens=7, cached_tokens=3),
    cost_usd=0.25,
    request_id="req-1",
    model="fake-1",
    latency=1.5,
)
POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")


@pytest.fixture
def cache(tmp_path):
    with ReplyCache(tmp_path / "replies.sqlite3") as made:
        yield made


def original(hit):
    """The reply a hit is of."""
    assert hit.cached
    return replace(
        hit,
        cached=False,
        cache_key=None,
        cost_usd=hit.saved_usd,
        latency=hit.saved_seconds,
        saved_usd=None,
        saved_seconds=None,
    )


# What goes in comes out -----------------------------------------------------------------------

TEXT = st.text(st.characters(), max_size=20)  # half surrogate pairs included
NUMBER = st.none() | st.integers(0, 2**53)
REPLIES = st.builds(
    ModelReply,
    text=st.none() | TEXT,
    reasoning=st.none() | TEXT,
    tool_calls=st.lists(
        st.builds(ToolCall, id=TEXT, name=TEXT, arguments=TEXT, provider_id=st.none() | TEXT),
        max_size=3,
    ).map(tuple),
    finish_reason=st.none() | TEXT,
    usage=st.none()
    | st.builds(
        Usage,
        input_tokens=NUMBER,
        output_tokens=NUMBER,
        cached_tokens=NUMBER,
        reasoning_tokens=NUMBER,
        estimated=st.booleans(),
    ),
    cost_usd=st.none() | st.floats(0, 1e6),
    cost_missing=st.none() | TEXT,
    request_id=st.none() | TEXT,
    model=st.none() | TEXT,
    latency=st.floats(0, 1e6),
)


@given(REPLIES)
def test_a_reply_comes_back_as_it_was(reply):
    assert reply_from_json(reply_to_json(reply)) == reply


@given(st.text(max_size=30) | st.sampled_from(["{", "[]", "1", '{"tool_calls": 3}', "null"]))
def test_what_is_no_reply_is_a_value_error(text):
    try:
        found = reply_from_json(text)
    except ValueError:
        return
    assert isinstance(found, ModelReply)


def test_a_field_of_a_newer_version_is_left_out():
    data = json.loads(reply_to_json(GOOD))
    data["mood"], data["usage"]["calories"] = "fine", 3
    assert reply_from_json(json.dumps(data)) == GOOD


def test_a_hit_says_what_was_saved_and_keeps_the_rest(cache):
    assert cache.get("k") is None
    assert cache.put("k", GOOD, model="m")
    hit = cache.get("k")
    assert (hit.cached, hit.cache_key, hit.cost_usd, hit.cost_missing) == (True, "k", 0.0, None)
    assert (hit.saved_usd, hit.saved_seconds) == (0.25, 1.5)
    assert original(hit) == GOOD


def test_a_hit_of_unknown_cost_was_free_and_saved_who_knows_what(cache):
    cache.put("k", replace(GOOD, cost_usd=None, cost_missing="no price"), model="m")
    hit = cache.get("k")
    assert (hit.cost_usd, hit.saved_usd, hit.cost_missing) == (0.0, None, None)


def test_the_first_reply_of_a_key_stays(cache):
    cache.put("k", GOOD, model="m")
    cache.put("k", replace(GOOD, text="5"), model="m")
    assert cache.get("k").text == "It is 4."


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ({}, True),
        ({"finish_reason": "END_TURN"}, True),
        ({"text": None}, True),  # its calls are there
        ({"text": "It is", "tool_calls": (), "finish_reason": "length"}, True),
        ({"text": "", "tool_calls": (), "finish_reason": "length"}, True),
        ({"finish_reason": None}, False),
        ({"finish_reason": "content_filter"}, False),
        ({"finish_reason": "engine_abort"}, False),
        ({"text": "", "tool_calls": ()}, False),
    ],
)
def test_only_whole_replies_are_kept(cache, changes, kept):
    reply = replace(GOOD, **changes)
    assert (why_not_kept(reply) is None) == kept
    assert cache.put("k", reply, model="m") == kept
    assert (cache.get("k") is not None) == kept


def test_a_reply_that_json_cannot_hold_is_not_kept(cache):
    assert not cache.put("k", replace(GOOD, text=b"bytes"), model="m")


# Looking and clearing -------------------------------------------------------------------------


def test_info_counts_entries_bytes_hits_and_misses(cache):
    assert (cache.info().entries, cache.info().bytes) == (0, 0)
    assert not cache.path.exists()  # nothing was kept, so nothing was made
    cache.put("a", GOOD, model="m")
    for key in ("a", "a", "b"):
        cache.get(key)
    info = cache.info()
    assert (info.entries, info.hits, info.misses, info.saved_usd) == (1, 2, 1, 0.5)
    assert info.bytes >= cache.path.stat().st_size > 0
    assert (info.path, info.notes) == (cache.path, ())


def test_clear_drops_all_or_a_models_or_what_is_old(cache):
    for number in range(4):
        cache.put(f"k{number}", GOOD, model="one" if number else "two")
    assert cache.clear(older_than=timedelta(hours=1)) == 0
    assert cache.clear(model="two") == 1
    assert cache.clear(model="two") == 0
    assert cache.clear(older_than=datetime.now(UTC) + timedelta(seconds=5), model="two") == 0
    assert cache.clear(older_than=timedelta(0)) == 3
    assert cache.info().entries == 0


def test_clearing_gives_the_room_back(cache):
    for number in range(40):
        cache.put(f"k{number}", replace(GOOD, text="x" * 20_000), model="m")
    before = cache.info().bytes
    assert cache.clear() == 40
    assert cache.info().bytes < before / 4


def test_clearing_a_cache_that_is_not_there_drops_nothing(cache):
    assert cache.clear() == 0
    assert not cache.path.exists()


@pytest.mark.parametrize("age", [3, "30d", datetime(2026, 1, 1)])
def test_an_age_must_be_clear(cache, age):
    with pytest.raises(ConfigError, match="time zone"):
        cache.clear(older_than=age)


def test_clearing_a_damaged_cache_sets_it_aside(cache):
    cache.put("k", GOOD, model="m")
    cache.close()
    scribble(cache.path, start=0, count=cache.path.stat().st_size)
    assert cache.clear() == 0
    assert len(damaged(cache.path)) == 1
    assert cache.put("k", GOOD, model="m")


def test_clearing_says_if_it_did_not_work(cache, monkeypatch):
    cache.put("k", GOOD, model="m")
    other = sqlite3.connect(cache.path)
    try:
        other.execute("BEGIN IMMEDIATE")
        cache._store._writer._db.execute("PRAGMA busy_timeout = 10")
        with pytest.raises(DataError, match="locked"):
            cache.clear()
    finally:
        other.close()


# Paths ----------------------------------------------------------------------------------------


def test_a_folder_gets_a_file(tmp_path):
    assert ReplyCache(tmp_path).path == tmp_path / "replies.sqlite3"


def test_the_users_own_file_may_be_chosen_by_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("AXISLAB_REPLIES", str(tmp_path / "mine.sqlite3"))
    assert open_cache(True).path == tmp_path / "mine.sqlite3"
    monkeypatch.delenv("AXISLAB_REPLIES")
    assert default_path().name == "replies.sqlite3"
    assert "axislab" in default_path().parts


def test_one_file_has_one_cache_in_a_process(tmp_path):
    one = open_cache(tmp_path / "a.sqlite3")
    assert open_cache(str(tmp_path / "a.sqlite3")) is one
    assert open_cache(one) is one
    assert open_cache(None) is open_cache(False) is None


@pytest.mark.parametrize("spec", [1, object(), b"x", "", "  "])
def test_what_is_no_cache_is_refused(spec):
    with pytest.raises(ConfigError):
        open_cache(spec)


def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("my notes")
    with pytest.raises(ConfigError, match="something else"):
        ReplyCache(notes)
    theirs = tmp_path / "theirs.sqlite3"
    db = sqlite3.connect(theirs)
    db.execute("CREATE TABLE t (a)")
    db.close()
    with pytest.raises(ConfigError, match="something else"):
        ReplyCache(theirs)
    assert notes.read_text() == "my notes"


@POSIX
def test_only_the_owner_can_read_the_file(cache):
    cache.put("k", GOOD, model="m")
    for file in cache.path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


# What breaks ----------------------------------------------------------------------------------


def damaged(path):
    return [p for p in path.parent.iterdir() if ".damaged-" in p.name]


def scribble(path, *, start, count):
    noise = random.Random(7)
    with path.open("r+b") as file:
        file.seek(start)
        file.write(noise.randbytes(count))


@pytest.mark.parametrize("start", [0, 100, 4096])
def test_a_damaged_file_is_set_aside_with_a_message(tmp_path, caplog, start):
    path = tmp_path / "replies.sqlite3"
    with ReplyCache(path) as before:
        for number in range(300):
            before.put(f"k{number}", GOOD, model="m")
    scribble(path, start=start, count=path.stat().st_size - start)
    with ReplyCache(path) as cache, caplog.at_level(logging.WARNING, "axislab"):
        assert cache.get("k1") is None
        assert cache.put("k1", GOOD, model="m")
        assert original(cache.get("k1")) == GOOD
        (note,) = cache.info().notes
    (aside,) = damaged(path)
    assert aside.name in note
    assert "damaged" in note
    assert [record.getMessage() for record in caplog.records] == [note]


def test_a_file_that_is_damaged_while_it_is_open_is_set_aside(cache):
    for number in range(300):
        cache.put(f"k{number}", GOOD, model="m")
    cache._store._writer._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    size = cache.path.stat().st_size
    scribble(cache.path, start=0, count=size)
    for number in range(300):
        cache.get(f"k{number}")
        assert cache.put(f"new{number}", GOOD, model="m")
    assert len(damaged(cache.path)) == 1
    assert original(cache.get("new7")) == GOOD


def test_a_truncated_file_costs_no_run(tmp_path):
    path = tmp_path / "replies.sqlite3"
    with ReplyCache(path) as before:
        for number in range(300):
            before.put(f"k{number}", GOOD, model="m")
    whole = path.read_bytes()
    for share in (0.05, 0.5, 0.9):
        path.write_bytes(whole[: int(len(whole) * share)])
        with ReplyCache(path) as cache:
            for number in range(300):
                found = cache.get(f"k{number}")
                assert found is None or original(found) == GOOD
            assert cache.put("new", GOOD, model="m")
            assert original(cache.get("new")) == GOOD


def test_a_changed_reply_is_not_taken_for_the_models(cache):
    cache.put("k", GOOD, model="m")
    with sqlite3.connect(cache.path) as db:
        db.execute("UPDATE replies SET reply = replace(reply, 'It is 4', 'It is 5')")
    db.close()
    assert cache.get("k") is None
    assert cache.info().entries == 0


def test_a_missing_table_is_damage(cache):
    cache.put("k", GOOD, model="m")
    db = sqlite3.connect(cache.path)
    db.execute("DROP TABLE replies")
    db.close()
    assert cache.get("k") is None
    assert cache.put("k", GOOD, model="m")
    assert cache.get("k") is not None


def test_a_newer_layout_is_left_alone(cache, caplog):
    cache.put("k", GOOD, model="m")
    cache.close()
    db = sqlite3.connect(cache.path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    assert cache.get("k") is None
    assert not cache.put("k", GOOD, model="m")
    assert not damaged(cache.path)
    assert "newer version" in caplog.text


def test_a_removed_file_is_begun_anew(cache):
    cache.put("k", GOOD, model="m")
    assert cache.get("k") is not None
    for file in list(cache.path.parent.iterdir()):
        file.unlink()
    assert cache.get("k") is None
    assert cache.put("k", GOOD, model="m")
    assert cache.path.exists()
    assert cache.get("k") is not None


def test_a_full_disk_is_said_once_and_what_there_is_is_still_read(cache, caplog):
    cache.put("k", GOOD, model="m")
    db = cache._store._writer._db
    db.execute(f"PRAGMA max_page_count = {db.execute('PRAGMA page_count').fetchone()[0]}")
    with caplog.at_level(logging.WARNING, "axislab"):
        for number in range(5):
            assert not cache.put(f"n{number}", replace(GOOD, text="x" * 50_000), model="m")
    assert [record.getMessage() for record in caplog.records] == [*cache.info().notes]
    assert len(caplog.records) == 1
    assert "full" in caplog.text
    assert cache.get("k") is not None
    db.execute("PRAGMA max_page_count = 1000000")
    assert cache.put("later", GOOD, model="m")  # room again, so it works again


@POSIX
def test_a_folder_that_cannot_be_made_costs_no_run(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    cache = ReplyCache(tmp_path / "file" / "replies.sqlite3")
    assert cache.get("k") is None
    assert not cache.put("k", GOOD, model="m")
    assert not cache.put("k", GOOD, model="m")
    assert len(caplog.records) == 1
    assert cache.info().entries == 0


# Several at once ------------------------------------------------------------------------------

CHILD = """
import sys
from axislab.models.base import ModelReply
from axislab.models.cache import ReplyCache

path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
cache = ReplyCache(path)
print("ready", flush=True)
for number in range(count):
    for key in (f"shared{number}", f"{name}{number}"):
        if cache.get(key) is None:
            reply = ModelReply(text=f"{key} by {name}" + "x" * 500, finish_reason="stop")
            assert cache.put(key, reply, model=name), cache.info().notes
        assert cache.get(key).text.startswith(f"{key} by ")
    if number % 10 == 0:
        print(number, flush=True)
assert cache.info().notes == (), cache.info().notes
"""


def child(path, name, count, code=CHILD):
    env = {**os.environ, "PYTHONPATH": str(Path(axislab.__file__).parents[1])}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(path), name, str(count)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )


def test_processes_share_a_file_they_make_at_once(tmp_path):
    path = tmp_path / "replies.sqlite3"
    crew = [child(path, name, 150) for name in ("a", "b", "c")]
    for process in crew:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        assert errors == ""
    with ReplyCache(path) as cache:
        assert cache.info().entries == 4 * 150
        assert cache.get("shared7").text.startswith("shared7 by ")
    assert not damaged(path)


@POSIX
def test_a_kill_during_writes_loses_nothing_that_was_kept(tmp_path):
    path = tmp_path / "replies.sqlite3"
    for round_ in range(5):
        process = child(path, f"r{round_}-", 100_000)
        told = 0
        for line in process.stdout:
            told = int(line) if line.strip().isdigit() else told
            if told >= 30 + 10 * round_:
                break
        time.sleep(random.Random(round_).uniform(0, 0.01))
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        with ReplyCache(path) as cache:
            for number in range(told + 1):
                assert cache.get(f"r{round_}-{number}") is not None
            assert cache.put(f"after{round_}", GOOD, model="m")
            assert cache.info().notes == ()
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    db.close()


@POSIX
def test_a_disk_that_fills_up_ends_no_process(tmp_path):
    code = """
    import resource, sys
    from axislab.models.base import ModelReply
    from axislab.models.cache import ReplyCache

    cache = ReplyCache(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
    reply = ModelReply(text="x" * 5000, finish_reason="stop")
    kept = [cache.put(str(n), reply, model="m") for n in range(200)]
    assert kept[0] and not kept[-1]
    assert all(cache.get(str(n)) is not None for n in range(200) if kept[n])
    print(len(cache.info().notes))
    """
    process = child(tmp_path / "replies.sqlite3", "", 0, code)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert out.strip() == "1"
    assert errors.count("runs go on without it") == 1


def test_threads_share_a_cache(cache):
    failures = []

    def work(name):
        for number in range(60):
            cache.put(f"{number}", GOOD, model=name)
            if cache.get(f"{number}") is None:
                failures.append((name, number))

    threads = [threading.Thread(target=work, args=(str(n),)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    info = cache.info()
    assert (info.entries, info.hits, info.misses, info.notes) == (60, 360, 0, ())


def _in_a_fork(cache, answers):
    inherited = cache._store._reader._db, cache._store._writer._db
    hit = cache.get("k")
    answers.put((inherited, hit is not None, cache.put("child", GOOD, model="m")))


@POSIX
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_opens_the_file_for_itself(cache):
    cache.put("k", GOOD, model="m")
    cache.get("k")
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    process = context.Process(target=_in_a_fork, args=(cache, answers))
    process.start()
    assert answers.get(timeout=30) == ((None, None), True, True)
    process.join()
    assert cache.get("child") is not None
    assert cache.put("k2", GOOD, model="m")


def test_a_fork_does_not_wait_for_threads_it_does_not_have(cache, monkeypatch):
    cache.put("k", GOOD, model="m")
    held, done = threading.Event(), threading.Event()

    def hold():
        with cache._store._reader.lock, cache._store._writer.lock, cache.flights._lock:
            held.set()
            done.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(30)
    pid = os.getpid()
    before = cache._store._reader, cache._store._writer
    monkeypatch.setattr(os, "getpid", lambda: pid + 1)
    try:
        asking = threading.Thread(target=cache.get, args=("k",), daemon=True)
        asking.start()
        asking.join(5)
        assert not asking.is_alive()
        assert cache.flights.claim("k") is None
        cache.flights.settle("k", None)
    finally:
        done.set()
        holder.join()
    for line in before:
        line.close()


def test_a_good_file_in_the_place_of_a_damaged_one_is_left_alone(tmp_path):
    path = tmp_path / "replies.sqlite3"
    with ReplyCache(path) as late, ReplyCache(path) as other:
        late.put("old", GOOD, model="m")
        late.get("old")
        os.replace(path, tmp_path / "aside")
        other.put("new", GOOD, model="m")
        late._store._set_aside(sqlite3.DatabaseError("malformed"))
        assert not damaged(path)
        assert late.get("new") is not None


def test_a_lock_that_is_held_is_waited_for_and_then_said(cache, caplog):
    cache.put("k", GOOD, model="m")
    other = sqlite3.connect(cache.path, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(0.2, other.rollback).start()
    assert cache.put("waited", GOOD, model="m")
    other.execute("BEGIN IMMEDIATE")
    cache._store._writer._db.execute("PRAGMA busy_timeout = 10")
    assert not cache.put("locked", GOOD, model="m")
    assert cache.get("k") is not None  # readers are not locked out
    assert "locked" in caplog.text
    other.close()
