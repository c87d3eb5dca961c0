"""A small collection of documents that can be searched offline, in any language."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from numbers import Number
from pathlib import Path
from typing import TYPE_CHECKING, Any

from axislab.borders import shown
from axislab.errors import DataError
from axislab.paths import user_path

if TYPE_CHECKING:
    import pandas as pd

_CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
_RUN = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_END = re.compile(r"[.!?]\s+|[。！？]")
_IS_CJK = re.compile(rf"[{_CJK}]")
_TITLE_WEIGHT = 2
"""How often the words of a title count: a document is about what it is called."""


@dataclass(frozen=True, slots=True)
class Document:
    """One text of a corpus."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that matches a query."""

    document: Document
    score: float
    """BM25; only comparable within one search."""
    snippet: str
    """The part of the text that matches best, on one line; "…" where it is cut at the end."""


class Corpus:
    """Documents with a BM25 index, which is built when it is first needed.

    Args:
        documents: In the order that decides between equal scores.
        name: What to call the corpus.

    Raises:
        DataError: Two documents share an id.

    Examples:
        >>> port = Document("d1", "Osk", "Osk is a port.")
        >>> corpus = Corpus([port, Document("d2", "Tal", "Tal is dry.")])
        >>> [hit.document.id for hit in corpus.search("port")]
        ['d1']
    """

    def __init__(self, documents: Iterable[Document], *, name: str = "corpus") -> None:
        self.name = name
        if not isinstance(documents, Iterable) or isinstance(documents, str):
            raise DataError(f"documents={shown(documents)}: a list of Document is wanted")
        self._documents = tuple(documents)
        self._by_id: dict[str, Document] = {}
        for document in self._documents:
            if not isinstance(document, Document):
                raise DataError(
                    f"{shown(document)} is no Document: write Document(id, title, text), or make "
                    "the corpus of bare texts with Corpus.from_texts"
                )
            if document.id in self._by_id:
                raise DataError(f"two documents have the id {document.id!r}: ids must be unique")
            self._by_id[document.id] = document
        self._index: _Index | None = None
        self._fingerprint: str | None = None
        self._lock = threading.Lock()

    @classmethod
    def from_texts(
        cls,
        texts: Sequence[str],
        *,
        titles: Sequence[str] | None = None,
        name: str = "corpus",
    ) -> Corpus:
        """A corpus of bare texts; ids are d0001, d0002, …, titles the first words if not given.

        Raises:
            DataError: There are not as many titles as texts.
        """
        if titles is not None and len(titles) != len(texts):
            raise DataError(f"{len(texts)} texts and {len(titles)} titles: give one for each")
        named = titles if titles is not None else [_first_words(text) for text in texts]
        width = max(4, len(str(len(texts))))
        return cls(
            (
                Document(f"d{number:0{width}d}", title, text)
                for number, (title, text) in enumerate(zip(named, texts, strict=True), start=1)
            ),
            name=name,
        )

    @classmethod
    def from_jsonl(cls, path: str | Path, *, name: str | None = None) -> Corpus:
        """A corpus of a file with one object (`text`, and if you like `id`, `title`) a line.

        Raises:
            DataError: The file cannot be read, or a line is no document.
        """
        path = user_path(path)
        try:
            lines = path.read_text(encoding="utf-8-sig").split("\n")
        except (OSError, UnicodeDecodeError) as problem:
            raise DataError(f"cannot read the corpus {str(path)!r}: {problem}") from problem
        rows = []
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                rows.append((f"{path.name}, line {number}", json.loads(line)))
            except ValueError as problem:
                raise DataError(f"{path.name}, line {number} is no JSON: {problem}") from problem
        return cls(_documents(rows), name=name or path.stem)

    @classmethod
    def from_df(
        cls,
        df: pd.DataFrame,
        *,
        text: str = "text",
        title: str = "title",
        id: str = "id",
        name: str = "corpus",
    ) -> Corpus:
        """A corpus of a frame; the columns for title and id may be missing.

        Raises:
            DataError: There is no column of texts.
        """
        if text not in df.columns:
            raise DataError(f"no column {text!r}: the frame has {', '.join(map(str, df.columns))}")
        columns = {
            key: column
            for key, column in (("text", text), ("title", title), ("id", id))
            if column in df.columns
        }
        rows = df[list(columns.values())].astype(object).itertuples(index=False, name=None)
        return cls(
            _documents(
                (f"row {number}", dict(zip(columns, row, strict=True)))
                for number, row in enumerate(rows)
            ),
            name=name,
        )

    def __len__(self) -> int:
        return len(self._documents)

    def __iter__(self) -> Iterator[Document]:
        return iter(self._documents)

    def __contains__(self, doc_id: object) -> bool:
        return doc_id in self._by_id

    def __repr__(self) -> str:
        return f"Corpus({self.name!r}, {len(self)} documents)"

    @property
    def indexed(self) -> bool:
        """Whether the index has been built."""
        return self._index is not None

    @property
    def fingerprint(self) -> str:
        """Changes with any id, title, text, or their order; not with the name."""
        if self._fingerprint is None:
            digest = hashlib.sha256()
            for d in self._documents:
                digest.update(json.dumps([d.id, d.title, d.text]).encode())
            self._fingerprint = digest.hexdigest()[:16]
        return self._fingerprint

    def get(self, doc_id: str) -> Document | None:
        """The document of that id, or None."""
        return self._by_id.get(doc_id)

    def nearest_ids(self, doc_id: str, *, n: int = 3) -> list[str]:
        """Ids that look like one that does not exist."""
        return get_close_matches(doc_id, self._by_id, n=n, cutoff=0.5)

    def search(self, query: str, k: int = 5) -> list[Hit]:
        """The documents that match best, best first; equal scores in the order of the corpus.

        Words of European languages match whole, whatever their case; Chinese, Japanese and Korean
        by character and pair of characters. A document without any word of the query is no hit.
        """
        words = tokenize(query)
        found = self._built().search(words, k) if words and k > 0 else []
        wanted = set(words)
        return [
            Hit(document, score, make_snippet(document.text, wanted))
            for document, score in ((self._documents[place], score) for place, score in found)
        ]

    def _built(self) -> _Index:
        with self._lock:
            if self._index is None:
                self._index = _Index(
                    [
                        tokenize(document.title) * _TITLE_WEIGHT + tokenize(document.text)
                        for document in self._documents
                    ]
                )
            return self._index


