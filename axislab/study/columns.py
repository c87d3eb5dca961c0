"""What the columns of a study's frames hold: summary and contrasts."""

from __future__ import annotations

from axislab.study.frame import Field
from axislab.study.outcomes import ENDS

LEVEL = 0.95
"""Confidence of intervals."""

_SAID = {
    "answered": "gave an answer of the right form",
    "format_error": "ended with a reply without one",
    "refused": "ended with a refusal",
    "exhausted": "ran out of turns, tokens or context without one",
    "failed": "were broken by an error",
}

SUMMARY: tuple[Field, ...] = (
    Field("arm", "string", "Name of the arm."),
    Field("baseline", "boolean", "Others are compared with it."),
    Field("tasks", "Int64", "Tasks with a counted run: n."),
    Field("clusters", "Int64", "Clusters they form: then they are n; NA if none."),
    Field("repeats", "Int64", "Runs of each task, as planned."),
    Field("runs", "Int64", "Counted runs, the denominator of every share below."),
    Field("planned", "Int64", "Runs of the plan."),
    Field("copies", "Int64", "Runs not counted: copies of others."),
    Field("accuracy", "Float64", "Mean over tasks of the share of right runs."),
    Field("accuracy_low", "Float64", "Lower end of its 95 % interval."),
    Field("accuracy_high", "Float64", "Upper end."),
    Field("accuracy_method", "string", "How the interval was made."),
    Field("judged", "Int64", "Runs whose answer could be judged: the denominator of accuracy."),
    Field("correct", "Int64", "Right ones."),
    Field("accuracy_answered", "Float64", "Right ones among the runs that answered."),
    Field("pass_at_k", "Float64", "At least one of k = `repeats` runs is right, mean over tasks."),
    Field("pass_hat_k", "Float64", "All k are; both NA with one repeat."),
    *(Field(end, "Int64", f"Runs that {_SAID[end]}.") for end in ENDS),
    *(Field(f"{end}_share", "Float64", "Of `runs`.") for end in ENDS),
    *(
        Field(f"{end}_of_unfailed", "Float64", "Of the runs that no error broke.")
        for end in ENDS[:-1]
    ),
    Field("score", "Float64", "Mean score over tasks."),
    Field("turns", "Float64", "Mean turns of a run."),
    Field("rollbacks", "Float64", "Mean rollbacks of a run."),
    Field("requests", "Int64", "Requests, those the reply cache answered included."),
    Field("cached", "Int64", "Requests the reply cache answered: not sent, not paid."),
    Field("shared_requests", "Int64", "Requests of a main loop that arms share."),
    Field("input_tokens", "Int64", "Needed, cached replies included; NA if one is not known."),
    Field("output_tokens", "Int64", "Likewise."),
    Field("cached_tokens", "Int64", "Input the provider read from its own cache; likewise."),
    Field("shared_tokens", "Int64", "Tokens of shared requests, in and out, whoever sent them."),
    Field("own_tokens", "Int64", "Tokens of all others."),
    Field("tokens_per_run", "Float64", "Mean, input and output together."),
    Field("cost_usd", "Float64", "Needed, as if nothing were cached; NA if one is not known."),
    Field("cost_missing", "string", "Why it is NA."),
    Field("cost_per_correct", "Float64", "US dollars for each right run; NA without any."),
    Field("spent_usd", "Float64", "US dollars paid; less than needed where replies were cached."),
    Field("seconds_median", "Float64", "Median seconds of a run."),
    Field("seconds_p90", "Float64", "Nine of ten runs took no longer."),
    Field("simulated", "boolean", "No real language model answered."),
)  # fmt: skip

CONTRASTS: tuple[Field, ...] = (
    Field("arm", "string", "Name of the arm."),
    Field("baseline", "string", "Arm it is held against."),
    Field("metric", "string", "What is compared."),
    Field("kind", "string", "difference, or ratio for amounts: tokens, cost, seconds."),
    Field(
        "difference",
        "Float64",
        "Mean over tasks of arm minus baseline, shares not percent; or ratio.",
    ),
    Field("low", "Float64", "Lower end of the 95 % interval of either."),
    Field("high", "Float64", "Upper end."),
    Field("p", "Float64", "Two-sided p of no difference, by `method`."),
    Field("p_adjusted", "Float64", "p after the correction for several contrasts."),
    Field("correction", "string", "holm or fdr; NA with one contrast."),
    Field("p_exact", "Float64", "McNemar's exact p; NA but for one run a task, right or wrong."),
    Field("method", "string", "The test behind p."),
    Field("interval_method", "string", "How the interval was made."),
    Field("tasks", "Int64", "Tasks that both arms have run: n."),
    Field("clusters", "Int64", "Clusters they form: then they are n; NA if none."),
    Field("runs", "Int64", "Counted runs of the arm on them."),
    Field("baseline_runs", "Int64", "Counted runs of the baseline."),
    Field("better", "Int64", "Tasks on which the arm is better."),
    Field("worse", "Int64", "Tasks on which it is worse."),
    Field("effect_size", "Float64", "Cohen's d_z over tasks."),
    Field("odds_ratio", "Float64", "better / worse; NA where p_exact is."),
    Field("detectable", "Float64", "True difference that so many tasks find 4 times in 5."),
    Field("decisive_n", "Int64", "Tasks that would decide, if the true difference is this one."),
    Field("tokens_ratio", "Float64", "Tokens of the arm over those of the baseline."),
    Field("tokens_low", "Float64", "Lower end of its 95 % interval."),
    Field("tokens_high", "Float64", "Upper end."),
    Field("cost_ratio", "Float64", "Cost over cost; NA where no price is known."),
    Field("cost_low", "Float64", "Lower end of its 95 % interval."),
    Field("cost_high", "Float64", "Upper end."),
    Field("copies", "Int64", "Runs of the two arms not counted: copies of others."),
    Field("verdict", "string", "One sentence."),
    Field("simulated", "boolean", "No real language model answered."),
)
