"""Control requests in both directions: answers, errors, time limits, cancellation.

A fake runtime answers late, wrongly, in another order or not at all, which the real
one never does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from qoder_agent_sdk import (
    CLIConnectionError,
    ControlRequestError,
    ControlRequestTimeoutError,
    PermissionResultAllow,
    QoderAgentOptions,
    QoderSDKClient,
)

pytestmark = pytest.mark.anyio

ECHO = """
handshake()
while (message := read()) is not None:
    answer(message, {"request": message["request"]})
"""


async def test_a_request_carries_its_fields_and_brings_the_answer(fake_runtime: Any) -> None:
    async with QoderSDKClient(QoderAgentOptions(cli_path=fake_runtime(ECHO))) as client:
        answer = await client.rewind("u-1", scope="files", dry_run=True)
        assert answer["request"] == {"subtype": "rewind", "user_message_id": "u-1", "scope": "files", "dry_run": True}


async def test_an_error_answer_is_raised_with_its_text(fake_runtime: Any) -> None:
    script = (
        "handshake()\nrequest = read()\nsend({'type': 'control_response', 'response': {'subtype': 'error', "
        "'request_id': request['request_id'], 'error': 'not built yet'}})\nwait_for_end()"
    )
    async with QoderSDKClient(QoderAgentOptions(cli_path=fake_runtime(script))) as client:
        with pytest.raises(ControlRequestError, match="^not built yet$") as caught:
            await client.stop_task("t")
        assert caught.value.subtype == "stop_task"


async def test_answers_may_come_in_any_order(fake_runtime: Any) -> None:
    script = (
        "handshake()\nfirst, second = read(), read()\n"
        "answer(second, {'title': second['request']['description']})\n"
        "answer(first, {'title': first['request']['description']})\nwait_for_end()"
    )
    got: dict[str, Any] = {}
    async with QoderSDKClient(QoderAgentOptions(cli_path=fake_runtime(script))) as client:

        async def title(name: str) -> None:
            got[name] = await client.generate_session_title(name)

        async with anyio.create_task_group() as group:
            group.start_soon(title, "one")
            group.start_soon(title, "two")
    assert got == {"one": "one", "two": "two"}


async def test_a_request_without_answer_is_cancelled_after_the_limit(fake_runtime: Any, tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"
    script = (
        f"handshake()\nrequest, cancel = read(), read()\n"
        f"open({str(seen)!r}, 'w').write(json.dumps([request, cancel]))\nanswer(request)\nwait_for_end()"
    )
    options = QoderAgentOptions(cli_path=fake_runtime(script))
    async with QoderSDKClient(options) as client:
        # Only now, so that a slow start of the process does not count.
        options.control_request_timeout_ms = 100
        with pytest.raises(ControlRequestTimeoutError, match="'mcp_status' within 100 ms") as caught:
            await client.get_mcp_status()
        assert isinstance(caught.value, TimeoutError)
    request, cancel = json.loads(seen.read_text())
    assert cancel == {"type": "control_cancel_request", "request_id": request["request_id"]}


async def test_without_a_limit_the_answer_is_waited_for(fake_runtime: Any) -> None:
    script = (
        "import time\nhandshake()\nrequest = read()\ntime.sleep(0.3)\nanswer(request, {'moved': True})\nwait_for_end()"
    )
    options = QoderAgentOptions(cli_path=fake_runtime(script), control_request_timeout_ms=0)
    async with QoderSDKClient(options) as client:
        assert await client.background_tasks() is True


async def test_a_process_that_ends_fails_what_waits(fake_runtime: Any) -> None:
    script = "handshake()\nread()\nprint('lost', file=sys.stderr)\nsys.exit(3)"
    async with QoderSDKClient(QoderAgentOptions(cli_path=fake_runtime(script))) as client:
        with pytest.raises(CLIConnectionError, match="exit code 3"):
            await client.interrupt()
        with pytest.raises(CLIConnectionError, match="has ended"):
            await client.interrupt()


async def test_answers_arrive_although_nobody_reads_the_messages(fake_runtime: Any) -> None:
    script = "handshake()\nrequest = read()\nfor _ in range(30000):\n    say('x' * 50)\nanswer(request, {'moved': True})\nwait_for_end()"
    async with QoderSDKClient(QoderAgentOptions(cli_path=fake_runtime(script))) as client:
        assert await client.background_tasks() is True


async def test_a_client_that_is_not_connected_says_so() -> None:
    client = QoderSDKClient()
    for attempt in (client.interrupt, client.get_mcp_status, client.supported_commands):
        with pytest.raises(CLIConnectionError, match="not connected"):
            await attempt()
    with pytest.raises(CLIConnectionError, match="not connected"):
        client.supported_agents()
    with pytest.raises(CLIConnectionError, match="not connected"):
        await client.query("hi")


async def test_a_cancelled_callback_sees_its_signal_and_sends_nothing(fake_runtime: Any, tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"
    script = (
        "handshake()\nask('r1', subtype='can_use_tool', tool_name='Bash', input={}, tool_use_id='t')\n"
        "started = read()\n"
        "send({'type': 'control_cancel_request', 'request_id': 'r1'})\n"
        f"ended = read()\nopen({str(seen)!r}, 'w').write(json.dumps([started, ended]))\nwait_for_end()"
    )
    signalled = anyio.Event()

    async def can_use_tool(name: str, arguments: dict[str, Any], context: Any) -> PermissionResultAllow:
        started.set()
        await context.signal.wait()
        signalled.set()
        return PermissionResultAllow()

    started = anyio.Event()
    options = QoderAgentOptions(cli_path=fake_runtime(script), can_use_tool=can_use_tool)
    async with QoderSDKClient(options) as client:
        with anyio.fail_after(60):
            await started.wait()
            await client.query("started")
            await signalled.wait()
            await client.query("ended")
    first, second = json.loads(seen.read_text())
    assert first["message"]["content"] == "started"
    assert second["message"]["content"] == "ended"


async def test_a_cancelled_callback_that_ignores_its_signal_is_stopped(fake_runtime: Any) -> None:
    script = (
        "handshake()\nask('r1', subtype='can_use_tool', tool_name='Bash', input={}, tool_use_id='t')\n"
        "read()\nsend({'type': 'control_cancel_request', 'request_id': 'r1'})\nwait_for_end()"
    )
    started, stopped = anyio.Event(), anyio.Event()

    async def can_use_tool(name: str, arguments: dict[str, Any], context: Any) -> PermissionResultAllow:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            stopped.set()
        return PermissionResultAllow()

    options = QoderAgentOptions(cli_path=fake_runtime(script), can_use_tool=can_use_tool)
    async with QoderSDKClient(options) as client:
        with anyio.fail_after(60):
            await started.wait()
            await client.query("go")
            await stopped.wait()


UNANSWERABLE = [
    ({"subtype": "dance"}, "unsupported control request subtype: dance"),
    ({"subtype": "hook_callback", "callback_id": "hook_9", "input": {}}, "no hook callback 'hook_9'"),
    ({"subtype": "can_use_tool", "tool_name": "Bash", "input": {}}, "no can_use_tool callback"),
    ({}, "unsupported control request"),
]


@pytest.mark.parametrize(("request_", "text"), UNANSWERABLE)
async def test_what_cannot_be_answered_is_refused(request_: Any, text: str, fake_runtime: Any, tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"
    script = f"handshake()\nask('r1', **{request_!r})\nopen({str(seen)!r}, 'w').write(json.dumps(read()))\nresult()\nwait_for_end()"
    async with QoderSDKClient(QoderAgentOptions(cli_path=fake_runtime(script))) as client:
        async for _message in client.receive_response():
            pass
    reply = json.loads(seen.read_text())["response"]
    assert reply["subtype"] == "error" and reply["request_id"] == "r1"
    assert text in reply["error"]


async def test_a_message_to_an_unknown_server_is_a_json_rpc_error(fake_runtime: Any, tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"
    script = (
        "handshake()\nask('r1', subtype='mcp_message', server_name='x', message={'jsonrpc': '2.0', 'id': 4, 'method': 'ping'})\n"
        f"open({str(seen)!r}, 'w').write(json.dumps(read()))\nresult()\nwait_for_end()"
    )
    async with QoderSDKClient(QoderAgentOptions(cli_path=fake_runtime(script))) as client:
        async for _message in client.receive_response():
            pass
    reply = json.loads(seen.read_text())["response"]
    assert reply["subtype"] == "success"
    assert reply["response"]["mcp_response"]["error"]["code"] == -32601
    assert reply["response"]["mcp_response"]["id"] == 4


async def test_two_consumers_share_the_messages(fake_runtime: Any) -> None:
    script = "handshake()\nread()\nfor number in range(10):\n    say(str(number))\nwait_for_end()"
    got: list[Any] = []
    async with QoderSDKClient(QoderAgentOptions(cli_path=fake_runtime(script))) as client:

        async def consume() -> None:
            async for message in client.receive_messages():
                got.append(message)
                if len(got) == 10:
                    group.cancel_scope.cancel()

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(consume)
                group.start_soon(consume)
                await client.query("go")
    assert len(got) == 10
