"""How a model fails: a profile of rates, the presets with their sources, and a fit to traces."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from pydantic import Field

from axislab.config import Config
from axislab.errors import ConfigError, did_you_mean
from axislab.models.sim_fit import RunLike, fit_rates


def _rate() -> Any:
    return Field(0.0, ge=0.0, le=1.0)


class FailureProfile(Config):
    """Rates of failures and habits, each between 0 and 1; a frozen value.

    A rate is a chance per opportunity, the mean over tasks: hard tasks have more, easy ones less.

    Examples:
        >>> FailureProfile.preset("flaky").with_(refuse=0.2).refuse
        0.2
        >>> FailureProfile(name="mine", empty=0.1).rates()
        {'empty': 0.1}
    """

    name: str = "custom"
    """What it is called in traces and figures."""

    slip: float = _rate()
    """Per fact read from a tool's result: another name or number of the context is taken for it."""
    guess: float = _rate()
    """Per final answer without evidence: a name of the context is given instead of "unknown"."""
    refuse: float = _rate()
    """Per reply: declines, for once."""
    refuse_persistent: float = _rate()
    """Per task: declines in every reply of the run."""
    empty: float = _rate()
    """Per reply: nothing at all."""
    cut_by_length: float = _rate()
    """Per reply: breaks off in the middle, with finish reason "length"."""
    text_call_hermes: float = _rate()
    """Per tool call: written as text between <tool_call> tags."""
    text_call_bare: float = _rate()
    """Per tool call: written as text, like a call in a program."""
    text_call_fenced: float = _rate()
    """Per tool call: written as text, as JSON in a code fence."""
    broken_arguments: float = _rate()
    """Per tool call: its arguments are no JSON."""
    misnamed_argument: float = _rate()
    """Per tool call: the name of an argument is misspelt."""
    wrong_tool: float = _rate()
    """Per tool call: the name of a tool that does not exist."""
    repeat_query: float = _rate()
    """Per tool call after another one: asks once more what it has asked already."""
    forget_box: float = _rate()
    """Per final answer that should be boxed: no box."""
    open_box: float = _rate()
    """Per final answer that should be boxed: the box is not closed."""
    rate_limit: float = _rate()
    """Per request: the provider says too many requests."""
    timeout: float = _rate()
    """Per request: no answer in time."""
    context_error: float = _rate()
    """Per request: the provider says that the prompt is too long, whatever its length."""
    truncation_error: float = _rate()
    """Per request after a tool call: the provider says that its arguments were cut off."""
    parallel_calls: float = _rate()
    """Per turn with two things to look up: both in one turn. A habit, no failure."""
    verbosity: float = _rate()
    """Extra words of a reply, as a share of about 400. A habit, no failure."""

    notes: tuple[str, ...] = ()
    """Where the rates come from, and what could not be measured."""

    def rates(self) -> dict[str, float]:
        """The rates that are not 0."""
        return {name: value for name in RATES if (value := float(getattr(self, name))) > 0}

    def rate(self, name: str) -> float:
        """One rate by its name.

        Raises:
            ConfigError: There is no such rate.
        """
        if name not in RATES:
            raise ConfigError(f"{name!r} is no rate: {did_you_mean(name, RATES)}")
        return float(getattr(self, name))

    @staticmethod
    def preset(name: str) -> FailureProfile:
        """One of the presets: clean, flaky, stubborn or verbose; see `PRESET_TABLE`.

        Raises:
            ConfigError: There is no preset of that name.
        """
        return profile(name)

    def with_(self, **changes: Any) -> Self:
        """The same profile with some rates set.

        Raises:
            ConfigError: An unknown name, or a value outside 0..1.
        """
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        if "name" not in changes and changes:
            fields["name"] = f"{self.name}+" if not self.name.endswith("+") else self.name
        return type(self)(**{**fields, **changes})

    @classmethod
    def mix(cls, a: FailureProfile, b: FailureProfile, weight: float = 0.5) -> Self:
        """A profile between two: 0 is `a`, 1 is `b`.

        Raises:
            ConfigError: The weight is outside 0..1.
        """
        if not 0.0 <= weight <= 1.0:
            raise ConfigError(f"weight={weight!r}: a mix needs a weight between 0 and 1")
        rates = {n: (1 - weight) * getattr(a, n) + weight * getattr(b, n) for n in RATES}
        note = f"{1 - weight:g} of {a.name!r} and {weight:g} of {b.name!r}"
        return cls(name=f"{a.name}~{b.name}", notes=(note,), **rates)

    @classmethod
    def from_traces(cls, runs: Iterable[RunLike], *, name: str = "fitted") -> Self:
        """Rates as observed in recorded runs of any model.

        Each is (seen + 0.01) / (opportunities + 1): additive (Laplace) smoothing with one pseudo
        observation at 1 %, so that a failure never seen is rare and not impossible. A rate without
        an opportunity, or one that a trace cannot show, stays 0 and is named in `notes`.

        Args:
            runs: Runs as `load_runs` gives them.
            name: What the profile is called.
        """
        fit = fit_rates(runs)
        return cls(name=name, notes=fit.notes, **fit.rates)