class _Index:
    """BM25 scores by the library bm25s; order and ties are ours."""

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        self._scorer: Any = None
        if any(texts):
            import bm25s

            self._scorer = bm25s.BM25()
            self._scorer.index(list(texts), show_progress=False)

    def search(self, words: Sequence[str], k: int) -> list[tuple[int, float]]:
        """Place and score of the best k documents."""
        if self._scorer is None:
            return []
        import numpy as np

        scores = self._scorer.get_scores(list(words))
        # Stable, so that equal scores keep the order of the corpus.
        places = np.argsort(-scores, kind="stable")[:k]
        return [(int(place), float(scores[place])) for place in places if scores[place] > 0]


def tokenize(text: str) -> list[str]:
    """Words in lower case; of Chinese, Japanese and Korean each character and each pair.

    Examples:
        >>> tokenize("Port Osk 港口")
        ['port', 'osk', '港', '口', '港口']
    """
    words: list[str] = []
    for run in _RUN.findall(unicodedata.normalize("NFKC", text).casefold()):
        if _IS_CJK.match(run):
            words.extend(run)
            words.extend(run[i : i + 2] for i in range(len(run) - 1))
        else:
            words.append(run)
    return words


def make_snippet(text: str, words: set[str], *, length: int = 160) -> str:
    """The stretch of a text with the most of the words, beginning where a sentence does."""
    flat = " ".join(text.split())
    if len(flat) <= length:
        return flat
    best = _best_start(_sentences(flat), words, length=length)
    part = flat[best : best + length]
    if best + length >= len(flat):
        return part
    cut = part.rfind(" ")
    part = part[: cut if cut > length // 2 else None].rstrip()
    return f"{part} …" if part.endswith((".", "!", "?")) else f"{part}…"


@dataclass(frozen=True, slots=True)
class _Sentence:
    start: int
    end: int
    words: frozenset[str]


@lru_cache(maxsize=4096)
def _sentences(flat: str) -> tuple[_Sentence, ...]:
    starts = [0, *(match.end() for match in _END.finditer(flat) if match.end() < len(flat))]
    ends = [*starts[1:], len(flat)]
    return tuple(
        _Sentence(start, end, frozenset(tokenize(flat[start:end])))
        for start, end in zip(starts, ends, strict=True)
    )


def _best_start(sentences: Sequence[_Sentence], words: set[str], *, length: int) -> int:
    """Where the sentences that fit together have the most words; at best already in the first."""
    best, most = 0, (0, 0)
    for number, first in enumerate(sentences):
        here = words & first.words
        found = set(here)
        for later in sentences[number + 1 :]:
            if later.end > first.start + length + 1:
                break
            found |= words & later.words
        if (len(found), len(here)) > most:
            best, most = first.start, (len(found), len(here))
    return best


def _first_words(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 60 else flat[:60].rstrip() + "…"


def _documents(rows: Iterable[tuple[str, Any]]) -> Iterator[Document]:
    for number, (place, row) in enumerate(rows, start=1):
        if not isinstance(row, Mapping) or not isinstance(row.get("text"), str):
            raise DataError(f"{place} is no document: it needs a string `text`, got {row!r:.200}")
        given = row.get("id")
        # Missing values of pandas are no numbers, or not equal to themselves.
        missing = not isinstance(given, str | Number) or given != given
        key = f"d{number:04d}" if missing else str(given)
        title = row.get("title")
        yield Document(key, title if isinstance(title, str) else key, row["text"])
