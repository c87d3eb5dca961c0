"""Paths as people write them: text or a path, with `~` for their home."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from axislab.borders import shown
from axislab.errors import AxislabError, DataError


def user_path(given: Any, *, error: type[AxislabError] = DataError) -> Path:
    """The path, its `~` replaced: a folder of that name is never what was meant.

    Raises:
        AxislabError: It is neither text nor a path; of the class given as `error`.
    """
    if not isinstance(given, str | os.PathLike):
        raise error(f"{shown(given)} is no path: give text, such as 'traces/demo', or a Path")
    path = Path(given)
    try:
        return path.expanduser()
    except RuntimeError:  # a user nobody knows, or nobody's home
        return path
