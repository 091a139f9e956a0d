"""From what a tool handler returns to an MCP `CallToolResult`.

Handlers return a dict with a `content` list. Anything else becomes an error
that says what was expected, so that the model never sees an empty success.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

logger = logging.getLogger("qoder_agent_sdk")

_EXPECTED = 'it must return a dict containing "content", for example {"content": [{"type": "text", "text": "done"}]}'


def error_result(text: str) -> dict[str, Any]:
    """A result that reports the failure of a call to the model."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def exception_text(error: BaseException) -> str:
    """An exception in one line, with its type: the text of a KeyError alone is only the key."""
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def call_tool_result(returned: Any, tool_name: str) -> dict[str, Any]:
    """The MCP result for what the handler of a tool returned."""
    if returned is None:
        return error_result(f"the handler of tool '{tool_name}' returned None; {_EXPECTED}")
    if not isinstance(returned, Mapping):
        return error_result(str(returned))
    if "content" not in returned:
        keys = ", ".join(map(str, returned)) or "none"
        return error_result(f"the handler of tool '{tool_name}' returned a dict with the keys: {keys}; {_EXPECTED}")
    blocks = returned["content"]
    if not isinstance(blocks, (list, tuple)):
        return error_result(
            f"the handler of tool '{tool_name}' returned \"content\" of type {type(blocks).__name__}; "
            "it must be a list of content blocks"
        )
    content = [converted for block in blocks if (converted := _content_block(block, tool_name)) is not None]
    return {"content": content, "isError": bool(returned.get("is_error", False))}


def _content_block(block: Any, tool_name: str) -> dict[str, Any] | None:
    """The MCP form of one block, or None for a block without one (a warning names it)."""
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "text":
        return {"type": "text", "text": str(block.get("text", ""))}
    if kind == "image":
        return {"type": "image", "data": block.get("data", ""), "mimeType": block.get("mimeType", "image/png")}
    if kind == "resource_link":
        parts = [block.get("name"), block.get("uri"), block.get("description")]
        text = "\n".join(str(part) for part in parts if part)
        return {"type": "text", "text": text or "Resource link"}
    if kind == "resource":
        resource = block.get("resource")
        if isinstance(resource, dict) and isinstance(resource.get("text"), str):
            return {"type": "text", "text": resource["text"]}
        logger.warning(
            "tool '%s' returned a binary embedded resource, which is not supported; it is skipped", tool_name
        )
        return None
    shown = kind if isinstance(block, dict) else type(block).__name__
    logger.warning("tool '%s' returned unsupported content of type %r; it is skipped", tool_name, shown)
    return None
