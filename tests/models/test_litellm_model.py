"""LiteLLMModel against a server: what goes out, what comes back, what fails and how."""

import asyncio
import base64
import contextlib
import json
import logging
import re
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from fake_server import CONTEXT_TEXTS, FakeServer

from axislab.config import RetryPolicy, Sampling
from axislab.errors import ConfigError, ErrorKind, ModelError
from axislab.events import Event
from axislab.messages import Message, Role, ToolCall, ToolSpec, Usage
from axislab.models import _litellm
from axislab.models.base import ChatModel, ModelReply, ModelRequest
from axislab.models.call import call_model
from axislab.models.litellm_model import LiteLLMModel
from axislab.models.parameters import RESERVED
from axislab.models.price import Price

KEY = "sk-test-4f8a2b7c9d1e"
HELLO = ModelRequest(messages=[Message.user("hello")])
ONCE = RetryPolicy(attempts=1, request_timeout=10)


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session", autouse=True)
def _loaded() -> None:
    _litellm.load_litellm()


@pytest.fixture
def model(server: FakeServer) -> Any:
    def make(name: str, **options: Any) -> LiteLLMModel:
        options.setdefault("api_key", KEY)
        return LiteLLMModel(f"openai/{name}", api_base=server.url, **options)

    return make


class Asked:
    """What one call came to."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.reply: ModelReply | None = None
        self.error: ModelError | None = None

    def emit(self, event: Event) -> None:
        self.events.append(event)

    @property
    def outcomes(self) -> list[str]:
        return [event.outcome for event in self.events]


@pytest.fixture
def ask(run: Any) -> Any:
    def asking(
        model: ChatModel, request: ModelRequest = HELLO, *, retry: RetryPolicy = ONCE
    ) -> Asked:
        out = Asked()

        async def main() -> None:
            try:
                out.reply = await call_model(
                    model, request, retry=retry, emit=out.emit, call=0, step=0
                )
            except ModelError as error:
                out.error = error

        run(main())
        return out

    return asking


# -- before the first request ------------------------------------------------------------------


def test_making_a_model_does_not_load_litellm() -> None:
    import subprocess

    code = (
        "import sys; from axislab.models.resolve import resolve_model; "
        "import axislab.models.call, axislab.models.tokens, axislab.models.local; "
        "m = resolve_model('openai/gpt-4o', api_key='k'); repr(m); m.info; m.simulated; "
        "print(sorted({'litellm', 'pandas', 'httpx', 'openai'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_it_is_a_chat_model(model: Any) -> None:
    made = model("ok")
    assert isinstance(made, ChatModel)
    assert not made.simulated
    assert LiteLLMModel("axislab/simulated").simulated


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("no-such-model", "openai/gpt-4o-mini"),
        ("opena/gpt-4o", "'openai/gpt-4o'"),
        ("OpenAI/gpt-4o", "'openai/gpt-4o'"),
        ("deepseek-chat", "'deepseek/deepseek-chat'"),
        ("openai/", "openai/gpt-4o-mini"),
        ("gpt-4o-mni", "'gpt-4o-mini'"),
    ],
)
def test_an_unknown_model_is_found_before_the_first_request(name: str, hint: str) -> None:
    with pytest.raises(ModelError) as raised:
        LiteLLMModel(name).check()
    assert raised.value.kind is ErrorKind.NOT_FOUND
    assert repr(name) in str(raised.value)
    assert hint in str(raised.value)


def test_an_unknown_model_on_a_server_of_ones_own_gets_a_provider_suggested() -> None:
    with pytest.raises(ModelError, match="'hosted_vllm/qwen'"):
        LiteLLMModel("qwen", api_base="http://127.0.0.1:9/v1").check()


@pytest.mark.parametrize(
    ("name", "options", "variable"),
    [
        ("openai/gpt-4o", {}, "OPENAI_API_KEY"),
        ("anthropic/claude-sonnet-4-5", {}, "ANTHROPIC_API_KEY"),
        ("openai/mine", {"api_base": "http://127.0.0.1:9/v1"}, "OPENAI_API_KEY"),
    ],
)
def test_a_missing_key_is_found_before_the_first_request(
    name: str, options: Any, variable: str
) -> None:
    with pytest.raises(ModelError, match=f"nothing was sent: set {variable}") as raised:
        LiteLLMModel(name, **options).check()
    assert raised.value.kind is ErrorKind.MISSING_KEY


def test_a_call_without_a_key_sends_nothing(ask: Any, server: FakeServer) -> None:
    before = len(server.requests)
    out = ask(LiteLLMModel("openai/ok", api_base=server.url), retry=RetryPolicy(attempts=3))
    assert out.outcomes == ["missing_key"]
    assert len(server.requests) == before


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("openai/gpt-4o", {"api_key": KEY}),
        ("anthropic/claude-sonnet-4-5", {"api_base": "http://127.0.0.1:9"}),
        ("hosted_vllm/qwen", {"api_base": "http://127.0.0.1:9/v1"}),
        ("ollama/llama3.2", {}),
        ("bedrock/anthropic.claude-v2", {}),
        ("azure/mine", {"azure_ad_token": "t", "api_base": "https://a.invalid"}),
    ],
)
def test_models_that_can_be_asked_pass_the_check(name: str, options: Any) -> None:
    LiteLLMModel(name, **options).check()


def test_a_key_in_the_environment_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    LiteLLMModel("openai/gpt-4o").check()


@pytest.mark.parametrize("name", ["", "  ", None, 3])
def test_what_is_no_model_string_is_refused(name: Any) -> None:
    with pytest.raises(ConfigError, match="openai/gpt-4o-mini"):
        LiteLLMModel(name)


@pytest.mark.parametrize("name", sorted(RESERVED - {"model", "api_key", "api_base", "timeout"}))
def test_parameters_axislab_sets_cannot_be_overridden(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        LiteLLMModel("openai/gpt-4o", **{name: 1})


# -- what goes out -----------------------------------------------------------------------------


def test_the_body_holds_messages_tools_and_sampling_and_nothing_else(
    model: Any, ask: Any, server: FakeServer
) -> None:
    call = ToolCall(id="c1", name="search", arguments='{"query": "cut', provider_id="p-1")
    request = ModelRequest(
        messages=[
            Message.system("be brief"),
            Message.user("half: \ud83d"),
            Message.assistant(None, [call], reasoning="a thought"),
            Message.tool("found", tool_call_id="c1", name="search"),
            Message(role=Role.RUNTIME, content="{}", name="rollback"),
        ],
        tools=(ToolSpec(name="search", description="finds", parameters={"type": "object"}),),
        sampling=Sampling(
            temperature=0.3, top_p=0.9, max_output_tokens=77, extra={"seed": 5, "logit_bias": {}}
        ),
        purpose="final_answer",
        draw="secret-draw",
    )
    assert ask(model("ok"), request).reply is not None
    body = server.requests[-1]
    assert body == {
        "model": "ok",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "half: ?"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {
                        "id": "p-1",
                        "type": "function",
                        "function": {"name": "search", "arguments": "{}"},
                    }
                ],
            },
            {"role": "tool", "content": "found", "tool_call_id": "p-1"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "search",
                    "description": "finds",
                    "parameters": {"type": "object"},
                },
            }
        ],
        "temperature": 0.3,
        "top_p": 0.9,
        "max_tokens": 77,
        "seed": 5,
        "logit_bias": {},
    }


def test_parameters_of_the_model_go_out_and_the_recipes_win(
    model: Any, ask: Any, server: FakeServer
) -> None:
    request = ModelRequest(
        messages=[Message.user("a")], sampling=Sampling(extra={"seed": 2}), draw="d"
    )
    assert ask(model("ok", seed=1, user_tag="x"), request).reply is not None
    body = server.requests[-1]
    assert (body["seed"], body["user_tag"]) == (2, "x")
    assert "draw" not in json.dumps(body)


def test_reserved_parameters_in_the_recipe_are_refused_before_sending(
    model: Any, ask: Any, server: FakeServer
) -> None:
    before = len(server.requests)
    request = ModelRequest(messages=[Message.user("a")], sampling=Sampling(extra={"stream": True}))
    out = ask(model("ok"), request)
    assert out.outcomes == ["bad_request"]
    assert "stream" in str(out.error)
    assert len(server.requests) == before


def test_a_custom_provider_sees_the_draw_and_no_metadata(ask: Any) -> None:
    litellm = _litellm.load_litellm()
    seen: list[dict[str, Any]] = []

    async def acompletion(self: Any, **options: Any) -> Any:
        seen.append(options)
        return litellm.ModelResponse(choices=[{"message": {"role": "assistant", "content": "a"}}])

    handler = type("Handler", (litellm.CustomLLM,), {"acompletion": acompletion})()
    before = list(litellm.custom_provider_map)
    try:
        for provider in ("axislab", "other"):
            _litellm.register_provider(provider, handler)
            request = ModelRequest(messages=[Message.user("a")], draw="key", purpose="secret-use")
            assert ask(LiteLLMModel(f"{provider}/simulated"), request).reply is not None
    finally:
        litellm.custom_provider_map = before
    assert seen[0]["optional_params"]["axislab_draw"] == "key"
    assert "axislab_draw" not in seen[1]["optional_params"]
    assert "secret-use" not in repr([s["optional_params"] for s in seen])


def test_registering_keeps_the_providers_of_others() -> None:
    litellm = _litellm.load_litellm()
    before = list(litellm.custom_provider_map)
    try:
        litellm.custom_provider_map = [{"provider": "theirs", "custom_handler": object()}]
        first, second = object(), object()
        _litellm.register_provider("ours", first)
        _litellm.register_provider("ours", second)
        assert [item["provider"] for item in litellm.custom_provider_map] == ["theirs", "ours"]
        assert _litellm.provider_handler("ours") is second
        assert _litellm.provider_handler("nobody") is None
    finally:
        litellm.custom_provider_map = before


# -- what comes back ---------------------------------------------------------------------------


def test_a_reply_is_read_whole(model: Any, ask: Any) -> None:
    reply = ask(model("ok")).reply
    assert (reply.text, reply.finish_reason, reply.reasoning) == ("Hello.", "stop", None)
    assert reply.usage == Usage(input_tokens=11, output_tokens=7)
    assert (reply.request_id, reply.model) == ("chatcmpl-1", "fake-1")
    assert reply.latency > 0


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("tool", {"arguments": '{"query": "axis"}', "provider_id": "call_a"}),
        ("tool-null-id", {"arguments": '{"query": "axis"}'}),
        ("tool-broken", {"arguments": '{"query": "ax', "provider_id": "call_a"}),
        ("tool-legacy", {"arguments": "{}"}),
    ],
)
def test_calls_come_as_they_were_made(model: Any, ask: Any, name: str, call: Any) -> None:
    wanted = ToolCall(id="", name="search", **call)
    assert ask(model(name)).reply.tool_calls == (wanted,)


def test_arguments_given_as_an_object_become_text_without_a_warning(model: Any, ask: Any) -> None:
    (call,) = ask(model("tool-object")).reply.tool_calls
    assert json.loads(call.arguments) == {"query": "axis"}


@pytest.mark.parametrize(
    ("name", "text", "reasoning"),
    [
        ("null", None, None),
        ("empty", "", None),
        ("refusal", "I cannot help with that.", None),
        ("reasoning", "42", "6 * 7"),
        ("think", "42", "6 * 7"),
        ("think-open", "", "6 * 7 is"),
        ("surrogate", "half: ?", None),
    ],
)
def test_texts_are_told_apart(
    model: Any, ask: Any, name: str, text: str | None, reasoning: str | None
) -> None:
    reply = ask(model(name)).reply
    assert (reply.text, reply.reasoning) == (text, reasoning)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("finish-null", None), ("finish-odd", "engine_abort"), ("finish-eos", "stop")],
)
def test_an_unknown_finish_reason_is_not_called_stop(
    model: Any, ask: Any, name: str, reason: str | None
) -> None:
    assert ask(model(name)).reply.finish_reason == reason


@pytest.mark.parametrize("name", ["no-usage", "zero-usage"])
def test_usage_that_was_not_reported_is_unknown_and_so_is_the_cost(
    model: Any, ask: Any, name: str
) -> None:
    reply = ask(model(name, price=Price(input=1, output=1))).reply
    assert (reply.usage, reply.cost_usd) == (None, None)
    assert "did not report" in reply.cost_missing


def test_details_of_usage_are_read(model: Any, ask: Any) -> None:
    usage = ask(model("details")).reply.usage
    assert (usage.cached_tokens, usage.reasoning_tokens) == (8, 5)


def test_cost_comes_from_litellms_list_or_is_missing_with_a_reason(model: Any, ask: Any) -> None:
    listed, unlisted = ask(model("gpt-4o")).reply, ask(model("ok")).reply
    assert listed.cost_usd == pytest.approx(11 * 2.5e-6 + 7 * 10e-6)
    assert listed.cost_missing is None
    assert unlisted.cost_usd is None
    assert "'openai/ok'" in unlisted.cost_missing


def test_a_price_of_ones_own_wins(model: Any, ask: Any) -> None:
    reply = ask(model("gpt-4o", price=Price(input=1, output=2))).reply
    assert reply.cost_usd == pytest.approx((11 * 1 + 7 * 2) / 1e6)


def test_list_prices_are_for_a_million_tokens(model: Any) -> None:
    listed = model("gpt-4o").list_price()
    assert (listed.input, listed.output) == (pytest.approx(2.5), pytest.approx(10))
    assert model("ok").list_price() is None
    mine = Price(input=1, output=2, cached=0.5)
    assert model("ok", price=mine).list_price() is mine


@pytest.mark.parametrize("name", ["no-choices", "no-message", "html"])
def test_what_is_no_reply_is_malformed_and_asked_for_again(
    model: Any, ask: Any, server: FakeServer, name: str
) -> None:
    before = len(server.requests)
    out = ask(model(name), retry=RetryPolicy(attempts=2, backoff=0))
    assert out.outcomes == ["malformed_reply"] * 2
    assert len(server.requests) - before == 2


# -- what fails --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("status-400", ErrorKind.BAD_REQUEST),
        ("status-401", ErrorKind.AUTH),
        ("status-402", ErrorKind.QUOTA),
        ("status-403", ErrorKind.AUTH),
        ("status-404", ErrorKind.NOT_FOUND),
        ("status-408", ErrorKind.TIMEOUT),
        ("status-413", ErrorKind.CONTEXT_LIMIT),
        ("status-429", ErrorKind.RATE_LIMIT),
        ("status-500", ErrorKind.SERVER),
        ("status-503", ErrorKind.OVERLOADED),
        ("status-529", ErrorKind.OVERLOADED),
        ("quota", ErrorKind.QUOTA),
        ("arguments", ErrorKind.TRUNCATED),
        ("close", ErrorKind.CONNECTION),
        *((name, ErrorKind.CONTEXT_LIMIT) for name in CONTEXT_TEXTS),
    ],
)
def test_failures_are_typed_through_litellm(
    model: Any, ask: Any, name: str, kind: ErrorKind
) -> None:
    error = ask(model(name)).error
    assert error.kind is kind
    assert str(error).startswith(f"openai/{name}: ")
    assert error.original is not None
    if kind is ErrorKind.CONTEXT_LIMIT and name in CONTEXT_TEXTS:
        assert error.window in (8192, 200000, 98304)


@pytest.mark.parametrize("attempts", [1, 2, 3])
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_that_keeps_failing_is_asked_as_often_as_the_policy_says(
    model: Any, ask: Any, server: FakeServer, status: int, attempts: int
) -> None:
    before = len(server.requests)
    out = ask(model(f"status-{status}"), retry=RetryPolicy(attempts=attempts, backoff=0))
    assert len(server.requests) - before == attempts == len(out.events)


def test_a_server_that_recovers_is_asked_once_more(
    model: Any, ask: Any, server: FakeServer
) -> None:
    out = ask(model("fail-503-2"), retry=RetryPolicy(attempts=5, backoff=0))
    assert out.outcomes == ["overloaded", "overloaded", "ok"]
    assert server.count("fail-503-2") == 3


def test_the_wait_the_server_asks_for_is_known(model: Any, ask: Any) -> None:
    assert ask(model("status-429-after-7")).error.retry_after == 7


def test_a_refused_connection_is_a_connection_error(ask: Any) -> None:
    out = ask(LiteLLMModel("openai/ok", api_key=KEY, api_base="http://127.0.0.1:9/v1"))
    assert out.outcomes == ["connection"]


@pytest.mark.parametrize("name", ["drip", "hang"])
def test_the_deadline_holds_against_slow_servers(model: Any, ask: Any, name: str) -> None:
    out = ask(model(name), retry=RetryPolicy(attempts=1, request_timeout=0.4))
    assert out.outcomes == ["timeout"]
    assert out.events[0].latency < 2


def test_cancelling_a_hanging_call_ends_it_at_once(model: Any, run: Any) -> None:
    out = Asked()

    async def main() -> float:
        task = asyncio.create_task(
            call_model(model("hang"), HELLO, retry=ONCE, emit=out.emit, call=0, step=0)
        )
        await asyncio.sleep(0.3)
        start = asyncio.get_running_loop().time()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert task.cancelled()
        return asyncio.get_running_loop().time() - start

    assert run(main()) < 1
    assert out.outcomes == ["cancelled"]


# -- secrets and noise -------------------------------------------------------------------------


def test_keys_are_in_no_repr_header_or_error(server: FakeServer, ask: Any) -> None:
    made = LiteLLMModel(
        "openai/echo-key",
        api_key=KEY,
        api_base=server.url,
        extra_headers={"X-Auth": "hdr-secret-1"},
        aws_secret_access_key="aws-secret-1",
        organization="org-1",
    )
    out = ask(made)
    assert KEY in server.keys[-1]
    assert out.error.kind is ErrorKind.AUTH
    shown = " ".join([repr(made), str(made), json.dumps(made.info), str(out.error)])
    shown += json.dumps([event.payload() for event in out.events])
    for secret in (KEY, "hdr-secret-1", "aws-secret-1"):
        assert secret not in shown
    assert made.info == {"api_base": server.url, "extra": {"organization": "org-1"}}


def variables_of(problem: BaseException | None) -> Iterator[dict[str, Any]]:
    """Those of every frame of an exception's traceback, and of those under it."""
    links, seen = [problem], set()
    while links:
        link = links.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        for frame, _ in traceback.walk_tb(link.__traceback__):
            yield dict(frame.f_locals)
        links += [link.__cause__, link.__context__, getattr(link, "original", None)]


