"""LiveRun without a browser: what it says, how often it says it, and that Stop stops."""

from __future__ import annotations

import asyncio
import gc
import itertools
import re
import threading
import time
import weakref
from html.parser import HTMLParser

import pytest

import axislab as al
from axislab.models.scripted import ScriptedModel
from axislab.widgets.live import UPDATES_PER_SECOND, LiveRun
from axislab.widgets.live_html import MOST_TEXT, live_html

EVIL = "<script>window.hacked=1</script>\"'><img src=x onerror=alert(1)>&amp;"
PLAIN = al.Recipe(name="plain")


@al.tool
def look(query: str) -> str:
    """Look something up."""
    return f"{query} {EVIL}"


def lab_that_says(*lines, **options):
    return al.Lab(ScriptedModel(list(lines), usage="estimate", **options))


def call(query="a"):
    return ScriptedModel.call("look", query=query)


def endless(delay=0.02):
    return al.Lab(ScriptedModel([call()], after="repeat", delay=delay))


class Tags(HTMLParser):
    """Collects the tags and attributes of a page, and whether they close."""

    def __init__(self, page):
        super().__init__()
        self.seen, self.attributes, self.open, self.text = set(), set(), [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.text.append(data)


def shown(page):
    return re.sub(r"\s+", " ", " ".join(Tags(page).text))


def finished(*lines, task="What?", recipe=PLAIN, **options):
    handle = lab_that_says(*lines, **options).start(recipe, task)
    handle.result(10)
    return handle


def eventually(check, seconds=5.0):
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def test_a_finished_run_shows_turn_budget_rollbacks_tool_answer_and_that_it_is_simulated():
    recipe = al.recipes.boxed_math(tools=(look,), window=4000, max_turns=7)
    handle = finished(
        call("osk"), "", r"\boxed{5}", task=al.Task("sum", "2+2?", "4"), recipe=recipe
    )
    text = shown(LiveRun(handle).view.value)
    for part in (
        "COMPLETED",
        "SIMULATED",
        "sum",
        "2+2?",
        "completed",
        "2 of at most 7",
        "of the window of 4,000",
        "empty_reply × 1",
        "1 message hidden",
        "look success osk",
        "5 ✗ wrong expected 4",
    ):
        assert part in text, f"{part!r} is not in {text!r}"


def test_the_rollbacks_it_counts_are_those_of_the_run():
    recipe = al.recipes.boxed_math(max_rollbacks=5)
    run = finished("", "", r"\boxed{5}", recipe=recipe).run
    assert [r.reason for r in run.rollbacks] == ["empty_reply"] * 2
    assert "empty_reply × 2" in shown(live_html(run, status=run.status, phase=None))


def test_only_the_newest_stages_are_shown_and_the_stage_where_two_steps_join_once():
    handle = finished(*[call(str(i)) for i in range(6)], "ok", recipe=PLAIN.with_(tools=(look,)))
    page = live_html(handle.run, status="COMPLETED", phase=None)
    titles = re.findall(r'class="chip [^"]*" title="[^:]*: ([^"]*)"', page)
    assert titles == handle.run.stage_path[-8:]


def test_what_people_models_and_tools_write_is_escaped_everywhere():
    recipe = PLAIN.with_(tools=(look,))
    task = al.Task(f"id {EVIL}", f"task {EVIL}", f"wrong {EVIL}")
    handle = finished(call(EVIL), rf"\boxed{{{EVIL}}}", task=task, recipe=recipe, name=EVIL)
    live = LiveRun(handle)
    for page in (live.view.value, live.static_html(), handle.run._repr_html_()):
        tags = Tags(page)
        assert not tags.seen & {"script", "img"}
        assert not tags.attributes & {"onerror", "src"}
        assert tags.open == []
        assert "<script>" in "".join(tags.text)


def test_an_error_is_escaped_and_shown():
    handle = finished(ValueError(EVIL))
    text = shown(LiveRun(handle).view.value)
    assert "FAILED" in text
    assert "window.hacked" in text
    assert "script" not in Tags(LiveRun(handle).view.value).seen


def test_long_texts_are_cut_and_the_cut_is_said():
    handle = finished("x" * 5000, task="q" * 3000)
    page = LiveRun(handle).view.value
    assert "x" * (MOST_TEXT + 1) not in page
    assert f"({MOST_TEXT} of 5,000 characters)" in page
    assert f"({MOST_TEXT} of 3,000 characters)" in page


def test_text_that_no_encoding_takes_does_not_break_the_view():
    page = LiveRun(finished("bad \ud800 half", task="fine")).view.value
    page.encode()


@pytest.mark.parametrize("show", [LiveRun, lambda handle: handle], ids=["view", "handle"])
def test_a_display_carries_a_widget_and_static_html_and_text(show):
    handle = finished("ok")
    bundle = show(handle)._repr_mimebundle_(include=None, exclude=None)
    assert set(bundle) == {
        "application/vnd.jupyter.widget-view+json",
        "text/html",
        "text/plain",
    }
    assert bundle["text/html"] == handle.run._repr_html_()
    assert bundle["text/plain"] == repr(handle)
    assert "simulated" in bundle["text/plain"]


def test_the_static_html_of_a_run_that_goes_on_says_that_it_is_a_picture_of_a_moment():
    handle = endless().start(PLAIN.with_(tools=(look,)), "x")
    html = handle._repr_mimebundle_()["text/html"]
    handle.stop()
    handle.result(5)
    assert "As it stood when this was shown" in shown(html)
    assert "As it stood" not in shown(handle._repr_mimebundle_()["text/html"])


def test_a_handle_shown_twice_has_one_view():
    handle = finished("ok")
    key = "application/vnd.jupyter.widget-view+json"
    first, second = (handle._repr_mimebundle_()[key]["model_id"] for _ in range(2))
    assert first == second


def test_stages_and_tools_are_shown_while_the_run_goes_on():
    release = threading.Event()

    @al.tool
    def wait() -> str:
        """Wait."""
        release.wait(5)
        return "waited"

    lab = lab_that_says(ScriptedModel.call("wait"), "ok")
    live = LiveRun(lab.start(PLAIN.with_(tools=(wait,)), "x"))
    eventually(lambda: "tool calling" in shown(live.view.value))
    eventually(lambda: "wait running" in shown(live.view.value))
    assert not live.button.disabled
    release.set()
    live.handle.result(5)
    eventually(lambda: "COMPLETED" in shown(live.view.value))
    assert "wait success waited" in shown(live.view.value)


def test_updates_are_at_most_ten_a_second_and_the_last_state_is_shown():
    model = ScriptedModel([*[call(str(i)) for i in range(150)], "the end"], delay=0.005)
    live = LiveRun(al.Lab(model).start(PLAIN.with_(tools=(look,), max_turns=200), "x"))
    changes, records = [], []
    live.view.observe(lambda change: changes.append(time.monotonic()), "value")
    live.handle.on_record(records.append)
    live.handle.result(30)
    eventually(lambda: live.button.disabled)
    *throttled, _end = changes
    gaps = [b - a for a, b in itertools.pairwise(throttled)]
    assert len(records) > 10 * len(changes)
    assert min(gaps) > 0.8 / UPDATES_PER_SECOND
    assert "the end" in shown(live.view.value)


def test_the_last_record_of_a_burst_is_shown_though_nothing_follows_it():
    lab = al.Lab(ScriptedModel(lambda request: _slow_second(request)))
    live = LiveRun(lab.start(PLAIN.with_(tools=(_block,)), "x"))
    try:
        eventually(lambda: "_block running" in shown(live.view.value))
    finally:
        _gate.set()
        live.handle.result(5)


_gate = threading.Event()


@al.tool
def _block() -> str:
    """Block until told."""
    _gate.wait(5)
    return "done"


def _slow_second(request):
    return "ok" if str(request.messages[-1].role) == "tool" else ScriptedModel.call("_block")


def test_the_stop_button_ends_the_run_and_its_events_are_kept(tmp_path):
    lab = al.Lab(ScriptedModel([call()], after="repeat", delay=0.02), folder=tmp_path)
    live = LiveRun(lab.start(PLAIN.with_(tools=(look,), max_turns=None), "x"))
    eventually(lambda: live.handle.run.steps > 3)
    assert not live.button.disabled
    live.button.click()
    assert live.button.disabled
    run = live.handle.result(5)
    assert run.status == "INTERRUPTED"
    eventually(lambda: "INTERRUPTED" in shown(live.view.value))
    assert len(al.load_run(run.path).trace.records) == len(run.trace.records) > 10


def test_a_view_of_a_run_that_is_done_cannot_stop_it():
    live = LiveRun(finished("ok"))
    assert live.button.disabled
    assert "COMPLETED" in shown(live.view.value)


def test_a_view_made_in_another_thread_follows_the_run_as_well():
    handle = endless().start(PLAIN.with_(tools=(look,), max_turns=None), "x")
    views = []
    maker = threading.Thread(target=lambda: views.append(LiveRun(handle)))
    maker.start()
    maker.join()
    first = views[0].view.value
    eventually(lambda: views[0].view.value != first)
    stopper = threading.Thread(target=views[0].stop)
    stopper.start()
    stopper.join()
    assert handle.result(5).status == "INTERRUPTED"
    eventually(lambda: "INTERRUPTED" in shown(views[0].view.value))


def test_several_views_and_runs_at_once_each_show_their_own_end():
    lab = al.Lab(ScriptedModel(lambda r: "ok" if len(r.messages) > 3 else call(), delay=0.01))
    views = [LiveRun(lab.start(PLAIN.with_(tools=(look,)), f"task {i}")) for i in range(20)]
    for number, live in enumerate(views):
        live.handle.result(10)
        eventually(lambda live=live: "COMPLETED" in shown(live.view.value))
        assert f"task {number} " in shown(live.view.value)


def test_a_view_made_on_a_loop_of_ones_own_works_too():
    async def cell():
        live = LiveRun(lab_that_says("ok", delay=0.2).start(PLAIN, "x"))
        await live.handle
        return live

    live = asyncio.run(cell())
    eventually(lambda: "COMPLETED" in shown(live.view.value))


def test_a_long_run_is_drawn_fast_enough_for_ten_views_a_second():
    handle = finished(
        *[call(str(i)) for i in range(400)],
        "ok",
        recipe=PLAIN.with_(tools=(look,), max_turns=None),
    )
    start = time.process_time()
    for _ in range(10):
        live_html(handle.run, status="RUNNING", phase=None)
    assert time.process_time() - start < 0.5


def test_a_run_that_was_shown_goes_with_its_handle_although_its_widgets_stay():
    handle = finished("done")
    LiveRun(handle).mimebundle()
    handle._repr_mimebundle_()
    run = weakref.ref(handle.run)
    del handle
    gc.collect()
    assert run() is None
