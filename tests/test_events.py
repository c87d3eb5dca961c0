"""Events: one kind each, and a payload of what is known."""

import inspect
import json
from dataclasses import FrozenInstanceError, fields

import pytest

from axislab import events
from axislab.events import Event, MessageAppended, ModelRequested, StatusChanged, ToolStarted

KINDS = {
    cls.kind: cls
    for cls in vars(events).values()
    if inspect.isclass(cls) and issubclass(cls, Event) and cls is not Event
}


def test_every_kind_of_event_has_a_name_of_its_own():
    found = [c for c in vars(events).values() if inspect.isclass(c) and issubclass(c, Event)]
    assert len(KINDS) == len(found) - 1
    assert "event" not in KINDS
    assert {"run.started", "status", "phase", "message", "step", "run.finished"} <= KINDS.keys()
    assert {"model.request", "tool.started", "tool.finished"} <= KINDS.keys()


def test_a_payload_holds_what_is_known_and_leaves_out_the_rest():
    event = StatusChanged(source="READY", target="RUNNING", event="start")
    assert event.payload() == {"source": "READY", "target": "RUNNING", "event": "start"}
    appended = MessageAppended(index=0, message={"role": "user", "content": ""}, step=0)
    assert appended.payload() == {"index": 0, "message": {"role": "user", "content": ""}, "step": 0}


def test_zero_false_and_empty_are_known():
    request = ModelRequested(
        call=0,
        attempt=1,
        purpose="main_loop",
        step=0,
        model="m",
        outcome="ok",
        latency=0.0,
        input_tokens=0,
        usage_estimated=False,
        finish_reason="",
    )
    payload = request.payload()
    assert (payload["input_tokens"], payload["usage_estimated"], payload["latency"]) == (
        0,
        False,
        0,
    )
    assert payload["finish_reason"] == ""
    assert "output_tokens" not in payload
    assert json.loads(json.dumps(payload)) == payload


def test_an_event_cannot_be_changed():
    event = ToolStarted(call_id="c1", name="f", arguments="{}", step=0)
    with pytest.raises(FrozenInstanceError):
        event.name = "g"


@pytest.mark.parametrize("cls", KINDS.values(), ids=KINDS)
def test_no_field_takes_the_names_the_recorder_adds(cls):
    assert not {f.name for f in fields(cls)} & {"seq", "time", "kind"}
    assert cls.__doc__
