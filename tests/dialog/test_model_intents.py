"""Intents by a model call with a schema: read, checked, and never made up."""

import json

import pytest

from axislab.dialog.model_intents import TOOL, ModelIntents
from axislab.errors import ModelError
from axislab.fsm.dialog_values import Intent, Relation
from axislab.models.base import ModelReply
from axislab.models.scripted import ScriptedModel
from axislab.recipes.ops_dialog import CANARY, DEPLOY, REPAIR
from tests.dialog.ops_world import World, opened, operator

SKILLS = [REPAIR, DEPLOY, CANARY]
GOAL = Intent(name="deploy", text="deploy v2", about="v2")


def said(**fields):
    base = {"intent": "deploy", "confidence": 0.95, "relation": "new", "about": "v2"}
    return base | fields


def call(**fields):
    return ModelReply(tool_calls=(ScriptedModel.call(TOOL, **said(**fields)),))


def read(reply, goal=None):
    def ask(request):
        raise AssertionError("nothing is to be asked here")

    return ModelIntents(SKILLS, ask).read(reply, "words", goal)


def test_the_call_of_the_tool_is_the_intent():
    found = read(call(relation="changed", why="he says so"), GOAL)
    assert found == Intent(
        name="deploy",
        text="words",
        confidence=0.95,
        relation=Relation.CHANGED,
        about="v2",
        why="he says so",
    )


def test_json_in_the_text_will_do():
    text = f"Here it is:\n```json\n{json.dumps(said(intent='canary'))}\n```"
    assert read(ModelReply(text=text)).name == "canary"


@pytest.mark.parametrize(
    ("fields", "goal", "relation"),
    [
        ({"relation": "changed"}, None, Relation.NEW),
        ({"relation": "new"}, GOAL, Relation.SAME),
        ({"relation": "new", "intent": "canary"}, GOAL, Relation.CHANGED),
        ({"relation": "added", "intent": "repair"}, GOAL, Relation.ADDED),
    ],
)
def test_the_relation_fits_whether_there_is_a_goal(fields, goal, relation):
    assert read(call(**fields), goal).relation is relation


def test_what_is_not_said_to_be_about_something_is_about_what_the_goal_is():
    assert read(call(about=""), GOAL).about == "v2"
    assert read(call(about=""), None).about == ""


@pytest.mark.parametrize(
    "reply",
    [
        ModelReply(text="I think he wants to deploy."),
        ModelReply(text=None),
        ModelReply(text='{"intent": "deploy"}'),
        ModelReply(text='{"intent": "deploy", "confidence": 1'),
        call(intent="dance"),
        call(confidence=7),
        call(confidence="high"),
        call(relation="cousin"),
        ModelReply(tool_calls=(ScriptedModel.call("search", query="x"),)),
        ModelReply(text='{"intent": "none", "confidence": 1, "relation": "new"}'),
    ],
)
def test_what_does_not_keep_to_the_schema_is_no_intent(reply):
    found = read(reply)
    assert (found.name, found.confidence) == ("", 0.0)
    assert found.why


def test_the_model_is_told_the_skills_the_goal_and_the_schema():
    requests = []

    def ask(request):
        requests.append(request)
        return call()

    ModelIntents(SKILLS, ask)("先灰度发布", GOAL)
    (request,) = requests
    text = "\n".join(message.text for message in request.messages)
    assert all(skill.name in text for skill in SKILLS)
    assert "先灰度发布" in text
    assert "deploy, about 'v2'" in text
    assert request.tools[0].parameters["properties"]["intent"]["enum"][-1] == "none"
    assert request.sampling.temperature == 0.0


def listening(request):
    """An agent that also says what was meant."""
    if not any(tool.name == TOOL for tool in request.tools):
        return operator(request)
    text = request.messages[-1].text
    if "canary" in text.rpartition("Message:")[2]:
        return ScriptedModel.call(TOOL, **said(intent="canary", relation="changed"))
    return ScriptedModel.call(TOOL, **said())


def test_a_dialog_can_ask_its_model_what_is_wanted_and_the_requests_are_counted():
    world = World()
    model = ScriptedModel(listening)
    world, chat = opened(world, model=model, intents="model")
    chat.say("please bring out the second version")
    chat.say("better a canary")
    chat.confirm()
    assert world.shares == {"v2": 5}
    purposes = [request.purpose for request in model.requests]
    assert purposes.count("intent") == 2


def test_a_model_that_cannot_be_asked_is_no_intent_and_says_so():
    def line(request):
        raise ModelError("the provider is down")

    _, chat = opened(model=ScriptedModel(line), intents="model")
    reply = chat.say("deploy v2")
    assert reply.state == "IDLE"
    assert "the provider is down" in reply.text
