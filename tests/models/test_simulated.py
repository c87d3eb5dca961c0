"""The simulated agent works with what it is given, and knows nothing."""

import ast
import asyncio
import json
import re
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simworld import (
    SYSTEM,
    Loop,
    Task,
    Tool,
    accuracy,
    boxed,
    hide_old_results,
    make_world,
    tools_over,
)

import axislab.config
import axislab.models as models
from axislab.config import EARLY_STOP_PROMPT, FORMAT_REPROMPT, Sampling
from axislab.errors import ConfigError, ErrorKind, ModelError
from axislab.messages import Message, ToolCall, ToolSpec
from axislab.models.base import ChatModel, ModelRequest
from axislab.models.faults import FailureProfile, profile
from axislab.models.sim_tokens import count_tokens, prompt_tokens
from axislab.models.simulated import SimulatedModel, simulated_model

WORLD = make_world(0)
CLEAN = SimulatedModel("clean")
TOOLS = tools_over(WORLD)
SPECS = tuple(tool.spec for tool in TOOLS.values())
SOURCES = sorted(Path(models.__file__).parent.glob("sim*.py"))
SOURCES.append(Path(models.__file__).parent / "faults.py")


def ask(*messages, model=CLEAN, tools=SPECS, **options):
    return model.reply(ModelRequest(messages=messages, tools=tools, **options))


def test_it_is_a_chat_model_that_says_it_is_simulated():
    model = SimulatedModel()
    assert isinstance(model, ChatModel)
    assert (model.name, model.simulated) == ("axislab/simulated", True)
    assert model.info["profile"] == "flaky"
    assert model.info["rates"] == profile("flaky").rates()
    assert "simulated" in repr(model)
    model.check()


def test_names_choose_a_preset():
    assert simulated_model("axislab/simulated").profile.name == "flaky"
    assert simulated_model("axislab/simulated-stubborn").profile.name == "stubborn"
    with pytest.raises(ConfigError, match="did you mean 'axislab/simulated-clean'"):
        simulated_model("axislab/simulated-claen")
    with pytest.raises(ConfigError, match="'flakey' is no failure profile: did you mean 'flaky'"):
        SimulatedModel("flakey")
    with pytest.raises(ConfigError, match="coupling='shared'"):
        SimulatedModel(coupling="shared")


# -- it works ----------------------------------------------------------------------------------


def test_without_failures_it_solves_the_tasks_with_its_tools():
    assert accuracy(CLEAN, WORLD) >= 0.9


def test_a_flaky_model_solves_most_and_a_stubborn_one_about_half():
    flaky = accuracy(SimulatedModel("flaky"), WORLD, seeds=range(5))
    stubborn = accuracy(SimulatedModel("stubborn"), WORLD, seeds=range(5))
    assert 0.6 <= flaky <= 0.87
    assert 0.35 <= stubborn <= 0.65


def test_it_calculates_with_the_calculator_only():
    task = "Compute 12 * 31."
    done = Loop(CLEAN, TOOLS).run(task)
    assert done.answer == "372"
    assert [call.name for call in done.calls] == ["calculator"]
    bare = Loop(CLEAN, {}).run(task)
    assert bare.answer is None


def test_a_users_own_tool_is_used_by_its_description_alone():
    elements = {"Fe": {"name": "Iron", "atomic_number": 26}, "Cu": {"name": "Copper"}}

    def get_element(symbol):
        return json.dumps(elements.get(symbol, {}))

    schema = {"type": "object", "properties": {"symbol": {"type": "string"}}}
    spec = ToolSpec(name="get_element", description="An element.", parameters=schema)
    done = Loop(CLEAN, {"get_element": Tool(spec, get_element)}).run(
        "What is the atomic number of Fe?"
    )
    assert done.answer == "26"
    assert json.loads(done.calls[0].arguments) == {"symbol": "Fe"}


