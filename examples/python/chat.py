"""A chat in the terminal: many turns, streamed replies, questions before changes, one tool of its own.

Run it with `python chat.py`. Without any key the built-in offline model answers; try

    call mcp__clock__what_time_is_it with {"city": "Paris"}
    create file notes.txt with "hello"

An empty line or the end of input ends the chat.
"""

from __future__ import annotations

import argparse
import asyncio
from datetime import datetime, timezone
from typing import Any

from qoder_agent_sdk import (
    AssistantMessage,
    PermissionResult,
    PermissionResultAllow,
    PermissionResultDeny,
    QoderAgentOptions,
    QoderSDKClient,
    ResultMessage,
    StreamEvent,
    ToolPermissionContext,
    ToolUseBlock,
    create_sdk_mcp_server,
    tool,
)


@tool("what_time_is_it", "Returns the current time in UTC. Use it when the user asks for the time.", {"city": str})
async def what_time_is_it(args: dict[str, Any]) -> dict[str, Any]:
    """The one tool that this program adds."""
    now = datetime.now(timezone.utc).strftime("%H:%M")
    return {"content": [{"type": "text", "text": f"It is {now} UTC; convert it for {args['city']}."}]}


async def read_line(prompt: str) -> str:
    """A line of the user, without blocking the event loop."""
    try:
        return await asyncio.to_thread(input, prompt)
    except EOFError:
        return ""


async def ask_user(tool_name: str, arguments: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
    """Put the question to the person at the keyboard; anything but yes is no."""
    print(f"\n{context.title or tool_name} ({context.decision_reason or 'needs your approval'})")
    answer = await read_line("Allow? [y]es, [a]lways, [n]o: ")
    if answer.lower() in ("a", "always"):
        return PermissionResultAllow(updated_permissions=context.suggestions)
    if answer.lower() in ("y", "yes"):
        return PermissionResultAllow()
    return PermissionResultDeny(message="The user said no.")


async def show_reply(client: QoderSDKClient) -> None:
    """Print the reply while it is written."""
    async for message in client.receive_response():
        if isinstance(message, StreamEvent):
            delta = message.event.get("delta") or {}
            if delta.get("type") == "text_delta":
                print(delta["text"], end="", flush=True)
        elif isinstance(message, AssistantMessage):
            for block in message.content:
                if isinstance(block, ToolUseBlock):
                    print(f"\n[{block.name}]")
        elif isinstance(message, ResultMessage):
            print(f"\n({'; '.join(message.errors)})" if message.is_error else "")


async def main() -> None:
    """Talk until the user has nothing more to say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="the model to use; without it the configured one")
    parser.add_argument("--resume", help="the ID of a session to continue")
    arguments = parser.parse_args()
    options = QoderAgentOptions(
        model=arguments.model,
        resume=arguments.resume,
        include_partial_messages=True,
        can_use_tool=ask_user,
        mcp_servers={"clock": create_sdk_mcp_server(name="clock", tools=[what_time_is_it])},
        allowed_tools=["mcp__clock__what_time_is_it"],
    )
    async with QoderSDKClient(options) as client:
        while line := await read_line("> "):
            await client.query(line)
            await show_reply(client)


if __name__ == "__main__":
    asyncio.run(main())
