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
          "hosted_vllm/Qwen/Qwen2.5-7B-Instruct", "command-r")
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

run = timed("call", call)
print(json.dumps({
    "asked": asked, "connected": sorted({str(a[0]) for a in connected if isinstance(a, tuple)}),
    "seconds": seconds, "counts": counts, "price": price is not None, "status": run.status,
    "error": run.error, "estimator": al.budgets_df(run).estimator[0],
    "error_of_estimate": int(al.budgets_df(run).error[0]),
}))
"""


@pytest.fixture(scope="module")
def offline():
    """What a process came to that could resolve no name."""
    with counting() as server:
        server.script = [{"content": "It is 407 metres deep."}]
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", PROGRAM, server.url],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=ROOT,
        )
    assert done.returncode == 0, done.stderr
    return done.stderr, json.loads(done.stdout.splitlines()[-1]), done.stdout.splitlines()


def test_no_name_is_looked_up_and_nothing_but_the_local_server_is_connected_to(offline):
    _, found, _ = offline
    assert found["asked"] == []
    assert found["connected"] == ["127.0.0.1"]


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
