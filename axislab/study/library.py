"""Finding a study by its name: the one that was made of the same, or a new one."""

from __future__ import annotations

from pathlib import Path

from axislab.errors import ConfigError, TraceError
from axislab.study.manifest import Manifest, differences, listed
from axislab.study.shelf import FolderShelf, MemoryShelf, Shelf, labels
from axislab.trace.files import unwritable
from axislab.trace.recorder import check_run_id

_LONGEST = 80


class Library:
    """The studies below a folder, or those of one process.

    Args:
        root: The folder; None keeps studies in memory.
    """

    def __init__(self, root: Path | None) -> None:
        self.root = root
        self._in_memory: dict[str, MemoryShelf] = {}

    def get(self, label: str) -> Shelf | None:
        """The shelf of that label, if there is one."""
        if self.root is None:
            return self._in_memory.get(label)
        folder = self.root / label
        return FolderShelf(folder) if folder.exists() else None

    def make(self, label: str) -> Shelf | None:
        """A new shelf; None if there is one of that label by now.

        Raises:
            TraceError: It cannot be written.
        """
        if self.root is None:
            made = MemoryShelf(label)
            return made if self._in_memory.setdefault(label, made) is made else None
        folder = self.root / label
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            return None
        except OSError as problem:
            raise unwritable(folder, problem) from problem
        return FolderShelf(folder)

    def find(self, wanted: Manifest, *, new: bool) -> Shelf:
        """The shelf that the study is to be run in; it has no manifest yet if it is new.

        Args:
            wanted: What the study is made of; its label is not looked at.
            new: Begin another one, whatever there is.

        Raises:
            ConfigError: There is one of that name which is made of something else.
        """
        newest: Manifest | None = None
        same: Shelf | None = None
        for label in labels(wanted.name):
            shelf = self.get(label)
            if shelf is None:
                break
            manifest = shelf.read()
            if manifest is None:
                return self._half_made(shelf)
            if manifest.name == wanted.name:
                newest = manifest
                same = same if differences(manifest, wanted) else shelf
        if same is not None and not new:
            return same
        if newest is not None and not new:
            raise refused(newest, wanted, free=label)
        # None if another process was quicker: look at what it made.
        return self.make(label) or self.find(wanted, new=new)

    def _half_made(self, shelf: Shelf) -> Shelf:
        """A folder without a manifest: its process was killed at once, or it is no study."""
        if shelf.run_ids():
            raise ConfigError(
                f"name={shelf.label!r}: the folder {str(shelf.folder)!r} holds traces and is no "
                "study; give the study another name"
            )
        return shelf


def check_same(found: Manifest, wanted: Manifest) -> None:
    """Find out whether a study may go on.

    Raises:
        ConfigError: It is made of something else.
    """
    if differences(found, wanted):
        raise refused(found, wanted, free=None)


def refused(found: Manifest, wanted: Manifest, *, free: str | None) -> ConfigError:
    """The error for a study that is not what it was."""
    as_new = f"new=True begins {free!r} and keeps this one" if free else "give another name"
    return ConfigError(
        f"the study {found.label!r} was made of something else: "
        f"{listed(differences(found, wanted))}. To go on with it, give what it was made of; "
        f"{as_new}"
    )


def check_name(name: object) -> str:
    """The name, if it can be a folder's.

    Raises:
        ConfigError: It cannot.
    """
    if isinstance(name, str) and len(name) <= _LONGEST:
        try:
            return check_run_id(name)
        except TraceError:
            pass
    raise ConfigError(
        f"name={name!r}: a study's name is that of its folder: letters, digits, '.', '_' and '-', "
        f"starting with a letter or digit, at most {_LONGEST} of them"
    )
