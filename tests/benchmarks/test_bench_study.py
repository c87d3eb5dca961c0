"""A study costs little beyond its runs, and its memory does not grow with them."""

from tests.benchmarks.bench_study import bare_rate, kept, study_rate, work_share


def test_a_study_takes_little_more_than_a_bare_loop_that_makes_the_same_runs():
    assert work_share() >= 0.8


def test_memory_is_flat():
    kept(100)  # what is imported and cached on the first time
    small, large = kept(200), kept(1_000)
    assert (large - small) / 800 <= 2_000, "bytes for each further pair: its figures, no trace"


def test_what_is_measured_is_what_it_says(tmp_path):
    assert bare_rate(tmp_path / "bare", pairs=20, delay=0.001) > 0
    assert study_rate(tmp_path / "study", pairs=20, delay=0.001) > 0
    names = [{p.suffix for p in (tmp_path / d).glob("*.jsonl")} for d in ("bare", "study/s")]
    assert names == [{".jsonl"}, {".jsonl"}]
    assert len(list((tmp_path / "bare").iterdir())) == 20
