"""Keys of the simulated provider's draws: one for each request of a run."""

from __future__ import annotations

from axislab.runtime.transcript import View


class DrawKeys:
    """Makes the key of every request, counting how often the very same was sent before.

    Args:
        run: The part that all requests of the run share.
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self._sent: dict[int, _Sent] = {}

    def of(self, view: View, purpose: str) -> str:
        """The key of the next request; how many calls there may be is no part of it."""
        sent = self._sent.setdefault(view.key, _Sent(view))
        sent.times += 1
        return f"{self.run}:{purpose.partition('/')[0]}:{sent.times}"


class _Sent:
    """How often a request was sent; holding the view keeps its key its own."""

    __slots__ = ("times", "view")

    def __init__(self, view: object) -> None:
        self.view = view
        self.times = 0
