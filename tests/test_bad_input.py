"""Bad input gives one clear error or observation: the value, what is allowed, what to do."""

from __future__ import annotations

import pytest

import axislab as al
from axislab.errors import ConfigError, DataError, ModelError, TraceError
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


def test_a_template_with_another_placeholder_leaves_a_failed_run_that_says_so():
    recipe = al.Recipe().with_(user_prompt_template="Q: {question}")
    run = al.Lab(ScriptedModel(["x"])).run(recipe, "x")
    assert run.status == "FAILED"
    assert "{task} is the only placeholder" in run.error
    assert not run.trace.of("message")
