"""What a profile makes of a conversation, and how a profile is found and made."""

import json
from typing import Any

import pytest
from fake_server import FakeServer
from hypothesis import example, given
from hypothesis import strategies as st

import axislab as al
from axislab.errors import ConfigError
from axislab.messages import Message, Role, ToolCall
from axislab.models.base import ModelRequest
from axislab.models.litellm_model import LiteLLMModel
from axislab.models.outgoing import wire_messages
from axislab.models.pairing import NO_RESULT, paired
from axislab.models.profiles import PROFILES, ProviderProfile, profile_of
from axislab.models.shaping import CONTINUE


def call(own: str, theirs: str | None = None) -> ToolCall:
    return ToolCall(id=own, name="search", provider_id=theirs)


def result(own: str, text: str = "found") -> Message:
    return Message.tool(text, tool_call_id=own, name="search")


def wire(*messages: Message, profile: str | ProviderProfile, **how: Any) -> list[dict[str, Any]]:
    chosen = PROFILES[profile] if isinstance(profile, str) else profile
    return wire_messages(messages, profile=chosen, **how)


def roles(*messages: Message, profile: str | ProviderProfile) -> list[str]:
    return [message["role"] for message in wire(*messages, profile=profile)]


# Which profile


@pytest.mark.parametrize(
    ("model", "options", "name"),
    [
        ("openai/gpt-4o", {}, "openai"),
        ("openai/local", {"api_base": "http://h/v1"}, "openai_compatible"),
        ("openai/local", {"api_base": "http://h/v1", "profile": "llamacpp"}, "llamacpp"),
        ("hosted_vllm/qwen", {"api_base": "http://h/v1"}, "vllm"),
        ("ollama_chat/x", {}, "ollama"),
        ("vertex_ai/gemini-2.5-pro", {}, "gemini"),
        ("vertex_ai/claude-sonnet-4-5", {}, "anthropic"),
        ("bedrock/x", {}, "bedrock"),
        ("groq/x", {}, "openai_compatible"),
        ("axislab/simulated", {}, "axislab"),
        ("axislab-local/smollm2-135m", {}, "llamacpp"),
    ],
)
def test_the_profile_follows_from_the_model_string(model: str, options: Any, name: str) -> None:
    assert LiteLLMModel(model, **options).profile.name == name


