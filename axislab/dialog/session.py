"""Dialog: a session somebody talks to. It plans, asks before key operations, and remembers."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from axislab.dialog.recipe import DialogRecipe
from axislab.dialog.replies import SENTENCES, Reply
from axislab.dialog.steps import RunStep, judge, task_of
from axislab.errors import ConfigError
from axislab.fsm.dialog import DialogMachine, DialogState, ExecutingState, dialog_machine
from axislab.fsm.dialog_values import DialogContext, Intent, PlanStep, Relation, StepResult
from axislab.fsm.intents import Drift, IntentClassifier, drift_to, filled, find_drift, plan_for
from axislab.fsm.snapshots import Moment, Snapshots, Transition
from axislab.trace.run import Run

TYPES = (DialogContext, Intent, PlanStep, Relation, StepResult)
"""What a session's file may hold."""
KEY_STATES = ("CONFIRMING", "RECOVERING", "COMPLETED", "FAILED", "CANCELLED")
"""A whole snapshot is due on entering these."""
ENDED = "the process ended while this step ran; whether it had its effect is not known"

_S = DialogState


class HasHistory(Protocol):
    """Keeps a history, on disk for one."""

    @property
    def history(self) -> Snapshots[DialogContext]:
        """The history it keeps."""

    def close(self) -> None:
        """Release what is open."""


