"""What is seen of a streamed run: the terminal's lines, and the growing row of a live view."""

from __future__ import annotations

import asyncio
import io
import re
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import axislab as al
from axislab.models.deltas import Delta, DeltaKind
from axislab.models.scripted import ScriptedModel
from axislab.widgets.live import UPDATES_PER_SECOND, LiveRun
from axislab.widgets.streaming import MOST_SHOWN, GrowingReply, StreamPrinter, in_notebook

EVIL = "<script>window.hacked=1</script>\"'><img src=x onerror=alert(1)>&amp;"
PLAIN = al.Recipe(name="plain")


@al.tool
def look(query: str) -> str:
    """Look something up."""
    return "found"


def text(piece):
    return Delta(kind=DeltaKind.TEXT, text=piece)


END = Delta(kind=DeltaKind.END)
LOST = Delta(kind=DeltaKind.DISCARDED, text="connection")


def printed(*deltas, **options):
    file = io.StringIO()
    printer = StreamPrinter(file=file, **options)
    for delta in deltas:
        printer(delta)
    return file.getvalue()


def test_text_is_printed_as_it_comes_with_one_newline_at_its_end():
    assert printed(text("Hel"), text("lo."), END) == "Hello.\n"
    assert printed(text("Hello.\n"), END, text("a\nb"), END) == "Hello.\na\nb\n"


def test_each_reply_of_a_simulated_model_is_labelled():
    out = printed(text("a"), text("b"), END, text("c"), END, label="simulated")
    assert out == "[simulated] ab\n[simulated] c\n"


def test_thinking_and_calls_have_lines_of_their_own():
    def call(kind, piece, number=0):
        return Delta(kind=kind, text=piece, number=number)

    out = printed(
        call(DeltaKind.REASONING, "Hm"),
        call(DeltaKind.REASONING, "m."),
        text("I look."),
        call(DeltaKind.CALL, "search"),
        call(DeltaKind.ARGUMENTS, ""),
        call(DeltaKind.ARGUMENTS, '{"q'),
        call(DeltaKind.ARGUMENTS, '": 1}'),
        call(DeltaKind.CALL, "notes", 1),
        END,
    )
    assert out == '[thinking] Hmm.\nI look.\n[calls] search {"q": 1}\n[calls] notes\n'


def test_a_part_that_was_thrown_away_says_so():
    out = printed(text("Hel"), LOST, text("Hello."), END)
    assert out == "Hel [discarded: connection]\nHello.\n"


def test_a_reply_cannot_move_the_cursor():
    assert printed(text("a\x1b[2Jb\x07\r\x9b1mc\td"), END) == "a[2Jb1mc\td\n"


def test_a_narrow_terminal_encoding_ends_nothing():
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii")
    StreamPrinter(file=file)(text("Ä 中"))
    assert raw.getvalue() == b"? ?"


@given(st.lists(st.text(st.sampled_from("ab \n"), max_size=5), max_size=8))
def test_every_reply_ends_its_line_once(pieces):
    out = printed(*map(text, pieces), END)
    whole = "".join(pieces)
    assert out == (whole if whole.endswith("\n") or not whole else whole + "\n")


def test_lab_run_prints_its_replies_and_gives_the_run_it_gives_anyway(capsys):
    def lab():
        line = ScriptedModel.call("look", query="osk")
        return al.Lab(ScriptedModel([line, "It is 中文."], usage="estimate"))

    recipe = PLAIN.with_(tools=(look,))
    plain = lab().run(recipe, "What?")
    assert capsys.readouterr().out == ""
    streamed = lab().run(recipe, "What?", stream=True)
    assert capsys.readouterr().out == (
        '[simulated] [calls] look {"query": "osk"}\n[simulated] It is 中文.\n'
    )
    assert [r.kind for r in streamed.trace.records] == [r.kind for r in plain.trace.records]
    assert streamed.trace.full == plain.trace.full
    assert streamed.output == plain.output == "It is 中文."


def test_start_and_arun_print_as_well(capsys):
    al.Lab(ScriptedModel(["one two"])).start(PLAIN, "What?", stream=True).result(10)
    assert capsys.readouterr().out == "[simulated] one two\n"
    asyncio.run(al.Lab(ScriptedModel(["one two"])).arun(PLAIN, "What?", stream=True))
    assert capsys.readouterr().out == "[simulated] one two\n"


