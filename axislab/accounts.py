"""The accounts of a Lab: what it spent, ceilings on it, and what runs will take."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from axislab.errors import ConfigError
from axislab.estimate import Arm, Sample, estimate_frame, recorded
from axislab.models.account import Account, Ledger, Spent
from axislab.models.base import ChatModel
from axislab.models.meter import known_price
from axislab.recipe import Recipe
from axislab.tasks import TaskLike, as_task

if TYPE_CHECKING:
    import pandas as pd


class Budget:
    """A ceiling on what a lab spends: made by `lab.budget(…)`, and in force until lifted.

    Used with `with`, it is lifted at the end of the block, and holds beside any other. Called
    plainly, it takes the place of the one that was called plainly before.
    """

    def __init__(self, ledger: Ledger, account: Account) -> None:
        self._ledger = ledger
        self._account = account
        self._former = ledger.stand(account)

    @property
    def tokens(self) -> int | None:
        """The ceiling in tokens, input and output together."""
        return self._account.tokens

    @property
    def usd(self) -> float | None:
        """The ceiling in US dollars."""
        return self._account.usd

    @property
    def spent(self) -> Spent:
        """What was spent under it, and what it leaves."""
        return self._ledger.spent(self._account)

    def lift(self) -> None:
        """Take it off; runs that started under it keep to it."""
        self._ledger.lift(self._account)

    def __enter__(self) -> Self:
        self._ledger.enter(self._account, former=self._former)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.lift()

    def __repr__(self) -> str:
        tokens = None if self.tokens is None else f"{self.tokens:,} tokens"
        usd = None if self.usd is None else f"{self.usd:.4g} USD"
        return f"<Budget {' and '.join(p for p in (tokens, usd) if p)}: {self.spent}>"


class Accounts:
    """What a Lab knows of what it spends; `Lab` is one."""

    model: ChatModel
    folder: Path | None

    def __init__(self) -> None:
        self._ledger = Ledger()

    if TYPE_CHECKING:

        def _model_of(self, recipe: Recipe) -> ChatModel: ...

    @property
    def spent(self) -> Spent:
        """What this lab has spent since it was made, and what its budgets leave.

        `usd` is None as soon as one request used tokens of unknown price; `left_tokens` and
        `left_usd` are None where no budget is in force.

        Examples:
            >>> import axislab as al
            >>> lab = al.Lab(al.ScriptedModel(["4"], usage="estimate"))
            >>> _ = lab.run(al.Recipe().with_(max_turns=2), "2 + 2?")
            >>> lab.spent.requests, lab.spent.usd
            (1, None)
        """
        return self._ledger.spent()

    def budget(self, *, tokens: int | None = None, usd: float | None = None) -> Budget:
        """Set a hard ceiling over everything this lab runs from now on.

        Before each request, its worst case is reserved: the estimate of its prompt plus
        max_output_tokens. The ceiling is as hard as that estimate is good: it is raised for good
        once a provider has counted more, so only first requests can pass it, by what they were off.
        Where that would pass the ceiling nothing is sent, and the run ends FAILED with done_reason
        "budget_exhausted" and error_kind "budget". Where only what other runs have reserved is in
        the way, the request waits for them. `run_many` then starts no more runs.

        What counts is what providers report. A reply without a report counts by its characters; a
        request that was stopped, timed out or came back garbled counts with all it had reserved; a
        refused one counts nothing. Tokens of simulated models are tokens like any other.

        Args:
            tokens: Input and output tokens together.
            usd: US dollars; the price of every model must be known, from litellm's list or
                `Lab(price=…)`.

        Returns:
            The budget: `with lab.budget(tokens=50_000): …` lifts it at the end of the block;
            otherwise it holds until `.lift()` or the next plain `lab.budget(…)`.

        Raises:
            ConfigError: No ceiling, one that is no number above 0, or one in US dollars with a
                model whose price is not known.

        Examples:
            >>> import axislab as al
            >>> lab = al.Lab(al.ScriptedModel(["4"], after="repeat", usage="estimate"))
            >>> recipe = al.Recipe().with_(max_output_tokens=50, max_turns=2)
            >>> with lab.budget(tokens=90) as budget:
            ...     [lab.run(recipe, "2 + 2?").done_reason for _ in range(3)]
            ['assistant_final_answer', 'assistant_final_answer', 'budget_exhausted']
            >>> budget.spent.tokens <= 90
            True
        """
        account = ceiling(tokens=tokens, usd=usd)
        if usd is not None:
            known_price(self.model)
        return Budget(self._ledger, account)

    def estimate(
        self,
        arms: Recipe | Mapping[str, Recipe],
        tasks: Iterable[TaskLike],
        *,
        repeats: int = 1,
        sample: Sample = None,
    ) -> pd.DataFrame:
        """Calls, tokens and US dollars to expect of each arm; nothing is sent or spent.

        Args:
            arms: A recipe, or recipes by arm name.
            tasks: What each will be asked.
            repeats: Runs of each task.
            sample: Recorded runs to go by. None takes all in the lab's folder, a number the
                newest so many of each arm, and runs (say, of a pilot) just these.

        Returns:
            One row an arm:

            ```
            arm            Name of the arm.
            model          Model that will be asked.
            basis          "recorded": runs of the same recipe fingerprint and model;
                           "recorded with NAME": of the recipe, made with another model;
                           "rule of thumb": nothing was recorded.
            recorded_runs  Runs it is based on; stopped and broken ones are left out.
            runs           Runs to be made: tasks times repeats.
            calls          Requests to the model to expect, over all these runs.
            input_tokens   Tokens of their prompts.
            output_tokens  Tokens of their replies.
            usd            US dollars; NA where no price is known.
            cost_missing   Why usd is NA.
            calls_max      Model calls at most, retries apart; NA without max_turns.
            tokens_max     Tokens at most, in and out; NA without a window, if there are tools.
            usd_max        US dollars for that; NA where either is not known.
            method         How the expected figures came about.
            ```

        Raises:
            ConfigError: No recipe, repeats or sample below 1.

        Examples:
            >>> import axislab as al
            >>> lab = al.Lab(al.ScriptedModel(["4"]))
            >>> frame = lab.estimate(al.Recipe(), ["2 + 2?", "3 + 3?"], repeats=5)
            >>> frame.basis.tolist(), frame.calls.tolist()
            (['rule of thumb'], [10])
        """
        named = arms if isinstance(arms, Mapping) else {"": arms}
        for each in named.values():
            if not isinstance(each, Recipe):
                raise ConfigError(f"arms={each!r}: give a Recipe, or a mapping of names to them")
        if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
            raise ConfigError(f"repeats={repeats!r}: give a whole number, 1 or more")
        asked = [as_task(task) for task in tasks]
        crew = [
            Arm(
                name=name or each.name,
                recipe=each,
                model=self._model_of(each),
                tasks=asked,
                repeats=repeats,
            )
            for name, each in named.items()
        ]
        runs = recorded(self.folder, sample=sample)
        return estimate_frame(crew, runs=runs, limit=sample if isinstance(sample, int) else None)


def ceiling(*, tokens: int | None = None, usd: float | None = None) -> Account:
    """An account with a ceiling.

    Raises:
        ConfigError: No ceiling, or one that is no number above 0.
    """
    account = Account(tokens=_whole("tokens", tokens), usd=_dollars("usd", usd))
    if tokens is None and usd is None:
        raise ConfigError("budget() needs a ceiling: tokens=50_000, usd=1.5 or both")
    return account


def _whole(name: str, value: int | None) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    raise ConfigError(f"budget({name}={value!r}): give a whole number, 1 or more")


def _dollars(name: str, value: float | None) -> float | None:
    if value is None:
        return None
    good = isinstance(value, int | float) and not isinstance(value, bool)
    if good and math.isfinite(value) and value > 0:
        return float(value)
    raise ConfigError(f"budget({name}={value!r}): give US dollars, a number above 0")
