"""Text that any font can show: measured, free of mathtext, with what is missing spelled out."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import matplotlib
from matplotlib import font_manager

from axislab.plots.layout.shapes import Size

GENERIC = ("serif", "sans-serif", "sans serif", "sans", "cursive", "fantasy", "monospace")
WIDE_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans SC",
    "Source Han Sans SC",
    "Source Han Sans",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Droid Sans Fallback",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "SimHei",
    "Arial Unicode MS",
    "Unifont",
)
"""Fonts that hold Chinese and more, tried in this order where the reader's own font does not do."""
LINE = 1.17
"""Height of a line of text over its font size."""


@dataclass(frozen=True, slots=True)
class Label:
    """Text to be drawn, and the fonts that hold it."""

    text: str
    family: tuple[str, ...]

    @property
    def style(self) -> dict[str, Any]:
        """Keyword arguments of matplotlib's Text."""
        return {"family": list(self.family), "parse_math": False}


def label(text: object, *, most: int | None = None) -> Label:
    r"""Text as a label: no boxes for missing glyphs, no warnings, `$` and `\boxed` as they are.

    Args:
        text: Anything; line breaks stay, other white space becomes single blanks.
        most: Characters at most; the rest becomes an ellipsis.

    Examples:
        >>> label("cost in $ of \\boxed{x}").text
        'cost in $ of \\boxed{x}'
    """
    lines = [" ".join(line.split()) for line in str(text).split("\n")]
    plain = "\n".join(lines)
    if most is not None and len(plain) > most:
        plain = f"{plain[: most - 1]}…"
    families = own_families()
    missing = _missing(plain, families)
    if missing and (more := _family_for(missing, families)) is not None:
        families = (*families, more)
        missing = _missing(plain, families)
    return Label("".join(_spell(c) if c in missing else c for c in plain), families)


def own_families() -> tuple[str, ...]:
    """The installed fonts that matplotlib draws text with, as the reader has set it up."""
    params: Any = matplotlib.rcParams
    names: list[str] = []
    for name in params["font.family"]:
        names += params[f"font.{_generic(name)}"] if name.lower() in GENERIC else [name]
    have = _installed()
    found = tuple(dict.fromkeys(n for n in names if n in have))
    return found or ("DejaVu Sans",)


def text_size(text: str, size: float, family: Iterable[str] = ()) -> Size:
    """Width and height in inches of text at a size in points.

    Args:
        text: What `label` gave; may have several lines.
        size: Points.
        family: Its fonts.
    """
    families = tuple(family) or own_families()
    lines = text.split("\n")
    width = max(sum(_advance(c, families) for c in line) for line in lines)
    return Size(width * size / 72, len(lines) * LINE * size / 72)


def _generic(name: str) -> str:
    return "sans-serif" if name.lower().startswith("sans") else name.lower()


@lru_cache(maxsize=1)
def _installed_at(count: int) -> frozenset[str]:
    return frozenset(f.name for f in font_manager.fontManager.ttflist)


def _installed() -> frozenset[str]:
    return _installed_at(len(font_manager.fontManager.ttflist))


@lru_cache(maxsize=64)
def _font(family: str) -> Any:
    return font_manager.get_font(
        font_manager.findfont(font_manager.FontProperties(family=[family]))
    )


@lru_cache(maxsize=64)
def _glyphs(family: str) -> frozenset[int]:
    return frozenset(_font(family).get_charmap())


def _missing(text: str, families: Sequence[str]) -> set[str]:
    return {
        c for c in text if c != "\n" and not any(ord(c) in _glyphs(name) for name in families)
    } | {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c != "\n"}


def _family_for(missing: set[str], families: Sequence[str]) -> str | None:
    """The installed font that shows most of what is missing."""
    have = [n for n in WIDE_FONTS if n in _installed() and n not in families]
    shown = {n: sum(ord(c) in _glyphs(n) for c in missing) for n in have}
    best = max(have, key=shown.__getitem__, default=None)
    return best if best is not None and shown[best] else None


def _spell(char: str) -> str:
    """A character no font has, as its escape; marks that only change others are left out."""
    if unicodedata.category(char) in ("Cf", "Mn", "Me"):
        return ""
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")


@lru_cache(maxsize=4096)
def _advance(char: str, families: tuple[str, ...]) -> float:
    """Width of a character in a font of size 1."""
    for family in families:
        if ord(char) in _glyphs(family):
            font = _font(family)
            font.set_size(64, 72)
            return float(font.load_char(ord(char)).linearHoriAdvance) / 65536 / 64
    return 1.0
