"""Random conversations, in the vocabulary of the axis case files: a config, and one op at a time.

Every choice comes from the `random.Random` that is passed in, so a run can be repeated. Most
operations fit the state; about one in six does not.
"""

import json

from runtime_model import AWAIT, WAITING

DEFAULTS = {
    "system_prompt": "You are S.",
    "user_prompt_template": "Task: {task}",
    "early_stop_prompt": "STOP: answer now without tools.",
    "final_response_prompt": None,
    "max_turns": None,
    "window": None,
    "safety_margin": 0,
    "min_tokens": 0,
    "warning_threshold": None,
    "format_strategy": "reprompt",
    "format_keywords": ["<tool_call>", "</tool_call>"],
    "format_reprompt": "REPROMPT: emit a valid call or go on without tags.",
    "refusal_keywords": [],
    "max_rollbacks": 0,
    "agg_reject": False,
    "max_output_tokens": 20,
    "tools": None,
    "estimator_additive": True,
    "estimator_includes_tools": False,
    "preflight": True,
    "direct_answer_prefix": None,
    "prompt_for_final": True,
    "hook_raises_on": None,
}
CHOICES = {
    "system_prompt": (None, "", "You are S."),
    "user_prompt_template": ("{task}", "Task: {task}\n{{x}}", "no place", "{question}", "{}", "{"),
    "early_stop_prompt": (None, "", "STOP", "S" * 90, "S" * 150),
    "final_response_prompt": (None, "", "WRAP UP", "W" * 60),
    "max_turns": (1, 2, 3, 4, 6),
    "safety_margin": (0, 3, 11),
    "min_tokens": (0, 1, 4, 10, 20),
    "warning_threshold": (None, 1, 5, 20, 30),
    "format_strategy": ("reprompt", "rollback", "ignore"),
    "format_keywords": ([], ["<tool_call>", "", "<tool_call>"], ["</tool_call>", "<tool_call>"]),
    "format_reprompt": ("", "REPROMPT", "STOP"),
    "refusal_keywords": (["I cannot"], ["as a model", "", "I cannot"]),
    "max_rollbacks": (0, 1, 2, 3),
    "agg_reject": (True, False),
    "max_output_tokens": (1, 8, 20),
    "tools": ([], [{"name": "lookup"}], [{"name": "lookup", "parameters": {"type": "object"}}]),
    "estimator_additive": (True, False),
    "estimator_includes_tools": (True, False),
    "preflight": (True, True, False),
    "direct_answer_prefix": (None, "FINAL:"),
    "prompt_for_final": (True, False),
    "hook_raises_on": (None, "boom"),
}
TEXTS = (
    None,
    "",
    "  \n",
    "Elbe",
    "The Elbe, surely.",
    "I cannot help",
    "as a model I cannot",
    "i CANNOT",
    "<tool_call>{}</tool_call>",
    "</tool_call>\n\n  tail " + "word  \n" * 80,
    "FINAL: 42",
    "FINAL:   ",
    "boom",
    "FINAL: boom",
    "I cannot <tool_call>",
    "t" * 70,
)
RESULTS = (None, "", "r", "limit", "limit", "r" * 40, "r" * 130)
REASONS = ("duplicate_query", "tool_error", "token_exhaustion", "context_limit", "because")
PAYLOADS = (
    None,
    "",
    "{",
    "[1]",
    "null",
    "3",
    "{}",
    "[" * 20_000,
    '{"rollback_message_count": true, "reason": "x"}',
    '{"rollback_message_count": "1"}',
    '{"rollback_message_count": 1.0}',
    '{"rollback_message_count": -1}',
    '{"rollback_message_count": 0}',
    '{"rollback_message_count": 1, "reason": 7, "more": []}',
    '{"rollback_message_count": 2}',
    '{"rollback_message_count": ' + "9" * 40 + "}",
    '{"rollback_message_count": NaN}',
    '{"summary": "S", "prefix_len": 1, "compressed_count": true}',
    '{"summary": null, "prefix_len": 1, "compressed_count": 1}',
    '{"summary": "S", "prefix_len": 0, "compressed_count": 1}',
    '{"prefix_len": false}',
    '{"prefix_len": 1}',
    '{"prefix_len": -1}',
)


def random_config(rng):
    """The defaults with some keys set to something else."""
    config = dict(DEFAULTS)
    if rng.random() < 0.6:
        config["window"] = rng.choice((20, 33, 45, 60, 68, 90, 120, 9000))
    for key in rng.sample(sorted(CHOICES), rng.randint(0, 9)):
        config[key] = rng.choice(CHOICES[key])
    if rng.random() < 0.1:
        config |= {"window": 90, "min_tokens": 4, "warning_threshold": 5}
        config["early_stop_prompt"] = "S" * 250  # room for everything but the force prompt
    if config["user_prompt_template"] in ("{question}", "{}", "{") and rng.random() < 0.8:
        config["user_prompt_template"] = "{task}"
    return config


