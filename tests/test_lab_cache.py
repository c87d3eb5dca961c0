"""Lab(cache=…): a cell that runs again pays nothing, says so, and stays honest about it."""

from __future__ import annotations

import secrets

import pytest

import axislab as al
from axislab.errors import ConfigError
from axislab.events import StepTaken
from axislab.messages import Usage
from axislab.models.scripted import ScriptedModel
from tests.models.fake_server import FakeServer

PLAIN = al.Recipe(name="plain")
KEY = "sk-planted-5d1f"


@al.tool
def look(query: str) -> str:
    """Look something up.

    Args:
        query: What.
    """
    return f"about {query}"


class Paid(ScriptedModel):
    """A double that passes for a paid provider: random ids, a price, no two replies alike."""

    def __init__(self, line=None):
        self.count = 0
        super().__init__(line or self.answer)

    @property
    def simulated(self):
        return False

    @property
    def info(self):
        return {}

    def answer(self, request):
        self.count += 1
        said = {"text": f"\\boxed{{{self.count}}}", "finish_reason": "stop"}
        if request.tools and not any(m.tool_calls for m in request.messages):
            id_ = secrets.token_hex(4)
            call = al.ToolCall(id="", name="look", arguments='{"query": "x"}', provider_id=id_)
            said = {"tool_calls": (call,), "finish_reason": "tool_calls"}
        return al.ModelReply(
            **said,
            cost_usd=0.25,
            usage=Usage(input_tokens=100, output_tokens=10),
            request_id=secrets.token_hex(4),
        )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "replies.sqlite3"


AGENT = al.Recipe(name="agent", tools=(look,))


def steps(run):
    return [record.data for record in run.trace.of(StepTaken.kind)]


def test_a_run_again_sends_nothing_and_goes_the_same_way(path):
    model = Paid()
    runs = [al.Lab(model, cache=path).run(AGENT, "Who?") for _ in range(3)]
    for run in runs:
        assert (run.status, run.answer, run.requests) == ("COMPLETED", "2", 2)
        assert steps(run) == steps(runs[0])
    assert [run.cached_requests for run in runs] == [0, 2, 2]
    assert model.count == 2


def test_totals_say_what_was_spent_and_apart_from_it_what_was_saved(path):
    lab = al.Lab(Paid(), cache=path)
    paid, free = lab.run(AGENT, "Who?"), lab.run(AGENT, "Who?")
    assert (paid.usage.input_tokens, paid.cost_usd) == (200, 0.5)
    assert (paid.saved_usage.input_tokens, paid.saved_usd) == (0, 0.0)
    assert (free.usage.input_tokens, free.cost_usd) == (0, 0.0)
    assert (free.saved_usage.input_tokens, free.saved_usd) == (200, 0.5)
    frame = al.runs_df([paid, free])
    assert frame.requests.tolist() == [2, 2]
    assert frame.cached_requests.tolist() == [0, 2]
    assert frame.cost_usd.sum() == 0.5  # what the provider's bill says
    assert frame.saved_usd.tolist() == [0.0, 0.5]
    assert frame.input_tokens.tolist() == [200, 0]
    assert (frame.input_tokens + frame.saved_input_tokens).tolist() == [200, 200]
    assert (frame.output_tokens + frame.saved_output_tokens).tolist() == [20, 20]


def test_every_hit_is_a_row_that_says_so(path):
    lab = al.Lab(Paid(), cache=path)
    frame = al.budgets_df([lab.run(AGENT, "Who?"), lab.run(AGENT, "Who?")])
    assert frame.cached.tolist() == [False, False, True, True]
    assert frame.cost_usd.tolist() == [0.25, 0.25, 0.0, 0.0]
    assert frame.saved_usd.isna().tolist() == [True, True, False, False]
    assert frame.saved_seconds.notna().tolist() == [False, False, True, True]
    assert frame.input_tokens.tolist() == [100] * 4  # what each prompt weighed
    assert frame.cache_key.tolist()[:2] == frame.cache_key.tolist()[2:]
    assert frame.request_id.tolist()[:2] == frame.request_id.tolist()[2:]


def test_without_a_cache_no_row_is_cached():
    frame = al.budgets_df(al.Lab(Paid()).run(PLAIN, "Who?"))
    assert frame.cached.tolist() == [False]
    assert frame.cache_key.isna().all()


