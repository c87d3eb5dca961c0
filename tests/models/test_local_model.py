"""The real local model; what needs its engine and weights is marked slow and skipped without."""

import asyncio
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import axislab as al
from axislab.config import RetryPolicy, Sampling
from axislab.errors import ConfigError, ErrorKind, ModelError
from axislab.messages import Message, ToolSpec
from axislab.models._litellm import OwnProvider, load_litellm, provider_handler, quiet
from axislab.models.base import ChatModel, ModelReply, ModelRequest
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


def test_all_that_is_missing_is_named_with_the_commands_that_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AXISLAB_WEIGHTS", str(tmp_path))
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ModelError) as raised:
        LocalModel().check()
    told = str(raised.value)
    assert "needs xllamacpp" in told
    assert "pip install 'axislab[local]'" in told
    assert "its weights are not here: python -m axislab local fetch" in told


def test_a_run_without_the_weights_is_refused_before_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AXISLAB_WEIGHTS", str(tmp_path))
    with pytest.raises(ModelError, match="python -m axislab local fetch"):
        al.Lab(NAME, folder=tmp_path / "traces")
    lab = al.Lab("axislab/simulated", folder=tmp_path / "traces")
    with pytest.raises(ModelError, match="python -m axislab local fetch"):
        lab.run(al.recipes.boxed_math(model=NAME), "1 + 1?")
    assert not list(tmp_path.rglob("*.jsonl"))


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


INTERRUPTED = """
import sys
import axislab as al
from axislab.messages import Message
from axislab.models.base import ModelRequest
from axislab.models.local import local_model
from axislab.config import Sampling

ask = ModelRequest(
    messages=[Message.user("Tell a long story.")], sampling=Sampling(max_output_tokens=3000)
)
local = local_model("smollm2-135m")
local.complete_sync(ModelRequest(
    messages=[Message.user("Hi.")], sampling=Sampling(max_output_tokens=1)
))
lab = al.Lab("axislab-local/smollm2-135m", folder=sys.argv[2])
recipe = al.Recipe().with_(max_output_tokens=3000)
lab.run(recipe.with_(max_output_tokens=1), "Hi.")
print("begun", flush=True)
try:
    local.complete_sync(ask) if sys.argv[1] == "direct" else lab.run(recipe, "Tell a story.")
except KeyboardInterrupt:
    print("KeyboardInterrupt", flush=True)
"""

OFFLINE = """
import json, socket, sys, time

asked = []

def no_names(host, *args, **kwargs):
    asked.append(str(host))
    raise socket.gaierror(-3, "name resolution is disabled")

socket.getaddrinfo = socket.gethostbyname = socket.gethostbyname_ex = no_names
start = time.monotonic()
import axislab as al

recipe = al.Recipe().with_(max_output_tokens=8, on_length="accept", answer_format="text")
run = al.Lab("axislab-local/smollm2-135m", folder=sys.argv[1]).run(recipe, "Say hello.")
print(json.dumps([run.status, asked, time.monotonic() - start]))
"""


def computing_ends(*, within: float) -> bool:
    """True once nothing is computed any more."""
    deadline = time.monotonic() + within
    while [t for t in threading.enumerate() if t.name == "axislab-local"]:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


