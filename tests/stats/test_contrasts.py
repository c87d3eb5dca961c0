"""Every arm against the baseline."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from axislab.errors import DataError
from axislab.stats.contrasts import DTYPES, contrasts_df
from axislab.stats.multiple import adjust
from axislab.stats.outcomes import outcomes
from axislab.stats.paired import paired_difference
from axislab.stats.ratios import paired_ratio


def runs(arms: dict[str, float], *, tasks: int = 60, repeats: int = 1, **columns) -> pd.DataFrame:
    rng = np.random.default_rng(51)
    return pd.DataFrame(
        [
            {
                "task_id": f"t{task}",
                "arm": arm,
                "repeat": repeat,
                "correct": bool(rng.random() < chance),
                "output_tokens": int(1 + rng.lognormal(5, 0.5) * chance),
            }
            | columns
            for arm, chance in arms.items()
            for task in range(tasks)
            for repeat in range(repeats)
        ]
    )


def test_each_arm_is_held_against_the_baseline():
    data = outcomes(runs({"one": 0.3, "three": 0.7, "five": 0.8}))
    found = contrasts_df(data, baseline="one", metric="accuracy")
    assert found.arm.tolist() == ["three", "five"]
    assert found.dtypes.astype(str).to_dict() == DTYPES
    alone = paired_difference(data.of("three"), data.of("one"))
    row = found.iloc[0]
    assert (row.difference, row.low, row.high) == (alone.difference, alone.low, alone.high)
    assert (row.p, row.p_exact) == (alone.p, alone.p_exact)
    assert found.p_adjusted.tolist() == adjust(found.p.tolist())
    assert "adjusted p" in row.verdict
    assert "'three'" in row.verdict


def test_two_arms_need_no_correction():
    found = contrasts_df(outcomes(runs({"a": 0.3, "b": 0.6})), baseline="a")
    assert found.p_adjusted.isna().all()
    assert found.metric.tolist() == ["correct"]
    assert "adjusted" not in found.verdict[0]


def test_the_false_discovery_rate_is_the_other_correction():
    data = outcomes(runs({"a": 0.3, "b": 0.45, "c": 0.5}))
    found = contrasts_df(data, baseline="a", correction="fdr")
    assert found.p_adjusted.tolist() == adjust(found.p.tolist(), method="fdr")


def test_tokens_are_compared_as_ratios():
    data = outcomes(runs({"a": 0.3, "b": 0.6}, repeats=2, simulated=True), "output_tokens")
    found = contrasts_df(data, baseline="a", kind="ratio").iloc[0]
    alone = paired_ratio(data.of("b"), data.of("a"))
    assert (found.kind, found.difference, found.low) == ("ratio", alone.ratio, alone.low)
    assert (found["mean"], found.baseline_mean) == (alone.mean_a, alone.mean_b)
    assert found.verdict.startswith("On simulated runs, 'b' takes more output_tokens than 'a'")
    assert "fewer than 100" in found.notes


def test_clusters_of_the_frame_are_used():
    frame = runs({"a": 0.3, "b": 0.6})
    frame["cluster"] = "c" + frame.task_id.str[-1]
    found = contrasts_df(outcomes(frame), baseline="a").iloc[0]
    assert (found.n, found.clusters, found.tasks, found.method) == (10, 10, 60, "t over clusters")


def test_unknown_values_are_na_and_the_baseline_alone_has_no_rows():
    frame = runs({"a": 0.3, "b": 0.6}, tasks=1)
    frame["correct"] = None
    found = contrasts_df(outcomes(frame), baseline="a").iloc[0]
    assert found[["difference", "low", "p", "effect_size"]].isna().all()
    assert "Nothing can be said" in found.verdict
    alone = contrasts_df(outcomes(runs({"a": 0.3})), baseline="a")
    assert alone.empty
    assert list(alone.columns) == list(DTYPES)


def test_what_is_misspelt_is_refused():
    data = outcomes(runs({"alpha": 0.3, "beta": 0.6}, tasks=2))
    with pytest.raises(DataError, match="did you mean 'alpha'"):
        contrasts_df(data, baseline="alpa")
    with pytest.raises(DataError, match="did you mean 'ratio'"):
        contrasts_df(data, baseline="alpha", kind="ratios")
