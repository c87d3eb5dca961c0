"""What goes wrong at the edges of a run is told in a sentence, and only where it happened."""

from __future__ import annotations

import asyncio
import os
import pickle
import shutil
from pathlib import Path

import pytest

import axislab as al
from axislab.errors import ConfigError, ErrorKind, TraceError
from axislab.messages import Message
from axislab.models.base import ModelRequest
from axislab.models.litellm_model import LiteLLMModel
from axislab.models.scripted import ScriptedModel
from axislab.runtime.decisions import Rule
from axislab.runtime.rules import CHAIN
from axislab.trace import reader

NOBODY = "http://127.0.0.1:9/v1?sig=hunter3"


def test_an_error_of_the_network_names_the_address_without_what_is_secret_in_it() -> None:
    model = LiteLLMModel("openai/x", api_base=NOBODY, api_key="none")
    with pytest.raises(al.ModelError) as caught:
        asyncio.run(model.complete(ModelRequest(messages=[Message.user("Hello?")])))
    assert caught.value.kind is ErrorKind.CONNECTION
    assert "(at http://127.0.0.1:9/v1?sig=***)" in str(caught.value)
    assert "hunter" not in str(caught.value) + repr(caught.value.original)


async def _later(message: Message) -> str:
    return "yes"


class _LaterToo:
    def __call__(self, message: Message) -> object:
        return _later(message)


@pytest.mark.parametrize("name", ["wants_final_prompt", "direct_answer"])
def test_an_asynchronous_hook_is_refused_instead_of_counting_as_true(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}=.*`async def`"):
        al.Recipe(**{name: _later})
    recipe = al.Recipe(**{name: _LaterToo()}).with_(final_response_prompt="And in short?")
    run = al.Lab(ScriptedModel(["4"])).run(recipe, "What is 2 + 2?")
    assert run.status == "FAILED"
    assert "is asynchronous, which always counts as true" in run.error


class _Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def _fails(turn: object) -> object:
    raise _Mute


def test_an_exception_without_words_of_its_own_is_told_all_the_same() -> None:
    recipe = al.Recipe(chain=(Rule("mine", "L0", _fails), *CHAIN))
    run = al.Lab(ScriptedModel(["4"])).run(recipe, "What is 2 + 2?")
    assert run.status == "FAILED"
    assert "_Mute: (its text cannot be told: RuntimeError)" in run.error


@pytest.mark.parametrize("recipe", [al.Recipe(), al.recipes.boxed_math(max_turns=3)])
def test_a_recipe_goes_to_another_process_and_is_the_same_there(recipe: al.Recipe) -> None:
    sent = pickle.loads(pickle.dumps(recipe))
    assert sent == recipe
    assert sent.fingerprint == recipe.fingerprint
    assert repr(sent) == repr(recipe)
    assert sent.to_dict() == recipe.to_dict()


@pytest.mark.parametrize("timeout", ["1", True, -1, float("nan")])
def test_a_timeout_is_a_number_of_seconds(timeout: object) -> None:
    handle = al.Lab(ScriptedModel(["4"])).start(al.Recipe(), "What is 2 + 2?")
    with pytest.raises(ConfigError, match="give a number of seconds"):
        handle.result(timeout)
    assert handle.result(20).status == "COMPLETED"


def test_a_view_of_records_is_a_function() -> None:
    handle = al.Lab(ScriptedModel(["4"])).start(al.Recipe(), "What is 2 + 2?")
    with pytest.raises(ConfigError, match=r"on_record\(5\)"):
        handle.on_record(5)
    assert handle.result(20).status == "COMPLETED"


class _Deletes(ScriptedModel):
    """Deletes one trace while the run that writes it goes on."""

    def __init__(self, folder: Path, *, every: bool) -> None:
        super().__init__(["4"] * 8)
        self._folder, self._every, self._done = folder, every, False

    async def complete(self, request: ModelRequest) -> object:
        if self._every or not self._done:
            self._done = True
            newest = sorted(self._folder.glob("*.jsonl"), key=os.path.getmtime)[-1]
            newest.unlink()
        return await super().complete(request)


def test_one_trace_that_cannot_be_written_leaves_the_other_runs_alone(tmp_path: Path) -> None:
    lab = al.Lab(_Deletes(tmp_path, every=False), folder=tmp_path, concurrency=1)
    with pytest.warns(UserWarning, match="the traces of 1 of 3 runs could not be written"):
        runs = lab.run_many(al.Recipe(), ["a?", "b?", "c?"], progress=False)
    assert [run.status for run in runs] == ["INTERRUPTED", "COMPLETED", "COMPLETED"]
    assert isinstance(runs[0].cause, TraceError)


def test_if_no_trace_can_be_written_that_is_an_error(tmp_path: Path) -> None:
    lab = al.Lab(_Deletes(tmp_path, every=True), folder=tmp_path, concurrency=1)
    with pytest.raises(TraceError, match="was deleted"):
        lab.run_many(al.Recipe(), ["a?", "b?"], progress=False)


def test_runs_are_loaded_though_files_and_folders_vanish_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        lab = al.Lab(ScriptedModel(["4"] * 2), folder=tmp_path / name)
        lab.run_many(al.Recipe(), ["a?", "b?"], progress=False)
    find, gone = reader._trace_files, next((tmp_path / "a").glob("*.jsonl"))

    def found(place: Path) -> list[Path]:
        paths = find(place)
        gone.unlink()  # another process cleans up
        shutil.rmtree(tmp_path / "b")
        return paths

    monkeypatch.setattr(reader, "_trace_files", found)
    with pytest.warns(UserWarning, match="left out"):
        assert len(al.load_runs(tmp_path)) == 1
