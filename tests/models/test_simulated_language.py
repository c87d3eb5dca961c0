"""Questions, facts and prompts as the simulated agent reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axislab.config import EARLY_STOP_PROMPT, FORMAT_REPROMPT
from axislab.messages import Message
from axislab.models.sim_language import NounPhrase, QuestionKind, parse_phrase, parse_question
from axislab.models.sim_prompts import Style, Want, is_complaint, style_of, want_of
from axislab.models.sim_reading import Fact, Hit, number_in, read_text
from axislab.models.sim_tokens import count_tokens, cut_tokens, prompt_tokens


@pytest.mark.parametrize(
    ("text", "entity", "relations"),
    [
        ("What is the capital of Osk?", "Osk", ("capital",)),
        ("Who is the captain of the flagship of Port Osk?", "Port Osk", ("flagship", "captain")),
        ("In which town is the home port of Grey Heron?", "Grey Heron", ("home port",)),
        ("Which river is the longest river of Tal Moor?", "Tal Moor", ("longest river",)),
        ("Please look: what is the atomic number of Fe?", "Fe", ("atomic number",)),
        ("What is Osk's founding year?", "Osk", ("founding year",)),
        ("What is the boiling point of water?", "water", ("boiling point",)),
    ],
)
def test_a_chain_question_is_read_from_the_entity_outwards(text, entity, relations):
    question = parse_question(text)
    assert question.kind is QuestionKind.CHAIN
    assert question.phrases == (NounPhrase(entity, relations),)


def test_a_comparison_names_both_sides_and_the_direction():
    question = parse_question("Which has the smaller population: the capital of Tal or Port Osk?")
    assert question.kind is QuestionKind.COMPARISON
    assert question.phrases == (NounPhrase("Tal", ("capital",)), NounPhrase("Port Osk"))
    assert (question.relation, question.larger) == ("population", False)
    assert parse_question("Which has the later launch year: Osk or Tal?").larger


def test_a_difference_names_two_numbers():
    question = parse_question("By how much do the depth of Osk and the depth of Tal differ?")
    assert question.kind is QuestionKind.DIFFERENCE
    assert [p.relations for p in question.phrases] == [("depth",), ("depth",)]


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("Compute 12 * (7 + 5).", "12 * (7 + 5)"),
        ("What is 3/4 of 120?", "3/4 * 120"),
        ("What is 15% of 80?", "(15 / 100) * 80"),
        ("Calculate 1,200 minus 17", "1200 - 17"),
        ("What is 12.5 × 3?\nEnd with \\boxed{}.", "12.5 * 3"),
        ("Evaluate 2^10 - 24.", "2 ** 10 - 24"),
    ],
)
def test_a_calculation_becomes_an_expression(text, expression):
    question = parse_question(text)
    assert (question.kind, question.expression) == (QuestionKind.CALCULATION, expression)


@pytest.mark.parametrize(
    "text",
    [
        "Write a poem about the sea.",
        "What is 3?",
        "Summarise the report.",
        "What is the capital of a country that has two coasts and no army?",
        "Which has the larger depth: this, that or the other one?",
        "By how much do the seas and the oceans differ?",
        "",
    ],
)
def test_what_is_none_of_our_questions_is_not_read_as_one(text):
    assert parse_question(text) is None


@given(
    st.lists(st.sampled_from(["capital", "home port", "founding year", "mayor"]), max_size=6),
    st.sampled_from(["Osk", "Port Osk", "Tal van Moor", "Ana Voss"]),
)
def test_a_phrase_that_was_written_is_read_back(relations, entity):
    text = "".join(f"the {r} of " for r in reversed(relations)) + entity
    assert parse_phrase(text) == NounPhrase(entity, tuple(relations))


@pytest.mark.parametrize(
    "sentence",
    [
        "The founding year of Port Osk is 1204.",
        "Port Osk's founding year is 1204.",
        "1204 is the founding year of Port Osk.",
        "Its founding year is 1204.",
    ],
)
def test_each_of_the_four_forms_states_a_fact(sentence):
    text = f"Port Osk\n\nIt rains a lot. {sentence} People like it."
    assert Fact("Port Osk", "founding year", "1204") in read_text(text).facts


def test_its_belongs_to_the_hit_the_sentence_stands_in():
    text = "[d1] Osk: Its depth is 12 m. It is old.\n[d2] Tal: Its depth is 7.5 m."
    reading = read_text(text)
    assert reading.facts == (Fact("Osk", "depth", "12 m"), Fact("Tal", "depth", "7.5 m"))
    assert reading.hits[1] == Hit("d2", "Tal", "Its depth is 7.5 m.")


@pytest.mark.parametrize("end", ["12…", "12...", "12"])
def test_a_sentence_that_is_cut_off_states_nothing(end):
    assert read_text(f"[d1] Osk: It is old. Its depth is {end}").facts == ()


def test_a_question_states_nothing():
    assert read_text("What is the capital of Osk? Osk is a land.").facts == ()


def test_objects_and_lines_of_keys_are_facts_about_what_was_asked():
    text = '{"name": "Iron", "atomic_number": 26, "meltingPoint": 1538.0}'
    facts = read_text(text, "Fe").facts
    assert Fact("Fe", "atomic number", "26") in facts
    assert Fact("Iron", "melting point", "1538") in facts
    lines = read_text("capital: Tal\nPopulation: 1200", "Osk").facts
    assert lines == (Fact("Osk", "capital", "Tal"), Fact("Osk", "population", "1200"))
    nested = read_text('{"Osk": {"capital": "Tal"}, "list": [{"title": "Ver", "depth": 3}]}').facts
    assert Fact("Osk", "capital", "Tal") in nested
    assert Fact("Ver", "depth", "3") in nested


def test_hits_can_come_as_objects():
    text = '[{"id": "d7", "title": "Osk", "snippet": "Its capital is Tal."}]'
    reading = read_text(text, "capital Osk")
    assert reading.hits == (Hit("d7", "Osk", "Its capital is Tal."),)
    assert Fact("Osk", "capital", "Tal") in reading.facts


def test_a_bare_value_is_kept_as_such():
    assert read_text("Tal").value == "Tal"
    assert read_text("{broken json").value == "{broken json"
    assert read_text("A longer text that says nothing much about anything at all.").value is None


def test_a_number_is_found_in_a_value():
    assert number_in("1,200 people") == 1200
    assert number_in("about 3.5 m") == 3.5
    assert number_in("Tal") is None


@given(st.text(max_size=200))
def test_no_text_breaks_the_readers(text):
    assert parse_question(text) is None or parse_question(text).text in text
    read_text(text, "Osk")
    want_of(text)
    style_of([Message.user(text)])


@pytest.mark.parametrize(
    ("prompt", "want"),
    [
        (None, Want.WORK),
        (EARLY_STOP_PROMPT, Want.ANSWER),
        (FORMAT_REPROMPT, Want.WORK),
        ("Give your final answer in \\boxed{}.", Want.ANSWER),
        ("Summarise and answer in \\boxed{}.", Want.ANSWER),
        ("What is the depth of Osk? Answer now, do not call any tool.", Want.ANSWER),
        ("What is the depth of Tal? Your final answer goes in \\boxed{}.", Want.WORK),
        ("The attempt failed. Describe what was found, do not use \\boxed{}.", Want.SUMMARY),
        ("This attempt was unsuccessful: write a summary of the experience.", Want.SUMMARY),
        ("Summarise the conversation so far.", Want.SUMMARY),
        ("Go on.", Want.WORK),
    ],
)
def test_a_later_prompt_says_what_is_wanted(prompt, want):
    assert want_of(prompt, task="What is the depth of Osk?") is want


def test_complaints_are_recognised():
    assert is_complaint(FORMAT_REPROMPT)
    assert is_complaint("Error: the arguments are not valid JSON.")
    assert not is_complaint("Osk\n\nIts depth is 12.")


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ("End with \\boxed{ANSWER}.", Style("boxed")),
        ('Reply with JSON: {"answer": "..."}', Style("json", "answer")),
        ("Finish with a line `Answer: <value>`.", Style("line", "Answer")),
        ("Be brief.", Style("plain")),
    ],
)
def test_the_form_of_the_answer_is_taken_from_the_prompts(text, style):
    assert style_of([Message.system(text), Message.user("What is the depth of Osk?")]) == style


def test_tokens_are_words_digits_and_signs():
    assert count_tokens("The depth is 1200.") == 6
    assert count_tokens("深度") == 2
    assert cut_tokens("The depth is 1200.", 3) == "The depth is "
    assert cut_tokens("short", 9) == "short"


@given(st.lists(st.text(max_size=40), max_size=5))
def test_a_prompt_counts_as_much_as_its_messages_and_a_little_more(texts):
    messages = [Message.user(text) for text in texts]
    assert prompt_tokens(messages) == 3 + sum(4 + count_tokens(text) for text in texts)
