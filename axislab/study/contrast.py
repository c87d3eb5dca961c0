"""Contrasts: one arm held against another on the tasks that both have run."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from axislab.stats.multiple import Correction, adjust
from axislab.stats.paired import PairedDifference, paired_difference
from axislab.stats.ratios import PairedRatio, paired_ratio
from axislab.stats.verdict import ratio_verdict, verdict
from axislab.study.columns import CONTRASTS
from axislab.study.frame import frame_of
from axislab.study.values import METRICS, Metric, Values, metric_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """One arm minus another: the difference of a metric, and the ratios of tokens and cost."""

    arm: str
    minus: str
    metric: str
    found: PairedDifference | PairedRatio
    """All that statistics say of the metric: a difference, or a ratio for amounts."""
    tokens: PairedRatio
    cost: PairedRatio
    copies: int
    """Runs of the two arms that are not counted."""
    simulated: bool
    p_adjusted: float | None = None
    """Where several arms were compared."""
    correction: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def estimate(self) -> float | None:
        """The difference, or the ratio."""
        found = self.found
        return found.ratio if isinstance(found, PairedRatio) else found.difference

    @property
    def low(self) -> float | None:
        """Lower end of the 95 % interval."""
        return self.found.low

    @property
    def high(self) -> float | None:
        """Upper end."""
        return self.found.high

    @property
    def p(self) -> float | None:
        """Two-sided p of no difference, or of a ratio of 1."""
        return self.found.p

    @property
    def verdict(self) -> str:
        """One plain sentence that claims no more than the numbers do."""
        label = METRICS[self.metric].label
        if isinstance(self.found, PairedRatio):
            return ratio_verdict(
                self.found,
                a=self.arm,
                b=self.minus,
                metric=label,
                simulated=self.simulated,
                p_adjusted=self.p_adjusted,
            )
        return verdict(
            self.found,
            a=self.arm,
            b=self.minus,
            metric=label,
            simulated=self.simulated,
            p_adjusted=self.p_adjusted,
        )

    @property
    def df(self) -> pd.DataFrame:
        """The one row of it in `study.contrasts()`."""
        return frame_of(CONTRASTS, [_row(self)])

    def __repr__(self) -> str:
        return "\n".join([self.verdict, *(f"Note: {note}" for note in self._remarks())])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td style='text-align:left'>{html.escape(name)}</td>"
            f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
            for name, text in self._lines()
        )
        notes = "".join(f"<p><i>{html.escape(note)}</i></p>" for note in self._remarks())
        return f"<p><b>{html.escape(self.verdict)}</b></p><table>{rows}</table>{notes}"

    def _remarks(self) -> Iterator[str]:
        yield from self.notes
        told = self.verdict
        yield from (note for note in self.found.notes if note not in told)

    def _lines(self) -> Iterator[tuple[str, str]]:
        found = self.found
        yield "test", found.method
        if isinstance(found, PairedDifference):
            yield "tasks", f"{found.better} better, {found.worse} worse, of {found.tasks}"
            if found.p_exact is not None:
                yield "exact p", f"{found.p_exact:.4g}"
            if found.effect_size is not None:
                yield "effect size d_z", f"{found.effect_size:.2f}"
        for name, ratio in (("tokens", self.tokens), ("cost", self.cost)):
            yield name, _times(ratio)


def contrast_of(values: Values, arm: str, minus: str, *, metric: str = "correct") -> Contrast:
    """One arm minus another.

    Raises:
        DataError: No such arm or metric, or the same arm twice.
    """
    for name in (arm, minus):
        values.check_arm(name)
    wanted = metric_of(metric)
    copies = values.independence.copies
    return Contrast(
        arm=arm,
        minus=minus,
        metric=metric,
        found=_compared(values, arm, minus, wanted),
        tokens=_ratio(values, arm, minus, METRICS["tokens"]),
        cost=_ratio(values, arm, minus, METRICS["cost_usd"]),
        copies=sum(copy.arm in (arm, minus) for copy in copies),
        simulated=values.simulated,
        notes=tuple(note for note in values.independence.notes if "copies" in note),
    )


def contrasts_of(
    values: Values, *, baseline: str, metric: str = "correct", correction: Correction = "holm"
) -> list[Contrast]:
    """Every other arm minus the baseline, with p corrected for their number."""
    others = [arm for arm in values.arms if arm != baseline]
    found = [contrast_of(values, arm, baseline, metric=metric) for arm in others]
    if len(found) < 2:
        adjust([], method=correction)  # says what is allowed
        return found
    adjusted = adjust([contrast.p for contrast in found], method=correction)
    return [
        replace(contrast, p_adjusted=p, correction=correction)
        for contrast, p in zip(found, adjusted, strict=True)
    ]


def contrasts_frame(found: Sequence[Contrast]) -> pd.DataFrame:
    """One row a contrast."""
    return frame_of(CONTRASTS, map(_row, found))


def _compared(
    values: Values, arm: str, minus: str, metric: Metric
) -> PairedDifference | PairedRatio:
    if metric.kind == "ratio":
        return _ratio(values, arm, minus, metric)
    return paired_difference(
        values.matrix(arm, metric),
        values.matrix(minus, metric),
        clusters=values.clusters,
        bounds=metric.bounds,
    )


def _ratio(values: Values, arm: str, minus: str, metric: Metric) -> PairedRatio:
    return paired_ratio(
        values.matrix(arm, metric), values.matrix(minus, metric), clusters=values.clusters
    )


def _row(contrast: Contrast) -> Mapping[str, object]:
    found, tokens, cost = contrast.found, contrast.tokens, contrast.cost
    names = (
        "p_exact", "interval_method", "better", "worse", "effect_size", "odds_ratio",
        "detectable", "decisive_n",
    )  # fmt: skip
    return {
        "arm": contrast.arm,
        "baseline": contrast.minus,
        "metric": contrast.metric,
        "kind": METRICS[contrast.metric].kind,
        "difference": contrast.estimate,
        "low": found.low,
        "high": found.high,
        "p": found.p,
        "p_adjusted": contrast.p_adjusted,
        "correction": contrast.correction,
        "method": found.method,
        "tasks": found.tasks,
        "clusters": found.clusters,
        "runs": getattr(found, "runs_a", None),
        "baseline_runs": getattr(found, "runs_b", None),
        **{name: getattr(found, name, None) for name in names},
        "tokens_ratio": tokens.ratio,
        "tokens_low": tokens.low,
        "tokens_high": tokens.high,
        "cost_ratio": cost.ratio,
        "cost_low": cost.low,
        "cost_high": cost.high,
        "copies": contrast.copies,
        "verdict": contrast.verdict,
        "simulated": contrast.simulated,
    }


def _times(ratio: PairedRatio) -> str:
    if ratio.ratio is None:
        return ratio.notes[-1] if ratio.notes else "not known"
    if ratio.low is None or ratio.high is None:
        return f"×{ratio.ratio:.2f}"
    return (
        f"×{ratio.ratio:.2f} ({100 * ratio.level:g} % interval {ratio.low:.2f} to {ratio.high:.2f})"
    )


def comparison_frame(values: Values, *, baseline: str, metrics: Sequence[str]) -> pd.DataFrame:
    """Contrasts in several metrics, each under its plain name; one nobody knows is left out."""
    import pandas as pd

    frames = []
    for name in metrics:
        found = contrasts_of(values, baseline=baseline, metric=name)
        if any(contrast.estimate is not None for contrast in found):
            frames.append(contrasts_frame(found).assign(metric=metric_of(name).label))
    return pd.concat(frames, ignore_index=True) if frames else contrasts_frame([])
