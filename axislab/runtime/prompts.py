"""The prompts a conversation writes by itself."""

from __future__ import annotations

from string import Formatter

from axislab.config import ConversationConfig
from axislab.errors import TemplateError
from axislab.messages import Message


def render_task(template: str, task: str) -> str:
    """The first user message: {task} filled in, double braces made single.

    Raises:
        TemplateError: The template names something other than {task}, or its braces are broken.
    """
    try:
        names = [name for _, name, _, _ in Formatter().parse(template) if name is not None]
    except ValueError as problem:
        raise TemplateError(
            f"user_prompt_template {template!r}: {problem}; write {{{{ and }}}} for braces"
        ) from None
    for name in names:
        if name != "task":
            raise TemplateError(
                f"user_prompt_template names {{{name}}}: {{task}} is the only placeholder; "
                f"write {{{{{name}}}}} for braces in the text"
            )
    try:
        return template.format(task=task)
    except (KeyError, IndexError, ValueError) as problem:
        raise TemplateError(
            f"user_prompt_template {template!r} cannot be filled in: {problem}; "
            f"write plain {{task}}"
        ) from None


def force_prompt(config: ConversationConfig) -> Message | None:
    """The user message that forces the final answer; None forces it silently."""
    parts = [p for p in (config.early_stop_prompt, config.final_response_prompt) if p]
    return Message.user("\n\n".join(parts)) if parts else None
