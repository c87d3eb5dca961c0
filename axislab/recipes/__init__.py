"""Recipes that ship: functions that return a `Recipe`."""

from axislab.recipes.boxed_math import boxed_math
from axislab.recipes.miroflow import miroflow, miroflow_tool
from axislab.recipes.ops_dialog import ops_dialog
from axislab.recipes.research_qa import research_qa

__all__ = ["boxed_math", "miroflow", "miroflow_tool", "ops_dialog", "research_qa"]
