"""A progress bar for notebooks and terminals."""

from __future__ import annotations

import warnings
from typing import Any


def progress_bar(total: int) -> Any:
    """Tqdm's bar for where we are: widgets in a notebook, text in a terminal."""
    with warnings.catch_warnings():
        # Without ipywidgets tqdm warns that it falls back to text; that is what is wanted.
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm

        return tqdm(total=total, unit="run", leave=True)
