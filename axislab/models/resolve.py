"""Makes a model of what the user wrote: a litellm string, or a ChatModel as it is."""

from __future__ import annotations

from typing import Any

from axislab.errors import ConfigError
from axislab.models.base import ChatModel


def resolve_model(spec: str | ChatModel, **options: Any) -> ChatModel:
    """The model a string names, or the given model itself.

    Args:
        spec: "axislab/simulated", "axislab-local/smollm2-135m", any litellm model string, or an
            object with the methods of ChatModel.
        options: For a string: api_key, api_base, price and further parameters of LiteLLMModel.

    Raises:
        ConfigError: Neither a string nor a ChatModel, or options for a model that is made already.

    Examples:
        >>> resolve_model("ollama/llama3.2")
        LiteLLMModel('ollama/llama3.2')
    """
    if isinstance(spec, str):
        # Importing this is cheap; litellm itself is loaded by the first check or call.
        from axislab.models.litellm_model import LiteLLMModel

        return LiteLLMModel(spec, **options)
    if isinstance(spec, type) or not isinstance(spec, ChatModel):
        raise ConfigError(
            f"model={spec!r}: a litellm model string such as 'axislab/simulated', or an object "
            "with name, simulated, info, check() and complete() is wanted"
        )
    if options:
        raise ConfigError(
            f"{sorted(options)} cannot be set on {spec!r}, which is made already: set them there"
        )
    return spec
