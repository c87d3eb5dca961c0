"""Recipe: everything an agent is, as one frozen value that can be an arm of an experiment."""

from __future__ import annotations

import copy
import hashlib
import inspect
import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

from axislab.answers.extract import Extraction, extract, extract_with
from axislab.answers.grader import ModelGrader
from axislab.answers.policy import merge_policy
from axislab.answers.scorers import resolve_scorer
from axislab.config import KNOBS, AgentConfig, Config
from axislab.errors import ConfigError, TemplateError, did_you_mean
from axislab.models.base import ChatModel
from axislab.models.redact import secret_place
from axislab.models.resolve import require_model
from axislab.runtime.decisions import DirectAnswerHook, FinalPromptHook, Rule
from axislab.runtime.prompts import render_task
from axislab.runtime.rules import CHAIN
from axislab.tools.base import Tool
from axislab.tools.code import code_of

BOUNDED = AgentConfig().with_(max_turns=50, max_reprompts=3)
"""What a recipe starts from: the bare config, with an end to every loop."""

ToolItem = Tool | Callable[[], Iterable[Tool]]
"""A tool, or a function that makes fresh ones for every run."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Prompts, tools, limits, decision chain and scorer of an agent.

    A recipe never changes: `with_` gives another one. Two recipes that do the same have the same
    `fingerprint`.

    Examples:
        >>> Recipe(name="plain").with_(max_turns=8, temperature=0.2).config.knob("max_turns")
        8
    """

    name: str = "agent"
    config: AgentConfig = field(default_factory=lambda: BOUNDED)
    """All knobs; unlike a bare config it ends by itself: 50 turns, 3 reprompts."""
    tools: tuple[ToolItem, ...] = ()
    """Tools, or functions without arguments that make fresh ones for every run."""
    chain: tuple[Rule, ...] = field(default_factory=lambda: CHAIN)
    """The decision chain; see `axislab.runtime.rules.CHAIN`."""
    direct_answer: DirectAnswerHook | None = None
    """Finds a final answer in a reply (level 5 of the chain)."""
    wants_final_prompt: FinalPromptHook | None = None
    """Says whether the final-response prompt follows a reply (level 6)."""
    before_tool: tuple[Callable[..., Any], ...] = ()
    """Tool middleware: may allow, deny, edit or ask before a call runs."""
    after_tool: tuple[Callable[..., Any], ...] = ()
    """Tool middleware: may edit a result."""
    answer_finder: Callable[[str], Any] | None = None
    """A format of your own: finds the answer in what a reply says, as text or None."""
    scorer: str | Callable[..., Any] = "normalized"
    """How an answer is compared with the expected one."""
    model: str | ChatModel | None = None
    """Overrides the Lab's model."""

    def __post_init__(self) -> None:
        for name in ("tools", "chain", "before_tool", "after_tool"):
            object.__setattr__(self, name, _several(name, getattr(self, name)))
        if isinstance(self.config, Mapping):
            object.__setattr__(self, "config", AgentConfig(**self.config))
        check_recipe(self)

    def with_(self, **knobs: Any) -> Self:
        """The same recipe with some knobs set; nested values are merged, never reset.

        Args:
            **knobs: Fields of the recipe, or knobs of its config by their flat names;
                `answer_policy` takes a preset's name, or a policy whose set fields are merged.

        Raises:
            ConfigError: A name that is neither, or a value out of range.
        """
        own = {f.name for f in fields(self)}
        known = own | set(KNOBS) | {"answer_policy"}
        for name in knobs:
            if name not in known:
                raise ConfigError(f"{name!r} is no knob: {did_you_mean(name, known)}")
        mine = {name: value for name, value in knobs.items() if name in own}
        nested = {name: value for name, value in knobs.items() if name not in own}
        config = mine.pop("config", self.config)
        if isinstance(config, Mapping):
            config = AgentConfig(**config)
        config = _agent_config(config)
        if (policy := nested.pop("answer_policy", None)) is not None:
            config = config.with_(answer=merge_policy(config.answer, policy))
        return replace(self, config=config.with_(**nested), **mine)

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits over everything that matters to a run."""
        text = json.dumps(self._described, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def __hash__(self) -> int:
        # Of what equal recipes share and is cheap; their config holds a mapping, which has none.
        return hash((self.name, self.config.conversation))

    def find_answer(self, text: str | None) -> Extraction:
        """The answer in a reply, by the recipe's format.

        Raises:
            HookError: The `answer_finder` raised, or gave something that is no text.
        """
        if self.answer_finder is None:
            return extract(text, self.config.answer)
        return extract_with(self.answer_finder, text)

    def to_dict(self) -> dict[str, Any]:
        """The recipe as JSON: functions by name and by a hash of their code."""
        return copy.deepcopy(self._described)

    @cached_property
    def _described(self) -> dict[str, Any]:
        # Taken once: a hook or scorer that keeps count in itself is no other recipe for that.
        return {
            "name": self.name,
            "config": self.config.model_dump(mode="json"),
            "tools": [describe_tool(item) for item in self.tools],
            "chain": [_rule(rule) for rule in self.chain],
            "direct_answer": describe(self.direct_answer),
            "wants_final_prompt": describe(self.wants_final_prompt),
            "before_tool": [describe(f) for f in self.before_tool],
            "after_tool": [describe(f) for f in self.after_tool],
            **({"answer_finder": describe(self.answer_finder)} if self.answer_finder else {}),
            "scorer": _scorer(self.scorer),
            **_model(self.model),
        }

    def to_yaml(self) -> str:
        """Name and config as YAML, to keep beside a paper; only knobs that differ are written."""
        import yaml

        text: str = yaml.safe_dump(
            {"name": self.name, "config": _differences(self.config)},
            sort_keys=False,
            allow_unicode=True,
        )
        return text

    @classmethod
    def from_yaml(cls, text: str, **parts: Any) -> Self:
        """The inverse of `to_yaml`; tools, hooks and chain are given as `parts`.

        Raises:
            ConfigError: Not a mapping with `name` and `config`, or a knob that does not exist.
        """
        import yaml

        if not isinstance(text, str):
            raise ConfigError(f"{text!r} is no text: give what to_yaml() returned")
        try:
            data = yaml.safe_load(text)
        except yaml.YAMLError as problem:
            raise ConfigError(f"not YAML: {problem}") from problem
        if not isinstance(data, Mapping) or set(data) - {"name", "config"}:
            raise ConfigError(f"a recipe's YAML holds `name` and `config`, got {data!r}")
        config = AgentConfig.model_validate(data.get("config") or {})
        return cls(name=str(data.get("name") or "agent"), config=config, **parts)

    def __repr__(self) -> str:
        tools = ", ".join(describe_tool(t)["name"] for t in self.tools) or "no tools"
        changed = {k: _short(v) for k, v in _flat(_differences(self.config)).items()}
        if self.chain != CHAIN:
            changed["chain"] = "+".join(r.name for r in self.chain if r not in CHAIN) or "cut"
        for name in ("direct_answer", "wants_final_prompt", "answer_finder", "scorer", "model"):
            if (value := getattr(self, name)) not in (None, "normalized"):
                changed[name] = getattr(value, "__name__", None) or _short(value)
        for name in ("before_tool", "after_tool"):
            if functions := getattr(self, name):
                changed[name] = "+".join(getattr(f, "__name__", repr(f)) for f in functions)
        shown = ", ".join(f"{k}={v}" for k, v in changed.items())
        return f"Recipe({self.name!r}, {tools}{'; ' + shown if shown else ''})"


def grid(recipe: Recipe, **values: Sequence[Any]) -> dict[str, Recipe]:
    """Arms: the recipe under every combination of some knobs' values, named after them.

    Raises:
        ConfigError: A name that is no knob, a value out of range, or no values.

    Examples:
        >>> list(grid(Recipe(), max_turns=[4, 8]))
        ['max_turns=4', 'max_turns=8']
    """
    for name, choices in values.items():
        if isinstance(choices, str) or not isinstance(choices, Sequence) or not choices:
            raise ConfigError(f"{name}={choices!r}: grid wants a list of values, [{choices!r}]")
    if not values:
        raise ConfigError("grid needs at least one knob with a list of values")
    arms = {}
    for combination in itertools.product(*values.values()):
        knobs = dict(zip(values, combination, strict=True))
        name = ", ".join(f"{key}={_short(value)}" for key, value in knobs.items())
        if name in arms:
            raise ConfigError(f"two arms would be called {name!r}: name them in a dict of recipes")
        arms[name] = recipe.with_(**knobs)
    return arms


def _several(name: str, given: Any) -> tuple[Any, ...]:
    """A tuple of what was given; one thing alone is taken as such."""
    if callable(given) or isinstance(given, Tool | Rule):
        return (given,)
    if isinstance(given, Iterable) and not isinstance(given, str | Mapping):
        return tuple(given)
    raise ConfigError(f"{name}={given!r}: give one, or a list or tuple of them")


def _agent_config(given: object) -> AgentConfig:
    if isinstance(given, AgentConfig):
        return given
    raise ConfigError(f"config={given!r}: give an AgentConfig, or a mapping of its groups")


def check_recipe(recipe: Recipe) -> None:
    """Find what cannot work before anything runs.

    Raises:
        ConfigError: A part that is none, or knobs that leave no way to answer.
    """
    if not isinstance(recipe.name, str) or not recipe.name.strip():
        raise ConfigError(f"name={recipe.name!r}: a recipe's name is a text that is not blank")
    if not recipe.chain:
        raise ConfigError("chain is empty: give at least one rule, or leave it out for CHAIN")
    for rule in recipe.chain:
        named = (
            isinstance(rule, Rule) and isinstance(rule.name, str) and isinstance(rule.level, str)
        )
        if not named or not callable(rule.check):
            raise ConfigError(
                f"chain holds {rule!r}: a chain is made of Rule(name, level, function)"
            )
    for name, of in _HOOKS.items():
        if (hook := getattr(recipe, name)) is not None and not callable(hook):
            raise ConfigError(f"{name}={hook!r}: a hook is a function of {of}")
        if inspect.iscoroutinefunction(hook):
            raise ConfigError(f"{name}={hook!r} is an `async def`: write a plain `def`")
    resolve_scorer(recipe.scorer)
    if recipe.model is not None and not isinstance(recipe.model, str):
        require_model(recipe.model)
    _check_knobs(_agent_config(recipe.config))


_HOOKS = {
    "direct_answer": "the assistant Message",
    "wants_final_prompt": "the assistant Message",
    "answer_finder": "the reply's text",
}


def _is_rule(given: object) -> bool:
    if not isinstance(given, Rule) or not callable(given.check):
        return False
    return isinstance(given.name, str) and isinstance(given.level, str)


def _check_knobs(config: AgentConfig) -> None:
    conversation, limits = config.conversation, config.conversation.context_limit
    template = conversation.user_prompt_template
    probe = "\x00the task\x00"
    try:
        text = render_task(template, probe)
    except TemplateError as problem:
        raise ConfigError(str(problem)) from None
    if probe not in text:
        raise ConfigError(f"user_prompt_template={template!r} never shows the task: write {{task}}")
    extract("x", config.answer)  # says what is wrong with the pattern
    _check_extra(config.sampling.extra)
    context = config.context
    if (
        context.context_policy in ("compact", "discard_all")
        and context.threshold(limits.window) is None
    ):
        raise ConfigError(
            f"context_policy={context.context_policy!r} does not know when to act: set "
            "shorten_above_tokens, or window"
        )
    least = limits.min_tokens_for_generation + limits.safety_margin
    if limits.window is not None and limits.window <= least:
        raise ConfigError(
            f"window={limits.window} leaves no token to generate beside "
            f"min_tokens_for_generation={limits.min_tokens_for_generation} and "
            f"safety_margin={limits.safety_margin}: raise window or lower those"
        )


def _check_extra(extra: Mapping[str, Any]) -> None:
    """Every trace holds them, in its header: they are JSON, and no secrets."""
    try:
        json.dumps(extra, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as problem:
        raise ConfigError(f"extra, {sorted(extra)}, is not JSON: {problem}") from problem
    if (place := secret_place(extra, "extra")) is not None:
        raise ConfigError(
            f"{place} looks like a secret, and a recipe is written into every trace: give it to "
            "the Lab or the model, Lab(…, api_key=…) or LiteLLMModel(…, extra_headers=…)"
        )


def describe(function: Callable[..., Any] | None) -> dict[str, str] | None:
    """Name and code hash of a function: other code, or other values it holds, is another one."""
    if function is None:
        return None
    name = getattr(function, "__qualname__", type(function).__qualname__)
    module = getattr(function, "__module__", "")
    return {"name": f"{module}.{name}", "code": _code_hash(function)}


def describe_tool(item: ToolItem) -> dict[str, Any]:
    """What a tool is, as JSON."""
    if isinstance(item, Tool):
        return {**item.to_dict(), "fingerprint": item.fingerprint}
    return dict(describe(item) or {})


def _rule(rule: Rule) -> dict[str, str]:
    known = rule in CHAIN
    return {
        "rule": rule.name,
        "level": rule.level,
        **({} if known else {"code": _code_hash(rule.check)}),
    }


def _code_hash(function: Callable[..., Any]) -> str:
    text = json.dumps(code_of(function), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _scorer(scorer: str | Callable[..., Any]) -> Any:
    if isinstance(scorer, ModelGrader):
        return scorer.to_dict()
    return scorer if isinstance(scorer, str) else describe(scorer)


def _model(model: str | ChatModel | None) -> dict[str, Any]:
    if model is None or isinstance(model, str):
        return {"model": model}
    return {"model": model.name, "model_info": dict(model.info)}


_GROUPS = frozenset(part for path in KNOBS.values() for part in path[:-1])


def _short(value: Any) -> str:
    text = value if isinstance(value, str) and len(value) <= 30 else _label(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


def _label(value: Any) -> str:
    """A value's repr; its name where that has an address, which is another in every process."""
    text = repr(value)
    if " at 0x" not in text:
        return text
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_label, value))}]"
    name = getattr(value, "__name__", None) or getattr(value, "name", None)
    return name if isinstance(name, str) else type(value).__name__


def _differences(config: Config) -> dict[str, Any]:
    """The knobs that differ from their defaults, nested."""
    default = type(config)()
    out: dict[str, Any] = {}
    for name in type(config).model_fields:
        value, plain = getattr(config, name), getattr(default, name)
        if isinstance(value, Config):
            if inner := _differences(value):
                out[name] = inner
        elif value != plain:
            out[name] = config.model_dump(mode="json", include={name})[name]
    return out


def _flat(nested: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in nested.items():
        inner = isinstance(value, Mapping) and name in _GROUPS
        out |= _flat(value) if inner else {name: value}
    return out
