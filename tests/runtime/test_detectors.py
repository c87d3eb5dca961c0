"""Refusals and calls written as text: what is found, what is not, and how fast."""

import time

import pytest
from runtime_kit import config

from axislab.runtime.detectors import (
    Match,
    StructuredDetector,
    SubstringDetector,
    make_detector,
)
from axislab.runtime.quotations import Quotations, code_blocks

KNOWN = StructuredDetector(tool_names=["search", "read"])
UNKNOWN = StructuredDetector()


def found(matches, text):
    """The matched texts; every span must point at its text."""
    for match in matches:
        assert text[match.start : match.end].startswith(match.text)
        assert 0 <= match.start < match.end <= len(text)
    return [text[m.start : m.end] for m in matches]


# SubstringDetector


def test_keywords_are_reported_once_each_in_the_order_of_the_config():
    detector = SubstringDetector(["b", "", "a", "b"], ["<x>"])
    assert detector.refusals("a b a b") == (Match("b", 2, 3), Match("a", 0, 1), Match("b", 2, 3))
    assert detector.textual_calls("a <x>") == (Match("<x>", 2, 5),)
    assert detector.textual_calls("<X>") == detector.refusals("") == ()


def test_keywords_fold_case_on_request_and_point_at_the_text():
    detector = SubstringDetector(["I CANNOT", "straße."], [], fold_case=True)
    text = "Würde: i cannot. STRASSE. STRAßE."
    assert [text[m.start : m.end] for m in detector.refusals(text)] == ["i cannot", "STRAßE."]


def test_special_characters_in_keywords_are_plain_text():
    assert SubstringDetector(["a.c", "("], []).refusals("abc") == ()
    assert len(SubstringDetector(["a.c", "("], []).refusals("a.c(")) == 2


def test_the_config_chooses_the_detector():
    assert isinstance(make_detector(config()), SubstringDetector)
    structured = make_detector(
        config(detector="structured", refusal_keywords=("time constraint",)), tool_names=["f"]
    )
    assert structured.refusals("Under this TIME constraint, no.")
    assert structured.textual_calls('f("x")')
    assert not structured.textual_calls('g("x")')


# Refusals


REFUSALS = [
    "I cannot help with that.",
    "I can't help with that.",
    "I can\u2019t help with that.",
    "I can not assist with this request.",
    "I'm sorry, but I can\u2019t",
    "I\u2019m sorry, I cannot solve this problem.",
    "I am very sorry but I cannot continue.",
    "Sorry, I can't assist with that request.",
    "My apologies, but as things stand I am unable to answer that question.",
    "I'm unable to provide that information.",
    "I am not able to complete this task.",
    "I won't be able to help with this.",
    "I will not write that.",
    "I must decline to answer.",
    "I have to respectfully decline.",
    "I'm not comfortable answering this.",
    "I'd rather not say.",
    "This request goes against my guidelines.",
    "As an AI language model, I cannot browse the internet.",
    "As an AI, I'm unable to do so.",
    "Unfortunately, I cannot provide the exact figure.",
    "I understand what you are looking for. However, I can't help with that.",
    "Thank you for the question! Unfortunately I am unable to answer it.",
    "  \n I CANNOT HELP WITH THAT.",
    "我无法回答这个问题。",
    "我無法提供這些資訊。",
    "我不能为您完成这个任务。",
    "我没有办法帮助你。",
    "我拒绝回答。",
    "抱歉，我无法满足您的请求。",
    "很抱歉，无法回答该问题。",
    "对不起，我不能继续。",
    "非常抱歉，作为一个人工智能助手，我不能提供医疗建议。",
    "作为一个AI语言模型，我无法浏览网页。",
    "您好！我理解您的需求。但我无法提供该信息。",
]


@pytest.mark.parametrize("text", REFUSALS)
def test_a_refusal_is_found_at_the_opening(text):
    matches = UNKNOWN.refusals(text)
    assert len(found(matches, text)) >= 1


NO_REFUSALS = [
    "",
    "   ",
    "The answer is Osk.",
    "The capital is Osk. I cannot provide the population.",
    "Osk. I can't help but admire it.",
    "I can't help but notice that it is Osk.",
    "I cannot provide a full proof, but the answer is 42.",
    "I'm sorry, but I can't see the table; \\boxed{42}",
    "该方程无法用初等函数表示，因此答案是 42。",
    "这条河无法通航。首都是 Osk。",
    "答案是 42，我无法提供更多细节。",
    "遗憾的是，文档无法打开，但首都是 Osk。",
    'The clerk said "I cannot help with that." and left.',
    "The clerk said \u201cI cannot help with that.\u201d and left.",
    "他说：\u300c我无法回答\u300d，然后离开了。",
    "`I cannot help` is the keyword.",
    "> I cannot help with that.\n\nThis is what it wrote.",
    "```\nI cannot help with that.\n```",
    "It is well known that ships cannot help each other.",
    "After 300 pages: " + "word " * 200 + "I cannot help with that.",
    "The model must decline the offer.",
    "CAN'T STOP is a song.",
]


