"""Importing axislab costs no more than 1.6 times what importing pydantic does."""

from tests.benchmarks.bench_import import measure


def test_importing_axislab_is_at_most_1_6_times_importing_pydantic():
    found = measure(rounds=5)
    assert found["axislab"] <= 1.6 * found["pydantic"]
