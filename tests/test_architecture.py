"""The shape of the package is a test, not a convention."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import axislab

ROOT = Path(axislab.__file__).parent
LAYERS = (
    {"errors", "borders"},
    {"config_base"},
    {"answer_policy"},
    {"messages", "config", "paths"},
    {"events", "fsm"},
    {"runtime", "models", "tools"},
    {"answers"},
    {"recipe", "tasks"},
    {"orchestrator", "trace"},
    {"dialog"},
    {"frames", "datasets"},
    {"analysis", "stats"},
    {"plots", "widgets"},
    {"recipes", "study"},
    {"running", "progress", "runs"},
    {"handle"},
    {"crew", "estimate", "drive", "dialogs"},
    {"accounts"},
    {"work"},
    {"compare"},
    {"lab"},
    {"__main__"},
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
MODULES = sorted(p for p in ROOT.rglob("*.py") if p != ROOT / "__init__.py")
HEAVY = ("litellm", "pandas", "matplotlib", "networkx", "ipywidgets", "scipy", "bm25s", "numpy")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def top(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Packages of axislab a module imports, however it spells the import."""
    package = ("axislab", *path.relative_to(ROOT).parts[:-1])
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            stem = ".".join(package[: len(package) - node.level + 1]) + "." if node.level else ""
            names |= {f"{stem}{node.module or ''}.{alias.name}" for alias in node.names}
    return {n.split(".")[1] for n in names if n.startswith("axislab.")}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_one_way(path):
    own = top(path)
    assert own in RANK, f"{name_of(path)}: give {own!r} a layer"
    for target in sorted(imported(path) - {own}):
        assert target in RANK, f"{name_of(path)} imports axislab.{target}, which has no layer"
        assert RANK[target] < RANK[own], f"{name_of(path)} must not import axislab.{target}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_fits_in_400_lines(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_opens_with_a_sentence(path):
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert doc, f"{name_of(path)} has no docstring"
    assert doc.splitlines()[0].rstrip().endswith((".", ":")), name_of(path)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_function_returns_a_bare_tuple_of_three_or_more(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        returns = node.returns
        if isinstance(returns, ast.Subscript) and ast.unparse(returns.value) in ("tuple", "Tuple"):
            items = returns.slice.elts if isinstance(returns.slice, ast.Tuple) else [returns.slice]
            open_ended = any(ast.unparse(item) == "..." for item in items)
            assert open_ended or len(items) < 3, f"{name_of(path)}: {node.name}"


def test_running_an_agent_loads_no_science_stack():
    light = [
        ".".join(p.relative_to(ROOT.parent).with_suffix("").parts)
        for p in MODULES
        if RANK[top(p)] <= RANK["trace"] and p.name != "__init__.py"
    ]
    code = f"import sys, {', '.join(light)}; print(sorted({set(HEAVY)!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT.parent
    )
    assert done.stdout.strip() == "[]"


def test_importing_axislab_loads_nothing_heavy_at_all():
    heavy = {*HEAVY, "pydantic", "jsonschema", "yaml"}
    code = f"import sys, axislab; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT.parent
    )
    assert done.stdout.strip() == "[]"
