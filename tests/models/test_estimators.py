"""Which estimator a model is budgeted with: asked of the model, recorded, found again by name."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

import axislab as al
from axislab.config import ContextLimitConfig
from axislab.errors import ConfigError, HookError, TraceError
from axislab.messages import Message, ToolCall, ToolSpec
from axislab.models.custom_llm import request_from
from axislab.models.estimators import MessageCounter, estimator_for, estimator_named
from axislab.models.litellm_model import LiteLLMModel
from axislab.models.sim_tokens import SimTokenEstimator, prompt_tokens
from axislab.models.simulated import SimulatedModel
from axislab.models.tokens import LiteLLMTokenEstimator
from axislab.runtime.budget import CharEstimator, ContextBudgetEstimator, TokenEstimator
from axislab.trace.rebuild import conversation_of

SPEC = ToolSpec(
    name="search",
    description="Search the archive.",
    parameters={
        "type": "object",
        "properties": {"query": {"type": "string", "description": "What to look for."}},
        "required": ["query"],
    },
)
TOLD = [SPEC.to_dict()]


class Words:
    """A user's own estimator: a token for each word, seven for any tools."""

    additive = True
    includes_tools = False

    def count(self, messages: Any) -> int:
        return sum(len(m.text.split()) for m in messages)

    def overhead(self, tools: object) -> int:
        return 7 if tools else 1


class Worded(al.ScriptedModel):
    """A user's own model, which knows its tokens."""

    counter: Any = Words()

    def estimator(self) -> Any:
        return self.counter


# -- which ----------------------------------------------------------------------------------------


def test_a_model_behind_litellm_is_counted_by_its_tokenizer() -> None:
    found = estimator_for(LiteLLMModel("openai/gpt-4o"))
    assert isinstance(found, LiteLLMTokenEstimator)
    assert found.method == "litellm:openai/gpt-4o"
    assert isinstance(found, TokenEstimator)
    assert isinstance(found, MessageCounter)


@pytest.mark.parametrize("model", [SimulatedModel("clean"), LiteLLMModel("axislab/simulated")])
def test_the_simulated_provider_is_counted_by_its_own_tokenizer(model: Any) -> None:
    assert isinstance(estimator_for(model), SimTokenEstimator)


@pytest.mark.parametrize(
    "model", [al.ScriptedModel(["x"]), LiteLLMModel("axislab-local/smollm2-135m")]
)
def test_other_models_are_counted_by_characters(model: Any) -> None:
    assert estimator_for(model) is None


def test_a_model_may_bring_its_own_estimator() -> None:
    run = al.Lab(Worded(["four"])).run(al.Recipe().with_(system_prompt=None), "one two three")
    assert al.budgets_df(run).estimated_prompt_tokens[0] == 3 + 1
    assert al.budgets_df(run).estimator[0] == "Words"


def test_what_is_no_estimator_is_refused_before_the_run() -> None:
    model = Worded(["x"])
    model.counter = 4
    with pytest.raises(ConfigError, match="returned 4; an object with additive"):
        al.Lab(model).run(al.Recipe(), "x")


def test_an_estimator_is_found_again_by_its_name() -> None:
    for made in (LiteLLMTokenEstimator("openai/gpt-4o"), SimTokenEstimator()):
        again = estimator_named(made.method)
        assert type(again) is type(made)
        assert again.count([Message.user("four words are here")]) == made.count(
            [Message.user("four words are here")]
        )
    assert estimator_named("Words") is None


