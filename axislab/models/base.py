"""The one narrow seam to a language model: a request goes in, a reply or a ModelError comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from axislab.config import Sampling
from axislab.messages import Message, ToolCall, ToolSpec, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """What a model is asked."""

    messages: Sequence[Message]
    """The visible messages, rendered for the call; no markers."""
    tools: tuple[ToolSpec, ...] = ()
    sampling: Sampling = field(default_factory=lambda: Sampling())
    purpose: str = "main_loop"
    """What the call is for; never sent to a provider."""
    draw: str = ""
    """Opaque key of the simulated provider's random draws; sent to no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """What a model answered."""

    text: str | None = None
    reasoning: str | None = None
    """Thinking, apart from the text."""
    signed_reasoning: str | None = None
    """JSON text of the thinking as the provider signed it, for it alone to read again."""
    tool_calls: tuple[ToolCall, ...] = ()
    """With the provider's ids, verbatim, in `provider_id`; `id` is empty until ours is given."""
    finish_reason: str | None = None
    """As reported; None if it was not."""
    usage: Usage | None = None
    cost_usd: float | None = None
    cost_missing: str | None = None
    """Why there is no cost."""
    request_id: str | None = None
    model: str | None = None
    """The name the provider gave itself."""
    latency: float = 0.0
    """Seconds."""
    possibly_truncated: bool = False
    """The limit may have cut it, whatever the finish reason says: all tokens allowed were used,
    or a call's arguments stop in the middle."""

    cached: bool = False
    """From the reply cache: nothing was sent, `cost_usd` is 0, `usage` is the original's."""
    cache_key: str | None = None
    """Key of the request, where a cache was asked; replies of one key are copies of one draw."""
    saved_usd: float | None = None
    """Of a cached reply: what the original had cost; None if that was not known."""
    saved_seconds: float | None = None
    """Of a cached reply: how long the original had taken."""

    @property
    def thinking_only(self) -> bool:
        """True if the model thought, and neither said nor called anything.

        With the finish reason "length" its thinking used up the whole budget: the runtime ends the
        conversation as one cut by length (level 1), since asking again with the same
        `max_output_tokens` would most likely end the same way. With another reason it is an empty
        reply, and `on_empty_reply` says what follows. No retry of a request happens for either.
        """
        if (self.text or "").strip() or self.tool_calls:
            return False
        spent = self.usage.reasoning_tokens if self.usage else None
        return bool((self.reasoning or "").strip() or spent)


@runtime_checkable
class ChatModel(Protocol):
    """Anything that answers requests.

    One that also has `estimator()` says how its prompts are counted before they are sent; those
    of others are counted by characters.
    """

    @property
    def name(self) -> str:
        """What the user wrote: a litellm model string, or a double's own name."""

    @property
    def simulated(self) -> bool:
        """True if no language model answers."""

    @property
    def info(self) -> Mapping[str, Any]:
        """What identifies it further, for the trace header; no secrets."""

    def check(self) -> None:
        """Find what is wrong before the first request.

        Raises:
            ModelError: An unknown model, a missing key.
        """

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request with one request on the wire.

        Raises:
            ModelError: No reply; its kind says why.
        """
