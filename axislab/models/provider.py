"""The simulated agent behind litellm: `axislab/simulated`, and one name for each preset.

The draw key comes as the call parameter `axislab_draw`, a profile may come as `axislab_profile`;
nothing else but messages, tools and sampling is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from axislab.errors import ConfigError, ErrorKind, ModelError
from axislab.models.base import ModelReply
from axislab.models.custom_llm import (
    CustomProvider,
    Params,
    WireMessages,
    register_custom,
    request_from,
)
from axislab.models.faults import FailureProfile
from axislab.models.simulated import PROVIDER, SimulatedModel, simulated_model

DRAW: Final = "axislab_draw"
"""Call parameter: the opaque draw key."""
PROFILE: Final = "axislab_profile"
"""Call parameter: a preset's name, or a mapping of rates."""
WINDOW: Final = "axislab_window"
"""Call parameter: tokens the context holds."""


def register() -> None:
    """Make the simulated agent known to litellm; other custom providers stay as they are."""
    register_custom(SimulatedProvider)


class SimulatedProvider(CustomProvider):
    """Answers litellm's calls with the simulated agent."""

    name = PROVIDER

    def check(self, model: str) -> None:
        """Find a misspelt name.

        Raises:
            ModelError: NOT_FOUND, with the names there are.
        """
        try:
            model_for(model)
        except ConfigError as problem:
            raise ModelError(str(problem), kind=ErrorKind.NOT_FOUND) from None

    def info(self, model: str) -> Mapping[str, Any]:
        """Profile and rates, for the trace header."""
        return model_for(model).info

    def reply(self, model: str, messages: WireMessages, params: Params) -> ModelReply:
        """What the agent says.

        Raises:
            AxislabError: No such model or profile, or a failure that was drawn.
        """
        simulated = model_for(model, profile=params.get(PROFILE), window=params.get(WINDOW))
        draw = str(params.get(DRAW) or "")
        return simulated.reply(
            request_from(messages, params, draw=draw, used=(DRAW, PROFILE, WINDOW))
        )


def model_for(
    model: str, *, profile: str | Mapping[str, Any] | None = None, window: int | None = None
) -> SimulatedModel:
    """The simulated model of a litellm name, with or without the provider before the slash.

    Raises:
        ConfigError: No such model or profile.
    """
    name = model if model.startswith(f"{PROVIDER}/") else f"{PROVIDER}/{model}"
    if profile is None:
        return _named(name, window)
    simulated_model(name)
    own = FailureProfile.model_validate(profile) if isinstance(profile, Mapping) else profile
    return SimulatedModel(own, name=name, window=window)


@lru_cache(maxsize=64)
def _named(name: str, window: int | None) -> SimulatedModel:
    return simulated_model(name, window=window)
