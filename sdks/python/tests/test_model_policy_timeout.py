"""A model callback that is too slow fails the query by name.

The runtime sees an error reply; the program sees `ModelPolicyTimeoutError` after the
result of the turn.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from qoder_agent_sdk import ModelPolicyTimeoutError, QoderAgentOptions, QoderSDKClient, ResultMessage, query

pytestmark = pytest.mark.anyio

SCRIPT = """
handshake()
read()
ask('r1', subtype='get_model_policy', purpose='main', sessionId='s', agentId='', turnIndex=0, availableModels=[])
open(SEEN, 'w').write(json.dumps(read()))
result(subtype='error_during_execution', is_error=True, result=None, errors=['no model'])
"""


async def slow(context: Any) -> Any:
    await anyio.sleep_forever()


def blocking(context: Any) -> Any:
    """Answers, but too late, and cannot be interrupted."""
    time.sleep(0.1)
    return {"model": "offline"}


async def stubborn(context: Any) -> Any:
    """Answers although it was told to end."""
    try:
        await anyio.sleep_forever()
    except anyio.get_cancelled_exc_class():
        return {"model": "offline"}


def options(fake_runtime: Any, seen: Path, end: str, resolve_model: Any = slow) -> QoderAgentOptions:
    script = f"SEEN = {str(seen)!r}\n{SCRIPT}{end}"
    return QoderAgentOptions(cli_path=fake_runtime(script), resolve_model=resolve_model, resolve_model_timeout_ms=50)


@pytest.mark.parametrize("resolve_model", [slow, blocking, stubborn])
async def test_a_query_raises_after_its_result(resolve_model: Any, fake_runtime: Any, tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"
    got = []
    with pytest.raises(ModelPolicyTimeoutError, match="within 50 ms.*resolve_model_timeout_ms"):
        async for message in query(prompt="hi", options=options(fake_runtime, seen, "sys.exit(1)", resolve_model)):
            got.append(message)
    assert [type(each) for each in got] == [ResultMessage]
    reply = json.loads(seen.read_text())["response"]
    assert reply["subtype"] == "error" and "ModelPolicyTimeoutError" in reply["error"]


async def test_a_client_raises_after_the_result_and_goes_on(fake_runtime: Any, tmp_path: Path) -> None:
    end = "read()\nresult()\nwait_for_end()"
    async with QoderSDKClient(options(fake_runtime, tmp_path / "seen.json", end)) as client:
        await client.query("hi")
        with pytest.raises(ModelPolicyTimeoutError):
            async for _message in client.receive_response():
                pass
        await client.query("again")
        messages = [message async for message in client.receive_response()]
    assert isinstance(messages[-1], ResultMessage) and not messages[-1].is_error
