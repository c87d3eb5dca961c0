"""Answer case files: the answer stage, the multi-attempt loop and the main loop of MiroFlow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from axislab.answer_policy import AnswerPolicy
from axislab.answers.extract import Extraction, extract
from axislab.answers.generator import AnswerGenerator
from axislab.answers.stage import AnswerAttempt, AnswerCall
from axislab.config import ConversationConfig
from axislab.errors import ErrorKind, ModelError
from axislab.messages import Message, Role
from axislab.models.base import ModelReply
from axislab.orchestrator.attempts import EarlierTry, Try, TryOutcome, run_tries
from axislab.runtime.conversation import ConversationRuntime
from tests.conformance import main_loop

PROMPTS = {
    "final_prompt": "<final_prompt>",
    "failure_prompt": "<failure_prompt>",
    "failure_prefix": "<failure_prefix>",
}
STRICT = (
    "boxed_answer",
    "format_error",
    "failure_summary",
    "failure_summary_requested",
    "answer_source",
    "summary_kind",
    "call_counts",
    "calls",
    "history_end",
)


def accepts(data: dict[str, Any]) -> bool:
    """Whether this is an answer file."""
    return "retry_loop_cases" in data and "main_loop_cases" in data


def cases(data: dict[str, Any]) -> Iterator[tuple[str, Callable[[], str | None]]]:
    """Name and check of each case; a check says what differs, or nothing."""
    for case in data["cases"]:
        yield case["name"], partial(_check_stage, {**data["defaults"], **case})
    for case in data["retry_loop_cases"]:
        yield case["name"], partial(_check_loop, case)
    for case in data["main_loop_cases"]:
        yield case["name"], partial(main_loop.check, {**data["defaults"], **case}, PROMPTS)


def _expected(case: dict[str, Any]) -> dict[str, Any]:
    right = case.get("right", "upstream") if case.get("disputed") else "upstream"
    return case["expect"] if right == "upstream" else right


# The answer stage ----------------------------------------------------------------------------


class Script:
    """A conversation that holds the case's history, and a model that says what the case says."""

    def __init__(self, case: dict[str, Any], policy: AnswerPolicy) -> None:
        self.runtime = ConversationRuntime(ConversationConfig(system_prompt=None, max_turns=1000))
        self.runtime.adopt([Message(role=Role(r), content=text) for r, text in case["history"]])
        self.policy = policy
        self.answers = iter(case["answers"])
        self.calls: list[dict[str, Any]] = []

    async def ask(self, call: AnswerCall) -> ModelReply:
        self.calls.append({"purpose": call.purpose, "sent": main_loop.rows(call.messages)})
        given = next(self.answers)
        for fault in ("api_error", "raise", "no_choices", "error_box", "extract_fails"):
            if fault in given:
                raise ModelError(str(given[fault]), kind=ErrorKind.SERVER)
        return ModelReply(
            text=given.get("text"),
            tool_calls=main_loop.tool_calls(given.get("calls", ())),
            finish_reason=given.get("finish", "stop"),
        )

    def message_of(self, reply: ModelReply) -> Message:
        return Message.assistant(reply.text or "", reply.tool_calls)

    def find(self, text: str) -> Extraction:
        return extract(text, self.policy)

    def record(self, result: object) -> None:
        """Steps are not compared."""

    def tell(self, attempt: AnswerAttempt) -> None:
        """Nor are attempts."""


def _check_stage(case: dict[str, Any]) -> str | None:
    policy = AnswerPolicy.from_seed(
        context_compress_limit=case["context_compress_limit"],
        keep_tool_result=case["keep_tool_result"],
        retry_with_summary=case["retry_with_summary"],
        **PROMPTS,
    )
    script = Script(case, policy)
    generator = AnswerGenerator(
        script, policy, config=ConversationConfig(tool_result_role="user", max_turns=1000)
    )
    result = asyncio.run(
        generator.generate_and_finalize_answer(
            case["task"],
            cut_off=case["reached_max_turns"],
            final=case["is_final_retry"],
            intermediate=case["intermediate"],
        )
    )
    summary = result.failure_summary
    purposes = [call["purpose"] for call in script.calls]
    got = {
        "boxed_answer": result.answer,
        "format_error": result.answer is None,
        "failure_summary": None if summary is None else summary.text,
        "failure_summary_requested": result.summary_requested,
        "answer_source": str(result.source),
        "summary_kind": str(result.summary_kind),
        "call_counts": {
            "final_answer": sum(p.startswith("final_answer") for p in purposes),
            "failure_summary": sum(p.startswith("failure_summary") for p in purposes),
        },
        "calls": script.calls,
        "history_end": main_loop.rows(script.runtime.visible),
    }
    want = dict(_expected(case))
    want["calls"] = [{k: call[k] for k in ("purpose", "sent")} for call in want["calls"]]
    return main_loop.first_difference(got, want, STRICT)


# The multi-attempt loop ----------------------------------------------------------------------


def _check_loop(case: dict[str, Any]) -> str | None:
    attempts = iter(case["attempts"])

    async def make(one: Try) -> TryOutcome:
        given = next(attempts)
        if "raise" in given:
            raise RuntimeError(given["raise"])
        error = "the pipeline failed" if given.get("pipeline_error") else None
        summary = given.get("failure_summary")
        return TryOutcome(answer=given.get("boxed"), failure_summary=summary, error=error)

    earlier = [
        EarlierTry(
            number=log["try"],
            finished=log.get("status") != "running",
            answer=log.get("boxed"),
            failure_summary=log.get("failure_summary"),
        )
        for log in case.get("earlier_logs", ())
    ]
    came = asyncio.run(run_tries(case["context_compress_limit"] + 1, make, earlier=earlier))
    got = {
        "tries": [
            {
                "try": one.number,
                "is_final_retry": one.final,
                "experiences": [{"number": e.number, "text": e.text} for e in one.experiences],
            }
            for one in came.made
        ],
        "status": "success" if came.status == "ok" else str(came.status),
        "answer": came.answer,
    }
    return main_loop.first_difference(got, _expected(case), ("tries", "status", "answer"))
