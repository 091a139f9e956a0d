"""Servers and hosts that take their time: interrupting, leaving, and what the first model call waits for.

A question that waits must hold up nothing that does not need its answer.
"""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from support.asking import drain
from support.looking import result_of, results_by_tool, run, text_of
from support.real_servers import asking, calling, everything, results, rows, settled, status_is

from qoder_agent_sdk import QoderSDKClient

pytestmark = pytest.mark.anyio

BOOK = "mcp__asking__book"
ECHO = "mcp__every__echo"
LONG = "mcp__every__trigger-long-running-operation"
WHOAMI = "mcp__guarded__whoami"


async def test_interrupting_takes_a_question_back(scripted: Any) -> None:
    asked, told = anyio.Event(), anyio.Event()

    async def on_elicitation(_: dict[str, Any], options: Any) -> Any:
        asked.set()
        while not options.signal.is_set():
            await anyio.sleep(0.01)
        told.set()
        return {"action": "accept", "content": {"guests": 1}}

    options = calling(
        scripted, (BOOK, {"place": "Chez Nous"}), mcp_servers={"asking": asking()}, on_elicitation=on_elicitation
    )
    async with QoderSDKClient(options) as client:
        await settled(client)
        await client.query("go")
        with anyio.fail_after(60):
            await asked.wait()
            await client.interrupt()
            messages = await drain(client)
            await told.wait()
        assert result_of(messages).subtype == "error_during_execution"
        assert (await rows(client))["asking"]["status"] == "connected"


async def test_a_client_leaves_although_a_question_waits(scripted: Any) -> None:
    asked = anyio.Event()

    async def on_elicitation(_: dict[str, Any]) -> Any:
        asked.set()
        await anyio.sleep_forever()

    options = calling(
        scripted, (BOOK, {"place": "Chez Nous"}), mcp_servers={"asking": asking()}, on_elicitation=on_elicitation
    )
    with anyio.fail_after(60):
        async with QoderSDKClient(options) as client:
            await settled(client)
            await client.query("go")
            await asked.wait()


async def test_interrupting_ends_a_long_call_and_leaves_the_server_connected(scripted: Any) -> None:
    replies = [
        {"when": {"turn": 1}, "toolCalls": [{"name": LONG, "input": {"duration": 600, "steps": 600}}]},
        {"when": {"contains": "go"}, "toolCalls": [{"name": ECHO, "input": {"message": "still there"}}]},
        {"text": "Done.", "repeat": True},
    ]
    options = scripted(*replies, mcp_servers={"every": everything()}, allowed_tools=[LONG, ECHO])
    async with QoderSDKClient(options) as client:
        await settled(client)
        await client.query("begin")
        with anyio.fail_after(60):
            async for message in client.receive_messages():
                if LONG in str(message):
                    break
            await client.interrupt()
            await drain(client)
        assert text_of((await results(client))[ECHO]) == "Echo: still there"
        assert (await rows(client))["every"]["status"] == "connected"


async def test_a_person_who_does_not_sign_in_holds_up_nothing_else(guarded: Any, scripted: Any) -> None:
    asked = anyio.Event()

    async def on_mcp_oauth_required(_: dict[str, Any]) -> Any:
        asked.set()
        await anyio.sleep_forever()

    servers = {"guarded": guarded.config, "every": everything()}
    options = calling(
        scripted, (ECHO, {"message": "meanwhile"}), mcp_servers=servers, on_mcp_oauth_required=on_mcp_oauth_required
    )
    with anyio.fail_after(60):
        async with QoderSDKClient(options) as client:
            await asked.wait()
            await status_is(client, "every", "connected")
            assert (await rows(client))["guarded"]["status"] == "needs-auth"
            assert text_of((await results(client))[ECHO]) == "Echo: meanwhile"


async def test_a_token_that_the_host_has_at_hand_serves_the_first_model_call(guarded: Any, scripted: Any) -> None:
    async def on_mcp_oauth_required(_: dict[str, Any]) -> Any:
        return {"access_token": "at-hand"}

    guarded.accept("at-hand")
    options = calling(
        scripted,
        (WHOAMI, {}),
        mcp_servers={"guarded": guarded.config},
        on_mcp_oauth_required=on_mcp_oauth_required,
    )
    assert text_of(results_by_tool(await run("go", options))[WHOAMI]) == "the host"


async def test_a_silent_server_delays_the_first_model_call_only_for_a_while(scripted: Any) -> None:
    servers = {"silent": {"command": "/bin/sleep", "args": ["1000"]}}
    options = scripted({"text": "Hi.", "repeat": True}, mcp_servers=servers, env={"QODER_MCP_START_WAIT_MS": "100"})
    async with QoderSDKClient(options) as client:
        await client.query("go")
        assert result_of(await drain(client)).result == "Hi."
        assert (await rows(client))["silent"]["status"] == "connecting"
