"""Ways to run a query and to look at what it gave.

Messages come in many kinds; these functions pick texts, calls, results and the end
of a run out of them.
"""

from __future__ import annotations

from typing import Any

from qoder_agent_sdk import (
    AssistantMessage,
    Message,
    QoderAgentOptions,
    ResultMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    query,
)


async def run(prompt: Any, options: QoderAgentOptions) -> list[Message]:
    """All messages of a query."""
    return [message async for message in query(prompt=prompt, options=options)]


def result_of(messages: list[Message]) -> ResultMessage:
    """The one result among the messages."""
    results = [message for message in messages if isinstance(message, ResultMessage)]
    assert len(results) == 1, messages
    return results[0]


def texts_of(messages: list[Message]) -> list[str]:
    """What the model said."""
    return [
        block.text
        for message in messages
        if isinstance(message, AssistantMessage)
        for block in message.content
        if isinstance(block, TextBlock)
    ]


def calls_of(messages: list[Message]) -> list[ToolUseBlock]:
    """The tool calls of the model."""
    return [
        block
        for message in messages
        if isinstance(message, AssistantMessage)
        for block in message.content
        if isinstance(block, ToolUseBlock)
    ]


def tool_results_of(messages: list[Message]) -> list[ToolResultBlock]:
    """The results of tool calls."""
    return [
        block
        for message in messages
        if isinstance(message, UserMessage) and not isinstance(message.content, str)
        for block in message.content
        if isinstance(block, ToolResultBlock)
    ]


def results_by_tool(messages: list[Message]) -> dict[str, ToolResultBlock]:
    """The results of tool calls by the names of the tools; results may come in any order."""
    names = {block.id: block.name for block in calls_of(messages)}
    return {names[block.tool_use_id]: block for block in tool_results_of(messages)}


def text_of(block: ToolResultBlock) -> str:
    """The text of a tool result."""
    if isinstance(block.content, str):
        return block.content
    return "\n".join(str(part.get("text", "")) for part in block.content or [])


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    """A tool call for a playbook."""
    return {"name": name, "input": arguments}
