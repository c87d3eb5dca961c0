"""Which token estimator a model is budgeted with, and how one is found again by its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from axislab.errors import ConfigError
from axislab.messages import Message
from axislab.models._litellm import OURS
from axislab.models.base import ChatModel
from axislab.models.sim_tokens import SimTokenEstimator
from axislab.models.tokens import PREFIX, LiteLLMTokenEstimator


@runtime_checkable
class MessageCounter(Protocol):
    """What the runtime calls a TokenEstimator; `overhead(tools)` and `method` are optional."""

    additive: bool
    includes_tools: bool

    def count(self, messages: Sequence[Message]) -> int:
        """Tokens of these messages."""


@runtime_checkable
class KnowsItsTokens(Protocol):
    """A ChatModel that says how its prompts are counted; most need not."""

    def estimator(self) -> MessageCounter | None:
        """The estimator of its runs; None is a count by characters."""


def estimator_for(model: ChatModel) -> MessageCounter | None:
    """The estimator a model asks for; None if it asks for none, which is a count by characters.

    Nothing is loaded before the first count.

    Args:
        model: A model; one with a method `estimator()` is asked.

    Raises:
        ConfigError: What `estimator()` returned is no estimator.
    """
    if not isinstance(model, KnowsItsTokens):
        return None
    found = model.estimator()
    if found is not None and not isinstance(found, MessageCounter):
        raise ConfigError(
            f"{model.name}: estimator() returned {found!r}; an object with additive, "
            "includes_tools and count(messages), or None, is wanted"
        )
    return found


def litellm_estimator(model: str) -> MessageCounter | None:
    """The estimator of a litellm model string; None is a count by characters.

    Examples:
        >>> litellm_estimator("openai/gpt-4o")
        LiteLLMTokenEstimator('openai/gpt-4o')
    """
    provider = model.partition("/")[0]
    if provider == "axislab":
        return SimTokenEstimator()
    # A local model has a vocabulary of its own, which only its engine could count by.
    return None if provider in OURS else LiteLLMTokenEstimator(model)


def estimator_named(method: str) -> MessageCounter | None:
    """The estimator of a model with this method name; None if axislab has none of that name.

    Examples:
        >>> estimator_named("litellm:openai/gpt-4o")
        LiteLLMTokenEstimator('openai/gpt-4o')
    """
    if method == SimTokenEstimator.method:
        return SimTokenEstimator()
    if method.startswith(PREFIX):
        return LiteLLMTokenEstimator(method.removeprefix(PREFIX))
    return None
