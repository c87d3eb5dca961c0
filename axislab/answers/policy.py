"""Answer policies that have a name, and how one is merged into another."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from axislab.answer_policy import FAILURE_PREFIX, AnswerPolicy
from axislab.errors import ConfigError, did_you_mean

_PLAIN: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "answer_stage": "if_needed",
        "answer_attempts": 1,
        "tries": 1,
        "retry_with_summary": True,
        "skip_when_cut_off": True,
        "fallback_on_last_try": False,
        "fallback_on_early_tries": False,
        "fallback_by_kind": {},
        "answer_retries": {},
        "summary_quality": 0.0,
        "verify_answer": "never",
    }
)


def _preset(**fields: Any) -> AnswerPolicy:
    return AnswerPolicy(**{**_PLAIN, **fields})


_HOPELESS = {"auth": {"attempts": 1}, "bad_request": {"attempts": 1}, "context": {"attempts": 1}}

ANSWER_POLICIES: Final[Mapping[str, AnswerPolicy]] = MappingProxyType(
    {
        # The reply that ends the conversation is the answer, or there is none.
        "single_shot": _preset(),
        # Three whole attempts, each told why those before it failed.
        "three_tries": _preset(tries=3),
        # Rather no answer than a doubtful one: never an intermediate answer, good accounts of
        # failures, and a try that ran out of turns or context is not made to guess.
        "accuracy_first": _preset(
            answer_attempts=3, tries=3, summary_quality=0.6, answer_retries=_HOPELESS
        ),
        # Rather a doubtful answer than none: asked again, then the newest intermediate one.
        "usability_first": _preset(
            answer_attempts=3,
            skip_when_cut_off=False,
            fallback_on_last_try=True,
            fallback_on_early_tries=True,
            answer_retries=_HOPELESS,
        ),
        # MiroFlow's: always asked, three times, then the newest intermediate answer.
        "miroflow": _preset(
            answer_stage="always",
            answer_attempts=3,
            fallback_on_last_try=True,
            failure_prefix=FAILURE_PREFIX,
        ),
        # AxisAgentic's: it has no answer stage; the last reply stands, as in single_shot.
        "axisagentic": _preset(),
    }
)
"""Presets by name. None of them sets the format of the answer, nor a prompt of your own."""


def resolve_policy(given: AnswerPolicy | str) -> AnswerPolicy:
    """The preset of that name, or the policy itself.

    Raises:
        ConfigError: No preset has the name, or it is no policy.

    Examples:
        >>> resolve_policy("three_tries").tries
        3
    """
    if isinstance(given, AnswerPolicy):
        return given
    if not isinstance(given, str) or given not in ANSWER_POLICIES:
        raise ConfigError(
            f"answer_policy={given!r} is neither an AnswerPolicy nor a preset: "
            f"{did_you_mean(given, ANSWER_POLICIES)}"
        )
    return ANSWER_POLICIES[given]


def merge_policy(base: AnswerPolicy, given: AnswerPolicy | str) -> AnswerPolicy:
    """The base with every field that the given policy sets; what it leaves out stays.

    Raises:
        ConfigError: Neither a policy nor the name of a preset.

    Examples:
        >>> merge_policy(AnswerPolicy(answer_format="json"), "three_tries").answer_format
        'json'
    """
    policy = resolve_policy(given)
    fields = {name: getattr(base, name) for name in AnswerPolicy.model_fields}
    given_fields = {name: getattr(policy, name) for name in policy.model_fields_set}
    return AnswerPolicy(**{**fields, **given_fields})