@pytest.mark.parametrize("text", NO_REFUSALS)
def test_what_refuses_nothing_is_left_alone(text):
    assert UNKNOWN.refusals(text) == ()


def test_a_refusal_is_reported_where_it_stands():
    text = "İ understand. I can\u2019t help with that."
    (match,) = UNKNOWN.refusals("We see. I can\u2019t help with that.")
    assert match == Match("I can\u2019t help", 8, 20)
    assert UNKNOWN.refusals(text) == (), "what is no preamble ends the search"
    (match,) = UNKNOWN.refusals("I see: İ. I can\u2019t help.")
    assert match.start == 10, "letters that grow in lower case keep their place"


def test_keywords_of_ones_own_count_wherever_they_stand_unless_quoted():
    detector = StructuredDetector(["Time Constraint"])
    text = "The capital lies north. Given the time constraint, no more; a time constraint."
    assert found(detector.refusals(text), text) == ["time constraint"] * 2
    assert detector.refusals('It says "time constraint".') == ()
    assert detector.refusals("Given the time constraint: the answer is 4.") == ()


# Calls written as text


HERMES = '<tool_call>\n{"name": "search", "arguments": {"query": "Osk"}}\n</tool_call>'
CALLS = [
    HERMES,
    "Let me look.\n" + HERMES,
    '<tool_call>{"name": "search", "arguments": {"query": "Os',
    "<tool_call>{broken json}</tool_call>",
    '<tool_call>[{"name": "search", "arguments": {}}]</tool_call>',
    '<tool_call>search("Osk")</tool_call>',
    "<tool_call>search\n<arg_key>query</arg_key>\n<arg_value>Osk</arg_value>\n</tool_call>",
    "<tool_call>\n<function=search>\n<parameter=query>\nOsk\n</parameter>\n</function>\n</tool_call>",
    '{"name": "search", "arguments": {"query": "Osk"}}\n</tool_call>',
    '<function=search>{"query": "Osk"}</function>',
    '<function_calls><invoke name="search"><parameter name="query">Osk</parameter></invoke>',
    '<invoke name="search">',
    "<use_mcp_tool>\n<server_name>s</server_name>\n<tool_name>search</tool_name>",
    '[TOOL_CALLS] [{"name": "search", "arguments": {"query": "Osk"}}]',
    '<|python_tag|>search.call(query="Osk")',
    "<\uff5ctool\u2581calls\u2581begin\uff5c><\uff5ctool\u2581call\u2581begin\uff5c>function",
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.search:0",
    '<|channel|>commentary to=functions.search <|constrain|>json<|message|>{"query": "Osk"}',
    '{"name": "search", "arguments": {"query": "Osk"}}',
    '  {"name": "search", "parameters": {}}  ',
    '[{"name": "search", "arguments": {}}, {"name": "read", "arguments": {}}]',
    '[{"name": "search", "arguments": {}}, 3]',
    '{"type": "function", "function": {"name": "search", "arguments": "{}"}}',
    '{"tool": "search", "args": {"query": "Osk"}}',
    'I will search.\n{"name": "search", "arguments": {"query": "Osk"}}',
    'I will search.\n{"name": "search", "arguments": {"query": "Os',
    '```json\n{"name": "search", "arguments": {"query": "Osk"}}\n```',
    '```\n{"tool_name": "search", "input": "Osk"}\n```',
    'Here:\n~~~tool_call\n{"name": "search", "arguments": {}}\n~~~\nDone.',
    '```tool_code\nprint(search(query="Osk"))\n```',
    '```python\nsearch("Osk")\nread("d1");\n```',
    'search("Osk")',
    'Now:\nsearch("Osk")',
    'search(query="Osk", k=5);',
    "search()",
    "read(12)",
    '[search(query="Osk"), read(doc_id="d1")]',
    "Thought: look it up\nAction: search\nAction Input: Osk",
]


@pytest.mark.parametrize("text", CALLS)
def test_a_call_written_as_text_is_found(text):
    assert len(found(KNOWN.textual_calls(text), text)) == 1


@pytest.mark.parametrize("text", [t for t in CALLS if t not in ("search()", "read(12)")])
def test_most_calls_are_found_without_knowing_the_tools(text):
    alone = 'Now:\nsearch("Osk")', '```python\nsearch("Osk")\nread("d1");\n```'
    assert bool(UNKNOWN.textual_calls(text)) == (text not in alone)


