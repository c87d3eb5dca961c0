"""Loading tasks and corpora, and what the data sets that ship with axislab promise."""

import importlib
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from axislab import datasets
from axislab.datasets import data_folder, load_corpus, load_example_traces, load_tasks
from axislab.errors import DataError
from axislab.events import SCHEMA_VERSION
from axislab.models.sim_language import parse_question
from axislab.models.sim_reading import read_text
from axislab.models.weights import SMOLLM2
from axislab.tasks import Task, TaskSet, prompt_id
from axislab.trace.fsck import fsck

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "datasets"

ROWS = [
    {"id": "a", "prompt": "1 + 1?", "expected": "2", "kind": "add", "hops": 1},
    {"id": "b", "prompt": "2 * 3?", "expected": ["6", "six"], "kind": "times", "hops": 2},
]


def write(path: Path, rows: list) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


# Sources of tasks


def test_jsonl_json_lists_and_frames_give_the_same_tasks(tmp_path):
    tasks = load_tasks(ROWS)
    (tmp_path / "t.json").write_text(json.dumps(ROWS))
    assert tasks["b"] == Task("b", "2 * 3?", ("6", "six"), {"kind": "times", "hops": 2})
    assert load_tasks(write(tmp_path / "t.jsonl", ROWS)) == tasks
    assert load_tasks(str(tmp_path / "t.json")) == tasks
    assert load_tasks(pd.DataFrame(ROWS)) == tasks
    assert load_tasks(pd.DataFrame(ROWS).set_index("id")) == tasks
    assert load_tasks(iter(ROWS)) == tasks
    assert load_tasks([task.to_dict() for task in tasks]) == tasks
    assert load_tasks(tasks.df) == tasks


def test_a_set_is_named_after_its_source_or_as_told(tmp_path):
    assert load_tasks(write(tmp_path / "mine.jsonl", ROWS)).name == "mine"
    assert load_tasks(ROWS).name == "tasks"
    assert load_tasks(pd.DataFrame(ROWS)).name == "frame"
    assert load_tasks(ROWS, name="other").name == "other"
    assert load_tasks(TaskSet([Task("a", "p")], name="was"), name="now").name == "now"
    assert load_tasks("sums", name="x").name == "x"


def test_csv_cells_stay_texts_but_for_numbers_in_the_metadata(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        '\ufeffid,prompt,expected,hops,share,zip,note\r\n1,"Two\nlines, ok?",007,2,0.5,0420,nan\r\n'
        "2,b,,,,,\r\n",
        encoding="utf-8",
        newline="",
    )
    first, second = load_tasks(path)
    assert (first.id, first.prompt, first.expected) == ("1", "Two\nlines, ok?", "007")
    assert first.metadata == {"hops": 2, "share": 0.5, "zip": "0420", "note": "nan"}
    assert (second.expected, second.metadata) == (None, {})


def test_tasks_go_through_a_csv_of_their_frame(tmp_path):
    tasks = load_tasks([ROWS[0], {**ROWS[1], "expected": "6"}])
    tasks.df.to_csv(tmp_path / "t.csv", index=False)
    assert load_tasks(tmp_path / "t.csv") == tasks


def test_holes_of_a_frame_are_left_out():
    frame = pd.DataFrame(
        {
            "prompt": ["p", "q", "r"],
            "expected": [4, None, 6],
            "hops": pd.array([1, None, 2], dtype="Int64"),
            "day": [pd.Timestamp("2026-01-02"), pd.NaT, pd.NaT],
        }
    )
    tasks = load_tasks(frame)
    assert [task.expected for task in tasks] == ["4", None, "6"]
    assert [dict(task.metadata) for task in tasks] == [
        {"hops": 1, "day": "2026-01-02T00:00:00"},
        {},
        {"hops": 2},
    ]


class FakeDataset:
    """Has what axislab uses of a Hugging Face data set."""

    def __init__(self, rows):
        self._rows = rows
        self.column_names = list(rows[0])
        self.info = SimpleNamespace(dataset_name="trivia")

    def __iter__(self):
        return iter(self._rows)


def test_a_hugging_face_data_set_is_read_row_by_row_and_a_dict_of_splits_refused():
    tasks = load_tasks(FakeDataset(ROWS))
    assert (tasks.name, tasks.ids) == ("trivia", ("a", "b"))
    splits = SimpleNamespace(column_names={"train": [], "test": []})
    with pytest.raises(DataError, match=r"splits \['test', 'train'\]; give one, such as"):
        load_tasks(splits)


