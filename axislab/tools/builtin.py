"""Tools that work offline: search and read a corpus, calculate, take notes."""

from __future__ import annotations

from typing import NamedTuple

from axislab.borders import shown
from axislab.errors import DataError
from axislab.messages import Json
from axislab.tools.base import Tool, ToolFailure
from axislab.tools.calculator import calculate
from axislab.tools.corpus import Corpus, Hit

_MANY = 20_000
"""Documents from which on one search is no longer done between two heartbeats of the loop."""


class SearchTools(NamedTuple):
    """A search over a corpus, and a reader for what it finds."""

    search: Tool
    read: Tool


def search_tools(corpus: Corpus) -> SearchTools:
    r"""Two tools over a corpus: `search(query, k=5)` and `read(doc_id)`.

    Two searches with the same query are duplicates, whatever their k.

    Raises:
        DataError: It is no corpus.

    Examples:
        >>> from axislab.tools.corpus import Document
        >>> tools = search_tools(Corpus([Document("d1", "Osk", "The port of Osk is Lim.")]))
        >>> tools.search("port of Osk")
        '[d1] Osk: The port of Osk is Lim.'
        >>> tools.read("d1")
        'Osk\n\nThe port of Osk is Lim.'
    """
    if not isinstance(corpus, Corpus):
        raise DataError(
            f"corpus={shown(corpus)}: a Corpus is wanted, such as load_corpus('atlas') or "
            "Corpus.from_texts([…])"
        )

    def search(query: str, k: int = 5) -> str:
        hits = corpus.search(query, int(k))
        return "\n".join(map(_line, hits)) or f"No document matches {query!r}."

    def read(doc_id: str) -> str | ToolFailure:
        document = corpus.get(doc_id) or corpus.get(doc_id.strip().strip("[]"))
        if document is not None:
            return f"{document.title}\n\n{document.text}"
        near = ", ".join(corpus.nearest_ids(doc_id)) or "none is alike"
        return ToolFailure(f"There is no document {doc_id!r}. Nearest ids: {near}.")

    identity: dict[str, Json] = {
        "corpus": corpus.name,
        "documents": len(corpus),
        "corpus_fingerprint": corpus.fingerprint,
    }
    return SearchTools(
        search=Tool(
            "search",
            _arguments(
                required="query",
                query={"type": "string", "description": "What to look for: names and key words."},
                k={
                    "type": "integer",
                    "description": "How many documents to list.",
                    "minimum": 1,
                    "maximum": 50,
                    "default": 5,
                },
            ),
            search,
            description=(
                "Search the documents. Lists the best matches, one a line, as "
                "[document id] Title: snippet. Read a document to see all of it."
            ),
            query="query",
            idempotent=True,
            blocking=lambda: not corpus.indexed or len(corpus) > _MANY,
            identity=identity,
        ),
        read=Tool(
            "read",
            _arguments(
                required="doc_id",
                doc_id={"type": "string", "description": "Id of the document, as search lists it."},
            ),
            read,
            description="Read one document in full.",
            idempotent=True,
            blocking=False,
            identity=identity,
        ),
    )


def notes_tools() -> tuple[Tool, Tool]:
    """Two tools with a notebook of their own: `note(text)` and `notes()`.

    List the function itself in a recipe, `tools=(notes_tools,)`, and every run starts with an
    empty notebook.

    Examples:
        >>> note, notes = notes_tools()
        >>> note("Osk is a port."), notes()
        ('Note 1 is kept.', '1. Osk is a port.')
    """
    kept: list[str] = []

    def note(text: str) -> str:
        kept.append(" ".join(text.split()))
        return f"Note {len(kept)} is kept."

    def notes() -> str:
        return "\n".join(f"{n}. {text}" for n, text in enumerate(kept, start=1)) or "No notes yet."

    return (
        Tool(
            "note",
            _arguments(
                required="text", text={"type": "string", "description": "What to remember."}
            ),
            note,
            description="Write a note, to be read again with notes.",
            blocking=False,
        ),
        Tool(
            "notes",
            _arguments(),
            notes,
            description="Read all notes written so far.",
            idempotent=True,
            blocking=False,
        ),
    )


def _line(hit: Hit) -> str:
    title = " ".join(hit.document.title.split())
    return f"[{hit.document.id}] {title}: {hit.snippet}"


def _arguments(*, required: str | None = None, **properties: Json) -> dict[str, Json]:
    schema: dict[str, Json] = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    return schema if required is None else {**schema, "required": [required]}


calculator = Tool(
    "calculator",
    _arguments(
        required="expression",
        expression={"type": "string", "description": "Such as 12 * (7 + 5), or sqrt(2) / 3."},
    ),
    calculate,
    description=(
        "Evaluate an arithmetic expression exactly. Knows + - * / // % **, brackets, and the "
        "functions sqrt, abs, min, max and round (halves away from zero). Gives the number."
    ),
    idempotent=True,
    blocking=False,
)
"""Evaluates arithmetic, exactly and without evaluating Python."""
