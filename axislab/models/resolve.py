"""Makes a model of what the user wrote: a litellm string, or a ChatModel as it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from axislab.borders import shown
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
    require_model(spec)
    if options:
        raise ConfigError(
            f"{sorted(options)} cannot be set on {spec!r}, which is made already: set them there"
        )
    return spec


def require_model(model: object) -> ChatModel:
    """The object, if it is a model and says of itself what a trace needs to know.

    Raises:
        ConfigError: It is none, or its name, `simulated` or `info` is not as ChatModel has it.
    """
    if isinstance(model, type) or not isinstance(model, ChatModel):
        raise ConfigError(
            f"model={shown(model)}: a litellm model string such as 'axislab/simulated', or an "
            "object with name, simulated, info, check() and complete() (see ChatModel) is wanted"
        )
    if not isinstance(model.name, str) or not model.name.strip():
        raise ConfigError(f"{shown(model)} has the name {shown(model.name)}: text is wanted")
    if not isinstance(model.simulated, bool):
        raise ConfigError(
            f"model {model.name!r} has simulated={shown(model.simulated)}: True or False is wanted"
        )
    _require_info(model)
    return model


def _require_info(model: ChatModel) -> None:
    info = model.info
    try:
        if not isinstance(info, Mapping):
            raise TypeError(f"it is a {type(info).__name__}")
        json.dumps(dict(info), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as problem:
        raise ConfigError(
            f"model {model.name!r} has info={shown(info)}, which goes into every trace: a mapping "
            f"of plain JSON values is wanted, {{}} if there is nothing to tell ({problem})"
        ) from problem
