"""Knobs: what is refused, how they are found by flat name, and what only warns."""

import warnings
from collections import Counter
from pathlib import Path

import pytest

from axislab import answer_policy
from axislab import config as module
from axislab.config import (
    KNOBS,
    AgentConfig,
    AssistantRollbackConfig,
    ContextLimitConfig,
    ConversationConfig,
    FormatErrorConfig,
    FormatErrorStrategy,
    RetryPolicy,
    Sampling,
    ToolPolicy,
    warn_once,
)
from axislab.errors import ConfigError
from axislab.runtime.conversation import ConversationRuntime


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ConversationConfig(max_turn=3), "did you mean 'max_turns'"),
        (lambda: ConversationConfig(xyz=3), "allowed: agg_reject_tool_message, "),
        (lambda: ConversationConfig(max_turns=0), "max_turns=0"),
        (lambda: ConversationConfig(max_turns="many"), "max_turns='many'"),
        (lambda: ConversationConfig(on_length="stop"), "'terminate', 'accept' or 'rollback'"),
        (lambda: ConversationConfig(context_limit={"windo": 3}), "did you mean 'window'"),
        (lambda: ConversationConfig(context_limit=3), "context_limit=3"),
        (lambda: ConversationConfig(context_window=3), "is no field of it"),
        (lambda: ContextLimitConfig(window=0), "window=0"),
        (lambda: ContextLimitConfig(warning_threshold=0), "warning_threshold=0"),
        (lambda: ContextLimitConfig(safety_margin=-1), "safety_margin=-1"),
        (lambda: ContextLimitConfig(min_tokens_for_generation=-1), "min_tokens_for_generation"),
        (lambda: AssistantRollbackConfig(max_rollbacks=-1), "max_rollbacks=-1"),
        (lambda: FormatErrorConfig(strategy="repromt"), "'reprompt', 'rollback' or 'ignore'"),
        (lambda: FormatErrorConfig(max_reprompts=-1), "max_reprompts=-1"),
        (lambda: Sampling(temperature=2.5), "temperature=2.5"),
        (lambda: Sampling(top_p=0), "top_p=0"),
        (lambda: Sampling(max_output_tokens=0), "max_output_tokens=0"),
        (lambda: RetryPolicy(attempts=0), "attempts=0"),
        (lambda: ToolPolicy(tool_timeout=0, nope=1), "tool_timeout=0"),
        (lambda: AgentConfig(conversation={"max_turns": 0}), "max_turns=0"),
        (lambda: AgentConfig(conversation=3), "conversation=3"),
        (lambda: AgentConfig.model_validate(3), "wants a mapping of its fields, got 3"),
        (lambda: AgentConfig().with_(max_turn=3), "did you mean 'max_turns'"),
        (lambda: AgentConfig().with_(max_turns=0), "max_turns=0"),
        (lambda: AgentConfig().with_(context_limit={"windo": 3}), "did you mean 'window'"),
        (lambda: AgentConfig().with_(context_limit=3), "context_limit=3"),
        (lambda: AgentConfig().knob("windo"), "did you mean 'window'"),
    ],
)
def test_a_knob_that_is_unknown_or_out_of_range_is_refused(make, message):
    with pytest.raises(ConfigError) as caught:
        make()
    assert message in str(caught.value)


def test_several_mistakes_are_told_at_once():
    with pytest.raises(ConfigError, match=r"window=0.*; .*safety_margin=-1"):
        ContextLimitConfig(window=0, safety_margin=-1)


def test_every_flat_name_is_unique_and_leads_to_its_value():
    names = [name for name, _ in module._walk(AgentConfig, ())]
    assert [n for n, count in Counter(names).items() if count > 1] == []
    bare = AgentConfig()
    for name, path in KNOBS.items():
        value = bare
        for part in path:
            value = getattr(value, part)
        assert bare.knob(name) == value
        assert path[-1] == name


