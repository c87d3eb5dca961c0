"""The real local model; what needs its engine and weights is marked slow and skipped without."""

import asyncio
import importlib.util
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from axislab.config import RetryPolicy, Sampling
from axislab.errors import ConfigError, ErrorKind, ModelError
from axislab.messages import Message, ToolSpec
from axislab.models._litellm import OwnProvider, load_litellm, provider_handler, quiet
from axislab.models.base import ChatModel, ModelRequest
from axislab.models.call import call_model
from axislab.models.litellm_model import LiteLLMModel
from axislab.models.local import LocalModel, add_local_model, local_model
from axislab.models.resolve import resolve_model
from axislab.models.weights import FETCH, SMOLLM2, find_weights

HERE = importlib.util.find_spec("xllamacpp") is not None and find_weights() is not None
real = [
    pytest.mark.slow,
    pytest.mark.skipif(not HERE, reason=f"needs pip install 'axislab[local]' and {FETCH}"),
]
NAME = "axislab-local/smollm2-135m"
SEARCH = ToolSpec(
    name="search",
    description="Find documents.",
    parameters={
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
        "additionalProperties": False,
    },
)


def request(text: str, *, tools: tuple[ToolSpec, ...] = (), **sampling: Any) -> ModelRequest:
    sampling = {"max_output_tokens": 60, "temperature": 0, **sampling}
    return ModelRequest(messages=[Message.user(text)], tools=tools, sampling=Sampling(**sampling))


def test_it_is_a_chat_model_and_no_simulation() -> None:
    model = LocalModel()
    assert isinstance(model, ChatModel)
    assert (model.name, model.simulated) == (NAME, False)
    assert repr(model) == f"LocalModel('{NAME}')"


def test_an_unknown_name_needs_a_file() -> None:
    with pytest.raises(ConfigError, match="give gguf="):
        LocalModel("other")
    with pytest.raises(ModelError, match="did you mean 'smollm2-135m'") as raised:
        local_model("axislab-local/smolm2-135m")
    assert raised.value.kind is ErrorKind.NOT_FOUND


def test_missing_weights_are_found_before_the_first_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AXISLAB_WEIGHTS", str(tmp_path))
    with pytest.raises(ModelError, match="python -m axislab local fetch") as raised:
        LiteLLMModel(NAME).check()
    assert raised.value.kind is ErrorKind.NOT_FOUND
    assert LocalModel().info == {"weights": None, "n_ctx": 4096}


def test_weights_that_are_not_the_known_ones_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AXISLAB_WEIGHTS", str(tmp_path))
    with (tmp_path / SMOLLM2.file).open("wb") as out:
        out.truncate(SMOLLM2.size)
    with pytest.raises(ModelError, match=r"damaged: .* --force"):
        LocalModel().check()


def test_a_file_of_ones_own_is_named_in_the_header_without_its_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.gguf"
    path.write_bytes(b"GGUF")
    add_local_model(LocalModel("mine", gguf=path, n_ctx=512))
    info = LiteLLMModel("axislab-local/mine").info
    assert (info["weights"], info["n_ctx"]) == ("mine.gguf", 512)
    assert len(info["sha256"]) == 64
    assert str(tmp_path) not in json.dumps(dict(info))
    with pytest.raises(ModelError, match=r"no such file: gone\.gguf"):
        LocalModel("gone", gguf=tmp_path / "gone.gguf").check()


def test_parameters_it_does_not_take_are_refused_by_name() -> None:
    with pytest.raises(ModelError, match="takes no best_of") as raised:
        asyncio.run(LocalModel().complete(request("a", extra={"best_of": 3})))
    assert raised.value.kind is ErrorKind.BAD_REQUEST


def test_its_provider_checks_and_describes() -> None:
    LiteLLMModel(NAME).info  # noqa: B018  (registers the provider)
    assert isinstance(provider_handler("axislab-local"), OwnProvider)


@pytest.fixture(scope="module")
def model() -> ChatModel:
    made = resolve_model(NAME)
    made.check()
    return made


class TestReal:
    pytestmark = real

    def test_it_replies_with_usage_and_no_cost(self, model: ChatModel, run: Any) -> None:
        reply = run(model.complete(request("Say hello.", max_output_tokens=12)))
        assert reply.text
        assert reply.usage.input_tokens > 5
        assert 0 < reply.usage.output_tokens <= 12
        assert reply.cost_usd is None
        assert reply.model == "smollm2-135m"

    def test_it_calls_a_tool_that_is_forced(self, model: ChatModel, run: Any) -> None:
        asked = request(
            "What is the capital of Osk?", tools=(SEARCH,), extra={"tool_choice": "required"}
        )
        reply = run(model.complete(asked))
        (call,) = reply.tool_calls
        assert (call.name, reply.finish_reason, reply.text) == ("search", "tool_calls", None)
        assert isinstance(json.loads(call.arguments)["query"], str)

    def test_a_cut_call_says_so(self, model: ChatModel, run: Any) -> None:
        asked = request("Look.", tools=(SEARCH,), max_output_tokens=12)
        asked.sampling.extra["tool_choice"] = "required"
        reply = run(model.complete(asked))
        assert reply.finish_reason == "length"

    def test_the_same_seed_says_the_same(self, model: ChatModel, run: Any) -> None:
        asked = request("Tell a story.", temperature=1.0, extra={"seed": 7}, max_output_tokens=20)
        assert len({run(model.complete(asked)).text for _ in range(2)}) == 1

    def test_a_prompt_that_does_not_fit_is_a_context_error(
        self, model: ChatModel, run: Any
    ) -> None:
        with pytest.raises(ModelError) as raised:
            run(model.complete(request("word " * 6000)))
        assert raised.value.kind is ErrorKind.CONTEXT_LIMIT
        assert raised.value.window == 4096
        assert (raised.value.requested or 0) > 6000

    def test_plain_litellm_raises_litellms_own_error(self) -> None:
        litellm = load_litellm()
        messages = [{"role": "user", "content": "word " * 6000}]
        with quiet, pytest.raises(litellm.ContextWindowExceededError):
            litellm.completion(model=NAME, messages=messages)

    def test_plain_litellm_streams(self) -> None:
        litellm = load_litellm()
        messages = [{"role": "user", "content": "Say hello."}]
        with quiet:
            stream = litellm.completion(
                model=NAME, messages=messages, max_tokens=8, temperature=0, stream=True
            )
            text = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
        assert text

    @pytest.mark.parametrize("text", ["Write a long story.", "word " * 3000])
    def test_giving_up_stops_the_computation(self, model: ChatModel, run: Any, text: str) -> None:
        retry = RetryPolicy(attempts=1, request_timeout=0.7)
        asked = request(text, max_output_tokens=3000)
        with pytest.raises(ModelError, match="request_timeout"):
            run(call_model(model, asked, retry=retry, emit=lambda event: None, call=0, step=0))
        deadline = time.monotonic() + 10
        while [t for t in threading.enumerate() if t.name == "axislab-local"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
