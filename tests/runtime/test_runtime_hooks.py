"""What users plug in: rules, chains, hooks and estimators, also those that raise."""

from types import NoneType

import pytest
from runtime_kit import STOP, Letters, answer, begun, calls, exchange, say, texts

from axislab.errors import ConfigError, ConversationError, HookError, OperationRefused
from axislab.messages import Message
from axislab.runtime.budget import TokenEstimator
from axislab.runtime.decisions import (
    Decision,
    Pass,
    Rule,
    Verdict,
    accept,
    insert_before,
    preview,
    replace_rule,
    reprompt,
)
from axislab.runtime.rules import CHAIN
from axislab.runtime.stages import ConversationStage as S

TAG = "<tool_call>{}</tool_call>"


def boom(*_):
    raise LookupError("boom")


def deciding(verdict, **more):
    """A chain whose first rule decides this about every reply that says so."""

    def mine(turn):
        """My own rule."""
        if "decide" not in turn.text:
            return None
        return Decision(rule="mine", level="L0", verdict=verdict, because="I say so", **more)

    return insert_before(CHAIN, "token_exhaustion", Rule("mine", "L0", mine))


# What raises


@pytest.mark.parametrize(
    "runtime",
    [
        {"direct_answer": boom},
        {"direct_answer": lambda _: 42},
        {"wants_final_prompt": boom},
        {"chain": insert_before(CHAIN, "refusal", Rule("mine", "L4", boom))},
        {"chain": replace_rule(CHAIN, "completed", Rule("mine", "L7", boom))},
    ],
)
@pytest.mark.parametrize("finish_reason", ["stop", "length"])
def test_what_the_user_plugs_in_may_raise_and_nothing_has_changed(runtime, finish_reason):
    knobs = {"final_response_prompt": "WRAP UP" if "wants_final_prompt" in runtime else None}
    conversation = begun(on_length="accept", runtime=runtime, **knobs)
    if "direct_answer" in runtime and finish_reason == "length":
        conversation = begun(runtime=runtime)
    before = (tuple(conversation.full), conversation.turn_idx, conversation.stage)
    for act in (say, lambda c, *a: c.explain(Message.assistant("Elbe"), a[1])):
        with pytest.raises(HookError, match=r"raised LookupError.* line |hook gave 42") as caught:
            act(conversation, "Elbe", finish_reason)
        assert isinstance(caught.value.__cause__, LookupError | NoneType)
        assert (tuple(conversation.full), conversation.turn_idx, conversation.stage) == before


@pytest.mark.parametrize("nonsense", [True, "yes", 3, ("a", "b")])
def test_a_rule_that_gives_no_answer_of_a_rule_is_named_and_changes_nothing(nonsense):
    chain = insert_before(CHAIN, "refusal", Rule("mine", "L4", lambda _: nonsense))
    conversation = begun(runtime={"chain": chain})
    with pytest.raises(HookError, match=r"rule 'mine' gave .*: a rule gives a Decision"):
        say(conversation, "Elbe", "stop")
    assert conversation.turn_idx == 0


def test_a_rule_may_look_back_at_what_the_model_sees_and_at_the_turn():
    seen = []

    def look(turn):
        seen.append(([m.text for m in turn.visible][-2:], turn.turn_idx))

    chain = insert_before(CHAIN, "refusal", Rule("look", "L4", look))
    conversation = begun(runtime={"chain": chain})
    task = conversation.visible[-1].text
    say(conversation, "Elbe", "stop")
    assert seen == [([task, "Elbe"], 1)]


def test_a_rule_may_accept_or_reprompt_with_words_of_its_own():
    ask = reprompt("ask", "L4", "Say more.", "one word only")
    rule = Rule("ask", "L4", lambda turn: ask if turn.turn_idx == 1 else None)
    chain = insert_before(CHAIN, "refusal", rule)
    conversation = begun(runtime={"chain": chain})
    first = say(conversation, "Elbe", "stop")
    assert conversation.visible[-1].text == "Say more."
    assert first.info.conditional() == {}
    take = accept("take", "L4", "good enough", answer="Elbe")
    chain = insert_before(CHAIN, "refusal", Rule("take", "L4", lambda _: take))
    done = say(begun(runtime={"chain": chain}), "The Elbe, I think.", "stop")
    assert done.info.direct_final_answer == "Elbe"


def test_an_error_of_ours_inside_a_hook_stays_what_it_is():
    def hook(_):
        raise OperationRefused("not now")

    with pytest.raises(OperationRefused, match="not now"):
        say(begun(runtime={"direct_answer": hook}), "Elbe")


