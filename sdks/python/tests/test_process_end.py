"""How sessions end: closed input, crashes, early exits, killed programs.

Whatever happens, the program learns how the runtime ended and no process is left
behind.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from support.looking import run

from qoder_agent_sdk import (
    CLIJSONDecodeError,
    HookMatcher,
    MessageParseError,
    QoderAgentOptions,
    QoderCliProcessError,
    QoderSDKClient,
    QueryResultError,
    ResultMessage,
    query,
)

pytestmark = pytest.mark.anyio


def gone(pid: int) -> bool:
    """Whether a process ends; waits for it."""
    for _ in range(600):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            return True
        time.sleep(0.1)
    return False


async def never(name: str, arguments: Any, context: Any) -> Any:
    raise AssertionError("the runtime does not ask")


PID = "import os\nhandshake(pid=os.getpid())\n"


async def test_a_consumer_that_stops_early_ends_the_process(fake_runtime: Any) -> None:
    script = PID + "read()\nsend({'type': 'system', 'subtype': 'init', 'pid': os.getpid()})\nwait_for_end()"
    stream = query(prompt="hi", options=QoderAgentOptions(cli_path=fake_runtime(script)))
    pid = 0
    async for message in stream:
        pid = message.data["pid"]  # type: ignore[union-attr]
        break
    await stream.aclose()
    assert pid and gone(pid)


LAST_HOOK = (
    "ask('end', subtype='hook_callback', callback_id='hook_0', tool_use_id=None, "
    "input={'hook_event_name': 'SessionEnd', 'reason': 'other'})\n"
)


@pytest.mark.parametrize("one_shot", [True, False])
async def test_hooks_hear_of_the_end_although_they_cannot_answer(one_shot: bool, fake_runtime: Any) -> None:
    reasons: list[str] = []

    async def hook(record: Any, tool_use_id: Any, context: Any) -> dict[str, Any]:
        await anyio.sleep(0.1)
        reasons.append(record.reason)
        return {}

    script = "handshake()\nread()\nresult()\nwait_for_end()\n" + LAST_HOOK
    hooks: Any = {"SessionEnd": [HookMatcher(hooks=[hook])]}
    options = QoderAgentOptions(cli_path=fake_runtime(script), hooks=hooks)
    if one_shot:
        await run("hi", options)
    else:
        async with QoderSDKClient(options) as client:
            await client.query("hi")
            async for _message in client.receive_response():
                pass
    assert reasons == ["other"]


async def test_a_running_turn_is_interrupted_when_nobody_wants_it(fake_runtime: Any, tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"
    script = f"handshake()\nread()\nsay('working')\nopen({str(seen)!r}, 'w').write(json.dumps(read()))\nwait_for_end()"

    async def prompts() -> Any:
        yield {"type": "user", "message": {"role": "user", "content": "go"}}
        await anyio.sleep_forever()

    stream = query(prompt=prompts(), options=QoderAgentOptions(cli_path=fake_runtime(script)))
    async for _message in stream:
        break
    await stream.aclose()
    assert json.loads(seen.read_text())["request"] == {"subtype": "interrupt"}


async def test_a_query_that_is_cancelled_ends_the_process(fake_runtime: Any) -> None:
    pids: list[int] = []
    script = PID + "read()\nsend({'type': 'system', 'subtype': 'init', 'pid': os.getpid()})\nwait_for_end()"
    with anyio.fail_after(60):
        with anyio.CancelScope() as scope:
            async for message in query(
                prompt="hi", options=QoderAgentOptions(cli_path=fake_runtime(script), can_use_tool=never)
            ):
                pids.append(message.data["pid"])  # type: ignore[union-attr]
                scope.cancel()
    assert scope.cancelled_caught and gone(pids[0])


async def test_a_runtime_that_ignores_the_end_of_input_is_stopped(
    fake_runtime: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qoder_agent_sdk._process.transport.END_SECONDS", 0.5)
    script = "import os, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nhandshake(pid=os.getpid())\ntime.sleep(600)"
    client = QoderSDKClient(QoderAgentOptions(cli_path=fake_runtime(script)))
    await client.connect()
    pid = (await client.get_server_info())["pid"]
    await client.disconnect()
    assert gone(pid)


async def test_a_runtime_with_much_to_say_can_still_end(fake_runtime: Any) -> None:
    script = PID + "wait_for_end()\nfor _ in range(3000):\n    say('x' * 1000)\nsys.exit(0)"
    client = QoderSDKClient(QoderAgentOptions(cli_path=fake_runtime(script)))
    await client.connect()
    pid = (await client.get_server_info())["pid"]
    await client.disconnect()
    assert gone(pid)


async def test_output_that_somebody_else_holds_open_does_not_hang(fake_runtime: Any) -> None:
    script = "import subprocess\nhandshake()\nread()\nsubprocess.Popen(['sleep', '30'])\nsay('last words')\nsys.exit(3)"
    got = []
    with anyio.fail_after(60), pytest.raises(QoderCliProcessError, match="exit code 3"):
        async for message in query(prompt="hi", options=QoderAgentOptions(cli_path=fake_runtime(script))):
            got.append(message)
    assert len(got) == 1


def test_output_that_somebody_else_holds_open_leaves_nothing_behind(fake_runtime: Any, tmp_path: Path) -> None:
    script = "import subprocess\nhandshake()\nread()\nsubprocess.Popen(['sleep', '30'])\nresult()\n"
    program = tmp_path / "program.py"
    program.write_text(
        "import asyncio, gc\nfrom qoder_agent_sdk import QoderAgentOptions, query\nasync def main():\n"
        f"    async for message in query(prompt='hi', options=QoderAgentOptions(cli_path={str(fake_runtime(script))!r})):\n"
        "        print(type(message).__name__)\nasyncio.run(main())\ngc.collect()\n"
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("ResultMessage\n", "")


async def test_a_crash_is_reported_after_the_messages(fake_runtime: Any) -> None:
    script = "handshake()\nread()\nsay('before')\nprint('out of memory', file=sys.stderr)\nsys.exit(7)"
    got = []
    with pytest.raises(QoderCliProcessError) as caught:
        async for message in query(prompt="hi", options=QoderAgentOptions(cli_path=fake_runtime(script))):
            got.append(message)
    assert len(got) == 1
    assert caught.value.exit_code == 7 and "out of memory" in str(caught.value)


async def test_an_error_result_is_delivered_and_then_raised_once(fake_runtime: Any) -> None:
    script = (
        "handshake()\nread()\nresult(subtype='error_max_turns', is_error=True, result=None, errors=['too many turns'],"
        " terminal_reason='max_turns', error_code=47902)\nsys.exit(53)"
    )
    got = []
    with pytest.raises(QueryResultError) as caught:
        async for message in query(prompt="hi", options=QoderAgentOptions(cli_path=fake_runtime(script))):
            got.append(message)
    assert [type(message) for message in got] == [ResultMessage]
    error = caught.value
    assert (error.subtype, error.errors, error.exit_code) == ("error_max_turns", ["too many turns"], 53)
    assert error.terminal_reason == "max_turns" and error.error_code == 47902
    assert error.session_id == got[0].session_id  # type: ignore[union-attr]
    assert "too many turns" in str(error)


async def test_a_failure_before_the_handshake_still_delivers_its_result(fake_runtime: Any) -> None:
    script = (
        "read()\nresult(subtype='error_during_execution', is_error=True, result=None,"
        " errors=['No conversation found with session ID x'])\nsys.exit(1)"
    )
    got = []
    with pytest.raises(QueryResultError, match="No conversation found"):
        async for message in query(prompt="hi", options=QoderAgentOptions(cli_path=fake_runtime(script))):
            got.append(message)
    assert len(got) == 1 and isinstance(got[0], ResultMessage)


async def test_an_error_result_leaves_a_client_usable(fake_runtime: Any) -> None:
    script = (
        "handshake()\nread()\nresult(subtype='error_during_execution', is_error=True, errors=['x'])\n"
        "read()\nresult()\nwait_for_end()"
    )
    async with QoderSDKClient(QoderAgentOptions(cli_path=fake_runtime(script))) as client:
        for expected in (True, False):
            await client.query("go")
            async for message in client.receive_response():
                assert isinstance(message, ResultMessage) and message.is_error is expected


async def test_a_line_that_is_not_json_is_fatal(fake_runtime: Any) -> None:
    with pytest.raises(CLIJSONDecodeError, match="not JSON"):
        await run(
            "hi",
            QoderAgentOptions(cli_path=fake_runtime("handshake()\nread()\nprint('{oops', flush=True)\nwait_for_end()")),
        )


async def test_a_line_that_is_too_long_is_fatal(fake_runtime: Any) -> None:
    options = QoderAgentOptions(
        cli_path=fake_runtime("handshake()\nread()\nsay('x' * 100000)\nwait_for_end()"), max_buffer_size=50_000
    )
    with pytest.raises(CLIJSONDecodeError, match="more than 50000 bytes.*max_buffer_size"):
        await run("hi", options)


async def test_a_message_without_what_its_type_needs_is_an_error(fake_runtime: Any) -> None:
    script = "handshake()\nread()\nsend({'type': 'assistant', 'message': {}})\nwait_for_end()"
    with pytest.raises(MessageParseError, match="'assistant' has no 'content'"):
        await run("hi", QoderAgentOptions(cli_path=fake_runtime(script)))


async def test_a_prompt_iterable_that_raises_reaches_the_consumer(fake_runtime: Any) -> None:
    async def prompts() -> Any:
        yield {"type": "user", "message": {"role": "user", "content": "one"}}
        raise LookupError("no more prompts")

    with pytest.raises(LookupError, match="no more prompts"):
        await run(prompts(), QoderAgentOptions(cli_path=fake_runtime("handshake()\nwait_for_end()")))


@pytest.mark.parametrize("item", ["text", {"type": "user"}, {"type": "assistant", "message": {"content": "x"}}])
async def test_a_prompt_iterable_must_yield_user_messages(item: Any, fake_runtime: Any) -> None:
    async def prompts() -> Any:
        yield item

    with pytest.raises((TypeError, ValueError), match="a prompt iterable must yield"):
        await run(prompts(), QoderAgentOptions(cli_path=fake_runtime("handshake()\nwait_for_end()")))


async def test_files_of_a_session_are_deleted_with_it(
    fake_runtime: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    script = "handshake(config=open(sys.argv[sys.argv.index('--mcp-config') + 1]).read())\nwait_for_end()"
    servers: Any = {"a": {"type": "http", "url": "u", "headers": {"Authorization": "s3cret"}}}
    async with QoderSDKClient(QoderAgentOptions(cli_path=fake_runtime(script), mcp_servers=servers)) as client:
        assert json.loads((await client.get_server_info())["config"])["mcpServers"] == servers
    assert not list(tmp_path.glob("qoder-sdk-*"))


async def test_stderr_is_forwarded_line_by_line(fake_runtime: Any) -> None:
    lines: list[str] = []
    script = "handshake()\nprint('one\\ntwo', file=sys.stderr, flush=True)\nread()\nresult()\nwait_for_end()"
    await run("hi", QoderAgentOptions(cli_path=fake_runtime(script), stderr=lines.append))
    assert lines == ["one", "two"]


async def test_disconnecting_twice_is_harmless_and_connecting_again_works(fake_runtime: Any) -> None:
    client = QoderSDKClient(QoderAgentOptions(cli_path=fake_runtime("handshake()\nwait_for_end()")))
    for _ in range(2):
        await client.connect()
        await client.disconnect()
        await client.disconnect()


def program(tmp_path: Path, cli: Path, body: str) -> list[str]:
    path = tmp_path / "program.py"
    head = f"import asyncio, os, sys, time\nfrom qoder_agent_sdk import *\noptions = QoderAgentOptions(cli_path={str(cli)!r})\n"
    path.write_text(head + textwrap.dedent(body))
    return [sys.executable, str(path)]


def test_a_killed_program_takes_the_runtime_with_it(fake_runtime: Any, tmp_path: Path) -> None:
    body = """
    async def main():
        client = QoderSDKClient(options)
        await client.connect()
        print((await client.get_server_info())["pid"], flush=True)
        await asyncio.sleep(600)
    asyncio.run(main())
    """
    process = subprocess.Popen(
        program(tmp_path, fake_runtime(PID + "wait_for_end()"), body), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    assert gone(pid)


def test_a_program_that_forgets_to_disconnect_leaves_nothing_behind(fake_runtime: Any, tmp_path: Path) -> None:
    body = """
    async def main():
        client = QoderSDKClient(options)
        await client.connect()
        print((await client.get_server_info())["pid"], flush=True)
    asyncio.run(main())
    """
    script = PID + "import time\ntime.sleep(600)"
    done = subprocess.run(
        program(tmp_path, fake_runtime(script), body), stdout=subprocess.PIPE, text=True, timeout=60, check=True
    )
    assert gone(int(done.stdout))


def test_a_loop_that_is_left_early_leaves_nothing_behind(fake_runtime: Any, tmp_path: Path) -> None:
    body = """
    async def main():
        async for message in query(prompt="hi", options=options):
            print(message.data["pid"], flush=True)
            break
    asyncio.run(main())
    """
    script = (
        PID
        + "read()\nsend({'type': 'system', 'subtype': 'init', 'pid': os.getpid()})\nwait_for_end()\nimport time\ntime.sleep(600)"
    )
    done = subprocess.run(
        program(tmp_path, fake_runtime(script), body), stdout=subprocess.PIPE, text=True, timeout=60, check=True
    )
    assert gone(int(done.stdout))
