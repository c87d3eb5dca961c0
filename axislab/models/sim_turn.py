"""One request to the simulated agent and the one reply to it, failures included."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from axislab.config import warn_once
from axislab.errors import ErrorKind, ModelError
from axislab.messages import ToolCall, Usage
from axislab.models import sim_speech as speech
from axislab.models.base import ModelReply, ModelRequest
from axislab.models.faults import FailureProfile
from axislab.models.sim_draws import (
    call_draws,
    difficulty,
    given_difficulty,
    run_draws,
    with_odds,
)
from axislab.models.sim_knowledge import Knowledge, wanted
from axislab.models.sim_language import Question
from axislab.models.sim_plan import Move, PlannedCall, Planner
from axislab.models.sim_prompts import Want, candidate_in
from axislab.models.sim_tokens import PER_MESSAGE, count_tokens, cut_tokens, prompt_tokens
from axislab.models.sim_view import view_of

FULL = 6000
"""Visible tokens at which the odds of a malformed reply have doubled."""
UNKNOWN_TASK = (
    "the simulated model was given a task it cannot work on: it reads questions like 'What is the "
    "capital of the home of Osk?', comparisons, differences and sums. Use a real model for others"
)
MALFORMED = (
    "text_call_hermes",
    "text_call_bare",
    "text_call_fenced",
    "broken_arguments",
    "misnamed_argument",
    "wrong_tool",
    "empty",
    "cut_by_length",
    "forget_box",
    "open_box",
)
"""Failures of form: a full context makes them more likely, a complaint about one less."""
TASK_SHARE: Mapping[str, float] = {
    "slip": 0.4,
    "guess": 0.2,
    "refuse": 0.3,
    "refuse_persistent": 0.8,
    "repeat_query": 0.3,
    **dict.fromkeys(MALFORMED, 0.2),
}
"""How much of a failure's variance is the task's own."""
MENDED = 0.25
"""Odds of a malformed reply right after one was pointed out, relative to before."""

_TEXT_CALLS = (
    ("text_call_hermes", speech.hermes),
    ("text_call_fenced", speech.fenced),
    ("text_call_bare", speech.bare),
)


@dataclass(frozen=True, slots=True)
class Said:
    """A reply before it is measured."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: str = "stop"


