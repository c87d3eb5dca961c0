"""plot_comparison: every arm against the baseline, with intervals, one panel a metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from axislab.errors import DataError
from axislab.plots.data import is_frame, need_columns
from axislab.plots.style import (
    BACK,
    FAINT,
    FORWARD,
    INK,
    name_rows,
    new_axes,
    refuse_mixture,
    say_nothing_to_draw,
)
from axislab.plots.style import footer as put_footer
from axislab.plots.text import label

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

NEEDED = ("arm", "metric", "difference", "low", "high")


@runtime_checkable
class HasComparison(Protocol):
    """A study."""

    def comparison(self) -> pd.DataFrame:
        """Contrasts in the metrics that are worth a look."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """One arm's row of a panel."""

    arm: str
    value: float | None
    """None where nothing is known."""
    low: float | None
    high: float | None

    def beyond(self, reference: float) -> bool:
        """The interval leaves out the value of no difference."""
        if self.low is None or self.high is None:
            return False
        return not self.low <= reference <= self.high


@dataclass(frozen=True, slots=True)
class Panel:
    """One metric."""

    metric: str
    ratio: bool
    """Values are ratios to the baseline, 1 is no difference; else differences, 0 is none."""
    baseline: str | None
    estimates: tuple[Estimate, ...]

    @property
    def reference(self) -> float:
        """The value of no difference."""
        return 1.0 if self.ratio else 0.0


def comparison_panels(contrasts: pd.DataFrame) -> list[Panel]:
    """The numbers behind `plot_comparison`.

    Args:
        contrasts: What `contrasts_df` or `study.contrasts()` gave.

    Raises:
        DataError: Columns are missing, or a metric mixes differences and ratios or baselines.
    """
    if not is_frame(contrasts):
        raise DataError(f"got {type(contrasts).__name__}: give the frame of contrasts")
    need_columns(contrasts, NEEDED, of="study.contrasts()")
    panels = []
    for metric in dict.fromkeys(contrasts["metric"].astype(str)):
        rows = contrasts[contrasts["metric"].astype(str) == metric]
        kinds = _only(rows, "kind", metric)
        estimates = [
            Estimate(str(arm), *(_number(x) for x in numbers))
            for arm, *numbers in zip(
                *(rows[c].tolist() for c in ("arm", "difference", "low", "high")), strict=True
            )
        ]
        baseline = _only(rows, "baseline", metric)
        panels.append(Panel(metric, kinds == "ratio", baseline, tuple(estimates)))
    return panels


def _only(rows: pd.DataFrame, column: str, metric: str) -> str | None:
    """The one value of a column; None where there is none."""
    if column not in rows.columns:
        return None
    values = rows[column].dropna().astype(str).unique().tolist()
    if len(values) > 1:
        raise DataError(f"metric {metric!r} has {column} {' and '.join(map(repr, values))}: one")
    return values[0] if values else None


def _number(value: Any) -> float | None:
    if value is None or type(value).__name__ == "NAType" or value != value:
        return None
    return float(value)


def plot_comparison(
    contrasts: pd.DataFrame | HasComparison, *, axes: Sequence[Axes] | None = None
) -> list[Axes]:
    """Draw each arm's difference from the baseline, with its interval, one panel a metric.

    Differences stand on a plain scale around 0, ratios (kind "ratio") on a logarithmic one around
    1. An interval that leaves out no difference has a filled mark and a thicker line; the others
    are hollow, so that nothing is told by colour alone.

    Args:
        contrasts: A study, or what `study.contrasts()` or `contrasts_df` gave.
        axes: Where to draw, one for each metric; a new figure if None.

    Raises:
        DataError: Columns are missing, simulated and real runs are mixed, or not as many axes as
            metrics.

    Examples:
        >>> import pandas as pd
        >>> from matplotlib.figure import Figure
        >>> row = {"arm": "b", "metric": "accuracy", "difference": 0.1, "low": 0.0, "high": 0.2}
        >>> len(plot_comparison(pd.DataFrame([row]), axes=[Figure().subplots()]))
        1
    """
    if isinstance(contrasts, HasComparison):
        contrasts = contrasts.comparison()
    panels = comparison_panels(contrasts)
    simulated = _simulated(contrasts)
    places = _places(panels, axes)
    if not panels:
        return [say_nothing_to_draw(places[0], "no contrasts")]
    for panel, ax in zip(panels, places, strict=True):
        _draw(panel, ax)
    if simulated:
        put_footer(places[-1], "simulated")
    return places


