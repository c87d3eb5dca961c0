"""What a ChatModel of the user's own gives is looked at before the run goes on with it."""

from dataclasses import replace

import pytest

import axislab as al
from axislab.models.shape import what_is_wrong

CALL = al.ToolCall(id="", name="act", arguments="{}")
FINE = al.ModelReply(
    text="hi",
    tool_calls=(CALL,),
    usage=al.Usage(input_tokens=3, output_tokens=0, estimated=True),
    cost_usd=0,
    latency=1,
)

WRONG = [
    ({"text": 5}, "a ModelReply with text=5; text or None is wanted"),
    ({"text": ["a"]}, "text=['a']"),
    ({"reasoning": b"x"}, "reasoning=b'x'"),
    ({"finish_reason": 7}, "finish_reason=7"),
    ({"request_id": 12}, "request_id=12"),
    ({"cost_usd": "free"}, "cost_usd='free'; a number or None is wanted"),
    ({"cost_usd": float("inf")}, "cost_usd=inf"),
    ({"latency": None}, "latency=None"),
    ({"usage": 5}, "usage=5; a Usage or None is wanted"),
    ({"usage": al.Usage(output_tokens=1.5)}, "a usage with output_tokens=1.5"),
    ({"usage": al.Usage(input_tokens=-1)}, "input_tokens=-1"),
    ({"usage": al.Usage(cached_tokens=True)}, "cached_tokens=True"),
    ({"tool_calls": None}, "tool_calls=None; a tuple of ToolCall is wanted"),
    ({"tool_calls": ({"name": "act"},)}, "tool_calls[0]={'name': 'act'}; a ToolCall is wanted"),
    ({"tool_calls": (CALL, replace(CALL, name=None))}, "tool_calls[1] with name=None"),
    ({"tool_calls": (replace(CALL, arguments={"a": 1}),)}, "text is wanted, such as json.dumps"),
    ({"tool_calls": (replace(CALL, provider_id=3),)}, "provider_id=3"),
]


class Own:
    name, simulated, info = "own", False, {}

    def __init__(self, *replies):
        self.replies = iter(replies)

    def check(self):
        """Fine."""

    async def complete(self, request):
        return next(self.replies)


def test_a_reply_as_it_should_be_passes():
    assert what_is_wrong(FINE) is None
    assert what_is_wrong(al.ModelReply()) is None
    assert what_is_wrong(replace(FINE, tool_calls=[CALL])) is None


@pytest.mark.parametrize(("change", "said"), WRONG)
def test_a_field_of_another_type_is_named_with_its_value(change, said):
    assert said in what_is_wrong(replace(FINE, **change))


@pytest.mark.parametrize(("change", "said"), WRONG)
def test_a_wrong_reply_fails_its_own_run_and_no_other(tmp_path, change, said):
    model = Own(al.ModelReply(text="one"), replace(FINE, **change), al.ModelReply(text="three"))
    lab = al.Lab(model, folder=tmp_path)
    runs = lab.run_many(al.Recipe(), ["a", "b", "c"], concurrency=1, progress=False)
    assert [run.status for run in runs] == ["COMPLETED", "FAILED", "COMPLETED"]
    assert said in runs[1].error
    assert all(al.fsck(run.path).ok for run in runs)