RATES: tuple[str, ...] = tuple(n for n in FailureProfile.model_fields if n not in ("name", "notes"))
"""Names of all rates and habits."""


@dataclass(frozen=True, slots=True)
class RateRow:
    """One line of the table of presets."""

    rate: str
    clean: float
    flaky: float
    stubborn: float
    verbose: float
    source: str
    """Where the numbers come from."""


_CHOSEN = "chosen by us"
_SEEN = (
    "chosen by us; the kind of failure was seen in local runs of SmolLM2-135M (there far more "
    "often), the order of magnitude is what people report of hosted models"
)
_DOCUMENTED = "chosen by us; providers document the error, nobody publishes a rate"

PRESET_TABLE: tuple[RateRow, ...] = (
    RateRow("slip", 0, 0.13, 0.08, 0.09, f"{_CHOSEN}, so that tasks of several hops go wrong"),
    RateRow("guess", 0, 0.5, 0.3, 0.5, _CHOSEN),
    RateRow("refuse", 0, 0.02, 0.06, 0.005, _SEEN),
    RateRow("refuse_persistent", 0, 0, 0.3, 0, f"{_CHOSEN}, to have a failure no retry mends"),
    RateRow("empty", 0, 0.015, 0.01, 0.005, _SEEN),
    RateRow("cut_by_length", 0, 0.006, 0.005, 0.02, _SEEN),
    RateRow("text_call_hermes", 0, 0.02, 0.02, 0.01, _SEEN),
    RateRow("text_call_bare", 0, 0.01, 0.01, 0.005, _SEEN),
    RateRow("text_call_fenced", 0, 0.015, 0.01, 0.01, _SEEN),
    RateRow("broken_arguments", 0, 0.02, 0.01, 0.01, _SEEN),
    RateRow("misnamed_argument", 0, 0.015, 0.01, 0.005, _CHOSEN),
    RateRow("wrong_tool", 0, 0.01, 0.01, 0.005, _CHOSEN),
    RateRow("repeat_query", 0, 0.04, 0.2, 0.04, _SEEN),
    RateRow("forget_box", 0, 0.05, 0.06, 0.06, _CHOSEN),
    RateRow("open_box", 0, 0.01, 0.01, 0.02, _CHOSEN),
    RateRow("rate_limit", 0, 0.01, 0.005, 0.005, _DOCUMENTED),
    RateRow("timeout", 0, 0.004, 0.002, 0.004, _DOCUMENTED),
    RateRow("context_error", 0, 0, 0, 0, "0: a window set on the model gives it a cause"),
    RateRow("truncation_error", 0, 0.002, 0.002, 0.004, _DOCUMENTED),
    RateRow("parallel_calls", 0.3, 0.3, 0.1, 0.3, _CHOSEN),
    RateRow("verbosity", 0, 0.05, 0.05, 0.9, f"{_CHOSEN}, so that verbose fills a context"),
)
"""Every rate of every preset, with its source."""

PRESETS: tuple[str, ...] = ("clean", "flaky", "stubborn", "verbose")
"""Names of the presets."""


def profile(name: str) -> FailureProfile:
    """A preset by its name.

    Raises:
        ConfigError: There is no such preset.
    """
    if name not in PRESETS:
        raise ConfigError(f"{name!r} is no failure profile: {did_you_mean(str(name), PRESETS)}")
    rates = {row.rate: getattr(row, name) for row in PRESET_TABLE}
    return FailureProfile(name=name, notes=("see PRESET_TABLE",), **rates)
