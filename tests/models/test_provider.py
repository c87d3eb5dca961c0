"""The simulated agent behind litellm: the same replies, by the way every provider takes."""

import asyncio
import json
import logging

import pytest
from simworld import SYSTEM, Loop, make_world, tools_over

from axislab.config import Sampling
from axislab.errors import ErrorKind, ModelError
from axislab.messages import Message, ToolCall
from axislab.models import provider
from axislab.models._litellm import load_litellm, provider_handler, quiet
from axislab.models.base import ModelRequest
from axislab.models.faults import FailureProfile, profile
from axislab.models.litellm_model import LiteLLMModel
from axislab.models.sim_draws import draw_key
from axislab.models.simulated import SimulatedModel, simulated_model

WORLD = make_world(0)
TOOLS = tools_over(WORLD)
SPECS = tuple(tool.spec for tool in TOOLS.values())
CALLED = (
    Message.system(SYSTEM),
    Message.user("What is the capital of Osk?"),
    Message.assistant(None, [ToolCall(id="1", name="search", arguments='{"query": "Osk"}')]),
    Message.tool("[d1] Osk: Its capital is Tal.", tool_call_id="1"),
)


@pytest.fixture(scope="module", autouse=True)
def registered():
    provider.register()


def wire(messages=CALLED):
    from axislab.models.outgoing import wire_messages

    return wire_messages(messages)


def completion(**options):
    options = {"model": "axislab/simulated-clean", "messages": wire(), **options}
    with quiet:
        return load_litellm().completion(max_retries=0, **options)


def pieces(**options):
    with quiet:
        return list(completion(stream=True, **options))


def text_of(chunks):
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


class Through:
    """A model behind litellm, in the shape the loop wants."""

    def __init__(self, name, run, **options):
        self.model, self.run = LiteLLMModel(name, **options), run

    def reply(self, request):
        return self.run(self.model.complete(request))


@pytest.mark.parametrize(
    "name",
    ["axislab/simulated", *(f"axislab/simulated-{p}" for p in ("clean", "stubborn", "verbose"))],
)
def test_every_preset_is_a_model_of_litellm_and_answers_as_it_does_directly(name, run):
    through, direct = Through(name, run), simulated_model(name)
    for task in WORLD.tasks[:6]:
        a = Loop(through, TOOLS).run(task.prompt, task_id=task.id)
        b = Loop(direct, TOOLS).run(task.prompt, task_id=task.id)
        assert a.text == b.text
        assert [c.arguments for c in a.calls] == [c.arguments for c in b.calls]
        assert [r.usage for r in a.replies] == [r.usage for r in b.replies]
        assert [r.request_id for r in a.replies] == [r.request_id for r in b.replies]
        assert [e.kind for e in a.errors] == [e.kind for e in b.errors]


def test_litellm_model_knows_it_is_simulated_and_how_it_fails():
    model = LiteLLMModel("axislab/simulated-stubborn")
    assert model.simulated
    assert model.info["profile"] == "stubborn"
    assert model.info["rates"] == profile("stubborn").rates()
    model.check()


def test_a_misspelt_preset_is_found_before_the_first_request(run):
    with pytest.raises(ModelError, match="did you mean 'axislab/simulated-clean'") as caught:
        LiteLLMModel("axislab/simulated-claen").check()
    assert caught.value.kind is ErrorKind.NOT_FOUND
    with pytest.raises(load_litellm().exceptions.NotFoundError, match="did you mean"):
        completion(model="axislab/simulated-claen")


def test_a_provider_receives_the_draw_key_and_nothing_about_the_task(run):
    seen = []
    handler = provider_handler("axislab")
    reply = handler.reply
    handler.reply = lambda model, messages, params: (
        seen.append((model, messages, dict(params))) or reply(model, messages, params)
    )
    try:
        task = WORLD.tasks[0]
        draw = draw_key(seed=7, task=f"id-{task.id}-of-the-task", arm="name-of-the-arm")
        request = ModelRequest(
            messages=(Message.system(SYSTEM), Message.user(task.prompt)),
            tools=SPECS,
            sampling=Sampling(temperature=0.5),
            purpose="name-of-the-purpose",
            draw=draw,
        )
        run(LiteLLMModel("axislab/simulated-clean").complete(request))
    finally:
        del handler.reply
    ((model, messages, params),) = seen
    assert model == "simulated-clean"
    assert params["axislab_draw"] == draw
    known = {"axislab_draw", "temperature", "max_tokens", "tools", "stream", "max_retries"}
    assert set(params) <= known
    assert [set(message) for message in messages] == [{"role", "content"}] * 2
    received = json.dumps([messages, {k: str(v) for k, v in params.items()}])
    for hidden in (task.expected, "of-the-task", "name-of-the-arm", "name-of-the-purpose"):
        assert hidden not in received