def test_an_interrupt_inside_a_hook_passes_and_nothing_has_changed():
    def hook(_):
        raise KeyboardInterrupt

    conversation = begun(runtime={"direct_answer": hook})
    with pytest.raises(KeyboardInterrupt):
        say(conversation, "Elbe")
    assert (conversation.stage, len(conversation.full)) == (S.INITIAL_USER, 1)


class Moody(Letters):
    """An estimator that raises at the word boom, and may count only whole lists."""

    def __init__(self, *, additive=True, result=None):
        self.additive = additive
        self.result = result

    def count(self, messages):
        if any("boom" in m.text for m in messages):
            if self.result is None:
                raise LookupError("boom")
            return self.result
        return super().count(messages)


@pytest.mark.parametrize("additive", [True, False])
@pytest.mark.parametrize("result", [None, "many"])
def test_an_estimator_may_raise_and_nothing_has_changed(additive, result):
    estimator = Moody(additive=additive, result=result)
    conversation = begun(window=9000, min_tokens_for_generation=1, runtime={"estimator": estimator})
    with pytest.raises(HookError, match="estimator raised"):
        say(conversation, "boom")
    conversation.apply_assistant_message(calls("c1"))
    with pytest.raises(HookError, match="estimator raised"):
        answer(conversation, "boom")
    assert (len(conversation.pending), len(conversation.full)) == (1, 2)
    assert answer(conversation).stage is S.TOOL_MESSAGES


def test_an_estimate_is_a_whole_number_from_zero_up():
    for result, estimate in ((7.9, 4 + 7), (-5, 4), (True, 4 + 1)):
        conversation = begun(runtime={"estimator": Moody(result=result)})
        say(conversation, "boom")
        assert conversation.estimate() == estimate


def test_an_estimator_of_whole_lists_counts_tools_and_prompt_with_them():
    class Whole(Letters):
        additive = False

    conversation = begun(window=60, runtime={"estimator": Whole(), "tools": ["search"]})
    assert isinstance(Whole(), TokenEstimator)
    assert conversation.estimate() == len("task") + len("['search']")
    record = conversation.budget()
    assert record.estimated_prompt_with_warning_tokens == 14 + len(STOP)
    assert not conversation.record_observed_prompt_tokens(conversation.visible, 99)


def test_tools_are_counted_once():
    class Knowing(Letters):
        includes_tools = True

    assert begun(runtime={"estimator": Knowing(), "tools": ["search"]}).estimate() == 4
    assert begun(runtime={"estimator": Letters(), "tools": ["search"]}).estimate() == 14
    assert begun(runtime={"estimator": Letters(), "tools": []}).estimate() == 4


# Chains of one's own


def test_a_rule_of_ones_own_decides_before_the_others_and_says_why():
    chain = deciding(Verdict.ROLL_BACK, reason="mine")
    conversation = begun(runtime={"chain": chain})
    step = say(conversation, "decide")
    assert (step.decision.rule, step.decision.because) == ("mine", "I say so")
    assert step.info.rollback_reason == "mine"
    assert chain[0].summary == "My own rule."
    assert say(conversation, "Elbe").stage is S.COMPLETED


@pytest.mark.parametrize(
    ("verdict", "stage"),
    [
        (Verdict.TOKEN_EXCEED, S.TOKEN_EXCEEDED),
        (Verdict.ROLL_BACK, S.INITIAL_USER),
        (Verdict.ASK_AGAIN, S.INITIAL_USER),
        (Verdict.REPROMPT, S.REPROMPT),
        (Verdict.FINAL_PROMPT, S.FINAL_PROMPT),
        (Verdict.FORCE_FINAL, S.FORCE_FINAL),
        (Verdict.COMPLETE, S.COMPLETED),
        (Verdict.FORCE_COMPLETE, S.FORCE_COMPLETED),
        (Verdict.REJECT_CALLS, S.CALLS_REJECTED),
    ],
)
def test_a_rule_may_decide_anything(verdict, stage):
    step = say(begun(runtime={"chain": deciding(verdict)}), "decide")
    assert step.stage is stage
    assert (step.done_reason is None) == (step.action != "done")
    if stage is S.FORCE_COMPLETED:
        assert step.done_reason == "assistant_final_answer"
    if stage is S.FORCE_FINAL:
        assert step.info.finalization_trigger == "context_limit"


@pytest.mark.parametrize("verdict", [Verdict.REPROMPT, Verdict.FINAL_PROMPT, Verdict.ASK_AGAIN])
def test_a_rule_cannot_leave_calls_unanswered(verdict):
    conversation = begun(runtime={"chain": deciding(verdict)})
    with pytest.raises(HookError, match="unanswered"):
        conversation.apply_assistant_message(calls("c1", text="decide"))
    assert len(conversation.full) == 1


