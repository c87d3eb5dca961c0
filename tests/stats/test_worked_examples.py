"""Numbers that others published, or that scipy and statsmodels give."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize, stats

from axislab.stats.clustered import cluster_codes, cluster_mean
from axislab.stats.intervals import mean_interval, wilson_interval
from axislab.stats.mcnemar import exact_p, mid_p, tango_interval
from axislab.stats.multiple import adjust
from axislab.stats.paired import paired_difference
from axislab.stats.permutation import sign_flip_p
from axislab.stats.power import detectable_difference, discordant_sd, power_of, tasks_needed
from axislab.stats.ratios import paired_ratio
from axislab.stats.repeats import pass_at_k, pass_hat_k, spread

# Benjamini and Hochberg (1995), table of 15 p values of a trial of thrombolysis.
BH_1995 = [
    *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344),
    *(0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0),
]


@pytest.mark.parametrize("total", [1, 2, 7, 20, 61])
def test_exact_mcnemar_is_what_counting_all_outcomes_gives(total):
    chances = [Fraction(math.comb(total, k), 2**total) for k in range(total + 1)]
    for better in range(total + 1):
        as_rare = [c for c in chances if c <= chances[better]]
        assert exact_p(better, total - better) == pytest.approx(float(sum(as_rare)), abs=1e-9)
        rarer = [c for c in chances if c < chances[better]]
        tied = [c for c in chances if c == chances[better]]
        mid = sum(rarer) + sum(tied) / 2
        assert mid_p(better, total - better) == pytest.approx(float(mid), abs=1e-9)


def test_airway_hyper_responsiveness_before_and_after_transplantation():
    """Bentur et al. 2009, as worked in Fagerland, Lydersen, Laake (2013; 2014, Stat. Med. 33)."""
    assert exact_p(1, 7) == pytest.approx(0.0703125, abs=1e-12)
    assert mid_p(1, 7) == pytest.approx(0.0390625, abs=1e-12)
    low, high = tango_interval(1, 7, 21)
    assert (round(low, 3), round(high, 3)) == (-0.517, -0.026)


def test_tango_gives_what_r_gives():
    """PropCIs 0.3-0, scoreci.mp(25, 28, 618) at 90 %: -0.0148 to 0.0247 for the second."""
    low, high = tango_interval(28, 25, 618, level=0.9)
    assert (round(low, 4), round(high, 4)) == (-0.0148, 0.0247)


@pytest.mark.parametrize(
    ("b", "c", "n"),
    [
        (b, c, n)
        for n in (5, 20, 161, 500)
        for b, c in ((0, 1), (3, 0), (1, 3), (2, 2), (4, 1), (0, 5), (17, 40))
        if b + c <= n
    ],
)
def test_tango_is_the_inversion_of_his_statistic(b, c, n):
    """The closed form of the constrained estimate: Tango (1998), equation for q21."""

    def statistic(d):
        linear = -b - c + (2 * n - b + c) * d
        q = (math.sqrt(max(linear**2 + 8 * n * c * d * (1 - d), 0)) - linear) / (4 * n)
        return (b - c - n * d) / math.sqrt(n * (2 * q + d * (1 - d)))

    mean, z = (b - c) / n, float(stats.norm.ppf(0.975))
    low, high = tango_interval(b, c, n)
    if mean > -1:
        expected = optimize.brentq(lambda d: statistic(d) - z, -1 + 1e-12, mean - 1e-10, xtol=1e-15)
        assert low == pytest.approx(expected, abs=1e-9)
    if mean < 1:
        expected = optimize.brentq(lambda d: statistic(d) + z, mean + 1e-10, 1 - 1e-12, xtol=1e-15)
        assert high == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("k", "n"), [(15, 148), (81, 263), (0, 20), (20, 20), (1, 1), (3, 7)])
def test_wilson_gives_what_scipy_gives(k, n):
    expected = stats.binomtest(k, n).proportion_ci(method="wilson")
    assert wilson_interval(k, n) == pytest.approx((expected.low, expected.high), abs=1e-9)
    found = mean_interval([1] * k + [0] * (n - k))
    assert (found.low, found.high) == wilson_interval(k, n)
    assert found.method == "Wilson score"


def test_wilson_gives_what_newcombe_published():
    """Newcombe (1998, Stat. Med. 17:857-872), table I: 81 of 263 and 15 of 148."""
    assert [round(x, 4) for x in wilson_interval(81, 263)] == [0.2553, 0.3662]
    assert [round(x, 4) for x in wilson_interval(15, 148)] == [0.0624, 0.1605]


def test_holm_and_benjamini_hochberg_give_what_statsmodels_gives():
    """statsmodels 0.15.0, multipletests(method="holm") and "fdr_bh"."""
    holm = [0.0015, 0.0056, 0.0247, 0.114, 0.2211, 0.278, 0.278, 0.278, 0.3213, *[1.0] * 6]
    assert adjust(BH_1995) == pytest.approx(holm, abs=1e-9)
    fdr = [
        *(0.0015, 0.003, 0.0095, 0.035625, 0.0603, 0.06385714285714286, 0.06385714285714286),
        *(0.0645, 0.0765, 0.486, 0.5811818181818182, 0.7148749999999999, 0.7532307692307693),
        *(0.8132142857142857, 1.0),
    ]
    assert adjust(BH_1995, method="fdr") == pytest.approx(fdr, abs=1e-9)
    assert sum(p <= 0.05 for p in adjust(BH_1995, method="fdr")) == 4  # as in the paper
    assert sum(p <= 0.05 for p in adjust(BH_1995)) == 3


@pytest.mark.parametrize(
    ("effect", "n", "power"),
    [(0.5, 34, 0.8077775012792737), (0.2, 199, 0.8016910240370655), (0.3, 50, 0.5476570389705147)],
)
def test_power_is_what_statsmodels_gives(effect, n, power):
    """statsmodels 0.15.0, TTestPower().power(effect, n, 0.05)."""
    assert power_of(effect, 1.0, tasks=n) == pytest.approx(power, abs=1e-9)


@pytest.mark.parametrize("n", [2, 5, 20, 100, 500])
def test_the_detectable_effect_has_just_the_power_asked_for(n):
    found = detectable_difference(1.0, tasks=n)
    assert power_of(found, 1.0, tasks=n) == pytest.approx(0.8, abs=1e-9)
    assert detectable_difference(0.5, tasks=n) == pytest.approx(found / 2, abs=1e-12)


def test_the_detectable_effect_is_what_statsmodels_gives():
    """statsmodels 0.15.0, TTestPower().solve_power(nobs=20, alpha=0.05, power=0.8)."""
    assert detectable_difference(1.0, tasks=20) == pytest.approx(0.6604416544380312, abs=1e-9)


@pytest.mark.parametrize(("effect", "n"), [(0.2, 199), (0.5, 34), (0.8, 15)])
def test_the_tasks_needed_are_those_of_the_tables(effect, n):
    """Cohen (1988), as G*Power and statsmodels (198.15, 33.37, 14.30) give them."""
    assert tasks_needed(effect, 1.0) == n
    assert power_of(effect, 1.0, tasks=n) >= 0.8 > power_of(effect, 1.0, tasks=n - 1)


def test_the_spread_of_discordant_tasks():
    assert discordant_sd(0.3, 0.1) == pytest.approx(math.sqrt(0.29))


def test_t_over_tasks_is_the_paired_t_test_of_scipy():
    rng = np.random.default_rng(3)
    a, b = rng.uniform(size=(2, 40))
    found, expected = paired_difference(a, b), stats.ttest_rel(a, b)
    assert found.method == "t over tasks"
    assert found.p == pytest.approx(expected.pvalue, abs=1e-12)
    ends = expected.confidence_interval()
    assert found.low <= ends.low + 1e-12
    assert found.high >= ends.high - 1e-12
    alone = paired_difference(a, b, bounds=None)
    assert (alone.low, alone.high) == pytest.approx((ends.low, ends.high), abs=1e-12)
    assert found.effect_size == pytest.approx((a - b).mean() / (a - b).std(ddof=1))


def test_clusters_of_one_task_change_nothing():
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 2, (2, 30, 3))
    assert paired_difference(a, b, clusters=range(30)) == paired_difference(a, b)


def test_clusters_of_one_size_are_their_means():
    rng = np.random.default_rng(5)
    values, names = rng.uniform(size=24), np.repeat(np.arange(8), 3)
    found = cluster_mean(values, cluster_codes(names, tasks=24))
    means = values.reshape(8, 3).mean(axis=1)
    assert found.se == pytest.approx(means.std(ddof=1) / math.sqrt(8), abs=1e-12)
    assert found.df == pytest.approx(7, abs=1e-9)


def test_the_clustered_error_is_that_of_miller_up_to_the_small_sample_form():
    """Miller (2024), equation 4: sums of residuals over pairs of one cluster, over n squared."""
    rng = np.random.default_rng(6)
    sizes = rng.integers(1, 5, 300)
    names = np.repeat(np.arange(300), sizes)
    values = rng.normal(size=len(names)) + rng.normal(size=300)[names]
    off = values - values.mean()
    same = names[:, None] == names[None, :]
    miller = math.sqrt(float((off[:, None] * off[None, :])[same].sum())) / len(values)
    found = cluster_mean(values, cluster_codes(names, tasks=len(names)))
    assert found.se == pytest.approx(miller, rel=0.01)
    assert found.se > miller


def test_flipping_all_signs_is_scipys_permutation_test():
    a, b = np.array([0.9, 0.4, 0.7, 0.8, 0.2, 0.6]), np.array([0.5, 0.5, 0.3, 0.1, 0.3, 0.2])
    expected = stats.permutation_test(
        (a, b), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=np.inf
    )
    assert sign_flip_p(a, b) == pytest.approx(expected.pvalue, abs=1e-12)


def test_pass_at_k_and_pass_hat_k_count_all_choices():
    """Chen et al. (2021) and Yao et al. (2024): a task with c right of r runs."""
    runs = np.array([[1] * c + [0] * (6 - c) for c in range(7)], dtype=float)
    for k in range(1, 7):
        any_right = [1 - math.comb(6 - c, k) / math.comb(6, k) for c in range(7)]
        all_right = [math.comb(c, k) / math.comb(6, k) for c in range(7)]
        assert pass_at_k(runs, k).mean == pytest.approx(np.mean(any_right), abs=1e-9)
        assert pass_hat_k(runs, k).mean == pytest.approx(np.mean(all_right), abs=1e-9)


def test_the_spread_between_and_within_tasks_is_the_analysis_of_variance():
    runs = np.random.default_rng(7).normal(size=(30, 4)) + np.arange(30)[:, None] / 10
    within = runs.var(axis=1, ddof=1).mean()
    between = runs.mean(axis=1).var(ddof=1) - within / 4
    found = spread(runs)
    assert (found.within, found.between) == pytest.approx((within, between), abs=1e-12)
    assert found.of_mean(repeats=4) == pytest.approx(runs.mean(axis=1).var(ddof=1), abs=1e-12)
    assert found.intraclass == pytest.approx(between / (between + within))


def test_the_delta_interval_of_a_ratio_is_the_textbook_one():
    """Cochran (1977), equation 6.13: relative variances less twice the relative covariance."""
    rng = np.random.default_rng(8)
    a, b = rng.lognormal(size=(2, 120))
    found = paired_ratio(a, b)
    cov = np.cov(a, b)
    variance = cov[0, 0] / a.mean() ** 2 + cov[1, 1] / b.mean() ** 2
    variance -= 2 * cov[0, 1] / (a.mean() * b.mean())
    se = math.sqrt(variance / 120)
    assert found.ratio == pytest.approx(a.mean() / b.mean(), abs=1e-12)
    assert found.log_se == pytest.approx(se, abs=1e-12)
    reach = stats.t.ppf(0.975, 119) * se
    assert found.delta_low == pytest.approx(found.ratio * math.exp(-reach), abs=1e-12)
    assert found.low <= found.delta_low < found.delta_high <= found.high
