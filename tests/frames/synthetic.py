"""Runs made up event by event, for tests of frames and plots: legal walks, honest counts."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from axislab.events import (
    AnswerTried,
    Event,
    MessageAppended,
    ModelRequested,
    PhaseChanged,
    RunFinished,
    RunStarted,
    StepTaken,
    ToolFinished,
    ToolStarted,
)
from axislab.messages import Message, ToolCall
from axislab.runtime.budget import CharEstimator
from axislab.runtime.markers import Marker, Rollback
from axislab.runtime.stages import STAGE_TO_ACTION, ConversationStage
from axislab.runtime.transcript import Transcript
from axislab.trace.run import Run
from axislab.trace.trace import Record, Trace

S = ConversationStage
START = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


class Story:
    """Writes the trace of one run."""

    def __init__(
        self,
        run_id: str = "r0",
        *,
        task_id: str = "t0",
        arm: str | None = None,
        simulated: bool = True,
        seed: int = 1,
        repeat: int = 0,
        window: int | None = 4000,
        profile: str | None = None,
        metadata: dict | None = None,
        model: str = "axislab/simulated",
    ) -> None:
        self.events: list[tuple[datetime, Event]] = []
        self.now = START
        self.transcript = Transcript(cost=lambda m: CharEstimator().count((m,)))
        self.stage = S.NOT_INITIALIZED
        self.steps = self.turn = self.rollbacks = self.calls = self.tools = 0
        self.window = window
        limit = {
            "window": window,
            "safety_margin": 100,
            "min_tokens_for_generation": 200,
            "warning_threshold": None,
        }
        self.say(
            RunStarted(
                run_id=run_id,
                schema=1,
                axislab_version="0.1.0",
                recipe={
                    "name": "made up",
                    "config": {
                        "conversation": {"context_limit": limit},
                        "sampling": {"max_output_tokens": 600},
                    },
                },
                recipe_fingerprint="abc123",
                task={
                    "id": task_id,
                    "prompt": "What is the capital of Osk?",
                    "expected": "Tal Moor",
                    "metadata": metadata or {"kind": "single", "cluster": "osk"},
                },
                model=model,
                simulated=simulated,
                seed=seed,
                repeat=repeat,
                arm=arm,
                study="s",
                model_info={"profile": profile} if profile else None,
            )
        )

    def say(self, event: Event, *, seconds: float = 0.01) -> None:
        """Emit an event, some time after the last one."""
        self.events.append((self.now, event))
        self.now += timedelta(seconds=seconds)

    def step(
        self,
        operation: str,
        path: list[str],
        messages: list[Message | Marker] = (),
        **fields: object,
    ) -> None:
        """Append messages, then take one step."""
        before = self.transcript.full_count
        for i, item in enumerate(messages):
            message = item if isinstance(item, Message) else item.to_message()
            self.transcript = self.transcript.append_raw(message)
            self.say(MessageAppended(index=before + i, message=message.to_dict(), step=self.steps))
        self.stage = S(path[-1])
        self.say(
            StepTaken(
                step=self.steps,
                operation=operation,
                stage=str(path[-1]),
                action=str(STAGE_TO_ACTION.get(self.stage, "")) or None,
                stage_path=[str(s) for s in path],
                turn=self.turn,
                visible_count=self.transcript.visible_count,
                raw_count=self.transcript.full_count,
                rollback_count=self.rollbacks,
                pending=[],
                estimated_tokens=self.tokens,
                **fields,
            )
        )
        self.steps += 1

    @property
    def tokens(self) -> int:
        """Estimated tokens of the visible list."""
        return self.transcript.visible_cost

    def request(self, *, observed: float | None = 1.1, **fields: object) -> None:
        """One request to the model; `observed` is the true tokens over the estimated ones."""
        estimate = self.tokens
        fields = {"attempt": 1, "outcome": "ok", "latency": 0.5, "output_tokens": 30} | fields
        if fields["outcome"] == "ok" and observed is not None:
            fields.setdefault("input_tokens", int(estimate * observed))
        self.say(
            ModelRequested(
                call=self.calls,
                purpose="main_loop",
                step=self.steps,
                model="axislab/simulated",
                estimated_prompt_tokens=estimate if self.window else None,
                **fields,
            ),
            seconds=0.5,
        )
        self.calls += fields["outcome"] == "ok"

    def tool(self, *, name: str = "search", status: str = "success", **fields: object) -> str:
        """One tool call, run at once; its id."""
        call_id = f"c{self.tools}"
        self.tools += 1
        if status != "rejected":
            self.say(ToolStarted(call_id=call_id, name=name, arguments="{}", step=self.steps))
        fields = {"content": "[d0001] Osk: …", "latency": 0.02} | fields
        self.say(ToolFinished(call_id=call_id, name=name, status=status, step=self.steps, **fields))
        return call_id

    def phase(self, source: str | None, target: str | None, seconds: float | None = None) -> None:
        """The step phase changes."""
        self.say(PhaseChanged(source=source, target=target, seconds=seconds))

    def begin(self, *, system: bool = True) -> None:
        """Initialise the conversation."""
        path = [S.NOT_INITIALIZED, *([S.SYSTEM_MESSAGE_SET] if system else []), S.INITIAL_USER]
        first = [Message.system("You are a helpful agent.")] if system else []
        self.step("initialize", path, [*first, Message.user("What is the capital of Osk?")])

    def finish(self, *, status: str = "COMPLETED", **fields: object) -> None:
        """The last event, after the answer stage has looked at the last reply."""
        self.say(
            AnswerTried(
                try_number=0, number=1, of=1, purpose="main_loop", outcome="ok", step=self.steps
            )
        )
        self.say(
            RunFinished(
                status=status,
                **{"done_reason": "assistant_final_answer", "output": "Tal Moor"} | fields,
                steps=self.steps,
                turns=self.turn,
                seconds=(self.now - START).total_seconds(),
            )
        )

    def trace(self) -> Trace:
        """The trace so far."""
        return Trace(
            Record(i, when.isoformat().replace("+00:00", "Z"), event.kind, event.payload())
            for i, (when, event) in enumerate(self.events)
        )

    def run(self) -> Run:
        """The run so far."""
        return Run(self.trace())

    def write(self, folder: Path) -> Path:
        """The same as a file."""
        trace = self.trace()
        path = folder / f"{trace.header['run_id']}.jsonl"
        lines = (
            json.dumps({"seq": r.seq, "time": r.time, "kind": r.kind, **r.data})
            for r in trace.records
        )
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path


def call(call_id: str, name: str = "search") -> ToolCall:
    """A tool call."""
    return ToolCall(id=call_id, name=name, arguments='{"query": "Osk"}')


REASONS = ("assistant_refusal", "format_error", "empty_reply")


class Walk(Story):
    """A run that wanders through the stages as a real one may."""

    def __init__(self, rng: Random, *, max_turns: int = 12, trouble: float = 1.0, **header) -> None:
        super().__init__(**header)
        self.rng, self.max_turns, self.trouble = rng, max_turns, trouble
        self.ends: dict[str, object] = {}

    def go(self) -> Walk:
        """Play it to the end."""
        self.begin(system=self.chance(0.93))
        while STAGE_TO_ACTION[self.stage] != "done":
            if self.stage == S.TOOL_CALLS:
                self.run_tools()
            else:
                self.reply()
        self.finish(**self.ends)
        return self

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def bad(self, p: float) -> bool:
        return self.chance(p * self.trouble)

    def reply(self) -> None:
        if self.bad(0.04):
            self.request(outcome="rate_limit", output_tokens=None, error="too many requests")
        self.phase("OBSERVING", "THINKING", 0.01)
        self.request(observed=self.rng.uniform(0.9, 1.35), attempt=1)
        self.phase("THINKING", "TOOL_CALLING", self.rng.uniform(0.3, 0.9))
        if self.stage == S.FORCE_FINAL:
            self.forced()
        elif self.bad(0.02):
            self.end(S.TOKEN_EXCEEDED, "L1", "terminated_token_exceed")
        elif self.stage == S.FINAL_PROMPT:
            self.end(S.COMPLETED, "L7", "assistant_final_answer")
        elif self.rollbacks < 3 and self.bad(0.14):
            self.roll_back(self.rng.choice(REASONS))
        elif self.bad(0.05):
            self.reprompt()
        elif self.chance(0.78):
            self.call_tools()
        else:
            self.answer()

    def forced(self) -> None:
        if self.bad(0.12):
            self.end(S.CALLS_REJECTED, "L2", "assistant_tool_calls_rejected")
        else:
            self.end(S.FORCE_COMPLETED, "L2", "terminated_turn_limit")

    def end(self, stage: S, rule: str, reason: str) -> None:
        self.turn += 1
        right = self.chance(0.7) if stage in (S.COMPLETED, S.FORCE_COMPLETED) else None
        answer = None if right is None else "Tal Moor" if right else "Port Osk"
        self.ends = {
            "done_reason": reason,
            "answer": answer,
            "answer_status": "ok" if answer else "no_answer",
            "correct": right,
        }
        path = [self.stage, S.RECEIVED, stage]
        self.step(
            "assistant",
            path,
            [Message.assistant(answer)],
            rule=rule,
            level=rule,
            done_reason=reason,
        )

    def roll_back(self, reason: str) -> None:
        self.rollbacks += 1
        target = S.INITIAL_USER if self.stage == S.INITIAL_USER else S.TOOL_MESSAGES
        self.step(
            "assistant",
            [self.stage, S.RECEIVED, S.ROLLBACK, target],
            [Message.assistant("I cannot help with that. " * 4), Rollback(1, reason)],
            rule=reason,
            level="L4a",
            rollback_reason=reason,
            rollback_message_count=1,
        )

    def reprompt(self) -> None:
        self.turn += 1
        said = Message.assistant("<tool_call>search</tool_call>")
        path = [self.stage, S.RECEIVED, S.REPROMPT, *self.maybe_force()]
        asked = [said, Message.user("Send the call again.")]
        self.step("assistant", path, asked, rule="format_error", level="L4b", **self.trigger(path))

    def maybe_force(self) -> list[S]:
        return [S.FORCE_FINAL] if self.turn + 1 >= self.max_turns else []

    @staticmethod
    def trigger(path: list[S], why: str = "turn_limit") -> dict[str, str]:
        return {"finalization_trigger": why} if path[-1] == S.FORCE_FINAL else {}

    def call_tools(self) -> None:
        self.turn += 1
        said = Message.assistant("Let me look.", [call(f"c{self.tools}")])
        path = [self.stage, S.RECEIVED, S.TOOL_CALLS]
        self.step("assistant", path, [said], rule="tool_calls", level="L3")

    def run_tools(self) -> None:
        if self.rollbacks < 3 and self.bad(0.12):
            self.turn, self.rollbacks = self.turn - 1, self.rollbacks + 1
            reason = self.rng.choice(("duplicate_query", "tool_error"))
            path = [S.TOOL_CALLS, S.ROLLBACK, S.TOOL_MESSAGES]
            self.step(
                "rollback_tool_calls",
                path,
                [Rollback(1, reason)],
                rollback_reason=reason,
                rollback_message_count=1,
            )
            return
        status = "failed" if self.bad(0.1) else "success"
        call_id = self.tool(name=self.rng.choice(("search", "read")), status=status)
        self.phase("TOOL_CALLING", "OBSERVING", 0.02)
        self.rollbacks = 0 if status == "success" else self.rollbacks
        result = Message.tool(
            "Osk is a land of hills. " * self.rng.randint(20, 80), tool_call_id=call_id
        )
        full = self.window and self.tokens > self.window - 900
        messages, path = [result], [S.TOOL_CALLS, S.TOOL_MESSAGES]
        fields: dict[str, object] = {}
        if full:
            messages.append(Rollback(2, "context_limit"))
            path += [S.CONTEXT_ROLLBACK, S.FORCE_FINAL]
            fields = {
                "rollback_reason": "context_limit",
                "rollback_message_count": 2,
                "finalization_trigger": "context_limit",
            }
        elif self.bad(0.02):
            path += [S.FORCE_FINAL]
            fields = {"finalization_trigger": "tools_exhausted"}
        else:
            path += self.maybe_force()
            fields = self.trigger(path)
        if path[-1] == S.FORCE_FINAL:
            messages.append(Message.user("Give your final answer now."))
        self.step("tools", path, messages, **fields)

    def answer(self) -> None:
        if self.chance(0.5):
            self.turn += 1
            path = [self.stage, S.RECEIVED, S.FINAL_PROMPT, *self.maybe_force()]
            said = [Message.assistant("It is Tal Moor."), Message.user("Summarise.")]
            fields = self.trigger(path)
            self.step("assistant", path, said, rule="final_prompt", level="L6", **fields)
        else:
            self.end(S.COMPLETED, self.rng.choice(("L5", "L7")), "assistant_final_answer")


def walk(i: int, *, seed: int = 7, **options: object) -> Run:
    """A made-up run, always the same for the same number and seed."""
    return Walk(Random(f"{seed}/{i}"), **{"run_id": f"r{i:04d}", "seed": i} | options).go().run()


def walks(n: int, *, seed: int = 7, **options: object) -> list[Run]:
    """Many of them."""
    return [walk(i, seed=seed, **{"task_id": f"t{i}"} | options) for i in range(n)]
