"""Studies: what is run, what is kept, what is refused, and what ends them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

import axislab as al
from axislab.errors import ConfigError, DataError, ErrorKind, ModelError, TraceLocked
from axislab.models.scripted import ScriptedModel
from axislab.study.outcomes import ENDS
from axislab.study.plan import drawn_blocks, plan
from tests.studykit import arms, lasting, scripted, tasks

ROOT = Path(__file__).parent.parent


def compare(lab, made=None, asked=None, **options):
    return lab.compare(
        made or arms(), asked or tasks(6), **{"name": "s", "progress": False, **options}
    )


# What is run ---------------------------------------------------------------------------------


def test_every_arm_sees_the_same_tasks_seeds_and_repeats(tmp_path):
    study = compare(al.Lab(scripted(), folder=tmp_path), repeats=3, seed=5)
    seen = {arm: Counter() for arm in study.arms}
    for run in study.runs:
        seen[run.arm][run.task_id, run.repeat, run.seed] += 1
    assert seen["temperature=0.0"] == seen["temperature=1.0"]
    assert set(seen["temperature=0.0"].values()) == {1}
    assert len(study.runs) == 2 * 6 * 3
    assert {run.study for run in study.runs} == {"s"}
    assert (study.complete, study.ended_by) == (True, "complete")


def test_the_plan_is_balanced_wherever_it_stops():
    blocks = drawn_blocks({f"t{i}": None for i in range(20)}, seed=3)
    pairs = plan("s", ["a", "b", "c"], blocks, repeats=2)
    assert len({pair.run_id for pair in pairs}) == len(pairs) == 120
    for stop in range(len(pairs)):
        counts = Counter(pair.arm for pair in pairs[:stop])
        assert max(counts.values(), default=0) - min(counts[a] for a in "abc") <= 1
    firsts = Counter(pair.arm for pair in pairs[::3])
    assert max(firsts.values()) - min(firsts.values()) <= 1


def test_the_order_of_tasks_is_drawn_with_the_seed_and_keeps_clusters_together():
    clusters = {f"t{i}": f"c{i % 4}" if i < 8 else None for i in range(16)}
    first = drawn_blocks(clusters, seed=0)
    assert first == drawn_blocks(dict(reversed(clusters.items())), seed=0)
    assert first != drawn_blocks(clusters, seed=1)
    assert sorted(map(len, first)) == [1] * 8 + [2] * 4
    assert all(len({clusters[task] for task in block}) == 1 for block in first)


def test_runs_start_in_the_order_of_the_plan(tmp_path):
    study = compare(al.Lab(scripted(), folder=tmp_path), concurrency=1)
    by_start = sorted(study.runs, key=lambda run: run.started)
    assert [run.id for run in by_start] == [pair.run_id for pair in study.book.pairs]


def test_a_study_without_a_folder_is_kept_in_memory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lab = al.Lab(scripted())
    first, again = compare(lab), compare(lab)
    assert (first.new_calls, again.new_calls) == (12, 0)
    assert again.folder is None
    assert again.summary().equals(first.summary())
    assert list(tmp_path.iterdir()) == []


def test_code_that_awaits_has_acompare(tmp_path):
    lab = al.Lab(scripted(), folder=tmp_path)

    async def cell():
        return await lab.acompare(arms(), tasks(4), name="s")

    assert asyncio.run(cell()).complete
    assert compare(lab, asked=tasks(4)).new_calls == 0


def test_a_cell_that_runs_again_makes_no_call_and_says_so(tmp_path):
    compare(al.Lab(scripted(), folder=tmp_path))
    before = {path: path.read_bytes() for path in (tmp_path / "s").iterdir()}
    model = scripted()
    again = compare(al.Lab(model, folder=tmp_path))
    assert (again.new_calls, again.new_runs, len(model.requests)) == (0, 0, 0)
    assert "0 new calls" in repr(again)
    after = {path: path.read_bytes() for path in (tmp_path / "s").iterdir()}
    lock = tmp_path / "s" / "study.lock"
    assert {**after, lock: b""} == {**before, lock: b""}


def test_more_repeats_extend_a_study(tmp_path):
    lab = al.Lab(scripted(), folder=tmp_path)
    compare(lab)
    more = compare(lab, repeats=3)
    assert (more.new_runs, len(more.runs)) == (24, 36)
    assert [s.repeats for s in more.manifest.sessions] == [1, 3]
    with pytest.raises(ConfigError, match="repeats: 3 → 1"):
        compare(lab)


def test_a_study_on_disk_is_what_compare_returned(tmp_path):
    study = compare(al.Lab(scripted(), folder=tmp_path), repeats=2)
    loaded = al.load_study(tmp_path / "s")
    assert loaded.new_calls is None
    assert loaded.summary().equals(study.summary())
    assert loaded.contrasts().equals(study.contrasts())
    assert al.pairs_df(loaded).equals(al.pairs_df(study))
    assert loaded.df.equals(study.df)
    assert [run.id for run in loaded.runs] == [run.id for run in study.runs]


def test_frames_and_plots_take_a_study():
    study = compare(al.Lab(scripted()))
    assert len(al.runs_df(study)) == len(al.steps_df(study).run_id.unique()) == 12


# What is refused -----------------------------------------------------------------------------


CHANGES = {
    "an arm's knob": (
        {"made": al.grid(al.Recipe(name="plain"), temperature=[0.0, 1.0], max_turns=[7])},
        r"arm 'temperature=0.0': there → gone",
    ),
    "a knob under the same name": (
        {
            "made": {
                "temperature=0.0": arms()["temperature=0.0"].with_(max_turns=7),
                "temperature=1.0": arms()["temperature=1.0"],
            }
        },
        r"arm 'temperature=0.0', max_turns: 50 → 7",
    ),
    "one more arm": ({"made": arms(0.0, 1.0, 2.0)}, r"arm 'temperature=2.0': none → new"),
    "fewer tasks": ({"asked": tasks(5)}, r"tasks: 6 tasks → 5 tasks \(gone 't005'\)"),
    "another prompt": (
        {"asked": al.TaskSet([*tasks(5), al.Task("t005", "Other?", "4")])},
        r"tasks: 6 tasks → 6 tasks \(changed 't005'\)",
    ),
    "the seed": ({"seed": 9}, r"seed: 0 → 9"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("where", ["folder", "memory"])
def test_what_is_not_what_it_was_is_refused_with_what_differs(tmp_path, change, where):
    lab = al.Lab(scripted(), folder=tmp_path if where == "folder" else None)
    compare(lab)
    options, said = CHANGES[change]
    with pytest.raises(ConfigError, match=said) as caught:
        compare(lab, **options)
    assert "new=True begins 's-2'" in str(caught.value)
    assert compare(lab).new_calls == 0
    fresh = compare(lab, **options, new=True)
    assert (fresh.name, fresh.complete) == ("s-2", True)
    assert {run.study for run in fresh.runs} == {"s-2"}
    assert compare(lab, **options).name == "s-2"  # the newest that is made of this
    assert compare(lab).name == "s"


def test_another_model_is_refused(tmp_path):
    compare(al.Lab(scripted(), folder=tmp_path))
    other = ScriptedModel([r"\boxed{4}"], after="repeat", name="other")
    with pytest.raises(ConfigError, match=r"model: scripted → other"):
        compare(al.Lab(other, folder=tmp_path))
    script = ScriptedModel([r"\boxed{4}"], after="repeat")
    with pytest.raises(ConfigError, match=r"model, script: .* → "):
        compare(al.Lab(script, folder=tmp_path))


def test_another_version_and_another_coupling_are_refused(tmp_path):
    compare(al.Lab(scripted(), folder=tmp_path))
    with pytest.raises(ConfigError, match="coupling: 'independent' → 'common'"):
        compare(al.Lab(scripted(), folder=tmp_path, coupling="common"))
    path = tmp_path / "s" / "study.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": "0.0.1"}))
    with pytest.raises(ConfigError, match=r"axislab version: '0.0.1' → "):
        compare(al.Lab(scripted(), folder=tmp_path))


BAD = [
    ({"made": {"a": al.Recipe()}}, "two or more recipes"),
    ({"made": {"a": al.Recipe(), "b": "x"}}, "arm 'b' is 'x'"),
    ({"baseline": "temperature=1"}, "did you mean 'temperature=1.0'"),
    ({"repeats": 0}, "repeats=0"),
    ({"concurrency": 0}, "concurrency=0"),
    ({"name": "a/b"}, "name='a/b'"),
    ({"name": "../up"}, "name='../up'"),
    ({"name": ""}, "name=''"),
    ({"name": None}, "name=None"),
    ({"budget": 5}, "budget=5"),
    ({"budget": {"token": 5}}, "budget="),
    ({"budget": {"tokens": -5}}, "tokens=-5"),
    ({"budget": {"usd": 1.0}}, "budget in usd cannot be kept"),
    ({"stop_when": "soon"}, "stop_when='soon'"),
    ({"stop_when": "decided", "asked": ["no answer known"]}, "expected answer"),
]


@pytest.mark.parametrize(("options", "said"), BAD)
def test_what_cannot_work_is_refused_before_anything_is_made(tmp_path, options, said):
    lab = al.Lab(scripted(), folder=tmp_path)
    with pytest.raises(ConfigError, match=said):
        compare(lab, **options)
    assert list(tmp_path.iterdir()) == []


def test_simulated_and_real_arms_are_never_compared(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "no-key-at-all")
    lab = al.Lab("axislab/simulated", folder=tmp_path)
    made = {"a": al.Recipe(), "b": al.Recipe(model="openai/gpt-4o-mini")}
    with pytest.raises(ConfigError, match=r"arms \['a'\] are simulated and the others are not"):
        compare(lab, made)


def test_a_folder_of_other_traces_is_no_study(tmp_path):
    al.Lab(scripted(), folder=tmp_path / "s").run(al.Recipe(), "x")
    with pytest.raises(ConfigError, match="holds traces and is no study"):
        compare(al.Lab(scripted(), folder=tmp_path))
    with pytest.raises(DataError, match="holds no study"):
        al.load_study(tmp_path / "s")


def test_a_folder_above_studies_says_which_there_are(tmp_path):
    compare(al.Lab(scripted(), folder=tmp_path))
    with pytest.raises(DataError, match=r"studies below it: s$"):
        al.load_study(tmp_path)


def test_a_manifest_that_cannot_be_read_says_so(tmp_path):
    compare(al.Lab(scripted(), folder=tmp_path))
    path = tmp_path / "s" / "study.json"
    text = path.read_text()
    for broken in (text[:100], "[]", text.replace('"schema": 1', '"schema": 99')):
        path.write_text(broken)
        with pytest.raises(DataError, match=r"study.json': no manifest of a study"):
            al.load_study(tmp_path / "s")


# What ends it --------------------------------------------------------------------------------


def test_ctrl_c_keeps_what_has_finished_and_the_same_call_goes_on(tmp_path):
    model = scripted(delay=0.01)
    lab = al.Lab(model, folder=tmp_path)
    threading.Timer(0.4, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        compare(lab, asked=tasks(200), concurrency=2)
    stopped = al.load_study(tmp_path / "s")
    assert stopped.ended_by == "stopped"
    done = {run.id for run in stopped.runs}
    assert 0 < len(done) < 400
    assert {run.status for run in stopped.set_aside} == {"INTERRUPTED"}
    assert 1 <= len(stopped.set_aside) <= 2
    sent = len(model.requests)
    study = compare(al.Lab(scripted(), folder=tmp_path), asked=tasks(200), concurrency=16)
    assert study.complete
    assert study.new_runs == 400 - len(done)
    assert sent <= len(done) + 2
    assert lasting(study).equals(lasting(compare(al.Lab(scripted()), asked=tasks(200))))


def test_a_study_in_memory_survives_ctrl_c():
    lab = al.Lab(scripted(delay=0.01))
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        compare(lab, asked=tasks(100), concurrency=2)
    study = compare(lab, asked=tasks(100), concurrency=16)
    assert study.complete
    assert 0 < study.new_runs < 200


def test_a_cancelled_cell_keeps_what_has_finished(tmp_path):
    lab = al.Lab(scripted(delay=0.01), folder=tmp_path)

    async def cell():
        await asyncio.wait_for(lab.acompare(arms(), tasks(200), name="s", concurrency=2), 0.8)

    compare(lab, name="warm")  # what is loaded on first use is loaded now
    with pytest.raises(TimeoutError):
        asyncio.run(cell())
    study = al.load_study(tmp_path / "s")
    assert study.ended_by == "stopped"
    assert 0 < len(study.runs) < 400


def test_two_at_once_do_not_run_the_same_study(tmp_path):
    script = (
        "import sys, axislab as al\n"
        "from tests.studykit import arms, scripted, tasks\n"
        "lab = al.Lab(scripted(delay=0.05), folder=sys.argv[1])\n"
        "lab.compare(arms(), tasks(200), name='s', concurrency=1, progress=False)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        end = time.monotonic() + 60
        while not list(tmp_path.glob("s/*.jsonl")) and time.monotonic() < end:
            time.sleep(0.01)
        model = scripted()
        with pytest.raises(TraceLocked, match=rf"by process {child.pid} on .* since .* UTC"):
            compare(al.Lab(model, folder=tmp_path), asked=tasks(200))
        assert model.requests == []
        assert not al.load_study(tmp_path / "s").complete  # looking is always possible
    finally:
        child.kill()
        child.wait()
    assert compare(al.Lab(scripted(), folder=tmp_path), asked=tasks(200)).complete


def test_two_threads_do_not_run_the_same_study_in_memory():
    lab = al.Lab(scripted(delay=0.05))
    other = threading.Thread(target=lambda: compare(lab, asked=tasks(20), concurrency=2))
    other.start()
    time.sleep(0.2)
    with pytest.raises(TraceLocked, match=rf"by process {os.getpid()} on"):
        compare(lab, asked=tasks(20))
    other.join()
    assert compare(lab, asked=tasks(20)).new_calls == 0


def limited():
    return al.grid(al.Recipe(name="plain").with_(max_output_tokens=50), temperature=[0.0, 1.0])


def test_a_budget_ends_a_study_and_a_higher_one_goes_on(tmp_path):
    lab = al.Lab(scripted(), folder=tmp_path)
    made = limited()
    study = compare(lab, made, tasks(50), budget={"tokens": 1_000}, concurrency=2)
    assert study.ended_by == "budget"
    assert "its budget was used up" in repr(study)
    used = study.book.used().tokens
    assert 800 <= used <= 1_000
    counts = Counter(run.arm for run in study.runs)
    assert abs(counts["temperature=0.0"] - counts["temperature=1.0"]) <= 2
    files = len(list((tmp_path / "s").iterdir()))
    again = compare(lab, made, tasks(50), budget={"tokens": 1_000})
    assert (again.ended_by, again.new_calls) == ("budget", 0)
    assert len(list((tmp_path / "s").iterdir())) == files  # running it again adds nothing
    more = compare(lab, made, tasks(50), budget={"tokens": 1_600}, concurrency=2)
    assert more.ended_by == "budget"
    assert used < more.book.used().tokens <= 1_600
    whole = compare(lab, made, tasks(50))
    assert whole.complete
    assert lasting(whole).equals(lasting(compare(al.Lab(scripted()), made, tasks(50))))


def test_a_budget_in_dollars_ends_a_study(tmp_path):
    price = al.Price(input=1.0, output=10.0)
    lab = al.Lab("axislab/simulated", folder=tmp_path, price=price)
    made = al.grid(al.recipes.boxed_math(max_output_tokens=200), temperature=[0.0, 1.0])
    study = compare(lab, made, al.load_tasks("sums")[:10], budget={"usd": 0.03}, concurrency=2)
    assert study.ended_by == "budget"
    assert 0 < study.book.used().known_usd <= 0.03
    assert study.summary().cost_usd.notna().all()


def test_runs_that_a_budget_or_a_wrong_key_ended_are_no_results(tmp_path):
    def refuse(request):
        return ModelError("the key was rejected", kind=ErrorKind.AUTH)

    made = {"a": al.Recipe(name="plain"), "b": al.Recipe(name="plain", scorer="exact")}
    lab = al.Lab(ScriptedModel(refuse, name="m"), folder=tmp_path)
    study = compare(lab, made, tasks(2))
    assert (study.runs, len(study.set_aside), study.complete) == ([], 4, False)
    assert study.summary().runs.tolist() == [0, 0]
    assert "nothing can be said" in repr(study.contrast("b"))


def test_a_failure_of_the_arm_is_a_result_and_counts_as_wrong():
    def line(request):
        if request.sampling.temperature == 1.0:
            return ModelError("no such parameter", kind=ErrorKind.BAD_REQUEST)
        return r"\boxed{4}"

    study = compare(al.Lab(ScriptedModel(line)), asked=tasks(3))
    row = study.summary().iloc[1]
    assert (row["runs"], row["judged"], row["accuracy"], row["failed"]) == (3, 3, 0.0, 3)
    assert row["failed_share"] == 1.0
    assert pd.isna(row["answered_of_unfailed"])
    assert study.complete


def test_what_is_decided_stops_the_study_and_stays_decided(tmp_path):
    def line(request):
        return r"\boxed{4}" if request.sampling.temperature == 1.0 else r"\boxed{5}"

    lab = al.Lab(ScriptedModel(line), folder=tmp_path)
    study = compare(lab, asked=tasks(100), stop_when="decided", concurrency=2)
    assert study.ended_by == "decided"
    assert "every contrast was decided" in repr(study)
    assert len(study.runs) < 60
    seen = study.sequential("temperature=1.0")
    assert seen.decided
    assert seen.p <= 0.05
    assert "has higher accuracy" in seen.verdict
    again = compare(lab, asked=tasks(100), stop_when="decided")
    assert (again.ended_by, again.new_calls) == ("decided", 0)
    whole = compare(lab, asked=tasks(100))
    assert whole.ended_by == "complete"
    assert whole.sequential("temperature=1.0").sequence.decided_at == seen.sequence.decided_at


def test_alike_arms_are_not_decided():
    lab = al.Lab(ScriptedModel([r"\boxed{4}"], after="repeat"))
    study = compare(lab, asked=tasks(60), stop_when="decided")
    assert study.ended_by == "complete"
    assert not study.sequential("temperature=1.0").decided


def test_a_task_counts_for_a_look_only_when_all_before_it_are_finished(tmp_path):
    study = compare(al.Lab(scripted(), folder=tmp_path), asked=tasks(10))
    first = study.book.pairs[0]
    (tmp_path / "s" / f"{first.run_id}.jsonl").unlink()
    holed = al.load_study(tmp_path / "s")
    seen = holed.sequential("temperature=1.0")
    assert (seen.sequence.looks, seen.waiting) == ((), 9)
    assert holed.contrast("temperature=1.0").found.tasks == 9


# What it says --------------------------------------------------------------------------------


def test_summary_has_both_denominators():
    def line(request):
        asked = request.messages[-1].text
        if "1 -" in asked:
            return "I'm sorry, but I can't help with that."
        return r"\boxed{4}" if "2 -" in asked else "No box."

    recipe = al.Recipe(name="plain")
    study = compare(al.Lab(ScriptedModel(line)), {"a": recipe, "b": recipe}, tasks(3))
    row = study.summary().iloc[0]
    assert (row["runs"], row["answered"], row["refused"], row["format_error"]) == (3, 1, 1, 1)
    assert row["accuracy"] == pytest.approx(1 / 3)
    assert row["accuracy_answered"] == 1.0
    assert row["accuracy_low"] < row["accuracy"] < row["accuracy_high"]
    assert row["cost_usd"] is not None
    assert row["cost_missing"] == "no language model was asked"
    shares = [row[f"{end}_share"] for end in ENDS]
    assert sum(shares) == pytest.approx(1.0)


def test_copies_are_dropped_and_said():
    study = compare(al.Lab(scripted()), repeats=3)
    for outcome in study.outcomes:
        assert outcome.cache_keys == ()
    assert study.independence.dropped == 0
    assert study.summary().copies.tolist() == [0, 0]


def test_a_contrast_says_simulated_and_has_a_repr_for_notebooks():
    study = compare(al.Lab(scripted()), asked=tasks(40))
    found = study.contrast("temperature=1.0", minus="temperature=0.0")
    assert found.verdict.startswith("On simulated runs, ")
    assert found.estimate == pytest.approx(study.summary().accuracy.diff().iloc[-1], abs=1e-12)
    assert "<table>" in found._repr_html_()
    back = study.contrast("temperature=0.0", minus="temperature=1.0")
    assert back.estimate == pytest.approx(-found.estimate)
    assert found.df.equals(study.contrasts())
    assert "On simulated runs" in study.sequential("temperature=1.0")._repr_html_()


def test_more_than_two_arms_are_corrected():
    study = compare(al.Lab(scripted()), arms(0.0, 0.5, 1.0, 1.5), tasks(60))
    holm, fdr = study.contrasts(), study.contrasts(correction="fdr")
    assert len(holm) == 3
    assert (holm.p_adjusted >= holm.p).all()
    assert (fdr.p_adjusted <= holm.p_adjusted).all()
    assert holm.correction.tolist() == ["holm"] * 3
    with pytest.raises(DataError, match="bonferroni"):
        study.contrasts(correction="bonferroni")


@pytest.mark.parametrize("metric", ["score", "answered", "turns", "tokens", "seconds", "cost_usd"])
def test_other_metrics_are_compared(metric):
    study = compare(al.Lab(scripted()), asked=tasks(20), repeats=2)
    found = study.contrast("temperature=1.0", metric=metric)
    assert found.verdict.startswith("On simulated runs, ")
    assert study.contrasts(metric=metric).metric.tolist() == [metric]


def test_what_is_not_there_is_said():
    study = compare(al.Lab(scripted()))
    with pytest.raises(DataError, match=r"did you mean 'temperature=1\.0'"):
        study.contrast("temperature=1")
    with pytest.raises(DataError, match="metric='acuracy'"):
        study.contrast("temperature=1.0", metric="acuracy")
    with pytest.raises(DataError, match="has no ends"):
        study.sequential("temperature=1.0", metric="turns")
    with pytest.raises(DataError, match="is no study"):
        al.pairs_df([])


def test_pairs_df_shows_every_pair_beside_the_baseline(tmp_path):
    study = compare(al.Lab(scripted(), folder=tmp_path), asked=tasks(8), repeats=2)
    frame = al.pairs_df(study)
    assert len(frame) == 32
    assert frame.state.eq("finished").all()
    other = frame[frame.arm == "temperature=1.0"]
    wanted = other.correct.astype(float) - other.correct_minus.astype(float)
    assert other.difference.astype(float).tolist() == wanted.tolist()
    assert frame[frame.arm == "temperature=0.0"].difference.isna().all()
    next(iter((tmp_path / "s").glob("*.jsonl"))).unlink()
    holed = al.pairs_df(al.load_study(tmp_path / "s"))
    assert holed.state.value_counts().to_dict() == {"finished": 31, "to do": 1}


def test_a_study_is_drawn_with_a_panel_for_each_metric():
    from matplotlib.figure import Figure

    study = compare(al.Lab(scripted()), arms(0.0, 0.5, 1.0), tasks(20))
    frame = study.comparison()
    assert list(frame.metric.unique()) == ["accuracy", "answered share", "tokens"]  # no price
    axes = al.plot_comparison(study, axes=list(Figure().subplots(3, 1)))
    assert [ax.get_xlabel() for ax in axes] == [
        "difference of accuracy from temperature=0.0",
        "difference of answered share from temperature=0.0",
        "ratio of tokens to temperature=0.0",
    ]
    assert "simulated" in {text.get_text() for text in axes[-1].texts}


def test_loading_a_lab_loads_no_scipy():
    code = "import sys, axislab as al; al.Lab(al.ScriptedModel(['4'])); al.Study; "
    code += "print({'scipy', 'pandas', 'numpy'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "set()"


def test_clusters_make_n_and_an_amount_that_is_nowhere_known_breaks_nothing():
    made = [al.Task(f"t{i}", f"What is {i}?", "4", {"cluster": f"c{i // 2}"}) for i in range(12)]
    study = compare(al.Lab(scripted()), asked=al.TaskSet(made))
    assert study.summary().clusters.tolist() == [6, 6]
    found = study.contrast("temperature=1.0")
    assert (found.found.clusters, found.cost.ratio) == (6, None)
    seen = study.sequential("temperature=1.0")
    assert seen.sequence.last.n == 6
    assert "6 clusters" in seen.verdict


def test_repeats_have_pass_at_k_and_pass_hat_k():
    row = compare(al.Lab("axislab/simulated-flaky"), repeats=1).summary().iloc[0]
    assert pd.isna(row["pass_at_k"])
    lab = al.Lab("axislab/simulated-flaky")
    made = al.grid(al.recipes.boxed_math(), max_turns=[3, 8])
    study = compare(lab, made, al.load_tasks("sums")[:8], repeats=3)
    row = study.summary().iloc[0]
    right = pd.DataFrame(
        [(o.task_id, o.correct) for o in study.outcomes if o.arm == "max_turns=3"],
        columns=["task_id", "correct"],
    ).groupby("task_id")["correct"]
    assert row["pass_at_k"] == pytest.approx(right.max().mean())
    assert row["pass_hat_k"] == pytest.approx(right.min().mean())
    assert row["pass_hat_k"] <= row["accuracy"] <= row["pass_at_k"]
