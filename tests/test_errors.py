"""The tree of errors, as it is drawn."""

import inspect
import re

import pytest

from axislab import errors
from axislab.errors import (
    AxislabError,
    ErrorKind,
    ModelError,
    TemplateError,
    did_you_mean,
)

CLASSES = {
    name: cls
    for name, cls in vars(errors).items()
    if inspect.isclass(cls) and issubclass(cls, AxislabError)
}


def drawn():
    """Name, depth and built-in base of every line of the drawing."""
    tree = errors.__doc__.split("```")[1]
    for line in tree.strip().splitlines():
        found = re.match(r"([│├└─ ]*)(\w+)(?: \((\w+)\))?", line)
        yield found[2], len(found[1]) // 4, found[3]


def test_every_error_is_drawn_under_its_base():
    above = []
    names = set()
    for name, depth, builtin in drawn():
        above[depth:] = [name]
        names.add(name)
        cls = CLASSES[name]
        if depth:
            assert CLASSES[above[depth - 1]] in cls.__bases__
        foreign = [b.__name__ for b in cls.__bases__ if b.__name__ not in CLASSES]
        assert (
            foreign == [builtin or "Exception"]
            if not depth
            else foreign == [builtin] * bool(builtin)
        )
    assert names == CLASSES.keys()


@pytest.mark.parametrize("cls", CLASSES.values(), ids=CLASSES)
def test_every_error_says_what_it_is_and_shows_its_message(cls):
    assert cls.__doc__
    assert str(cls("what went wrong")) == "what went wrong"


def test_a_template_error_reads_like_the_others_although_it_is_a_key_error():
    assert isinstance(TemplateError("x"), KeyError)
    assert (str(TemplateError("no 'quotes'")), str(TemplateError())) == ("no 'quotes'", "")


def test_a_model_error_knows_what_happened():
    cause = OSError("down")
    error = ModelError(
        "no reply",
        kind=ErrorKind.CONTEXT_LIMIT,
        retry_after=2.0,
        status=400,
        window=10,
        requested=12,
        original=cause,
    )
    assert (error.kind, error.retry_after, error.status) == ("context_limit", 2.0, 400)
    assert (error.window, error.requested, error.original) == (10, 12, cause)
    assert ModelError("x").kind is ErrorKind.UNKNOWN


def test_help_names_the_nearest_or_all():
    assert did_you_mean("windo", ["window", "width"]) == "did you mean 'window'?"
    assert did_you_mean("zzz", ["b", "a"]) == "allowed: a, b"
    assert did_you_mean("zzz", []) == "allowed: nothing"


@pytest.mark.parametrize("given", [None, 5, [], ("a",), float("nan")])
def test_what_is_no_name_is_like_none(given):
    assert did_you_mean(given, ["max_turns", 3]) == "allowed: 3, max_turns"


def test_a_model_errors_kind_is_one_of_the_kinds():
    assert ModelError("x", kind="timeout").kind is ErrorKind.TIMEOUT
    with pytest.raises(ValueError, match="nonsense"):
        ModelError("x", kind="nonsense")
