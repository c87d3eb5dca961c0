"""What providers write when a prompt does not fit: the wordings, and the numbers in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextLimit:
    """The numbers of a context error; None where the text does not say."""

    window: int | None = None
    """Tokens the context holds."""
    requested: int | None = None
    """Tokens asked for, prompt and reserved answer together where both are told."""


_N: Final = r"\d[\d,_]*"


def _wording(pattern: str) -> re.Pattern[str]:
    """W, R, I and O stand for a number: window, requested in all, input, output."""
    for letter, name in (("W", "window"), ("R", "requested"), ("I", "input"), ("O", "output")):
        pattern = pattern.replace(f"<{letter}>", f"(?P<{name}>{_N})")
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


# The first that matches wins, so those with more numbers come first.
WORDINGS: Final = tuple(
    _wording(pattern)
    for pattern in (
        # OpenAI, vLLM, DeepSeek, OpenRouter, Azure
        r"too large: <O>\..{0,20}maximum context length is <W> tokens.{0,20}has <I> input tokens",
        r"maximum context length is <W> tokens.{0,40}requested (?:about )?<R> tokens",
        r"maximum context length is <W> tokens.{0,60}messages resulted in <R> tokens",
        r"maximum context length is <W> tokens.{0,40}requested <O> output tokens"
        r".{0,60}at least <I> input tokens",
        r"maximum context length is <W> tokens.{0,40}request has <I> input tokens",
        r"passed <I> input tokens and requested <O> output tokens.{0,60}only <W> tokens",
        r"input tokens exceed the configured limit of <W> tokens"
        r"(?:.{0,40}resulted in <R> tokens)?",
        r"request too large.{0,160}limit:? ?<W>,? requested:? ?<R>",
        # vLLM, SGLang
        r"prompt \(length <I>\) is longer than the maximum model length of <W>",
        r"input \(<I> tokens\) is longer than the model'?s context length \(<W> tokens\)",
        r"maximum context length of <W> tokens.{0,60}total of <R> tokens",
        # llama.cpp, LM Studio
        r"request \(<I> tokens\) exceeds the available context size \(<W> tokens\)",
        r"available context size \(<W> tokens\)",
        r"keep the first <I> tokens.{0,120}context length of only <W> tokens",
        # Anthropic, Bedrock
        r"prompt is too long:? ?<I> tokens > <W> maximum",
        r"exceed context limit:? ?<I> \+ <O> > <W>",
        # Gemini, Vertex
        r"input token count \(?(?:is )?<I>\)?.{0,60}(?:tokens allowed \(?|supports up to )<W>",
        r"input token count exceeds the maximum number of tokens allowed \(?<W>",
        # xAI, Mistral, Fireworks, Cohere, TGI and Together
        r"maximum prompt length is <W>.{0,40}contains <I> tokens",
        r"prompt contains <I> tokens.{0,60}model with <W> maximum context length",
        r"prompt is too long:? ?<I>, model maximum context length:? ?<W>",
        r"tokens in the prompt cannot exceed <W>.{0,20}received <R>",
        r"max_new_tokens`? must be <= <W>\. given:? ?<I> `?inputs`? tokens and <O>",
        r"`?inputs`? must have less than <W> tokens\. given:? ?<I>",
        # Moonshot, DashScope
        r"exceeded model token limit:? ?<W>(?:.{0,20}requested:? ?<R>)?",
        r"max(?:imum)? length exceeded,? max(?:imum)? length:? ?<W>",
        r"range of input length should be \[\d+, ?<W>\]",
        # The same families without numbers, or with only the window
        r"(?:maximum|max) context length (?:is|of) <W>",
        r"max size:? ?<W> tokens",
        r"exceeds? (?:the |this |its )?(?:model'?s )?"
        r"(?:available |maximum )?context (?:size|window|length|limit)",
        r"context (?:window|length|size) (?:is )?exceed(?:s|ed)",
        r"(?:prompt|input) (?:is )?too long",
        r"input length exceeds",
        r"prompt exceeds max length",
        r"reduce the length of (?:the |your )?(?:messages|prompt|input)",
        r"(?:input|上下文|输入).{0,8}(?:长度|token).{0,8}(?:超过|超出|超限)",
    )
)


def context_limit(text: str) -> ContextLimit | None:
    """What a context error says, or None if the text is about something else.

    Examples:
        >>> context_limit("prompt is too long: 205000 tokens > 200000 maximum")
        ContextLimit(window=200000, requested=205000)
    """
    for wording in WORDINGS:
        if found := wording.search(text):
            told = {name: _number(value) for name, value in found.groupdict().items() if value}
            requested = told.get("requested")
            if requested is None and "input" in told:
                requested = told["input"] + told.get("output", 0)
            return ContextLimit(window=told.get("window"), requested=requested)
    return None


def _number(text: str) -> int:
    return int(text.rstrip(",_").replace(",", "").replace("_", ""))
