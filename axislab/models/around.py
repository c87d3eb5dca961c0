"""What a model that stands before another has in common with it."""

from __future__ import annotations

from axislab.models.base import ChatModel
from axislab.models.estimators import MessageCounter, estimator_for


class Around:
    """A model before another, which goes by its name and counts as it does.

    Args:
        model: Who is asked in the end.
    """

    def __init__(self, model: ChatModel) -> None:
        self.model = model

    @property
    def name(self) -> str:
        """The model's."""
        return self.model.name

    @property
    def simulated(self) -> bool:
        """The model's."""
        return self.model.simulated

    def estimator(self) -> MessageCounter | None:
        """As the model itself counts prompts; None is by characters."""
        return estimator_for(self.model)

    def check(self) -> None:
        """Find what is wrong before the first request.

        Raises:
            ModelError: An unknown model, a missing key.
        """
        self.model.check()
