from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axislab.errors import DataError
from axislab.tools.corpus import Corpus, Document, make_snippet, tokenize

PORTS = Corpus(
    [
        Document("d1", "Osk", "Osk is a port. Its mayor is Ana Voss."),
        Document("d2", "Tal Moor", "Tal Moor is a hill town near Osk. It has no port."),
        Document("d3", "港口", "这是一个大港口城市。市长是安娜。"),
        Document("d4", "Grey Heron", "The Grey Heron is a ship. Her captain is unknown."),
    ],
    name="ports",
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Port Osk", ["port", "osk"]),
        ("PORT-osk's 3.5", ["port", "osk", "s", "3", "5"]),
        ("港口", ["港", "口", "港口"]),
        ("大港口", ["大", "港", "口", "大港", "港口"]),
        ("Osk港", ["osk", "港"]),
        ("ＯＳＫ", ["osk"]),
        ("Straße CAFÉ", ["strasse", "café"]),
        ("かな 한국", ["か", "な", "かな", "한", "국", "한국"]),
        ("", []),
        ("!? …", []),
        ("a_b", ["a", "b"]),
    ],
)
def test_text_becomes_words_and_pairs_of_characters(text, words):
    assert tokenize(text) == words


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("Osk", "d1"),
        ("osk PORT", "d1"),
        ("hill town", "d2"),
        ("captain of the Grey Heron", "d4"),
        ("港口", "d3"),
        ("市长", "d3"),
        ("安", "d3"),
    ],
)
def test_the_best_match_comes_first_in_any_language(query, first):
    assert PORTS.search(query)[0].document.id == first


@pytest.mark.parametrize("query", ["", "   ", "zebra", "…", "斑马"])
def test_a_query_without_a_known_word_finds_nothing(query):
    assert PORTS.search(query) == []


def test_a_search_lists_at_most_k_and_only_matches():
    assert len(PORTS.search("is", k=2)) == 2
    assert len(PORTS.search("port", k=10)) == 2
    assert PORTS.search("port", k=0) == []
    scores = [hit.score for hit in PORTS.search("Osk port")]
    assert scores == sorted(scores, reverse=True)


def test_equal_scores_keep_the_order_of_the_corpus():
    same = Corpus([Document(f"d{n}", "x", "tide and wind") for n in range(50)])
    assert [hit.document.id for hit in same.search("tide", k=50)] == [f"d{n}" for n in range(50)]


def test_the_words_of_a_title_count_more_than_those_of_a_text():
    corpus = Corpus(
        [Document("a", "Tal", "Osk Osk lies far."), Document("b", "Osk", "A far town.")]
    )
    assert [hit.document.id for hit in corpus.search("Osk")] == ["b", "a"]


def test_the_index_is_built_when_it_is_first_needed_and_quietly(capfd):
    corpus = Corpus.from_texts(["one tide", "two winds"])
    assert not corpus.indexed
    corpus.search("tide")
    assert corpus.indexed
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("corpus", [Corpus([]), Corpus([Document("a", "", "")])])
def test_a_corpus_without_words_can_be_searched(corpus):
    assert corpus.search("tide") == []


@given(st.lists(st.text(max_size=30), max_size=5), st.text(max_size=20), st.integers(-1, 5))
def test_any_text_can_be_indexed_and_searched(texts, query, k):
    hits = Corpus.from_texts(texts).search(query, k)
    assert len(hits) <= max(k, 0)
    assert all("\n" not in hit.snippet for hit in hits)


def test_documents_are_found_by_id_and_counted_and_listed():
    assert PORTS.get("d2").title == "Tal Moor"
    assert PORTS.get("d9") is None
    assert len(PORTS) == 4
    assert "d1" in PORTS
    assert [document.id for document in PORTS] == ["d1", "d2", "d3", "d4"]
    assert repr(PORTS) == "Corpus('ports', 4 documents)"
    assert PORTS.nearest_ids("d11") == ["d1"]


def test_two_documents_of_one_id_are_refused():
    with pytest.raises(DataError, match="two documents have the id 'a'"):
        Corpus([Document("a", "x", "y"), Document("a", "z", "y")])