def test_a_cached_run_reads_back_and_its_card_says_so(path, tmp_path):
    lab = al.Lab(Paid(), cache=path, folder=tmp_path / "runs")
    lab.run(AGENT, "Who?")
    run = lab.run(AGENT, "Who?")
    again = al.load_run(run.path)
    assert al.fsck(run.path).ok
    assert (again.cached_requests, again.saved_usd) == (2, 0.5)
    assert "2 requests (2 from the reply cache)" in again._repr_html_()


def test_repeats_are_independent_and_each_hits_again(path):
    model = Paid()
    for _ in range(2):
        runs = al.Lab(model, cache=path).run_many(PLAIN, ["Who?"], repeats=5, progress=False)
        assert len({run.answer for run in runs}) == 5
        assert len(set(al.budgets_df(runs).cache_key)) == 5
    assert model.count == 5


def test_arms_that_send_the_same_are_independent_unless_they_are_coupled(path):
    arms = {"a": PLAIN, "b": al.Recipe(name="the same")}
    model = Paid()
    for number in range(2):
        runs = al.Lab(model, cache=path).run_many(arms, ["Who?"], progress=False)
        assert runs[0].answer != runs[1].answer
        assert [run.cached_requests for run in runs] == [number, number]
    assert model.count == 2
    coupled = al.Lab(model, cache=path, coupling="common")
    runs = coupled.run_many(arms, ["Who?"], progress=False, concurrency=1)
    assert runs[0].answer == runs[1].answer
    assert len(set(al.budgets_df(runs).cache_key)) == 1  # a guard sees that they are copies
    assert model.count == 3


@pytest.mark.parametrize("change", [{"seed": 1}, {"repeat": 1}, {"arm": "b"}])
def test_another_seed_repeat_or_arm_pays(path, change):
    lab = al.Lab(Paid(), cache=path)
    lab.run(PLAIN, "Who?")
    assert lab.run(PLAIN, "Who?", **change).cached_requests == 0
    assert lab.run(PLAIN, "Who?").cached_requests == 1


def test_another_task_or_sampling_pays(path):
    lab = al.Lab(Paid(), cache=path)
    lab.run(PLAIN, "Who?")
    assert lab.run(PLAIN, "What?").cached_requests == 0
    assert lab.run(PLAIN.with_(temperature=0.5), "Who?").cached_requests == 0


def test_coming_to_an_equal_request_twice_is_two_draws_within_a_run_and_hits_in_the_next(path):
    """A refusal is rolled back, and the very same messages are sent again."""
    recipe = al.Recipe(name="stubborn").with_(refusal_keywords=("cannot",), max_rollbacks=3)

    def line(request):
        model.count += 1
        text = "I cannot." if model.count < 3 else "\\boxed{7}"
        return al.ModelReply(text=text, finish_reason="stop", cost_usd=0.25)

    model = Paid(line)
    lab = al.Lab(model, cache=path)
    paid, free = lab.run(recipe, "Who?"), lab.run(recipe, "Who?")
    assert paid.answer == free.answer == "7"
    assert (paid.requests, paid.cached_requests) == (3, 0)
    assert (free.requests, free.cached_requests) == (3, 3)
    assert len(set(al.budgets_df(paid).cache_key)) == 3


def test_equal_runs_at_one_time_send_one_request(path):
    model = Paid()
    lab = al.Lab(model, cache=path)
    handles = [lab.start(PLAIN, "Who?") for _ in range(8)]
    assert {handle.result().answer for handle in handles} == {"1"}
    assert model.count == 1


def test_it_is_off_unless_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("AXISLAB_REPLIES", str(tmp_path / "own.sqlite3"))
    lab = al.Lab(Paid())
    assert lab.cache is None
    assert [lab.run(PLAIN, "Who?").answer for _ in range(2)] == ["1", "2"]
    assert not list(tmp_path.iterdir())


def test_true_is_the_users_own_file(tmp_path, monkeypatch):
    monkeypatch.setenv("AXISLAB_REPLIES", str(tmp_path / "deep" / "own.sqlite3"))
    lab = al.Lab(Paid(), cache=True)
    assert lab.cache.path == tmp_path / "deep" / "own.sqlite3"
    assert not (tmp_path / "deep").exists()
    assert [lab.run(PLAIN, "Who?").answer for _ in range(2)] == ["1", "1"]
    assert lab.cache.path.exists()


@pytest.mark.parametrize("model", ["axislab/simulated", ScriptedModel(["a"], after="repeat")])
def test_simulated_and_scripted_models_are_not_cached(path, model):
    lab = al.Lab(model, cache=path)
    assert [lab.run(PLAIN, "Compute 1 + 1.").cached_requests for _ in range(2)] == [0, 0]
    assert not path.exists()


