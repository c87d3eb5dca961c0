import html
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from trace_samples import (
    CONFIG,
    Reply,
    answer,
    calls,
    make_events,
    make_trace,
    many_turns,
    refusal,
    rows_of,
    write_rows,
)

from axislab.runtime.stages import ConversationStage
from axislab.trace.card import MOST_OUTPUT, STAGE_LABEL, esc, run_card
from axislab.trace.reader import load_run
from axislab.trace.run import Run
from axislab.trace.trace import Trace

ATTACK = '</pre></div><script>alert("1")</script><img src=x onerror=alert(2)>\'"&'
_VOID = {"br", "img", "hr", "input", "meta"}


class Tags(HTMLParser):
    """Collects tags and checks that they are nested."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.attributes += attrs
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parsed(card: str) -> Tags:
    tags = Tags()
    tags.feed(card)
    tags.close()
    assert tags.open == []
    return tags


def words(card: str) -> str:
    body = re.sub(r"<style>.*?</style>", "", card, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", " ", body))


def card_of(tmp_path: Path, script: list[Reply], **options: Any) -> str:
    return run_card(load_run(make_trace(tmp_path, make_events(script, **options))))


def test_the_card_tells_the_story_of_a_run(tmp_path: Path) -> None:
    script = [refusal(), refusal(), calls("search", "broken", "forbidden"), answer()]
    card = card_of(tmp_path, script, arm="patient")
    parsed(card)
    text = " ".join(words(card).split())
    for part in (
        "COMPLETED",
        "SIMULATED",
        "correct",
        "42",
        "What is six times seven?",
        "assistant_final_answer",
        "patient",
        "assistant_refusal × 2 (2 hidden)",
        "100 tokens observed",
        "of the window of 100,000",
        "broken 1 1 0",
        "forbidden 1 0 1",
        "It is \\boxed{42}.",
        "cost unknown",
        "recovery 2",
    ):
        assert part in text, part


def test_nothing_a_model_tool_or_task_wrote_becomes_markup(tmp_path: Path) -> None:
    head: dict[str, Any] = {
        "task": {"id": ATTACK, "prompt": ATTACK, "expected": [ATTACK, 7], "metadata": {}},
        "model": ATTACK,
        "arm": ATTACK,
        "study": ATTACK,
    }
    end = {"answer": ATTACK, "output": ATTACK, "error": ATTACK, "error_kind": ATTACK}
    end |= {"done_reason": ATTACK, "status": ATTACK}
    path = make_trace(tmp_path, make_events([calls(ATTACK), answer()], end=end, **head))
    rows = rows_of(path)
    step = next(r for r in rows if r["kind"] == "step" and r["step"] == 2)
    step["stage_path"].append(ATTACK)
    marker = {"role": "ConversationRuntime", "name": "rollback"}
    marker["content"] = '{"rollback_message_count": 1, "reason": "<script>alert(3)</script>"}'
    last = next(i for i, r in enumerate(rows) if r["kind"] == "message" and r["index"] == 4)
    rows[last]["message"] = marker
    rows[0]["run_id"] = ATTACK
    run = load_run(write_rows(path, rows))
    assert run.rollbacks[0].reason == "<script>alert(3)</script>"
    for card in (run_card(run), run._repr_html_()):
        tags = parsed(card)
        assert "script" not in tags.seen
        assert "img" not in tags.seen
        assert not [name for name, _ in tags.attributes if name.startswith("on")]
        assert words(card).count(ATTACK) >= 10
        assert "<script" not in card


def test_the_window_is_read_off_the_budget_of_a_step_if_the_recipe_does_not_say(
    tmp_path: Path,
) -> None:
    script = [calls(), Reply(error="context_limit"), answer()]
    assert "of the window of 100,000" in words(card_of(tmp_path, script, recipe={"name": "x"}))
    other = make_events([answer()], recipe={"name": "x"}, run_id="r2")
    assert "window not set" in run_card(load_run(make_trace(tmp_path, other)))


def test_many_tools_are_cut_and_it_says_so(tmp_path: Path) -> None:
    script = [calls(*(f"tool{n}" for n in range(40))), answer()]
    assert "30 of 40 tools shown" in card_of(tmp_path, script)


def test_the_card_is_static_and_alone(tmp_path: Path) -> None:
    card = card_of(tmp_path, [answer()])
    for forbidden in ("http:", "https:", "<script", "<link", "url(", "@import", "<iframe"):
        assert forbidden not in card
    style = re.search(r"<style>(.*?)</style>", card, flags=re.DOTALL)
    assert style is not None
    for selector in re.findall(r"([^{}]+)\{", style.group(1)):
        assert all(part.strip().startswith(".axl-card") for part in selector.split(",")), selector
    assert not re.search(r"(?<!-)(?:color|background)\s*:\s*(?:white|black|#)", style.group(1))


def test_a_stage_is_never_told_by_colour_alone() -> None:
    assert set(STAGE_LABEL) == set(ConversationStage)
    assert len(set(STAGE_LABEL.values())) == len(STAGE_LABEL)


def test_a_chip_has_its_label_kind_and_full_name(tmp_path: Path) -> None:
    card = card_of(tmp_path, [refusal(), answer()])
    assert 'title="recovery: assistant_message_rollback">↩ rollback</span>' in card
    assert 'title="end: assistant_completed">✓ completed</span>' in card


def test_a_run_that_ended_badly_looks_so(tmp_path: Path) -> None:
    card = card_of(tmp_path, [Reply(None, finish="length")])
    assert "✗ out of tokens" in card
    assert "FAILED" in card
    assert "✗ wrong" in card
    assert "no answer" in card


def test_a_long_stage_path_is_folded_and_says_so(tmp_path: Path) -> None:
    config = CONFIG.model_copy(update={"max_turns": None})
    run = load_run(make_trace(tmp_path, make_events(many_turns(90), config=config)))
    count = len(run.stage_path)
    card = run_card(run)
    assert f"… {count - 60:,} more …" in card
    assert f"{count:,} stages, 60 shown" in card
    assert card.count('class="chip') == 61
    assert len(card) < 20_000


@pytest.mark.parametrize(("size", "cut"), [(MOST_OUTPUT, False), (MOST_OUTPUT + 1, True)])
def test_a_long_output_is_cut_and_says_so(tmp_path: Path, size: int, cut: bool) -> None:
    card = card_of(tmp_path, [answer()], end={"output": "&" * size})
    assert (f"({MOST_OUTPUT:,} of {size:,} characters)" in card) == cut
    assert card.count("&amp;") == MOST_OUTPUT


def test_notes_of_the_reader_are_shown(tmp_path: Path) -> None:
    path = make_trace(tmp_path)
    path.write_bytes(path.read_bytes() + b"torn")
    assert "cut off after 4 bytes" in run_card(load_run(path))


def test_a_run_that_has_barely_begun_has_a_card(tmp_path: Path) -> None:
    events = make_events()
    for size in range(1, len(events)):
        parsed(run_card(load_run(make_trace(tmp_path / str(size), events[:size]))))
    parsed(run_card(Run(Trace(), live=True)))


def test_text_that_cannot_be_encoded_or_shown_is_made_so() -> None:
    assert esc("a\ud800b\x00c\x1b[0m\td\n") == "a\ufffdb\ufffdc\ufffd[0m\td\n"
    esc("\ud83d\ude00").encode()