@pytest.mark.parametrize("kind", ["lines", "bare", "sentence", "pair"])
def test_own_tools_may_answer_in_other_forms(kind):
    schema = {"name": {"type": "string"}}
    name, description = "lookup", "Look a land up."
    answers = {
        "lines": lambda name: f"capital: {'Tal' if name == 'Osk' else '-'}",
        "bare": lambda name: "Tal",
        "sentence": lambda name: f"The capital of {name} is Tal",
        "pair": lambda name, attribute: "Tal",
    }
    if kind == "bare":
        name, description = "capital_of", "Where the government of a land sits."
    if kind == "pair":
        schema["attribute"] = {"type": "string"}
    parameters = {"type": "object", "properties": schema, "required": list(schema)}
    spec = ToolSpec(name=name, description=description, parameters=parameters)
    done = Loop(CLEAN, {name: Tool(spec, answers[kind])}).run("What is the capital of Osk?")
    assert done.answer == "Tal"
    assert len(done.calls) == 1


def test_a_tool_that_acts_on_the_world_is_left_alone():
    schema = {"type": "object", "properties": {"service": {"type": "string"}}}
    spec = ToolSpec(name="restart_service", parameters=schema)
    reply = ask(Message.user("What is the capital of Osk?"), tools=(spec,))
    assert reply.tool_calls == ()


def test_results_rendered_as_user_messages_are_read_too():
    call = ToolCall(id="1", name="search", arguments='{"query": "capital Osk"}')
    reply = ask(
        Message.user("What is the capital of Osk?"),
        Message.assistant(None, [call]),
        Message.user("[d1] Osk: Its capital is Tal."),
    )
    assert reply.text == "Tal"


def results_as_user_messages(messages):
    return [_as_text(message) for message in messages]


def _as_text(message):
    if message.tool_call_id:
        return Message.user(message.text)
    written = "\n".join(
        f'<tool_call>{{"name": "{c.name}", "arguments": {c.arguments}}}</tool_call>'
        for c in message.tool_calls
    )
    return replace(message, content=f"{message.text}\n{written}".strip(), tool_calls=())


def test_a_history_without_tool_messages_is_understood_as_well():
    loop = Loop(CLEAN, TOOLS, show=results_as_user_messages)
    for task in WORLD.tasks[:15]:
        done = loop.run(task.prompt)
        assert done.answer == task.expected
        made = [(c.name, c.arguments) for c in done.calls]
        assert len(set(made)) == len(made)


def test_a_request_to_send_a_call_again_is_not_taken_for_its_result():
    first = ask(Message.user(WORLD.tasks[0].prompt)).tool_calls[0]
    text = f'<tool_call>{{"name": "search", "arguments": {first.arguments}}}</tool_call>'
    again = ask(
        Message.user(WORLD.tasks[0].prompt), Message.assistant(text), Message.user(FORMAT_REPROMPT)
    )
    assert "query" in json.loads(again.tool_calls[0].arguments)


def test_each_result_belongs_to_its_call_whatever_their_order():
    calls = [
        ToolCall(id=f"c{i}", name="lookup", arguments=json.dumps({"name": name}), provider_id=p)
        for i, (name, p) in enumerate([("Osk", "p0"), ("Tal", None)])
    ]
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    spec = ToolSpec(name="lookup", parameters=schema)
    messages = (
        Message.user("What is the depth of Tal?"),
        Message.assistant(None, calls),
        Message.tool("depth: 7", tool_call_id="c1"),
        Message.tool("depth: 12", tool_call_id="p0"),
    )
    assert ask(*messages, tools=(spec,)).text == "7"
    hidden = (*messages[:2], messages[3])
    assert ask(*hidden, tools=(spec,)).tool_calls[0].arguments == '{"name": "Tal"}'


# -- it does not know --------------------------------------------------------------------------


def test_a_reply_is_a_function_of_the_request():
    requests = []
    for task in WORLD.tasks[:10]:
        requests += Loop(SimulatedModel("flaky"), TOOLS).run(task.prompt).requests

    def answers(model, order):
        out = {}
        for number in order:
            try:
                out[number] = model.reply(requests[number])
            except ModelError as error:
                out[number] = str(error)
        return out

    forward = answers(SimulatedModel("flaky"), range(len(requests)))
    assert answers(SimulatedModel("flaky"), reversed(range(len(requests)))) == forward


