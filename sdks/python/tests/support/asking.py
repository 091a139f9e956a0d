"""Lets a fake runtime ask one question and shows what the SDK answered.

The questions are the control requests of a runtime: permissions, hooks, models,
elicitations and the like.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from qoder_agent_sdk import Message, QoderAgentOptions, QoderSDKClient


async def answers_to(
    fake_runtime: Any, folder: Path, *requests: dict[str, Any], **options: Any
) -> list[dict[str, Any]]:
    """The `response` objects for these requests, which are sent one after the other."""
    seen = folder / "answers.json"
    script = (
        "handshake(hook_on_failure_supported=True)\nanswers = []\n"
        f"for number, request in enumerate({list(requests)!r}):\n"
        "    ask(f'r{number}', **request)\n"
        "    answers.append(read()['response'])\n"
        f"open({str(seen)!r}, 'w').write(json.dumps(answers))\nresult()\nwait_for_end()"
    )
    async with QoderSDKClient(QoderAgentOptions(cli_path=fake_runtime(script), **options)) as client:
        await drain(client)
    answers: list[dict[str, Any]] = json.loads(seen.read_text())
    assert [each["request_id"] for each in answers] == [f"r{number}" for number in range(len(requests))]
    return answers


async def drain(client: QoderSDKClient) -> list[Message]:
    """All messages up to the result."""
    return [message async for message in client.receive_response()]
