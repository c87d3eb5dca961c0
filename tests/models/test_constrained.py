"""Tool calls by a schema: what the model is told, held to, and read as."""

import json

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from axislab.messages import Message, Role, ToolCall, ToolSpec
from axislab.models.constrained import (
    instructions_for,
    plain_messages,
    read_constrained,
    schema_for,
    spoken,
)

SEARCH = ToolSpec(
    name="search",
    description="Find documents.",
    parameters={
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
        "additionalProperties": False,
    },
)
NOTES = ToolSpec(name="notes", description="Read your notes.")
CALL = {"tool": "search", "arguments": {"query": "Osk"}}
ANSWER = {"answer": "Tal Moor"}


def fits(value: object, choice: str | None = None) -> bool:
    schema = schema_for((SEARCH, NOTES), choice)
    return jsonschema.Draft202012Validator(schema).is_valid(value)


def test_calls_and_answers_fit_and_nothing_else_does() -> None:
    assert fits(CALL)
    assert fits(ANSWER)
    assert fits({"tool": "notes", "arguments": {}})
    for other in ({}, {"tool": "search", "arguments": {}}, {**CALL, **ANSWER}, {"tool": "no"}, "a"):
        assert not fits(other)


def test_a_call_can_be_forced() -> None:
    assert fits(CALL, "required")
    assert not fits(ANSWER, "required")
    assert fits({"tool": "notes", "arguments": {}}, "notes")
    assert not fits(CALL, "notes")
    assert not fits(ANSWER, "notes")


def test_a_tool_that_is_not_offered_cannot_be_forced() -> None:
    assert fits(ANSWER, "unknown")


def test_what_fits_is_read_as_what_it_is() -> None:
    said = read_constrained(json.dumps(CALL))
    (call,) = said.calls
    assert said.text is None
    assert (call.id, call.name, call.arguments) == ("", "search", '{"query": "Osk"}')
    assert call.provider_id
    assert read_constrained(json.dumps(ANSWER)).text == "Tal Moor"


def test_calls_have_ids_that_differ() -> None:
    ids = {read_constrained(json.dumps(CALL)).calls[0].provider_id for _ in range(20)}
    assert len(ids) == 20


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (r'{"answer": "\boxed{42}"}', r"\boxed{42}"),
        (r'{"answer": "\\boxed{42}"}', r"\boxed{42}"),
        (r'{"answer": "\boxed{\frac{1}{2}}"}', r"\boxed{\frac{1}{2}}"),
    ],
)
def test_a_single_backslash_is_not_lost_to_json(text: str, said: str) -> None:
    assert read_constrained(text).text == said


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ('{"tool": "search", "arguments": {"query": "Os', "search", '{"query": "Os'),
        ('{"tool": "search", "arguments": ', "search", ""),
        ('{\n "tool" : "search",\n "argu', "search", ""),
        ('{"tool": "search"', "search", ""),
    ],
)
def test_a_cut_call_is_a_call_with_cut_arguments(text: str, name: str, arguments: str) -> None:
    (call,) = read_constrained(text, cut=True).calls
    assert (call.name, call.arguments) == (name, arguments)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"answer": "Tal M', "Tal M"),
        ('{"answer": "Tal \\u00', "Tal "),
        ('{"answer": "Tal\\', "Tal"),
        ('{"answer": "a\\nb', "a\nb"),
        ('{"tool": "sea', '{"tool": "sea'),
        ("{\n ", "{\n "),
        ("", ""),
    ],
)
def test_of_a_cut_answer_there_is_what_came(text: str, said: str) -> None:
    found = read_constrained(text, cut=True)
    assert (found.text, found.calls) == (said, ())


@given(st.text(), st.booleans())
def test_any_text_can_be_read(text: str, cut: bool) -> None:
    said = read_constrained(text, cut=cut)
    assert said.text is not None or said.calls


@given(st.text(), st.integers(0, 200))
def test_a_cut_answer_is_the_beginning_of_the_answer(answer: str, kept: int) -> None:
    text = json.dumps({"answer": answer})[:kept]
    said = read_constrained(text, cut=True).text or ""
    if text.startswith('{"answer": "') and "\\u" not in text:
        assert answer.startswith(said)


def test_the_instructions_name_every_tool_and_its_fields() -> None:
    told = instructions_for((SEARCH, NOTES))
    assert "- search(query): Find documents." in told
    assert "- notes(): Read your notes." in told
    assert '{"tool": "search", "arguments": {"query": "..."}}' in told
    assert '{"tool": "notes", "arguments": {}}' in told


def test_messages_become_role_and_text() -> None:
    call = ToolCall(id="c", name="search", arguments='{"query": "Osk"}')
    broken = ToolCall(id="d", name="search", arguments='{"query": ')
    messages = [
        Message.system("Be brief."),
        Message.user("Where?"),
        Message.assistant("Let me look.", [call, broken]),
        Message.tool("Found.", tool_call_id="c", name="search"),
        Message(role=Role.RUNTIME, content="{}", name="rollback"),
    ]
    plain = plain_messages(messages, tools=(SEARCH,))
    assert [m["role"] for m in plain] == ["system", "user", "assistant", "user"]
    assert plain[0]["content"].startswith("Be brief.\n\nEach of your replies is one JSON object")
    assert plain[2]["content"].splitlines() == [
        "Let me look.",
        'I use search with {"query": "Osk"}.',
        'I use search with {"query": .',
    ]
    assert plain[3]["content"].startswith("Result of search:\nFound.\n\nThe question was: Where?")


def test_the_question_is_repeated_after_a_result_only() -> None:
    result = [Message.user("Where?"), Message.tool("Found.", tool_call_id="c", name="search")]
    later = [*result, Message.user("Answer now.")]
    for messages, tools, times in ((result, (SEARCH,), 1), (later, (SEARCH,), 0), (result, (), 0)):
        text = json.dumps(plain_messages(messages, tools=tools))
        assert text.count("The question was: Where?") == times


def test_without_tools_nothing_is_added() -> None:
    assert plain_messages([Message.user("a")]) == [{"role": "user", "content": "a"}]
    assert plain_messages([Message.user("a")], tools=(SEARCH,))[0]["role"] == "system"


@given(st.text() | st.text('abc\\\n"\x08\x0cboxedfr{}é😀', max_size=40), st.booleans())
@example(answer="\\u", ascii_only=False)
@example(answer="\U0001f600\\", ascii_only=True)
def test_what_is_spoken_only_ever_grows_into_the_answer(answer: str, ascii_only: bool) -> None:
    text = json.dumps({"answer": answer}, ensure_ascii=ascii_only)
    before = ""
    for end in range(len(text) + 1):
        now = spoken(text[:end])
        assert now.startswith(before)
        before = now
    assert (read_constrained(text).text or "").startswith(before)


def test_a_whole_answer_was_spoken_to_its_end_and_a_call_never() -> None:
    assert spoken(json.dumps({"answer": 'He said "Tal".\n'})) == 'He said "Tal".\n'
    assert spoken(r'{"answer": "\boxed{4}"}') == r"\boxed{4}"
    assert {spoken(json.dumps(CALL)[:n]) for n in range(60)} == {""}
    assert spoken("Tal Moor") == ""
