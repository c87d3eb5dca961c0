"""Tool calls that a model wrote as text, in the dialects that models are trained on.

Every scan reads the text from left to right once, whatever stands in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator

from axislab.runtime.quotations import CodeBlock, Quotations, Span

TAGS = frozenset(
    {
        "tool_call",
        "tool_calls",
        "toolcall",
        "function_call",
        "function_calls",
        "tool_use",
        "use_mcp_tool",
        "tool_code",
        "TOOLCALL",
    }
)
"""Tags around a call (Hermes, Qwen, GLM, MiroThinker, Nemotron and others)."""

_OPENINGS = re.compile(
    r"<function=[\w.-]{1,80}>"
    r"|<(?:steptml:)?invoke name=\"[^\"\n]{1,80}\""
    r"|\[TOOL_CALLS\]"
    r"|<\|python_(?:tag|start)\|>"
    r"|<\|tool_calls?(?:_begin|_section_begin|_start)?\|>"
    r"|<\|tools_prefix\|>"
    r"|<\|START_ACTION\|>"
    r"|<(?:start_function_call>|\|tool_call>)call:"
    "|<\uff5ctool\u2581calls?\u2581begin\uff5c>"
    r"|<\uff5cDSML\uff5c[ ]?(?:function_calls|tool_calls|invoke)\b"
    r"|<\|channel\|>\w{1,20} to=functions\.[\w.-]{1,80}"
    r"|<\|start\|>assistant to=functions\.[\w.-]{1,80}"
    r"|\bfunctools\[\s{0,9}\{\s{0,9}\"name\""
)
"""Openings that are never prose (Llama, Qwen coder, Step, Mistral, Kimi, LFM, Apertus, Command R,
Gemma, DeepSeek, gpt-oss, Phi)."""

_CALL_FENCES = frozenset({"tool_call", "tool_calls", "tool_code", "tool", "tool_use"})
_JSON_START = re.compile(
    r"\[?[ \t]*\{\s*(?:\"tool_calls\"\s*:\s*\[\s*\{\s*)?"
    r"(?:\"(?:id|type|tool_call_id)\"\s*:\s*\"[^\"\n]{0,80}\"\s*,\s*){0,2}"
    r"(?:\"function\"\s*:\s*\{\s*)?"
    r"\"(?:name|tool|tool_name)\"\s*:\s*\"([\w.-]{1,80})\"\s*,"
    r"\s*\"(?:arguments|parameters|args|input)\"\s*:"
)
_JSON = json.JSONDecoder()
_REACT = re.compile(r"Action:[ \t]*([\w.-]{1,80})[ \t]*\n[ \t]*Action Input:")
_BODY = re.compile(r"\s*(?:[\[{]|[A-Za-z_][\w.]{0,80}\(|<\w|[\w.-]{1,80}\s*<arg_key>)")
_EXPRESSION = re.compile(r"(?:print\()?([A-Za-z_][\w.]{0,80})\(")
_ARGUMENTS = re.compile(
    r"\s*(?:[\"'\u201c{\[]|[A-Za-z_]\w{0,80}\s*=(?!=)|-?\d|(?:true|false|null|None)\b)"
)
_TELLING_ARGUMENTS = re.compile(r"\s*(?:[\"'\u201c{]|[A-Za-z_]\w{0,80}\s*=(?!=))")


def find_calls(
    text: str, quoted: Quotations, *, tags: Collection[str], tool_names: Collection[str]
) -> Iterator[Span]:
    """Where a text holds a call.

    Args:
        text: A reply without structured calls.
        quoted: Its quotations; what they cover is no call, but for a code block that is one.
        tags: Names of tags that stand around a call.
        tool_names: Tools there are; if none are known, only what can be nothing else is a call.
    """
    for tag in sorted(tags):
        yield from _tagged(text, tag, quoted)
    for opening in _OPENINGS.finditer(text):
        if not quoted.covers(*opening.span()):
            yield opening.start(), len(text)
            break
    for block in quoted.blocks:
        if _block_calls(text, block, tool_names):
            yield block.start, block.end
    yield from _lines_that_call(text, quoted, tool_names)


def _tagged(text: str, tag: str, quoted: Quotations) -> Iterator[Span]:
    opener, closer = f"<{tag}>", f"</{tag}>"
    start, close = text.find(opener), text.find(closer)
    if close >= 0 and not 0 <= start < close and _starts_as_call(text, 0):
        # Some servers swallow the opening tag as a special token.
        yield len(text) - len(text.lstrip()), close + len(closer)
        start = text.find(opener, close)
    while start >= 0:
        body = start + len(opener)
        if 0 <= close < body:
            close = text.find(closer, body)
        end = len(text) if close < 0 else close + len(closer)
        if not quoted.covers(start, body) and _starts_as_call(text, body):
            yield start, end
            body = end
        start = text.find(opener, body)


def _starts_as_call(text: str, at: int) -> bool:
    """JSON, even broken or cut, a call expression, or nested tags."""
    return _BODY.match(text, at) is not None


def _block_calls(text: str, block: CodeBlock, tool_names: Collection[str]) -> bool:
    body = text[block.body : block.body_end]
    if names_tool(_load(body), tool_names):
        return True
    named = block.language in _CALL_FENCES
    if not named and not tool_names:
        return False
    lines = [line for line in body.splitlines() if line.strip()]
    return bool(lines) and all(_expression(line, tool_names, alone=named) for line in lines)


def _lines_that_call(text: str, quoted: Quotations, tool_names: Collection[str]) -> Iterator[Span]:
    stripped = text.strip()
    whole = text.find(stripped)
    if names_tool(_load(stripped), tool_names):
        yield whole, whole + len(stripped)
        return
    begin = past = 0
    for line in text.splitlines(keepends=True):
        start, end = begin + len(line) - len(line.lstrip()), begin + len(line.rstrip())
        begin += len(line)
        if start >= end or start < past or quoted.covers(start, end):
            continue
        if _names_known(_JSON_START.match(text, start), tool_names):
            past = _json_end(text, start)
            yield start, past
        elif _names_known(_REACT.match(text, start), tool_names):
            yield start, len(text.rstrip())
            return
        elif _expression(text[start:end], tool_names, alone=end - start == len(stripped)):
            yield start, end


def _json_end(text: str, start: int) -> int:
    """Where the JSON that begins here ends; at the end of the text if it is broken or cut."""
    try:
        return _JSON.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return len(text.rstrip())


def _names_known(found: re.Match[str] | None, tool_names: Collection[str]) -> bool:
    return found is not None and _known(found[1], tool_names)


def _known(name: str, tool_names: Collection[str]) -> bool:
    return not tool_names or name in tool_names


def _expression(line: str, tool_names: Collection[str], *, alone: bool) -> bool:
    """A line that is nothing but a call: `search("x")`.

    Args:
        line: One line.
        tool_names: Tools there are.
        alone: The reply or block holds nothing else, so the name of the tool may be unknown.
    """
    line = line.strip().removesuffix(";").rstrip()
    if line.startswith("[") and line.endswith("]"):
        line = line[1:-1].strip()
    found = _EXPRESSION.match(line)
    if found is None or not line.endswith(")"):
        return False
    inside = line[found.end() : -1]
    if found[1] in tool_names:
        return not inside.strip(" )") or _ARGUMENTS.match(inside) is not None
    return alone and not tool_names and _TELLING_ARGUMENTS.match(inside) is not None


def _load(text: str) -> object:
    text = text.strip()
    if text[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def names_tool(value: object, tool_names: Collection[str]) -> bool:
    """A JSON object, or a list of them, that names a tool and its arguments."""
    if isinstance(value, list):
        return bool(value) and all(
            isinstance(item, dict) and names_tool(item, tool_names) for item in value
        )
    if not isinstance(value, dict):
        return False
    if isinstance(calls := value.get("tool_calls"), list):
        return names_tool(calls, tool_names)
    inner = value.get("function")
    if isinstance(inner, dict):
        value = inner
    name = value.get("name") or value.get("tool") or value.get("tool_name")
    arguments = ("arguments", "parameters", "args", "input")
    if not isinstance(name, str) or not _known(name, tool_names):
        return False
    return any(isinstance(value.get(k), dict | str) for k in arguments)
