"""Document 003, elicitation: servers that ask the user, what the callback gets and may answer, and hooks that watch.

A server made with the official package asks in the middle of a tool call; what it was answered is the tool's result.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp.types import ElicitResult
from support.asking import drain
from support.looking import results_by_tool, run, text_of
from support.real_servers import asking, called, calling, rows, settled

from qoder_agent_sdk import HookMatcher, QoderSDKClient, SystemMessage

pytestmark = pytest.mark.anyio

BOOK = "mcp__asking__book"
VISIT = "mcp__asking__visit"
WHERE = {"place": "Chez Nous"}
MESSAGE = "A table at Chez Nous: how many are you?"


def booking(scripted: Any, **options: Any) -> Any:
    return calling(scripted, (BOOK, WHERE), mcp_servers={"asking": asking()}, **options)


async def booked(scripted: Any, answer: Any) -> dict[str, Any]:
    """What the server was told when the callback returns this."""

    async def on_elicitation(_: dict[str, Any]) -> Any:
        return answer

    result = (await called(booking(scripted, on_elicitation=on_elicitation)))[BOOK]
    given: dict[str, Any] = json.loads(text_of(result))
    return given


async def test_accepting_with_content(scripted: Any) -> None:
    answer = {"action": "accept", "content": {"guests": 4, "vegetarian": True}}
    assert await booked(scripted, answer) == {"action": "accept", "data": {"guests": 4, "vegetarian": True}}


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_declining_and_cancelling(action: str, scripted: Any) -> None:
    assert await booked(scripted, {"action": action}) == {"action": action, "data": None}


async def test_none_cancels(scripted: Any) -> None:
    assert (await booked(scripted, None))["action"] == "cancel"


async def test_a_model_of_the_protocols_package_may_be_returned(scripted: Any) -> None:
    given = await booked(scripted, ElicitResult(action="accept", content={"guests": 2}))
    assert given == {"action": "accept", "data": {"guests": 2, "vegetarian": False}}
    assert (await booked(scripted, ElicitResult(action="decline")))["action"] == "decline"


async def test_content_that_does_not_fit_the_form_is_not_passed_on(scripted: Any) -> None:
    assert (await booked(scripted, {"action": "accept", "content": {"guests": "many"}}))["action"] == "cancel"


async def test_a_callback_that_fails_cancels(scripted: Any) -> None:
    async def on_elicitation(_: dict[str, Any]) -> Any:
        raise RuntimeError("the window is closed")

    result = (await called(booking(scripted, on_elicitation=on_elicitation)))[BOOK]
    assert json.loads(text_of(result))["action"] == "cancel"


async def test_without_a_callback_the_answer_is_cancel(scripted: Any) -> None:
    result = (await called(booking(scripted)))[BOOK]
    assert json.loads(text_of(result))["action"] == "cancel"


async def test_the_request_is_a_form_with_camel_case_keys(scripted: Any) -> None:
    asked: list[dict[str, Any]] = []

    async def on_elicitation(request: dict[str, Any]) -> Any:
        asked.append(request)
        return {"action": "decline"}

    await called(booking(scripted, on_elicitation=on_elicitation))
    (request,) = asked
    assert (request["serverName"], request["mode"], request["message"]) == ("asking", "form", MESSAGE)
    assert request["displayName"] == "The asking server"
    assert set(request["requestedSchema"]["properties"]) == {"guests", "vegetarian"}
    assert request["requestedSchema"]["required"] == ["guests"]
    assert not [key for key in request if "_" in key]


async def test_a_callback_may_take_a_signal(scripted: Any) -> None:
    async def on_elicitation(request: dict[str, Any], options: Any) -> Any:
        return {"action": "accept", "content": {"guests": 1 if not options.signal.is_set() else 0}}

    result = (await called(booking(scripted, on_elicitation=on_elicitation)))[BOOK]
    assert json.loads(text_of(result))["data"]["guests"] == 1


async def test_a_server_asks_during_a_single_query(scripted: Any) -> None:
    async def on_elicitation(_: dict[str, Any]) -> Any:
        return {"action": "accept", "content": {"guests": 6}}

    patience = {"QODER_MCP_START_WAIT_MS": "60000"}
    messages = await run("go", booking(scripted, on_elicitation=on_elicitation, env=patience))
    assert json.loads(text_of(results_by_tool(messages)[BOOK]))["data"]["guests"] == 6


@pytest.mark.parametrize("way", ["sse", "http"])
async def test_remote_servers_ask_too(way: str, asking_over: Any, scripted: Any) -> None:
    async def on_elicitation(_: dict[str, Any]) -> Any:
        return {"action": "accept", "content": {"guests": 3}}

    options = calling(scripted, (BOOK, WHERE), mcp_servers={"asking": asking_over(way)}, on_elicitation=on_elicitation)
    assert json.loads(text_of((await called(options))[BOOK]))["data"]["guests"] == 3


async def test_asking_to_visit_an_address_is_refused_before_it_reaches_the_host(scripted: Any) -> None:
    asked: list[Any] = []

    async def on_elicitation(request: dict[str, Any]) -> Any:
        asked.append(request)
        return {"action": "accept"}

    options = calling(scripted, (VISIT, {}), mcp_servers={"asking": asking()}, on_elicitation=on_elicitation)
    async with QoderSDKClient(options) as client:
        await settled(client)
        await client.query("go")
        messages = await drain(client)
    result = results_by_tool(messages)[VISIT]
    assert result.is_error and "Client does not support URL-mode elicitation requests" in text_of(result)
    assert asked == []
    assert "elicitation_complete" not in [each.subtype for each in messages if isinstance(each, SystemMessage)]


class Watching:
    """Hooks that note what they see, and try to decide although they may not."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        matcher = HookMatcher(hooks=[self._note])
        self.hooks = {"Elicitation": [matcher], "ElicitationResult": [matcher]}

    async def _note(self, given: Any, _: Any, __: Any) -> dict[str, Any]:
        self.seen.append(given)
        name = given["hook_event_name"]
        return {"hookSpecificOutput": {"hookEventName": name, "action": "accept", "content": {"guests": 99}}}


