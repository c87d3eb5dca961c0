"""A second, naive reading of the behaviour: plain lists, no sharing, one method per operation.

It exists to be compared with the runtime on random operations, in the vocabulary of the axis case
files. It copies its whole state before every operation and puts it back when one is refused.
"""

import copy
import json

INIT = "initial_user_message_await_assistant"
TOOLS = "tool_messages_await_assistant"
RECV = "assistant_message_received"
AWAIT = "assistant_tool_calls_await_tool"
FINALP = "final_response_prompt_await_assistant"
REPR = "tool_call_format_error_prompt_await_assistant"
ROLLB = "assistant_message_rollback"
CTXRB = "context_limit_rollback"
FORCE = "force_final_await_assistant"
DONE = "assistant_completed"
FDONE = "assistant_force_completed"
REJ = "assistant_tool_calls_rejected_force_final"
TOKX = "assistant_terminated_token_exceed"

WAITING = (INIT, TOOLS, FINALP, REPR, FORCE)
ENDED = (DONE, FDONE, REJ, TOKX)
FIRST_ELEVEN = (
    "estimated_prompt_tokens",
    "reserved_output_tokens",
    "context_safety_margin",
    "estimated_total_tokens",
    "remaining_tokens",
    "min_tokens_for_generation",
    "context_warning_threshold",
    "context_window",
    "hard_stop",
    "needs_final_warning",
    "exceeds_context",
)


class Refused(Exception):
    """The operation is not possible; the model puts its old state back."""


def message(role, content, **more):
    return {"role": role, "content": content, "calls": [], "for": None, "name": None} | more


def tokens(m):
    return 4 + len(m["content"] or "") // 4 + 8 * len(m["calls"])


def short(text):
    line = " ".join(text.split())
    return line[:240] + "…" if len(line) > 240 else line