def test_finding_an_estimator_loads_nothing() -> None:
    code = (
        "import sys; from axislab.models.estimators import estimator_for; "
        "from axislab.models.litellm_model import LiteLLMModel; "
        "print(estimator_for(LiteLLMModel('openai/gpt-4o')).method, 'litellm' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["litellm:openai/gpt-4o", "False"]


# -- what tools cost ------------------------------------------------------------------------------


def test_tools_are_counted_as_litellm_counts_them() -> None:
    from axislab.models._litellm import load_litellm

    estimator = LiteLLMTokenEstimator("openai/gpt-4o")
    wire = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Osk?"}]
    whole = load_litellm().token_counter(model="openai/gpt-4o", messages=wire, tools=TOLD)
    said = estimator.count([Message.system("Be brief."), Message.user("Osk?")])
    assert said + estimator.overhead(TOLD) == whole
    assert estimator.overhead(TOLD) < estimator.count([Message.user(str(TOLD))])
    assert estimator.overhead([]) == estimator.overhead(None) == 3
    assert estimator.fallbacks == 0


def test_tools_that_cannot_be_counted_are_counted_by_characters() -> None:
    estimator = LiteLLMTokenEstimator(object())  # type: ignore[arg-type]
    assert estimator.overhead(TOLD) == pytest.approx(len(str(TOLD)) / 4, abs=6)
    assert estimator.fallbacks == 1
    assert estimator.overhead(None) == 0


def test_the_name_of_a_call_is_counted() -> None:
    estimator = LiteLLMTokenEstimator("openai/gpt-4o")
    short, long = (
        estimator.count([Message.assistant(None, [ToolCall(id="c", name=name, arguments="{}")])])
        for name in ("go", "go_to_the_archive_and_read_all_of_it")
    )
    assert long - short >= 6


@pytest.mark.parametrize("tools", [None, [], TOLD])
def test_an_estimator_that_knows_what_tools_cost_is_asked(tools: Any) -> None:
    budget = ContextBudgetEstimator(
        ContextLimitConfig(window=100), max_output_tokens=9, estimator=Words(), tools=tools
    )
    assert budget.method == "Words"
    assert budget.calibrates
    from axislab.runtime.transcript import Transcript

    assert budget.raw(Transcript(budget.cost)) == (7 if tools else 1)


@pytest.mark.parametrize(("additive", "includes"), [(False, False), (True, True), (False, True)])
def test_what_an_estimator_includes_is_not_counted_twice(additive: bool, includes: bool) -> None:
    class Whole(Words):
        pass

    Whole.additive, Whole.includes_tools = additive, includes
    model = Worded(["four"])
    model.counter = Whole()
    run = al.Lab(model).run(al.Recipe().with_(system_prompt=None), "one two three")
    assert al.budgets_df(run).estimated_prompt_tokens[0] == 3 + (0 if includes else 1)


def test_an_overhead_that_raises_is_the_users_error() -> None:
    class Broken(Words):
        def overhead(self, tools: object) -> int:
            raise ValueError("no idea")

    model = Worded(["x"])
    model.counter = Broken()
    with pytest.raises(HookError, match="ValueError: no idea"):
        al.Lab(model).run(al.Recipe(), "x")


# -- the simulated provider -----------------------------------------------------------------------


def test_the_estimate_of_a_simulated_prompt_is_what_the_provider_counts() -> None:
    call = ToolCall(id="c1", name="search", arguments='{"query": "奥斯克"}')
    messages = [
        Message.system("Be brief."),
        Message.user("山谷中最大的城市？"),
        Message.assistant(None, [call]),
        Message.tool("Osk is 1200 metres away.", tool_call_id="c1"),
    ]
    estimator = SimTokenEstimator()
    assert estimator.count(messages) + estimator.overhead(TOLD) == prompt_tokens(messages, [SPEC])
    sent = request_from([m.to_dict() for m in messages], {"tools": TOLD})
    assert prompt_tokens(sent.messages, sent.tools) == prompt_tokens(messages, [SPEC])


def test_estimates_of_simulated_runs_are_right_from_the_first_call_on() -> None:
    tasks = al.load_tasks("atlas").sample(6, seed=4)
    recipe = al.recipes.research_qa(corpus=al.load_corpus("atlas"))
    runs = al.Lab("axislab/simulated").run_many(recipe, tasks, progress=False)
    frame = al.budgets_df(runs).dropna(subset="relative_error")
    assert len(frame) > 12
    assert set(frame.estimator) == {"axislab/simulated"}
    assert frame.relative_error.abs().max() < 0.01
    assert all(al.replay(run).ok for run in runs)


# -- traces ---------------------------------------------------------------------------------------


def test_header_and_requests_name_the_estimator_and_a_replay_uses_it() -> None:
    run = al.Lab("axislab/simulated-clean").run(al.Recipe(), "What is the capital of Osk?")
    assert run.trace.header["estimator"] == "axislab/simulated"
    assert conversation_of(run.trace).estimator_method == "axislab/simulated"
    run = al.Lab(al.ScriptedModel(["x"])).run(al.Recipe(), "x")
    assert run.trace.header["estimator"] == CharEstimator.method
    assert conversation_of(run.trace).estimator_method == CharEstimator.method
    del run.trace.header["estimator"]
    assert conversation_of(run.trace).estimator_method == CharEstimator.method
    assert al.replay(run).ok


def test_a_replay_of_an_estimator_of_ones_own_asks_for_it() -> None:
    run = al.Lab(Worded(["four"])).run(al.Recipe(), "one two three")
    with pytest.raises(TraceError, match=r"counted by 'Words'.*pass estimator="):
        al.replay(run)
    assert al.replay(run, estimator=Words()).ok
    assert al.replay(run, recipe=al.Recipe(), estimator=Words()).ok
    assert not al.replay(run, estimator=CharEstimator()).ok


# -- the table ------------------------------------------------------------------------------------


def test_making_a_lab_starts_no_thread_that_loads_a_table() -> None:
    """A process that ends while a thread loads one may hang."""
    code = (
        "import sys, threading, axislab as al; before = set(threading.enumerate()); "
        "al.Lab('openai/gpt-4o', api_key='k'); "
        "print([t.name for t in threading.enumerate() if t not in before])"
    )
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]")


def test_many_threads_may_count_at_once() -> None:
    messages = [Message.user(f"{number} words are here") for number in range(50)]
    right = LiteLLMTokenEstimator("openai/gpt-4o").count(messages)

    async def main() -> list[int]:
        made = [LiteLLMTokenEstimator("openai/gpt-4o") for _ in range(8)]
        return await asyncio.gather(*(asyncio.to_thread(e.count, messages) for e in made))

    assert asyncio.run(main()) == [right] * 8


def test_memory_is_flat_over_thousands_of_messages() -> None:
    import tracemalloc

    estimator = LiteLLMTokenEstimator("openai/gpt-4o")

    def count(start: int) -> None:
        for number in range(start, start + 1500):
            estimator.count([Message.user(f"{number} " + "words are here " * 40)])

    tracemalloc.start()
    try:
        count(0)
        before = tracemalloc.get_traced_memory()[0]
        count(10_000)
        assert tracemalloc.get_traced_memory()[0] - before < 200_000
    finally:
        tracemalloc.stop()
