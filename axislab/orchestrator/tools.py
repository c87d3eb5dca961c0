"""ToolTurn: what happens to the tool calls of one turn.

All calls of a turn are looked at before any of them runs (A19), so that a duplicate found late
cannot leave earlier calls run and recorded in a turn that is then hidden.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from axislab.config import AgentConfig
from axislab.events import Emit, ToolFinished, ToolStarted
from axislab.messages import Json, ToolCall, ToolResult, ToolStatus
from axislab.orchestrator.finish import Ending
from axislab.orchestrator.steps import StepLog
from axislab.runtime.conversation import ConversationRuntime
from axislab.runtime.info import ConversationStepResult
from axislab.runtime.stages import RollbackReason
from axislab.tools.calls import dump_arguments
from axislab.tools.executor import PreparedCall, Round, ToolExecutor


class ToolTurn:
    """Runs the tool calls of one run turn by turn, under its recovery policy."""

    def __init__(
        self,
        executor: ToolExecutor,
        config: AgentConfig,
        *,
        runtime: ConversationRuntime,
        log: StepLog,
        emit: Emit,
    ) -> None:
        self._executor = executor
        self._session = executor.begin_task()
        self._recovery = config.recovery
        keeps_newest = config.context.context_policy == "keep_newest"
        self._keeps = config.context.keep_tool_results if keeps_newest else None
        self._runtime = runtime
        self._log = log
        self._emit = emit
        self._answered: dict[str, int] = {}
        self._results = 0

    def forget(self) -> None:
        """Take no query for answered: the results are out of sight."""
        self._answered.clear()

    async def run(self, calls: Sequence[ToolCall]) -> ConversationStepResult | Ending:
        """Run the calls and hand their results to the conversation, or hide the turn."""
        prepared = [self._session.prepare(call) for call in calls]
        duplicates = self._duplicates(prepared)
        if duplicates and self._recovery.on_duplicate == "stop":
            query = next(iter(duplicates.values()))
            return Ending.failed("stopped_duplicate_query", f"asked again: {query}")
        if duplicates and self._recovery.on_duplicate == "rollback":
            undone = self._runtime.rollback_assistant_tool_calls(RollbackReason.DUPLICATE_QUERY)
            if undone is not None:
                return self._log.record(undone)
        raw = {call.id: call.arguments for call in calls}
        came = await self._session.run_round(
            prepared,
            on_start=self._on_start,
            on_finish=lambda result: self._on_finish(result, raw, duplicates),
        )
        return self._settle(prepared, came)

    def _settle(
        self, prepared: Sequence[PreparedCall], came: Round
    ) -> ConversationStepResult | Ending:
        failed = [r for r in came.results if r.status is not ToolStatus.SUCCESS]
        if failed and self._recovery.on_tool_error == "stop":
            return Ending.failed("stopped_tool_error", failed[0].content)
        if failed and self._recovery.on_tool_error == "rollback":
            undone = self._runtime.rollback_assistant_tool_calls(RollbackReason.TOOL_ERROR)
            if undone is not None:
                return self._log.record(undone)
        bad = [r for r in came.results if self._is_bad(r)]
        if bad and self._recovery.on_bad_result == "rollback":
            undone = self._runtime.rollback_assistant_tool_calls(RollbackReason.TOOL_ERROR)
            if undone is not None:
                self._remember_bad(prepared, bad)
                return self._log.record(undone)
        self._remember(prepared, came.results)
        result = self._runtime.apply_batch_tool_messages(
            [r.to_message() for r in came.results],
            tools_exhausted=came.exhausted,
            rejected_ids=came.rejected_ids,
        )
        reset = self._recovery.reset_after_any_turn or (
            self._recovery.reset_after_success and came.any_success
        )
        if reset:
            self._runtime.reset_rollback_counter()
        return self._log.record(result, counter_reset=reset)

    def _is_bad(self, result: ToolResult) -> bool:
        recovery = self._recovery
        return result.content.startswith(recovery.bad_result_prefixes) or _is_empty_search(
            result.content, recovery.empty_result_keys
        )

    def _remember_bad(self, prepared: Sequence[PreparedCall], bad: Sequence[ToolResult]) -> None:
        """Queries of a hidden turn that led nowhere; its good ones may be asked again (A19)."""
        ids = {result.call_id for result in bad if result.status is ToolStatus.SUCCESS}
        for one in prepared:
            if one.call.id in ids and (query := one.query_key) is not None:
                self._answered[query] = self._results

    def _duplicates(self, prepared: Sequence[PreparedCall]) -> dict[str, str]:
        """Call id to query, of the calls whose query was answered before or stands twice."""
        found: dict[str, str] = {}
        here: set[str] = set()
        for one in prepared:
            if (query := one.query_key) is None:
                continue
            if query in here or self._still_shown(query):
                found[one.call.id] = query
            here.add(query)
        return found

    def _still_shown(self, query: str) -> bool:
        """The query was answered, and the model still sees the answer."""
        number = self._answered.get(query)
        if number is None:
            return False
        return self._keeps is None or number >= self._results - self._keeps

    def _remember(self, prepared: Sequence[PreparedCall], results: Sequence[ToolResult]) -> None:
        for one, result in zip(prepared, results, strict=True):
            if result.status is ToolStatus.SUCCESS and (query := one.query_key) is not None:
                self._answered[query] = self._results
            self._results += 1

    def _on_start(self, call: ToolCall, arguments: Mapping[str, Json]) -> None:
        self._emit(
            ToolStarted(
                call_id=call.id,
                name=call.name,
                arguments=dump_arguments(arguments),
                step=self._log.next_step,
                idempotent=self._executor.tools[call.name].idempotent,
            )
        )

    def _on_finish(
        self, result: ToolResult, raw: Mapping[str, str], duplicates: Mapping[str, str]
    ) -> None:
        self._emit(
            ToolFinished(
                call_id=result.call_id,
                name=result.name,
                status=str(result.status),
                content=result.content,
                step=self._log.next_step,
                reason=result.reason,
                latency=None if result.latency is None else round(result.latency, 6),
                arguments=result.arguments,
                raw_arguments=raw.get(result.call_id),
                repairs=list(result.repairs) or None,
                truncated=result.truncated or None,
                duplicate=result.call_id in duplicates,
            )
        )


def _is_empty_search(content: str, keys: Sequence[str]) -> bool:
    """A JSON object with one of these keys, and nothing in the list under it."""
    if not keys or not content.lstrip().startswith("{"):
        return False
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and any(key in data and data[key] == [] for key in keys)
