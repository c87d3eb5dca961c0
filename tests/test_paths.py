"""Paths as people write them, wherever one is given."""

import shutil
from pathlib import Path

import pytest

import axislab as al
from axislab.errors import AxislabError, ConfigError, DataError, TraceError
from axislab.paths import user_path

DATA = Path(al.__file__).parent.parent / "datasets"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home of its own, and a folder to work in that is not it."""
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "home"


def test_a_tilde_is_the_home_in_every_path(home):
    lab = al.Lab(al.ScriptedModel(["fine"]), folder="~/traces")
    run = lab.run(al.Recipe(), "Why?")
    assert run.path.parent == home / "traces"
    assert not Path("~").exists()
    assert [r.id for r in al.load_runs("~/traces")] == [run.id]
    assert al.load_run(f"~/traces/{run.path.name}").id == run.id
    assert al.fsck(f"~/traces/{run.path.name}").ok
    for name in ("tasks.jsonl", "corpus.jsonl"):
        shutil.copy(DATA / "atlas" / name, home / name)
    assert len(al.load_tasks("~/tasks.jsonl")) == len(al.load_tasks("atlas"))
    assert len(al.load_corpus("~/corpus.jsonl")) == len(al.load_corpus("atlas"))


def test_a_home_nobody_has_is_left_as_it_is(home):
    assert user_path("~nobody-at-all/x") == Path("~nobody-at-all/x")


@pytest.mark.parametrize("given", [5, None, b"x", object(), ["x"]])
def test_what_is_no_path_is_refused_by_name(given):
    with pytest.raises(DataError, match="is no path"):
        user_path(given)


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (lambda: al.Lab(al.ScriptedModel(["x"]), folder=5), ConfigError),
        (lambda: al.load_run(5), TraceError),
        (lambda: al.load_runs(5), TraceError),
        (lambda: al.load_runs([None]), TraceError),
        (lambda: al.load_runs(None), TraceError),
        (lambda: al.fsck(5), TraceError),
        (lambda: al.load_corpus(5), DataError),
    ],
)
def test_a_wrong_path_is_an_error_of_ours(use, error):
    with pytest.raises(AxislabError, match="is no path") as caught:
        use()
    assert isinstance(caught.value, error)