NO_CALLS = [
    "",
    "  ",
    "The capital is Osk.",
    "The `<tool_call>` tag opens a call.",
    'Models write "<tool_call>{}" around calls.',
    "The <tool_call> tag opens a call, </tool_call> closes it.",
    "Tags like <tool_call> (see above) are common.",
    "> <tool_call>{}</tool_call>\n\nis what it wrote.",
    '```xml\n<tool_call>{"name": "search"}</tool_call>\n```',
    '`search("Osk")` is how it is called.',
    'Call search("Osk") to find it.',
    'other("Osk")',
    "f(2)",
    "O(n log n)",
    "sin(30)",
    '{"answer": 42}',
    '{"name": "Osk", "population": 12}',
    '{"name": "other", "arguments": {}}',
    '{"name": 7, "arguments": {}}',
    '[{"name": "Osk"}, 3]',
    "[]",
    "[1, 2, 3]",
    "[" * 3000,
    '```json\n{"answer": 42}\n```',
    "```python\nprint(1 + 1)\n```",
    "```\n\n```",
    "```tool_code\nx = 1\n```",
    "Action: search",
    "Action: other\nAction Input: Osk",
    "search (see the manual)",
    "search(it is what one does)",
    "search(x == 3)",
    "The function_call <b>tag</b>.",
    "My channel to=functions.search is open.",
    "`[TOOL_CALLS]` is Mistral's token.",
]


@pytest.mark.parametrize("text", NO_CALLS)
def test_what_calls_nothing_is_left_alone(text):
    assert KNOWN.textual_calls(text) == ()


@pytest.mark.parametrize("text", ["f(2)", "O(1)", "sin(30)", "f(x)", "x", "(1, 2)", 'a("b") c'])
def test_mathematics_is_no_call_where_no_tools_are_known(text):
    assert UNKNOWN.textual_calls(text) == ()


def test_a_call_is_reported_where_it_stands():
    text = f"One:\n{HERMES}\nTwo:\n{HERMES}"
    assert found(KNOWN.textual_calls(text), text) == [HERMES, HERMES]
    text = "The <tool_call> tag opens it: <tool_call>{}</tool_call>."
    assert found(KNOWN.textual_calls(text), text) == ["<tool_call>{}</tool_call>"]
    text = 'a\n```json\n{"name": "search", "arguments": {}}\n```\nb'
    assert found(KNOWN.textual_calls(text), text) == [text[2:-2]]
    long = "<tool_call>{" + "x" * 999
    (match,) = KNOWN.textual_calls(long)
    assert (match.end, len(match.text)) == (len(long), 240)


def test_tags_of_ones_own_are_known_from_the_keywords():
    detector = StructuredDetector([], ["<my-call>", "</my-call>", "<<", "x"])
    assert detector.textual_calls("<my-call>{}</my-call>")
    assert not UNKNOWN.textual_calls("<my-call>{}</my-call>")


def test_a_call_in_sight_beside_swallowed_tags():
    text = '{"name": "a", "arguments": {}}</tool_call> and <tool_call>{"name": "b"}</tool_call>'
    assert len(found(UNKNOWN.textual_calls(text), text)) == 2
    assert UNKNOWN.textual_calls("so </tool_call> it is, <tool_call> too") == ()


# Quotations


def test_code_blocks_are_those_that_are_closed():
    text = "a\n```py\nx\n````\n~~~\n```\n~~~\n```\nopen"
    blocks = list(code_blocks(text))
    assert [(b.language, text[b.body : b.body_end]) for b in blocks] == [
        ("py", "x\n"),
        ("", "```\n"),
    ]
    assert text[blocks[0].start : blocks[0].end] == "```py\nx\n````"


def test_what_is_quoted_is_covered_whole():
    text = 'a "b c" d `e`'
    quoted = Quotations(text)
    assert quoted.covers(2, 7)
    assert quoted.covers(3, 6)
    assert not quoted.covers(0, 1)
    assert not quoted.covers(3, 9)
    assert quoted.covers(10, 13)


# Speed


NASTY = {
    "openings": '{"type": "function", "function": {\n',
    "lists of calls": '{"tool_calls": [{\n',
    "functools": "functools[ ",
    "open tags": "<tool_call>",
    "open tags and prose": "<tool_call>x ",
    "closing tags": "</tool_call>",
    "quotes": '"',
    "quoted letters": '"a',
    "curly quotes": "\u201c",
    "backticks": "`",
    "backticks and blanks": "` ",
    "fences": "```\n",
    "json fences": "```json\n",
    "mixed fences": "~~~\n```\n",
    "parentheses": "(",
    "calls": "search(",
    "closed and blank": ") ",
    "braces": "{\n",
    "brackets": "[",
    "objects": '{"name": "search", "arguments": \n',
    "block quotes": "> a\n",
    "blanks": " ",
    "newlines": "\n",
    "apologies": "I'm sorry but ",
    "Chinese apologies": "抱歉作为AI",
    "keywords": '"time constraint" ',
    "invocations": '<invoke name="',
}
TAIL = "\nsearch()" + " " * 20_000 + "x"


@pytest.mark.parametrize("name", NASTY)
def test_nasty_text_takes_time_in_proportion_to_its_length(name):
    detector = StructuredDetector(["time constraint"], tool_names=["search"])

    def seconds(size):
        text = NASTY[name] * (size // len(NASTY[name])) + TAIL[: size // 3] + "x"
        best = 9.0
        for _ in range(2):
            start = time.process_time()
            detector.refusals(text)
            detector.textual_calls(text)
            best = min(best, time.process_time() - start)
        return best

    # Ten times the text: a scan that looks back would take a hundred times as long.
    assert seconds(60_000) < 40 * seconds(6_000) + 0.02