def test_the_key_is_in_no_variable_that_a_traceback_could_show(ask: Any, model: Any) -> None:
    error = ask(model("status-500")).error
    held = list(variables_of(error))
    assert len(held) > 5
    assert all(KEY not in repr(variables) for variables in held)


def test_credentials_in_an_address_are_masked_everywhere(server: FakeServer, ask: Any) -> None:
    base = server.url.replace("http://", "http://user9:pa55word@") + "?sig=s1gnature"
    made = LiteLLMModel("openai/ok", api_key=KEY, api_base=base)
    shown = f"{made!r} {made.info} {ask(made).error}"
    for secret in ("user9", "pa55word", "s1gnature"):
        assert secret not in shown
    assert "//***@127.0.0.1" in repr(made)


def test_a_key_of_the_environment_is_not_in_errors(
    server: FakeServer, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "plain-looking-secret")
    error = ask(LiteLLMModel("openai/echo-key", api_base=server.url)).error
    assert "plain-looking" not in str(error)


def test_failures_print_log_and_warn_nothing(
    model: Any, ask: Any, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for name in ("ok", "status-500", "finish-odd", "tool-object", "html", "close"):
            ask(model(name))
    ours = [w for w in caught if not issubclass(w.category, ResourceWarning)]
    assert ours == []
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")
    assert [r for r in caplog.records if r.levelno > logging.INFO and "axislab" not in r.name] == []


def test_an_error_is_short_and_hides_litellms_traceback(model: Any, run: Any) -> None:
    with pytest.raises(ModelError) as raised:
        run(model("status-500").complete(HELLO))
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__
    assert len(str(raised.value)) < 400


def test_warnings_of_others_still_show_while_a_call_runs() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with _litellm.quiet, _litellm.quiet:
            warnings.warn("mine", UserWarning, stacklevel=1)
            warnings.warn_explicit("theirs", UserWarning, "x.py", 1, module="pydantic.main")
        warnings.warn_explicit("after", UserWarning, "x.py", 2, module="pydantic.main")
    assert [str(w.message) for w in caught] == ["mine", "after"]


def test_a_warning_that_was_shown_is_not_shown_again_after_a_call() -> None:
    registry: dict[str, int] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            warnings.warn_explicit("mine", UserWarning, "x.py", 1, registry=registry)
            with _litellm.quiet:
                pass
    assert len(caught) == 1


def test_quiet_leaves_no_filter_behind_however_calls_overlap() -> None:
    before = list(warnings.filters)
    start = threading.Barrier(4)

    def inside() -> None:
        start.wait(5)
        for _ in range(200):
            with _litellm.quiet:
                pass

    threads = [threading.Thread(target=inside) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(warnings.filters) == before


@pytest.fixture
def _unloaded() -> Iterator[None]:
    held = list(_litellm._loaded)
    _litellm._loaded.clear()
    yield
    _litellm._loaded[:] = held


@pytest.mark.usefixtures("_unloaded")
def test_loading_from_many_threads_gives_one_quiet_module() -> None:
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(_litellm.load_litellm())) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1
    assert len(_litellm._loaded) == 1
    assert found[0].suppress_debug_info is True
    assert found[0].disable_hf_tokenizer_download is True
    assert logging.getLogger("LiteLLM").level == logging.ERROR


def test_a_provider_without_a_model_gets_no_suggestion_of_itself() -> None:
    with pytest.raises(ModelError) as caught:
        LiteLLMModel("openai/").check()
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize("key", [None, KEY])
def test_a_user_and_password_in_the_address_reach_the_server_as_a_header(
    server: FakeServer, ask: Any, key: str | None
) -> None:
    address = server.url.replace("//", "//me:p%40ss@")
    model = LiteLLMModel("openai/ok", api_base=address, api_key=key or "none")
    before = len(server.keys)
    asked = ask(model)
    assert asked.outcomes == ["ok"], asked.error
    told = base64.b64encode(b"me:p@ss").decode()
    assert server.keys[before:] == [f"Basic {told}"]
    assert "p%40ss" not in repr(model)
    assert "p@ss" not in repr(model)


def test_a_client_that_takes_no_user_in_an_address_is_not_asked_again(
    server: FakeServer, ask: Any
) -> None:
    address = server.url.replace("//", "//me:p%40ss@")
    asked = ask(LiteLLMModel("hosted_vllm/ok", api_base=address, api_key="none"))
    assert asked.outcomes == ["bad_request"]
    assert "Cannot combine" in str(asked.error)
    assert "p%40ss" not in str(asked.error)


@pytest.mark.parametrize("price", [3, "1", {"inputs": 1}, {"input": 1}, {"input": 1, "output": -2}])
def test_a_price_that_is_none_is_refused_before_anything_is_paid(price: Any) -> None:
    with pytest.raises(ConfigError, match="Price"):
        LiteLLMModel("openai/ok", price=price)


def test_a_price_may_be_a_mapping() -> None:
    model = LiteLLMModel("openai/ok", price={"input": 1, "output": 2})
    assert model.price == Price(input=1, output=2)


@pytest.mark.parametrize(
    ("address", "cause"),
    [
        ("http://nohost.invalid/v1", "not known|getaddrinfo|resolution|Errno -"),
        ("http://127.0.0.1:9/v1", "111|refused|Connect call failed"),
    ],
)
def test_a_connection_error_says_what_was_wrong_and_where(
    ask: Any, address: str, cause: str
) -> None:
    asked = ask(LiteLLMModel("openai/ok", api_key=KEY, api_base=address))
    assert asked.outcomes == ["connection"]
    assert re.search(cause, str(asked.error))
    assert address in str(asked.error)
    assert " at 0x" not in str(asked.error)
