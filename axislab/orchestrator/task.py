"""TaskOrchestrator: drives one conversation to its end, and says everything through `emit`.

Source: the loop of spec section 11, with rulings D11, O1, O2 and O3. It knows neither recorder
nor widgets. Whatever happens, a run that ends by itself ends with a `run.finished` event.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from axislab.borders import ends_us, shown
from axislab.errors import ConfigError, ErrorKind, ModelError, TraceError
from axislab.events import (
    SCHEMA_VERSION,
    Emit,
    PhaseChanged,
    RunStarted,
    StatusChanged,
)
from axislab.fsm.status import RunLifecycle, StepPhase
from axislab.messages import Message, Role
from axislab.models.base import ChatModel, ModelReply, ModelRequest
from axislab.models.call import call_model
from axislab.models.deltas import OnDelta
from axislab.models.estimators import estimator_for
from axislab.models.meter import Meter
from axislab.orchestrator.finish import Ending, finished_event
from axislab.orchestrator.render import changes_view, render
from axislab.orchestrator.steps import StepLog
from axislab.orchestrator.tools import ToolTurn
from axislab.recipe import Recipe
from axislab.runtime.conversation import ConversationRuntime
from axislab.runtime.info import ConversationStepResult
from axislab.runtime.stages import RollbackReason, StepAction
from axislab.tasks import Task
from axislab.tools.executor import ToolExecutor

SAFETY_ROUNDS = 200
DEFAULT_ROUNDS = 10_000
BUDGET_EXHAUSTED = "budget_exhausted"
"""Done reason of a run that a ceiling of the lab left no room for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIdentity:
    """What tells one run from another.

    Raises:
        ConfigError: A seed or repeat that is no whole number, or a name that is no text.
    """

    run_id: str
    seed: int = 0
    repeat: int = 0
    arm: str | None = None
    study: str | None = None
    coupling: str = "independent"
    """Whether the arm is part of the simulated provider's draws: "independent" or "common"."""

    def __post_init__(self) -> None:
        for name, least in (("seed", None), ("repeat", 0)):
            object.__setattr__(self, name, _whole(name, getattr(self, name), least=least))
        for name in ("arm", "study"):
            if (given := getattr(self, name)) is not None and not _is_name(given):
                raise ConfigError(f"{name}={shown(given)}: give text that is not blank, or None")

    def draw_key(self, task: Task) -> str:
        """The opaque key of this run's random draws; it tells nothing about the task."""
        arm = (self.arm or "") if self.coupling == "independent" else ""
        parts = (str(self.seed), task.id, str(self.repeat), arm)
        text = "\x1f".join(parts).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, digest_size=12).hexdigest()


def _whole(name: str, given: Any, *, least: int | None) -> int:
    """A whole number, numpy's included, as Python's own."""
    number = None if isinstance(given, bool) or not hasattr(given, "__index__") else int(given)
    if number is None or (least is not None and number < least):
        rest = "" if least is None else f", {least} or more"
        raise ConfigError(f"{name}={shown(given)}: give a whole number{rest}")
    return number


def _is_name(given: object) -> bool:
    return isinstance(given, str) and bool(given.strip())