def test_columns_may_have_other_names_and_the_rest_becomes_metadata():
    rows = [
        {"q": "1 + 1?", "answer": 2, "key": "k1", "prompt": "unused", "metadata": {"kind": "x"}}
    ]
    task = load_tasks(rows, prompt="q", expected="answer", id="key")[0]
    assert (task.id, task.prompt, task.expected) == ("k1", "1 + 1?", "2")
    assert task.metadata == {"source_prompt": "unused", "kind": "x"}


def test_a_column_called_metadata_that_holds_no_mapping_is_kept_as_it_is():
    rows = [{"prompt": "p", "metadata": "from page 3"}]
    assert load_tasks(rows, expected=None)[0].metadata == {"metadata": "from page 3"}


def test_texts_and_tasks_may_be_mixed_with_dicts():
    tasks = load_tasks(["1 + 1?", Task("b", "2?"), {"prompt": "3?"}], expected=None)
    assert tasks.ids == (prompt_id("1 + 1?"), "b", prompt_id("3?"))


def test_an_empty_list_is_an_empty_set():
    assert len(load_tasks([])) == 0


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("atlass", {}, r"no task set 'atlass' ships with axislab; there: 'atlas', 'sums'; or give"),
        ("no/such.jsonl", {}, r"there is no file 'no/such.jsonl'"),
        (Path("tasks.xlsx"), {}, r"cannot read 'tasks.xlsx'; allowed: .jsonl, .json, .csv"),
        (3, {}, r"cannot read tasks from 3; give a name \(atlas, sums\), a path"),
        ({"prompt": "p"}, {}, r"cannot read tasks from \{'prompt'"),
        ([3], {}, r"item 0 is 3; it must be a dict, a text or a Task"),
        ([{"question": "q", "expected": "1"}], {}, r"no column 'prompt'; .*prompt='question'"),
        (
            [{"prompt": "q", "answer": "1"}],
            {},
            r"no column 'expected'; it has \['prompt', 'answer'",
        ),
        ([{"prompt": "q", "zzz": "1"}], {}, r"allowed: prompt, zzz; expected=None for tasks"),
        ([{"prompt": "q", "expected": ""}], {"id": "key"}, r"no column 'key'; it has"),
        ([{"prompt": "q", "expected": "1"}, {"prompt": " "}], {}, r"no 'prompt' in row 1"),
        (
            [{"prompt": p, "expected": "1"} for p in "abca"],
            {},
            r"rows 0 and 3 have the same prompt",
        ),
        ([{"prompt": "q", "expected": {"a": 1}}], {}, r"row 0 of 'tasks': task .*: expected is"),
        ([{"prompt": 7, "expected": "1"}], {}, r"row 0 of 'tasks': task .*: the prompt is 7"),
        ([{"id": "x", "prompt": p, "expected": "1"} for p in "ab"], {}, r"task with id 'x'"),
    ],
)
def test_what_cannot_be_tasks_is_refused_with_what_would_do(source, options, message):
    with pytest.raises(DataError, match=message):
        load_tasks(source, **options)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.jsonl", b'{"prompt": "p"}\n\n{"prompt"', r"line 3 is not JSON"),
        ("t.jsonl", b"[1]\n", r"line 1 is \[1\]; it must be an object"),
        ("t.jsonl", b"\xff\xfe\n", r"is not UTF-8"),
        ("t.json", b"{", r"is not JSON"),
        ("t.json", b'{"a": 1}', r"must hold a list of objects"),
        ("t.csv", b"prompt,expected\na,b,c\n", r"row 1 has more cells than there are columns"),
        ("t.csv", b'prompt,expected\n"a"b,c\n', r"is not CSV"),
        ("t.csv", b"prompt,expected\n ,b\n", r"no 'prompt' in row 1"),
    ],
)
def test_a_broken_file_is_named_with_the_place(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        load_tasks(path)


def test_many_empty_prompts_are_counted():
    rows = [{"prompt": "", "expected": "1"} for _ in range(9)]
    with pytest.raises(DataError, match="in row 0, 1, 2, 3, 4 and 4 more"):
        load_tasks(rows)


def test_line_separators_inside_json_strings_do_not_end_a_line(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"prompt": "a\u2028b", "expected": "1"}\n', encoding="utf-8")
    assert load_tasks(path)[0].prompt == "a\u2028b"


# Corpora and recorded runs


def test_a_corpus_comes_by_name_or_path(tmp_path):
    corpus = load_corpus("atlas")
    assert len(corpus) >= 300
    assert corpus.name == "atlas"
    hit = corpus.search(corpus.get("d0001").title, k=1)[0]
    assert hit.document.id == "d0001"
    path = write(tmp_path / "mine.jsonl", [{"text": "Osk is a port."}])
    assert [d.text for d in load_corpus(path, name="own")] == ["Osk is a port."]
    assert load_corpus(path).name == "mine"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("sums", r"no corpus 'sums' ships with axislab; there: 'atlas'; or give a .jsonl path"),
        ("docs.csv", r"cannot read 'docs.csv'; allowed: .jsonl"),
        ("docs.jsonl", r"there is no file 'docs.jsonl'"),
    ],
)
def test_an_unknown_corpus_is_refused_with_what_there_is(source, message):
    with pytest.raises(DataError, match=message):
        load_corpus(source)


