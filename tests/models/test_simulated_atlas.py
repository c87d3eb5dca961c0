"""The simulated agent on the data sets that ship: how well the presets do, and what arms change."""

import random

import pytest
from simworld import Loop, Tool, hide_old_results, intraclass

from axislab.datasets import load_corpus, load_tasks
from axislab.models.faults import profile
from axislab.models.sim_draws import difficulty
from axislab.models.simulated import SimulatedModel
from axislab.tools.builtin import calculator, search_tools


def usable(tool):
    def function(**arguments):
        try:
            return str(tool(**arguments))
        except Exception as problem:
            return f"Error: {problem}"

    return Tool(tool.spec, function)


@pytest.fixture(scope="module")
def tools():
    built_in = (*search_tools(load_corpus("atlas")), calculator)
    return {tool.name: usable(tool) for tool in built_in}


@pytest.fixture(scope="module")
def atlas():
    return list(load_tasks("atlas"))


def right(answer, task):
    expected = task.expected
    return answer in ([expected] if isinstance(expected, str) else list(expected))


def results(preset, tools, tasks, *, repeats=1, **options):
    model = preset if isinstance(preset, SimulatedModel) else SimulatedModel(preset)
    loop = Loop(model, tools, **options)
    return [
        [right(loop.run(t.prompt, task_id=t.id, repeat=r).answer, t) for r in range(repeats)]
        for t in tasks
    ]


def mean(rows):
    return sum(map(sum, rows)) / sum(map(len, rows))


def test_clean_solves_at_least_nine_in_ten_tasks_of_atlas(tools, atlas):
    assert mean(results("clean", tools, atlas)) >= 0.9


@pytest.mark.parametrize("kind", ["single", "bridge", "comparison", "difference"])
def test_clean_solves_every_kind_of_task(tools, atlas, kind):
    tasks = [task for task in atlas if task.metadata["kind"] == kind]
    assert mean(results("clean", tools, tasks[:20])) >= 0.85


@pytest.mark.parametrize(
    ("preset", "low", "high"), [("flaky", 0.6, 0.85), ("stubborn", 0.35, 0.65)]
)
def test_the_other_presets_leave_room_to_be_better(tools, atlas, preset, low, high):
    assert low <= mean(results(preset, tools, atlas, repeats=2)) <= high


def test_verbose_fills_contexts(tools, atlas):
    def size(preset):
        loop = Loop(SimulatedModel(preset), tools)
        runs = [loop.run(task.prompt, task_id=task.id) for task in atlas[:25]]
        return sum(run.replies[-1].usage.input_tokens for run in runs)

    assert size("verbose") > 2 * size("clean")


@pytest.mark.parametrize("preset", ["clean", "flaky", "stubborn", "verbose"])
def test_without_tools_at_most_one_in_twenty_is_right(atlas, preset):
    assert mean(results(preset, {}, [*atlas, *load_tasks("sums")])) <= 0.05


def test_the_sums_are_solved_with_the_calculator(tools):
    only = {"calculator": tools["calculator"]}
    assert mean(results("clean", only, load_tasks("sums"))) >= 0.95


def test_repeats_of_a_task_of_atlas_correlate(tools, atlas):
    rows = results("flaky", tools, atlas[:80], repeats=8)
    assert 0.2 <= intraclass(rows) <= 0.6


def test_hard_tasks_go_wrong_more_often(tools, atlas):
    ranked = sorted(atlas, key=lambda task: difficulty(task.prompt))
    easy = mean(results("flaky", tools, ranked[:60], repeats=2))
    hard = mean(results("flaky", tools, ranked[-60:], repeats=2))
    assert easy > hard + 0.15


def test_with_two_names_swapped_in_the_documents_the_answer_swaps(atlas):
    """Two values change places in everything the tools show."""
    task = next(t for t in atlas if t.metadata["kind"] == "single")
    corpus = load_corpus("atlas")
    expected = task.expected if isinstance(task.expected, str) else task.expected[0]
    other = next(
        t for t in atlas if t.metadata["kind"] == "single" and t.id != task.id
        and isinstance(t.expected, str) and t.expected[0].isdigit() == expected[0].isdigit()
    )  # fmt: skip
    plain = {tool.name: usable(tool) for tool in search_tools(corpus)}

    def swap(text):
        return text.replace(expected, "\0").replace(other.expected, expected).replace(
            "\0", other.expected
        )  # fmt: skip

    swapped = {
        name: Tool(tool.spec, lambda _f=tool.function, **kw: swap(_f(**kw)))
        for name, tool in plain.items()
    }
    model = SimulatedModel("clean")
    assert Loop(model, plain).run(task.prompt).answer == expected
    assert Loop(model, swapped).run(task.prompt).answer == other.expected


@pytest.mark.slow
def test_among_arms_one_helps_one_does_nothing_and_one_hurts(tools, atlas):
    """Monte-Carlo over 5,000 runs an arm, with the standard error of the paired difference."""
    base = results("flaky", tools, atlas, repeats=25)

    def effect(**options):
        arm = results(options.pop("preset", "flaky"), tools, atlas, repeats=25, **options)
        paired = [sum(a) / 25 - sum(b) / 25 for a, b in zip(arm, base, strict=True)]
        middle = sum(paired) / len(paired)
        spread = sum((x - middle) ** 2 for x in paired) / (len(paired) - 1)
        return middle / (spread / len(paired)) ** 0.5

    assert effect(recover=False) < -3  # so asking again after a bad reply helps
    assert effect(show=hide_old_results) < -3
    assert abs(effect(system="Work with the tools.\nEnd your answer with \\boxed{ANSWER}.")) < 3
    calm = profile("flaky").with_(refuse=0.0, empty=0.0, cut_by_length=0.0, slip=0.02)
    assert effect(preset=SimulatedModel(calm)) > 3


@pytest.mark.slow
def test_an_arm_that_changes_nothing_is_found_different_as_often_as_chance_has_it(tools, atlas):
    """A/A: with independent draws about one comparison in twenty is over two standard errors."""
    loop = Loop(SimulatedModel("flaky"), tools)
    tasks = random.Random(0).sample(atlas, 40)
    hits = 0
    for study in range(60):
        paired = []
        for t in tasks:
            a, b = (
                right(loop.run(t.prompt, seed=study, task_id=t.id, arm=arm).answer, t)
                for arm in ("a", "b")
            )
            paired.append(a - b)
        middle = sum(paired) / len(paired)
        spread = (sum((x - middle) ** 2 for x in paired) / (len(paired) - 1)) ** 0.5
        hits += spread > 0 and abs(middle) > 2 * spread / len(paired) ** 0.5
    assert hits <= 9