async def test_hooks_see_the_question_and_the_answer_and_do_not_decide(scripted: Any) -> None:
    async def on_elicitation(_: dict[str, Any]) -> Any:
        return {"action": "accept", "content": {"guests": 5}}

    watching = Watching()
    result = (await called(booking(scripted, on_elicitation=on_elicitation, hooks=watching.hooks)))[BOOK]
    assert json.loads(text_of(result))["data"]["guests"] == 5
    question, answer = watching.seen
    assert question["hook_event_name"] == "Elicitation"
    assert (question["mcp_server_name"], question["message"], question["mode"]) == ("asking", MESSAGE, "form")
    assert set(question["requested_schema"]["properties"]) == {"guests", "vegetarian"}
    assert answer["hook_event_name"] == "ElicitationResult"
    assert (answer["mcp_server_name"], answer["action"], answer["mode"]) == ("asking", "accept", "form")
    assert answer["content"] == {"guests": 5}


async def test_hooks_see_questions_that_nobody_answers(scripted: Any) -> None:
    watching = Watching()
    result = (await called(booking(scripted, hooks=watching.hooks)))[BOOK]
    assert json.loads(text_of(result))["action"] == "cancel"
    question, answer = watching.seen
    assert (question["hook_event_name"], answer["hook_event_name"]) == ("Elicitation", "ElicitationResult")
    assert answer["action"] == "cancel" and answer.get("content") is None


async def test_a_server_that_asks_needs_no_authorization(scripted: Any) -> None:
    statuses: list[str] = []

    async def on_elicitation(_: dict[str, Any]) -> Any:
        statuses.append((await rows(client))["asking"]["status"])
        return {"action": "decline"}

    async with QoderSDKClient(booking(scripted, on_elicitation=on_elicitation)) as client:
        await settled(client)
        await client.query("go")
        await drain(client)
        statuses.append((await rows(client))["asking"]["status"])
    assert statuses == ["connected", "connected"]
