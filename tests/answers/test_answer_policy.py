"""Answer policies: presets, their decisions as a table, and how they merge into a recipe."""

from __future__ import annotations

import pytest

from axislab.answer_policy import AnswerPolicy
from axislab.answers.policy import ANSWER_POLICIES, merge_policy, resolve_policy
from axislab.errors import ConfigError
from axislab.recipe import Recipe, grid


def test_the_decision_table_of_miroflow_is_that_of_the_specification():
    table = AnswerPolicy.from_seed(context_compress_limit=2).decision_table()
    rows = [tuple(row) for row in table.drop(columns=["context_management", "kind"]).to_numpy()]
    assert rows == [
        (False, False, True, 3, False, "if no answer"),
        (False, True, True, 3, True, "never"),
        (True, False, False, 0, False, "if no answer"),
        (True, True, True, 3, True, "never"),
    ]


def test_a_single_try_never_asks_for_an_account_and_has_no_early_try():
    table = ANSWER_POLICIES["miroflow"].decision_table()
    assert table["final_try"].all()
    assert set(table["failure_summary"]) == {"never"}
    assert table["fallback"].all()


def test_the_kind_of_a_task_decides_about_its_fallback():
    policy = AnswerPolicy(
        tries=2,
        fallback_on_last_try=True,
        fallback_by_kind={"lookup": "every_try", "sum": "never", "chain": "last_try"},
    )
    table = policy.decision_table().set_index("kind")
    assert table.loc["lookup", "fallback"].tolist() == [True] * 4
    assert table.loc["sum", "fallback"].tolist() == [False] * 4
    assert table.loc["chain", "fallback"].tolist() == [False, True, False, True]
    assert policy.fallback(final=True, kind="another")


@pytest.mark.parametrize(
    ("keep", "calls"), [(-1, 3), (0, 1), (5, 1)], ids=["all results", "none", "five"]
)
def test_the_seeds_names_give_its_attempts(keep, calls):
    policy = AnswerPolicy.from_seed(context_compress_limit=4, keep_tool_result=keep)
    assert (policy.answer_attempts, policy.tries, policy.context_compress_limit) == (calls, 5, 4)


def test_a_preset_is_merged_and_leaves_the_format_alone():
    recipe = Recipe(name="r").with_(answer_format="json", tries=4)
    changed = recipe.with_(answer_policy="three_tries", answer_attempts=2)
    policy = changed.config.answer
    assert (policy.answer_format, policy.tries, policy.answer_attempts) == ("json", 3, 2)
    assert changed.with_(answer_policy="single_shot").config.answer.tries == 1


def test_only_fields_that_a_policy_sets_are_merged():
    merged = merge_policy(AnswerPolicy(tries=3, answer_attempts=2), AnswerPolicy(tries=1))
    assert (merged.tries, merged.answer_attempts) == (1, 2)


def test_presets_are_arms_of_a_grid():
    arms = grid(Recipe(name="r"), answer_policy=["single_shot", "accuracy_first"])
    assert list(arms) == ["answer_policy=single_shot", "answer_policy=accuracy_first"]
    assert len({arm.fingerprint for arm in arms.values()}) == 2


def test_what_is_no_policy_is_refused_with_a_suggestion():
    with pytest.raises(ConfigError, match="did you mean 'three_tries'"):
        resolve_policy("three_trys")
    with pytest.raises(ConfigError, match="'time_out' is no kind of error"):
        AnswerPolicy(answer_retries={"time_out": {}})
    with pytest.raises(ConfigError, match="keep_tool_result=-2"):
        AnswerPolicy.from_seed(keep_tool_result=-2)


def test_only_a_policy_that_may_do_more_than_read_is_active():
    passive = {n for n, p in ANSWER_POLICIES.items() if not p.active}
    assert passive == {"single_shot", "axisagentic"}
    assert AnswerPolicy(fallback_by_kind={"x": "last_try"}).active


def test_a_policy_survives_yaml():
    recipe = Recipe(name="r").with_(
        answer_policy="accuracy_first", answer_retries={"format": {"temperature": 0.9}}
    )
    again = Recipe.from_yaml(recipe.to_yaml())
    assert again.config.answer == recipe.config.answer
    assert again.config.answer.answer_retries["format"].temperature == 0.9