def test_the_draw_key_arrives_plain_streamed_and_with_drop_params():
    request_ids = {completion(axislab_draw="k").id, completion(axislab_draw="k").id}
    assert len(request_ids) == 1
    assert completion(axislab_draw="k", drop_params=True).id in request_ids
    assert completion(axislab_draw="other").id not in request_ids
    verbose = "axislab/simulated-verbose"
    words = [text_of(pieces(axislab_draw=key, model=verbose)) for key in ("k", "k", "other")]
    assert words[0] == words[1] != words[2]


def test_other_custom_providers_stay_registered():
    litellm = load_litellm()
    before = list(litellm.custom_provider_map)

    class Other(litellm.CustomLLM):
        pass

    mine = {"provider": "someone-elses", "custom_handler": Other()}
    try:
        litellm.custom_provider_map = [mine, *before]
        provider.register()
        assert mine in litellm.custom_provider_map
        names = [item["provider"] for item in litellm.custom_provider_map]
        assert names.count("axislab") == 1
    finally:
        litellm.custom_provider_map = before
        provider.register()


def test_plain_awaited_and_streamed_replies_are_the_same(run):
    plain = completion(tools=[])
    assert plain.choices[0].message.content.endswith("\\boxed{Tal}")

    async def awaited():
        with quiet:
            return await load_litellm().acompletion(
                model="axislab/simulated-clean", messages=wire()
            )

    async def streamed():
        with quiet:
            stream = await load_litellm().acompletion(
                model="axislab/simulated-clean", messages=wire(), stream=True
            )
            return [chunk async for chunk in stream]

    assert run(awaited()).choices[0].message.content == plain.choices[0].message.content
    for chunks in (pieces(), run(streamed())):
        assert text_of(chunks) == plain.choices[0].message.content
        assert chunks[-1].choices[0].finish_reason == "stop"


def test_a_stream_carries_tool_calls_and_usage():
    tools = [spec.to_dict() for spec in SPECS]
    options = {"messages": wire(CALLED[:2]), "tools": tools}
    plain = completion(**options)
    assert plain.choices[0].finish_reason == "tool_calls"
    chunks = pieces(stream_options={"include_usage": True}, **options)
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    (streamed,) = [call for delta in deltas for call in delta.tool_calls or []]
    whole = plain.choices[0].message.tool_calls[0]
    assert streamed.function.arguments == whole.function.arguments
    assert streamed.id == whole.id
    usage = next(chunk.usage for chunk in reversed(chunks) if getattr(chunk, "usage", None))
    assert usage.prompt_tokens == plain.usage.prompt_tokens
    assert usage.completion_tokens == plain.usage.completion_tokens


def test_tool_choice_none_offers_no_tools():
    tools = [spec.to_dict() for spec in SPECS]
    reply = completion(messages=wire(CALLED[:2]), tools=tools, tool_choice="none")
    assert reply.choices[0].message.tool_calls is None


def test_a_profile_and_a_window_may_come_with_the_call():
    assert completion(axislab_profile={"empty": 1.0}).choices[0].message.content in (None, "")
    refusing = completion(model="axislab/simulated", axislab_profile="clean")
    assert refusing.choices[0].message.content.endswith("\\boxed{Tal}")
    with pytest.raises(load_litellm().exceptions.ContextWindowExceededError):
        completion(axislab_window=10)
    with pytest.raises(load_litellm().exceptions.NotFoundError, match="flakey"):
        completion(axislab_profile="flakey")


@pytest.mark.parametrize("name", ["rate_limit", "timeout", "context_error", "truncation_error"])
def test_errors_are_litellms_own_and_mean_the_same_as_directly(name, run):
    rates = {name: 1.0}
    request = ModelRequest(messages=CALLED, tools=SPECS)
    with pytest.raises(ModelError) as direct:
        SimulatedModel(FailureProfile(**rates)).reply(request)
    model = LiteLLMModel("axislab/simulated", axislab_profile=rates)
    with pytest.raises(ModelError) as through:
        run(model.complete(request))
    assert isinstance(through.value.original, load_litellm().exceptions.APIError | Exception)
    assert not isinstance(through.value.original, ModelError)
    assert through.value.kind is direct.value.kind
    assert through.value.window == direct.value.window
    assert through.value.retry_after == direct.value.retry_after


def test_nothing_is_printed_or_logged(capfd, caplog):
    with caplog.at_level(logging.WARNING):
        completion()
        pieces()
    out = capfd.readouterr()
    assert (out.out, out.err) == ("", "")
    assert not [r for r in caplog.records if r.name.startswith("LiteLLM")]


def test_many_calls_at_once_get_their_own_draws(run):
    model = LiteLLMModel("axislab/simulated-verbose")

    async def many():
        requests = [ModelRequest(messages=CALLED, tools=SPECS, draw=str(i)) for i in range(16)]
        return await asyncio.gather(*(model.complete(r) for r in requests), return_exceptions=True)

    replies = [r for r in run(many()) if not isinstance(r, ModelError)]
    assert len({r.request_id for r in replies}) == len(replies) >= 14
