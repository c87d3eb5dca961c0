"""Without name resolution: import, counting, pricing and a call to a local server just work."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.models.token_talks import counting

ROOT = Path(__file__).parents[2]
PROGRAM = """
import ipaddress, json, os, socket, sys, threading, time, warnings

warnings.simplefilter("error")
asked = []

def no_names(host, *args, **kwargs):
    try:
        ipaddress.ip_address(host if isinstance(host, str) else host.decode())
    except ValueError:
        asked.append(str(host))
        raise socket.gaierror(-3, "name resolution is disabled") from None
    return real(host, *args, **kwargs)

real, socket.getaddrinfo = socket.getaddrinfo, no_names
for name in ("gethostbyname", "gethostbyname_ex"):
    setattr(socket, name, no_names)
connect, connected = socket.socket.connect, []

def connecting(self, address):
    connected.append(address)
    return connect(self, address)

socket.socket.connect = connecting
heard = set()

def hear(event, args):
    # C code that looks a name up or connects is heard as well.
    if event in ("socket.getaddrinfo", "socket.gethostbyname"):
        heard.add(str(args[0]))
    elif event == "socket.connect" and isinstance(args[1], tuple):
        heard.add(str(args[1][0]))

sys.addaudithook(hear)
seconds, url = {}, sys.argv[1]

def timed(name, work):
    start = time.perf_counter()
    value = work()
    seconds[name] = time.perf_counter() - start
    return value

def load():
    import axislab
    from axislab.models._litellm import load_litellm
    load_litellm()
    return axislab

al = timed("import", load)
from axislab.messages import Message, Usage
from axislab.models.litellm_model import LiteLLMModel
from axislab.models.tokens import LiteLLMTokenEstimator

MODELS = ("openai/gpt-4o", "groq/llama-3.1-8b-instant", "openai/meta-llama/Llama-2-7b",
          "anthropic/claude-sonnet-4-5", "deepseek/deepseek-chat", "no/such-model",
          "hosted_vllm/Qwen/Qwen2.5-7B-Instruct", "command-r", "gemini/gemini-2.5-flash",
          "openai/meta-llama/Llama-3.1-8B-Instruct", "claude-sonnet-4-5", "gpt-5",
          "ollama/llama3.2", "together_ai/meta-llama/Llama-3-8b-chat-hf",
          "mistral/mistral-large-latest")
TOOLS = [{"type": "function", "function": {"name": "search", "description": "Search.",
          "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}}]

def count():
    found = {}
    for model in MODELS:
        estimator = LiteLLMTokenEstimator(model)
        tokens = estimator.count([Message.user("one two three 研究人员")])
        found[model] = [tokens, estimator.overhead(TOOLS), estimator.fallbacks]
    return found

counts = timed("count", count)
price = timed("price", lambda: LiteLLMModel("openai/gpt-4o", api_key="k").list_price())

def call():
    lab = al.Lab("openai/gpt-4o", api_base=url, api_key="sk-none")
    return lab.run(al.Recipe().with_(max_turns=3, attempts=1), "How deep is the lake?")

def estimate():
    lab = al.Lab("openai/gpt-4o", api_key="sk-none")
    frame = lab.estimate({"a": al.Recipe(), "b": al.recipes.boxed_math()}, ["How deep is it?"])
    return [int(frame.input_tokens.min()), float(frame.usd.min())]

def simulate():
    lab = al.Lab("axislab/simulated")
    return lab.run(al.recipes.boxed_math(), "What is 2 + 2?").status

run = timed("call", call)
estimated = timed("estimate", estimate)
simulated = timed("simulate", simulate)
prices = {model: LiteLLMModel(model, api_key="k").list_price() is not None for model in (
    "gpt-4o", "claude-sonnet-4-5", "gemini/gemini-2.5-flash", "deepseek/deepseek-chat",
    "openai/meta-llama/Llama-3.1-8B-Instruct")}
local = None
if sys.argv[2:] == ["local"]:
    lab = al.Lab("axislab-local/smollm2-135m")
    local = timed("local", lambda: lab.run(al.Recipe().with_(
        max_turns=1, max_output_tokens=8), "Say hello.")).status
print(json.dumps({
    "asked": asked, "connected": sorted({str(a[0]) for a in connected if isinstance(a, tuple)}),
    "seconds": seconds, "counts": counts, "price": price is not None, "status": run.status,
    "error": run.error, "estimator": al.budgets_df(run).estimator[0],
    "heard": sorted(heard), "estimated": estimated, "simulated": simulated, "prices": prices,
    "local": local,
    "error_of_estimate": int(al.budgets_df(run).error[0]),
}))
"""


def alone(*more: str, before: tuple[str, ...] = ()):
    """What a process came to that could resolve no name: its stderr, its report, its stdout."""
    with counting() as server:
        server.script = [{"content": "It is 407 metres deep."}]
        done = subprocess.run(
            [*before, sys.executable, "-W", "error", "-c", PROGRAM, server.url, *more],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=ROOT,
        )
    assert done.returncode == 0, done.stderr
    return done.stderr, json.loads(done.stdout.splitlines()[-1]), done.stdout.splitlines()


@pytest.fixture(scope="module")
def offline():
    return alone()


def test_no_name_is_looked_up_and_nothing_but_the_local_server_is_connected_to(offline):
    _, found, _ = offline
    assert found["asked"] == []
    assert found["connected"] == ["127.0.0.1"]
    assert found["heard"] == ["127.0.0.1"]


def test_nothing_is_printed_and_nobody_is_warned(offline):
    stderr, _, lines = offline
    assert stderr == ""
    assert len(lines) == 1


def test_nothing_waits_for_the_network(offline):
    """The import alone takes seconds of CPU; what waits for a dead network takes 5 to 24 more."""
    _, found, _ = offline
    assert found["seconds"]["count"] < 10
    assert found["seconds"]["price"] < 4
    assert found["seconds"]["call"] < 10
    assert found["seconds"]["estimate"] < 10
    assert found["seconds"]["simulate"] < 10


def test_every_model_is_counted_by_a_tokenizer(offline):
    _, found, _ = offline
    for model, (tokens, overhead, fallbacks) in found["counts"].items():
        assert 8 <= tokens <= 16, model
        assert 15 <= overhead <= 400, model
        assert fallbacks == 0, model


def test_a_price_is_known_and_a_local_call_is_counted(offline):
    _, found, _ = offline
    assert found["price"]
    assert (found["status"], found["error"]) == ("COMPLETED", None)
    assert found["estimator"] == "litellm:openai/gpt-4o"
    assert abs(found["error_of_estimate"]) <= 5


def test_prices_estimates_and_simulated_runs_need_no_network(offline):
    _, found, _ = offline
    assert found["prices"].pop("openai/meta-llama/Llama-3.1-8B-Instruct") is False
    assert all(found["prices"].values()), found["prices"]
    tokens, usd = found["estimated"]
    assert tokens > 0
    assert usd > 0
    assert found["simulated"] == "COMPLETED"


@pytest.mark.slow
def test_the_local_model_needs_no_network():
    from axislab.models.weights import find_weights

    if find_weights("smollm2-135m") is None:
        pytest.skip("the weights are not here: python -m axislab local fetch")
    stderr, found, lines = alone("local")
    assert found["local"] in ("COMPLETED", "FAILED")
    assert found["asked"] == []
    assert found["heard"] == ["127.0.0.1"]
    assert (stderr, len(lines)) == ("", 1)
