"""Random draws of the simulated agent: deterministic, independent, and tied to causes."""

import json
from dataclasses import replace
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simworld import SYSTEM, Loop, Task, intraclass, make_world, tools_over

from axislab.config import EARLY_STOP_PROMPT, FORMAT_REPROMPT, Sampling
from axislab.messages import Message, ToolCall
from axislab.models.base import ModelRequest
from axislab.models.faults import FailureProfile, profile
from axislab.models.sim_draws import (
    Draws,
    call_draws,
    difficulty,
    draw_key,
    given_difficulty,
    with_odds,
)
from axislab.models.simulated import SimulatedModel

WORLD = make_world(0)
TOOLS = tools_over(WORLD)
SPECS = tuple(tool.spec for tool in TOOLS.values())
# One of average difficulty, so that rates are about what they say.
MID = min(WORLD.tasks[::5], key=lambda task: abs(difficulty(task.prompt)))
ASK = (Message.system(SYSTEM), Message.user(MID.prompt))


def uniform(draw, name="x", messages=ASK, sampling=None):
    return call_draws(draw, messages, sampling or Sampling()).uniform(name)


def request(draw="", *messages, task=MID):
    visible = (Message.system(SYSTEM), Message.user(task.prompt), *messages)
    return ModelRequest(messages=visible, tools=SPECS, draw=draw)


# -- keys --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [{"seed": 2}, {"task": "u"}, {"repeat": 1}, {"purpose": "p"}, {"sent": 1}, {"arm": "b"}],
)
def test_every_part_of_a_key_gives_other_draws(change):
    base = {"seed": 1, "task": "t", "arm": "a"}
    assert uniform(draw_key(**base)) == uniform(draw_key(**base))
    assert uniform(draw_key(**base)) != uniform(draw_key(**{**base, **change}))


def test_common_coupling_leaves_the_arm_out():
    keys = {draw_key(seed=1, task="t", arm=arm, coupling="common") for arm in ("a", "b", None)}
    assert len(keys) == 1


def test_a_key_tells_nothing_about_the_task():
    assert "secret" not in draw_key(seed=1, task="secret", arm="secret", purpose="secret")


def test_the_first_part_of_a_key_stays_the_same_through_a_run():
    keys = [draw_key(seed=1, task="t", purpose=p, sent=n) for p in ("a", "b") for n in (0, 1)]
    assert len({key.partition(":")[0] for key in keys}) == 1
    assert len(set(keys)) == 4


def test_visible_messages_and_sampling_give_other_draws():
    assert uniform("k") != uniform("k", messages=ASK[:1])
    assert uniform("k") != uniform("k", sampling=Sampling(temperature=0.5))
    assert uniform("k") != uniform("k", sampling=Sampling(max_output_tokens=5))
    call = ToolCall(id="1", name="a", arguments="{}")
    told = [*ASK, Message.assistant(None, [call])]
    other = [*ASK, Message.assistant(None, [replace(call, name="b")])]
    assert uniform("k", messages=told) != uniform("k", messages=other)
    same = [*ASK, Message.assistant(None, [replace(call, id="2", arguments="{not json")])]
    assert uniform("k", messages=told) == uniform("k", messages=same)


@given(st.text(), st.text(min_size=1, max_size=8))
def test_a_draw_is_between_0_and_1_and_depends_on_its_name(key, name):
    draws = call_draws(key, ASK, Sampling())
    assert 0 <= draws.uniform(name) < 1
    assert draws.uniform(name) != draws.uniform(name + "x")
    assert draws.pick("abc", name) in "abc"


def correlation(xs, ys):
    n, mx, my = len(xs), sum(xs) / len(xs), sum(ys) / len(ys)
    top = sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True)) / n
    return top / sqrt(sum((x - mx) ** 2 for x in xs) * sum((y - my) ** 2 for y in ys)) * n