def test_a_rule_that_forces_the_answer_hides_calls_first():
    conversation = begun(runtime={"chain": deciding(Verdict.FORCE_FINAL, reason="mine")})
    step = conversation.apply_assistant_message(calls("c1", text="decide"))
    assert [S(s) for s in step.stage_path][2:] == [S.CONTEXT_ROLLBACK, S.FORCE_FINAL]
    assert texts(conversation) == ["task", STOP]
    assert step.info.finalization_trigger == "mine"
    assert step.info.rollback_message_count == 1


def test_a_rule_cannot_run_the_tools_of_a_reply_that_calls_none():
    with pytest.raises(HookError, match="calls none"):
        say(begun(runtime={"chain": deciding(Verdict.EXECUTE_TOOLS)}), "decide")


def test_a_rule_cannot_make_an_illegal_move():
    conversation = begun(max_turns=1, runtime={"chain": deciding(Verdict.ROLL_BACK)})
    with pytest.raises(OperationRefused, match="no move"):
        say(conversation, "decide")
    assert conversation.stage is S.FORCE_FINAL


def test_a_rule_can_be_taken_out_and_the_chain_may_be_empty():
    chain = replace_rule(CHAIN, "format_error", None)
    assert say(begun(runtime={"chain": chain}), TAG).stage is S.COMPLETED
    bare = begun(runtime={"chain": ()})
    (report,) = bare.explain(Message.assistant(TAG))
    assert (report.rule, report.outcome) == ("completed", "fired")
    assert say(bare, TAG).decision.rule == "completed"


def test_a_rule_that_is_not_there_is_named_with_its_neighbours():
    rule = CHAIN[0]
    for change in (insert_before, replace_rule):
        with pytest.raises(ConfigError, match="did you mean 'refusal'"):
            change(CHAIN, "refusl", rule)


# explain


REPLIES = [
    Message.assistant(None),
    Message.assistant("Elbe"),
    Message.assistant("I cannot"),
    Message.assistant(TAG),
    Message.assistant("FINAL 42"),
    calls("c1"),
    Message.assistant("x" * 60),
]


@pytest.mark.parametrize("finish_reason", [None, "stop", "length"])
@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize(
    "knobs",
    [
        {},
        {"max_turns": 1},
        {"final_response_prompt": "WRAP UP"},
        {"refusal_keywords": ("I cannot",), "max_rollbacks": 1, "on_length": "rollback"},
        {"strategy": "ignore", "on_length": "accept", "on_empty_reply": "retry"},
        {"window": 60, "min_tokens_for_generation": 5, "warning_threshold": 20},
    ],
)
def test_explain_says_what_applying_does_and_changes_nothing(knobs, reply, finish_reason):
    hook = {
        "direct_answer": lambda m: "42" if "FINAL" in m.text else None,
        "estimator": Letters(),
    }
    conversation = begun(runtime=hook, **knobs)
    before = (tuple(conversation.full), conversation.turn_idx, conversation.stage)
    reports = conversation.explain(reply, finish_reason)
    assert (tuple(conversation.full), conversation.turn_idx, conversation.stage) == before
    assert [r.rule for r in reports] == [r.name for r in CHAIN]
    fired = [r for r in reports if r.outcome == "fired"]
    step = conversation.apply_assistant_message(reply, finish_reason)
    assert [(r.rule, r.level, r.because) for r in fired] == [
        (step.decision.rule, step.decision.level, step.decision.because)
    ]
    after = reports[reports.index(fired[0]) + 1 :]
    assert {r.outcome for r in after} <= {"not reached"}
    assert all(r.because for r in reports)


def test_a_rule_that_passes_without_a_word_is_reported_so():
    def silent(_):
        return None

    chain = insert_before(CHAIN, "completed", Rule("silent", "L7", silent))
    reports = begun(runtime={"chain": chain}).explain(Message.assistant("Elbe"))
    (report,) = [r for r in reports if r.rule == "silent"]
    assert (report.outcome, report.because) == ("passed", "")
    assert Rule("silent", "L7", silent).summary == ""
    assert Pass("x").skipped is False


def test_explain_is_refused_where_no_reply_is_awaited():
    conversation = begun()
    exchange(conversation, "c1")
    say(conversation, "Elbe")
    with pytest.raises(ConversationError):
        conversation.explain(Message.assistant("x"))


def test_a_preview_is_one_line():
    assert preview("a\n\n b") == "a b"
    assert preview("x" * 9, 8) == "x" * 8 + "…"
    assert preview("x" * 8, 8) == "x" * 8
