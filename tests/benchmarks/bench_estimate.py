"""`python -m tests.benchmarks.bench_estimate`: how far the budget estimate is from what is counted.

Runs with tools, growing results and rollbacks, in English and Chinese, against a server that
counts by the model's own vocabulary, or by one that makes 35 % more tokens of the same text.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import axislab as al
from axislab.messages import Message
from axislab.models.tokens import LiteLLMTokenEstimator
from tests.models.token_talks import LANGUAGES, OTHER_VOCABULARY, SENTENCES, counting, talk

SEEDS = 4
FROM_CALL = 3
"""The fourth call."""


@dataclass(frozen=True, slots=True)
class Errors:
    """Relative errors of the estimate, without their sign."""

    first: float
    """Median of the first calls."""
    median: float
    """From the fourth call on, as the next."""
    p90: float
    calls: int


def errors(runs: Iterable[al.Run]) -> Errors:
    """How far the estimates of these runs are off."""
    frame = al.budgets_df(list(runs)).dropna(subset="relative_error")
    size = frame.relative_error.abs()
    later = size[frame.call >= FROM_CALL]
    return Errors(
        first=float(size[frame.call == 0].median()),
        median=float(later.median()),
        p90=float(later.quantile(0.9)),
        calls=len(later),
    )


def measure(
    language: str, *, factor: float = 1.0, seeds: int = SEEDS, window: int | None = 100_000
) -> Errors:
    """Errors of some runs in a language."""
    with counting(factor=factor) as server:
        runs = [talk(server, language, seed=seed, window=window) for seed in range(seeds)]
    for run in runs:
        run.raise_for_status()
    return errors(runs)


def milliseconds_a_message(language: str, *, times: int = 200) -> float:
    """What counting a message of ten sentences takes."""
    estimator = LiteLLMTokenEstimator("openai/gpt-4o")
    text = "\n".join(SENTENCES[language] * 2)
    estimator.count([Message.user(text)])
    start = time.perf_counter()
    for number in range(times):
        estimator.count([Message.tool(f"{number} {text}", tool_call_id="c1")])
    return 1e3 * (time.perf_counter() - start) / times


def main() -> None:
    """Print the errors and what counting costs."""
    print("language  vocabulary  window    first  4th+ median  4th+ p90  calls")
    for language in LANGUAGES:
        for factor, window in ((1.0, 100_000), (1.0, None), (OTHER_VOCABULARY, 100_000)):
            found = measure(language, factor=factor, window=window)
            print(
                f"{language:8}  x {factor:<8.2f}  {window or 'none':>7}  {found.first:6.1%}  "
                f"{found.median:11.1%}  {found.p90:8.1%}  {found.calls:5}"
            )
        print(f"{language:8}  {milliseconds_a_message(language):.3f} ms to count a message")


if __name__ == "__main__":
    main()
