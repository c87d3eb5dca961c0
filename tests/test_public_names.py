"""The public face: every name resolves, is sorted, and a wrong one is an error."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import axislab


@pytest.mark.parametrize("name", axislab.__all__)
def test_the_public_name_resolves(name):
    assert getattr(axislab, name) is not None


def test_all_is_sorted_and_without_repeats():
    assert list(axislab.__all__) == sorted(set(axislab.__all__))


def test_type_checkers_see_what_users_see():
    tree = ast.parse(Path(axislab.__file__).read_text(encoding="utf-8"))
    seen = {
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    assert seen == set(axislab.__all__)


def test_dir_shows_every_public_name():
    assert set(axislab.__all__) <= set(dir(axislab))


def test_a_misspelt_name_raises_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Labb'"):
        _ = axislab.Labb


def test_the_version_is_the_installed_one():
    assert axislab.__version__.count(".") == 2


@pytest.mark.parametrize("name", axislab.__all__)
def test_a_public_class_or_function_has_a_docstring(name):
    thing = getattr(axislab, name)
    if isinstance(thing, type) or callable(thing):
        assert thing.__doc__, name


def test_its_types_are_there_for_type_checkers():
    assert (Path(axislab.__file__).parent / "py.typed").is_file()