class TaskOrchestrator:
    """One run: a recipe on a task with a model.

    Args:
        recipe: The agent.
        task: What it is asked.
        model: Who answers.
        identity: What tells the run from others.
        emit: Receives every event, in order, before the run goes on.
        on_delta: Hears the pieces of the replies, which are then streamed; no event tells them.
        version: axislab's version, for the header.
        max_rounds: Rounds of the loop without a turn limit, before the safety margin.
        meter: Makes room for every request under the lab's ceilings, and books what it used.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        recipe: Recipe,
        task: Task,
        *,
        model: ChatModel,
        identity: RunIdentity,
        emit: Emit,
        on_delta: OnDelta | None = None,
        version: str = "",
        max_rounds: int = DEFAULT_ROUNDS,
        meter: Meter | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.recipe = recipe
        self.task = task
        self.model = model
        self.identity = identity
        self._emit = emit
        self._on_delta = on_delta
        self._version = version
        self._limit = (recipe.config.conversation.max_turns or max_rounds) + SAFETY_ROUNDS
        self._clock = clock
        self._meter = meter
        self._config = recipe.config
        executor = ToolExecutor(
            recipe.tools,
            self._config.tool_policy,
            before=recipe.before_tool,
            after=recipe.after_tool,
        )
        self._specs = executor.specs
        self.runtime = ConversationRuntime(
            self._config.conversation,
            max_output_tokens=self._config.sampling.max_output_tokens,
            estimator=estimator_for(model),
            tools=[spec.to_dict() for spec in self._specs] or None,
            tool_names=tuple(spec.name for spec in self._specs),
            chain=recipe.chain,
            direct_answer=recipe.direct_answer,
            wants_final_prompt=recipe.wants_final_prompt,
        )
        self.lifecycle = RunLifecycle(
            clock=clock, on_status=self._on_status, on_phase=self._on_phase
        )
        self._log = StepLog(self.runtime, emit)
        self._tools = ToolTurn(
            executor, self._config, runtime=self.runtime, log=self._log, emit=emit
        )
        self._calls = 0
        self._call_ids = 0
        self._sent: dict[int, _Sent] = {}
        self._started = 0.0

    async def run(self) -> Ending:
        """Drive the conversation to its end.

        Returns:
            How it ended; the same stands in the last event.

        Raises:
            asyncio.CancelledError: It was stopped; its status is INTERRUPTED.
            TraceError: An event could not be recorded.
        """
        self._started = self._clock()
        self._header()
        self.lifecycle.start()
        try:
            ending = await self._loop()
        except TraceError:
            raise
        except BaseException as problem:  # a border: whatever broke, the trace gets its end
            if ends_us(problem):
                self.lifecycle.interrupt("stopped")
                raise
            ending = Ending.broken(problem)
        return self._finish(ending)

    # The loop --------------------------------------------------------------------------------

    async def _loop(self) -> Ending:
        result = self._log.record(self.runtime.initialize_conversation(self.task.prompt))
        for _ in range(self._limit):
            if result.action is StepAction.DONE:
                return Ending.done(result.done_reason or "assistant_final_answer")
            step = (
                await self._call_model()
                if result.action is StepAction.CALL_MODEL
                else await self._run_tools()
            )
            if isinstance(step, Ending):
                return step
            result = step
        return Ending.failed("terminated_loop_safety_limit", f"{self._limit} rounds without an end")

    async def _call_model(self) -> ConversationStepResult | Ending:
        if self.lifecycle.phase is StepPhase.THINKING:
            self.lifecycle.rethink()
        else:
            self.lifecycle.think()
        view = self.runtime.visible
        request = ModelRequest(
            messages=render(view, self._config),
            tools=self._specs,
            sampling=self._config.sampling,
            draw=self._draw("main_loop"),
        )
        call, self._calls = self._calls, self._calls + 1
        try:
            reply = await call_model(
                self.model,
                request,
                retry=self._config.retry,
                emit=self._emit,
                call=call,
                step=self._log.next_step,
                estimated=self.runtime.estimate(),
                estimator=self.runtime.estimator_method,
                meter=self._meter,
                on_delta=self._on_delta,
            )
        except ModelError as error:
            self.lifecycle.model_returned()
            return self._after_error(error)
        self.lifecycle.model_returned()
        observed = self._observe(view, reply)
        result = self.runtime.apply_assistant_message(self._message(reply), reply.finish_reason)
        return self._log.record(result, observed_tokens=observed)

    def _observe(self, view: Any, reply: ModelReply) -> int | None:
        usage = reply.usage
        if usage is None or usage.estimated or not usage.input_tokens:
            return None
        if changes_view(self._config):
            return None  # what was counted is not the visible list
        told = self.runtime.record_observed_prompt_tokens(view, usage.input_tokens)
        return usage.input_tokens if told else None

    def _message(self, reply: ModelReply) -> Message:
        calls = []
        for call in reply.tool_calls:
            self._call_ids += 1
            calls.append(replace(call, id=f"call_{self._call_ids}"))
        return Message.assistant(
            reply.text,
            calls,
            reasoning=reply.reasoning,
            signed_reasoning=reply.signed_reasoning,
        )

    def _after_error(self, error: ModelError) -> ConversationStepResult | Ending:
        if error.kind is ErrorKind.CONTEXT_LIMIT:
            known = {"message": str(error), "window": error.window, "requested": error.requested}
            info = {key: value for key, value in known.items() if value is not None}
            result = self.runtime.force_finalize_due_to_context_limit_after_error(info)
            self._log.record(result)
            if result.info.context_limit_error_during_force_final:
                return Ending.failed("terminated_context_limit", str(error), error=error)
            return result
        if error.kind is ErrorKind.TRUNCATED and (
            self._config.recovery.on_truncation_error == "rollback"
        ):
            recovered = self.runtime.rollback_latest_tool_exchange_and_force_finalize(
                RollbackReason.TOKEN_EXHAUSTION
            )
            if recovered is not None:
                return self._log.record(recovered)
        if error.kind is ErrorKind.BUDGET:
            return Ending.failed(BUDGET_EXHAUSTED, str(error), error=error)
        return Ending.failed(f"model_error: {error}", str(error), error=error)

    async def _run_tools(self) -> ConversationStepResult | Ending:
        self.lifecycle.call_tools()
        step = await self._tools.run(self.runtime.pending)
        self.lifecycle.observe()
        return step

    def _draw(self, purpose: str) -> str:
        """The draw key of the next request, and how often this very request was sent before."""
        view = self.runtime.visible
        sent = self._sent.setdefault(view.key, _Sent(view))
        sent.times += 1
        return f"{self.identity.draw_key(self.task)}:{purpose}:{sent.times}"

    # Beginning and end -----------------------------------------------------------------------

    def _header(self) -> None:
        self._emit(
            RunStarted(
                run_id=self.identity.run_id,
                schema=SCHEMA_VERSION,
                axislab_version=self._version,
                recipe=self.recipe.to_dict(),
                recipe_fingerprint=self.recipe.fingerprint,
                task=self.task.to_dict(),
                model=self.model.name,
                simulated=self.model.simulated,
                seed=self.identity.seed,
                repeat=self.identity.repeat,
                arm=self.identity.arm,
                study=self.identity.study,
                model_info=dict(self.model.info) or None,
                tools=[spec.to_dict() for spec in self._specs] or None,
                estimator=self.runtime.estimator_method,
            )
        )

    def _finish(self, ending: Ending) -> Ending:
        output = self.output
        event = finished_event(
            ending,
            output=output,
            last=self._log.last,
            recipe=self.recipe,
            task=self.task,
            steps=self._log.next_step,
            turns=self.runtime.turn_idx,
            seconds=self._clock() - self._started,
        )
        if event.status == "COMPLETED":
            self.lifecycle.complete(event.answer or output)
        else:
            self.lifecycle.fail(ending.done_reason)
        self._emit(event)
        return ending

    @property
    def output(self) -> str:
        """The last visible assistant message's text; empty if that is empty (O3)."""
        for message in self.runtime.visible.newest_first():
            if message.role is Role.ASSISTANT:
                return message.text
        return ""

    def _on_status(self, source: Any, target: Any, event: str, reason: str | None) -> None:
        self._emit(
            StatusChanged(source=str(source), target=str(target), event=event, reason=reason)
        )

    def _on_phase(self, source: Any, target: Any, seconds: float | None) -> None:
        self._emit(
            PhaseChanged(
                source=None if source is None else str(source),
                target=None if target is None else str(target),
                seconds=None if seconds is None else round(seconds, 6),
            )
        )


class _Sent:
    """How often a request was sent; holding the view keeps its key its own."""

    __slots__ = ("times", "view")

    def __init__(self, view: object) -> None:
        self.view = view
        self.times = 0