class Turn:
    """Works out one reply.

    Args:
        profile: How the model fails.
        request: What it is asked; all it ever sees.
        window: Tokens its context holds.
        model: The name it gives itself.
    """

    def __init__(
        self, profile: FailureProfile, request: ModelRequest, *, window: int | None, model: str
    ) -> None:
        self._profile = profile
        self._request = request
        self._window = window
        self._model = model
        self._view = view_of(request)
        self._tokens = prompt_tokens(request.messages, request.tools)
        self._draws = call_draws(request.draw, request.messages, request.sampling)
        question = self._view.question
        self._hardness = difficulty(question.text) if question else 0.0
        # Readings hold as long as the prompt with the task does: another attempt reads afresh.
        self._steady = run_draws(request.draw, self._view.task)

    def reply(self) -> ModelReply:
        """The reply.

        Raises:
            ModelError: The provider fails.
        """
        self._provider()
        question = self._view.question
        if question is None:
            warn_once(UNKNOWN_TASK)
            return self._measured(Said(speech.CANNOT))
        if self._refuses(question):
            return self._measured(Said(speech.refusal(self._draws)))
        if self._happens("empty"):
            return self._measured(Said())
        said = self._work(question)
        if self._happens("cut_by_length"):
            said = self._broken_off(said)
        return self._measured(said)

    # -- chances -----------------------------------------------------------------------------------

    def _chance(self, name: str) -> float:
        rate = float(getattr(self._profile, name))
        if rate <= 0.0:
            return 0.0
        rate = given_difficulty(rate, self._hardness, TASK_SHARE.get(name, 0.0))
        if name in MALFORMED:
            mended = MENDED if self._view.warned else 1.0
            rate = with_odds(rate, mended * (1.0 + (self._tokens / FULL) ** 2))
        return rate

    def _happens(self, name: str) -> bool:
        return self._draws.uniform(name) < self._chance(name)

    def _provider(self) -> None:
        """Errors of the provider; a request that does not fit the window is one of them."""
        if self._window is not None and self._tokens > self._window:
            raise context_error(self._window, self._tokens)
        if self._happens("rate_limit"):
            raise ModelError(
                "rate limit reached, please try again (simulated)",
                kind=ErrorKind.RATE_LIMIT,
                status=429,
                retry_after=0.01,
            )
        if self._happens("timeout"):
            raise ModelError("no answer in time (simulated)", kind=ErrorKind.TIMEOUT, status=408)
        if self._happens("context_error"):
            raise context_error(self._window or self._tokens - 1, self._tokens)
        if self._view.exchanges and self._happens("truncation_error"):
            raise ModelError(
                "truncated tool call arguments: they are no whole JSON (simulated)",
                kind=ErrorKind.TRUNCATED,
                status=400,
            )

    def _refuses(self, question: Question) -> bool:
        rate = self._profile.refuse_persistent
        if rate > 0.0:
            touchy = difficulty(f"refuse {question.text}")
            chance = given_difficulty(rate, touchy, TASK_SHARE["refuse_persistent"])
            if run_draws(self._request.draw, question.text).uniform("refuse") < chance:
                return True
        return self._happens("refuse")

    # -- work --------------------------------------------------------------------------------------

    def _work(self, question: Question) -> Said:
        slip = self._chance("slip")
        knowledge = Knowledge(self._view, self._steady, slip=slip)
        if self._view.want is Want.SUMMARY:
            needs = [knowledge.resolve(phrase).need for phrase in wanted(question)]
            missing = next((f"the {n.relation} of {n.entity}" for n in needs if n), None)
            return Said(speech.summary(knowledge.path(question), missing))
        planner = Planner(self._view, knowledge, draws=self._draws, steady=self._steady, slip=slip)
        if self._view.want is Want.VERDICT:
            own = planner.next(question, may_call=False, parallel=False).answer
            candidate = candidate_in(self._request.messages[-1].text) or ""
            return Said(speech.verdict(own, candidate))
        move = planner.next(
            question,
            may_call=self._view.want is Want.WORK and bool(self._view.tools),
            parallel=self._happens("parallel_calls"),
        )
        return self._call(move.calls) if move.calls else self._answer(move)

    def _answer(self, move: Move) -> Said:
        value = move.answer
        if value is None and move.candidates and self._happens("guess"):
            value = self._draws.pick(move.candidates, "which guess")
        text = speech.final(value, self._view.style)
        if self._view.style.kind == "boxed":
            if self._happens("forget_box"):
                text = speech.final(value, replace(self._view.style, kind="plain"))
            elif self._happens("open_box"):
                text = text.rstrip("}")
        words = speech.filler(self._profile.verbosity, self._draws)
        return Said(f"{words}\n\n{text}" if words else text)

    def _call(self, planned: tuple[PlannedCall, ...]) -> Said:
        first = self._repeated() or planned[0]
        for name, write in _TEXT_CALLS:
            if self._happens(name):
                return Said(write(first.tool, first.arguments))
        calls = [self._tool_call(first, 0)]
        calls += [
            self._made(call.tool, json.dumps(dict(call.arguments), ensure_ascii=False), number)
            for number, call in enumerate(planned[1:], 1)
        ]
        words = speech.filler(self._profile.verbosity, self._draws)
        if self._draws.uniform("speaks") < 0.5:
            words = f"{words} {speech.intent(first, self._draws)}".strip()
        return Said(words, tuple(calls), "tool_calls")

    def _repeated(self) -> PlannedCall | None:
        """An earlier call once more, word for word."""
        earlier = [e for e in self._view.exchanges if e.values and e.call.name in self._view.tools]
        if not earlier or not self._happens("repeat_query"):
            return None
        exchange = self._draws.pick(earlier, "which call")
        slot = next(iter(exchange.values or {}), "")
        again = f"look at {exchange.topic} again"
        return PlannedCall(exchange.call.name, slot, exchange.values or {}, again)

    def _tool_call(self, planned: PlannedCall, number: int) -> ToolCall:
        name, arguments = planned.tool, planned.arguments
        if self._happens("wrong_tool"):
            options = ("browse", "web_lookup", f"{name}_v2", "ask")
            name = self._draws.pick([n for n in options if n not in self._view.tools], "tool")
        if self._happens("misnamed_argument"):
            arguments = speech.misnamed(arguments, planned.slot, self._draws)
        text = json.dumps(dict(arguments), ensure_ascii=False)
        if self._happens("broken_arguments"):
            text = speech.broken(arguments, self._draws)
        return self._made(name, text, number)

    def _made(self, name: str, arguments: str, number: int) -> ToolCall:
        mark = f"{int(self._draws.uniform('id', number) * 16**12):012x}"
        return ToolCall(id="", name=name, arguments=arguments, provider_id=f"call_{mark}")

    # -- form --------------------------------------------------------------------------------------

    def _broken_off(self, said: Said) -> Said:
        """The reply up to somewhere in the middle."""
        share = 0.2 + 0.6 * self._draws.uniform("cut")
        if said.calls and self._draws.uniform("cut where") < 0.5:
            last = said.calls[-1]
            half = last.arguments[: max(1, int(share * len(last.arguments)))]
            return Said(said.text, (*said.calls[:-1], replace(last, arguments=half)), "length")
        text = said.text or speech.filler(0.1, self._draws)
        return Said(text[: max(1, int(share * len(text)))], (), "length")

    def _measured(self, said: Said) -> ModelReply:
        limit = self._request.sampling.max_output_tokens
        text, calls, finish = said.text, said.calls, said.finish
        spent = count_tokens(text)
        if spent > limit:
            text, calls, finish, spent = cut_tokens(text, limit), (), "length", limit
        kept: list[ToolCall] = []
        for call in calls:
            cost = PER_MESSAGE + count_tokens(call.name) + count_tokens(call.arguments)
            if spent + cost > limit:
                room = limit - spent - PER_MESSAGE - count_tokens(call.name)
                if room > 0:
                    kept.append(replace(call, arguments=cut_tokens(call.arguments, room)))
                finish, spent = "length", limit
                break
            kept.append(call)
            spent += cost
        return ModelReply(
            text=text or None,
            tool_calls=tuple(kept),
            finish_reason=finish,
            usage=Usage(input_tokens=self._tokens, output_tokens=spent),
            cost_missing="simulated",
            request_id=f"sim-{self._draws.key.hex()[:24]}",
            model=self._model,
        )


def context_error(window: int, requested: int) -> ModelError:
    """The error for a prompt that does not fit."""
    return ModelError(
        f"this model's maximum context length is {window} tokens, the request has {requested} "
        "(simulated)",
        kind=ErrorKind.CONTEXT_LIMIT,
        status=400,
        window=window,
        requested=requested,
    )
