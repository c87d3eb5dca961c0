"""A scripted session of each provider's shape, through a Lab and the litellm route of each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from provider_servers import DIALECTS, SESSION, OpenAI, ProviderServer, Refused

import axislab as al
from axislab.models.profiles import PROFILES

ROUTES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "openai": ("openai/gpt-4o", "/v1", {"profile": "openai"}),
    "anthropic": ("anthropic/claude-sonnet-4-5", "", {}),
    "gemini": ("gemini/gemini-3-pro-preview", "", {}),
    "deepseek": ("deepseek/deepseek-reasoner", "/v1", {}),
    "moonshot": ("moonshot/kimi-k2.5", "/v1", {}),
    "mistral": ("mistral/mistral-large-latest", "/v1", {}),
    "vllm": ("hosted_vllm/qwen", "/v1", {}),
    "ollama": ("ollama_chat/llama3.2", "", {}),
    "llamacpp": ("openai/local", "/v1", {"profile": "llamacpp"}),
}
"""Provider: the model string, what follows the server's address, further options of the Lab."""


@al.tool(query="query")
def search(query: str) -> str:
    """Look something up."""
    return f"found {query}" if query != "b" else ""


RECIPE = al.Recipe(name="session", tools=(search,)).with_(
    max_turns=5, on_duplicate="rollback", max_rollbacks=2, attempts=1
)


@pytest.fixture(scope="module")
def servers() -> Iterator[ProviderServer]:
    running = ProviderServer()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def session(servers: ProviderServer) -> Any:
    done: dict[str, Any] = {}

    def run(provider: str) -> Any:
        if provider not in done:
            done[provider] = converse(servers, provider, provider)
        return done[provider]

    return run


def converse(
    servers: ProviderServer, provider: str, place: str, *, stream: bool = False, **options: Any
) -> Any:
    model, path, usual = ROUTES[provider]
    base = f"{servers.url}/{place}{path}"
    lab = al.Lab(model, api_base=base, api_key="k", **{**usual, **options})
    thinking = {"reasoning_effort": "low"} if provider == "anthropic" else {}
    recipe = RECIPE.with_(max_output_tokens=4096, **thinking)
    return lab.run(recipe, "What?", stream=stream)


@pytest.mark.parametrize("provider", ROUTES)
def test_a_session_with_tools_ends_well_and_no_request_is_refused(
    provider: str, session: Any, servers: ProviderServer
) -> None:
    run = session(provider)
    dialect = servers.dialects[provider]
    assert dialect.refused == []
    assert (run.status, run.turns) == ("COMPLETED", 5)
    assert run.output == "It is \\boxed{42}."
    assert len(dialect.requests) == len(SESSION)
    assert [r.reason for r in run.rollbacks] == ["duplicate_query"]


@pytest.mark.parametrize("provider", ["openai", "moonshot", "mistral", "vllm", "llamacpp"])
def test_good_ids_come_back_verbatim_and_others_are_replaced(
    provider: str, session: Any, servers: ProviderServer
) -> None:
    session(provider)
    dialect = servers.dialects[provider]
    sent = dialect.sent_ids()
    first, second, third, hidden, same, again = dialect.issued
    assert sent[:3] == [first, second, third]
    assert len(sent) == len(set(sent)) == 6
    assert same == again
    assert not {hidden, same} & {*sent}


@pytest.mark.parametrize("provider", ["deepseek", "moonshot", "vllm", "ollama", "anthropic"])
def test_reasoning_goes_back_to_those_who_want_it(
    provider: str, session: Any, servers: ProviderServer
) -> None:
    session(provider)
    sent = json.dumps(servers.dialects[provider].requests[-1])
    assert "First a." in sent
    assert "Now d and e." in sent
    assert "Was that a?" not in sent, "it was rolled back"


@pytest.mark.parametrize("provider", ["openai", "gemini", "mistral"])
def test_reasoning_stays_here_with_those_who_do_not(
    provider: str, session: Any, servers: ProviderServer
) -> None:
    run = session(provider)
    assert "First a." not in json.dumps(servers.dialects[provider].requests[-1])
    if provider == "gemini":
        assert next(m.reasoning for m in run.trace.full if m.reasoning) == "First a."


