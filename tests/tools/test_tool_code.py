from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from types import FunctionType

import numpy as np
import pandas as pd
import pytest

from axislab import Corpus, Document, Lab, Recipe, ScriptedModel, Task, Tool
from axislab.tools.code import code_of

EMPTY = {"type": "object", "properties": {}}


def closing_over(value):
    def judge(answer=None, expected=None):
        return value

    return judge


def defaulting_to(value):
    def judge(answer=None, expected=value):
        return expected

    return judge


def wrapping(value):
    @functools.wraps(plain)
    def judge(*arguments):
        return value

    return judge


def plain(answer=None, expected=None, limit=0):
    return limit


@dataclass
class Settings:
    limit: object

    def __call__(self, answer=None, expected=None):
        return self.limit


class Judge:
    __slots__ = ("limit",)

    def __init__(self, limit):
        self.limit = limit

    def __call__(self, answer=None, expected=None):
        return self.limit

    def judge(self, answer=None, expected=None):
        return self.limit


class Colour(Enum):
    RED = 1
    BLUE = 2


ONE_AND_TWO = (lambda: 1, lambda: 2)
MAKERS = {
    "closure": closing_over,
    "list in a closure": lambda value: closing_over([value]),
    "mapping in a closure": lambda value: closing_over({"limit": value}),
    "function in a closure": lambda value: closing_over(closing_over(value)),
    "dataclass in a closure": lambda value: closing_over(Settings(value)),
    "default": defaulting_to,
    "wrapper": wrapping,
    "partial": lambda value: functools.partial(plain, limit=value),
    "object": Settings,
    "object with slots": Judge,
    "bound method": lambda value: Judge(value).judge,
    "cached": lambda value: functools.cache(closing_over(value)),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize(
    ("one", "other"),
    [(0.1, 0.2), (1, True), ("a", "b"), (None, 0), ({1}, {2}), (Colour.RED, Colour.BLUE)],
    ids=repr,
)
def test_a_recipe_is_another_if_a_function_of_it_holds_another_value(make, one, other):
    for recipe in (
        lambda function: Recipe(scorer=function),
        lambda function: Recipe(direct_answer=function),
        lambda function: Recipe(before_tool=[function]),
        lambda function: Recipe(tools=[function]),
        lambda function: Recipe(tools=[Tool("t", EMPTY, function)]),
    ):
        assert recipe(make(one)).fingerprint == recipe(make(one)).fingerprint
        assert recipe(make(one)).fingerprint != recipe(make(other)).fingerprint


def test_two_lambdas_of_one_line_are_two_tools():
    first, second = [Tool("t", EMPTY, f) for f in ONE_AND_TWO]
    assert first.fingerprint != second.fingerprint


def test_code_without_a_source_file_is_told_apart():
    made = [FunctionType(f.__code__.replace(co_filename="<cell>"), {}) for f in ONE_AND_TWO]
    assert Tool("t", EMPTY, made[0]).fingerprint != Tool("t", EMPTY, made[1]).fingerprint


def test_a_method_that_a_callable_object_calls_is_part_of_its_code():
    def judge(answer):
        class Caller:
            def __call__(self, given, expected):
                return self.verdict()

            verdict = answer

        return Caller()

    assert code_of(judge(lambda self: 1)) == code_of(judge(lambda self: 1))
    assert code_of(judge(lambda self: 1)) != code_of(judge(lambda self: 0))


def test_a_function_that_holds_itself_or_an_odd_object_still_has_a_code():
    def again(n=0):
        return again(n - 1) if n else handle

    handle, ring = object(), []
    ring.append(ring)
    assert code_of(again) == code_of(again)
    assert code_of(closing_over(ring)) == code_of(closing_over(ring))
    assert code_of(closing_over(object())) == code_of(closing_over(object()))
    assert code_of(print) != code_of(len)


def test_the_same_code_has_one_fingerprint_in_every_process():
    script = (
        "from axislab import Recipe\n"
        "held = frozenset('abcdef')\n"
        "def known(answer, expected, also=held):\n"
        "    return answer in {'alpha', 'beta', 'gamma', 'delta', None, 1}\n"
        "print(Recipe(scorer=known, tools=[lambda: held]).fingerprint)\n"
    )
    came = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(came) == 1


def test_a_recipe_stays_the_same_while_a_function_of_it_keeps_count():
    class Counting:
        def __init__(self):
            self.seen = 0

        def __call__(self, answer, expected):
            self.seen += 1
            return True

    recipe = Recipe(name="counts", scorer=Counting()).with_(answer_format="text")
    lab = Lab(ScriptedModel(["a", "b"]))
    first, second = lab.run(recipe, Task("a", "p", "x")), lab.run(recipe, Task("b", "q", "x"))
    assert first.recipe_fingerprint == second.recipe_fingerprint == recipe.fingerprint
    assert recipe.to_dict() == recipe.to_dict()
    recipe.to_dict()["tools"].append("of the caller")
    assert recipe.to_dict()["tools"] == []


def notebook(source, name="judge", **held):
    """A function as a cell defines it, in a namespace of its own."""
    space = {"__name__": "__main__", **held}
    exec(compile(source, "<cell>", "exec"), space)
    return space[name]


READS = {
    "number": "def judge(answer=None, expected=None): return limit",
    "nested": "def judge(answer=None, expected=None): return [(lambda: limit)() for _ in 'a']",
    "helper": "def helper(): return limit\ndef judge(answer=None, expected=None): return helper()",
    "method": (
        "class Judge:\n"
        "    def __call__(self, answer=None, expected=None): return limit\n"
        "judge = Judge()"
    ),
    "class": (
        "class Rules: limit = limit\n"
        "def judge(answer=None, expected=None): return Rules.limit"
    ),
}  # fmt: skip


@pytest.mark.parametrize("source", READS.values(), ids=READS)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0.1, 0.2),
        ([1], [2]),
        ({"a": 1}, {"a": 2}),
        (re.compile("a"), re.compile("b")),
        (Path("a"), Path("b")),
        (np.array([1.0]), np.array([2.0])),
        (pd.DataFrame({"a": ["x"]}), pd.DataFrame({"a": ["y"]})),
        (
            Corpus([Document(id="d", title="D", text="x")]),
            Corpus([Document(id="d", title="D", text="y")]),
        ),
        (len, max),
        (lambda: 1, lambda: 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_function_reads_from_its_notebook_is_part_of_its_code(source, one, other):
    assert code_of(notebook(source, limit=one)) == code_of(notebook(source, limit=one))
    assert code_of(notebook(source, limit=one)) != code_of(notebook(source, limit=other))


def test_a_changed_helper_makes_another_function():
    source = "def helper(): return {}\ndef judge(answer, expected): return helper()"
    assert code_of(notebook(source.format(1))) != code_of(notebook(source.format(2)))


def test_code_of_installed_packages_is_named_not_followed():
    source = "import json\ndef judge(answer, expected): return json.dumps(loads(answer))"
    judge = notebook(source, loads=json.loads)
    assert ["named", "json", "loads"] in code_of(judge)[1][0]["globals"].values()
    assert len(code_of(judge)[1]) == 1


@pytest.mark.parametrize(
    "source",
    [
        "_seen = []\ndef judge(answer=None, expected=None): _seen.append(1)",
        "_seen = {}\ndef judge(answer=None, expected=None): _seen[answer] = 1",
        "class Judge:\n"
        "    def __init__(self): self._seen = set()\n"
        "    def __call__(self, answer=None, expected=None): self._seen.add(answer)\n"
        "judge = Judge()",
        "def make(_seen):\n"
        "    def judge(answer=None, expected=None): _seen.append(1)\n"
        "    return judge\n"
        "judge = make([])",
    ],
)
def test_a_private_container_is_memory_and_does_not_count(source):
    judge = notebook(source)
    before = code_of(judge)
    judge()
    assert code_of(judge) == before


def test_what_a_function_is_said_to_do_does_not_count():
    source = "def judge(answer, expected):\n    '{}'\n    return 'x'"
    assert code_of(notebook(source.format("one"))) == code_of(notebook(source.format("two")))


def test_a_tool_may_use_other_tools_and_itself():
    source = (
        "from axislab import tool\n"
        "@tool\n"
        "def other(n: int) -> int: return n + {}\n"
        "@tool\n"
        "def again(n: int) -> int: return other(n) + again(n - 1) if n else 0\n"
    )
    one, other = notebook(source.format(1), "again"), notebook(source.format(2), "again")
    assert one.fingerprint == notebook(source.format(1), "again").fingerprint
    assert one.fingerprint != other.fingerprint


def test_a_recipe_may_be_used_by_its_own_tool():
    def ask() -> str:
        return held[0].name

    held = []
    held.append(Recipe(tools=[Tool("ask", EMPTY, ask)]))
    assert held[0].fingerprint == replace(held[0]).fingerprint


def test_functions_that_use_each_other_are_each_looked_at_once():
    names = [f"f{n}" for n in range(60)]
    source = "\n".join(f"def {name}(): return {', '.join(names)}" for name in names)
    assert len(code_of(notebook(source, "f0"))[1]) == 60


def test_values_made_later_do_not_count():
    class Judge:
        @functools.cached_property
        def limit(self):
            return 3

        def __call__(self, answer, expected):
            return self.limit

    judge = Judge()
    before = code_of(judge)
    judge("a", "b")
    assert code_of(judge) == before


def test_an_object_is_not_asked_for_what_it_may_not_have():
    class Client:
        def __getattr__(self, name):
            raise RuntimeError(f"{name}: not connected")

    assert code_of(notebook(READS["number"], limit=Client())) == code_of(
        notebook(READS["number"], limit=Client())
    )


def test_the_environment_is_no_value_of_a_function(monkeypatch):
    before = code_of(notebook(READS["number"], limit=os.environ))
    monkeypatch.setenv("SOME_KEY", "of today")
    assert code_of(notebook(READS["number"], limit=os.environ)) == before


def test_an_array_of_objects_is_told_by_its_type():
    held = [np.array([object()]) for _ in range(2)]
    assert code_of(closing_over(held[0])) == code_of(closing_over(held[1]))
