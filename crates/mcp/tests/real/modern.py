"""A server of the official Python package that speaks the newest revision, and asks back inside of its answers."""

import os
import sys
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel

server = MCPServer("modern")


class Name(BaseModel):
    name: str


def ask() -> Elicit[Name]:
    return Elicit("Who are you?", Name)


@server.tool()
def echo(text: str) -> str:
    return text


@server.tool()
def greet(who: Annotated[Name, Resolve(ask)]) -> str:
    return "Hello, " + who.name


if sys.argv[1] == "stdio":
    server.run(transport="stdio")
else:
    server.run(transport="streamable-http", host="127.0.0.1", port=int(os.environ["PORT"]))
