"""ModelGrader: a scorer that asks a language model whether an answer is right."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from axislab.answers.prompts import fill
from axislab.answers.scorers import Expected, normalized_match
from axislab.config import Sampling
from axislab.errors import ConfigError, DataError
from axislab.messages import Message
from axislab.models.base import ChatModel, ModelReply, ModelRequest
from axislab.models.cache import ReplyCache, open_cache
from axislab.models.cached_model import with_cache
from axislab.models.resolve import resolve_model

GRADE_PROMPT: Final = (
    "Judge an answer to a question. It is right if it says the same as the expected answer, "
    "however it is written; nothing of it may contradict that.\n\n"
    "Question: {question}\n\nExpected answer: {expected}\n\nAnswer to judge: {answer}\n\n"
    "Give your reason in one sentence, then end with one line: VERDICT: RIGHT or VERDICT: WRONG."
)
"""{question}, {expected} and {answer} are filled in."""
_VERDICT = re.compile(r"VERDICT\W+(RIGHT|WRONG)", re.I)

AskGrader = Callable[[ModelRequest], Awaitable[ModelReply]]
"""Sends one request; whoever runs the grader traces it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """What a grading model said."""

    correct: bool
    votes: tuple[str, ...]
    """right, wrong or unclear, one a call."""
    disagreement: float
    """Share of the clear votes that are against the verdict."""
    cached: bool
    """The same answer to the same question was graded before: no call was made."""
    agrees_with_text: bool
    """`normalized_match` says the same."""


class ModelGrader:
    """A scorer for `Recipe(scorer=…)` that asks a model; its calls are traced like any other.

    Grades are remembered by content: question, answer, expected answer, prompt and model.

    Args:
        model: A litellm model string, or a model.
        votes: Calls for each answer; the majority decides, and a tie is wrong.
        prompt: Another prompt, with {question}, {expected} and {answer}.
        sampling: How the model is asked.
        cache: Keeps grades beyond this process, as `Lab(cache=…)` does replies.

    Raises:
        ConfigError: Votes that are no whole number from 1, or a prompt that lacks a part.

    Examples:
        >>> from axislab.models.scripted import ScriptedModel
        >>> ModelGrader(ScriptedModel(["VERDICT: RIGHT"]), votes=1)
        ModelGrader('scripted', votes=1)
    """

    def __init__(
        self,
        model: str | ChatModel,
        *,
        votes: int = 1,
        prompt: str = GRADE_PROMPT,
        sampling: Sampling | None = None,
        cache: ReplyCache | str | Path | bool | None = None,
    ) -> None:
        if isinstance(votes, bool) or not isinstance(votes, int) or votes < 1:
            raise ConfigError(f"votes={votes!r}: give a whole number, 1 or more")
        for name in ("question", "expected", "answer"):
            if f"{{{name}}}" not in prompt:
                raise ConfigError(f"prompt={prompt!r} lacks {{{name}}}")
        self.votes = votes
        self.prompt = prompt
        self.sampling = Sampling(max_output_tokens=512) if sampling is None else sampling
        self._model = with_cache(resolve_model(model), open_cache(cache))
        self._known: dict[str, tuple[str, ...]] = {}

    @property
    def model(self) -> ChatModel:
        """Who is asked."""
        return self._model

    def __repr__(self) -> str:
        return f"ModelGrader({self._model.name!r}, votes={self.votes})"

    def __call__(self, answer: str | None, expected: Expected) -> NoReturn:
        """Always an error: a model is awaited, `grade` does that.

        Raises:
            ConfigError: Always.
        """
        raise ConfigError("a ModelGrader asks a model: give it to a Recipe, or await its grade()")

    def to_dict(self) -> dict[str, Any]:
        """What it is, as JSON, for a recipe's fingerprint."""
        return {
            "grader": self._model.name,
            "model_info": dict(self._model.info),
            "votes": self.votes,
            "prompt": self.prompt,
            "sampling": self.sampling.model_dump(mode="json"),
        }

    async def grade(
        self, answer: str | None, expected: Expected, *, question: str, ask: AskGrader
    ) -> Grade:
        """Judge one answer; none at all is wrong without a call.

        Args:
            answer: What the agent answered.
            expected: What will do.
            question: What was asked.
            ask: Sends a request.

        Raises:
            DataError: No vote was clear.
            ModelError: A call failed.
        """
        if answer is None:
            return Grade(
                correct=False, votes=(), disagreement=0.0, cached=False, agrees_with_text=True
            )
        text = self._filled(answer, expected, question)
        known = self._known.get(_key(self.to_dict(), text))
        votes = known or await self._votes(text, ask)
        clear = [vote for vote in votes if vote != "unclear"]
        if not clear:
            raise DataError(f"{self!r} gave no verdict in {len(votes)} replies")
        self._known[_key(self.to_dict(), text)] = votes
        right = clear.count("right")
        correct = 2 * right > len(clear)
        against = len(clear) - right if correct else right
        return Grade(
            correct=correct,
            votes=votes,
            disagreement=round(against / len(clear), 6),
            cached=known is not None,
            agrees_with_text=normalized_match(answer, expected) == correct,
        )

    def _filled(self, answer: str, expected: Expected, question: str) -> str:
        accepted: Sequence[str] = (expected,) if isinstance(expected, str) else expected
        # The answer last, so that what an agent wrote is never taken for a placeholder.
        return fill(self.prompt, expected=" or ".join(accepted), question=question, answer=answer)

    async def _votes(self, text: str, ask: AskGrader) -> tuple[str, ...]:
        votes = []
        for number in range(1, self.votes + 1):
            reply = await ask(
                ModelRequest(
                    messages=[Message.user(text)],
                    sampling=self.sampling,
                    purpose=f"grading {number}/{self.votes}",
                    draw=f"grading:{number}",
                )
            )
            found = _VERDICT.findall(reply.text or "")
            votes.append(found[-1].lower() if found else "unclear")
        return tuple(votes)


def _key(grader: dict[str, Any], text: str) -> str:
    written = json.dumps([grader, text], sort_keys=True)
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()
