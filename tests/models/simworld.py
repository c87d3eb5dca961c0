"""A tiny closed world, tools over it, and the plainest loop that runs a model with them."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from axislab.config import EARLY_STOP_PROMPT, FORMAT_REPROMPT, Sampling
from axislab.errors import ErrorKind, ModelError
from axislab.messages import Message, ToolCall, ToolSpec
from axislab.models.base import ModelReply, ModelRequest
from axislab.models.sim_draws import draw_key

SYSTEM = "Work with the tools. End your final answer with \\boxed{ANSWER}."
_FORMS = (
    "The {r} of {e} is {v}.",
    "{e}'s {r} is {v}.",
    "{v} is the {r} of {e}.",
    "Its {r} is {v}.",
)
_FILLER = (
    "It lies between two old hills.",
    "Travellers often speak of the long winters there.",
    "Much has been written about it, and little of that is settled.",
)


@dataclass(frozen=True)
class Task:
    id: str
    prompt: str
    expected: str


@dataclass
class World:
    facts: dict[tuple[str, str], str] = field(default_factory=dict)
    tasks: list[Task] = field(default_factory=list)
    seed: int = 0

    def documents(self) -> dict[str, tuple[str, str]]:
        out = {}
        rng = random.Random(self.seed)
        names = dict.fromkeys(entity for entity, _ in self.facts)
        for number, name in enumerate(names):
            own = [(r, v) for (e, r), v in self.facts.items() if e == name]
            said = [rng.choice(_FORMS).format(e=name, r=r, v=v) for r, v in own]
            for filler in _FILLER:
                said.insert(rng.randrange(len(said) + 1), filler)
            out[f"d{number:04d}"] = (name, " ".join(said))
        return out

    def swapped(self, a: tuple[str, str], b: tuple[str, str]) -> World:
        facts = dict(self.facts)
        facts[a], facts[b] = facts[b], facts[a]
        return World(facts, self.tasks, self.seed)


SYLLABLES = ("tal osk ver mor hal ben dru kel sar vim pol gra len tor ush eld").split()  # noqa: SIM905


def make_world(seed: int = 0, *, size: int = 12) -> World:
    rng = random.Random(seed)
    used: set[str] = set()

    def name() -> str:
        while True:
            word = "".join(rng.choice(SYLLABLES) for _ in range(2)).capitalize()
            if word not in used:
                used.add(word)
                return word

    lands, towns = [name() for _ in range(size)], [name() for _ in range(size)]
    ships = [f"{name()} Star" for _ in range(size)]
    people = [f"{name()} {name()}" for _ in range(size)]
    world = World(seed=seed)
    for i in range(size):
        world.facts[lands[i], "capital"] = towns[i]
        world.facts[lands[i], "flagship"] = ships[i]
        world.facts[lands[i], "founding year"] = str(rng.randrange(900, 1900))
        world.facts[towns[i], "population"] = str(rng.randrange(1000, 90000))
        world.facts[towns[i], "mayor"] = people[i]
        world.facts[ships[i], "home port"] = towns[rng.randrange(size)]
        world.facts[ships[i], "captain"] = people[rng.randrange(size)]
        world.facts[people[i], "birthplace"] = towns[rng.randrange(size)]
    for i in range(size):
        j = (i + 1) % size
        world.tasks += list(_tasks(world, lands[i], lands[j], ships[i], i))
    return world


def _tasks(world: World, land: str, other: str, ship: str, i: int):
    f = world.facts
    yield Task(f"a{i}", f"What is the capital of {land}?", f[land, "capital"])
    yield Task(
        f"b{i}", f"Who is the mayor of the home port of {ship}?", f[f[ship, "home port"], "mayor"]
    )
    place = f[f[f[land, "flagship"], "captain"], "birthplace"]
    yield Task(
        f"c{i}",
        f"What is the population of the birthplace of the captain of the flagship of {land}?",
        f[place, "population"],
    )
    towns = f[land, "capital"], f[other, "capital"]
    pops = [int(f[town, "population"]) for town in towns]
    yield Task(
        f"d{i}",
        f"Which has the larger population: the capital of {land} or the capital of {other}?",
        towns[0] if pops[0] >= pops[1] else towns[1],
    )
    yield Task(
        f"e{i}",
        f"By how much do the founding year of {land} and the founding year of {other} differ?",
        str(abs(int(f[land, "founding year"]) - int(f[other, "founding year"]))),
    )


@dataclass(frozen=True)
class Tool:
    spec: ToolSpec
    function: Callable[..., str]


def _spec(name: str, description: str, **properties: str) -> ToolSpec:
    required = [key for key, kind in properties.items() if not kind.endswith("?")]
    schema = {key: {"type": kind.rstrip("?")} for key, kind in properties.items()}
    parameters = {"type": "object", "properties": schema, "required": required}
    return ToolSpec(name=name, description=description, parameters=parameters)


def tools_over(world: World) -> dict[str, Tool]:
    documents = world.documents()

    def search(query: str, k: int = 5) -> str:
        words = set(re.findall(r"\w+", query.lower()))
        scored = []
        for key, (title, text) in documents.items():
            found = words & set(re.findall(r"\w+", text.lower()))
            scored.append((len(found) + 3 * len(words & set(title.lower().split())), key))
        best = sorted((s for s in scored if s[0]), key=lambda s: (-s[0], s[1]))[:k]
        lines = []
        for _, key in best:
            title, text = documents[key]
            lines.append(f"[{key}] {title}: {text[:90]}…" if len(text) > 90 else f"[{key}] {title}")
        return "\n".join(lines) or f"No document matches {query!r}."

    def read(doc_id: str) -> str:
        if doc_id not in documents:
            return f"Error: no document {doc_id!r}."
        return "\n\n".join(documents[doc_id])

    return {
        "search": Tool(
            _spec("search", "Find documents that match a query.", query="string", k="integer?"),
            search,
        ),
        "read": Tool(_spec("read", "Read a document by its id.", doc_id="string"), read),
        "calculator": Tool(
            _spec("calculator", "Evaluate an arithmetic expression.", expression="string"),
            calculate,
        ),
    }


def calculate(expression: str) -> str:
    match = re.fullmatch(r"\s*(-?[\d.]+)\s*([-+*/])\s*(-?[\d.]+)\s*", expression)
    if not match:
        return f"Error: cannot evaluate {expression!r}."
    a, b = float(match[1]), float(match[3])
    value = {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else 0.0}[match[2]]
    return f"{value:.10g}"


@dataclass
class Outcome:
    answer: str | None
    text: str
    calls: list[ToolCall]
    replies: list[ModelReply]
    messages: list[Message]
    requests: list[ModelRequest]
    errors: list[ModelError]


@dataclass
class Loop:
    """Runs a task; `recover` asks again after a reply of the wrong form, as recipes do."""

    model: object
    tools: Mapping[str, Tool]
    max_turns: int = 16
    recover: bool = True
    system: str | None = SYSTEM
    show: Callable[[list[Message]], list[Message]] = list
    """What of the messages the model sees."""

    def run(
        self,
        task: str,
        *,
        seed: int = 0,
        repeat: int = 0,
        task_id: str = "t",
        arm: str | None = None,
    ) -> Outcome:
        messages = [Message.system(self.system)] if self.system else []
        messages.append(Message.user(task))
        done = Outcome(None, "", [], [], messages, [], [])
        sent: dict[object, int] = {}
        rollbacks = 0
        for turn in range(self.max_turns):
            last = turn == self.max_turns - 1
            if last:
                messages.append(Message.user(EARLY_STOP_PROMPT))
            reply = self._ask(messages, sent, done, seed, repeat, task_id, arm)
            if reply is None:
                return done
            text = reply.text or ""
            bad = (not text and not reply.tool_calls) or reply.finish_reason == "length"
            bad = bad or re.search(r"sorry|apologi|cannot complete", text) is not None
            if self.recover and bad and not reply.tool_calls and rollbacks < 4:
                rollbacks += 1
                continue
            if reply.tool_calls and not last:
                self._use(reply, messages, done)
                continue
            messages.append(Message.assistant(text))
            called = re.search(r"<tool_call>|```json|^\w+\(", text)
            if self.recover and called and not last:
                messages.append(Message.user(FORMAT_REPROMPT))
                continue
            if self.recover and "\\boxed" not in text and rollbacks < 4 and not last:
                rollbacks += 1
                messages.pop()
                continue
            return replace(done, text=text, answer=boxed(text))
        return done

    def _ask(self, messages, sent, done, seed, repeat, task_id, arm) -> ModelReply | None:
        visible = self.show(list(messages))
        specs = tuple(tool.spec for tool in self.tools.values())
        for _ in range(8):
            key = json.dumps([m.to_dict() for m in visible])
            draw = draw_key(seed=seed, task=task_id, repeat=repeat, arm=arm, sent=sent.get(key, 0))
            sent[key] = sent.get(key, 0) + 1
            request = ModelRequest(messages=visible, tools=specs, sampling=Sampling(), draw=draw)
            done.requests.append(request)
            try:
                reply = self.model.reply(request)
            except ModelError as error:
                done.errors.append(error)
                if error.kind is ErrorKind.CONTEXT_LIMIT:
                    return None
                continue
            done.replies.append(reply)
            return reply
        return None

    def _use(self, reply: ModelReply, messages: list[Message], done: Outcome) -> None:
        calls = [replace(c, id=f"c{len(done.calls) + i}") for i, c in enumerate(reply.tool_calls)]
        messages.append(Message.assistant(reply.text, calls))
        for call in calls:
            done.calls.append(call)
            messages.append(Message.tool(self._result(call), tool_call_id=call.id, name=call.name))

    def _result(self, call: ToolCall) -> str:
        if call.name not in self.tools:
            return f"Error: unknown tool {call.name!r}. Tools: {', '.join(self.tools)}."
        try:
            arguments = json.loads(call.arguments)
        except ValueError:
            return "Error: the arguments are not valid JSON."
        known = self.tools[call.name].spec.parameters["properties"]
        if wrong := [name for name in arguments if name not in known]:
            return f"Error: unknown argument {wrong[0]!r}; allowed: {', '.join(known)}."
        return self.tools[call.name].function(**arguments)


def boxed(text: str) -> str | None:
    match = re.search(r"\\boxed\{([^{}]*)\}", text)
    return match[1] if match and match[1] != "unknown" else None


def accuracy(model, world: World, *, seeds=range(1), tools=None, **options) -> float:
    loop = Loop(model, tools_over(world) if tools is None else tools, **options)
    hits = [
        loop.run(task.prompt, seed=seed, task_id=task.id).answer == task.expected
        for seed in seeds
        for task in world.tasks
    ]
    return sum(hits) / len(hits)


def hide_old_results(messages):
    """What a policy that keeps the newest result shows."""
    places = [i for i, m in enumerate(messages) if m.tool_call_id]
    for place in places[:-1]:
        messages[place] = replace(messages[place], content="Tool result omitted to save tokens.")
    return messages


def intraclass(rows):
    """Intraclass correlation of equally long rows, from a one-way analysis of variance."""
    n, k = len(rows), len(rows[0])
    grand = sum(map(sum, rows)) / (n * k)
    between = k * sum((sum(row) / k - grand) ** 2 for row in rows) / (n - 1)
    within = sum((x - sum(row) / k) ** 2 for row in rows for x in row) / (n * (k - 1))
    return (between - within) / (between + (k - 1) * within)
