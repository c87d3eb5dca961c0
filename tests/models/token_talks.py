"""Conversations in English and Chinese whose prompts a server counts: estimate against truth."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import axislab as al
from tests.models.counting_server import CountingServer

LANGUAGES = ("English", "Chinese")
OTHER_VOCABULARY = 1.35
SENTENCES = {
    "English": (
        "The harbour of Osk was rebuilt in 1874 after a storm had broken the northern mole.",
        "Most of the grain that left the valley went through the hands of three families.",
        "Its present population, according to the last census, is 48,213.",
        "Nobody has explained why the second bridge was abandoned before it was finished.",
        "A treaty signed at Tal Moor settled the border, though not the fishing rights.",
        "The flagship carried 62 guns and a crew of roughly five hundred sailors.",
    ),
    "Chinese": (
        "奥斯克港在一八七四年的风暴摧毁北防波堤之后重新修建。",
        "离开山谷的粮食大多经过三个家族之手，价格由他们共同决定。",
        "根据最近一次人口普查，该城现有居民48213人。",
        "没有人解释过第二座桥为什么在完工之前就被放弃。",
        "在塔尔莫尔签署的条约划定了边界，却没有解决捕鱼权的争端。",
        "旗舰装有六十二门火炮，船员大约五百名。",
    ),
}
SYSTEM = {
    "English": "You answer questions about a closed corpus. Search before you answer, one step "
    "at a time, and end with the answer alone.",
    "Chinese": "你根据一个封闭的资料库回答问题。回答之前先检索，每次只走一步，最后只写出答案。",
}
TASK = {
    "English": "In which year was the harbour of the largest city of the valley rebuilt?",
    "Chinese": "山谷中最大城市的港口是在哪一年重新修建的？",
}
EMPTY: dict[str, Any] = {"content": ""}


def said(text: str | None, query: str | None = None, number: int = 0) -> dict[str, Any]:
    """A reply of the script: a text, a search, or both."""
    message: dict[str, Any] = {"content": text}
    if query is not None:
        function = {
            "name": "search",
            "arguments": json.dumps({"query": query, "k": 3 + number}, ensure_ascii=False),
        }
        name = f"call_{number:08d}Qz7RkVnYp3LtWx"
        message["tool_calls"] = [{"id": name, "type": "function", "function": function}]
    return message


def script(language: str, rng: random.Random, *, searches: int = 12) -> list[dict[str, Any]]:
    """Searches with growing results; empty replies and repeated queries are rolled back."""
    lines = []
    for number in range(searches):
        query = rng.choice(SENTENCES[language])[:24] + f" {number}"
        lines.append(said(rng.choice([None, rng.choice(SENTENCES[language])]), query, number))
        if number % 4 == 2:
            lines.append(EMPTY)
        if number % 5 == 3:
            lines.append(said(None, query, number))  # the same once more
    return [*lines, said("1874")]


def archive(language: str, rng: random.Random) -> al.Tool:
    """A search whose results grow from call to call."""
    found = []

    @al.tool(query="query")
    def search(query: str, k: int = 5) -> str:
        """Search the archive; gives passages with their ids.

        Args:
            query: What to look for: names and key words.
            k: How many passages.
        """
        found.append(query)
        passages = rng.choices(SENTENCES[language], k=2 + 3 * len(found))
        return "\n".join(f"[d{rng.randrange(9999):04d}] {text}" for text in passages)

    return search


@al.tool
def read(doc_id: str) -> str:
    """Read one document of the archive in full.

    Args:
        doc_id: Its id, for example d0123.
    """
    return doc_id


@contextmanager
def counting(*, factor: float = 1.0) -> Iterator[CountingServer]:
    """A server for a while."""
    server = CountingServer(factor=factor)
    try:
        yield server
    finally:
        server.stop()


def talk(
    server: CountingServer, language: str, *, seed: int = 0, window: int | None = 100_000
) -> al.Run:
    """One run of a script through Lab, with its prompts counted by the server."""
    rng = random.Random(f"{language} {seed}")
    server.script = script(language, rng)
    lab = al.Lab("openai/gpt-4o", api_base=server.url, api_key="sk-none")
    recipe = al.Recipe(name="archivist", tools=(archive(language, rng), read)).with_(
        system_prompt=SYSTEM[language],
        window=window,
        on_empty_reply="retry",
        on_duplicate="rollback",
        max_rollbacks=3,
        max_turns=40,
        attempts=1,
    )
    return lab.run(recipe, al.Task(f"{language}-{seed}", TASK[language], "1874"))
