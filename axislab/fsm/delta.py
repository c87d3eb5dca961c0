"""The difference of two JSON trees, and the tree that a difference makes of another."""

from __future__ import annotations

from axislab.errors import TraceError
from axislab.fsm.exact import Tree

# A delta is a list whose first item says what is done:
#   ["=", value]                        take this value
#   ["+", text]                         append to the text
#   ["l", start, removed, items]        in a list, put items in the place of so many others
#   ["i", index, delta]                 change one item of a list
#   ["o", deltas, removed, added]       in an object, change, remove and add keys; what is empty
#                                       at the end is left out
Delta = list[Tree]


def diff(old: Tree, new: Tree) -> Delta | None:
    """What makes one tree of another; None if they are the same.

    Examples:
        >>> diff({"a": [1]}, {"a": [1, 2]})
        ['o', {'a': ['l', 1, 0, [2]]}]
    """
    if same(old, new):
        return None
    if type(old) is type(new):
        if isinstance(new, dict):
            return _diff_object(old, new)
        if isinstance(new, list):
            return _diff_list(old, new)
        if isinstance(new, str) and old and new.startswith(old):
            return ["+", new[len(old) :]]
    return ["=", new]


def _diff_object(old: dict[str, Tree], new: dict[str, Tree]) -> Delta:
    removed = [key for key in old if key not in new]
    added = {key: value for key, value in new.items() if key not in old}
    if [k for k in old if k in new] + list(added) != list(new):
        return ["=", new]  # another order
    changes = {key: diff(old[key], new[key]) for key in new if key in old}
    delta = ["o", {key: d for key, d in changes.items() if d is not None}, removed, added]
    while not delta[-1]:
        delta.pop()
    return delta


def _diff_list(old: list[Tree], new: list[Tree]) -> Delta:
    most = min(len(old), len(new))
    start = 0
    while start < most and same(old[start], new[start]):
        start += 1
    end = 0
    while end < most - start and same(old[-1 - end], new[-1 - end]):
        end += 1
    removed, items = len(old) - start - end, new[start : len(new) - end]
    if removed == len(items) == 1 and (inner := diff(old[start], items[0])) is not None:
        return ["i", start, inner]
    return ["l", start, removed, items]


def same(a: Tree, b: Tree) -> bool:
    """Equal, and of the same types and order all the way down: `1`, `1.0` and `True` differ."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(value, b[key]) for key, value in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b) and (not isinstance(a, float) or repr(a) == repr(b))


def patch(old: Tree, delta: Delta | None) -> Tree:
    """The tree that a delta makes of another, which is left as it is.

    Raises:
        TraceError: The delta is none, or was made for another tree.
    """
    try:
        return old if delta is None else _patch(old, delta)
    except (TypeError, IndexError, KeyError, ValueError, AttributeError) as problem:
        raise TraceError(f"a delta does not fit what it changes: {problem}") from problem


def _patch(old: Tree, delta: Delta) -> Tree:
    what, *rest = delta
    if what == "=":
        return rest[0]
    if what == "+":
        return old + rest[0]
    if what == "i":
        return [*old[: rest[0]], _patch(old[rest[0]], rest[1]), *old[rest[0] + 1 :]]
    if what == "l":
        start, removed, items = rest
        return [*old[:start], *items, *old[start + removed :]]
    if what != "o":
        raise ValueError(f"{what!r} is none of = + i l o")
    changes = rest[0]
    removed = rest[1] if len(rest) > 1 else []
    added = rest[2] if len(rest) > 2 else {}
    kept = {
        key: _patch(value, changes[key]) if key in changes else value
        for key, value in old.items()
        if key not in removed
    }
    return kept | added
