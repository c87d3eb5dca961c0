"""axislab: a Jupyter-first research toolkit for LLM agents.

Every public name is imported from its home on first use, so `import axislab` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from axislab import recipes as recipes
    from axislab.accounts import Budget as Budget
    from axislab.answer_policy import AnswerPolicy as AnswerPolicy
    from axislab.answer_policy import AnswerRetry as AnswerRetry
    from axislab.answers.extract import AnswerStatus as AnswerStatus
    from axislab.answers.extract import extract_boxed as extract_boxed
    from axislab.answers.extract import extract_json as extract_json
    from axislab.answers.extract import extract_regex as extract_regex
    from axislab.answers.failure import FailureSummary as FailureSummary
    from axislab.answers.failure import failure_summary_text as failure_summary_text
    from axislab.answers.generator import AnswerGenerator as AnswerGenerator
    from axislab.answers.grader import ModelGrader as ModelGrader
    from axislab.answers.policy import ANSWER_POLICIES as ANSWER_POLICIES
    from axislab.answers.scorers import exact_match as exact_match
    from axislab.answers.scorers import normalized_match as normalized_match
    from axislab.answers.scorers import set_f1 as set_f1
    from axislab.answers.stage import AnswerResult as AnswerResult
    from axislab.config import AgentConfig as AgentConfig
    from axislab.config import AssistantRollbackConfig as AssistantRollbackConfig
    from axislab.config import ContextLimitConfig as ContextLimitConfig
    from axislab.config import ContextPolicy as ContextPolicy
    from axislab.config import ConversationConfig as ConversationConfig
    from axislab.config import FormatErrorConfig as FormatErrorConfig
    from axislab.config import FormatErrorStrategy as FormatErrorStrategy
    from axislab.config import RecoveryPolicy as RecoveryPolicy
    from axislab.config import RetryPolicy as RetryPolicy
    from axislab.config import Sampling as Sampling
    from axislab.config import ToolPolicy as ToolPolicy
    from axislab.datasets import load_bad_days as load_bad_days
    from axislab.datasets import load_corpus as load_corpus
    from axislab.datasets import load_example_traces as load_example_traces
    from axislab.datasets import load_tasks as load_tasks
    from axislab.dialog.model_intents import ModelIntents as ModelIntents
    from axislab.dialog.recipe import DialogRecipe as DialogRecipe
    from axislab.dialog.session import Dialog as Dialog
    from axislab.errors import AxislabError as AxislabError
    from axislab.errors import ErrorKind as ErrorKind
    from axislab.errors import ModelError as ModelError
    from axislab.errors import ToolError as ToolError
    from axislab.errors import TransitionNotAllowed as TransitionNotAllowed
    from axislab.events import Event as Event
    from axislab.frames.answers import answers_df as answers_df
    from axislab.frames.attempts import attempts_df as attempts_df
    from axislab.frames.budgets import budgets_df as budgets_df
    from axislab.frames.catalogue import columns as columns
    from axislab.frames.catalogue import knobs as knobs
    from axislab.frames.messages import messages_df as messages_df
    from axislab.frames.rollbacks import rollbacks_df as rollbacks_df
    from axislab.frames.runs import runs_df as runs_df
    from axislab.frames.steps import steps_df as steps_df
    from axislab.frames.tools import tools_df as tools_df
    from axislab.frames.transitions import transitions_df as transitions_df
    from axislab.fsm.agent_state import AgentState as AgentState
    from axislab.fsm.dialog import DIALOG_RULES as DIALOG_RULES
    from axislab.fsm.dialog import DialogState as DialogState
    from axislab.fsm.dialog import dialog_table as dialog_table
    from axislab.fsm.dialog_values import Intent as Intent
    from axislab.fsm.dialog_values import PlanStep as PlanStep
    from axislab.fsm.intents import KeywordIntents as KeywordIntents
    from axislab.fsm.intents import Skill as Skill
    from axislab.fsm.machine import StateMachine as StateMachine
    from axislab.fsm.machine import TransitionRule as TransitionRule
    from axislab.fsm.machine import TransitionTable as TransitionTable
    from axislab.fsm.snapshots import Snapshots as Snapshots
    from axislab.fsm.status import AgentStatus as AgentStatus
    from axislab.fsm.status import RunLifecycle as RunLifecycle
    from axislab.fsm.status import RunStatus as RunStatus
    from axislab.fsm.status import StepPhase as StepPhase
    from axislab.handle import RunHandle as RunHandle
    from axislab.lab import Lab as Lab
    from axislab.messages import Message as Message
    from axislab.messages import ToolCall as ToolCall
    from axislab.messages import ToolResult as ToolResult
    from axislab.messages import Usage as Usage
    from axislab.models.account import Spent as Spent
    from axislab.models.base import ChatModel as ChatModel
    from axislab.models.base import ModelReply as ModelReply
    from axislab.models.base import ModelRequest as ModelRequest
    from axislab.models.cache import ReplyCache as ReplyCache
    from axislab.models.cached_model import CachedModel as CachedModel
    from axislab.models.deltas import Delta as Delta
    from axislab.models.deltas import DeltaKind as DeltaKind
    from axislab.models.deltas import StreamingModel as StreamingModel
    from axislab.models.faults import PRESET_TABLE as PRESET_TABLE
    from axislab.models.faults import FailureProfile as FailureProfile
    from axislab.models.litellm_model import LiteLLMModel as LiteLLMModel
    from axislab.models.local import LocalModel as LocalModel
    from axislab.models.local import add_local_model as add_local_model
    from axislab.models.price import Price as Price
    from axislab.models.profiles import PROFILES as PROFILES
    from axislab.models.profiles import ProviderProfile as ProviderProfile
    from axislab.models.request_key import request_key as request_key
    from axislab.models.resolve import resolve_model as resolve_model
    from axislab.models.scripted import ScriptedModel as ScriptedModel
    from axislab.models.simulated import SimulatedModel as SimulatedModel
    from axislab.orchestrator.task import TaskOrchestrator as TaskOrchestrator
    from axislab.plots.attempts import plot_attempts as plot_attempts
    from axislab.plots.budget import plot_token_budget as plot_token_budget
    from axislab.plots.comparison import plot_comparison as plot_comparison
    from axislab.plots.failure_modes import plot_failure_modes as plot_failure_modes
    from axislab.plots.fsm import plot_fsm as plot_fsm
    from axislab.plots.graph import stage_graph as stage_graph
    from axislab.plots.rollbacks import plot_rollback_reasons as plot_rollback_reasons
    from axislab.plots.stage_graph import plot_stage_graph as plot_stage_graph
    from axislab.plots.stage_path import plot_stage_path as plot_stage_path
    from axislab.recipe import Recipe as Recipe
    from axislab.recipe import grid as grid
    from axislab.runs import Runs as Runs
    from axislab.runtime.conversation import ConversationRuntime as ConversationRuntime
    from axislab.runtime.decisions import Decision as Decision
    from axislab.runtime.decisions import Pass as Pass
    from axislab.runtime.decisions import Rule as Rule
    from axislab.runtime.decisions import Turn as Turn
    from axislab.runtime.decisions import Verdict as Verdict
    from axislab.runtime.decisions import accept as accept
    from axislab.runtime.decisions import insert_before as insert_before
    from axislab.runtime.decisions import replace_rule as replace_rule
    from axislab.runtime.decisions import reprompt as reprompt
    from axislab.runtime.decisions import roll_back as roll_back
    from axislab.runtime.info import ConversationStepInfo as ConversationStepInfo
    from axislab.runtime.info import ConversationStepResult as ConversationStepResult
    from axislab.runtime.markers import Compaction as Compaction
    from axislab.runtime.markers import DiscardAll as DiscardAll
    from axislab.runtime.markers import Rollback as Rollback
    from axislab.runtime.reasoning_calls import CALL_IN_REASONING as CALL_IN_REASONING
    from axislab.runtime.rules import CHAIN as CHAIN
    from axislab.runtime.stages import STAGE_TO_ACTION as STAGE_TO_ACTION
    from axislab.runtime.stages import VALID_STAGE_TRANSITION as VALID_STAGE_TRANSITION
    from axislab.runtime.stages import ConversationStage as ConversationStage
    from axislab.runtime.stages import FinalizationTrigger as FinalizationTrigger
    from axislab.runtime.stages import RollbackReason as RollbackReason
    from axislab.runtime.stages import StepAction as StepAction
    from axislab.study.contrast import Contrast as Contrast
    from axislab.study.pairs import pairs_df as pairs_df
    from axislab.study.peeking import Peek as Peek
    from axislab.study.study import Study as Study
    from axislab.study.study import load_study as load_study
    from axislab.tasks import Task as Task
    from axislab.tasks import TaskSet as TaskSet
    from axislab.tools.base import Tool as Tool
    from axislab.tools.base import ToolFailure as ToolFailure
    from axislab.tools.base import tool as tool
    from axislab.tools.builtin import calculator as calculator
    from axislab.tools.builtin import notes_tools as notes_tools
    from axislab.tools.builtin import search_tools as search_tools
    from axislab.tools.corpus import Corpus as Corpus
    from axislab.tools.corpus import Document as Document
    from axislab.tools.middleware import Allow as Allow
    from axislab.tools.middleware import Ask as Ask
    from axislab.tools.middleware import Deny as Deny
    from axislab.tools.middleware import Edit as Edit
    from axislab.tools.resolve import resolve_tools as resolve_tools
    from axislab.trace.fsck import fsck as fsck
    from axislab.trace.reader import load_run as load_run
    from axislab.trace.reader import load_runs as load_runs
    from axislab.trace.replay import replay as replay
    from axislab.trace.run import Run as Run
    from axislab.trace.snapshot_file import read_snapshots as read_snapshots
    from axislab.trace.trace import Trace as Trace
    from axislab.widgets.live import LiveRun as LiveRun

_HOME = {
    "ANSWER_POLICIES": "answers.policy",
    "AgentConfig": "config",
    "AgentState": "fsm.agent_state",
    "AgentStatus": "fsm.status",
    "Allow": "tools.middleware",
    "AnswerGenerator": "answers.generator",
    "AnswerPolicy": "answer_policy",
    "AnswerResult": "answers.stage",
    "AnswerRetry": "answer_policy",
    "AnswerStatus": "answers.extract",
    "Ask": "tools.middleware",
    "AssistantRollbackConfig": "config",
    "AxislabError": "errors",
    "Budget": "accounts",
    "CALL_IN_REASONING": "runtime.reasoning_calls",
    "CHAIN": "runtime.rules",
    "CachedModel": "models.cached_model",
    "ChatModel": "models.base",
    "Compaction": "runtime.markers",
    "ContextLimitConfig": "config",
    "ContextPolicy": "config",
    "Contrast": "study.contrast",
    "ConversationConfig": "config",
    "ConversationRuntime": "runtime.conversation",
    "ConversationStage": "runtime.stages",
    "ConversationStepInfo": "runtime.info",
    "ConversationStepResult": "runtime.info",
    "Corpus": "tools.corpus",
    "DIALOG_RULES": "fsm.dialog",
    "Decision": "runtime.decisions",
    "Delta": "models.deltas",
    "DeltaKind": "models.deltas",
    "Deny": "tools.middleware",
    "Dialog": "dialog.session",
    "DialogRecipe": "dialog.recipe",
    "DialogState": "fsm.dialog",
    "DiscardAll": "runtime.markers",
    "Document": "tools.corpus",
    "Edit": "tools.middleware",
    "ErrorKind": "errors",
    "Event": "events",
    "FailureProfile": "models.faults",
    "FailureSummary": "answers.failure",
    "FinalizationTrigger": "runtime.stages",
    "FormatErrorConfig": "config",
    "FormatErrorStrategy": "config",
    "Intent": "fsm.dialog_values",
    "KeywordIntents": "fsm.intents",
    "Lab": "lab",
    "LiteLLMModel": "models.litellm_model",
    "LiveRun": "widgets.live",
    "LocalModel": "models.local",
    "Message": "messages",
    "ModelError": "errors",
    "ModelGrader": "answers.grader",
    "ModelIntents": "dialog.model_intents",
    "ModelReply": "models.base",
    "ModelRequest": "models.base",
    "PRESET_TABLE": "models.faults",
    "PROFILES": "models.profiles",
    "Pass": "runtime.decisions",
    "Peek": "study.peeking",
    "PlanStep": "fsm.dialog_values",
    "Price": "models.price",
    "ProviderProfile": "models.profiles",
    "Recipe": "recipe",
    "RecoveryPolicy": "config",
    "ReplyCache": "models.cache",
    "RetryPolicy": "config",
    "Rollback": "runtime.markers",
    "RollbackReason": "runtime.stages",
    "Rule": "runtime.decisions",
    "Run": "trace.run",
    "RunHandle": "handle",
    "RunLifecycle": "fsm.status",
    "RunStatus": "fsm.status",
    "Runs": "runs",
    "STAGE_TO_ACTION": "runtime.stages",
    "Sampling": "config",
    "ScriptedModel": "models.scripted",
    "SimulatedModel": "models.simulated",
    "Skill": "fsm.intents",
    "Snapshots": "fsm.snapshots",
    "Spent": "models.account",
    "StateMachine": "fsm.machine",
    "StepAction": "runtime.stages",
    "StepPhase": "fsm.status",
    "StreamingModel": "models.deltas",
    "Study": "study.study",
    "Task": "tasks",
    "TaskOrchestrator": "orchestrator.task",
    "TaskSet": "tasks",
    "Tool": "tools.base",
    "ToolCall": "messages",
    "ToolError": "errors",
    "ToolFailure": "tools.base",
    "ToolPolicy": "config",
    "ToolResult": "messages",
    "Trace": "trace.trace",
    "TransitionNotAllowed": "errors",
    "TransitionRule": "fsm.machine",
    "TransitionTable": "fsm.machine",
    "Turn": "runtime.decisions",
    "Usage": "messages",
    "VALID_STAGE_TRANSITION": "runtime.stages",
    "Verdict": "runtime.decisions",
    "accept": "runtime.decisions",
    "add_local_model": "models.local",
    "answers_df": "frames.answers",
    "attempts_df": "frames.attempts",
    "budgets_df": "frames.budgets",
    "calculator": "tools.builtin",
    "columns": "frames.catalogue",
    "dialog_table": "fsm.dialog",
    "exact_match": "answers.scorers",
    "extract_boxed": "answers.extract",
    "extract_json": "answers.extract",
    "extract_regex": "answers.extract",
    "failure_summary_text": "answers.failure",
    "fsck": "trace.fsck",
    "grid": "recipe",
    "insert_before": "runtime.decisions",
    "knobs": "frames.catalogue",
    "load_bad_days": "datasets",
    "load_corpus": "datasets",
    "load_example_traces": "datasets",
    "load_run": "trace.reader",
    "load_runs": "trace.reader",
    "load_study": "study.study",
    "load_tasks": "datasets",
    "messages_df": "frames.messages",
    "normalized_match": "answers.scorers",
    "notes_tools": "tools.builtin",
    "pairs_df": "study.pairs",
    "plot_attempts": "plots.attempts",
    "plot_comparison": "plots.comparison",
    "plot_failure_modes": "plots.failure_modes",
    "plot_fsm": "plots.fsm",
    "plot_rollback_reasons": "plots.rollbacks",
    "plot_stage_graph": "plots.stage_graph",
    "plot_stage_path": "plots.stage_path",
    "plot_token_budget": "plots.budget",
    "read_snapshots": "trace.snapshot_file",
    "replace_rule": "runtime.decisions",
    "replay": "trace.replay",
    "reprompt": "runtime.decisions",
    "request_key": "models.request_key",
    "resolve_model": "models.resolve",
    "resolve_tools": "tools.resolve",
    "roll_back": "runtime.decisions",
    "rollbacks_df": "frames.rollbacks",
    "runs_df": "frames.runs",
    "search_tools": "tools.builtin",
    "set_f1": "answers.scorers",
    "stage_graph": "plots.graph",
    "steps_df": "frames.steps",
    "tool": "tools.base",
    "tools_df": "frames.tools",
    "transitions_df": "frames.transitions",
}
_MODULES = frozenset({"recipes"})

__version__: str
__all__ = sorted([*_HOME, *_MODULES])

if not TYPE_CHECKING:  # so that a misspelt name stays a type error

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        if name == "__version__":
            from importlib.metadata import version

            return version("axislab")
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*_HOME, *_MODULES, *(n for n in globals() if n.startswith("__"))})
