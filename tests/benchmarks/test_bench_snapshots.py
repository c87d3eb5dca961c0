"""A longer history costs more to restore in proportion to its state, not to its lines squared."""

from axislab.fsm.snapshots import MOST_OVER_STATE
from tests.benchmarks.bench_snapshots import measure


def test_restoring_grows_no_faster_than_the_state():
    short, long = measure(60, moments=9), measure(240, moments=9)
    assert long.worst_ms <= 4 * 2.5 * max(short.worst_ms, 0.5)
    assert long.over_state <= MOST_OVER_STATE
    assert long.lines == 4 * 240 + 4