def test_a_model_that_was_wrapped_is_cached_whatever_it_is(path):
    inner = ScriptedModel(["a", "b"])
    lab = al.Lab(al.CachedModel(inner, al.ReplyCache(path)))
    assert [lab.run(PLAIN, "Who?").output for _ in range(2)] == ["a", "a"]
    assert lab.run(PLAIN, "Who?").simulated


def test_it_is_inspected_and_cleared_by_one_call_each(path):
    lab = al.Lab(Paid(), cache=path)
    lab.run(PLAIN, "Who?")
    lab.run(PLAIN, "Who?")
    info = lab.cache.info()
    assert (info.entries, info.hits, info.misses, info.saved_usd) == (1, 1, 1, 0.25)
    assert lab.cache.clear(model="another") == 0
    assert lab.cache.clear() == 1
    assert lab.run(PLAIN, "Who?").cached_requests == 0


def test_a_nonsense_cache_is_refused_at_once(tmp_path):
    with pytest.raises(ConfigError, match="cache=7"):
        al.Lab(Paid(), cache=7)


def test_a_cache_that_breaks_between_runs_breaks_no_run(path, caplog):
    model = Paid()
    lab = al.Lab(model, cache=path)
    lab.run(PLAIN, "Who?")
    lab.cache.close()
    path.write_bytes(b"\x00" * path.stat().st_size)
    runs = [lab.run(PLAIN, "Who?") for _ in range(2)]
    assert [run.status for run in runs] == ["COMPLETED"] * 2
    assert [run.cached_requests for run in runs] == [0, 1]
    assert "damaged" in caplog.text
    assert len(lab.cache.info().notes) == 1


# Through litellm ------------------------------------------------------------------------------


@pytest.fixture
def server(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    fake = FakeServer()
    yield fake
    fake.stop()


def test_a_provider_is_asked_once_and_no_key_is_kept(server, tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir()
    for number in range(2):
        lab = al.Lab("openai/ok", api_base=server.url, api_key=KEY, cache=folder)
        run = lab.run(PLAIN, "Who?").raise_for_status()
        assert (run.output, run.cached_requests) == ("Hello.", number)
        assert server.count("ok") == 1
        assert KEY not in repr(lab) + repr(lab.cache.info()) + str(run.trace.records)
    lab.cache.close()
    assert all(KEY.encode() not in file.read_bytes() for file in folder.iterdir())


def test_a_retry_is_not_paid_again_and_errors_are_not_kept(server, path):
    lab = al.Lab("openai/fail-503-1", api_base=server.url, api_key=KEY, cache=path)
    recipe = PLAIN.with_(backoff=0.01)
    first, again = lab.run(recipe, "Who?"), lab.run(recipe, "Who?")
    assert (first.requests, first.cached_requests) == (2, 0)
    assert (again.requests, again.cached_requests) == (1, 1)
    assert server.count("fail-503-1") == 2


def test_a_reply_without_a_finish_reason_is_asked_for_again(server, path):
    lab = al.Lab("openai/finish-null", api_base=server.url, api_key=KEY, cache=path)
    assert [lab.run(PLAIN, "Who?").cached_requests for _ in range(2)] == [0, 0]
    assert server.count("finish-null") == 2


def test_a_kept_reply_is_given_though_a_ceiling_leaves_no_room(tmp_path):
    class Priced(Paid):
        def list_price(self, *, prompt=0):
            return al.Price(input=1, output=10)

    lab = al.Lab(Priced(), cache=tmp_path / "replies.sqlite3")
    first = lab.run(PLAIN, "Who?")
    with lab.budget(usd=0.000001) as budget:
        again = lab.run(PLAIN, "Who?")
        other = lab.run(PLAIN, "Whose?")
    assert (again.status, again.answer) == ("COMPLETED", first.answer)
    assert again.cached_requests == again.requests == first.requests
    assert other.error_kind == "budget"
    assert budget.spent.usd == 0


def test_an_estimate_counts_replies_of_the_cache_as_if_they_were_paid(tmp_path):
    cache = tmp_path / "replies.sqlite3"
    model = Paid()
    al.Lab(model, cache=cache, folder=tmp_path / "a").run(PLAIN, "Who?")
    lab = al.Lab(model, cache=cache, folder=tmp_path / "b")
    assert lab.run(PLAIN, "Who?").cached_requests == 1
    row = lab.estimate(PLAIN, ["Who?", "Whose?"]).iloc[0]
    assert (row.basis, row.input_tokens, row.output_tokens) == ("recorded", 200, 20)
    assert row.usd == 0.5
