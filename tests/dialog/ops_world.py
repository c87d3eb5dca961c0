"""A small cluster that can be repaired and deployed to, and a scripted agent that operates it."""

from __future__ import annotations

import re

import axislab as al
from axislab.models.scripted import ScriptedModel

TOOL_OF = {
    "Diagnose": ("diagnose", ()),
    "Restart": ("restart", ("node",)),
    "Check the service": ("check_service", ()),
    "Move": ("move_service", ("node",)),
    "Build": ("build", ("version",)),
    "Deploy": ("deploy", ("version", "percent")),
    "Check the error": ("error_rate", ("version",)),
}
"""How a step begins, the tool that does it, and the arguments that tool takes."""


class World:
    """A cluster with a dead disk: restarting its node helps nothing, moving the service does."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.moved = False
        self.shares: dict[str, int] = {}

    @property
    def key_calls(self) -> list[str]:
        """What was done that changes something for others."""
        return [c for c in self.calls if c.startswith(("restart", "move_service", "deploy"))]

    def tools(self) -> list[al.Tool]:
        """What an agent can do here."""

        @al.tool
        def diagnose() -> str:
            """Find out which node is faulty, and why; takes long."""
            self.calls.append("diagnose")
            return "node-7 has a dead disk"

        @al.tool
        def restart(node: str) -> str:
            """Restart a node.

            Args:
                node: Its name.
            """
            self.calls.append(f"restart {node}")
            return f"{node} was restarted"

        @al.tool
        def check_service() -> str:
            """Whether the service works."""
            self.calls.append("check_service")
            return "the service has recovered" if self.moved else "the service is still down"

        @al.tool
        def move_service(node: str) -> str:
            """Move the service away from a node.

            Args:
                node: Its name.
            """
            self.calls.append(f"move_service {node}")
            self.moved = True
            return f"the service left {node}"

        return [diagnose, restart, check_service, move_service, *self.release_tools()]

    def release_tools(self) -> list[al.Tool]:
        """Those that build and deploy."""

        @al.tool
        def build(version: str) -> str:
            """Build a version.

            Args:
                version: Which.
            """
            self.calls.append(f"build {version}")
            return f"{version} is built"

        @al.tool
        def deploy(version: str, percent: int) -> str:
            """Deploy a version to a share of the nodes.

            Args:
                version: Which.
                percent: To how many.
            """
            self.calls.append(f"deploy {version} {percent}")
            self.shares[version] = percent
            return f"{version} runs on {percent} % of the nodes"

        @al.tool
        def error_rate(version: str) -> str:
            """The error rate of a version.

            Args:
                version: Which.
            """
            self.calls.append(f"error_rate {version}")
            return f"{version} has 0.1 % errors"

        return [build, deploy, error_rate]


def operator(request):
    """What an agent would say: it does the step it is asked for with what it is told, no more."""
    last = request.messages[-1]
    if last.role == "tool":
        return f"Done. \\boxed{{{last.text}}}"
    task = next(m.text for m in request.messages if m.role == "user")
    name, wanted = next(found for start, found in TOOL_OF.items() if task.startswith(start))
    return ScriptedModel.call(name, **{key: _value(key, task) for key in wanted})


def _value(key, task):
    if key == "percent":
        return 5 if "5 %" in task else 100
    pattern = {"node": r"node-\d+", "version": r"\bv[\d.]*\d"}[key]
    found = re.search(pattern, task)
    # Like a model that forgot: without the diagnosis in its prompt it does not know the node.
    return found.group() if found else "unknown"


def opened(world=None, *, folder=None, model=None, session=None, intents="keywords", **fields):
    """A session in a world of its own."""
    world = world or World()
    lab = al.Lab(model or ScriptedModel(operator), folder=folder)
    recipe = al.recipes.ops_dialog(tools=world.tools(), **fields)
    return world, lab.dialog(recipe, session=session, intents=intents)
