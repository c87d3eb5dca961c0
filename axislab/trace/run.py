"""A run as a researcher sees it: everything derived from its trace, nothing stored twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from axislab.errors import RunError, RunInterrupted
from axislab.events import PhaseChanged, StatusChanged, StepTaken
from axislab.messages import Message, Role, Usage
from axislab.recipe import Recipe
from axislab.runtime.decisions import RuleReport
from axislab.trace import derive
from axislab.trace.derive import Rollback, ToolTally
from axislab.trace.trace import Trace


class Run:
    """A read-only view of one trace.

    Args:
        trace: The record of the run; it may still be growing.
        live: The run is going on in this process. Otherwise a trace that does not say how the
            run ended reads as INTERRUPTED.

    Examples:
        >>> run = load_run("traces/demo/osk.jsonl")
        >>> run.answer, run.correct, run.done_reason
        ('Osk', True, 'assistant_final_answer')
    """

    def __init__(self, trace: Trace, *, live: bool = False) -> None:
        self.trace = trace
        self.live = live
        self.cause: BaseException | None = None
        """The exception that broke the run, where this process saw it; not in the trace."""

    @property
    def path(self) -> Path | None:
        """The file of the trace, if there is one."""
        return self.trace.path

    # What was run.

    @property
    def id(self) -> str:
        """The run's id, which also names its file."""
        return self.trace.name

    @property
    def task(self) -> Mapping[str, Any]:
        """The task: id, prompt, expected, metadata."""
        task = self.trace.header.get("task")
        return task if isinstance(task, Mapping) else {}

    @property
    def task_id(self) -> str:
        """The task's id."""
        return str(self.task.get("id", ""))

    @property
    def prompt(self) -> str:
        """What was asked."""
        prompt = self.task.get("prompt")
        return "" if prompt is None else str(prompt)

    @property
    def expected(self) -> Any:
        """The answer the task expects, or None."""
        return self.task.get("expected")

    @property
    def model(self) -> str:
        """The model, as the user wrote it."""
        return str(self.trace.header.get("model", ""))

    @property
    def simulated(self) -> bool:
        """True if no real language model answered."""
        return self.trace.header.get("simulated") is True

    @property
    def arm(self) -> str | None:
        """The arm of the study this run belongs to."""
        return _text(self.trace.header, "arm")

    @property
    def study(self) -> str | None:
        """The study this run belongs to."""
        return _text(self.trace.header, "study")

    @property
    def seed(self) -> int | None:
        """The seed of the run."""
        return _whole(self.trace.header, "seed")

    @property
    def repeat(self) -> int:
        """Number of the repeat, from 0."""
        return _whole(self.trace.header, "repeat") or 0

    @property
    def recipe(self) -> Mapping[str, Any]:
        """The whole recipe, as it was."""
        recipe = self.trace.header.get("recipe")
        return recipe if isinstance(recipe, Mapping) else {}

    @property
    def recipe_fingerprint(self) -> str:
        """The same for the same recipe."""
        return str(self.trace.header.get("recipe_fingerprint", ""))

    @property
    def parent(self) -> str | None:
        """The run this one was forked from."""
        return _text(self.trace.header, "parent")

    @property
    def fork_step(self) -> int | None:
        """The step of the parent after which this run goes its own way."""
        return _whole(self.trace.header, "fork_step")

    @property
    def started(self) -> str:
        """When it started, UTC, ISO 8601."""
        first = self.trace.first
        return first.time if first else ""

    # How it went.

    @property
    def status(self) -> str:
        """READY, RUNNING, WAITING_APPROVAL, COMPLETED, FAILED, CANCELLED or INTERRUPTED."""
        if (finished := self.trace.finished) is not None:
            return str(finished.data["status"])
        if not self.live:
            return "INTERRUPTED"
        changes = self.trace.of(StatusChanged.kind)
        return str(changes[-1].data["target"]) if changes else "READY"

    @property
    def phase(self) -> str | None:
        """THINKING, TOOL_CALLING, OBSERVING, WAITING_APPROVAL; None before and after."""
        if self.trace.finished is not None:
            return None
        changes = self.trace.of(PhaseChanged.kind)
        return _text(changes[-1].data, "target") if changes else None

    @property
    def done_reason(self) -> str | None:
        """Why it ended, or None."""
        if self._end:
            return _text(self._end, "done_reason")
        steps = self.trace.of(StepTaken.kind)
        return _text(steps[-1].data, "done_reason") if steps else None

    @property
    def answer(self) -> str | None:
        """The answer found in the output, or None."""
        return _text(self._end, "answer")

    @property
    def answer_status(self) -> str | None:
        """Ok, format_error or no_answer; None while there is no end."""
        return _text(self._end, "answer_status")

    @property
    def correct(self) -> bool | None:
        """Whether the answer is right; None if that was not judged."""
        correct = self._end.get("correct")
        return correct if isinstance(correct, bool) else None

    @property
    def score(self) -> float | None:
        """The scorer's number; None if there was none."""
        return _number(self._end, "score")

    @property
    def error(self) -> str | None:
        """What went wrong, if the run failed."""
        return _text(self._end, "error")

    @property
    def error_kind(self) -> str | None:
        """The kind of that error."""
        return _text(self._end, "error_kind")

    @property
    def output(self) -> str:
        """The last assistant message's text; so far, if the run has not ended."""
        if self._end:
            return _text(self._end, "output") or ""
        for message in self.trace.transcript().visible.newest_first():
            if message.role is Role.ASSISTANT:
                return message.text
        return ""

    @property
    def steps(self) -> int:
        """Steps of the conversation runtime."""
        if (steps := _whole(self._end, "steps")) is not None:
            return steps
        return len(self.trace.of(StepTaken.kind))

    @property
    def turns(self) -> int:
        """Assistant turns; one that was rolled back does not count."""
        if (turns := _whole(self._end, "turns")) is not None:
            return turns
        steps = self.trace.of(StepTaken.kind)
        return int(steps[-1].data["turn"]) if steps else 0

    @property
    def seconds(self) -> float | None:
        """How long it took; None while that is not known."""
        return _number(self._end, "seconds")

    @property
    def _end(self) -> Mapping[str, Any]:
        """The payload of run.finished; empty if the run has not ended."""
        finished = self.trace.finished
        return finished.data if finished is not None else {}

    # What it went through.

    @property
    def stage_path(self) -> list[str]:
        """All stages of the run in order; where two steps join, the stage stands once."""
        return derive.stage_path(self.trace)

    @property
    def phase_seconds(self) -> dict[str, float]:
        """Seconds spent in each phase, as far as they were measured."""
        return derive.phase_seconds(self.trace)

    @property
    def rollbacks(self) -> list[Rollback]:
        """Each time that messages were hidden, with what was hidden."""
        return derive.rollbacks(self.trace)

    @property
    def tools(self) -> list[ToolTally]:
        """How often each tool was called, in order of first use."""
        return derive.tool_tallies(self.trace)

    @property
    def requests(self) -> int:
        """Requests to the model, failed ones and those the reply cache answered included."""
        return len(derive.agent_requests(self.trace))

    @property
    def cached_requests(self) -> int:
        """Those that were not sent, because the reply cache had the reply."""
        return len(derive.cached_requests(self.trace))

    @property
    def usage(self) -> Usage:
        """Tokens of all requests sent; None where the provider did not report one of them.

        A request that failed and reported nothing is left out, and so is one from the reply
        cache: its tokens are in `saved_usage`.
        """
        return derive.usage(self.trace)

    @property
    def saved_usage(self) -> Usage:
        """Tokens of the replies from the reply cache; with `usage`, what the run needed."""
        return derive.saved_usage(self.trace)

    @property
    def saved_usd(self) -> float | None:
        """US dollars those replies had cost; None where one's cost is not known."""
        return derive.saved_usd(self.trace)

    @property
    def cost_usd(self) -> float | None:
        """US dollars spent; None where the price of a request is not known."""
        return derive.cost_usd(self.trace)

    def explain(
        self, step: int | None = None, *, recipe: Recipe | None = None
    ) -> tuple[RuleReport, ...]:
        """What every rule of the decision chain said about the reply of a step.

        `pandas.DataFrame(run.explain(3))` is a table of it; see `explain_step`.
        """
        from axislab.trace.replay import explain_step

        return explain_step(self, step, recipe=recipe)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The whole conversation, hidden messages and markers included."""
        return self.trace.full

    @property
    def visible(self) -> tuple[Message, ...]:
        """What the model saw at the end."""
        return self.trace.visible()

    def raise_for_status(self) -> Self:
        """The run itself if it is COMPLETED.

        Raises:
            RunInterrupted: It was stopped, or its process was killed.
            RunError: It failed, or has not ended yet.
        """
        if self.status == "COMPLETED":
            return self
        parts = [f"run {self.id!r} is {self.status}", self.done_reason]
        if (self.error or "") not in (self.done_reason or ""):
            parts.append(self.error)
        if (kind := self.error_kind) is not None:
            parts.append(f"kind {kind}")
        stopped = self.status in ("INTERRUPTED", "CANCELLED")
        kind_of = RunInterrupted if stopped else RunError
        raise kind_of(": ".join(p for p in parts if p)) from self.cause

    def __reduce__(self) -> tuple[Any, ...]:
        return Run, (self.trace,)  # elsewhere it is not live, and its cause may not be copied

    def __repr__(self) -> str:
        parts = [self.status, *_answer_parts(self)]
        parts += [_counted(self.steps, "step"), _counted(self.turns, "turn")]
        if (seconds := self.seconds) is not None:
            parts.append(f"{seconds:.1f} s")
        label = ", simulated" if self.simulated else ""
        return f"Run({self.id!r}, task {self.task_id!r}{label}: {', '.join(parts)})"

    def _repr_html_(self) -> str:
        from axislab.trace.card import run_card  # the card is drawn from runs

        return run_card(self)


def _text(data: Mapping[str, Any], name: str) -> str | None:
    value = data.get(name)
    return value if isinstance(value, str) else None


def _whole(data: Mapping[str, Any], name: str) -> int | None:
    value = data.get(name)
    return value if isinstance(value, int) else None


def _number(data: Mapping[str, Any], name: str) -> float | None:
    value = data.get(name)
    return float(value) if isinstance(value, int | float) else None


def _answer_parts(run: Run) -> Iterable[str]:
    if run.answer is not None:
        text = run.answer if len(run.answer) <= 40 else run.answer[:39] + "…"
        judged = {True: " (correct)", False: " (wrong)", None: ""}[run.correct]
        yield f"answer {text!r}{judged}"
    elif run.done_reason is not None:
        yield f"no answer ({run.done_reason})" if run.status == "COMPLETED" else run.done_reason


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
