"""Studies on a paid provider: replies are cached, copies do not count, prices are summed."""

from __future__ import annotations

import secrets

import pytest

import axislab as al
from axislab.messages import Usage
from axislab.models.scripted import ScriptedModel
from tests.models.fake_server import FakeServer
from tests.studykit import tasks

KEY = "sk-planted-77aa"
RECIPE = al.Recipe(name="plain")
ARMS = {"a": RECIPE, "b": RECIPE.with_(temperature=1.0)}


class Provider(ScriptedModel):
    """A double that passes for a real provider.

    Args:
        request_id: Makes the id of a reply from the request.
    """

    def __init__(self, request_id=lambda request: secrets.token_hex(6)):
        self.request_id = request_id
        super().__init__(self.answer)

    simulated = False

    @property
    def info(self):
        return {"double": True}

    def answer(self, request):
        return al.ModelReply(
            text=r"\boxed{4}",
            finish_reason="stop",
            cost_usd=0.25,
            usage=Usage(input_tokens=100, output_tokens=10),
            request_id=self.request_id(request),
        )


def compare(lab, **options):
    made = {"name": "s", "progress": False, **options}
    return lab.compare(ARMS, tasks(4), **made)


@pytest.fixture
def server():
    fake = FakeServer()
    yield fake
    fake.stop()


@pytest.fixture
def own(tmp_path, monkeypatch):
    path = tmp_path / "own" / "replies.sqlite3"
    monkeypatch.setenv("AXISLAB_REPLIES", str(path))
    return path


def test_replies_of_a_paid_provider_are_cached_unless_the_lab_says_no(server, own, tmp_path):
    price = al.Price(input=1.0, output=10.0)
    options = {"api_base": server.url, "api_key": KEY, "price": price}
    first = compare(al.Lab("openai/ok", folder=tmp_path / "a", **options))
    assert (first.new_calls, server.count("ok")) == (8, 8)
    assert first.summary().cached.tolist() == [0, 0]
    again = compare(al.Lab("openai/ok", folder=tmp_path / "b", **options))
    assert (again.new_runs, again.new_calls, server.count("ok")) == (8, 0, 8)
    assert again.summary().cached.tolist() == [4, 4]
    same = ["accuracy", "input_tokens", "output_tokens", "cost_usd", "cost_missing"]
    assert again.summary()[same].equals(first.summary()[same])
    assert first.summary().spent_usd.gt(0).all()
    assert again.summary().spent_usd.tolist() == [0.0, 0.0]
    never = compare(al.Lab("openai/ok", folder=tmp_path / "c", cache=False, **options))
    assert (never.new_calls, server.count("ok")) == (8, 16)
    assert KEY not in (tmp_path / "a" / "s" / "study.json").read_text()


def test_simulated_studies_are_never_cached(own, tmp_path):
    compare(al.Lab("axislab/simulated", folder=tmp_path))
    compare(al.Lab(Provider(), folder=tmp_path / "double"))
    assert not own.exists()


def test_money_is_summed_and_a_repr_does_not_say_simulated():
    study = compare(al.Lab(Provider()), repeats=2)
    row = study.summary().iloc[0]
    assert (row["cost_usd"], row["spent_usd"], row["cost_per_correct"]) == (2.0, 2.0, 0.25)
    assert (row["copies"], row["runs"], row["simulated"]) == (0, 8, False)
    assert "simulated" not in repr(study) + study.contrast("b").verdict
    assert study.contrast("b").cost.ratio == 1.0


def test_repeats_that_are_copies_do_not_count():
    def by_task(request):
        return f"{request.messages[-1].text} at {request.sampling.temperature}"

    study = compare(al.Lab(Provider(by_task)), repeats=3)
    assert study.independence.dropped == 16
    summary = study.summary()
    assert (summary.runs.tolist(), summary.copies.tolist()) == ([4, 4], [8, 8])
    found = study.contrast("b")
    assert (found.found.tasks, found.found.runs_a, found.copies) == (4, 4, 16)
    assert "16 of 24 runs are copies" in repr(found)
    frame = al.pairs_df(study)
    assert frame.counted.sum() == 8
    assert frame[~frame.counted].copy_of.isin(frame.run_id).all()


def test_a_server_that_gives_every_reply_the_same_id_does_not_make_them_copies():
    study = compare(al.Lab(Provider(lambda request: "chatcmpl-1")), repeats=2)
    assert study.independence.dropped == 0
    assert study.summary().runs.tolist() == [8, 8]


def test_a_budget_counts_what_was_used_before(tmp_path):
    lab = al.Lab(Provider(), folder=tmp_path)
    arms = {name: arm.with_(max_output_tokens=20) for name, arm in ARMS.items()}

    def go(**options):
        return lab.compare(arms, tasks(20), name="s", progress=False, concurrency=1, **options)

    first = go(budget={"tokens": 600})
    assert (first.ended_by, first.new_calls) == ("budget", 5)
    second = go(budget={"tokens": 1_200})
    assert (second.ended_by, second.new_calls) == ("budget", 5)
    assert len(second.runs) == 10
    assert second.book.used().known_usd == 2.5
