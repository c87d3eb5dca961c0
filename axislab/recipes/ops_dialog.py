"""ops_dialog: a session that repairs and deploys, asks before it changes things, and remembers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from axislab.config import AgentConfig
from axislab.dialog.recipe import DialogRecipe
from axislab.fsm.dialog_values import PlanStep
from axislab.fsm.intents import Skill
from axislab.recipe import Recipe
from axislab.tools.base import Tool

SYSTEM = (
    "You operate a cluster with the tools you are given. Do exactly the one step you are asked "
    "for, with at most a few calls, and nothing beyond it. Rely on what is already known instead "
    "of finding it out again. End with what came of it as \\boxed{...}: a short plain statement "
    "of facts. If the step failed, say so there."
)

RECOVERED = (
    r"(?is)^(?!.*(?:\b(?:not|never|no|still|down|fail\w*|cannot)\b|n't\b|未|没有|不|失败))"
    r".*(?:\b(?:recovered|healthy|works|working|up)\b|恢复|正常)"
)
"""An answer that says so, and nothing against it."""

REPAIR = Skill(
    name="repair",
    description="Find out what is wrong in the cluster, and mend it.",
    keywords=(
        "repair",
        "fix",
        "troubleshoot",
        "diagnose",
        "fault",
        "broken",
        "down",
        "排查",
        "修复",
        "故障",
        "诊断",
    ),
    steps=(
        PlanStep(name="diagnose", prompt="Diagnose: which node of the cluster is faulty, and why?"),
        PlanStep(name="restart", prompt="Restart the faulty node.", key=True),
        PlanStep(
            name="verify",
            prompt="Check the service: has it recovered?",
            expect=RECOVERED,
        ),
    ),
    remedies={
        "verify": (
            PlanStep(
                name="move",
                prompt="Move the service away from the faulty node to a healthy one.",
                key=True,
            ),
            PlanStep(
                name="verify",
                prompt="Check the service again: has it recovered?",
                expect=RECOVERED,
            ),
        )
    },
)
DEPLOY = Skill(
    name="deploy",
    description="Deploy a version to the whole cluster.",
    keywords=("deploy", "roll out", "release", "ship", "部署", "发布", "上线"),
    steps=(
        PlanStep(name="build", prompt="Build version {about}."),
        PlanStep(name="deploy all", prompt="Deploy version {about} to all nodes.", key=True),
        PlanStep(name="check", prompt="Check the error rate of version {about}."),
    ),
)
CANARY = Skill(
    name="canary",
    description="Deploy a version to a small share of the cluster first.",
    keywords=("canary", "gradual", "a few nodes", "灰度", "金丝雀"),
    steps=(
        PlanStep(name="build", prompt="Build version {about}."),
        PlanStep(
            name="deploy canary", prompt="Deploy version {about} to 5 % of the nodes.", key=True
        ),
        PlanStep(name="check", prompt="Check the error rate of version {about}."),
    ),
    refines=("deploy",),
)


def ops_dialog(*, tools: Iterable[Tool], **fields: Any) -> DialogRecipe:
    """A dialog for operations: repair, deploy, canary; English and Chinese.

    Args:
        tools: What its steps may use: they diagnose, restart, move, build, deploy and check.
        **fields: Fields of the DialogRecipe, or knobs of its agent by their flat names.

    Examples:
        >>> ops_dialog(tools=[], max_failures=1)
        DialogRecipe('ops_dialog', skills repair, deploy, canary; agent 'ops')
    """
    agent = Recipe(
        name="ops",
        config=AgentConfig().with_(
            system_prompt=SYSTEM,
            max_turns=8,
            detector="structured",
            on_empty_reply="retry",
            max_reprompts=3,
            max_rollbacks=3,
            agg_reject_tool_message=False,
        ),
        tools=tuple(tools),
    )
    recipe = DialogRecipe(name="ops_dialog", agent=agent, skills=(REPAIR, DEPLOY, CANARY))
    return recipe.with_(**fields)
