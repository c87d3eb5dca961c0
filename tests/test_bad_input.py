"""Bad input gives one clear error or observation: the value, what is allowed, what to do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import axislab as al
from axislab.config import _warned
from axislab.errors import AxislabError, ConfigError, DataError, ModelError, TraceError
from axislab.messages import ToolCall
from axislab.models.base import ModelReply
from axislab.models.scripted import ScriptedModel

call = ScriptedModel.call


@al.tool
def lookup(name: str) -> str:
    """Look a place up.

    Args:
        name: What to look up.
    """
    return f"{name} lies in Verren"


def one_call(tool_call):
    script = ScriptedModel([ModelReply(tool_calls=(tool_call,)), "fine"])
    run = al.Lab(script).run(al.Recipe(tools=(lookup,)), "x")
    assert run.status == "COMPLETED"
    (row,) = run.trace.of("tool.finished")
    return row.data


def test_an_unknown_tool_is_an_observation_that_names_those_there_are():
    row = one_call(ToolCall(id="", name="lokup", arguments="{}"))
    assert (row["status"], row["reason"]) == ("rejected", "unknown_tool")
    assert "lookup" in row["content"]


@pytest.mark.parametrize("arguments", ["{", "[1]", "3", '{"nam": "Osk"}', "", '{"name": 3}'])
def test_broken_arguments_are_an_observation_and_the_tool_does_not_run(arguments):
    row = one_call(ToolCall(id="", name="lookup", arguments=arguments))
    assert (row["status"], row["reason"]) == ("failed", "parameter_error")
    assert row["raw_arguments"] == arguments
    assert "latency" not in row


def test_an_unknown_knob_is_refused_with_the_nearest_one():
    with pytest.raises(ConfigError, match="did you mean 'max_turns'"):
        al.Recipe().with_(max_turn=3)


@pytest.mark.parametrize(
    ("knob", "value"), [("max_turns", 0), ("temperature", 3), ("detector", "magic"), ("window", -1)]
)
def test_a_value_out_of_range_is_shown_with_what_is_allowed(knob, value):
    with pytest.raises(ConfigError) as caught:
        al.Recipe().with_(**{knob: value})
    assert knob in str(caught.value)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("task", ["", " \n", {"prompt": ""}])
def test_an_empty_task_is_refused(task):
    with pytest.raises(DataError):
        al.Lab(ScriptedModel(["x"])).run(al.Recipe(), task)


def test_a_data_set_that_does_not_ship_is_refused_with_those_that_do():
    with pytest.raises(DataError, match="atlas"):
        al.load_tasks("atlass")


@pytest.mark.parametrize("model", ["nonsense/model", "gpt"])
def test_a_model_string_nobody_knows_is_refused_before_anything_is_sent(model):
    with pytest.raises(ModelError) as caught:
        al.Lab(model)
    assert caught.value.kind == "not_found"


def test_no_model_string_at_all_is_refused_with_examples():
    with pytest.raises(ConfigError, match="openai/"):
        al.Lab("")


def test_a_missing_key_is_found_before_the_first_request(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelError, match="OPENAI_API_KEY") as caught:
        al.Lab("openai/gpt-4o")
    assert caught.value.kind == "missing_key"


def test_a_folder_that_cannot_be_made_is_refused_with_its_name(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(TraceError, match="taken"):
        al.Lab(ScriptedModel(["x"]), folder=tmp_path / "taken")


def test_a_corrupt_trace_opens_with_notes_and_fails_fsck(tmp_path):
    run = al.Lab(ScriptedModel(["x"]), folder=tmp_path).run(al.Recipe(), "x")
    lines = run.path.read_text("utf-8").splitlines(keepends=True)
    lines[4] = "{ not json\n"
    run.path.write_text("".join(lines), "utf-8")
    again = al.load_run(run.path)
    assert again.prompt == "x"
    assert any("line 5" in note for note in again.trace.notes)
    assert not al.fsck(run.path).ok
    with pytest.raises(TraceError, match="line 5"):
        al.load_run(run.path, strict=True)


def test_what_is_no_trace_at_all_is_said_to_be_none(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\x00\xff\xfe binary")
    with pytest.raises(TraceError, match=r"x\.jsonl"):
        al.load_run(path)


@pytest.mark.parametrize(
    ("knobs", "advice"),
    [
        ({"user_prompt_template": "Q: {question}"}, "{task} is the only placeholder"),
        ({"user_prompt_template": "no placeholder"}, "never shows the task"),
        ({"window": 10, "min_tokens_for_generation": 256}, "raise window"),
        ({"chain": ()}, "at least one rule"),
        ({"chain": [1, 2]}, r"Rule\(name, level, function\)"),
        ({"direct_answer": "x"}, "a hook is a function"),
        ({"before_tool": 3}, "give one, or a list"),
        ({"tools": "search"}, "give one, or a list"),
        ({"scorer": "magic"}, "normalized"),
        ({"prompt": "x"}, "system_prompt"),
    ],
)
def test_a_recipe_that_cannot_work_is_refused_when_it_is_made(knobs, advice):
    with pytest.raises(ConfigError, match=advice):
        al.Recipe().with_(**knobs)


def test_a_template_of_a_conversation_is_refused_when_it_begins_and_leaves_nothing_behind():
    runtime = al.ConversationRuntime(al.ConversationConfig(user_prompt_template="Q: {question}"))
    with pytest.raises(AxislabError, match=r"{task} is the only placeholder"):
        runtime.initialize_conversation("x")
    assert (len(runtime.full), str(runtime.stage)) == (0, "not_initialized")


def test_one_tool_or_function_alone_stands_for_a_tuple_of_it():
    def allow(request):
        return None

    recipe = al.Recipe(tools=lookup, before_tool=allow)
    assert (recipe.tools, recipe.before_tool) == ((lookup,), (allow,))


@pytest.mark.parametrize("value", [3, "ab", [], {}])
def test_a_grid_wants_a_list_of_values(value):
    with pytest.raises(ConfigError, match="grid wants a list"):
        al.grid(al.Recipe(), max_rollbacks=value)


@pytest.mark.parametrize("tasks", ["abc", al.Task("t", "x"), {"prompt": "x"}])
def test_one_task_where_several_are_wanted_is_refused_before_anything_runs(tasks):
    with pytest.raises(DataError, match="several are wanted"):
        al.Lab(ScriptedModel(["x"])).run_many(al.Recipe(), tasks)


def test_no_tasks_at_all_are_refused():
    with pytest.raises(DataError, match="no tasks"):
        al.Lab(ScriptedModel(["x"])).run_many(al.Recipe(), [])


@pytest.mark.parametrize("option", ["cocurrency", "foldr", "durabilty"])
def test_a_misspelt_option_of_a_lab_is_not_sent_to_the_provider(option):
    with pytest.raises(ConfigError, match="did you mean"):
        al.Lab("openai/ok", api_key="x", **{option: 4})


def test_an_option_of_the_model_goes_to_the_model():
    lab = al.Lab("openai/gpt-4o", api_key="x", price=al.Price(input=1.0, output=2.0))
    assert lab.model.list_price() == al.Price(input=1.0, output=2.0)


def test_what_is_no_model_is_refused_with_what_is():
    with pytest.raises(ConfigError, match="litellm model string"):
        al.Lab(None)


@pytest.mark.parametrize("scorer", [lambda answer: 1, lambda a, e: 1 / 0, lambda a, e: "x"])
def test_a_scorer_that_goes_wrong_leaves_the_verdict_unknown_and_the_batch_whole(scorer):
    _warned.clear()
    lab = al.Lab(ScriptedModel([r"\boxed{4}"], after="repeat"))
    recipe = al.Recipe(scorer=scorer)
    with pytest.warns(UserWarning, match="the scorer raised"):
        runs = lab.run_many(recipe, [al.Task(str(i), "2+2", "4") for i in range(3)])
    assert {run.status for run in runs} == {"COMPLETED"}
    assert {run.correct for run in runs} == {None}
    assert all("the scorer raised" in run.error for run in runs)
    assert {run.error_kind for run in runs} == {"scorer"}


def test_a_run_that_fails_by_itself_says_why_in_a_sentence():
    cut = ModelReply(text="The ans", finish_reason="length")
    run = al.Lab(ScriptedModel([cut])).run(al.Recipe().with_(max_output_tokens=7), "x")
    assert (run.status, run.done_reason) == ("FAILED", "terminated_token_exceed")
    assert "max_output_tokens=7" in run.error
    calls = ScriptedModel([ScriptedModel.call("lookup", name="Osk")], after="repeat")
    rejected = al.Lab(calls).run(al.Recipe(tools=(lookup,)).with_(max_turns=2), "x")
    assert "had to give its final answer" in rejected.error


def test_a_recipe_ends_by_itself_even_if_the_model_never_does():
    model = ScriptedModel([ScriptedModel.call("lookup", name="Osk")], after="repeat")
    run = al.Lab(model).run(al.Recipe(tools=(lookup,)), "x")
    assert (run.turns, run.status) == (50, "FAILED")


@pytest.mark.parametrize("name", [None, "", " ", 5, True])
def test_a_recipe_has_a_name(name):
    with pytest.raises(ConfigError, match="name is a text"):
        al.Recipe(name=name)


@pytest.mark.parametrize("config", [None, 5, "max_turns: 3", al.Sampling()])
def test_a_config_is_an_agent_config(config):
    with pytest.raises(ConfigError, match="give an AgentConfig"):
        al.Recipe(config=config)
    with pytest.raises(ConfigError, match="give an AgentConfig"):
        al.Recipe().with_(config=config, max_turns=3)


@pytest.mark.parametrize("pattern", [None, "("])
def test_a_regex_answer_without_a_pattern_that_works_is_refused_before_anything_runs(pattern):
    with pytest.raises(ConfigError, match="answer_pattern"):
        al.Recipe().with_(answer_format="regex", answer_pattern=pattern)


def test_parameters_of_a_provider_are_json():
    ring = {}
    ring["ring"] = ring
    for extra in ({"a": object()}, ring):
        with pytest.raises(ConfigError, match="is not JSON"):
            al.Recipe().with_(extra=extra)


@pytest.mark.parametrize("scorer", [None, 5, ["exact"], {}])
def test_a_scorer_is_a_function_or_a_name(scorer):
    with pytest.raises(ConfigError, match="neither a function nor a name"):
        al.Recipe(scorer=scorer)


@pytest.mark.parametrize("text", [None, 5, ["name: x"]])
def test_a_recipe_is_read_from_a_text(text):
    with pytest.raises(ConfigError, match="is no text"):
        al.Recipe.from_yaml(text)


def test_a_lone_surrogate_in_a_recipe_or_task_does_not_keep_it_from_running(tmp_path):
    recipe = al.Recipe(name="a\ud800").with_(system_prompt="b\ud800", answer_format="text")
    task = al.Task("c\ud800", "d\ud800", "e", {"f\ud800": "g\ud800"})
    run = al.Lab(al.ScriptedModel(["e"]), folder=tmp_path).run(recipe, task)
    assert (run.status, run.correct) == ("COMPLETED", True)
    assert al.fsck(run.path).ok
    assert al.TaskSet([task]).fingerprint


def test_arms_are_named_alike_in_every_process():
    class Judge:
        def __call__(self, answer, expected):
            return answer == expected

    def strict(answer, expected):
        return False

    assert list(al.grid(al.Recipe(), scorer=[strict, Judge(), "exact"])) == [
        "scorer=strict",
        "scorer=Judge",
        "scorer=exact",
    ]
    assert list(al.grid(al.Recipe(), before_tool=[[], [strict]])) == [
        "before_tool=[]",
        "before_tool=[strict]",
    ]
    with pytest.raises(ConfigError, match="two arms would be called"):
        al.grid(al.Recipe(), scorer=[Judge(), Judge()])


def test_an_option_that_a_made_model_cannot_take_is_not_dropped():
    with pytest.raises(ConfigError, match="made already"):
        al.Lab(al.ScriptedModel(["a"]), timeout=5)
    with pytest.raises(ConfigError, match="made already"):
        al.Lab(al.ScriptedModel(["a"]), api_key="k")


def test_a_durability_there_is_not_is_refused():
    with pytest.raises(ConfigError, match="'process' or 'disk'"):
        al.Lab(al.ScriptedModel(["a"]), durability="disc")


def test_a_function_that_fails_to_make_tools_is_named():
    def database():
        raise OSError("no database")

    with pytest.raises(al.ToolError, match=r"database\(\) is called for every run .*no database"):
        al.Lab(al.ScriptedModel(["a"])).run(al.Recipe(tools=[database]), "x")


def test_a_default_that_is_no_text_is_refused_with_its_argument():
    with pytest.raises(al.ToolError, match=r"the default b'.*' of 'data' does not fit"):

        @al.tool
        def save(data: bytes = b"\xff") -> str:
            return "saved"


@pytest.mark.parametrize("tasks", [None, 5, pd.DataFrame({"prompt": ["a"]})])
def test_several_tasks_are_a_list_of_them(tasks):
    lab = al.Lab(al.ScriptedModel(["fine"]))
    with pytest.raises(DataError, match=r"several are wanted|load_tasks\(table\)"):
        lab.run_many(al.Recipe(), tasks)
    assert not lab.model.requests


@pytest.mark.parametrize("n", [2.5, "2", None, -1, 10**9])
def test_a_sample_has_a_whole_number_of_tasks(n):
    with pytest.raises(DataError, match="cannot draw"):
        al.load_tasks("sums").sample(n)


def test_a_column_of_a_frame_may_say_what_is_looked_for():
    tasks = al.load_tasks("atlas")
    wanted = tasks.df["hops"].drop_duplicates()
    assert tasks.where(hops=wanted) == tasks.where(hops=list(wanted))
    assert tasks.where(hops=np.array([1, 2])) == tasks.where(hops=[1, 2])


@pytest.mark.parametrize("documents", [None, "text", 5, ["text"], [{"text": "x"}]])
def test_a_corpus_is_made_of_documents(documents):
    with pytest.raises(DataError, match="Document"):
        al.Corpus(documents)


@pytest.mark.parametrize("corpus", [None, "atlas", ["text"]])
def test_research_wants_a_corpus(corpus):
    with pytest.raises(DataError, match="load_corpus"):
        al.recipes.research_qa(corpus=corpus)


@pytest.mark.parametrize(
    "which",
    [{"seed": "x"}, {"seed": 1.5}, {"seed": True}, {"arm": 5}, {"arm": " "}, {"study": 5}],
    ids=repr,
)
def test_what_tells_runs_apart_is_refused_before_anything_runs(tmp_path, which):
    lab = al.Lab(al.ScriptedModel(["fine"], after="repeat"), folder=tmp_path)
    for use in (
        lambda: lab.run(al.Recipe(), "Why?", **which),
        lambda: lab.run_many(al.Recipe(), ["Why?"], **which),
    ):
        with pytest.raises(ConfigError, match=f"{next(iter(which))}="):
            use()
    assert not lab.model.requests
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("seed", [None, "x", 1.5])
def test_a_lab_has_a_whole_seed(seed):
    with pytest.raises(ConfigError, match="seed="):
        al.Lab(al.ScriptedModel(["fine"]), seed=seed)


def test_a_repeat_is_counted_from_0():
    with pytest.raises(ConfigError, match="repeat=-1"):
        al.Lab(al.ScriptedModel(["fine"])).run(al.Recipe(), "Why?", repeat=-1)


@pytest.mark.parametrize("name", [1, ("a",), ""])
def test_no_arm_runs_if_one_has_no_proper_name(name):
    lab = al.Lab(al.ScriptedModel(["fine"], after="repeat"))
    with pytest.raises(ConfigError, match="arm="):
        lab.run_many({"good": al.Recipe(), name: al.Recipe()}, ["Why?"], progress=False)
    assert not lab.model.requests


def test_seeds_of_numpy_are_numbers():
    lab = al.Lab(al.ScriptedModel(["fine"], after="repeat"), seed=np.int64(3))
    run = lab.run(al.Recipe(), "Why?", seed=np.int32(4))
    assert (lab.seed, run.seed) == (3, 4)


def test_half_a_character_in_an_id_or_arm_does_not_break_a_run():
    lab = al.Lab(al.ScriptedModel(["fine"]))
    assert lab.run(al.Recipe(), "Why?", arm="\ud800").status == "COMPLETED"


def test_recipes_can_be_members_of_sets():
    recipe = al.Recipe().with_(extra={"top_k": 4})
    assert len({recipe, al.Recipe().with_(extra={"top_k": 4}), al.Recipe()}) == 2


@pytest.mark.parametrize(
    "rule", [al.Rule(5, "L0", len), al.Rule("mine", None, len), al.Rule("mine", "L0", None)]
)
def test_a_rule_has_a_name_a_level_and_a_function(rule):
    with pytest.raises(ConfigError, match=r"Rule\(name, level, function\)"):
        al.Recipe(chain=(rule, *al.CHAIN))
