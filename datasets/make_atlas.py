"""Makes the atlas: a corpus about an invented world and questions about it.

Run it to write atlas/corpus.jsonl and atlas/tasks.jsonl; the same seed gives the same bytes. With
--check nothing is written: the files are compared with what would be made, and an independent
reader answers every question from the text of the corpus.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import atlas_reader
from atlas_questions import task_rows
from atlas_text import Library
from atlas_world import World

SEED = 7
FOLDER = Path(__file__).parent / "atlas"


def make(seed: int = SEED) -> dict[str, str]:
    """The text of each file, by name."""
    library = Library(World(seed), seed)
    return {"corpus.jsonl": lines(library.rows()), "tasks.jsonl": lines(task_rows(library, seed))}


def lines(rows: Iterable[object]) -> str:
    """The rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def problems(folder: Path) -> list[str]:
    """What an independent reading of the files in a folder finds wrong."""
    atlas = atlas_reader.Atlas(atlas_reader.read_rows(folder / "corpus.jsonl"))
    tasks = atlas_reader.read_rows(folder / "tasks.jsonl")
    found = atlas_reader.corpus_problems(atlas) + atlas_reader.task_problems(atlas, tasks)
    if len(atlas.rows) < 300 or len(tasks) < 150:
        found.append(f"only {len(atlas.rows)} documents and {len(tasks)} questions")
    return found


def summary(folder: Path) -> str:
    """Counts of what is in the files."""
    atlas = atlas_reader.Atlas(atlas_reader.read_rows(folder / "corpus.jsonl"))
    metas = [t["metadata"] for t in atlas_reader.read_rows(folder / "tasks.jsonl")]
    out = [f"{len(atlas.rows)} documents, {len(atlas.stated)} facts, {len(metas)} questions"]
    for key in ("kind", "hops", "difficulty"):
        counts = sorted(Counter(meta[key] for meta in metas).items())
        out.append(f"{key}: " + ", ".join(f"{n} {value}" for value, n in counts))
    out.append(f"clusters: {len({meta['cluster'] for meta in metas})}")
    return "\n".join(out)


def main() -> int:
    """Write the files, or check them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, check the files")
    check = parser.parse_args().check
    wrong = []
    for name, text in make().items():
        path = FOLDER / name
        if not check:
            FOLDER.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        elif path.read_text(encoding="utf-8") != text:
            wrong.append(f"{path.name} is not what this script makes")
    wrong += problems(FOLDER)
    print("\n".join([*wrong, summary(FOLDER), f"{len(wrong)} problems"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