def test_a_profile_of_ones_own_wins_and_stands_in_the_header() -> None:
    mine = ProviderProfile(name="mine", roles="merged")
    model = LiteLLMModel("openai/gpt-4o", profile=mine)
    assert model.profile == mine
    assert model.info["profile"] == {"name": "mine", "roles": "merged"}
    assert al.ProviderProfile is ProviderProfile


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: LiteLLMModel("openai/x", profile="mistrall"), "mistral"),
        (lambda: LiteLLMModel("openai/x", profile=7), "ProviderProfile"),  # type: ignore[arg-type]
        (lambda: ProviderProfile(name="x", roles="strict"), "roles='strict'"),  # type: ignore[arg-type]
        (lambda: ProviderProfile(name="x", id_pattern="("), "id_pattern"),
        (lambda: ProviderProfile(name="x", id_pattern="[a-z]{9}"), "id_length"),
        (lambda: ProviderProfile(name="x", alternate=True), "alternate"),  # type: ignore[call-arg]
    ],
)
def test_what_is_no_profile_is_refused(make: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        make()


@pytest.mark.parametrize(
    ("model", "trailing"),
    [
        ("anthropic/claude-sonnet-4-5", "continued"),
        ("anthropic/claude-opus-4-6", "folded"),
        ("anthropic/unheard-of", "folded"),
    ],
)
def test_litellms_list_says_whether_claude_continues_its_reply(model: str, trailing: str) -> None:
    assert LiteLLMModel(model, api_key="k").profile.trailing_assistant == trailing


# Order and shape


def test_neighbours_of_one_role_are_merged_where_roles_must_alternate() -> None:
    talk = [Message.user("a"), Message.user("b"), Message.assistant("c"), Message.user("d")]
    assert roles(*talk, profile="vllm") == ["user", "assistant", "user"]
    assert wire(*talk, profile="vllm")[0]["content"] == "a\n\nb"
    assert len(wire(*talk, profile="openai")) == 4
    calls = Message.assistant(None, [call("c1")])
    merged = wire(Message.user("a"), Message.assistant("b"), calls, result("c1"), profile="vllm")
    assert [m["role"] for m in merged] == ["user", "assistant", "tool"]
    assert (merged[1]["content"], len(merged[1]["tool_calls"])) == ("b", 1)
    apart = [calls, result("c1"), Message.assistant(None, [call("c2")]), result("c2")]
    assert roles(*apart, profile="vllm") == ["assistant", "tool"] * 2


def test_system_messages_go_where_the_profile_says() -> None:
    talk = [Message.system("s"), Message.user("a"), Message.system("t"), Message.user("b")]
    assert roles(*talk, profile="openai") == ["system", "user", "system", "user"]
    assert wire(*talk, profile="deepseek")[0] == {"role": "system", "content": "s\n\nt"}
    gemma = ProviderProfile(name="gemma", system="user")
    assert [m["content"] for m in wire(*talk, profile=gemma)] == ["s\n\nt\n\na", "b"]
    alone = wire(Message.system("s"), Message.assistant("x"), Message.user("y"), profile=gemma)
    assert [m["content"] for m in alone] == ["s", "x", "y"]


def test_a_bridge_stands_between_a_result_and_a_user_message() -> None:
    talk = [
        Message.user("a"), Message.assistant(None, [call("c1")]), result("c1"), Message.user("b")
    ]  # fmt: skip
    assert roles(*talk, profile="mistral") == ["user", "assistant", "tool", "assistant", "user"]
    assert roles(*talk, profile="openai") == ["user", "assistant", "tool", "user"]


def test_the_beginning_of_a_reply_is_continued_or_folded_into_the_prompt() -> None:
    talk = [Message.user("a"), Message.assistant("The capital is")]
    assert wire(*talk, profile="llamacpp")[-1]["role"] == "assistant"
    assert wire(*talk, profile="deepseek")[-1] == {
        "role": "user",
        "content": CONTINUE + "The capital is",
    }
    begun = {"role": "assistant", "content": "The capital is"}
    talk = [Message.user("a"), Message.assistant("The capital is \n")]
    assert wire(*talk, profile="llamacpp")[-1] == begun
    assert wire(*talk, profile="mistral")[-1] == {**begun, "prefix": True}
    assert wire(*talk, profile="axislab")[-1]["content"] == "The capital is \n"
    assert wire(*talk, Message.user("b"), profile="mistral")[1].keys() == begun.keys()
    for empty in (None, "", " \n"):
        for name in sorted(PROFILES.keys() - {"axislab"}):
            assert roles(Message.user("a"), Message.assistant(empty), profile=name) == ["user"]
    called = [Message.user("a"), Message.assistant(None, [call("c1")])]
    assert roles(*called, profile="deepseek") == ["user", "assistant", "tool"]


def test_blank_text_is_filled_where_it_is_refused() -> None:
    talk = [Message.user(" "), Message.assistant(None, [call("c1")]), result("c1", "")]
    assert [m["content"] for m in wire(*talk, profile="anthropic")] == ["(empty)", None, "(empty)"]
    assert [m["content"] for m in wire(*talk, profile="openai")] == [" ", None, ""]
    assert wire(*talk, profile="vllm")[1]["content"] == ""


def test_results_name_their_tool_where_that_is_wanted() -> None:
    talk = [Message.assistant(None, [ToolCall(id="c", name="web.search")]), result("c")]
    assert wire(*talk, profile="mistral")[1]["name"] == "web_search"
    assert "name" not in wire(*talk, profile="openai")[1]


# Reasoning

THOUGHTFUL = [
    Message.user("q"),
    Message.assistant(None, [call("c1")], reasoning="hm", signed_reasoning='[{"signature": "s"}]'),
    result("c1"),
    Message.assistant("so", [call("c2")]),
    result("c2"),
    Message.assistant("well", reasoning="ah"),
    Message.user("go on"),
]


@pytest.mark.parametrize(
    ("profile", "sent"),
    [
        ("openai", [None, None, None]),
        ("deepseek", ["hm", "", "ah"]),
        ("moonshot", ["hm", " ", "ah"]),
        ("vllm", ["hm", None, None]),
        ("anthropic", [None, None, None]),
    ],
)
def test_reasoning_goes_back_as_the_profile_says(profile: str, sent: list[str | None]) -> None:
    out = [m for m in wire(*THOUGHTFUL, profile=profile) if m["role"] == "assistant"]
    assert [m.get("reasoning_content") for m in out] == sent
    blocks = [m.get("thinking_blocks") for m in out]
    assert blocks == ([[{"signature": "s"}], None, None] if profile == "anthropic" else [None] * 3)


def test_reasoning_is_required_only_of_a_model_that_thinks_and_calls_tools() -> None:
    calm = [Message.user("q"), Message.assistant(None, [call("c1")]), result("c1")]
    assert "reasoning_content" not in wire(*calm, profile="deepseek")[1]
    assert wire(*calm, profile="deepseek", thinking=True)[1]["reasoning_content"] == ""
    talk = [Message.user("q"), Message.assistant("a", reasoning="hm"), Message.user("r")]
    assert "reasoning_content" not in wire(*talk, profile="deepseek")[1]


@pytest.mark.parametrize("broken", ["", "[", "{}", "null"])
def test_signed_reasoning_that_is_no_list_is_left_out(broken: str) -> None:
    said = Message.assistant("a", signed_reasoning=broken)
    sent = wire(Message.user("q"), said, Message.user("r"), profile="anthropic")
    assert "thinking_blocks" not in sent[1]


def test_signed_reasoning_is_kept_in_the_trace() -> None:
    message = Message.assistant("a", reasoning="hm", signed_reasoning="[1]")
    assert Message.from_dict(json.loads(json.dumps(message.to_dict()))) == message


@given(st.text(st.characters(exclude_categories=[])), st.sampled_from(sorted(PROFILES)))
@example(text="\ud800", profile="axislab")
def test_all_that_is_sent_can_be_encoded(text: str, profile: str) -> None:
    said = Message.assistant(
        text, [ToolCall(id=text, name=text, arguments=text, provider_id=text)], reasoning=text
    )
    talk = [Message.system(text), Message.user(text), said, result(text, text), Message.user(text)]
    json.dumps(wire(*talk, profile=profile), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("options", "thinks"),
    [
        ({}, False),
        ({"thinking": {"type": "enabled"}}, True),
        ({"thinking": {"type": "disabled"}}, False),
        ({"reasoning_effort": "high"}, True),
        ({"reasoning_effort": "none"}, False),
    ],
)
def test_the_model_is_known_to_think_by_the_parameters_of_the_call(
    options: Any, thinks: bool, run: Any, server: FakeServer
) -> None:
    model = LiteLLMModel(
        "openai/ok", api_base=server.url, api_key="k", profile="deepseek",
        allowed_openai_params=[*options], **options,
    )  # fmt: skip
    talk = [Message.user("q"), Message.assistant(None, [call("c1")]), result("c1")]
    run(model.complete(ModelRequest(messages=talk)))
    assert ("reasoning_content" in server.requests[-1]["messages"][1]) is thinks


# Ids


def ids(profile: str, *messages: Message) -> list[str]:
    return [c["id"] for m in wire(*messages, profile=profile) for c in m.get("tool_calls", ())]


def test_ids_the_provider_does_not_take_become_others_the_same_in_every_request() -> None:
    talk = [Message.assistant(None, [call("c1", "abcDEF123"), call("c2", "call_7")])]
    first = ids("mistral", *talk)
    assert first[0] == "abcDEF123"
    assert len(first[1]) == 9
    assert first[1].isalnum()
    assert first == ids("mistral", *talk, Message.user("more"))


def test_an_id_that_comes_again_is_replaced_where_it_must_not() -> None:
    talk = [Message.assistant(None, [call("c1", "x")]), result("c1")]
    talk += [Message.assistant(None, [call("c2", "x")]), result("c2")]
    assert ids("anthropic", *talk) == ["x", "c2"]
    assert ids("deepseek", *talk) == ["x", "x"]


GIVEN = st.none() | st.sampled_from(["", "a", "c1", "functions.x:0", "y" * 50, "abcDEF123"])


@given(
    st.sampled_from(sorted(PROFILES)),
    st.lists(st.lists(GIVEN, min_size=1, max_size=4), max_size=4),
    st.data(),
)
def test_whatever_the_history_every_call_has_one_result_right_after_it(
    profile: str, turns: list[list[str | None]], data: st.DataObject
) -> None:
    messages = [Message.user("q")]
    for turn, given_ids in enumerate(turns):
        calls = [call(f"c{turn}_{n}", theirs) for n, theirs in enumerate(given_ids)]
        answers = [result(c.id) for c in calls] + [result("lost")]
        messages.append(Message.assistant(data.draw(st.sampled_from([None, "", "x"])), calls))
        messages += data.draw(st.lists(st.sampled_from(answers), max_size=5))
        if data.draw(st.booleans()):
            messages.append(Message.user("and"))
    open_ids: list[str] = []
    for message in wire(*messages, profile=profile):
        if message["role"] == "tool":
            open_ids.remove(message["tool_call_id"])
        else:
            assert open_ids == []
            open_ids = [c["id"] for c in message.get("tool_calls", ())]
            assert len(set(open_ids)) == len(open_ids)
    assert open_ids == []


def test_a_missing_result_is_told_and_one_for_several_calls_is_shared() -> None:
    calls = Message.assistant(None, [call("a"), call("b"), call("c")])
    marker = Message(role=Role.RUNTIME, content="{}", name="rollback")
    talk = [calls, marker, result("b,a", "rejected"), result("z"), result("a"), Message.user("q")]
    told = [(m.tool_call_id, m.content) for m in paired(talk) if m.role is Role.TOOL]
    assert told == [("b", "rejected"), ("a", "rejected"), ("c", NO_RESULT)]


def test_a_valid_history_stays_as_it_is() -> None:
    talk = [Message.user("q"), Message.assistant(None, [call("a"), call("b")])]
    talk += [result("b"), result("a"), Message.assistant("done")]
    assert paired(talk) == talk


def test_every_profile_is_found_by_the_providers_name() -> None:
    assert {profile_of(name).name for name in PROFILES} == set(PROFILES)


@pytest.mark.parametrize("profile", ["mistral", "anthropic", "openai", "ollama"])
def test_an_empty_end_leaves_no_beginning_behind_that_is_not_marked(profile: str) -> None:
    said = [Message.user("q"), Message.assistant("draft")]
    assert wire(*said, Message.assistant(""), profile=profile) == wire(*said, profile=profile)


def test_neighbours_that_become_one_keep_the_thinking_of_both() -> None:
    def thought(sign: str) -> str:
        return json.dumps([{"type": "thinking", "thinking": sign, "signature": sign}])

    first = Message.assistant("a", signed_reasoning=thought("A"))
    second = Message.assistant("b", [call("c1")], signed_reasoning=thought("B"))
    sent = wire(Message.user("q"), first, second, result("c1"), profile="anthropic")
    assert sent[1]["content"] == "a\n\nb"
    assert [block["signature"] for block in sent[1]["thinking_blocks"]] == ["A", "B"]