def test_the_fingerprint_is_of_the_documents_and_their_order():
    one, two = Document("a", "x", "y"), Document("b", "x", "z")
    assert Corpus([one, two]).fingerprint == Corpus([one, two], name="other").fingerprint
    different = {
        Corpus([one, two]).fingerprint,
        Corpus([two, one]).fingerprint,
        Corpus([one]).fingerprint,
        Corpus([one, Document("b", "xz", "")]).fingerprint,
        Corpus([one, Document("b", "x", "z ")]).fingerprint,
        Corpus([]).fingerprint,
    }
    assert len(different) == 6


def test_a_short_text_is_its_own_snippet_on_one_line():
    assert make_snippet("one\n two\t three.", {"two"}) == "one two three."


def test_a_snippet_begins_with_the_sentence_that_matches_best():
    text = (
        "Filler words stand here. " * 10 + "The mayor of Osk is Ana Voss. " + "More filler. " * 20
    )
    snippet = make_snippet(text, {"mayor", "osk"}, length=60)
    assert snippet == "The mayor of Osk is Ana Voss. More filler. More filler. …"
    assert make_snippet(text, {"zebra"}, length=30) == "Filler words stand here. …"


def test_a_snippet_of_chinese_is_cut_between_characters():
    text = "无关的句子在这里。" * 30 + "市长是安娜。" + "无关的句子在这里。" * 30
    snippet = make_snippet(text, set(tokenize("市长")), length=20)
    assert snippet == "市长是安娜。无关的句子在这里。无关的句子…"


def test_a_corpus_from_texts_has_ids_and_titles():
    corpus = Corpus.from_texts(["first text", "x" * 100], name="n")
    assert [(d.id, d.title) for d in corpus] == [("d0001", "first text"), ("d0002", "x" * 60 + "…")]
    titled = Corpus.from_texts(["a"], titles=["T"])
    assert titled.get("d0001").title == "T"
    with pytest.raises(DataError, match="1 texts and 2 titles"):
        Corpus.from_texts(["a"], titles=["T", "U"])


def test_a_corpus_from_a_file(tmp_path):
    path = tmp_path / "ports.jsonl"
    rows = [
        {"id": "x", "title": "T", "text": "one\u2028two", "more": 1},
        {"id": 7, "text": "three"},
        {"text": "four"},
    ]
    path.write_text("\n".join(json.dumps(r, ensure_ascii=False) for r in rows) + "\n\n", "utf-8")
    corpus = Corpus.from_jsonl(path)
    assert corpus.name == "ports"
    assert list(corpus) == [
        Document("x", "T", "one\u2028two"),
        Document("7", "7", "three"),
        Document("d0003", "d0003", "four"),
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"text": "a"}\n{"text":', "line 2 is no JSON"),
        (b'{"text": "a"}\n\n[1]', "line 3 is no document"),
        (b'{"title": "a"}', "needs a string `text`"),
        (b'{"text": 5}', "needs a string `text`"),
        (b"\xff\xfe", "cannot read"),
    ],
)
def test_a_file_that_is_no_corpus_is_refused_by_line(tmp_path, content, said):
    path = tmp_path / "c.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=said):
        Corpus.from_jsonl(path)
    with pytest.raises(DataError, match="cannot read"):
        Corpus.from_jsonl(tmp_path / "missing.jsonl")


def test_a_corpus_from_a_frame():
    frame = pd.DataFrame(
        {"doc": [1, 2], "body": ["one", "two"], "title": ["A", None], "more": [0, 0]}
    )
    corpus = Corpus.from_df(frame, text="body", id="doc", name="f")
    assert list(corpus) == [Document("1", "A", "one"), Document("2", "2", "two")]
    bare = Corpus.from_df(pd.DataFrame({"text": ["a"], "id": [np.nan]}))
    assert list(bare) == [Document("d0001", "d0001", "a")]
    missing = Corpus.from_df(pd.DataFrame({"text": ["a"], "id": pd.array([None], "string")}))
    assert list(missing) == [Document("d0001", "d0001", "a")]
    with pytest.raises(DataError, match="no column 'text': the frame has doc"):
        Corpus.from_df(frame[["doc"]])
    with pytest.raises(DataError, match="row 0 is no document"):
        Corpus.from_df(pd.DataFrame({"text": [None]}))
