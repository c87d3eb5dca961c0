"""A string names a model, an object is one."""

import re
from types import MappingProxyType
from typing import Any

import pytest

from axislab import Lab, Recipe
from axislab.errors import ConfigError
from axislab.models.base import ModelReply, ModelRequest
from axislab.models.litellm_model import LiteLLMModel
from axislab.models.price import Price
from axislab.models.resolve import resolve_model
from axislab.models.scripted import ScriptedModel


@pytest.mark.parametrize(
    "spec", ["openai/gpt-4o", "axislab/simulated", "axislab-local/smollm2-135m"]
)
def test_a_string_becomes_a_litellm_model(spec: str) -> None:
    model = resolve_model(spec)
    assert isinstance(model, LiteLLMModel)
    assert model.name == spec
    assert model.simulated is (spec == "axislab/simulated")


def test_options_go_to_the_model() -> None:
    price = Price(input=1, output=2)
    model = resolve_model("openai/mine", api_base="http://localhost:1/v1", price=price, seed=3)
    assert isinstance(model, LiteLLMModel)
    assert model.price is price
    assert model.info == {"api_base": "http://localhost:1/v1", "extra": {"seed": 3}}


def test_a_model_is_itself() -> None:
    model = ScriptedModel(["a"])
    assert resolve_model(model) is model


@pytest.mark.parametrize("spec", [None, 3, object(), ScriptedModel, ["openai/gpt-4o"]])
def test_what_is_no_model_is_refused(spec: Any) -> None:
    with pytest.raises(ConfigError, match="axislab/simulated"):
        resolve_model(spec)


def test_options_for_a_made_model_are_refused() -> None:
    with pytest.raises(ConfigError, match="api_key"):
        resolve_model(ScriptedModel(["a"]), api_key="k")


@pytest.mark.parametrize(
    ("rates", "problem"),
    [
        ({"input": -1, "output": 1}, "input=-1"),
        ({"input": "1", "output": 1}, "input='1'"),
        ({"input": None, "output": 1}, "input=None"),
        ({"input": 1, "output": True}, "output=True"),
        ({"input": 1, "output": float("nan")}, "output=nan"),
        ({"input": 1, "output": 1, "cached": float("inf")}, "cached=inf"),
    ],
)
def test_a_price_is_a_number(rates: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Price(**rates)


def test_cached_input_has_a_price_of_its_own() -> None:
    from axislab.messages import Usage

    usage = Usage(input_tokens=1000, output_tokens=100, cached_tokens=400)
    assert Price(input=10, output=0, cached=1).of(usage) == pytest.approx(0.0064)
    assert Price(input=10, output=0).of(usage) == pytest.approx(0.01)
    assert Price(input=10, output=0).of(Usage(input_tokens=1000)) is None
    assert Price(input=10, output=0).of(None) is None


class Own:
    name: Any = "own"
    simulated: Any = False
    info: Any = MappingProxyType({})

    def __init__(self, **odd: Any) -> None:
        vars(self).update(odd)

    def check(self) -> None:
        """Fine."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        return ModelReply(text="fine")


ODD = [
    ({"name": None}, "has the name None"),
    ({"name": " "}, "has the name ' '"),
    ({"simulated": "no"}, "simulated='no': True or False"),
    ({"info": None}, "it is a NoneType"),
    ({"info": {"client": object()}}, "not JSON serializable"),
    ({"info": {"rate": float("nan")}}, "not JSON compliant"),
]


@pytest.mark.parametrize(("odd", "problem"), ODD)
def test_a_model_that_does_not_say_what_it_is_is_refused_before_anything_runs(
    odd: Any, problem: str
) -> None:
    for use in (resolve_model, Lab, lambda model: Recipe(model=model)):
        with pytest.raises(ConfigError, match=re.escape(problem)):
            use(Own(**odd))


@pytest.mark.parametrize("given", [5, object(), Own, {"name": "x"}])
def test_a_recipes_model_is_a_model(given: Any) -> None:
    with pytest.raises(ConfigError, match="axislab/simulated"):
        Recipe(model=given)


def test_recipes_with_other_models_of_one_name_are_other_recipes() -> None:
    def print_of(model: Any) -> str:
        return Recipe(model=model).fingerprint

    assert print_of(Own()) == print_of(Own())
    assert print_of(Own()) != print_of(Own(info={"weights": "b"}))
    assert print_of(ScriptedModel(["a"])) == print_of(ScriptedModel(["a"]))
    assert print_of(ScriptedModel(["a"])) != print_of(ScriptedModel(["b"]))
    assert print_of(LiteLLMModel("openai/m", api_base="http://a/v1")) != print_of(
        LiteLLMModel("openai/m", api_base="http://b/v1")
    )