def test_ids_of_calls_and_the_purpose_change_nothing():
    def request(call_id, purpose):
        call = ToolCall(id=call_id, name="search", arguments='{"query": "x"}')
        messages = (
            Message.user(WORLD.tasks[1].prompt),
            Message.assistant(None, [call]),
            Message.tool("No document matches.", tool_call_id=call_id),
        )
        return ModelRequest(messages=messages, tools=SPECS, purpose=purpose, draw="k")

    model = SimulatedModel(profile("verbose").with_(rate_limit=0, timeout=0, truncation_error=0))
    first = model.reply(request("a", "main_loop"))
    assert first == model.reply(request("b", "final_answer"))


def test_awaiting_gives_the_same_reply():
    request = ModelRequest(messages=(Message.user(WORLD.tasks[0].prompt),), tools=SPECS)
    model = SimulatedModel("clean", latency=0.001)
    assert asyncio.run(model.complete(request)) == CLEAN.reply(request)


def test_its_modules_import_no_data_set_and_open_no_file():
    for source in SOURCES:
        tree = ast.parse(source.read_text(encoding="utf-8"))
        names = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
        names |= {n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
        ours = {name for name in names if name.startswith("axislab")}
        allowed = ("axislab.config", "axislab.errors", "axislab.messages", "axislab.models")
        assert all(name.startswith(allowed) for name in ours), source
        assert not names & {"os", "io", "pathlib", "random", "time", "datetime", "secrets"}, source
        called = {
            n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and hasattr(n.func, "id")
        }
        assert not called & {"open", "eval", "exec", "__import__"}, source


def test_no_file_is_opened_and_no_connection_made_while_it_works():
    script = """
import sys
from simworld import *
from axislab.models.simulated import SimulatedModel
world = make_world(0)
loop = Loop(SimulatedModel("flaky"), tools_over(world))
loop.run(world.tasks[0].prompt)
seen = []
sys.addaudithook(lambda event, args: seen.append(event))
answers = [loop.run(task.prompt).answer for task in world.tasks]
outside = ("open", "socket", "subprocess", "os", "import", "exec")
bad = [e for e in seen if e.split(".")[0] in outside]
assert sum(map(bool, answers)) > 20 and seen is not None, answers
print(sorted(set(bad)))
"""
    here = str(Path(__file__).parent)
    code = f"import sys; sys.path.insert(0, {here!r})\n{script}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr


def test_with_two_facts_swapped_in_the_corpus_the_answers_swap():
    a, b = WORLD.tasks[0], WORLD.tasks[5]
    lands = [re.search(r"of (\w+)\?", task.prompt)[1] for task in (a, b)]
    swapped = WORLD.swapped((lands[0], "capital"), (lands[1], "capital"))
    loop, other = Loop(CLEAN, TOOLS), Loop(CLEAN, tools_over(swapped))
    before = [loop.run(task.prompt).answer for task in (a, b)]
    after = [other.run(task.prompt).answer for task in (a, b)]
    assert before == [a.expected, b.expected]
    assert after == before[::-1]


@pytest.mark.parametrize("preset", ["clean", "flaky", "stubborn", "verbose"])
def test_without_tools_it_gets_at_most_one_in_twenty_right(preset):
    sums = [Task(f"s{i}", f"Compute {i} + {i + 3}.", str(2 * i + 3)) for i in range(20)]
    world = make_world(1)
    world.tasks += sums
    assert accuracy(SimulatedModel(preset), world, seeds=range(3), tools={}) <= 0.05


def test_a_guesser_without_tools_is_no_better():
    guesser = SimulatedModel(FailureProfile(guess=1.0))
    assert accuracy(guesser, WORLD, tools={}) <= 0.05


def test_evidence_that_was_rolled_back_is_looked_up_again():
    task = Message.user(WORLD.tasks[0].prompt)
    first = ask(task)
    call = replace(first.tool_calls[0], id="c1")
    found = TOOLS["search"].function(**json.loads(call.arguments))
    known = ask(task, Message.assistant(None, [call]), Message.tool(found, tool_call_id="c1"))
    assert known.tool_calls == ()
    assert WORLD.tasks[0].expected in known.text
    again = ask(task)  # the exchange is hidden: only the task is visible
    assert again.tool_calls
    assert WORLD.tasks[0].expected not in (again.text or "")


def test_evidence_hidden_by_the_context_policy_is_looked_up_again_or_the_answer_is_wrong():
    open_loop = Loop(CLEAN, TOOLS)
    loop = Loop(CLEAN, TOOLS, show=hide_old_results)
    more, right = 0, 0
    for task in WORLD.tasks:
        seen, hidden = open_loop.run(task.prompt), loop.run(task.prompt)
        if hidden.answer == task.expected and len(seen.calls) > 1:
            right += 1
            assert len(hidden.calls) >= len(seen.calls)
        more += len(hidden.calls) > len(seen.calls)
    assert more >= 10
    assert right < len(WORLD.tasks)


def test_an_answer_needs_every_fact_of_the_chain_in_sight():
    for task in WORLD.tasks[:15]:
        done = Loop(CLEAN, TOOLS).run(task.prompt)
        results = [m.text for m in done.messages if m.tool_call_id]
        assert any(task.expected in text for text in results), task
        cut = [m for m in done.messages if not m.tool_call_id and not m.tool_calls]
        cut = [m for m in cut if m.role != "assistant"]
        reply = ask(*cut, Message.user(EARLY_STOP_PROMPT))
        assert boxed(reply.text) is None


def test_on_a_task_that_is_none_of_ours_it_says_so_with_one_warning():
    axislab.config._warned.clear()
    tasks = ("Write a sonnet.", "Book a flight.")
    with pytest.warns(UserWarning, match="a task it cannot work on") as caught:
        replies = [ask(Message.system(SYSTEM), Message.user(task)) for task in tasks]
    assert len(caught) == 1
    for reply in replies:
        assert "simulated model" in reply.text
        assert "cannot work on this task" in reply.text
        assert "boxed" not in reply.text
        assert reply.tool_calls == ()


def test_an_unknown_task_is_never_made_a_success_of():
    axislab.config._warned.add(_unknown_task())
    for preset in ("clean", "flaky", "stubborn", "verbose"):
        loop = Loop(SimulatedModel(preset), TOOLS)
        done = loop.run("Prove that there are infinitely many primes.")
        assert done.answer is None


def _unknown_task():
    from axislab.models.sim_turn import UNKNOWN_TASK

    return UNKNOWN_TASK


def test_wrong_answers_are_names_and_numbers_of_the_context():
    slipping = SimulatedModel(FailureProfile(slip=0.5, guess=1.0))
    wrong = 0
    for seed in range(3):
        for task in WORLD.tasks:
            done = Loop(slipping, TOOLS).run(task.prompt, seed=seed)
            if done.answer is None or done.answer == task.expected:
                continue
            wrong += 1
            visible = " ".join(m.text for m in done.messages if m.role != "assistant")
            assert done.answer in visible
            assert done.answer[:1].isdigit() == task.expected[:1].isdigit(), task
    assert wrong > 30


# -- prompts -----------------------------------------------------------------------------------


def found_messages():
    call = ToolCall(id="1", name="search", arguments='{"query": "capital Osk"}')
    return (
        Message.user("What is the capital of Osk?"),
        Message.assistant(None, [call]),
        Message.tool("[d1] Osk: Its capital is Tal.", tool_call_id="1"),
    )


@pytest.mark.parametrize(
    ("system", "ending"),
    [
        ("End with \\boxed{ANSWER}.", "\\boxed{Tal}"),
        ('Answer in JSON: {"city": "…"}.', '{"city": "Tal"}'),
        ("Finish with a line `Answer: <value>`.", "Answer: Tal"),
        ("Be brief.", "Tal"),
    ],
)
def test_the_answer_has_the_form_that_was_asked_for(system, ending):
    reply = ask(Message.system(system), *found_messages())
    assert reply.text.endswith(ending)
    assert reply.finish_reason == "stop"


@pytest.mark.parametrize(
    "prompt",
    [EARLY_STOP_PROMPT, "Give your final answer in \\boxed{}.", "You cannot call tools any more."],
)
def test_told_that_no_call_is_possible_it_answers_from_what_it_has(prompt):
    task = Message.user("What is the mayor of the capital of Osk?")
    reply = ask(Message.system(SYSTEM), task, *found_messages()[1:], Message.user(prompt))
    assert reply.tool_calls == ()
    assert reply.text.endswith("\\boxed{unknown}")
    known = ask(Message.system(SYSTEM), *found_messages(), Message.user(prompt))
    assert known.text.endswith("\\boxed{Tal}")


def test_without_tools_on_offer_it_answers_from_what_it_has():
    assert ask(*found_messages(), tools=()).text == "Tal"


def test_a_prefix_of_its_reply_is_continued_as_the_prompt_before_it_wants():
    reply = ask(
        *found_messages(),
        Message.user("The attempt failed. Write a summary of what was found."),
        Message.assistant("Let me think."),
    )
    assert "- The capital of Osk is Tal." in reply.text


def test_a_later_question_is_a_new_task():
    later = Message.user("What is the capital of Ver? End with \\boxed{}.")
    reply = ask(*found_messages(), Message.assistant("Tal"), later)
    assert "Ver" in reply.tool_calls[0].arguments


def test_two_numbers_in_sight_are_subtracted_without_a_calculator():
    text = "The depth of Osk is 12. The depth of Tal is 30."
    task = "By how much do the depth of Osk and the depth of Tal differ?"
    assert ask(Message.system(text), Message.user(task), tools=()).text == "18"


def test_a_used_up_budget_is_respected():
    spent = "Not run: the tool budget of this task is used up."
    messages = (*found_messages()[:2], Message.tool(spent, tool_call_id="1"))
    assert ask(*messages).tool_calls == ()
    one = "Not run: the budget of this tool is used up."
    lookup = ToolSpec(name="lookup", parameters={"properties": {"name": {"type": "string"}}})
    messages = (*found_messages()[:2], Message.tool(one, tool_call_id="1"))
    reply = ask(*messages, tools=(SPECS[0], lookup))
    assert [call.name for call in reply.tool_calls] == ["lookup"]


def test_it_gives_up_in_the_end_when_nothing_is_found():
    schema = {"type": "object", "properties": {"query": {"type": "string"}}}
    spec = ToolSpec(name="search", parameters=schema)
    loop = Loop(CLEAN, {"search": Tool(spec, lambda query: "No document matches.")})
    done = loop.run(WORLD.tasks[0].prompt)
    assert done.answer is None
    assert 1 <= len(done.calls) <= 3
    failing = Loop(CLEAN, {"search": Tool(spec, lambda query: "Error: timed out.")})
    assert 2 <= len(failing.run(WORLD.tasks[0].prompt).calls) <= 8


def test_a_failure_summary_carries_facts_that_shorten_the_next_attempt():
    task = WORLD.tasks[2]
    first = Loop(CLEAN, TOOLS, max_turns=4).run(task.prompt)
    assert first.answer is None
    prompt = "This attempt failed. Summarise what was found and what is missing for the next one."
    history = first.messages[:-2]  # without the forced answer
    summary = ask(*history, Message.user(prompt)).text
    assert "Still missing" in summary
    whole = Loop(CLEAN, TOOLS).run(task.prompt)
    helped = Loop(CLEAN, TOOLS).run(
        f"{task.prompt}\n\nExperience of earlier attempts:\n1. {summary}\nUse it."
    )
    assert helped.answer == whole.answer == task.expected
    assert len(helped.calls) < len(whole.calls)


def test_a_compaction_summary_is_read_like_any_visible_text():
    summary = Message.assistant("So far: \n- The capital of Osk is Tal.")
    assert ask(found_messages()[0], summary).text == "Tal"


# -- accounts ----------------------------------------------------------------------------------


def test_usage_is_what_was_sent_and_what_came_back():
    messages = found_messages()
    reply = ask(*messages)
    assert reply.usage.input_tokens == prompt_tokens(messages, SPECS)
    assert reply.usage.output_tokens == count_tokens(reply.text)
    assert reply.usage.estimated is False
    longer = ask(Message.system("word " * 100), *messages)
    assert longer.usage.input_tokens == reply.usage.input_tokens + 104


def test_there_is_no_price():
    reply = ask(*found_messages())
    assert reply.cost_usd is None
    assert reply.cost_missing == "simulated"


def test_copies_can_be_told_by_their_request_id():
    assert (
        ask(*found_messages(), draw="a").request_id == ask(*found_messages(), draw="a").request_id
    )
    assert (
        ask(*found_messages(), draw="a").request_id != ask(*found_messages(), draw="b").request_id
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.booleans())
def test_a_reply_never_has_more_tokens_than_were_allowed(limit, wordy):
    model = SimulatedModel("verbose" if wordy else "clean")
    for messages in (found_messages(), found_messages()[:1]):
        sampling = Sampling(max_output_tokens=limit)
        try:
            reply = ask(*messages, model=model, sampling=sampling)
        except ModelError:
            continue
        made = count_tokens(reply.text or "")
        made += sum(4 + count_tokens(c.name) + count_tokens(c.arguments) for c in reply.tool_calls)
        assert made <= limit
        assert reply.usage.output_tokens <= limit
        if reply.usage.output_tokens < limit:
            assert reply.finish_reason in ("stop", "tool_calls", "length")


def test_a_reply_over_the_limit_is_cut_and_says_so():
    reply = ask(found_messages()[0], sampling=Sampling(max_output_tokens=14))
    assert reply.finish_reason == "length"
    with pytest.raises(json.JSONDecodeError):
        json.loads(reply.tool_calls[0].arguments)


def test_a_request_over_the_window_gets_a_context_error_with_the_numbers():
    model = SimulatedModel("clean", window=300)
    ask(Message.user(WORLD.tasks[0].prompt), model=model)
    with pytest.raises(ModelError, match="300 tokens") as caught:
        ask(Message.user(WORLD.tasks[0].prompt + " word" * 400), model=model)
    assert caught.value.kind is ErrorKind.CONTEXT_LIMIT
    assert caught.value.window == 300
    assert caught.value.requested > 400


def test_no_profile_warns_or_fails_on_strange_histories():
    strange = [
        (Message.system("x"),),
        (),
        (Message.user("What is the capital of Osk?"), Message.tool("?", tool_call_id="zz")),
        (*found_messages()[:2],),
        (Message.user("What is the capital of Osk?"), Message.assistant(None)),
    ]
    axislab.config._warned.add(_unknown_task())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for messages in strange:
            assert ask(*messages).usage.input_tokens >= 3


def test_a_second_opinion_says_what_the_agent_reads_itself():
    facts = "The capital of Osk is Tal Moor."
    for candidate, verdict in (("Tal Moor", "RIGHT"), ("Bebo", "WRONG")):
        prompt = (
            "Check it.\n\nTask: What is the capital of Osk?\n\n"
            f"Candidate answer: {candidate}\n\nEnd with VERDICT: RIGHT or VERDICT: WRONG."
        )
        messages = [
            Message.user("What is the capital of Osk?"),
            Message.assistant(facts),
            Message.user(prompt),
        ]
        request = ModelRequest(messages=messages, draw="run:verification")
        text = asyncio.run(SimulatedModel(FailureProfile()).complete(request)).text
        assert text.endswith(f"VERDICT: {verdict}")
