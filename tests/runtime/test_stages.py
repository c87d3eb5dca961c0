"""Stages, their actions and the legal moves."""

import pytest

from axislab.errors import OperationRefused
from axislab.runtime.stages import (
    LEGAL_MOVES,
    REOPENABLE,
    STAGE_KIND,
    STAGE_TO_ACTION,
    VALID_STAGE_TRANSITION,
    ConversationStage,
    StepAction,
    check_move,
)

S = ConversationStage


def test_there_are_fifteen_stages_ten_of_them_with_an_action():
    assert len(S) == len(STAGE_KIND) == len(LEGAL_MOVES) == 15
    assert len(STAGE_TO_ACTION) == 10
    assert {S(s) for s, k in STAGE_KIND.items() if k == "terminal"} == {
        s for s, a in STAGE_TO_ACTION.items() if a is StepAction.DONE
    }


def test_there_are_thirty_moves_and_those_that_were_judged_missing():
    added = {
        (S.ROLLBACK, S.REPROMPT),
        (S.ROLLBACK, S.FINAL_PROMPT),
        (S.RECEIVED, S.CONTEXT_ROLLBACK),
        (S.INITIAL_USER, S.TOKEN_EXCEEDED),
        (S.REPROMPT, S.TOKEN_EXCEEDED),
        (S.FINAL_PROMPT, S.TOKEN_EXCEEDED),
    }
    assert added <= VALID_STAGE_TRANSITION
    assert len(VALID_STAGE_TRANSITION - added) == 30


def test_every_pair_is_legal_or_refused_with_what_would_be():
    for source in S:
        for target in S:
            if (source, target) in VALID_STAGE_TRANSITION:
                check_move(source, target)
            else:
                with pytest.raises(OperationRefused, match="allowed: "):
                    check_move(source, target)
    with pytest.raises(OperationRefused, match="has ended"):
        check_move(S.COMPLETED, S.RECEIVED)


def test_what_has_begun_and_not_ended_can_be_reopened():
    ended = {s for s, k in STAGE_KIND.items() if k == "terminal"}
    assert set(STAGE_TO_ACTION) - ended == REOPENABLE


def test_a_stage_is_found_by_its_text():
    assert STAGE_TO_ACTION["assistant_completed"] is StepAction.DONE
    assert {S.RECEIVED: 1}["assistant_message_received"] == 1
