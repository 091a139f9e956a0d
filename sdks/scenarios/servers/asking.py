"""An MCP server that asks its user and reports what it gets: forms, addresses to visit, headers, variables, failures.

    python asking.py stdio|sse|http

Made with the official Python package; run by the interpreter that has it.
"""

from __future__ import annotations

import json
import os
import sys

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

from serving import serve

server = MCPServer("asking", title="The asking server", version="1.2.3")


class Booking(BaseModel):
    """What the form wants."""

    guests: int = Field(description="How many come")
    vegetarian: bool = Field(default=False, description="Whether the food is without meat")


@server.tool(annotations=ToolAnnotations(readOnlyHint=False, destructiveHint=True, openWorldHint=True, title="Book"))
async def book(place: str, context: Context) -> str:
    """Books a table after asking how many come."""
    answer = await context.elicit(f"A table at {place}: how many are you?", Booking)
    data = answer.data.model_dump() if answer.action == "accept" else None
    return json.dumps({"action": answer.action, "data": data})


@server.tool()
async def visit(context: Context) -> str:
    """Asks the user to visit an address."""
    answer = await context.elicit_url("Please sign in", "https://example.com/sign-in", "visit-1")
    return json.dumps({"action": answer.action})


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
async def header(name: str, context: Context) -> str:
    """Returns a header of the request."""
    return (context.headers or {}).get(name, "absent")


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
async def variable(name: str) -> str:
    """Returns an environment variable, or the process by the name `pid`."""
    return str(os.getpid()) if name == "pid" else os.environ.get(name, "absent")


@server.tool()
async def fail(reason: str) -> str:
    """Fails for a reason."""
    raise ToolError(reason)


if __name__ == "__main__":
    serve(server, sys.argv[1])
