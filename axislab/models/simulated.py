"""The simulated agent: it works with the tools it is given and knows nothing.

A reply is a function of the request alone. The agent takes the question from the visible prompts,
the facts from the visible results of tools, and fails in the ways and at the rates of a
`FailureProfile`. It reads no file, keeps no state between calls, and is never told what is right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

from axislab.errors import ConfigError, did_you_mean
from axislab.models.base import ModelReply, ModelRequest
from axislab.models.faults import PRESETS, FailureProfile
from axislab.models.faults import profile as preset
from axislab.models.sim_tokens import SimTokenEstimator
from axislab.models.sim_turn import Turn

PROVIDER = "axislab"
"""Provider part of the model's name."""
BASE_NAME = f"{PROVIDER}/simulated"
"""Name of the simulated model; `-clean`, `-stubborn` and so on choose a preset."""
DEFAULT_PROFILE = "flaky"


class SimulatedModel:
    """A `ChatModel` without a language model.

    Args:
        profile: How it fails: a preset's name or a `FailureProfile`.
        coupling: Whether the arms of a study draw independently, as on a real provider, or share
            their draws ("common": for debugging). The maker of draw keys reads it.
        name: What the model is called in traces.
        window: Tokens its context holds; longer requests get a context error. None: no bound.
        latency: Seconds a reply takes.

    Raises:
        ConfigError: An unknown profile or coupling.

    Examples:
        >>> SimulatedModel("clean").simulated
        True
    """

    simulated: Literal[True] = True

    def __init__(
        self,
        profile: str | FailureProfile = DEFAULT_PROFILE,
        *,
        coupling: str = "independent",
        name: str = BASE_NAME,
        window: int | None = None,
        latency: float = 0.0,
    ) -> None:
        if coupling not in ("independent", "common"):
            raise ConfigError(
                f"coupling={coupling!r}: {did_you_mean(str(coupling), ['independent', 'common'])}"
            )
        self._profile = profile if isinstance(profile, FailureProfile) else preset(profile)
        self._coupling = coupling
        self._name = name
        self._window = window
        self._latency = latency

    def __repr__(self) -> str:
        shared = ", draws shared by all arms" if self._coupling == "common" else ""
        return f"<SimulatedModel {self._name} profile={self._profile.name} (simulated{shared})>"

    @property
    def name(self) -> str:
        """Name in traces."""
        return self._name

    @property
    def profile(self) -> FailureProfile:
        """How it fails."""
        return self._profile

    @property
    def coupling(self) -> str:
        """Whether arms of a study share their draws."""
        return self._coupling

    @property
    def info(self) -> Mapping[str, Any]:
        """Profile and rates, for the header of a trace."""
        out: dict[str, Any] = {"profile": self._profile.name, "rates": self._profile.rates()}
        if self._coupling != "independent":
            out["coupling"] = self._coupling
        if self._window is not None:
            out["window"] = self._window
        return out

    def estimator(self) -> SimTokenEstimator:
        """Counts prompts as this provider does."""
        return SimTokenEstimator()

    def check(self) -> None:
        """Nothing can be wrong before the first request."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request.

        Raises:
            ModelError: The profile, or the window, made the provider fail.
        """
        if self._latency:
            await asyncio.sleep(self._latency)
        return self.reply(request)

    def reply(self, request: ModelRequest) -> ModelReply:
        """The same without waiting: a pure function of the request.

        Raises:
            ModelError: The profile, or the window, made the provider fail.
        """
        return Turn(self._profile, request, window=self._window, model=self._name).reply()


def simulated_model(name: str, **options: Any) -> SimulatedModel:
    """The simulated model of a name: `axislab/simulated`, or `axislab/simulated-<preset>`.

    Raises:
        ConfigError: No such preset, or another provider's name.
    """
    if name == BASE_NAME:
        return SimulatedModel(name=name, **options)
    names = [f"{BASE_NAME}-{p}" for p in PRESETS]
    if name not in names:
        raise ConfigError(
            f"{name!r} is no simulated model: {did_you_mean(name, [BASE_NAME, *names])}"
        )
    return SimulatedModel(name.removeprefix(f"{BASE_NAME}-"), name=name, **options)
