"""The messages of the answer stage, filled in from a policy's texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from axislab.answer_policy import AnswerPolicy
from axislab.messages import Message, Role

EXPERIENCES = (
    "Earlier attempts at this task failed. What they learnt follows; use their findings, and do "
    "not repeat their mistakes."
)
"""Stands before the accounts of earlier tries."""
EXPERIENCES_END = "Now work on the task again, from the start."
"""Stands after them."""
DOUBTED = (
    "A second opinion holds this answer to be wrong:\n\n{reasons}\n\n"
    "Weigh it, and give your final answer again. {form}"
)
"""Follows a verdict of "wrong"."""


@dataclass(frozen=True, slots=True)
class Experience:
    """What an earlier try learnt from its failure."""

    number: int
    """Number of the try it comes from, from 1 (A14)."""
    text: str


def form_of(policy: AnswerPolicy) -> str:
    r"""How the answer is to be written, as a sentence for the model.

    Examples:
        >>> form_of(AnswerPolicy(answer_format="text"))
        'Write the answer alone, without further words.'
    """
    if policy.answer_format == "boxed":
        return "Write the answer as \\boxed{...}."
    if policy.answer_format == "json":
        return f'Write it as a JSON object: {{"{policy.answer_pattern or "answer"}": ...}}.'
    if policy.answer_format == "text":
        return "Write the answer alone, without further words."
    return f"Write it so that it matches this pattern: {policy.answer_pattern}"


def fill(template: str, **values: str) -> str:
    """The template with {names} replaced; other braces stay as they are."""
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", value)
    return template


def with_experiences(task: str, experiences: Sequence[Experience]) -> str:
    """The task, followed by the accounts of earlier tries under the numbers of those tries."""
    if not experiences:
        return task
    items = "\n\n".join(f"Attempt {e.number}:\n{e.text}" for e in experiences)
    return f"{task}\n\n{EXPERIENCES}\n\n{items}\n\n{EXPERIENCES_END}"


def open_end(messages: Sequence[Message], *, results_as_text: bool) -> int:
    """How many messages at the end give way to a prompt of the answer stage.

    That is a user message the model has answered something before (A5); a reply whose tool calls
    were never run; and, where results are rendered as text, the results of the newest calls.
    With native tool calls a result is never dropped without its call: the pair stays (A20).
    """
    if not messages:
        return 0
    last = messages[-1]
    if last.role is Role.USER:
        answered = any(m.role is Role.ASSISTANT for m in messages[-2:-1]) or (
            len(messages) > 1 and messages[-2].role is Role.TOOL
        )
        return int(answered)
    if last.role is Role.ASSISTANT:
        return int(bool(last.tool_calls) or not last.text.strip())
    if last.role is Role.TOOL and results_as_text:
        return next(i for i, m in enumerate(reversed(messages)) if m.role is not Role.TOOL)
    return 0


def failure_messages(
    messages: Sequence[Message], policy: AnswerPolicy, *, results_as_text: bool, again: str = ""
) -> list[Message]:
    """What is sent for the account of a failed try: a copy, the conversation stays as it is.

    Args:
        messages: The visible list.
        policy: Its prompt and prefix.
        results_as_text: Tool results are rendered as user messages.
        again: What was missing in an account already given.
    """
    out = list(messages)
    if out and out[-1].role is Role.ASSISTANT:
        out[-1] = replace(out[-1], tool_calls=())  # never run, so they have no results
        if not out[-1].text.strip():
            out.pop()
    elif count := open_end(out, results_as_text=results_as_text):
        del out[len(out) - count :]
    prompt = f"{policy.failure_prompt}\n\n{again}" if again else policy.failure_prompt
    out.append(Message.user(prompt))
    if policy.failure_prefix:
        out.append(Message.assistant(policy.failure_prefix))
    return out
