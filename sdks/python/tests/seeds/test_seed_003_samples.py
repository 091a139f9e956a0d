"""Document 003: what its sections describe, as the programs of `samples/003_servers.md`, against real servers.

The samples name no model; the model of the environment follows a playbook.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from support.looking import call
from support.real_servers import asking, everything, installed, until
from support.samples import execute, playbook, public_names, sample

from qoder_agent_sdk import QoderAgentOptions, QoderSDKClient, create_sdk_mcp_server

pytestmark = pytest.mark.anyio

FILE = "003_servers"


@pytest.fixture
def anyio_backend() -> str:
    """The samples use asyncio."""
    return "asyncio"


async def wait_for_servers(client: QoderSDKClient, *names: str) -> None:
    """Until each of these has been tried, or all have."""
    done = {"connected", "failed", "disabled"} if names else {"connected", "failed", "disabled", "needs-auth"}
    await until(client, lambda seen: all(seen[name]["status"] in done for name in names or seen))


@pytest.fixture
def printed(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a sample whose model makes these calls; gives what it printed."""

    async def run(title: str, *calls: dict[str, Any], **names: Any) -> str:
        monkeypatch.chdir(project)
        replies = [{"when": {"turn": turn}, "toolCalls": [each]} for turn, each in enumerate(calls, start=1)]
        monkeypatch.setenv("QODER_MODEL", playbook(tmp_path, *replies, {"text": "Done.", "repeat": True}))
        servers = {
            "EVERYTHING": everything(),
            "TIME": {"command": installed("venv/bin/mcp-server-time"), "args": ["--local-timezone", "UTC"]},
            "ASKING": asking(),
        }
        given = {**public_names(), **servers, "wait_for_servers": wait_for_servers, **names}
        await execute(sample(FILE, title), given)
        return capsys.readouterr().out

    return run


async def test_getting_started(printed: Any) -> None:
    assert "Hello, Ada!" in await printed("getting started", call("mcp__my_tools__greet", name="Ada"))


async def test_a_handler_hears_that_it_was_cancelled(project: Path, tmp_path: Path) -> None:
    seen: list[str] = []
    names = await execute(sample(FILE, "cancellation signal"), {**public_names(), "seen": seen})
    model = playbook(tmp_path, {"when": {"turn": 1}, "toolCalls": [call("mcp__s__watch")]}, {"text": "Done."})
    options = QoderAgentOptions(
        model=model,
        cwd=project,
        mcp_servers={"s": create_sdk_mcp_server("s", tools=[names["watch"]])},
        allowed_tools=["mcp__s__watch"],
    )
    async with QoderSDKClient(options) as client:
        await client.query("go")
        with anyio.fail_after(60):
            while not seen:
                await anyio.sleep(0.01)
            await client.interrupt()
            while len(seen) < 2:
                await anyio.sleep(0.01)
    assert seen == ["watching", "cancelled"]


async def test_a_stdio_server(printed: Any) -> None:
    assert "Echo: word" in await printed("stdio server", call("mcp__everything__echo", message="word"))


async def test_a_remote_server(printed: Any, asking_over: Any) -> None:
    shown = await printed(
        "remote server", call("mcp__remote__header", name="x-fruit"), REMOTE=asking_over("http")["url"]
    )
    assert "content='pear'" in shown


async def test_restricting_what_is_seen(printed: Any) -> None:
    shown = await printed("restrict what is seen", call("mcp__everything__echo", message="seen"))
    assert "Echo: seen" in shown
    assert "mcp__time__" not in shown and "'Bash'" not in shown


async def test_querying_status(printed: Any) -> None:
    shown = await printed("querying status")
    assert "everything connected 2" in shown and "reads only: echo" in shown


@pytest.mark.parametrize("title", ["subscribing with a callback", "subscribing on the stream"])
async def test_subscribing_to_changes(title: str, printed: Any) -> None:
    assert (await printed(title)).splitlines() == ["[everything] connecting", "[everything] connected"]


async def test_adding_removing_and_reconnecting(printed: Any) -> None:
    shown = await printed("adding, removing, reconnecting")
    assert "added ['broken', 'time'] removed ['everything'] errors ['broken']" in shown
    assert "{'broken': 'failed', 'time': 'connected'}" in shown


async def test_a_request_timeout(printed: Any) -> None:
    assert "too slow:" in await printed("request timeout")


async def test_inbound_authentication(printed: Any, guarded: Any) -> None:
    shown = await printed("inbound authentication", GUARDED=guarded.config, browser=guarded.consent)
    assert shown.splitlines() == ["sign in to guarded", "connected"]


async def test_outbound_authentication(printed: Any, guarded: Any) -> None:
    guarded.accept("from-elsewhere")
    shown = await printed(
        "outbound authentication", GUARDED=guarded.config, browser=guarded.consent, TOKEN="from-elsewhere"
    )
    assert shown.splitlines() == ["connected", "connected"]


async def test_answering_a_server(printed: Any) -> None:
    shown = await printed("answering a server", call("mcp__asking__book", place="Chez Nous"))
    assert "asking (The asking server) asks: A table at Chez Nous: how many are you?" in shown
    assert "observed Elicitation asking" in shown and "observed ElicitationResult asking" in shown
    assert '"guests": 2' in shown
