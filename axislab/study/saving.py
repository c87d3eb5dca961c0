"""What a main loop that arms share saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from axislab.study.outcomes import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """Model calls that were not made, because another arm had made them."""

    calls: int
    """Calls not made."""
    of: int
    """Calls that separate main loops would have made."""

    @property
    def share(self) -> float:
        """Of all calls, those not made."""
        return self.calls / self.of if self.of else 0.0

    def __str__(self) -> str:
        return f"{self.calls:,} of {self.of:,} calls not made ({100 * self.share:.0f} %)"


def saving_of(outcomes: Sequence[Outcome]) -> Saving:
    """What was saved over some runs."""
    return Saving(
        calls=sum(outcome.given_requests for outcome in outcomes),
        of=sum(outcome.requests for outcome in outcomes),
    )
