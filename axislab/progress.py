"""A progress bar for notebooks and terminals."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def progress_bar(total: int) -> Any:
    """Tqdm's bar for where we are: widgets in a notebook, text in a terminal."""
    with warnings.catch_warnings():
        # Without ipywidgets tqdm warns that it falls back to text; that is what is wanted.
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm

        return tqdm(total=total, unit="run", leave=True)


@contextmanager
def progress_of(total: int, *, wanted: bool) -> Iterator[Callable[[int], None]]:
    """A bar that is told totals; nothing at all if none is wanted, or for a single run."""
    if not wanted or total < 2:
        yield lambda done: None
        return
    with progress_bar(total) as bar:
        yield lambda done: bar.update(done - bar.n)