def test_draws_under_different_names_and_keys_are_independent():
    rows = [Draws(str(i).encode()) for i in range(4000)]
    a, b = [d.uniform("refuse") for d in rows], [d.uniform("empty") for d in rows]
    assert abs(sum(a) / len(a) - 0.5) < 0.02
    assert abs(correlation(a, b)) < 0.05
    assert abs(correlation(a[:-1], a[1:])) < 0.05


def test_two_arms_draw_independently_and_in_common_the_same():
    model = SimulatedModel(FailureProfile(refuse=0.5))

    def refused(arm, coupling):
        keys = (draw_key(seed=s, task="t", arm=arm, coupling=coupling) for s in range(400))
        return [model.reply(request(key)).tool_calls == () for key in keys]

    a, b = refused("a", "independent"), refused("b", "independent")
    assert abs(correlation(a, b)) < 0.15
    assert refused("a", "common") == refused("b", "common")


def test_the_same_request_sent_again_draws_again():
    model = SimulatedModel(FailureProfile(refuse=0.5))
    replies = [
        model.reply(request(draw_key(seed=0, task="t", sent=n))).finish_reason for n in range(12)
    ]
    assert len(set(replies)) == 2


# -- difficulty --------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.8])
def test_difficulty_spreads_a_rate_and_keeps_its_mean(rate):
    rates = [given_difficulty(rate, difficulty(f"task {i}"), 0.5) for i in range(4000)]
    assert abs(sum(rates) / len(rates) - rate) < 0.02
    assert min(rates) < rate / 3
    assert max(rates) > min(0.95, rate * 2)


def test_difficulty_leaves_never_and_always_alone():
    for hardness in (-3.0, 3.0):
        assert given_difficulty(0.0, hardness, 0.5) == 0.0
        assert given_difficulty(1.0, hardness, 0.5) == 1.0
        assert given_difficulty(0.3, hardness, 0.0) == 0.3
    assert with_odds(0.0, 9.0) == 0.0
    assert with_odds(1.0, 0.1) == 1.0
    assert with_odds(0.5, 3.0) == 0.75


def test_repeats_of_one_task_correlate_between_02_and_06():
    rows = []
    for seed in (0, 1):
        world = make_world(seed)
        loop = Loop(SimulatedModel("flaky"), tools_over(world))
        rows += [
            [loop.run(t.prompt, repeat=r, task_id=t.id).answer == t.expected for r in range(8)]
            for t in world.tasks
        ]
    assert 0.2 <= intraclass(rows) <= 0.6


def test_difficulty_belongs_to_the_question_whatever_stands_around_it():
    model = SimulatedModel(FailureProfile(refuse=0.3))

    def share(prompt):
        messages = (Message.user(prompt),)
        hits = [
            model.reply(ModelRequest(messages=messages, tools=SPECS, draw=str(i))).tool_calls == ()
            for i in range(300)
        ]
        return sum(hits) / len(hits)

    question = MID.prompt
    assert abs(share(question) - share(f"Please help.\n{question}\nTake care.")) < 0.12


# -- causes ------------------------------------------------------------------------------------


def test_a_lasting_refusal_persists_through_the_retries_of_a_task():
    model = SimulatedModel(FailureProfile(refuse_persistent=0.4))
    refusing = 0
    for task in WORLD.tasks:
        replies = [
            model.reply(
                request(draw_key(seed=0, task=task.id, sent=n, purpose=p), *more, task=task)
            )
            for n in range(3)
            for p in ("main_loop", "final_answer")
            for more in ((), (Message.assistant("hm"), Message.user(EARLY_STOP_PROMPT)))
        ]
        kinds = {is_refusal(reply.text) for reply in replies}
        assert len(kinds) == 1, task
        refusing += kinds == {True}
    assert 0.2 <= refusing / len(WORLD.tasks) <= 0.6


