"""What each provider demands of a conversation, as a table; `outgoing` renders by it.

"Documented" is what a provider's pages, its maintainers or its error texts say; "measured" is what
litellm 1.110 was seen to send, or a server to do; "assumed" was not looked up, and is the choice
that harms least if it is wrong. No profile was tried against the provider itself.

- openai: an id has at most 40 characters (documented error); an empty list of tools is refused
  (assumed; axislab never sends one); reasoning is not part of chat completions (assumed).
- anthropic: thinking goes back signed as it came, before the calls it led to (documented error); a
  last assistant message is continued by older models and refused by newer ones (litellm's list of
  models says which); ids match `[a-zA-Z0-9_-]+`, a history with calls needs its tools declared,
  text must not be blank, roles alternate, the system message is apart (measured: litellm sees to
  it); ids are unique in the conversation, a message to be continued must not end in white space,
  which is cut off for all that continue (assumed).
- gemini: results go by the name of the tool, the thought signature travels inside the id that
  litellm makes, so ids go back verbatim (measured); text must not be blank (assumed).
- deepseek: while thinking, turns that call tools must carry `reasoning_content` in all later
  requests, an empty one included, else error 400; elsewhere it is ignored (documented). Content
  is text, never null; a reply is not continued at the usual address (assumed).
- moonshot: the same with at least one character (documented error; the space is litellm's); ids
  like `functions.name:0` go back verbatim, nothing may be blank (assumed).
- mistral: ids are nine letters or digits; roles alternate; "user" must not follow "tool"
  (documented errors); a message with `prefix` is continued (documented); results carry the tool's
  name, blank text is refused (assumed). litellm drops reasoning (measured).
- vllm: the model's chat template decides; those of Gemma and Mistral demand alternation
  (documented error); continuing needs further parameters (documented), so replies are folded.
  Content is never null, since templates join it, and models that think between calls want that
  reasoning back (assumed).
- ollama: the last assistant message is continued (documented); reasoning goes back as `thinking`
  (measured: litellm renames it).
- llamacpp: the last assistant message is continued unless --no-prefill-assistant (documented);
  arguments that are no JSON are error 500 for ever (measured). litellm knows it as "openai/…"
  with an api_base, so ask for it by name: `Lab("openai/x", api_base=…, profile="llamacpp")`.
- openai_compatible: anyone else; the careful choice in every column.
- axislab: the simulated agent takes the conversation as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from axislab.config import Config
from axislab.errors import ConfigError, did_you_mean


class ProviderProfile(Config):
    """What a provider demands of the messages it is sent.

    Examples:
        >>> PROFILES["mistral"].bridge
        'Understood.'
        >>> ProviderProfile(name="mine", roles="merged").reasoning
        'dropped'
    """

    name: str
    roles: Literal["any", "merged"] = "any"
    """Neighbours of one role stay apart, or become one message, a blank line between them."""
    system: Literal["anywhere", "first", "user"] = "anywhere"
    """System messages stay, become one at the beginning, or the beginning of the first user's."""
    bridge: str | None = None
    """Text of an assistant message put between a tool result and a user message."""
    trailing_assistant: Literal["continued", "folded", "listed", "verbatim"] = "folded"
    """A last assistant message is sent, to be continued; or quoted in a user message; "listed" is
    the first where litellm's list says the model can, else the second; "verbatim" sends it as it
    is. The first two leave out an empty one."""
    continue_key: str | None = None
    """Key that marks a message to be continued."""
    reasoning: Literal["dropped", "kept", "required", "signed"] = "dropped"
    """What goes back: nothing; what there is on turns that call tools; once the model thinks and
    calls tools, one for every assistant message; the provider's signed blocks."""
    no_reasoning: str = ""
    """Stands for missing reasoning where it is required."""
    id_pattern: str | None = None
    """Regular expression of the call ids the provider takes; others are replaced."""
    id_length: int = Field(default=9, ge=4, le=26)
    """Length of the letters and digits that replace an id."""
    unique_ids: Literal["message", "conversation"] = "message"
    """Where a call id must not come twice."""
    named_results: bool = False
    """A tool result carries the tool's name."""
    empty_content: Literal["null", "text"] = "null"
    """Content of a message that only calls tools: null, or an empty text."""
    blank: str | None = None
    """Text sent instead of blank content; None sends blank content as it is."""
    declares_tools: bool = False
    """A history with tool calls is refused if no tool is declared."""

    @model_validator(mode="after")
    def _pattern_works(self) -> Self:
        if self.id_pattern is None:
            return self
        try:
            pattern = re.compile(self.id_pattern)
        except re.error as problem:
            raise ValueError(f"id_pattern={self.id_pattern!r}: {problem}") from None
        if not pattern.fullmatch("a1B2c3D4e5F6g7H8i9J0k1L2m3"[: self.id_length]):
            raise ValueError(
                f"id_pattern={self.id_pattern!r} does not match {self.id_length} letters and "
                "digits, which id_length says replace an id"
            )
        return self