async def gathered(pieces: Any) -> list[Any]:
    return [piece async for piece in pieces]


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

    def test_a_stream_comes_while_it_is_made_and_equals_the_whole(self) -> None:
        litellm = load_litellm()
        messages = [{"role": "user", "content": "Tell a story."}]
        options = {"model": NAME, "messages": messages, "max_tokens": 60, "temperature": 0}
        with quiet:
            whole = litellm.completion(**options)
            start, came, text = time.monotonic(), [], ""
            for chunk in litellm.completion(stream=True, **options):
                text += chunk.choices[0].delta.content or ""
                came.append(time.monotonic() - start)
        assert text == whole.choices[0].message.content
        assert came[1] < 0.7 * came[-1]
        assert len(came) > 20

    def test_a_call_is_streamed_as_a_call_and_an_answer_as_its_text(self, run: Any) -> None:
        local = local_model(NAME)
        asked = request("Look up Osk.", tools=(SEARCH,), extra={"tool_choice": "required"})
        *pieces, reply = run(gathered(local.pieces(asked)))
        assert (pieces, reply.text) == ([], None)
        assert reply.tool_calls == tuple(
            replace(call, provider_id=reply.tool_calls[0].provider_id)
            for call in local.complete_sync(asked).tool_calls
        )
        for tools in ((), (SEARCH,)):
            asked = request("Say hello.", tools=tools, extra={"seed": 3}, temperature=0.5)
            *pieces, reply = local.pieces_sync(asked)
            if reply.text is not None:
                assert reply.text.startswith("".join(pieces))
                assert pieces or not reply.text

    def test_a_stream_that_is_closed_stops_the_computation(self, run: Any) -> None:
        async def first_piece() -> str | ModelReply:
            stream = local_model(NAME).pieces(request("Tell a story.", max_output_tokens=3000))
            async with aclosing(stream) as pieces:
                return await anext(pieces)

        assert isinstance(run(first_piece()), str)
        assert computing_ends(within=2)
        stream = local_model(NAME).pieces_sync(request("Tell a story.", max_output_tokens=3000))
        assert next(stream)
        stream.close()
        assert computing_ends(within=2)

    def test_a_prompt_that_does_not_fit_is_a_context_error_in_a_stream_too(self) -> None:
        litellm = load_litellm()
        messages = [{"role": "user", "content": "word " * 6000}]
        with quiet, pytest.raises(litellm.ContextWindowExceededError):
            list(litellm.completion(model=NAME, messages=messages, stream=True))

    def test_it_is_loaded_once_for_all_who_ask(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        import xllamacpp

        loaded, make = [], xllamacpp.Server
        monkeypatch.setattr(xllamacpp, "Server", lambda params: loaded.append(1) or make(params))
        path = find_weights()
        assert path is not None
        add_local_model(LocalModel("again", gguf=path, n_ctx=512))
        labs = [al.Lab("axislab-local/again", folder=tmp_path / name) for name in "ab"]
        recipe = al.Recipe().with_(max_turns=1, max_output_tokens=4, answer_format="text")
        for lab in labs:
            lab.run_many(recipe, ["Say a.", "Say b.", "Say c."], progress=False)
        assert [len(lab.last) for lab in labs] == [3, 3]
        assert len(loaded) == 1

    def test_runs_at_once_take_turns(self, run: Any) -> None:
        local, order = local_model(NAME), []

        async def caller(name: str) -> None:
            for number in range(4):
                asked = request(f"Say {name} {number}.", max_output_tokens=3)
                await local.complete(asked)
                order.append(name)

        async def all_of_them() -> None:
            await asyncio.gather(*(caller(name) for name in "abc"))

        run(all_of_them())
        assert [sorted(order[i : i + 3]) for i in range(0, 12, 3)] == [["a", "b", "c"]] * 4

    def test_who_waits_for_a_turn_can_give_up_at_once(self, run: Any) -> None:
        local = local_model(NAME)

        async def impatient() -> float:
            long = asyncio.create_task(local.complete(request("Story.", max_output_tokens=2000)))
            waiting = asyncio.create_task(local.complete(request("Say hello.")))
            await asyncio.sleep(0.3)
            start = time.monotonic()
            waiting.cancel()
            await asyncio.wait([waiting])
            took = time.monotonic() - start
            assert not long.done()
            long.cancel()
            await asyncio.wait([long])
            return took

        assert run(impatient()) < 0.5
        assert computing_ends(within=2)

    def test_stop_ends_a_run_at_once(self, tmp_path: Path) -> None:
        lab = al.Lab(NAME, folder=tmp_path)
        handle = lab.start(
            al.Recipe().with_(max_output_tokens=3000, answer_format="text"), "Tell a long story."
        )
        time.sleep(1.0)
        assert not handle.done
        start = time.monotonic()
        handle.stop()
        result = handle.result()
        assert time.monotonic() - start < 1.5
        assert result.status == "INTERRUPTED"
        assert computing_ends(within=2)

    @pytest.mark.skipif(os.name == "nt", reason="SIGINT is not sent to one process there")
    @pytest.mark.parametrize("way", ["direct", "lab"])
    def test_ctrl_c_gets_through_at_once(self, way: str, tmp_path: Path) -> None:
        child = subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED, way, str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with child:
            assert child.stdout is not None
            assert child.stdout.readline() == "begun\n"
            time.sleep(1.5)
            assert child.poll() is None
            start = time.monotonic()
            child.send_signal(signal.SIGINT)
            assert child.stdout.readline() == "KeyboardInterrupt\n"
            assert time.monotonic() - start < 1.0
            _, problems = child.communicate(timeout=20)
        assert problems == ""
        assert child.returncode == 0

    def test_without_name_resolution_it_works_and_says_nothing(self, tmp_path: Path) -> None:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", OFFLINE, str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        status, asked, seconds = json.loads(done.stdout)
        assert (status, asked) == ("COMPLETED", [])
        assert seconds < 20

    @pytest.mark.parametrize("text", ["Write a long story.", "word " * 3000])
    def test_giving_up_stops_the_computation(self, model: ChatModel, run: Any, text: str) -> None:
        retry = RetryPolicy(attempts=1, request_timeout=0.7)
        asked = request(text, max_output_tokens=3000)
        with pytest.raises(ModelError, match="request_timeout"):
            run(call_model(model, asked, retry=retry, emit=lambda event: None, call=0, step=0))
        assert computing_ends(within=10)