def test_lasting_refusals_mostly_hit_the_same_tasks_in_every_repeat():
    model = SimulatedModel(FailureProfile(refuse_persistent=0.4))

    def refused(seed):
        keys = [(t, draw_key(seed=seed, task=t.id)) for t in WORLD.tasks]
        return [is_refusal(model.reply(request(key, task=t)).text) for t, key in keys]

    assert correlation(refused(0), refused(1)) > 0.4
    assert refused(0) != refused(1)


def is_refusal(text):
    return any(word in (text or "").lower() for word in ("sorry", "apologize", "cannot complete"))


def padded(words):
    return (Message.user("word " * words), Message.assistant("Go on."), ASK[1])


def rate_of(test, profile_, *, messages, seeds=600):
    model = SimulatedModel(profile_)
    hits = 0
    for seed in range(seeds):
        visible = (Message.system(SYSTEM), *messages)
        reply = model.reply(ModelRequest(messages=visible, tools=SPECS, draw=str(seed)))
        hits += test(reply)
    return hits / seeds


def test_a_full_context_raises_malformed_replies_smoothly():
    def as_text(reply):
        return "<tool_call>" in (reply.text or "")

    shy = FailureProfile(text_call_hermes=0.1)
    rates = [rate_of(as_text, shy, messages=padded(n)) for n in (10, 4000, 9000, 20000)]
    assert rates == sorted(rates)
    assert rates[0] < 0.2
    assert rates[-1] > 2 * rates[0]
    assert rates[2] - rates[1] < 0.3
    assert rate_of(as_text, FailureProfile(), messages=padded(20000), seeds=20) == 0


def test_a_full_context_does_not_raise_other_failures():
    def refused(reply):
        return is_refusal(reply.text)

    shy = FailureProfile(refuse=0.3)
    few, many = (rate_of(refused, shy, messages=padded(n)) for n in (10, 20000))
    assert abs(few - many) < 0.1


def test_after_a_complaint_about_the_form_it_mends_its_ways():
    def as_text(reply):
        return "<tool_call>" in (reply.text or "")

    shy = FailureProfile(text_call_hermes=0.4)
    bad = Message.assistant('<tool_call>{"name": "search"}</tool_call>')
    before = rate_of(as_text, shy, messages=(ASK[1],))
    after = rate_of(as_text, shy, messages=(ASK[1], bad, Message.user(FORMAT_REPROMPT)))
    assert after < before / 2


def test_a_complaint_about_arguments_is_followed_by_a_valid_call():
    clumsy = FailureProfile(broken_arguments=0.5)
    call = ToolCall(id="1", name="search", arguments='{"query": "capital')
    told = (
        ASK[1],
        Message.assistant(None, [call]),
        Message.tool("Error: the arguments are not valid JSON.", tool_call_id="1"),
    )

    def broken(reply):
        try:
            return not isinstance(json.loads(reply.tool_calls[0].arguments), dict)
        except ValueError:
            return True

    assert rate_of(broken, clumsy, messages=told) < rate_of(broken, clumsy, messages=told[:1]) / 2


def test_a_fact_is_read_the_same_way_throughout_an_attempt_and_afresh_in_the_next():
    model = SimulatedModel(FailureProfile(slip=0.5))
    loop = Loop(model, TOOLS)
    task = Task("t", MID.prompt, MID.expected)
    first = loop.run(task.prompt, seed=3)
    again = [
        model.reply(replace(first.requests[-1], draw=f"{first.requests[-1].draw}{n}")).text
        for n in range(5)
    ]
    assert len(set(again)) == 1
    answers = {loop.run(f"{task.prompt}\nAttempt {n}.", seed=3).answer for n in range(30)}
    assert task.expected in answers
    assert len(answers) > 1


def test_it_cannot_see_the_names_of_policies_or_arms():
    fields = set(ModelRequest.__dataclass_fields__)
    assert fields == {"messages", "tools", "sampling", "purpose", "draw"}
    model = SimulatedModel(profile("clean"))
    base = request("k")
    assert model.reply(base) == model.reply(replace(base, purpose="anything"))