class Source:
    """One operation after the other, each made for the state the model is in."""

    def __init__(self, rng, *, raw_markers=True):
        self.rng = rng
        self.calls = 0
        self.raw_markers = raw_markers

    def op(self, model):
        """The next operation."""
        rng = self.rng
        if model.stage == "not_initialized" and rng.random() < 0.8:
            return {"op": "init", "task": rng.choice(("t", "find the river", ""))}
        if rng.random() < 0.16:
            return self.any_op(model)
        if model.stage == AWAIT:
            name = rng.choice(("tools", "tools", "tools", "rollback_tool_calls"))
        elif model.stage in WAITING:
            other = ("observe", "observe", "budget", "force_finalize_after_error")
            name = rng.choice(("assistant",) * 7 + other)
        else:
            name = rng.choice(("reset", "reset", "replay", "assistant"))
        return getattr(self, name)(model)

    def any_op(self, model):
        """Any operation, whatever the state."""
        names = [
            *("assistant", "tools", "rollback_tool_calls", "observe", "budget", "marker"),
            *("replay", "clone", "set_max_turns", "reopen", "rollback_latest_exchange"),
            *("force_finalize_after_error", "reset_rollback_counter", "init", "marker"),
        ]
        if not self.raw_markers:
            names = [n for n in names if n != "marker"]
        return getattr(self, self.rng.choice(names))(model)

    def init(self, model):
        return {"op": "init", "task": "again"}

    def assistant(self, model):
        rng = self.rng
        op = {"op": "assistant", "content": rng.choice(TEXTS)}
        if rng.random() < 0.45:
            op["tool_calls"] = [self.call() for _ in range(rng.choice((0, 1, 1, 2, 3)))]
        if rng.random() < 0.5:
            op["finish_reason"] = rng.choice(
                (None, "stop", "stop", "length", "tool_calls", "content_filter")
            )
        if rng.random() < 0.04:
            op["role"] = rng.choice(("user", "tool", "system", "ConversationRuntime", "developer"))
        return op

    def call(self):
        self.calls += 1
        name = self.rng.choice(("lookup", "lookup", "search"))
        return {"id": f"c{self.calls}", "name": name, "arguments": {"q": self.calls}}

    def tools(self, model):
        rng = self.rng
        ids = [c["id"] for c in model.pending]
        results = [{"id": i, "content": rng.choice(RESULTS)} for i in ids]
        rng.shuffle(results)
        if rng.random() < 0.08:
            spoilt = rng.choice(("less", "more", "other id", "other role"))
            if spoilt == "less" and results:
                results.pop()
            elif spoilt == "more":
                results.append({"id": "zz", "content": "r"})
            elif results and spoilt == "other id":
                results[0]["id"] = rng.choice(("zz", results[-1]["id"] + "x"))
            elif results:
                results[0]["role"] = rng.choice(("user", "assistant", "function"))
        op = {"op": "tools", "results": results}
        if rng.random() < 0.3:
            op["rejected"] = rng.sample(ids, rng.randint(0, len(ids)))
        if rng.random() < 0.15:
            op["tools_exhausted"] = rng.choice((True, False))
        return op

    def rollback_tool_calls(self, model):
        return {"op": "rollback_tool_calls", "reason": self.rng.choice(REASONS)}

    def rollback_latest_exchange(self, model):
        op = {"op": "rollback_latest_exchange", "reason": self.rng.choice(REASONS)}
        if self.rng.random() < 0.2:
            del op["reason"]
        return op

    def force_finalize_after_error(self, model):
        info = self.rng.choice((None, {}, {"input_tokens": 5000}))
        return {"op": "force_finalize_after_error", "error_info": info}

    def observe(self, model):
        view = self.rng.choice(("current", "current", "current", "stale"))
        return {"op": "observe", "view": view, "n": self.rng.choice((None, 0, -3, 1, 17, 60, 900))}

    def marker(self, model):
        rng, size = self.rng, len(model.visible)
        kind = rng.choice(("compaction", "discard_all", "raw", "raw"))
        if kind == "raw":
            name = rng.choice(("rollback", "rollback", "compaction", "discard_all", "other", None))
            content = rng.choice(PAYLOADS)
            if rng.random() < 0.3:
                content = json.dumps({"rollback_message_count": rng.randint(0, 4)})
            return {"op": "marker", "kind": "raw", "name": name, "content": content}
        at = rng.randint(0, size + 1)
        if kind == "discard_all":
            return {"op": "marker", "kind": kind, "prefix_len": at}
        count = rng.randint(0, max(size - at, 0) + 1)
        summary = rng.choice(("SUMMARY", "", "s" * 50))
        return {
            "op": "marker",
            "kind": kind,
            "summary": summary,
            "prefix_len": at,
            "compressed_count": count,
        }

    def set_max_turns(self, model):
        return {"op": "set_max_turns", "n": self.rng.choice((None, 1, 2, 3, 9))}

    def budget(self, model):
        return {"op": "budget"}

    def replay(self, model):
        return {"op": "replay"}

    def clone(self, model):
        return {"op": "clone"}

    def reopen(self, model):
        return {"op": "reopen"}

    def reset(self, model):
        return {"op": "reset"}

    def reset_rollback_counter(self, model):
        return {"op": "reset_rollback_counter"}
