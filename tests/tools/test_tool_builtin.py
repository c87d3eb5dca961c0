from __future__ import annotations

import asyncio
import json

import pytest

from axislab.messages import ToolCall, ToolResult, ToolStatus
from axislab.tools.builtin import calculator, notes_tools, search_tools
from axislab.tools.corpus import Corpus, Document
from axislab.tools.executor import ToolExecutor
from axislab.tools.resolve import resolve_tools

CORPUS = Corpus(
    [
        Document("d0001", "Osk", "Osk is a port. Its mayor is Ana Voss."),
        Document(
            "d0002", "Tal\nMoor", "Tal Moor is a hill town.\nIt has no port." + " Filler." * 40
        ),
        Document("d0003", "港口", "大港口。"),
    ],
    name="ports",
)
search, read = search_tools(CORPUS)


def ask(*tools, **arguments) -> ToolResult:
    async def go():
        call = ToolCall(id="c1", name=tools[0].name, arguments=json.dumps(arguments))
        return await ToolExecutor(tools).begin_task().run_round([call])

    return asyncio.run(go()).results[0]


def test_search_lists_a_line_for_each_match():
    first, second = ask(search, query="port").content.split("\n")
    assert first == "[d0001] Osk: Osk is a port. Its mayor is Ana Voss."
    assert second.startswith("[d0002] Tal Moor: It has no port. Filler. Filler.")
    assert second.endswith("…")
    assert ask(search, query="port", k=1).content == first
    assert ask(search, query="港口").content == "[d0003] 港口: 大港口。"


def test_search_says_when_nothing_matches():
    result = ask(search, query="zebra")
    assert (result.content, result.status) == ("No document matches 'zebra'.", ToolStatus.SUCCESS)
    assert ask(search, query="").content == "No document matches ''."


@pytest.mark.parametrize("k", [0, -1, 51, "5", 2.5])
def test_search_takes_a_sensible_number_only(k):
    assert ask(search, query="port", k=k).reason == "parameter_error"


def test_read_gives_title_and_text():
    assert ask(read, doc_id="d0001").content == "Osk\n\nOsk is a port. Its mayor is Ana Voss."
    assert ask(read, doc_id="[d0001] ").content.startswith("Osk\n\n")


def test_read_of_an_unknown_id_fails_and_names_the_nearest():
    result = ask(read, doc_id="d0004")
    assert result.status is ToolStatus.FAILED
    assert result.content.startswith("There is no document 'd0004'. Nearest ids: d0003")
    assert ask(read, doc_id="zebra").content.endswith("Nearest ids: none is alike.")


def test_a_search_is_a_duplicate_by_its_query_alone():
    assert search.query_key({"query": "port"}) == search.query_key({"query": "port", "k": 3})
    assert search.query_key({"query": "port"}) != search.query_key({"query": "Port of"})
    assert read.query_key({"doc_id": "d1"}) is None


def test_the_tools_of_another_corpus_have_another_fingerprint():
    other = search_tools(Corpus(list(CORPUS)[:2], name="ports"))
    same = search_tools(Corpus(list(CORPUS), name="ports"))
    assert other.search.fingerprint != search.fingerprint
    assert same.search.fingerprint == search.fingerprint
    assert same.read.fingerprint == read.fingerprint


def test_the_calculator_gives_the_number_or_says_what_is_wrong():
    assert ask(calculator, expression="12 * (7 + 5)").content == "144"
    result = ask(calculator, expression="1 / 0")
    assert (result.status, result.content) == (
        ToolStatus.FAILED,
        "Division by zero has no value.",
    )
    assert calculator("2 + 2") == "4"


def test_every_run_has_a_notebook_of_its_own():
    async def go():
        pages = []
        for text in ("Osk is a port.", "Tal  is\ndry."):
            session = ToolExecutor([notes_tools]).begin_task()
            calls = [
                ToolCall(id="0", name="notes"),
                ToolCall(id="1", name="note", arguments=json.dumps({"text": text})),
                ToolCall(id="2", name="notes"),
            ]
            for call in calls:
                came = await session.run_round([call])
                pages.append(came.results[0].content)
        return pages

    assert asyncio.run(go()) == [
        "No notes yet.",
        "Note 1 is kept.",
        "1. Osk is a port.",
        "No notes yet.",
        "Note 1 is kept.",
        "1. Tal is dry.",
    ]


def test_fresh_tools_of_one_kind_have_one_fingerprint():
    first, second = resolve_tools([notes_tools]), resolve_tools([notes_tools])
    assert [made.fingerprint for made in first] == [made.fingerprint for made in second]
    assert first[0] is not second[0]


def test_the_tools_tell_a_model_how_to_use_them():
    for made in (search, read, calculator, *notes_tools()):
        spec = made.spec
        assert spec.description
        assert all(part["description"] for part in spec.parameters["properties"].values())
        assert spec.parameters["additionalProperties"] is False
