"""Refusals in English and Chinese, where they open a reply."""

from __future__ import annotations

import re
from collections.abc import Iterator

from axislab.runtime.quotations import Span

_APOSTROPHES = str.maketrans(dict.fromkeys("\u2019\u2018\u02bc\uff07\u00b4", "'"))

_CANNOT = (
    r"(?:can(?:no|')t|can not|am unable to|'m unable to|am not able to|'m not able to|won't|"
    r"will not|must decline to|have to decline to|am not allowed to|'m not allowed to)"
)
_HELPING = (
    r"(?:help|assist|answer|comply|continue|do (?:that|this|so)|discuss|engage|fulfil+|give|"
    r"provide|complete|perform|process|respond|solve|support|participate|share|write|create|"
    r"generate|produce|disclose|reveal)(?! but\b)"
)
_NOT_ABLE = r"(?:[无無]法|不能|不可以|[没沒]有[办辦]法|[没沒]法)"
_REFUSALS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\bi(?:'m| am)(?: very| so| really| truly)? sorry,?(?: but)? (?:i )?{_CANNOT}",
        rf"\b(?:sorry|apologies|apologi[sz]e)\b[^.!?\n]{{0,60}}\bi {_CANNOT} "
        rf"(?:\w+ ){{0,3}}{_HELPING}",
        rf"\bi(?: |(?=')){_CANNOT} (?:\w+ ){{0,3}}{_HELPING}\b",
        rf"\bas an? (?:ai|artificial|large language|language)[^.!?\n]{{0,60}}\bi {_CANNOT}",
        r"\bi(?: must|'ll have to| have to| need to) (?:respectfully )?(?:decline|refuse)\b",
        r"\bi(?:'m| am) not (?:comfortable|going to)\b|\bi'd rather not\b",
        r"\b(?:this|that|your) request (?:is|goes) against (?:my|our)\b",
        r"(?:抱歉|[对對]不起|[遗遺]憾(?:的是)?|不好意思)[,，。！\s]{0,3}(?:但|不[过過])?"
        r"(?:作[为為][^,，。！？\n]{0,16}[,，])?我?(?:[暂暫][时時]|目前)?" + _NOT_ABLE,
        r"我(?:" + _NOT_ABLE + r"|拒[绝絕])(?:[为為向][您你]|[对對]此|就此|直接)?"
        r"(?:提供|回答|[协協]助|[帮幫]助|完成|[满滿]足|[处處]理|[继繼][续續]|[参參][与與]|"
        r"[讨討][论論]|[执執]行|生成|[编編][写寫])",
        r"作[为為](?:一[个個名款])?(?:ai|人工智[能慧]|[语語]言模型|大模型)[^。！？!?\n]{0,20}?"
        r"(?:" + _NOT_ABLE + ")",
    )
)

_PREAMBLE = re.compile(
    r"(?:i|i'm|i've|we|my|thank|thanks|sorry|unfortunately|regrettably|apologies|while|although|"
    r"after|as|based on|given|hello|hi|it (?:seems|looks|appears)|however|that said|but|"
    r"your request|this request)\b"
    r"|感[谢謝]|[谢謝]{2}|您好|你好|我|[很非十]|抱歉|[对對]不起|[遗遺]憾|不好意思|但|不[过過]|然而"
)
"""How a sentence begins that may stand before a refusal and gives no answer itself."""

_ANSWER = re.compile(
    r"\\boxed\b"
    r"|\b(?:answer|result|solution)(?: is| are|:| =) (?!not\b)[^\s.,;!?]"
    r"|(?:答案|[结結]果)(?:是|[为為]|:|：)"
)
_SENTENCE_END = re.compile(r"[.!?。！？\n]+\s*")

_REACH = 600
"""Characters that are read for a refusal."""


def even(text: str) -> str:
    """Straight apostrophes and lower case; every character keeps its place."""
    straight = text.translate(_APOSTROPHES)
    low = straight.lower()
    if len(low) == len(text):
        return low
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in straight)


def gives_answer(text: str) -> bool:
    """True if an evened text says what the answer is."""
    return _ANSWER.search(text) is not None


def find_refusals(text: str) -> Iterator[Span]:
    """Where an evened text refuses.

    Only its opening is read: the first sentence, and those after it while all before are mere
    preamble ("I understand. However, I can't help with that."). A refusal later on is part of an
    answer.
    """
    begin = len(text) - len(text.lstrip())
    while begin < min(len(text), _REACH):
        stop = _SENTENCE_END.search(text, begin)
        end = stop.end() if stop else len(text)
        found = [m.span() for p in _REFUSALS for m in p.finditer(text, begin, min(end, _REACH))]
        yield from found
        if found or not _PREAMBLE.match(text, begin):
            return
        begin = end
