"""Models of ours streamed: scripted, simulated and local replies are the plain ones."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axislab.config import RetryPolicy, Sampling
from axislab.errors import ErrorKind, ModelError
from axislab.messages import Message, ToolSpec
from axislab.models.base import ChatModel, ModelReply, ModelRequest
from axislab.models.call import call_model
from axislab.models.deltas import Delta, DeltaKind, StreamingModel, streams
from axislab.models.litellm_model import LiteLLMModel
from axislab.models.local import LocalModel
from axislab.models.scripted import ScriptedModel
from axislab.models.simulated import SimulatedModel
from axislab.models.weights import find_weights

SEARCH = ToolSpec(
    name="search",
    description="Search the documents.",
    parameters={"type": "object", "properties": {"query": {"type": "string"}}},
)
ONCE = RetryPolicy(attempts=1, request_timeout=60)


def question(draw: str = "", *, tools: bool = True, **sampling: Any) -> ModelRequest:
    return ModelRequest(
        messages=[
            Message.system(r"Put your answer into \boxed{}."),
            Message.user("What is the capital of Osk?"),
        ],
        tools=(SEARCH,) if tools else (),
        draw=draw,
        sampling=Sampling(**sampling),
    )


async def outcome(
    model: ChatModel, request: ModelRequest, deltas: list[Delta] | None = None
) -> object:
    """The reply without its latency, or the kind of error."""
    try:
        reply = await call_model(
            model,
            request,
            retry=ONCE,
            emit=lambda _: None,
            call=0,
            step=0,
            on_delta=None if deltas is None else deltas.append,
        )
    except ModelError as error:
        return error.kind
    return replace(reply, latency=0.0)


def texts(deltas: list[Delta], kind: DeltaKind = DeltaKind.TEXT) -> list[str]:
    return [delta.text for delta in deltas if delta.kind is kind]


@pytest.mark.parametrize("preset", ["", "-clean", "-flaky", "-stubborn", "-verbose"])
def test_a_simulated_reply_streams_through_litellm_and_is_the_plain_one(
    run: Any, preset: str
) -> None:
    model = LiteLLMModel(f"axislab/simulated{preset}")

    async def compare() -> set[object]:
        kinds: set[object] = set()
        for number in range(40):
            request = question(f"draw-{number}")
            deltas: list[Delta] = []
            plain = await outcome(model, request)
            assert await outcome(model, request, deltas) == plain
            if isinstance(plain, ModelReply):
                assert "".join(texts(deltas)) == (plain.text or "")
                calls = texts(deltas, DeltaKind.CALL)
                assert calls == [call.name for call in plain.tool_calls]
            kinds.add(plain if isinstance(plain, ErrorKind) else bool(plain.tool_calls))
        return kinds

    kinds = run(compare())
    assert kinds & {True, False}
    assert preset == "-stubborn" or True in kinds


def test_what_fails_the_simulated_model_fails_it_streamed(run: Any) -> None:
    for rate, kind in (("timeout", ErrorKind.TIMEOUT), ("rate_limit", ErrorKind.RATE_LIMIT)):
        model = LiteLLMModel("axislab/simulated", axislab_profile={rate: 1.0})
        assert run(outcome(model, question())) is kind
        assert run(outcome(model, question(), [])) is kind


def test_models_that_stream_are_known_by_their_method() -> None:
    class Silly(ScriptedModel):
        stream = "a river"  # type: ignore[assignment]

    assert isinstance(ScriptedModel(["a"]), StreamingModel)
    assert streams(ScriptedModel(["a"]))
    assert streams(LiteLLMModel("openai/gpt-4o"))
    assert streams(LocalModel("smollm2-135m"))
    assert not streams(SimulatedModel("clean"))
    assert not streams(Silly(["a"]))


def test_a_model_that_cannot_stream_tells_its_reply_as_a_whole() -> None:
    model = SimulatedModel("clean")
    deltas: list[Delta] = []
    reply = asyncio.run(outcome(model, question("d"), deltas))
    assert isinstance(reply, ModelReply)
    assert texts(deltas) == ([reply.text] if reply.text else [])
    assert deltas[-1].kind is DeltaKind.END


@given(st.text(max_size=60))
def test_a_scripted_model_tells_its_words_and_nothing_is_lost(text: str) -> None:
    deltas: list[Delta] = []
    plain = asyncio.run(outcome(ScriptedModel([text]), question()))
    assert asyncio.run(outcome(ScriptedModel([text]), question(), deltas)) == plain
    assert "".join(texts(deltas)) == text
    assert len(texts(deltas)) <= max(1, len(text.split()) + 1)


def test_a_scripted_model_spreads_its_words_over_its_delay() -> None:
    async def first_and_whole() -> list[float]:
        loop = asyncio.get_running_loop()
        began, times = loop.time(), []
        model = ScriptedModel(["one two three four"], delay=0.2)
        await model.stream(question(), lambda _: times.append(loop.time() - began))
        return times

    times = asyncio.run(first_and_whole())
    assert len(times) == 4
    assert times[0] < 0.15
    assert times[-1] >= 0.19


def test_a_fault_of_the_hearer_ends_no_call(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Delta] = []

    def hear(delta: Delta) -> None:
        heard.append(delta)
        raise RuntimeError("no eyes")

    async def main() -> ModelReply:
        model = ScriptedModel(["a b c"])
        return await call_model(
            model, question(), retry=ONCE, emit=lambda _: None, call=0, step=0, on_delta=hear
        )

    assert asyncio.run(main()).text == "a b c"
    assert len(heard) == 1
    assert "no eyes" in caplog.text


def without_ids(reply: ModelReply) -> ModelReply:
    """The local engine makes new ids for every reply, and its cache grows."""
    calls = tuple(replace(call, provider_id=None) for call in reply.tool_calls)
    return replace(reply, request_id=None, usage=None, tool_calls=calls)


@pytest.mark.slow
@pytest.mark.skipif(find_weights("smollm2-135m") is None, reason="its weights are not here")
class TestTheLocalModel:
    """The real one, which streams while it computes."""

    @pytest.mark.parametrize("tools", [False, True])
    def test_its_reply_is_the_plain_one(self, run: Any, tools: bool) -> None:
        model = LiteLLMModel("axislab-local/smollm2-135m")
        request = question(tools=tools, temperature=0.0, max_output_tokens=24)
        # The engine keeps a prompt it has read, and what it computes anew may differ in the last
        # digits, which is another word where two are as likely: both calls find the prompt read.
        run(outcome(model, request))
        plain = run(outcome(model, request))
        deltas: list[Delta] = []
        streamed = run(outcome(model, request, deltas))
        assert isinstance(plain, ModelReply)
        assert isinstance(streamed, ModelReply)
        assert without_ids(streamed) == without_ids(plain)
        assert streamed.usage.output_tokens == plain.usage.output_tokens
        assert "".join(texts(deltas)) == (plain.text or "")
        if not tools:
            assert len(texts(deltas)) > 10

    def test_cancelling_stops_it_between_two_words(self, run: Any) -> None:
        async def main() -> int:
            heard: list[Delta] = []
            model = LiteLLMModel("axislab-local/smollm2-135m")
            request = question(tools=False, temperature=0.0, max_output_tokens=400)
            task = asyncio.create_task(outcome(model, request, heard))
            while len(heard) < 3:
                await asyncio.sleep(0.02)
            task.cancel()
            await asyncio.wait([task], timeout=2)
            assert task.cancelled()
            known = len(heard)
            await asyncio.sleep(0.3)
            assert heard[-1].kind is DeltaKind.DISCARDED
            return len(heard) - known

        assert run(main()) == 0