def _simulated(contrasts: pd.DataFrame) -> bool:
    if "simulated" not in contrasts.columns:
        return False
    flags = contrasts["simulated"].fillna(False).astype(bool)
    if flags.any() and not flags.all():
        refuse_mixture(int(flags.sum()), int((~flags).sum()))
    return bool(flags.any())


def _places(panels: Sequence[Panel], axes: Sequence[Axes] | None) -> list[Axes]:
    wanted = max(1, len(panels))
    if axes is not None:
        if len(axes) != wanted:
            raise DataError(f"{len(axes)} axes for {wanted} metrics: give one for each")
        return list(axes)
    if wanted == 1:
        rows = len(panels[0].estimates) if panels else 1
        return [new_axes(None, size=(6.0, 1.2 + 0.4 * rows))]
    import matplotlib.pyplot as plt

    height = sum(1.0 + 0.4 * len(panel.estimates) for panel in panels)
    ratios = [1.0 + 0.4 * len(panel.estimates) for panel in panels]
    figure = plt.figure(figsize=(6.0, height), layout="constrained")
    return list(figure.subplots(wanted, 1, height_ratios=ratios))


def _draw(panel: Panel, ax: Axes) -> None:
    if panel.ratio:
        ax.set_xscale("log")
    ax.axvline(panel.reference, color=FAINT, linewidth=0.8, linestyle=(0, (3, 3)), zorder=0)
    for row, estimate in enumerate(panel.estimates):
        _mark(ax, estimate, row, panel)
    if panel.ratio:
        _ratio_ticks(ax)
    name_rows(ax, [estimate.arm for estimate in panel.estimates])
    ax.set_ylim(len(panel.estimates) - 0.5, -0.5)
    of = "ratio of " if panel.ratio else "difference of "
    against = f" to {panel.baseline}" if panel.ratio else f" from {panel.baseline}"
    shown = label(f"{of}{panel.metric}{against if panel.baseline else ''}", most=90)
    ax.set_xlabel(shown.text, fontsize=8, color=INK, **shown.style)
    ax.tick_params(axis="x", labelsize=8)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)


def _ratio_ticks(ax: Axes) -> None:
    """Plain numbers with a × instead of powers of ten."""
    from matplotlib.ticker import AutoLocator, FuncFormatter, LogLocator, NullLocator

    low, high = ax.get_xlim()
    near = high / low < 4
    ax.xaxis.set_major_locator(AutoLocator() if near else LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"×{x:g}"))


def _mark(ax: Axes, estimate: Estimate, row: int, panel: Panel) -> None:
    if estimate.value is None or (panel.ratio and estimate.value <= 0):
        ax.annotate("not known", (panel.reference, row), fontsize=7.5, color=FAINT, style="italic")
        return
    sure = estimate.beyond(panel.reference)
    color = FORWARD if not sure or estimate.value > panel.reference else BACK
    if estimate.low is not None and estimate.high is not None:
        # An end that is 0 or without limit has no place on the scale: the line runs out of it.
        low = estimate.low if estimate.low > 0 or not panel.ratio else estimate.value / 100
        high = estimate.high if estimate.high < float("inf") else estimate.value * 100
        ax.plot([low, high], [row, row], color=color, linewidth=2.4 if sure else 1.2, zorder=1)
    ax.plot(
        [estimate.value],
        [row],
        marker="o",
        markersize=6,
        markeredgecolor=color,
        markerfacecolor=color if sure else "white",
        linestyle="none",
        zorder=2,
    )
