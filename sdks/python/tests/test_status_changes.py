"""`on_mcp_status_change` is called for every change, in order.

A fake runtime reports the changes, since a real one has them too quickly to be sure of
each.
"""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from support.looking import run

from qoder_agent_sdk import QoderAgentOptions, SystemMessage

pytestmark = pytest.mark.anyio

SCRIPT = """
handshake()
read()
for status in ('pending', 'connecting', 'connected'):
    send({'type': 'system', 'subtype': 'mcp_status_change', 'servers': [{'name': 's', 'status': status}]})
result()
wait_for_end()
"""


@pytest.mark.parametrize("asynchronous", [True, False])
async def test_changes_come_in_order_and_stay_on_the_stream(asynchronous: bool, fake_runtime: Any) -> None:
    seen: list[str] = []

    def changed(servers: list[Any]) -> Any:
        async def slowly() -> None:
            await anyio.sleep(0.01)
            seen.append(servers[0]["status"])

        if asynchronous:
            return slowly()
        seen.append(servers[0]["status"])
        return None

    messages = await run("hi", QoderAgentOptions(cli_path=fake_runtime(SCRIPT), on_mcp_status_change=changed))
    assert seen == ["pending", "connecting", "connected"]
    assert len([each for each in messages if isinstance(each, SystemMessage)]) == 3


async def test_a_callback_that_fails_does_not_stop_the_next(fake_runtime: Any) -> None:
    seen: list[int] = []

    def changed(servers: list[Any]) -> None:
        seen.append(1)
        raise RuntimeError("the window is closed")

    await run("hi", QoderAgentOptions(cli_path=fake_runtime(SCRIPT), on_mcp_status_change=changed))
    assert len(seen) == 3
