"""Labels: any script, no mathtext, no warning, measured."""

from __future__ import annotations

from io import BytesIO

import matplotlib as mpl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from axislab.plots import text as text_module
from axislab.plots.text import label, own_families, text_size


def draw(figure) -> None:
    """Draw for real; the canvas of a bare Figure does not."""
    figure.savefig(BytesIO(), format="png", dpi="figure")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain", "plain"),
        ("$x$ and \\boxed{1}", "$x$ and \\boxed{1}"),
        ("a\tb  c", "a b c"),
        ("one\ntwo", "one\ntwo"),
        ("北", "\\u5317"),
        ("a\u200b\u202eb", "ab"),
        ("\x00", "\\x00"),
        ("\ud800", "\\ud800"),
        (None, "None"),
        ("→ × ✓", "→ × ✓"),
    ],
)
def test_what_the_font_has_is_shown_and_the_rest_is_spelled_out(given, shown):
    if label("北").family == own_families():
        assert label(given).text == shown
    else:  # a font with Chinese characters is installed here
        assert label("北").text == "北"


def test_long_text_ends_in_an_ellipsis():
    assert label("abcdefgh", most=5).text == "abcd…"
    assert label("abcde", most=5).text == "abcde"


def test_another_installed_font_is_used_for_what_the_own_font_lacks(monkeypatch):
    monkeypatch.setattr(text_module, "WIDE_FONTS", ("No Such Font", "DejaVu Sans"))
    with mpl.rc_context({"font.family": ["cmr10"]}):
        shown = label("Ж")
        assert shown.text == "Ж"
        assert shown.family == ("cmr10", "DejaVu Sans")
        figure = Figure()
        figure.text(0.5, 0.5, shown.text, **shown.style)
        draw(figure)


def test_a_font_family_that_is_not_installed_falls_back():
    with mpl.rc_context({"font.family": ["No Such Font"]}):
        assert own_families() == ("DejaVu Sans",)


def test_the_measure_is_that_of_what_is_drawn():
    figure = Figure(dpi=100)
    for words in ("assistant message received", "format_error 26", "iii", "WWW"):
        drawn = figure.text(0, 0, words, fontsize=40).get_window_extent()
        assert text_size(words, 40).width == pytest.approx(drawn.width / 100, rel=0.06)
    assert text_size("a\nb", 10).height == 2 * text_size("a", 10).height


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=30))
def test_any_text_is_drawn_without_a_warning(words):
    shown = label(words)
    figure = Figure(figsize=(2, 1))
    figure.text(0.1, 0.5, shown.text, **shown.style)
    draw(figure)
    assert text_size(shown.text, 8).width >= 0