def test_the_placeholder_for_missing_reasoning_is_the_providers(
    session: Any, servers: ProviderServer
) -> None:
    for provider in ("deepseek", "moonshot"):
        session(provider)
        messages = servers.dialects[provider].requests[-1]["messages"]
        sent = [m["reasoning_content"] for m in messages if m["role"] == "assistant"]
        missing = PROFILES[provider].no_reasoning
        assert sent == ["First a.", missing, "Now d and e.", missing]


@pytest.mark.parametrize("provider", ["anthropic", "deepseek", "mistral", "vllm", "llamacpp"])
def test_without_its_profile_the_provider_refuses(provider: str, servers: ProviderServer) -> None:
    place = f"plain-{provider}"
    servers.dialects[place] = DIALECTS[provider]()
    run = converse(servers, provider, place, profile="axislab")
    assert run.status == "FAILED"
    assert servers.dialects[place].refused


SAME = (
    "outcome", "finish_reason", "input_tokens", "output_tokens", "uncached_tokens",
    "cached_tokens", "cache_write_tokens", "reasoning_tokens", "usage_estimated", "cost_usd",
    "cost_missing", "thinking_only", "possibly_truncated",
)  # fmt: skip


@pytest.mark.parametrize("provider", ROUTES)
def test_a_streamed_session_sends_the_same_requests_and_comes_to_the_same(
    provider: str, session: Any, servers: ProviderServer, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = session(provider)
    place = f"streamed-{provider}"
    servers.dialects[place] = DIALECTS[provider]()
    streamed = converse(servers, provider, place, stream=True)
    told = capsys.readouterr().out
    assert servers.dialects[place].refused == []
    assert (streamed.status, streamed.output) == (plain.status, plain.output)
    assert [known(m) for m in streamed.trace.full] == [known(m) for m in plain.trace.full]
    rows, others = (run.trace.of("model.request") for run in (streamed, plain))
    assert [[row.data.get(name) for name in SAME] for row in rows] == [
        [row.data.get(name) for name in SAME] for row in others
    ]
    sent, before = (servers.dialects[name].requests for name in (place, provider))
    assert [asked(body) for body in sent] == [asked(body) for body in before]
    assert told.count("[calls] search") == 7
    assert told.endswith("It is \\boxed{42}.\n")


MADE = re.compile(r'"(call_)?[0-9a-f-]{24,}')


def known(message: Any) -> Any:
    """The message without the ids that are made anew for each run."""
    said = json.dumps(message.to_dict(), sort_keys=True, ensure_ascii=False)
    return MADE.sub('"id', said)


def asked(body: dict[str, Any]) -> str:
    """The request without what asks for a stream."""
    rest = {k: v for k, v in body.items() if k not in ("stream", "stream_options")}
    return MADE.sub('"id', json.dumps(rest))


def called(*ids: str, arguments: str = "{}") -> dict[str, Any]:
    function = {"name": "search", "arguments": arguments}
    calls = [{"id": own, "type": "function", "function": function} for own in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(own: str) -> dict[str, Any]:
    return {"role": "tool", "content": "x", "tool_call_id": own}


USER = {"role": "user", "content": "hi"}


@pytest.mark.parametrize(
    "messages",
    [
        [USER, called("a")],
        [USER, called("a", "b"), result("a")],
        [USER, called("a"), USER, result("a")],
        [USER, called("a"), result("a"), result("a")],
        [USER, called("a", "a"), result("a"), result("a")],
        [USER, result("a")],
        [USER, called("a" * 41), result("a" * 41)],
        [USER, called("a", arguments='{"q": "cu'), result("a")],
        [USER, {"role": "system", "content": "late"}, USER],
        [USER, {"role": "ConversationRuntime", "content": "{}"}, USER],
        [{**USER, "stage": "initial"}],
        [{"role": "user", "content": None}],
        [USER, {"role": "assistant", "content": "so far"}],
    ],
)
def test_the_server_refuses_what_strict_providers_refuse(messages: list[dict[str, Any]]) -> None:
    good = [USER, called("a", "b"), result("b"), result("a"), USER]
    OpenAI().check({"messages": good, "tools": [{}]})
    with pytest.raises((Refused, ValueError)):
        OpenAI().check({"messages": messages, "tools": [{}]})
