"""`python -m tests.conformance FILE...`: every case of every file, and one line of totals."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.conformance import answers, axis, boxed, tools

ADAPTERS = (answers, axis, tools, boxed)


def cases(path: Path) -> Iterator[tuple[str, Callable[[], str | None]]]:
    """Name and check of each case; a check says what differs, or nothing."""
    data = json.loads(path.read_text(encoding="utf-8"))
    for adapter in ADAPTERS:
        if adapter.accepts(data):
            return adapter.cases(data)
    raise SystemExit(f"{path}: not a case file of a known format (axis, tool, answer or boxed)")


def main(arguments: list[str]) -> int:
    """Run the files; 1 if any case failed."""
    if not arguments:
        raise SystemExit("usage: python -m tests.conformance FILE...")
    passed = failed = 0
    for argument in arguments:
        for name, check in cases(Path(argument)):
            difference = check()
            if difference is None:
                passed += 1
            else:
                failed += 1
                print(f"{Path(argument).name}: {name}: {difference}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
