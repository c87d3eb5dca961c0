"""What a person sees in JupyterLab: a live view, its Stop button, cards, both themes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import axislab as al

pytestmark = pytest.mark.browser

SETUP = r"""
import axislab as al
from axislab.models.scripted import ScriptedModel

EVIL = "<script>window.hacked=1</script><img src=x onerror='window.hacked=1'> $x^2$"

@al.tool
def look(query: str) -> str:
    "Look something up."
    return f"{query} {EVIL}"

turn = 0
def say(request):
    global turn
    turn += 1
    return "" if turn % 3 == 0 else ScriptedModel.call("look", query=f"query {turn}")

recipe = al.recipes.boxed_math(tools=(look,), window=16000, max_turns=None)
endless = al.Lab(ScriptedModel(say, usage="estimate", delay=0.25), folder="traces")
script = [ScriptedModel.call("look", query="osk"), "", r"It is \boxed{4}."]
short = al.Lab(ScriptedModel(script, usage="estimate"))
"""
# The contrast of every text below a selector with the first opaque ground behind it.
CONTRAST = """(selector) => {
    const lum = (rgb) => rgb.slice(0, 3).map(v => v / 255)
        .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const parse = (text) => {
        const n = text.match(/[\\d.]+/g).map(Number);
        return text.startsWith('color(srgb') ? [...n.slice(0, 3).map(v => 255 * v), n[3] ?? 1]
                                             : [...n.slice(0, 3), n[3] ?? 1];
    };
    const ground = (el) => {
        for (let e = el; e; e = e.parentElement) {
            const c = parse(getComputedStyle(e).backgroundColor);
            if (c[3] > 0.99) return c;
        }
        return [255, 255, 255, 1];
    };
    const seen = [];
    for (const root of document.querySelectorAll(selector)) {
        const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
        for (let node = walk.nextNode(); node; node = walk.nextNode()) {
            const el = node.parentElement;
            if (!node.textContent.trim() || el.closest('style') || !el.offsetParent) continue;
            let alpha = 1;
            for (let e = el; e && e !== root.parentElement; e = e.parentElement)
                alpha *= Number(getComputedStyle(e).opacity);
            const back = ground(el);
            const fore = parse(getComputedStyle(el).color);
            const mixed = [0, 1, 2].map(i => fore[i] * alpha + back[i] * (1 - alpha));
            const [a, b] = [lum(mixed), lum(back)].sort((x, y) => y - x);
            seen.push([(a + 0.05) / (b + 0.05), node.textContent.trim().slice(0, 40)]);
        }
    }
    return seen;
}"""

LABEL_HEIGHTS = """(selector) => [...document.querySelectorAll(selector + ' dt')].map(label => {
    const text = document.createRange();
    text.selectNodeContents(label);
    return text.getBoundingClientRect().height;
})"""


@pytest.fixture(scope="module")
def page(browser):
    cells = [
        SETUP,
        "handle = endless.start(recipe, al.Task('live', f'What? {EVIL}'))\nhandle",
        "print(handle.status, handle.run.steps)",
        "short.run(recipe.with_(max_turns=9), al.Task('sum', f'2+2? {EVIL}', '4'))",
        "second = endless.start(recipe, 'x')\nsecond",
    ]
    page = browser.open("live.ipynb", cells)
    page.run(0)
    assert page.output(0) == ""
    yield page
    page.close()


def pictures(name: str) -> Path | None:
    """Where to put a picture for a person to look at, if one is wanted."""
    folder = os.environ.get("AXISLAB_PICTURES")
    return None if folder is None else Path(folder) / name


def test_a_live_view_follows_the_run_and_its_stop_button_ends_it(page, browser):
    page.run(1)
    for text in ("RUNNING", "SIMULATED", "empty_reply × 1", "empty_reply × 2", "look success"):
        page.wait_for(1, text)
    page.do(lambda p: page.button("Stop")(p).first.click())
    page.wait_for(1, "INTERRUPTED")
    assert page.do(lambda p: page.button("Stop")(p).first.is_disabled())
    page.run(2)
    status, steps = page.output(2).split()
    assert status == "INTERRUPTED"
    (run,) = al.load_runs(browser.server.folder / "traces")
    assert (run.status, run.steps) == ("INTERRUPTED", int(steps))
    assert run.steps > 6
    assert al.fsck(run.path).ok


def test_what_a_tool_wrote_is_text_and_not_a_script(page):
    page.run(3)
    page.wait_for(3, "✓ correct")
    for index in (1, 3):
        assert "<script>window.hacked" in page.output(index)
    assert page.do(lambda p: p.evaluate("window.hacked")) is None
    assert (
        page.do(lambda p: p.locator(".axl-live mjx-container, .axl-card mjx-container").count())
        == 0
    )


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_cards_and_views_are_readable_in_both_themes(page, theme):
    page.theme(theme)
    if (path := pictures(f"{theme.split()[1].lower()}.png")) is not None:
        page.picture(path)
    for selector in (".axl-live", ".axl-card"):
        lines = page.do(lambda p, s=selector: p.evaluate(LABEL_HEIGHTS, s))
        assert lines
        assert max(lines) < 30  # JupyterLab's own style of lists would break each letter
        contrasts = page.do(lambda p, s=selector: p.evaluate(CONTRAST, s))
        assert len(contrasts) > 10
        weak = [(text, round(ratio, 1)) for ratio, text in contrasts if ratio < 4.5]
        assert weak == []


def test_the_stop_button_is_reached_and_pressed_by_keyboard_also_after_a_reload(page):
    page.run(4)
    page.wait_for(4, "RUNNING")
    page.command("docmanager:save")
    page.reload()
    page.wait_for(4, "empty_reply")
    page.do(lambda p: p.locator('[data-windowed-list-index="4"] .jp-Cell-outputArea').click())
    focused = (
        "document.activeElement.textContent.trim() == 'Stop' && !document.activeElement.disabled"
    )
    for _ in range(12):
        page.do(lambda p: p.keyboard.press("Tab"))
        if page.do(lambda p: p.evaluate(focused)):
            break
    else:
        pytest.fail("the Stop button cannot be reached with Tab")
    page.do(lambda p: p.keyboard.press("Space"))
    page.wait_for(4, "INTERRUPTED")