def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like an installed package with data sets in it."""
    folder = tmp_path / "axislab" / "_datasets"
    (folder / "atlas").mkdir(parents=True)
    write(folder / "atlas" / "tasks.jsonl", ROWS)
    monkeypatch.setattr(datasets, "_HERE", folder.parent)
    return folder


def test_recorded_runs_come_by_the_name_of_their_folder(tmp_path, monkeypatch):
    folder = installed(tmp_path, monkeypatch)
    with pytest.raises(DataError, match=r"no folder of recorded runs 'demo' .* there: none"):
        load_example_traces("demo")
    header = {
        "seq": 0,
        "time": "2026-11-30T12:00:00.000000Z",
        "kind": "run.started",
        "run_id": "r1",
        "schema": SCHEMA_VERSION,
        "axislab_version": "0.1.0",
        "recipe": {},
        "recipe_fingerprint": "f",
        "task": {"id": "a", "prompt": "p", "expected": None, "metadata": {}},
        "model": "m",
        "simulated": True,
        "seed": 0,
    }
    (folder / "traces" / "demo").mkdir(parents=True)
    write(folder / "traces" / "demo" / "r1.jsonl", [header])
    assert [run.id for run in load_example_traces("demo")] == ["r1"]
    with pytest.raises(DataError, match="there: 'demo'"):
        load_example_traces("other")


def test_sixty_real_runs_of_the_local_model_ship_and_are_whole():
    runs = load_example_traces("smollm2")
    assert len(runs) == len({run.id for run in runs}) == 60
    assert {(run.model, run.simulated) for run in runs} == {("axislab-local/smollm2-135m", False)}
    assert [str(p) for run in runs for p in fsck(run.trace).problems] == []
    assert {run.status for run in runs} <= {"COMPLETED", "FAILED"}
    weights = {run.trace.header["model_info"]["sha256"] for run in runs}
    assert weights == {SMOLLM2.sha256}
    assert sum(run.usage.output_tokens or 0 for run in runs) > 1_000
    tasks = {kind: load_tasks(kind) for kind in ("sums", "atlas")}
    for run in runs:
        assert tasks[run.task_id.partition("-")[0]][run.task_id].prompt == run.prompt


def test_the_recorded_runs_are_those_of_their_script():
    script = FOLDER / "record_smollm2.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^60 runs, \d+ right, 0 problems$", done.stdout, re.MULTILINE)


def test_recordings_name_no_machine_and_hold_no_key():
    for file in (FOLDER / "traces").rglob("*.jsonl"):
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"(?<![\w.~])/(?:root|tmp|home|work|usr|var|Users)/|api_key|sk-", text)


def test_the_data_sets_are_found_in_a_checkout_and_in_an_installed_package(tmp_path, monkeypatch):
    assert data_folder() == FOLDER
    folder = installed(tmp_path, monkeypatch)
    assert data_folder() == folder
    assert load_tasks("atlas").ids == ("a", "b")


def test_another_package_called_datasets_next_to_ours_is_not_taken_for_it(tmp_path, monkeypatch):
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "__init__.py").touch()
    monkeypatch.setattr(datasets, "_HERE", tmp_path / "axislab")
    with pytest.raises(DataError, match="install axislab again"):
        load_tasks("atlas")


@pytest.mark.slow
def test_a_wheel_holds_the_data_sets_and_finds_them(tmp_path):
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "-w",
        str(tmp_path),
        str(ROOT),
    ]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    if "hatchling" in done.stderr and "No matching distribution" in done.stderr:
        pytest.skip("the build tool hatchling cannot be fetched here")
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path / "site")
    code = (
        "from axislab.datasets import data_folder, load_corpus, load_tasks\n"
        "print(data_folder(), len(load_tasks('atlas')), len(load_tasks('sums')),"
        " len(load_corpus('atlas')))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert out == [str(tmp_path / "site" / "axislab" / "_datasets"), "200", "84", "362"]


# What ships


@pytest.fixture
def scripts(monkeypatch):
    """The scripts that make and check the data sets."""
    monkeypatch.syspath_prepend(str(FOLDER))
    names = ("make_atlas", "make_sums", "atlas_reader")
    yield SimpleNamespace(**{name: importlib.import_module(name) for name in names})
    for name in list(sys.modules):
        if name.startswith(("atlas_", "make_atlas", "make_sums")):
            del sys.modules[name]


def test_the_files_are_what_the_scripts_make(scripts):
    for name, text in scripts.make_atlas.make().items():
        assert (FOLDER / "atlas" / name).read_text(encoding="utf-8") == text
    sums = (FOLDER / "sums" / "tasks.jsonl").read_text(encoding="utf-8")
    assert sums == scripts.make_sums.make()


def test_an_independent_reader_finds_every_answer_in_the_text(scripts):
    assert scripts.make_atlas.problems(FOLDER / "atlas") == []


def test_the_sums_come_to_what_is_expected(scripts):
    assert scripts.make_sums.problems(scripts.atlas_reader.read_rows(sums_file())) == []


def sums_file() -> Path:
    return FOLDER / "sums" / "tasks.jsonl"


@pytest.fixture
def atlas(scripts):
    """Rows of the atlas, and a function that says what is wrong with changed ones."""
    read = scripts.atlas_reader
    corpus = read.read_rows(FOLDER / "atlas" / "corpus.jsonl")
    tasks = read.read_rows(FOLDER / "atlas" / "tasks.jsonl")

    def wrong() -> str:
        changed = read.Atlas(corpus)
        return "\n".join(read.corpus_problems(changed) + read.task_problems(changed, tasks))

    return SimpleNamespace(corpus=corpus, tasks=tasks, wrong=wrong, reader=read)


def single(atlas) -> tuple[dict, dict]:
    """A question of one fact that is stated once, and the document that states it."""
    stated = atlas.reader.Atlas(atlas.corpus)
    pages = {row["id"]: row for row in atlas.corpus}
    for task in atlas.tasks:
        facts = stated.solve(task["prompt"])[0].facts
        if (
            len(facts) == 1
            and task["prompt"].startswith("Who")
            and len(stated.stated[facts[0]]) == 1
        ):
            return task, pages[task["metadata"]["evidence"][0]]
    raise AssertionError


def test_the_check_sees_a_value_that_was_changed(atlas):
    task, page = single(atlas)
    other = next(row["title"] for row in atlas.corpus if " " in row["title"] and row != page)
    page["text"] = page["text"].replace(task["expected"], other)
    assert f"{task['id']} ({task['prompt']}): the text says" in atlas.wrong()


def test_the_check_sees_a_fact_that_is_missing(atlas):
    task, page = single(atlas)
    kept = [s for s in page["text"].split(". ") if task["expected"] not in s]
    page["text"] = ". ".join(kept)
    assert f"{task['id']} ({task['prompt']}): 0 answers" in atlas.wrong()


def test_the_check_sees_a_relation_with_two_values(atlas):
    page = next(row for row in atlas.corpus if " birth year " in row["text"])
    page["text"] += f" The birth year of {page['title']} is 1700."
    assert f"the birth year of {page['title']} has the values" in atlas.wrong()


def test_the_check_sees_a_sentence_that_only_looks_like_a_fact(atlas):
    atlas.corpus[0]["text"] += " Its Best Thing is the view."
    assert "reads like a fact, but is none: d0001: Its Best Thing" in atlas.wrong()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("hops", 5, "hops, not 5"),
        ("kind", "single", "kind 'single' does not fit"),
        ("difficulty", "unknown", "it is "),
        ("evidence", ["d9999"], "evidence"),
        ("cluster", "elsewhere-1", "with cluster"),
    ],
)
def test_the_check_sees_wrong_metadata(atlas, key, value, message):
    task = next(t for t in atlas.tasks if t["metadata"]["hops"] == 2)
    task["metadata"][key] = value
    assert message in atlas.wrong()


def test_the_check_sees_a_wrong_sum(scripts):
    rows = scripts.atlas_reader.read_rows(sums_file())
    rows[0]["expected"] = "1"
    rows[1]["prompt"] = rows[2]["prompt"]
    assert len(scripts.make_sums.problems(rows)) >= 2


def test_the_atlas_has_the_size_and_the_spread_it_promises():
    tasks = load_tasks("atlas")
    assert len(tasks) >= 150
    frame = tasks.df
    assert set(frame["kind"]) == {"single", "bridge", "comparison", "difference"}
    assert set(frame["hops"]) == {1, 2, 3, 4, 5, 6}
    assert set(frame["difficulty"]) == {"easy", "medium", "hard"}
    assert frame["cluster"].value_counts().between(4, 6).all()
    assert set(frame["kind"][:20]) == set(frame["kind"])
    assert frame["expected"].map(bool).all()


def test_the_answers_of_the_atlas_cannot_be_guessed_from_the_question():
    tasks = load_tasks("atlas")
    named = [
        task.id for task in tasks if any(a in task.prompt for a in task.answers if a.isalpha())
    ]
    assert len(named) <= 0.03 * len(tasks)
    most = load_tasks("atlas").df["expected"].map(str).value_counts().iloc[0]
    assert most <= 0.05 * len(tasks)


def test_the_sums_have_the_size_and_the_spread_they_promise():
    frame = load_tasks("sums").df
    assert len(frame) >= 60
    assert frame["kind"].value_counts().min() >= 10
    assert set(frame["difficulty"]) == {"easy", "medium", "hard"}
    assert all(c.startswith(f"{k}/") for c, k in zip(frame["cluster"], frame["kind"], strict=True))


def test_the_simulated_agent_reads_the_facts_that_the_independent_reader_reads(atlas):
    seen: dict[tuple[str, str, str], set[str]] = {}
    for row in atlas.corpus:
        for fact in read_text(f"{row['title']}\n\n{row['text']}").facts:
            seen.setdefault((fact.entity, fact.relation, fact.value), set()).add(row["id"])
    stated = atlas.reader.Atlas(atlas.corpus).stated
    assert seen == {(f.entity, f.relation, f.value): set(ids) for f, ids in stated.items()}


def test_the_simulated_agent_can_read_every_question_but_the_word_problems():
    prompts = [task.prompt for task in load_tasks("atlas")]
    prompts += [t.prompt for t in load_tasks("sums").where(kind=lambda k: k != "word_problem")]
    assert [p for p in prompts if (q := parse_question(p)) is None or q.text.strip() != p] == []


def test_the_folder_is_small_and_every_file_ends_with_a_newline():
    parts = [(f, f.relative_to(FOLDER).parts) for f in FOLDER.rglob("*") if f.is_file()]
    files = [f for f, names in parts if not any(n.startswith((".", "__")) for n in names)]
    assert sum(f.stat().st_size for f in files) < 3_000_000
    for file in files:
        if file.suffix in {".jsonl", ".md", ".py"}:
            assert file.read_bytes().endswith(b"\n")


@pytest.mark.parametrize("script", ["make_atlas.py", "make_sums.py"])
def test_the_scripts_check_themselves(script):
    done = subprocess.run(
        [sys.executable, str(FOLDER / script), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "0 problems" in done.stdout


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5_000])
def test_json_that_python_cannot_read_is_named_with_its_file(tmp_path, suffix, text):
    path = tmp_path / f"odd{suffix}"
    path.write_text(text)
    with pytest.raises(DataError, match=r"odd\.json"):
        load_tasks(path)


def test_a_name_no_file_can_have_is_refused():
    with pytest.raises(DataError):
        load_tasks("x" * 5_000 + ".csv")


def test_two_columns_of_one_name_are_refused_since_one_would_be_lost(tmp_path):
    path = tmp_path / "twice.csv"
    path.write_text("id,prompt,prompt,expected\n1,a,b,2\n")
    frame = pd.DataFrame([["a", "b", 2]], columns=["prompt", "prompt", "expected"])
    for source in (path, frame):
        with pytest.raises(DataError, match="more than one column 'prompt'"):
            load_tasks(source)


def test_a_frame_may_be_indexed_by_a_column_it_also_has_and_have_numbers_for_names():
    rows = pd.DataFrame({"id": ["x"], "prompt": ["a"], "expected": [1]})
    assert load_tasks(rows.set_index("id", drop=False)).ids == ("x",)
    assert load_tasks(rows.rename_axis("id")).ids == ("x",)
    numbered = load_tasks(pd.DataFrame([["a", 1]]), prompt=0, expected=1)
    assert (numbered[0].prompt, numbered[0].expected) == ("a", "1")