class Dialog:
    """A session over many turns; `lab.dialog(recipe)` makes one.

    Say what you want; steps are executed by runs. Before a key operation it stops: `confirm()` or
    `reject(reason)` goes on. A goal that changes in the middle of a task is noticed, with what
    that drops and keeps. Every transition is kept before it counts, so a session goes on after
    its process was killed, and `at(seq)` shows it as it was.

    Args:
        recipe: What it can do.
        run_step: Executes one step.
        classify: Says what a text asks for.
        keeper: Keeps the history; where there is one already, the session goes on from it.
        session_id: Its name.
    """

    def __init__(
        self,
        recipe: DialogRecipe,
        *,
        run_step: RunStep,
        classify: IntentClassifier,
        keeper: HasHistory,
        session_id: str,
    ) -> None:
        self.recipe = recipe
        self.id = session_id
        self.runs: list[Run] = []
        """The runs of this process, in order."""
        self._run_step = run_step
        self._classify = classify
        self._skills = recipe.by_name()
        self._keeper = keeper
        self.history = keeper.history
        if len(self.history) == 0:
            self.history.start(recipe.context(session_id), path=[_S.IDLE.name])
        moment = self.history.recover()
        if strange := [i.name for i in moment.context.intents if i.name not in self._skills]:
            raise ConfigError(
                f"session {session_id!r} works at {strange}, which is none of the recipe's skills: "
                f"{', '.join(self._skills)}; open it with the recipe it was begun with"
            )
        self.machine: DialogMachine = dialog_machine(
            moment.context,
            table=recipe.table(),
            path=_states(moment.path),
            journal=self.history.journal,
        )
        self._take_up()
        self.last = self._reply(self._where())

    # What it knows -------------------------------------------------------------------------------

    @property
    def state(self) -> DialogState:
        """Where it is."""
        return self.machine.state

    @property
    def context(self) -> DialogContext:
        """A copy of all it remembers."""
        return self.machine.context

    @property
    def intents(self) -> tuple[Intent, ...]:
        """Its goals; the last one is being worked on."""
        return tuple(self.context.intents)

    @property
    def conclusions(self) -> dict[str, str]:
        """What each step found out."""
        return self.context.conclusions

    @property
    def transitions(self) -> tuple[Transition, ...]:
        """The log of the whole session, refused events included."""
        return self.history.transitions

    def at(self, seq: int) -> Moment[DialogContext]:
        """The session as it was after a line of its log.

        Raises:
            TraceError: There is no such line.
        """
        return self.history.recover(at=seq)

    # What one says to it -------------------------------------------------------------------------

    def say(self, text: str, *, steps: int | None = None) -> Reply:
        """Say something, and wait until a person is needed or the task has ended.

        Args:
            text: In any language the classifier understands.
            steps: Execute at most so many steps now; `go_on()` does the rest.

        Raises:
            TransitionNotAllowed: The session has failed or was cancelled.
            ConfigError: No text.
        """
        if not isinstance(text, str) or not text.strip():
            raise ConfigError(f"text={text!r}: say something")
        if self.state is _S.COMPLETED:
            self.machine.fire("new_task")
        if self.state is _S.IDLE:
            return self._done(self._begin(text, steps))
        self.machine.fire("user_said" if not self.machine.finished else "user_input", text=text)
        return self._done(self._heard(text, steps))

    def confirm(self, *, steps: int | None = None) -> Reply:
        """Yes: to the key operation, or to the change of goal, that it asks about.

        Raises:
            TransitionNotAllowed: It asks about nothing.
        """
        change = self.context.change
        if change is None:
            self.machine.fire("user_confirmed")
            return self._done(self._work(steps))
        return self._done(self._change(drift_to(change, self.context, self._skills), steps))

    def reject(self, reason: str = "", *, steps: int | None = None) -> Reply:
        """No: to the key operation, or to the change of goal, that it asks about.

        Raises:
            TransitionNotAllowed: It asks about nothing.
        """
        if self.context.change is not None:
            self.machine.fire("drift_refused", reason=reason)
            return self._done(self._work(steps, first="The goal stays."))
        self.machine.fire("user_refused", reason=reason)
        left = [step.name for step in self.context.steps]
        rest = f"go_on() goes on without it ({', '.join(left)}), " if left else ""
        because = f" ({reason})" if reason else ""
        text = f"{self.context.dropped[0]} will not be done{because}: say what to do instead, "
        return self._done(self._reply(f"{text}{rest}cancel() ends it."))

    def go_on(self, *, steps: int | None = None) -> Reply:
        """Go on with the plan after a pause, a refusal or a restart.

        Raises:
            TransitionNotAllowed: What was refused was all there was to do.
        """
        context = self.context
        if self.state is _S.TASK_PLAN and (context.steps or context.refusals):
            kept = tuple(context.conclusions)
            self.machine.fire("steps_confirmed", steps=context.steps, kept=kept)
        return self._done(self._work(steps))

    def cancel(self, reason: str = "") -> Reply:
        """End the session.

        Raises:
            TransitionNotAllowed: It has ended already.
        """
        self.machine.fire("cancel", reason=reason)
        return self._done(self._reply(f"Cancelled{f': {reason}' if reason else ''}."))

    def close(self) -> None:
        """Give its file back; the session can be opened again."""
        self._keeper.close()

    # How it works --------------------------------------------------------------------------------

    def _take_up(self) -> None:
        """Leave what a process that was killed was in the middle of."""
        if self.machine.path[-1] is ExecutingState.WAITING_TOOL:
            self.machine.fire("step_stopped", why=ENDED)
        elif self.state is _S.INTENT_PARSE:
            self.machine.fire("intent_ambiguous")
        elif self.state is _S.RECOVERING:
            self._recover()

    def _understand(self, text: str, goal: Intent | None) -> Intent:
        intent = self._classify(text, goal)
        if not isinstance(intent, Intent) or (intent.name and intent.name not in self._skills):
            raise ConfigError(
                f"the classifier gave {intent!r:.120}: an Intent is wanted, its name empty or one "
                f"of {', '.join(self._skills)}"
            )
        return intent

    def _begin(self, text: str, steps: int | None) -> Reply:
        self.machine.fire("user_input", text=text)
        try:
            intent = self._understand(text, None)
        except BaseException:
            self.machine.fire("intent_ambiguous")
            raise
        if not self.machine.can_fire("intent_resolved", intent=intent):
            self.machine.fire("intent_ambiguous", intent=intent)
            known = ", ".join(self._skills)
            return self._reply(f"I am not sure what you want ({intent.why}). I can: {known}.")
        self.machine.fire("intent_resolved", intent=intent)
        return self._work(steps)

    def _heard(self, text: str, steps: int | None) -> Reply:
        """Something said in the middle of a task."""
        context = self.context
        if context.change is not None:
            return self._reply(f"First: {self._where()}")
        intent = self._understand(text, context.goal)
        unclear = not intent.name or intent.confidence <= context.min_confidence
        drift = None if unclear else find_drift(intent, context, self._skills)
        if drift is None:
            what = f"not understood ({intent.why})" if unclear else "the goal is the same"
            return self._reply(f"Nothing changes: {what}. {self._where()}")
        if drift.risk and self.state is not _S.TASK_PLAN:
            self.machine.fire("drift_asked", intent=intent)
            return self._reply(self._where())
        return self._change(drift, steps)

    def _change(self, drift: Drift, steps: int | None) -> Reply:
        self.machine.fire("intent_changed", intent=drift.intent)
        plan = drift.plan
        self.machine.fire("steps_confirmed", steps=plan.steps, dropped=plan.dropped, kept=plan.kept)
        return self._work(steps, first=f"{drift}.")

    def _work(self, steps: int | None, *, first: str = "") -> Reply:
        """Go on until a person is needed, the task has ended, or so many steps were executed."""
        executed = 0
        while self._can_work():
            if self.state is _S.RECOVERING:
                self._recover()
            elif self.state is _S.TASK_PLAN:
                self._plan()
            elif not self.context.steps:
                self.machine.fire("goal_done" if self._more_goals() else "task_done")
            elif executed == steps:
                break
            elif self.machine.can_fire("need_confirmation"):
                self.machine.fire("need_confirmation")
            else:
                self._execute()
                executed += 1
        return self._reply(f"{first} {self._where()}".strip())

    def _can_work(self) -> bool:
        if self.state is _S.EXECUTING:
            return self.machine.path[1] is ExecutingState.BETWEEN_STEPS
        return self.state is _S.RECOVERING or (
            self.state is _S.TASK_PLAN and not self.context.refusals
        )

    def _more_goals(self) -> bool:
        return self.machine.can_fire("goal_done")

    def _plan(self) -> None:
        context = self.context
        if context.goal is None:
            self.machine.fire("fail", reason="there is no goal to plan for")
            return
        plan = plan_for(context.goal, context, self._skills)
        self.machine.fire("steps_confirmed", steps=plan.steps, dropped=plan.dropped, kept=plan.kept)

    def _execute(self) -> None:
        context = self.context
        step = context.steps[0]
        self.machine.fire("step_started")
        try:
            run = self._run_step(task_of(step, context))
        except BaseException as problem:
            # Ctrl-C, a missing key, a full disk: nobody's failure at the step, and not hidden.
            self.machine.fire("step_stopped", why=f"{type(problem).__name__}: {problem}")
            raise
        self.runs.append(run)
        judged = judge(step, run)
        if judged.result is not None:
            self.machine.fire("step_finished", result=judged.result)
        else:
            self.machine.fire("execution_failed", why=judged.why)

    def _recover(self) -> None:
        """Rebuild the context from the snapshot: what was concluded stays, the plan is mended."""
        context = self.history.recover().context
        payload = {}
        if context.steps:
            failed, *rest = context.steps
            remedies = self._remedies(failed)
            payload["steps"] = [*(remedies or [failed]), *rest]
        if self.machine.can_fire("context_recovered", **payload):
            self.machine.fire("context_recovered", **payload)
        else:
            tried = f"{context.recoveries} recoveries did not help"
            self.machine.fire("fail", reason=f"{tried}: {context.failures[-1]}")

    def _remedies(self, failed: PlanStep) -> list[PlanStep]:
        goal = next((i for i in self.context.intents if i.name == failed.goal), None)
        if goal is None:
            return []
        return [filled(s, goal) for s in self._skills[goal.name].remedies.get(failed.name, ())]

    # What it answers -----------------------------------------------------------------------------

    def _done(self, reply: Reply) -> Reply:
        self.last = reply
        return reply

    def _reply(self, text: str) -> Reply:
        context = self.context
        asks = "change" if context.change else "operation" if context.pending else ""
        place = "/".join(state.name for state in self.machine.path)
        return Reply(text=text, state=place, asks=asks)

    def _where(self) -> str:
        """Where it is, in a sentence."""
        context = self.context
        if context.change is None:
            return SENTENCES[self.state](context)
        drift = drift_to(context.change, context, self._skills)
        return f"{drift}? It is asked because {drift.risk}: confirm() or reject(reason)."

    def __repr__(self) -> str:
        place = "/".join(state.name for state in self.machine.path)
        label = ", simulated" if any(run.simulated for run in self.runs) else ""
        return f"<Dialog {self.id} {place}, {len(self.history)} events{label}>"

    def _repr_html_(self) -> str:
        from axislab.dialog.card import dialog_card

        return dialog_card(self)


def _states(names: tuple[str, ...]) -> list[Enum]:
    first, *inside = names
    return [DialogState[first], *(ExecutingState[name] for name in inside)]
