"""The key of a request: what changes it, what does not, and that it tells nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, create_model

from axislab.config import Sampling
from axislab.messages import Message, Role, ToolCall, ToolSpec
from axislab.models import request_key as module
from axislab.models.base import ModelRequest
from axislab.models.litellm_model import LiteLLMModel
from axislab.models.price import Price
from axislab.models.request_key import request_key
from axislab.models.scripted import ScriptedModel

BASE = "http://localhost:8000/v1"
SEARCH = ToolSpec(
    name="search",
    description="Find documents.",
    parameters={"type": "object", "properties": {"query": {"type": "string"}}},
)


def talk(first="call_1", second="call_2", *, theirs=("abc", "def"), swapped=False):
    """Two calls and their results; ids are given, and may be answered crosswise."""
    calls = [
        ToolCall(id=first, name="search", arguments='{"query": "a"}', provider_id=theirs[0]),
        ToolCall(id=second, name="search", arguments='{"query": "b"}', provider_id=theirs[1]),
    ]
    answered = (second, first) if swapped else (first, second)
    return [
        Message.system("Be brief."),
        Message.user("Who?"),
        Message.assistant("Looking.", calls, reasoning="Hm."),
        Message.tool("one", tool_call_id=answered[0], name="search"),
        Message.tool("two", tool_call_id=answered[1], name="search"),
    ]


REQUEST = ModelRequest(
    messages=talk(),
    tools=(SEARCH,),
    sampling=Sampling(temperature=0.7, extra={"seed": 1, "stop": ["\n"]}),
    draw="f00:main_loop:1",
)


def model(name="hosted_vllm/qwen", *, api_base=BASE, **options):
    return LiteLLMModel(name, api_base=api_base, **options)


KEY = request_key(model(), REQUEST)


def with_message(place, **changes):
    messages = talk()
    messages[place] = replace(messages[place], **changes)
    return replace(REQUEST, messages=messages)


def with_call(**changes):
    message = talk()[2]
    return with_message(2, tool_calls=(replace(message.tool_calls[0], **changes),))


def with_sampling(**changes):
    return replace(REQUEST, sampling=REQUEST.sampling.model_copy(update=changes))


def with_tool(**changes):
    return replace(REQUEST, tools=(replace(SEARCH, **changes),))


OTHER_REQUESTS = {
    "content of the system message": with_message(0, content="Be long."),
    "content of the question": with_message(1, content="Who? "),
    "role": with_message(1, role=Role.SYSTEM),
    "reasoning": with_message(2, reasoning="Hm!"),
    "text beside the calls": with_message(2, content=None),
    "empty text is not no text": with_message(2, content=""),
    "name of a call": with_call(name="find"),
    "arguments of a call": with_call(arguments='{"query": "c"}'),
    "a result": with_message(3, content="One"),
    "results of the calls swapped": replace(REQUEST, messages=talk(swapped=True)),
    "one message more": replace(REQUEST, messages=[*talk(), Message.user("So?")]),
    "one message less": replace(REQUEST, messages=talk()[:-1]),
    "order of messages": replace(REQUEST, messages=talk()[::-1]),
    "no tools": replace(REQUEST, tools=()),
    "name of a tool": with_tool(name="find"),
    "description of a tool": with_tool(description="Find."),
    "parameters of a tool": with_tool(parameters={"type": "object"}),
    "a second tool": replace(REQUEST, tools=(SEARCH, replace(SEARCH, name="b"))),
    "temperature": with_sampling(temperature=0.8),
    "no temperature": with_sampling(temperature=None),
    "top_p": with_sampling(top_p=0.5),
    "max_output_tokens": with_sampling(max_output_tokens=7),
    "reasoning_effort": with_sampling(reasoning_effort="low"),
    "extra: the provider's seed": with_sampling(extra={"seed": 2, "stop": ["\n"]}),
    "extra: one less": with_sampling(extra={"seed": 1}),
    "extra: inside a list": with_sampling(extra={"seed": 1, "stop": ["\n\n"]}),
    "extra: a name that looks secret": with_sampling(extra={**REQUEST.sampling.extra, "key": 1}),
    "purpose": replace(REQUEST, purpose="final_answer"),
    "draw: seed, task, repeat or arm": replace(REQUEST, draw="f01:main_loop:1"),
    "draw: sent again": replace(REQUEST, draw="f00:main_loop:2"),
}
OTHER_MODELS = {
    "name": model("hosted_vllm/qwen2"),
    "address": model(api_base="http://localhost:8001/v1"),
    "parameter of every call": model(top_k=4),
    "nested parameter": model(extra_body={"mode": "a"}),
    "nested parameter of another value": model(extra_body={"mode": "b"}),
    "header": model(extra_headers={"x-beta": "thinking"}),
}


@pytest.mark.parametrize("what", OTHER_REQUESTS)
def test_another_request_has_another_key(what):
    assert request_key(model(), OTHER_REQUESTS[what]) != KEY


@pytest.mark.parametrize("what", OTHER_MODELS)
def test_another_model_has_another_key(what):
    assert request_key(OTHER_MODELS[what], REQUEST) != KEY


def test_no_two_of_all_these_share_a_key():
    keys = [request_key(model(), request) for request in OTHER_REQUESTS.values()]
    keys += [request_key(other, REQUEST) for other in OTHER_MODELS.values()]
    keys += [KEY, request_key(model(), REQUEST, sent=2), request_key(model(), REQUEST, sent=3)]
    assert len(set(keys)) == len(keys)


def test_another_schema_finds_nothing_of_before(monkeypatch):
    monkeypatch.setattr(module, "CACHE_SCHEMA", module.CACHE_SCHEMA + 1)
    assert request_key(model(), REQUEST) != KEY


SAME_REQUESTS = {
    "the provider's ids": replace(REQUEST, messages=talk(theirs=("x1", "x2"))),
    "no ids of the provider": replace(REQUEST, messages=talk(theirs=(None, None))),
    "our own ids, which count the run's calls": replace(REQUEST, messages=talk("call_8", "z")),
    "a retry": replace(REQUEST, draw="f00:main_loop:1#3"),
    "order of extra": with_sampling(extra={"stop": ["\n"], "seed": 1}),
    "tuple or list of messages": replace(REQUEST, messages=tuple(talk())),
    "a marker, which is not sent": replace(
        REQUEST, messages=[*talk(), Message(role=Role.RUNTIME, content="{}", name="rollback")]
    ),
}
SAME_MODELS = {
    "the key": model(api_key="sk-plant-1"),
    "credentials in the address": model(api_base="http://me:pw@localhost:8000/v1"),
    "a slash after the address": model(api_base=f"{BASE}/"),
    "the price": model(price=Price(input=1, output=2)),
    "the timeout": model(timeout=3),
    "a secret parameter": model(aws_session_token="t0k3n"),
}


@pytest.mark.parametrize("what", SAME_REQUESTS)
def test_the_same_request_has_the_same_key_whatever_its(what):
    assert request_key(model(), SAME_REQUESTS[what]) == KEY


@pytest.mark.parametrize("what", SAME_MODELS)
def test_the_same_model_has_the_same_key_whatever_its(what):
    assert request_key(SAME_MODELS[what], REQUEST) == KEY


def test_a_draw_of_ones_own_may_hold_a_number_sign():
    keys = [request_key(model(), replace(REQUEST, draw=f"case#{n}")) for n in range(3)]
    assert len(set(keys)) == 3


def test_keys_inside_headers_do_not_count():
    one = model(extra_headers={"Authorization": "Bearer a", "x-beta": "1"})
    two = model(extra_headers={"Authorization": "Bearer b", "x-beta": "1"})
    assert request_key(one, REQUEST) == request_key(two, REQUEST)


def test_an_address_of_the_environment_counts(monkeypatch):
    plain = LiteLLMModel("openai/gpt-4o-mini")
    before = request_key(plain, REQUEST)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:9000/v1")
    assert request_key(plain, REQUEST) != before


def test_models_of_two_classes_with_one_name_are_two():
    class Mine(ScriptedModel):
        pass

    assert request_key(Mine(["a"]), REQUEST) != request_key(ScriptedModel(["a"]), REQUEST)


def test_an_edited_schema_class_is_another_one():
    def key(**fields):
        answer: type[BaseModel] = create_model("Answer", **fields)
        return request_key(model(), with_sampling(extra={"response_format": answer}))

    assert key(text=(str, ...)) == key(text=(str, ...))
    assert key(text=(str, ...)) != key(text=(int, ...))


def test_a_lone_surrogate_has_a_key():
    assert request_key(model(), with_message(1, content="half: \ud83d")) != KEY


CONTENTS = st.none() | st.text(max_size=8)
CALLS = st.builds(
    ToolCall,
    id=st.sampled_from(["a", "b", "c"]),
    name=st.sampled_from(["f", "g"]),
    arguments=st.text(max_size=4),
    provider_id=st.none() | st.text(max_size=3),
)
MESSAGES = st.lists(
    st.builds(
        Message,
        role=st.sampled_from([Role.USER, Role.ASSISTANT, Role.TOOL]),
        content=CONTENTS,
        tool_calls=st.lists(CALLS, max_size=2).map(tuple),
        tool_call_id=st.none() | st.sampled_from(["a", "b", "c"]),
    ),
    max_size=4,
)


def renamed(messages, names):
    """The messages with every id replaced by another, and the provider's ids lost."""
    return [
        replace(
            m,
            tool_calls=tuple(replace(c, id=names[c.id], provider_id="?") for c in m.tool_calls),
            tool_call_id=None if m.tool_call_id is None else names[m.tool_call_id],
        )
        for m in messages
    ]


@given(MESSAGES, st.permutations(["x", "y", "z"]))
def test_ids_may_have_any_names(messages, names):
    asked = ModelRequest(messages=messages)
    other = ModelRequest(messages=renamed(messages, dict(zip("abc", names, strict=True))))
    double = ScriptedModel(["a"])
    assert request_key(double, asked) == request_key(double, other)


@given(MESSAGES, MESSAGES)
def test_other_contents_have_other_keys(one, two):
    def seen(messages):
        return [
            (m.role, m.content, [(c.name, c.arguments) for c in m.tool_calls]) for m in messages
        ]

    if seen(one) != seen(two):
        double = ScriptedModel(["a"])
        first, second = ModelRequest(messages=one), ModelRequest(messages=two)
        assert request_key(double, first) != request_key(double, second)
