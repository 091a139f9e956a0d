"""Measures what the SDK adds to a run; prints one JSON object.

`importMs` is the import in a fresh interpreter, less what an empty one takes.
`queryToInitMs` is from the call of `query()` to the `init` message. A tool round
trip goes from the runtime to a Python function and back. Each number is the
median of several runs. The runtime is found as in any program.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from qoder_agent_sdk import QoderAgentOptions, StreamEvent, SystemMessage, create_sdk_mcp_server, query, tool

RUNS = 7
TOOL_CALLS = 200
PIECES = 20_000


def interpreter_ms(code: str) -> float:
    """How long an interpreter takes for some code."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def options_for(folder: Path, replies: list[dict[str, Any]], **more: Any) -> QoderAgentOptions:
    """Options for a session whose model follows a playbook."""
    playbook = folder / "playbook.json"
    playbook.write_text(json.dumps({"replies": replies}))
    env: dict[str, str | None] = {"QODER_CONFIG_DIR": str(folder / "config")}
    return QoderAgentOptions(model=f"scripted:{playbook}", cwd=folder, env=env, **more)


async def query_to_init_ms(folder: Path) -> float:
    """From the call of `query()` to the first message."""
    times = []
    for _ in range(RUNS):
        options = options_for(folder, [{"text": "Hi."}])
        start = time.perf_counter()
        async for message in query(prompt="hello", options=options):
            if isinstance(message, SystemMessage) and message.subtype == "init":
                times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


async def tool_round_trip_ms(folder: Path) -> float:
    """The time between two calls of a tool in one batch, which includes all of the way there and back."""
    moments: list[float] = []

    @tool("tick", "Notes the time.", {})
    async def tick(args: dict[str, Any]) -> dict[str, Any]:
        moments.append(time.perf_counter())
        return {"content": [{"type": "text", "text": "ok"}]}

    calls = [{"name": "mcp__bench__tick", "input": {}} for _ in range(TOOL_CALLS)]
    options = options_for(
        folder,
        [{"when": {"turn": 1}, "toolCalls": calls}, {"text": "Done."}],
        mcp_servers={"bench": create_sdk_mcp_server(name="bench", tools=[tick])},
        allowed_tools=["mcp__bench__tick"],
    )
    async for _message in query(prompt="go", options=options):
        pass
    gaps = [(later - earlier) * 1000 for earlier, later in zip(moments, moments[1:], strict=False)]
    return statistics.median(gaps)


async def partial_messages_per_second(folder: Path) -> float:
    """How many pieces of a reply reach the program in a second."""
    reply = {"text": "word " * PIECES, "chunks": PIECES}
    count, start, end = 0, 0.0, 0.0
    async for message in query(prompt="go", options=options_for(folder, [reply], include_partial_messages=True)):
        if isinstance(message, StreamEvent):
            start = start or time.perf_counter()
            count += 1
            end = time.perf_counter()
    return count / (end - start)


async def measure() -> dict[str, float]:
    """All numbers that need a runtime."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return {
            "queryToInitMs": await query_to_init_ms(folder),
            "toolRoundTripMs": await tool_round_trip_ms(folder),
            "partialMessagesPerSecond": await partial_messages_per_second(folder),
        }


def main() -> None:
    """Print the numbers."""
    empty = interpreter_ms("pass")
    numbers = {
        "importMs": interpreter_ms("from qoder_agent_sdk import QoderAgentOptions, query") - empty,
        **asyncio.run(measure()),
    }
    print(json.dumps({key: round(value, 3) for key, value in numbers.items()}))


if __name__ == "__main__":
    main()