def _table(*profiles: ProviderProfile) -> Mapping[str, ProviderProfile]:
    return MappingProxyType({profile.name: profile for profile in profiles})


_CLAUDE: Final = ProviderProfile(
    name="anthropic",
    roles="merged",
    system="first",
    trailing_assistant="listed",
    reasoning="signed",
    id_pattern="[a-zA-Z0-9_-]{1,64}",
    unique_ids="conversation",
    blank="(empty)",
    declares_tools=True,
)

PROFILES: Final[Mapping[str, ProviderProfile]] = _table(
    ProviderProfile(name="openai", id_pattern=".{1,40}"),
    _CLAUDE,
    _CLAUDE.model_copy(update={"name": "bedrock"}),
    ProviderProfile(
        name="gemini", roles="merged", system="first", named_results=True, blank="(empty)"
    ),
    ProviderProfile(name="deepseek", system="first", reasoning="required", empty_content="text"),
    ProviderProfile(
        name="moonshot",
        system="first",
        reasoning="required",
        no_reasoning=" ",
        named_results=True,
        blank="(empty)",
    ),
    ProviderProfile(
        name="mistral",
        roles="merged",
        system="first",
        bridge="Understood.",
        trailing_assistant="continued",
        continue_key="prefix",
        id_pattern="[a-zA-Z0-9]{9}",
        named_results=True,
        empty_content="text",
        blank="(empty)",
    ),
    ProviderProfile(
        name="vllm", roles="merged", system="first", reasoning="kept", empty_content="text"
    ),
    ProviderProfile(
        name="ollama",
        system="first",
        trailing_assistant="continued",
        reasoning="kept",
        empty_content="text",
    ),
    ProviderProfile(
        name="llamacpp",
        roles="merged",
        system="first",
        trailing_assistant="continued",
        reasoning="kept",
        empty_content="text",
    ),
    ProviderProfile(
        name="openai_compatible", roles="merged", system="first", empty_content="text"
    ),
    ProviderProfile(name="axislab", trailing_assistant="verbatim"),
)  # fmt: skip
"""The profiles by name."""

_OF_PROVIDER: Final[Mapping[str, str]] = MappingProxyType(
    {
        "azure": "openai",
        "bedrock_converse": "bedrock",
        "vertex_ai": "gemini",
        "vertex_ai_beta": "gemini",
        "codestral": "mistral",
        "hosted_vllm": "vllm",
        "ollama_chat": "ollama",
        "llamafile": "llamacpp",
        "axislab-local": "llamacpp",
    }
)
"""litellm's name of a provider, where the profile has another."""


def profile_named(name: str) -> ProviderProfile:
    """The profile of a name.

    Raises:
        ConfigError: There is none; it says which there are.
    """
    if name not in PROFILES:
        raise ConfigError(f"profile={name!r}: {did_you_mean(name, PROFILES)}")
    return PROFILES[name]


def profile_of(provider: str, *, model: str = "", own_server: bool = False) -> ProviderProfile:
    """The profile of a litellm provider; "openai_compatible" for one that is not in the table.

    Args:
        provider: litellm's name of it.
        model: The model string, for clouds that serve the models of others.
        own_server: It is reached at an address the user gave.
    """
    if own_server and provider == "openai":
        return PROFILES["openai_compatible"]
    if provider.startswith("vertex_ai") and "claude" in model:
        return PROFILES["anthropic"]
    return PROFILES.get(_OF_PROVIDER.get(provider, provider), PROFILES["openai_compatible"])