def test_every_knob_says_what_it_is_for():
    text = "".join(Path(m.__file__).read_text("utf-8") for m in (module, answer_policy))
    for name in KNOBS:
        if name not in AgentConfig.model_fields:
            declared = text.index(f"\n    {name}: ")
            following = text[text.index("\n", declared + 1) :].lstrip()
            assert following.startswith(('"""', 'r"""')), name


def test_a_knob_is_set_wherever_it_is_nested_and_the_rest_stays():
    old = AgentConfig().with_(safety_margin=7, max_turns=5)
    new = old.with_(window=900, temperature=0.2, strategy="ignore")
    assert (new.knob("window"), new.knob("safety_margin"), new.knob("max_turns")) == (900, 7, 5)
    assert new.conversation.format_error.strategy is FormatErrorStrategy.IGNORE
    assert new.sampling.temperature == 0.2
    assert old.knob("window") is None
    assert old == AgentConfig().with_(max_turns=5).with_(safety_margin=7)
    assert old != new


def test_groups_are_merged_at_every_depth_and_never_reset():
    old = AgentConfig().with_(safety_margin=7, max_turns=5)
    for new in (
        old.with_(context_limit={"window": 9}),
        old.with_(conversation={"context_limit": {"window": 9}}),
    ):
        assert (new.knob("window"), new.knob("safety_margin"), new.knob("max_turns")) == (9, 7, 5)
    whole = old.with_(context_limit=ContextLimitConfig(window=9))
    assert whole.knob("safety_margin") == 0, "a whole group is taken as it is"
    assert old.with_(extra={"a": 1}).with_(extra={"b": 2}).sampling.extra == {"b": 2}


def test_a_config_is_read_back_from_what_it_dumps():
    new = AgentConfig().with_(window=900, refusal_keywords=["a"], strategy="rollback")
    assert AgentConfig.model_validate(new.model_dump()) == new
    assert AgentConfig.model_validate(new) is new


def test_empty_prompts_are_none_and_other_texts_stay():
    blank = ConversationConfig(system_prompt="", early_stop_prompt="", final_response_prompt="")
    assert (blank.system_prompt, blank.early_stop_prompt, blank.final_response_prompt) == (
        None,
        None,
        None,
    )
    assert ConversationConfig(user_prompt_template="").user_prompt_template == ""
    assert ConversationConfig(system_prompt=" ").system_prompt == " "


def test_the_bare_config_stands_at_the_defaults_of_the_case_files():
    bare = ConversationConfig()
    assert bare.user_prompt_template == "{task}"
    assert (bare.on_length, bare.detector, bare.on_empty_reply) == (
        "terminate",
        "substring",
        "accept",
    )
    assert bare.assistant_rollback == AssistantRollbackConfig(
        max_rollbacks=0, refusal_keywords=(), on_rollback_limit="accept"
    )
    assert bare.format_error.format_keywords == ("<tool_call>", "</tool_call>")
    assert bare.format_error.max_reprompts is None
    assert bare.context_limit == ContextLimitConfig(window=None, min_tokens_for_generation=0)
    assert bare.agg_reject_tool_message is False


@pytest.mark.parametrize(
    "bound",
    [
        {"max_turns": 3},
        {"context_limit": {"window": 900}},
        {"format_error": {"max_reprompts": 1}},
        {"format_error": {"strategy": "ignore"}},
    ],
)
def test_reprompts_without_any_bound_are_warned_about(bound):
    (sentence,) = ConversationConfig().warnings()
    assert "set max_reprompts, max_turns or window" in sentence
    assert ConversationConfig(**bound).warnings() == []


def test_a_warning_is_given_once_in_a_process(monkeypatch):
    monkeypatch.setattr(module, "_warned", set())
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with pytest.warns(UserWarning, match="without any bound") as caught:
            ConversationRuntime(ConversationConfig())
        assert len(caught) == 1
        with warnings.catch_warnings(record=True) as again:
            ConversationRuntime(ConversationConfig())
            warn_once("something else")
        assert [str(w.message) for w in again] == ["something else"]
