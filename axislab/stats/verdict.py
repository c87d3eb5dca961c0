"""What a comparison says, in one plain sentence that claims no more than the numbers do."""

from __future__ import annotations

from axislab.stats.paired import PairedDifference
from axislab.stats.ratios import PairedRatio
from axislab.stats.sequential import ConfidenceSequence


def _said(sentence: str, *, simulated: bool) -> str:
    """The sentence with its opening; the name of an arm stands in quotes and keeps its case."""
    if simulated:
        return f"On simulated runs, {sentence[0].lower()}{sentence[1:]}."
    return f"{sentence}."


def points(share: float) -> str:
    """A difference of shares in percentage points, with its sign.

    Examples:
        >>> points(0.081)
        '+8.1'
    """
    text = f"{100 * share:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")


def p_text(p: float) -> str:
    """A p value as papers write it.

    Examples:
        >>> p_text(0.00004)
        'p < 0.001'
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def _units(n: int, clusters: int | None) -> str:
    name = "task" if clusters is None else "cluster"
    return f"{n:,} {name}{'' if n == 1 else 's'}"


def verdict(
    found: PairedDifference,
    *,
    a: str,
    b: str,
    metric: str = "accuracy",
    simulated: bool = False,
    p_adjusted: float | None = None,
) -> str:
    """The verdict on a paired difference.

    A is called higher or lower only if p (the adjusted one, where several arms were compared) is
    at most 1 - level and the interval leaves out 0; anything else is not decided. Fewer than 10
    informative tasks are said in any case, and "no difference" is never claimed.

    Args:
        found: What `paired_difference` gave.
        a: Name of the arm.
        b: Name of the arm it is held against.
        metric: What was measured.
        simulated: No real language model answered.
        p_adjusted: p after Holm or Benjamini-Hochberg.

    Examples:
        >>> from axislab.stats.paired import paired_difference
        >>> verdict(paired_difference([1, 1, 1], [0, 1, 1]), a="x", b="y")[:31]
        "Not decided: 'x' minus 'y' is +"
    """
    if found.difference is None:
        return _said(
            f"Nothing can be said of {a!r} and {b!r}: no task has runs of both", simulated=simulated
        )
    numbers = _numbers(found, p_adjusted)
    if _decided(found, p_adjusted):
        way = "higher" if found.difference > 0 else "lower"
        sentence = (
            f"{a!r} has {way} {metric} than {b!r} on tasks like these: "
            f"{points(found.difference)} points ({numbers})"
        )
        if found.few:
            sentence += f"; it rests on only {found.informative} tasks that tell the two apart"
        return _said(sentence, simulated=simulated)
    gap = f"{points(found.difference)} points of {metric}"
    sentence = f"Not decided: {a!r} minus {b!r} is {gap} ({numbers})"
    return _said(f"{sentence}; {_outlook(found)}", simulated=simulated)


def _numbers(found: PairedDifference, p_adjusted: float | None) -> str:
    parts = []
    if found.low is not None and found.high is not None:
        ends = f"{points(found.low)} to {points(found.high)}"
        parts.append(f"{100 * found.level:g} % interval {ends}")
    if p_adjusted is not None:
        parts.append(f"adjusted {p_text(p_adjusted)}")
    elif found.p is not None:
        parts.append(p_text(found.p))
    parts.append(_units(found.n, found.clusters))
    return ", ".join(parts)


def _decided(found: PairedDifference, p_adjusted: float | None) -> bool:
    p = found.p if p_adjusted is None else p_adjusted
    if p is None or found.low is None or found.high is None:
        return False
    return p <= 1 - found.level + 1e-12 and not found.low <= 0 <= found.high


def _outlook(found: PairedDifference) -> str:
    if found.few:
        tell = "tells" if found.informative == 1 else "tell"
        return (
            f"only {found.informative} of {found.tasks:,} task"
            f"{'' if found.tasks == 1 else 's'} {tell} the two apart, too few to go by"
        )
    units = "tasks" if found.clusters is None else "clusters"
    if found.decisive_n is not None and found.decisive_n > found.n:
        return f"if that is the true difference, about {found.decisive_n:,} {units} would decide it"
    if found.detectable is not None:
        size = points(found.detectable).lstrip("+")
        return f"a true difference of {size} points would have been found four times in five"
    return "how many tasks would decide it is not known"


def ratio_verdict(
    found: PairedRatio,
    *,
    a: str,
    b: str,
    metric: str = "cost",
    simulated: bool = False,
    p_adjusted: float | None = None,
) -> str:
    """The verdict on a ratio of amounts.

    Args:
        found: What `paired_ratio` gave.
        a: Name of the arm.
        b: Name of the arm it is held against.
        metric: What was measured, e.g. "output tokens".
        simulated: No real language model answered.
        p_adjusted: p after Holm or Benjamini-Hochberg.
    """
    if found.ratio is None or found.low is None or found.high is None or found.p is None:
        why = found.notes[-1] if found.notes else "too few tasks"
        return _said(
            f"Nothing can be said of the {metric} of {a!r} and {b!r}: {why}", simulated=simulated
        )
    p = found.p if p_adjusted is None else p_adjusted
    p_said = p_text(p) if p_adjusted is None else f"adjusted {p_text(p)}"
    numbers = (
        f"×{found.ratio:.2f}, {100 * found.level:g} % interval {found.low:.2f} to "
        f"{found.high:.2f}, {p_said}, {_units(found.n, found.clusters)}"
    )
    decided = p <= 1 - found.level + 1e-12 and not found.low <= 1 <= found.high
    if decided:
        way = "more" if found.ratio > 1 else "less"
        sentence = f"{a!r} takes {way} {metric} than {b!r} ({numbers})"
    else:
        sentence = f"Not decided whether {a!r} takes more or less {metric} than {b!r} ({numbers})"
    if found.notes:
        sentence += "; " + "; ".join(found.notes)
    return _said(sentence, simulated=simulated)


def sequential_verdict(
    found: ConfidenceSequence,
    *,
    a: str,
    b: str,
    metric: str = "accuracy",
    simulated: bool = False,
    clustered: bool = False,
) -> str:
    """The verdict of a study looked at while it runs.

    Args:
        found: What `confidence_sequence` gave.
        a: Name of the arm.
        b: Name of the arm it is held against.
        metric: What was measured.
        simulated: No real language model answered.
        clustered: What was counted are clusters of tasks.
    """
    last = found.last
    if last is None:
        return _said(f"No task has runs of both {a!r} and {b!r} yet", simulated=simulated)
    numbers = (
        f"{points(last.estimate)} points, {points(last.low)} to {points(last.high)} with "
        f"{100 * found.level:g} % confidence at every look, {p_text(last.p)}, "
        f"{_units(last.n, last.n if clustered else None)}"
    )
    if found.decision in ("better", "worse"):
        way = "higher" if found.decision == "better" else "lower"
        sentence = f"{a!r} has {way} {metric} than {b!r} on tasks like these ({numbers})"
    elif found.decision == "equivalent":
        size = points(found.margin or 0.0).lstrip("+")
        sentence = f"{a!r} and {b!r} differ by less than {size} points of {metric} ({numbers})"
    else:
        sentence = f"Not decided yet: {a!r} minus {b!r} ({numbers})"
    return _said(sentence, simulated=simulated)
