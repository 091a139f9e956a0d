"""Real MCP servers for tests, and what a session shows of them.

The servers of others are in the folder that `QODER_TEST_MCP` names: `node_modules` and `venv`. Those of
`sdks/scenarios/servers` are run by the interpreter of that `venv`.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

from qoder_agent_sdk import QoderAgentOptions, QoderSDKClient, ToolResultBlock
from support.asking import drain
from support.looking import call, results_by_tool
from support.repository import repository

#: How long a server may take before a test counts as hanging.
PATIENCE_SECONDS = 60.0


def installed(path: str) -> str:
    """A program of the folder with the servers of others."""
    folder = os.environ.get("QODER_TEST_MCP")
    if not folder:
        raise AssertionError(
            "QODER_TEST_MCP is not set: it must name a folder with node_modules and venv that hold MCP servers; "
            "'cargo xtask test' makes one and sets it"
        )
    program = Path(folder) / path
    assert program.exists(), f"{program} does not exist; is QODER_TEST_MCP right?"
    return str(program)


def everything() -> dict[str, Any]:
    """The server with a bit of everything, as a child process."""
    return {"command": installed("node_modules/.bin/mcp-server-everything"), "args": ["stdio"]}


def asking() -> dict[str, Any]:
    """Our server that asks its user, as a child process."""
    return {"command": installed("venv/bin/python"), "args": [own("asking.py"), "stdio"]}


def own(name: str) -> str:
    """A server of this repository."""
    return str(repository() / "sdks/scenarios/servers" / name)


@contextmanager
def running(name: str, *arguments: str) -> Iterator[str]:
    """One of our servers on a port; gives its address."""
    process = _start([installed("venv/bin/python"), own(name), *arguments], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, f"{name} ended before it was ready"
        yield json.loads(line)["url"]
    finally:
        _end(process)


@contextmanager
def everything_running(transport: str) -> Iterator[str]:
    """The server with a bit of everything on a port; gives the address without a path."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [installed("node_modules/.bin/mcp-server-everything"), transport]
    process = _start(command, stdout=subprocess.DEVNULL, env={**os.environ, "PORT": str(port)})
    try:
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            assert process.poll() is None and time.monotonic() < end, f"server-everything {transport} did not start"
            with socket.socket() as probe:
                if probe.connect_ex(("localhost", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://localhost:{port}"
    finally:
        _end(process)


def _start(command: list[str], **more: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, **more)


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


Rows = dict[str, dict[str, Any]]


async def rows(client: QoderSDKClient) -> Rows:
    """The servers of a session, by name."""
    return {row["name"]: dict(row) for row in (await client.get_mcp_status())["mcpServers"]}


async def until(client: QoderSDKClient, reached: Callable[[Rows], bool]) -> Rows:
    """The servers once something is true of them."""
    with anyio.fail_after(PATIENCE_SECONDS):
        while not reached(seen := await rows(client)):
            await anyio.sleep(0.05)
        return seen


async def settled(client: QoderSDKClient) -> Rows:
    """The servers once each has been tried."""
    return await until(
        client, lambda seen: all(row["status"] not in ("pending", "connecting") for row in seen.values())
    )


async def status_is(client: QoderSDKClient, name: str, status: str) -> dict[str, Any]:
    """The row of a server once it has this status."""
    return (await until(client, lambda seen: seen[name]["status"] == status))[name]


def calling(scripted: Any, *calls: tuple[str, dict[str, Any]], **options: Any) -> QoderAgentOptions:
    """Options for a model that makes these calls, each in a turn of its own, and then is done."""
    replies: list[dict[str, Any]] = [
        {"when": {"turn": number}, "toolCalls": [call(name, **arguments)]}
        for number, (name, arguments) in enumerate(calls, start=1)
    ]
    options.setdefault("allowed_tools", [name for name, _ in calls])
    made: QoderAgentOptions = scripted(*replies, {"text": "Done.", "repeat": True}, **options)
    return made


async def results(client: QoderSDKClient) -> dict[str, ToolResultBlock]:
    """What the calls of one prompt gave, by tool."""
    await client.query("go")
    return results_by_tool(await drain(client))


async def called(options: QoderAgentOptions) -> dict[str, ToolResultBlock]:
    """What the calls of a session gave, by tool; its servers are tried first."""
    async with QoderSDKClient(options) as client:
        await settled(client)
        return await results(client)