class Model:
    """One conversation; `run(op)` gives the record the runtime must give too."""

    def __init__(self, config):
        self.c = {k: None if v == "" and k.endswith("_prompt") else v for k, v in config.items()}
        self.max_turns = config["max_turns"]
        self.clear()

    def clear(self):
        self.full, self.visible = [], []
        self.stage, self.turns, self.rollbacks = "not_initialized", 0, 0
        self.pending, self.received_in = [], INIT
        self.trigger, self.prompted = None, False
        self.ratio, self.anchor = 1.0, None
        self.path, self.appended = [], []

    def run(self, op):
        before = copy.deepcopy(self.__dict__)
        self.path, self.appended = [self.stage], []
        try:
            got = getattr(self, "op_" + op["op"])(op)
        except Refused:
            self.__dict__ = before
            return {"raised": True} | self.state()
        record = got if isinstance(got, dict) else {}
        if "info" in record:
            record["info"] = self.dressed(record["info"])
            record |= {
                "stage_path": self.path,
                "appended": self.appended,
                "done_reason": self.done_reason(),
            }
        return record | self.state()

    def state(self):
        return {
            "stage": self.stage,
            "visible": copy.deepcopy(self.visible),
            "raw_count": len(self.full),
            "turn_idx": self.turns,
            "rollback_count": self.rollbacks,
            "pending": [c["id"] for c in self.pending],
            "ratio": self.ratio,
            "estimate": self.estimate(),
        }

    def dressed(self, info):
        out = dict(info)
        if self.stage == FORCE:
            out["force_finalize_stage"] = FORCE
        if self.stage in (FORCE, FDONE, REJ, DONE) and self.trigger:
            out.setdefault("finalization_trigger", self.trigger)
        return out

    def done_reason(self):
        return {
            DONE: "assistant_final_answer",
            FDONE: f"terminated_{self.trigger}",
            REJ: "assistant_tool_calls_rejected_due_to_force_finalization",
            TOKX: "terminated_token_exceed",
        }.get(self.stage)

    # What every operation is made of

    def need(self, condition):
        if not condition:
            raise Refused

    def add(self, m):
        self.need(self.full or m["role"] in ("system", "user"))
        self.full.append(m)
        self.appended.append(m)
        if m["role"] == "ConversationRuntime":
            self.apply_marker(m)
        else:
            self.visible.append(m)

    def go(self, *stages):
        self.path += stages
        self.stage = stages[-1]

    def hide(self, count, reason):
        payload = json.dumps({"rollback_message_count": count, "reason": reason})
        self.add(message("ConversationRuntime", payload, name="rollback"))

    def apply_marker(self, m):
        try:
            payload = json.loads(m["content"] or "")
        except (ValueError, RecursionError):
            return
        if not isinstance(payload, dict):
            return

        def number(key):
            value = payload.get(key)
            return value if type(value) is int and value >= 0 else None

        if m["name"] == "rollback":
            self.drop(number("rollback_message_count") or 0)
        elif m["name"] == "compaction":
            self.compact(payload.get("summary"), number("prefix_len"), number("compressed_count"))
        elif m["name"] == "discard_all":
            at = number("prefix_len")
            if at is not None and at <= len(self.visible):
                self.visible = self.visible[:at]
                self.anchor = None

    def drop(self, count):
        for _ in range(min(count, len(self.visible))):
            if self.visible[-1]["role"] == "system":
                break
            self.visible.pop()
        if self.anchor and len(self.visible) < self.anchor[0]:
            self.anchor = None

    def compact(self, summary, at, count):
        if at is None or not count or type(summary) is not str:
            return
        if at + count <= len(self.visible):
            self.visible[at : at + count] = [message("assistant", summary)]
            self.anchor = None

    # Budget

    def probe(self):
        if self.c["tools"] and not self.c["estimator_includes_tools"]:
            return [message("user", str(self.c["tools"]))]
        return []

    def raw(self, *extra):
        return sum(map(tokens, [*self.visible, *extra, *self.probe()]))

    def estimate(self, *extra):
        raw = self.raw(*extra)
        if not self.c["estimator_additive"]:
            return raw
        if self.anchor and raw >= self.anchor[1]:
            return self.anchor[2] + int((raw - self.anchor[1]) * self.ratio)
        return int(raw * self.ratio)

    def threshold(self):
        return self.c["warning_threshold"] or self.c["max_output_tokens"]

    def generation(self):
        window, least = self.c["window"], self.c["min_tokens"]
        threshold, margin = self.threshold(), self.c["safety_margin"]
        if window is None:
            prompt = total = 0
            remaining, hard, warn, reserved = None, False, False, self.c["max_output_tokens"]
        else:
            prompt = self.estimate()
            total = prompt + threshold + margin
            remaining, reserved = window - prompt - margin, threshold
            hard = least > 0 and remaining < least
            warn = not hard and remaining < threshold
        values = (prompt, reserved, margin, total, remaining, least, threshold, window)
        return dict(zip(FIRST_ELEVEN, (*values, hard, warn, hard or warn), strict=True))

    def fit(self):
        prompt = self.force_prompt()
        if self.c["window"] is None or prompt is None:
            total, remaining = 0, None
        else:
            total = self.estimate(message("user", prompt))
            remaining = self.c["window"] - total - self.c["safety_margin"]
        return {
            "estimated_prompt_with_warning_tokens": total,
            "warning_remaining_tokens": remaining,
            "warning_prompt_fits": remaining is None or remaining > 0,
        }

    def with_prompt(self):
        record = self.generation() | self.fit()
        total = record["estimated_prompt_with_warning_tokens"]
        record["estimated_total_tokens"] = max(
            record["estimated_total_tokens"],
            total + self.threshold() + self.c["safety_margin"],
        )
        remaining = record["warning_remaining_tokens"]
        if remaining is not None and remaining < self.threshold():
            record["needs_final_warning"] = True
        record["exceeds_context"] = record["hard_stop"] or record["needs_final_warning"]
        return record

    def checked(self):
        return self.c["preflight"] and self.c["window"] is not None

    # Finalization

    def force_prompt(self):
        parts = [self.c["early_stop_prompt"], self.c["final_response_prompt"]]
        return "\n\n".join(p for p in parts if p) or None

    def force(self, trigger):
        prompt = self.force_prompt()
        if prompt:
            self.add(message("user", prompt))
        self.trigger, self.prompted = trigger, bool(prompt)
        self.go(FORCE)
        return {"finalization_trigger": trigger, "has_early_stop_prompt": bool(prompt)}

    def turn_limit(self):
        if self.max_turns is not None and self.turns + 1 >= self.max_turns:
            return self.force("turn_limit")
        return {}

    def stop(self, record):
        self.go(TOKX)
        return {
            "finalization_trigger": "context_limit",
            "context_limit_estimate": record,
            "context_budget_stop": True,
        }

    def last_exchange(self):
        for count, m in enumerate(reversed(self.visible), 1):
            if m["role"] == "system":
                return 0
            if m["role"] == "assistant":
                return count
        return 0

    def finalize(self, record, count):
        if count:
            self.hide(count, "context_limit")
            self.go(CTXRB)
        least = self.c["min_tokens"]
        if self.c["preflight"]:
            fit = self.fit()
            remaining = fit["warning_remaining_tokens"]
            if remaining is not None and remaining < least:
                fit["warning_prompt_fits"] = False
        else:
            fit = {
                "estimated_prompt_with_warning_tokens": 0,
                "warning_remaining_tokens": None,
                "warning_prompt_fits": True,
            }
        record = record | fit
        if least > 0 and not fit["warning_prompt_fits"]:
            return self.stop(record) | {"rollback_message_count": count}
        info = self.force("context_limit")
        return info | {"rollback_message_count": count, "context_limit_estimate": record}

    # Operations

    def op_init(self, op):
        self.need(not self.full)
        if self.c["system_prompt"]:
            self.add(message("system", self.c["system_prompt"]))
            self.go("system_message_set")
        try:
            text = self.c["user_prompt_template"].format(task=op["task"])
        except (KeyError, IndexError, ValueError):
            raise Refused from None
        self.add(message("user", text))
        self.go(INIT)
        return {"info": self.turn_limit()}

    def op_assistant(self, op):
        self.need(op.get("role", "assistant") == "assistant")
        self.need(self.stage in WAITING)
        prior = self.received_in = self.stage
        calls = op.get("tool_calls") or []
        self.add(message("assistant", op.get("content"), calls=calls))
        self.turns += 1
        self.go(RECV)
        return {"info": self.judge(prior, op.get("content") or "", calls, op.get("finish_reason"))}

    def judge(self, prior, text, calls, finish):
        if finish == "length" and not text and not calls:
            self.go(TOKX)
            return {}
        if prior == FORCE:
            if calls:
                self.go(REJ)
                return {"tool_request_count": len(calls)}
            self.go(FDONE if self.prompted else DONE)
            return {}
        if finish == "length":
            return self.cut(text)
        if self.checked() and self.c["min_tokens"] > 0:
            record = self.generation()
            if record["exceeds_context"] and not self.ends_here(prior, text, calls):
                if record["hard_stop"]:
                    return self.stop(record)
                return self.finalize(record, 1 if calls else 0)
        if calls:
            self.pending = calls
            self.go(AWAIT)
            return {"tool_request_count": len(calls)}
        return self.judge_text(prior, text)

    def cut(self, text):
        answer = self.hook(text)
        if answer is None:
            self.go(TOKX)
            return {"finish_reason": "length", "token_exhaustion_had_content": bool(text)}
        return self.direct(answer) | {"finish_reason": "length"}

    def ends_here(self, prior, text, calls):
        if calls or not text.strip():
            return False
        trial = copy.deepcopy(self)
        trial.judge_text(prior, text)
        return trial.stage == DONE

    def judge_text(self, prior, text):
        if prior != FINALP:
            may = self.rollbacks < self.c["max_rollbacks"]
            refusals = [k for k in self.c["refusal_keywords"] if k and k in text]
            if may and refusals:
                return self.undo("assistant_refusal", prior) | {"refusal_keywords": refusals}
            strategy = self.c["format_strategy"]
            tags = [k for k in self.c["format_keywords"] if k and k in text]
            if tags and (strategy == "reprompt" or (strategy == "rollback" and may)):
                info = {
                    "wrong_tool_call_format_keywords": tags,
                    "format_error_strategy": strategy,
                    "offending_content_preview": short(text),
                    "offending_content_length": len(text),
                }
                if strategy == "rollback":
                    return info | self.undo("format_error", prior)
                self.add(message("user", self.c["format_reprompt"]))
                self.go(REPR)
                return info | self.turn_limit()
            answer = self.hook(text)
            if answer is not None:
                return self.direct(answer)
            if self.c["final_response_prompt"] and self.c["prompt_for_final"]:
                self.rollbacks = 0
                self.add(message("user", self.c["final_response_prompt"]))
                self.go(FINALP)
                return self.turn_limit()
        self.rollbacks = 0
        self.go(DONE)
        return {}

    def hook(self, text):
        raises, prefix = self.c["hook_raises_on"], self.c["direct_answer_prefix"]
        self.need(raises is None or raises not in text)
        if prefix is None or not text.startswith(prefix):
            return None
        return text[len(prefix) :].strip() or None

    def direct(self, answer):
        self.rollbacks = 0
        self.go(DONE)
        return {"direct_final_answer": answer, "direct_final_answer_preview": short(answer)}

    def undo(self, reason, target):
        self.rollbacks += 1
        self.turns -= 1
        self.hide(1, reason)
        self.go(ROLLB, target)
        return {"assistant_rollback_count": self.rollbacks, "rollback_reason": reason}

    def op_tools(self, op):
        results = op["results"]
        self.need(len(results) == len(self.pending))
        self.need({r["id"] for r in results} == {c["id"] for c in self.pending})
        self.need(results)
        self.need(all(r.get("role", "tool") == "tool" for r in results))
        self.need(self.stage == AWAIT)
        names = {c["id"]: c["name"] for c in self.pending}
        rows = [
            message("tool", r["content"], **{"for": r["id"], "name": names[r["id"]]})
            for r in results
        ]
        if self.c["agg_reject"]:
            rows = self.merged(rows, set(op.get("rejected") or ()))
        for m in rows:
            self.add(m)
        self.pending = []
        self.go(TOOLS)
        if op.get("tools_exhausted"):
            return {"info": self.force("tools_exhausted") | {"tools_exhausted": True}}
        info = self.room_after_tools() if self.checked() else None
        return {"info": self.turn_limit() if info is None else info}

    def merged(self, rows, rejected):
        kept = [m for m in rows if m["for"] not in rejected]
        groups = {}
        for m in rows:
            if m["for"] in rejected:
                groups.setdefault(m["content"], []).append(m)
        for content, group in groups.items():
            ids = ",".join(m["for"] for m in group)
            names = ",".join(sorted({m["name"] for m in group}))
            kept.append(message("tool", content, **{"for": ids, "name": names}))
        return kept

    def room_after_tools(self):
        if self.c["min_tokens"] > 0:
            record = self.generation()
            if record["hard_stop"]:
                return self.stop(record)
            if record["needs_final_warning"]:
                return self.finalize(record, self.last_exchange())
        record = self.with_prompt()
        if record["needs_final_warning"] or not record["warning_prompt_fits"]:
            return self.finalize(record, self.last_exchange())
        return None

    def op_rollback_tool_calls(self, op):
        self.need(self.stage == AWAIT)
        if self.rollbacks >= self.c["max_rollbacks"]:
            return {"returned_none": True}
        self.pending = []
        return {"returned_none": False, "info": self.undo(op["reason"], self.received_in)}

    def op_reset_rollback_counter(self, op):
        self.rollbacks = 0

    def op_rollback_latest_exchange(self, op):
        self.need(self.stage in WAITING)
        reason = op.get("reason", "token_exhaustion")
        tail = list(reversed(self.visible))
        count = 0
        if tail and tail[0]["role"] == "user" and tail[0]["content"] == self.force_prompt():
            count = 1
        results = 0
        while count + results < len(tail) and tail[count + results]["role"] == "tool":
            results += 1
        count += results
        found = results and count < len(tail) and tail[count]["role"] == "assistant"
        if not found or not tail[count]["calls"] or self.stage not in (TOOLS, FORCE):
            return {"returned_none": True}
        self.hide(count + 1, reason)
        self.go(CTXRB)
        info = self.force("context_limit") | {
            "rollback_message_count": count + 1,
            "rollback_reason": reason,
            "force_finalization_recovery": True,
        }
        if reason == "token_exhaustion":
            info["token_exhaustion_recovery"] = True
        if reason == "context_limit":
            info["context_limit_error_recovery"] = True
        return {"returned_none": False, "info": info}

    def op_force_finalize_after_error(self, op):
        self.need(self.stage in WAITING)
        if self.c["preflight"]:
            record = self.with_prompt()
        else:
            record = self.generation() | {
                "estimated_prompt_tokens": 0,
                "reserved_output_tokens": self.c["max_output_tokens"],
                "estimated_total_tokens": 0,
                "remaining_tokens": None,
                "hard_stop": False,
                "needs_final_warning": False,
                "exceeds_context": True,
                "estimated_prompt_with_warning_tokens": 0,
                "warning_remaining_tokens": None,
                "warning_prompt_fits": True,
                "context_limit_detection": "provider_error",
            }
        if op.get("error_info"):
            record["provider_error"] = op["error_info"]
        if self.stage == FORCE:
            info = {
                "finalization_trigger": "context_limit",
                "context_limit_estimate": record,
                "context_limit_error_during_force_final": True,
            }
            return {"info": info}
        count = self.last_exchange() if self.stage == TOOLS else 0
        return {"info": self.finalize(record, count)}

    def op_observe(self, op):
        n, current = op["n"], op["view"] == "current" or not self.visible
        additive = self.c["estimator_additive"] and not self.c["estimator_includes_tools"]
        if n and n > 0 and self.checked() and additive and current and self.raw():
            step = min(max(n / self.raw(), 0.25), 4)
            self.anchor = (len(self.visible), self.raw(), n)
            self.ratio = 0.8 * self.ratio + 0.2 * step

    def op_marker(self, op):
        if op["kind"] == "raw":
            name, content = op["name"], op["content"]
        else:
            name = op["kind"]
            content = json.dumps({k: v for k, v in op.items() if k not in ("op", "kind")})
        self.add(message("ConversationRuntime", content, name=name))

    def op_replay(self, op):
        return {"replay_equals_live": True}

    def op_clone(self, op):
        self.__dict__ = copy.deepcopy(self.__dict__)

    def op_set_max_turns(self, op):
        self.max_turns = op["n"]

    def op_budget(self, op):
        return {"budget": self.with_prompt()}

    def op_reopen(self, op):
        self.need(self.stage in WAITING or self.stage == AWAIT)
        self.pending, self.rollbacks = [], 0
        self.trigger, self.prompted, self.stage = None, False, INIT

    def op_reset(self, op):
        self.clear()
