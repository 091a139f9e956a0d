"""When a one-shot run closes the runtime's input.

Too early, and callbacks can no longer be answered; too late, and the program waits
forever.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from support.looking import run

from qoder_agent_sdk import PermissionResultAllow, QoderAgentOptions, create_sdk_mcp_server

pytestmark = pytest.mark.anyio


async def allow(name: str, arguments: Any, context: Any) -> PermissionResultAllow:
    return PermissionResultAllow()


async def two_prompts() -> Any:
    for text in ("one", "two"):
        yield {"type": "user", "message": {"role": "user", "content": text}}


async def test_without_callbacks_it_closes_after_the_prompt(fake_runtime: Any) -> None:
    script = (
        "handshake()\nstate('running')\nread()\nassert read() is None\nsay('closed first')\nresult()\nstate('idle')"
    )
    with anyio.fail_after(60):
        messages = await run("hi", QoderAgentOptions(cli_path=fake_runtime(script)))
    assert len(messages) == 2


async def test_without_callbacks_it_closes_after_the_last_prompt(fake_runtime: Any) -> None:
    script = "handshake()\nread()\nread()\nassert read() is None\nresult()\nresult()"
    with anyio.fail_after(60):
        assert len(await run(two_prompts(), QoderAgentOptions(cli_path=fake_runtime(script)))) == 2


async def test_with_a_callback_it_stays_open_until_the_runtime_rests(fake_runtime: Any, tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"
    script = (
        "handshake()\nstate('running')\nread()\nresult()\n"
        "ask('late', subtype='can_use_tool', tool_name='Bash', input={}, tool_use_id='t')\n"
        f"open({str(seen)!r}, 'w').write(json.dumps(read()))\nstate('idle')\nassert read() is None"
    )
    with anyio.fail_after(60):
        messages = await run("hi", QoderAgentOptions(cli_path=fake_runtime(script), can_use_tool=allow))
    assert json.loads(seen.read_text())["response"]["response"]["behavior"] == "allow"
    assert len(messages) == 1


async def test_a_runtime_that_reports_no_state_is_done_with_the_result(fake_runtime: Any) -> None:
    options = QoderAgentOptions(
        cli_path=fake_runtime("handshake()\nread()\nresult()\nassert read() is None"), can_use_tool=allow
    )
    with anyio.fail_after(60):
        assert len(await run("hi", options)) == 1


async def test_an_in_process_server_keeps_it_open(fake_runtime: Any) -> None:
    server = create_sdk_mcp_server(name="kb")
    script = (
        "handshake()\nstate('running')\nread()\n"
        "ask('r1', subtype='mcp_message', server_name='kb', message={'jsonrpc': '2.0', 'id': 1, 'method': 'ping'})\n"
        "assert read()['response']['response']['mcp_response']['result'] == {}\nresult()\nstate('idle')\nassert read() is None"
    )
    with anyio.fail_after(60):
        assert len(await run("hi", QoderAgentOptions(cli_path=fake_runtime(script), mcp_servers={"kb": server}))) == 1


async def test_every_prompt_of_an_iterable_is_waited_for(fake_runtime: Any) -> None:
    script = (
        "handshake()\nread()\nstate('running')\nresult()\nstate('idle')\n"
        "read()\nstate('running')\n"
        "ask('r1', subtype='can_use_tool', tool_name='Bash', input={}, tool_use_id='t')\n"
        "assert read()['response']['subtype'] == 'success'\nresult()\nstate('idle')\nassert read() is None"
    )
    options = QoderAgentOptions(cli_path=fake_runtime(script), can_use_tool=allow)
    with anyio.fail_after(60):
        assert len(await run(two_prompts(), options)) == 2


async def test_prompts_that_share_a_turn_do_not_hang(fake_runtime: Any) -> None:
    script = "handshake()\nread()\nread()\nstate('running')\nresult()\nstate('idle')\nassert read() is None"
    options = QoderAgentOptions(cli_path=fake_runtime(script), can_use_tool=allow)
    with anyio.fail_after(60):
        assert len(await run(two_prompts(), options)) == 1


async def test_state_frames_for_the_sdk_are_hidden_and_others_are_not(fake_runtime: Any) -> None:
    script = (
        "handshake()\nread()\nstate('running')\n"
        "send({'type': 'system', 'subtype': 'session_state_changed', 'state': 'running'})\nresult()\nstate('idle')\nwait_for_end()"
    )
    messages = await run("hi", QoderAgentOptions(cli_path=fake_runtime(script)))
    assert [getattr(each, "subtype", None) for each in messages] == ["session_state_changed", "success"]