def test_the_words_come_to_a_pipe_while_the_run_goes_on():
    code = (
        "import axislab as al; "
        "lab = al.Lab(al.ScriptedModel(['one two three four'], delay=2.0)); "
        "lab.run(al.Recipe(name='p'), 'What?', stream=True)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout.read(15) == b"[simulated] one"
        first = time.monotonic()
        rest = child.stdout.read()
        assert time.monotonic() - first > 0.5
    assert rest == b" two three four\n"


def test_a_stopped_run_ends_its_line(capsys):
    handle = al.Lab(ScriptedModel(["a b c d e f g h"], delay=20.0))
    handle = handle.start(PLAIN, "What?", stream=True)
    while not handle.run.trace.records:
        time.sleep(0.01)
    heard = []
    handle.on_delta(heard.append)
    end = time.monotonic() + 5
    while not heard and time.monotonic() < end:
        time.sleep(0.01)
    handle.stop()
    began = time.monotonic()
    assert handle.result(5).status == "INTERRUPTED"
    assert time.monotonic() - began < 1
    assert capsys.readouterr().out.endswith("[discarded: stopped]\n")


def test_no_piece_is_written_to_the_trace(tmp_path):
    heard = []
    lab = al.Lab(ScriptedModel(["alpha beta gamma"], delay=0.1), folder=tmp_path)
    handle = lab.start(PLAIN, "What?", stream=True)
    handle.on_delta(heard.append)
    run = handle.result(10)
    assert "".join(d.text for d in heard) in "alpha beta gamma"
    lines = run.path.read_text("utf-8").splitlines()
    assert sum("beta" in line for line in lines) == sum("alpha beta gamma" in x for x in lines)


def test_a_run_that_is_not_streamed_has_no_pieces():
    heard = []
    handle = al.Lab(ScriptedModel(["a b"], delay=0.05)).start(PLAIN, "What?")
    handle.on_delta(heard.append)
    handle.result(10)
    assert heard == []


def test_a_listener_that_raises_is_taken_off_and_the_others_hear_on(caplog):
    heard = []

    def bad(delta):
        raise RuntimeError("no eyes")

    handle = al.Lab(ScriptedModel(["a b c"], delay=0.3)).start(PLAIN, "What?", stream=True)
    handle.on_delta(bad)
    handle.on_delta(heard.append)
    assert handle.result(10).status == "COMPLETED"
    assert heard[-1] == END
    assert caplog.text.count("was taken off") == 1


# -- the live view -----------------------------------------------------------------------------


def words(page):
    return re.sub(r"\s+", " ", re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.S))


def test_a_growing_reply_is_escaped_and_shows_its_newest_end():
    reply = GrowingReply()
    reply.hear(text(EVIL))
    assert "<script" not in reply.html()
    assert "<img" not in reply.html()
    assert "window.hacked=1" in reply.html()
    reply.hear(text("x" * MOST_SHOWN))
    assert "window.hacked" not in reply.html()
    assert f"{len(EVIL) + MOST_SHOWN:,} characters" in reply.html()
    reply.hear(END)
    assert reply.html() == ""


def test_a_growing_reply_tells_thinking_calls_and_what_was_discarded():
    reply = GrowingReply()
    reply.hear(Delta(kind=DeltaKind.REASONING, text="Hm"))
    reply.hear(Delta(kind=DeltaKind.CALL, text="search"))
    reply.hear(Delta(kind=DeltaKind.ARGUMENTS, text='{"q": 1}'))
    assert words(reply.html()).split() == [
        "thinking",
        "Hm",
        "calls",
        "search",
        "{&quot;q&quot;:",
        "1}",
    ]
    reply.hear(LOST)
    assert "discarded: connection" in words(reply.html())
    assert "Hm" in reply.html()
    reply.hear(text("again"))
    assert words(reply.html()).strip() == "again"


def test_a_live_view_shows_the_reply_while_it_grows_and_not_after():
    lab = al.Lab(ScriptedModel([f"alpha {EVIL} beta gamma delta"], delay=1.0))
    live = LiveRun(lab.start(PLAIN, "What?", stream=True))
    seen = []
    while not live.handle.done:
        if "reply now" in live.view.value:
            seen.append(words(live.view.value))
        time.sleep(0.02)
    assert any("reply now alpha" in page and "delta" not in page for page in seen)
    assert "<script" not in live.view.value
    live.handle.result(5)
    end = time.monotonic() + 5
    while "COMPLETED" not in live.view.value and time.monotonic() < end:
        time.sleep(0.01)
    assert "reply now" not in live.view.value
    assert "last reply" in live.view.value


def test_who_comes_late_hears_the_reply_that_is_under_way_from_its_beginning():
    lab = al.Lab(ScriptedModel(["alpha beta gamma delta"], delay=0.6))
    handle = lab.start(PLAIN, "What?", stream=True)
    first, late, after = [], [], []
    handle.on_delta(first.append)
    while sum(len(delta.text) for delta in first) < 8:
        time.sleep(0.01)
    handle.on_delta(late.append)
    handle.result(10)
    handle.on_delta(after.append)
    assert "".join(delta.text for delta in late) == "alpha beta gamma delta"
    assert late == first
    assert after == [], "a reply that is whole is told no more"


def test_a_thousand_pieces_are_few_updates():
    lab = al.Lab(ScriptedModel(["word " * 1000], delay=0.5))
    live = LiveRun(lab.start(PLAIN, "What?", stream=True))
    updates = []
    live.view.observe(updates.append, "value")
    began = time.monotonic()
    live.handle.result(20)
    assert len(updates) <= UPDATES_PER_SECOND * (time.monotonic() - began) + 8


def test_a_script_is_no_notebook():
    assert not in_notebook()


@pytest.mark.parametrize("wanted", [True, False])
def test_outside_a_notebook_nothing_is_displayed(wanted, capsys):
    from axislab.widgets.streaming import shown_live

    with shown_live(object(), wanted=wanted):
        pass
    assert capsys.readouterr().out == ""
