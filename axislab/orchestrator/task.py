"""TaskOrchestrator: drives one conversation to its end, and says everything through `emit`.

Source: the loop of spec section 11, with rulings D11, O1, O2 and O3. It knows neither recorder
nor widgets. Whatever happens, a run that ends by itself ends with a `run.finished` event.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from axislab.answers.grader import ModelGrader
from axislab.borders import ends_us
from axislab.config import Sampling
from axislab.errors import ErrorKind, ModelError, TraceError
from axislab.events import Emit, PhaseChanged, RunFinished, StatusChanged
from axislab.fsm.status import RunLifecycle, StepPhase
from axislab.messages import Message, Role
from axislab.models.base import ChatModel, ModelReply, ModelRequest
from axislab.models.call import call_model
from axislab.models.deltas import OnDelta
from axislab.models.estimators import estimator_for
from axislab.models.meter import Meter
from axislab.orchestrator.attempts import EarlierTry
from axislab.orchestrator.context import ContextKeeper
from axislab.orchestrator.draws import DrawKeys
from axislab.orchestrator.finish import Ending, Verdict, finished_event
from axislab.orchestrator.grading import graded, has_verdict
from axislab.orchestrator.identity import RunIdentity as RunIdentity
from axislab.orchestrator.identity import started_event
from axislab.orchestrator.render import omits_results, render
from axislab.orchestrator.steps import StepLog
from axislab.orchestrator.tools import ToolTurn
from axislab.orchestrator.tries import BUDGET_EXHAUSTED as BUDGET_EXHAUSTED
from axislab.orchestrator.tries import SAFETY_LIMIT, TryLoop
from axislab.recipe import Recipe
from axislab.runtime.conversation import ConversationRuntime
from axislab.runtime.info import ConversationStepResult
from axislab.runtime.stages import ConversationStage as Stage
from axislab.runtime.stages import RollbackReason, StepAction
from axislab.tasks import Task
from axislab.tools.executor import ToolExecutor

SAFETY_ROUNDS = 200
DEFAULT_ROUNDS = 10_000


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
        earlier: Tries that an earlier run on the same task made, see `earlier_tries`.
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
        earlier: Sequence[EarlierTry] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.recipe = recipe
        self.task = task
        self.model = model
        self.identity = identity
        self._emit = emit
        self._on_delta = on_delta
        self._version = version
        if isinstance(recipe.scorer, ModelGrader):
            recipe.scorer.model.check()
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
        self._new_tools: Callable[[], ToolTurn] = lambda: ToolTurn(
            executor, self._config, runtime=self.runtime, log=self._log, emit=emit
        )
        self._tools = self._new_tools()
        self._keeper = ContextKeeper(
            self.runtime,
            self._config,
            log=self._log,
            summarise=partial(self.request, "compaction", sampling=self._config.sampling),
        )
        self.calls = 0
        """Model calls so far."""
        self.intermediate: list[str] = []
        """Answers that replies of the current try's main loop held."""
        self._earlier = tuple(earlier)
        self._call_ids = 0
        self._draws = DrawKeys(identity.draw_key(task))
        self._started = 0.0
        self.verdict: Verdict | None = None
        """What the tries came to, where the answer policy allows more than the last reply."""

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
            if self._config.answer.active:
                tries = TryLoop(self, log=self._log, emit=self._emit, earlier=self._earlier)
                ending = await tries.run()
            else:
                ending = await self.main_loop() or Ending.done("answer_skipped")
        except TraceError:
            raise
        except BaseException as problem:  # a border: whatever broke, the trace gets its end
            if ends_us(problem):
                self.lifecycle.interrupt("stopped")
                raise
            ending = Ending.broken(problem)
        return await self._finish(ending)

    # The loop --------------------------------------------------------------------------------

    async def main_loop(
        self, text: str | None = None, *, stops_forced: Callable[[], bool] | None = None
    ) -> Ending | None:
        """Drive the conversation until it ends.

        Args:
            text: First user message of another try; None begins the first.
            stops_forced: Says whether to leave where the final answer would be forced.

        Returns:
            How it ended, or None if it waits for the final answer.
        """
        if text is None:
            result = self._log.record(self.runtime.initialize_conversation(self.task.prompt))
        else:
            result = self._log.record(self.runtime.begin_try(text))
            self._tools = self._new_tools()
        self.intermediate = []
        for _ in range(self._limit):
            if result.stage is Stage.FORCE_FINAL and stops_forced is not None and stops_forced():
                return None
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
        return Ending.failed(SAFETY_LIMIT, f"{self._limit} rounds without an end")

    async def _call_model(self) -> ConversationStepResult | Ending:
        try:
            if await self._keeper.shorten():
                self._tools.forget()
            view = self.runtime.visible
            reply = await self.request("main_loop", view, sampling=self._config.sampling)
        except ModelError as error:
            return self._after_error(error)
        observed = self._observe(view, reply)
        message = self.message_of(reply)
        if self._config.answer.active and (held := self.recipe.find_answer(reply.text).answer):
            self.intermediate.append(held)
        result = self.runtime.apply_assistant_message(message, reply.finish_reason)
        return self._log.record(result, observed_tokens=observed)

    async def request(
        self,
        purpose: str,
        messages: Sequence[Message],
        *,
        sampling: Sampling,
        once: bool = False,
    ) -> ModelReply:
        """Call the model; the one place from which a run does.

        Args:
            purpose: What for.
            messages: What it is shown, before the context policy.
            sampling: How it is asked.
            once: No request is repeated: whoever asks decides what follows an error.

        Raises:
            ModelError: It did not reply.
        """
        if self.lifecycle.phase is StepPhase.THINKING:
            self.lifecycle.rethink()
        else:
            self.lifecycle.think()
        view = self.runtime.visible
        request = ModelRequest(
            messages=render(messages, self._config),
            tools=self._specs,
            sampling=sampling,
            purpose=purpose,
            draw=self._draws.of(view, purpose),
        )
        self.calls += 1
        try:
            return await call_model(
                self.model,
                request,
                retry=self._config.retry.once() if once else self._config.retry,
                emit=self._emit,
                call=self.calls - 1,
                step=self._log.next_step,
                estimated=self.runtime.estimate() if view.same_as(messages) else None,
                estimator=self.runtime.estimator_method,
                meter=self._meter,
                on_delta=self._on_delta,
            )
        finally:
            self.lifecycle.model_returned()

    def _observe(self, view: Any, reply: ModelReply) -> int | None:
        usage = reply.usage
        if usage is None or usage.estimated or not usage.input_tokens:
            return None
        if omits_results(self._config):
            return None  # what was counted is not the visible list
        told = self.runtime.record_observed_prompt_tokens(view, usage.input_tokens)
        return usage.input_tokens if told else None

    def now(self) -> float:
        """Seconds of the run's clock."""
        return self._clock()

    def message_of(self, reply: ModelReply) -> Message:
        """The reply as a message, its calls under ids of the run."""
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

    # Beginning and end -----------------------------------------------------------------------

    def _header(self) -> None:
        self._emit(
            started_event(
                self.identity,
                recipe=self.recipe,
                task=self.task,
                model=self.model,
                specs=self._specs,
                estimator=self.runtime.estimator_method,
                version=self._version,
            )
        )

    async def _graded(self, event: RunFinished, grader: ModelGrader) -> RunFinished:
        try:
            return await graded(
                event, grader, self.task, ask=partial(self._ask_grader, grader), emit=self._emit
            )
        except BaseException:  # only what ends the task gets here
            self.lifecycle.interrupt("stopped")
            raise

    async def _ask_grader(self, grader: ModelGrader, request: ModelRequest) -> ModelReply:
        self.calls += 1
        return await call_model(
            grader.model,
            replace(request, draw=f"{self._draws.run}:{request.draw}"),
            retry=self._config.retry,
            emit=self._emit,
            call=self.calls - 1,
            step=self._log.next_step,
            meter=self._meter and self._meter.of(grader.model),
        )

    async def _finish(self, ending: Ending) -> Ending:
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
            verdict=self.verdict,
        )
        grader = self.recipe.scorer
        if isinstance(grader, ModelGrader) and has_verdict(ending, self.task):
            event = await self._graded(event, grader)
        if event.status == "COMPLETED" and self.lifecycle.phase is None:
            self.lifecycle.think()  # an earlier life had the answer: nothing was left to ask
            self.lifecycle.model_returned()
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
