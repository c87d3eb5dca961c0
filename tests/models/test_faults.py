"""Failure profiles: values, presets, what each rate does, and the fit to traces."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simworld import SYSTEM, Loop, make_world, tools_over

from axislab.config import Sampling
from axislab.errors import ConfigError, ErrorKind, ModelError
from axislab.messages import Message, ToolCall
from axislab.models.base import ModelRequest
from axislab.models.faults import PRESET_TABLE, PRESETS, RATES, FailureProfile, profile
from axislab.models.simulated import SimulatedModel

WORLD = make_world(0)
TOOLS = tools_over(WORLD)
SPECS = tuple(tool.spec for tool in TOOLS.values())
TASK = WORLD.tasks[0]
START = (Message.system(SYSTEM), Message.user(TASK.prompt))
CALL = ToolCall(id="1", name="search", arguments='{"query": "somewhere else"}')
LATER = (*START, Message.assistant(None, [CALL]), Message.tool("[d9] Xu: old", tool_call_id="1"))
KNOWN = (*START, Message.assistant(None, [CALL]))
KNOWN = (
    *KNOWN,
    Message.tool(f"[d1] A: {TASK.prompt[8:-1].capitalize()} is Tal.", tool_call_id="1"),
)


def reply(messages=START, draw="", **rates):
    model = SimulatedModel(FailureProfile(**rates))
    return model.reply(ModelRequest(messages=messages, tools=SPECS, draw=draw))


# -- values ------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), "often"])
def test_a_rate_outside_0_to_1_is_refused(value):
    with pytest.raises(ConfigError, match="refuse"):
        FailureProfile(refuse=value)
    with pytest.raises(ConfigError, match="refuse"):
        profile("clean").with_(refuse=value)


def test_an_unknown_name_is_refused_with_the_nearest_one():
    with pytest.raises(ConfigError, match="did you mean 'refuse'"):
        FailureProfile(refuze=0.1)
    with pytest.raises(ConfigError, match="did you mean 'empty'"):
        profile("flaky").with_(emtpy=0.1)
    with pytest.raises(ConfigError, match="did you mean 'timeout'"):
        profile("flaky").rate("timeot")


def test_a_profile_is_a_value():
    with pytest.raises(ValueError, match="frozen"):
        profile("flaky").refuse = 0.5
    changed = profile("flaky").with_(refuse=0.2)
    assert (changed.refuse, changed.empty) == (0.2, profile("flaky").empty)
    assert changed.name == "flaky+"
    assert profile("flaky").with_(name="mine").name == "mine"
    assert changed.rate("refuse") == 0.2
    assert changed == profile("flaky").with_(refuse=0.2)


@given(st.floats(0, 1))
def test_a_mix_lies_between_its_parts(weight):
    a, b = profile("flaky"), profile("verbose")
    mixed = FailureProfile.mix(a, b, weight)
    for name in RATES:
        low, high = sorted((a.rate(name), b.rate(name)))
        assert low - 1e-9 <= mixed.rate(name) <= high + 1e-9


def test_the_ends_of_a_mix_are_its_parts_and_it_says_what_it_is():
    a, b = profile("flaky"), profile("stubborn")
    assert FailureProfile.mix(a, b, 0).rates() == a.rates()
    assert FailureProfile.mix(a, b, 1).rates() == b.rates()
    assert "0.5 of 'flaky'" in FailureProfile.mix(a, b).notes[0]
    with pytest.raises(ConfigError, match="weight=2"):
        FailureProfile.mix(a, b, 2)


def test_every_rate_of_every_preset_stands_in_the_table_with_its_source():
    assert sorted(row.rate for row in PRESET_TABLE) == sorted(RATES)
    assert all(row.source for row in PRESET_TABLE)
    for name in PRESETS:
        made = profile(name)
        assert {row.rate: getattr(row, name) for row in PRESET_TABLE} == {
            rate: made.rate(rate) for rate in RATES
        }


def test_clean_has_no_failure():
    assert set(profile("clean").rates()) <= {"parallel_calls"}


# -- what each rate does -----------------------------------------------------------------------


def test_refuse_declines_in_words_that_are_known():
    texts = {reply(refuse=1, draw=str(i)).text for i in range(40)}
    assert len(texts) >= 4
    assert all(reply(refuse=1, draw=str(i)).tool_calls == () for i in range(5))
    assert any("’" in text for text in texts)


def test_refuse_persistent_declines_every_time():
    for messages in (START, LATER, KNOWN):
        assert reply(messages, refuse_persistent=1).tool_calls == ()
        assert "Tal" not in reply(messages, refuse_persistent=1).text


def test_empty_is_a_reply_of_nothing():
    nothing = reply(empty=1)
    assert (nothing.text, nothing.tool_calls, nothing.finish_reason) == (None, (), "stop")
    assert nothing.usage.output_tokens == 0


def test_cut_by_length_breaks_off_and_says_length():
    replies = [reply(cut_by_length=1, draw=str(i)) for i in range(20)]
    assert {r.finish_reason for r in replies} == {"length"}
    assert any(r.tool_calls for r in replies)
    assert any(not r.tool_calls and r.text for r in replies)
    for r in replies:
        for call in r.tool_calls:
            with pytest.raises(ValueError, match=r"delimiter|Unterminated|Expecting|property"):
                json.loads(call.arguments)
    assert reply(KNOWN, cut_by_length=1).finish_reason == "length"


@pytest.mark.parametrize(
    ("name", "start", "end"),
    [
        (
            "text_call_hermes",
            '<tool_call>\n{"name": "search", "arguments": {"query":',
            "</tool_call>",
        ),
        ("text_call_bare", 'search("', '")'),
        ("text_call_fenced", "```json\n{", "```"),
    ],
)
def test_a_call_written_as_text_is_no_call(name, start, end):
    written = reply(**{name: 1})
    assert written.tool_calls == ()
    assert written.text.startswith(start)
    assert written.text.endswith(end)
    assert written.finish_reason == "stop"
    assert reply(KNOWN, **{name: 1}).text.endswith("\\boxed{Tal}")


def test_broken_arguments_are_no_json():
    for i in range(12):
        call = reply(broken_arguments=1, draw=str(i)).tool_calls[0]
        assert call.name == "search"
        with pytest.raises(ValueError, match=r"."):
            json.loads(call.arguments)


def test_a_misnamed_argument_is_near_the_right_name():
    for i in range(8):
        arguments = json.loads(reply(misnamed_argument=1, draw=str(i)).tool_calls[0].arguments)
        assert "query" not in arguments
        assert "quer" in next(iter(arguments))


def test_wrong_tool_names_a_tool_that_is_not_there():
    for i in range(8):
        assert reply(wrong_tool=1, draw=str(i)).tool_calls[0].name not in TOOLS


def test_repeat_query_asks_the_same_again():
    assert reply(LATER, repeat_query=1).tool_calls[0].arguments == CALL.arguments
    assert reply(START, repeat_query=1).tool_calls[0].arguments != CALL.arguments
    assert "Tal" in reply(KNOWN, repeat_query=1).text


def test_forget_box_gives_the_answer_without_a_box():
    assert reply(KNOWN, forget_box=1).text == "Tal"


def test_open_box_is_not_closed():
    assert reply(KNOWN, open_box=1).text.endswith("\\boxed{Tal")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("rate_limit", ErrorKind.RATE_LIMIT),
        ("timeout", ErrorKind.TIMEOUT),
        ("context_error", ErrorKind.CONTEXT_LIMIT),
        ("truncation_error", ErrorKind.TRUNCATED),
    ],
)
def test_errors_of_the_provider_are_raised_with_their_kind(name, kind):
    with pytest.raises(ModelError, match="simulated") as caught:
        reply(LATER, **{name: 1})
    assert caught.value.kind is kind
    assert (caught.value.retry_after is not None) == (name == "rate_limit")
    assert (caught.value.window is not None) == (name == "context_error")


def test_arguments_are_not_cut_off_before_there_was_a_call():
    assert reply(START, truncation_error=1).tool_calls


def test_slip_takes_another_name_of_the_same_text():
    text = f"[d1] A: {TASK.prompt[8:-1].capitalize()} is Tal. The capital of Xu is Ver. It is old."
    messages = (*LATER[:-1], Message.tool(text, tool_call_id="1"))
    assert reply(messages, slip=1).text.endswith("\\boxed{Ver}")
    assert reply(messages).text.endswith("\\boxed{Tal}")


def test_a_slip_needs_something_to_mistake_it_for():
    assert reply(KNOWN, slip=1).text.endswith("\\boxed{Tal}")


def test_slip_copies_a_number_of_the_task_wrongly():
    messages = (START[0], Message.user("Compute 12 * 5."))
    call = reply(messages, slip=1).tool_calls[0]
    assert json.loads(call.arguments) == {"expression": "21 * 5"}
    assert json.loads(reply(messages).tool_calls[0].arguments) == {"expression": "12 * 5"}


def test_guess_names_something_of_the_context_in_place_of_unknown():
    hidden = (
        START[0],
        Message.user("What is the mayor of Osk?"),
        Message.assistant(None, [CALL]),
        Message.tool("[d1] Xu: Its mayor is Ana Voss.", tool_call_id="1"),
        Message.user("You cannot call tools any more."),
    )
    assert reply(hidden, guess=1).text.endswith("\\boxed{Ana Voss}")
    assert reply(hidden).text.endswith("\\boxed{unknown}")


def test_verbosity_adds_words_that_say_nothing():
    short, long = reply(KNOWN), reply(KNOWN, verbosity=1)
    assert 200 < len(long.text.split()) - len(short.text.split()) < 650
    assert long.text.endswith("\\boxed{Tal}")
    assert len(reply(START, verbosity=1).text.split()) > 200


def test_parallel_calls_look_up_two_things_at_once():
    messages = (START[0], Message.user("Which has the larger depth: Osk or Tal?"))
    assert len(reply(messages, parallel_calls=1).tool_calls) == 2
    assert len(reply(messages).tool_calls) == 1
    ids = {call.provider_id for call in reply(messages, parallel_calls=1).tool_calls}
    assert len(ids) == 2


@pytest.mark.parametrize("name", RATES)
def test_a_rate_of_1_gives_a_legal_reply_or_an_error_with_a_kind(name):
    kinds = []
    for messages in (START, LATER, KNOWN):
        try:
            got = reply(messages, **{name: 1})
        except ModelError as error:
            kinds.append(error.kind)
            continue
        assert got.finish_reason in ("stop", "tool_calls", "length")
        assert (got.finish_reason == "tool_calls") <= bool(got.tool_calls)
        assert got.usage.input_tokens > 0
        assert all(call.name and call.provider_id and call.id == "" for call in got.tool_calls)
    assert ErrorKind.UNKNOWN not in kinds


def test_failures_come_at_their_rate_and_independently():
    refused = cut = both = 0
    for i in range(3000):
        one = reply(draw=f"{i}", empty=0.3, rate_limit=0)
        refused += one.text is None and not one.tool_calls
        two = reply(draw=f"{i}", cut_by_length=0.3)
        cut += two.finish_reason == "length"
        both += one.text is None and not one.tool_calls and two.finish_reason == "length"
    assert abs(both / 3000 - refused / 3000 * cut / 3000) < 0.03


# -- the fit to traces -------------------------------------------------------------------------


@dataclass
class Line:
    data: dict[str, Any]


@dataclass
class FakeTrace:
    """The little a fit needs of a trace."""

    lines: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def of(self, kind):
        return [Line(data) for name, data in self.lines if name == kind]


@dataclass
class FakeRun:
    trace: FakeTrace


def recorded(profile_, *, seeds=6):
    """Runs of the simulated model, written down as a trace would have them."""
    runs = []
    for seed in range(seeds):
        for task in WORLD.tasks:
            done = Loop(SimulatedModel(profile_), TOOLS, recover=False).run(task.prompt, seed=seed)
            runs.append(FakeRun(written(done, task)))
    return runs


def written(done, task):
    lines = []
    for error in done.errors:
        lines.append(("model.request", {"outcome": str(error.kind), "step": 9}))
    for got in done.replies:
        data = {"outcome": "ok", "step": 9, "finish_reason": got.finish_reason}
        lines.append(("model.request", data))
    for index, message in enumerate(done.messages):
        lines.append(("message", {"index": index, "message": message.to_dict(), "step": index}))
    for call in done.calls:
        result = next(m.text for m in done.messages if m.tool_call_id == call.id)
        data = {"name": call.name, "arguments": call.arguments, "step": 2, "status": "success"}
        if "unknown tool" in result:
            data |= {"status": "rejected", "reason": "unknown_tool"}
        elif result.startswith("Error"):
            data |= {"status": "failed", "reason": "parameter_error"}
        lines += [("tool.started", data), ("tool.finished", data)]
    end = {"output": done.text, "answer": done.answer, "correct": done.answer == task.expected}
    lines.append(("run.finished", end))
    return FakeTrace(lines)


def test_a_fit_finds_the_rates_that_made_the_runs():
    true = FailureProfile(
        refuse=0.05, empty=0.05, text_call_hermes=0.08, broken_arguments=0.08, wrong_tool=0.05,
        misnamed_argument=0.05, repeat_query=0.1, forget_box=0.15, rate_limit=0.05, timeout=0.03,
        cut_by_length=0.04, verbosity=0.3,
    )  # fmt: skip
    fitted = FailureProfile.from_traces(recorded(true))
    for name, rate in true.rates().items():
        assert rate / 2.5 < fitted.rate(name) < rate * 2.5, name
    assert fitted.text_call_bare < 0.02
    assert fitted.name == "fitted"


def test_what_was_never_seen_is_rare_but_not_impossible():
    fitted = FailureProfile.from_traces(recorded(FailureProfile(), seeds=1))
    assert 0 < fitted.refuse < 0.001
    assert fitted.refuse_persistent == pytest.approx(0.01 / (len(WORLD.tasks) + 1), rel=0.2)


def test_what_a_trace_cannot_show_stays_0_with_a_note():
    fitted = FailureProfile.from_traces(recorded(FailureProfile(), seeds=1), name="mine")
    assert (fitted.guess, fitted.parallel_calls) == (0, 0)
    assert any(note.startswith("guess: whether") for note in fitted.notes)
    nothing = FailureProfile.from_traces([])
    assert nothing.rates() == {}
    assert sum("no opportunity in these runs" in note for note in nothing.notes) > 10


def test_a_run_that_only_declines_counts_as_a_lasting_refusal():
    texts = ["I'm sorry, but I can't help with that.", "I cannot assist with this request."]
    lines = [
        ("message", {"index": i, "step": i, "message": {"role": "assistant", "content": text}})
        for i, text in enumerate(texts)
    ]
    fitted = FailureProfile.from_traces([FakeRun(FakeTrace(lines))] * 10)
    assert fitted.refuse_persistent > 0.9
    assert fitted.refuse == 0


def test_wrong_answers_count_as_slips_per_fact():
    lines = [("tool.finished", {"status": "success", "arguments": "{}"})] * 3
    runs = [
        FakeRun(FakeTrace([*lines, ("run.finished", {"answer": "x", "output": "x", "correct": c})]))
        for c in (True, False) * 20
    ]
    slip = FailureProfile.from_traces(runs).slip
    assert 1 - (1 - slip) ** 3 == pytest.approx(0.5, abs=0.02)


def test_temperature_is_no_hidden_rate():
    model = SimulatedModel(FailureProfile(refuse=0.3))
    shares = []
    for temperature in (0.0, 1.5):
        sampling = Sampling(temperature=temperature)
        hits = [
            model.reply(ModelRequest(messages=START, tools=SPECS, draw=str(i), sampling=sampling))
            for i in range(800)
        ]
        shares.append(sum(not h.tool_calls for h in hits) / 800)
    assert abs(shares[0] - shares[1]) < 0.08
