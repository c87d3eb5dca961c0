"""The two lists: persistent, cheap, and always the same replay."""

import gc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axislab.errors import InvalidMessage
from axislab.messages import Message, Role
from axislab.runtime.markers import Compaction, DiscardAll, Rollback
from axislab.runtime.transcript import Transcript, View, replay_visible

LONG = 200_000


def built(*messages, cost=lambda m: len(m.text)):
    transcript = Transcript(cost)
    for message in messages:
        transcript = transcript.append(message)
    return transcript


def texts(transcript):
    return [m.text for m in transcript.visible]


def test_the_first_message_is_from_system_or_user():
    for role in (Role.ASSISTANT, Role.TOOL, Role.RUNTIME):
        with pytest.raises(InvalidMessage, match="first message"):
            built(Message(role=role, content="x"))
    assert len(built(Message.user("x")).full) == 1


def test_a_system_message_only_comes_first():
    with pytest.raises(InvalidMessage, match="very first"):
        built(Message.user("x"), Message.system("s"))
    assert texts(Transcript().append_raw(Message.user("x")).append_raw(Message.system("s"))) == [
        "x",
        "s",
    ]


def test_a_rollback_hides_from_the_end_and_stops_at_a_system_message():
    transcript = built(Message.system("s"), Message.user("u"), Message.assistant("a"))
    assert texts(transcript.append(Rollback(1, "x").to_message())) == ["s", "u"]
    assert texts(transcript.append(Rollback(99, "x").to_message())) == ["s"]
    assert texts(built(Message.user("u")).append(Rollback(9, "x").to_message())) == []
    assert texts(transcript) == ["s", "u", "a"], "the former transcript stands"


def test_splices_replace_or_cut_and_out_of_range_ones_do_nothing():
    transcript = built(*(Message.user(c) for c in "abcde"))
    for marker, left in [
        (Compaction("S", 1, 3), ["a", "S", "e"]),
        (Compaction("S", 0, 5), ["S"]),
        (Compaction("S", 4, 2), list("abcde")),
        (Compaction("S", 5, 1), list("abcde")),
        (DiscardAll(2), ["a", "b"]),
        (DiscardAll(0), []),
        (DiscardAll(5), list("abcde")),
        (DiscardAll(6), list("abcde")),
    ]:
        after = transcript.append(marker.to_message())
        assert texts(after) == left
        assert (after.full_count, after.visible_count) == (6, len(left))
        assert after.visible_cost == sum(map(len, left))
        assert after.visible[:1] == tuple(after.visible)[:1]


def test_splices_are_counted_where_they_took_effect():
    transcript = built(*(Message.user(c) for c in "abc"))
    for marker, splices in [
        (Compaction("S", 0, 1), 1),
        (Compaction("S", 0, 9), 0),
        (DiscardAll(3), 1),
        (DiscardAll(4), 0),
        (Rollback(1, "x"), 0),
    ]:
        assert transcript.append(marker.to_message()).splices == splices


def test_a_cost_is_counted_once_for_each_message():
    counted = []

    def cost(message):
        counted.append(message.text)
        return 1

    transcript = built(*(Message.user(c) for c in "abc"), cost=cost)
    transcript = transcript.append(Rollback(1, "x").to_message())
    assert (counted, transcript.visible_cost) == (["a", "b", "c"], 2)


STEPS = st.lists(
    st.one_of(
        st.builds(Message.user, st.sampled_from("abcdef")),
        st.builds(Rollback, st.integers(0, 4), st.just("x")),
        st.builds(Compaction, st.just("S"), st.integers(0, 6), st.integers(1, 4)),
        st.builds(DiscardAll, st.integers(0, 8)),
    ),
    max_size=20,
)


@settings(max_examples=80, deadline=None)
@given(STEPS)
def test_replaying_the_full_list_gives_the_visible_one_at_every_moment(steps):
    transcript, plain = Transcript(), []
    for step in steps:
        if isinstance(step, Message):
            transcript, plain = transcript.append_raw(step), [*plain, step.text]
        else:
            transcript = transcript.append_raw(step.to_message())
            if isinstance(step, Rollback):
                plain = plain[: max(len(plain) - step.count, 0)]
            elif isinstance(step, DiscardAll):
                plain = plain[: step.prefix_len]
            elif step.prefix_len + step.compressed_count <= len(plain):
                end = step.prefix_len + step.compressed_count
                plain = [*plain[: step.prefix_len], "S", *plain[end:]]
        assert texts(transcript) == plain
        assert replay_visible(transcript.full) == tuple(transcript.visible)


def test_a_view_is_a_sequence_of_its_moment():
    transcript = built(Message.user("a"), Message.user("b"))
    view = transcript.visible
    later = transcript.append(Message.user("c")).visible
    assert (len(view), view[0].text, view[-1].text) == (2, "a", "b")
    assert view[1:] == (Message.user("b"),)
    assert view == transcript.visible == [Message.user("a"), Message.user("b")]
    assert view != later
    assert view != "ab"
    assert view != 2
    assert hash(view) == hash(built(Message.user("a"), Message.user("b")).visible)
    assert repr(later) == "View(3 messages)"
    assert [m.text for m in later.newest_first()] == ["c", "b", "a"]
    assert Message.user("a") in view
    assert (len(View()), list(View()), View() == []) == (0, [], True)


def test_two_views_of_one_moment_have_one_key_and_a_rollback_comes_back_to_it():
    transcript = built(Message.user("a"))
    again = transcript.append(Message.user("b")).append(Rollback(1, "x").to_message())
    assert transcript.visible.key == again.visible.key
    assert transcript.visible.same_as(again.visible)
    assert not transcript.visible.same_as([Message.user("b")])
    assert not transcript.visible.same_as([])


def test_a_very_long_conversation_can_be_made_read_cut_and_thrown_away():
    message = Message.user("x")
    transcript = Transcript().append(message)
    for _ in range(LONG):
        transcript = transcript.append_raw(message)
    assert transcript.visible_count == LONG + 1
    assert len(list(transcript.visible)) == LONG + 1
    cut = transcript.append_raw(DiscardAll(1).to_message())
    twin = cut.append_raw(message)
    assert (len(cut.visible), len(twin.visible), len(cut.full)) == (1, 2, LONG + 2)
    del transcript, cut, twin
    gc.collect()
