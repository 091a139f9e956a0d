"""A small MCP server over standard input and output, for samples that name one by its path.

A test copies it to where the sample says; the name of the copy is the name of the server, and says which tool it
has: `orders.py` looks up orders, `kb.py` searches.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

TOOLS = {"orders": ("lookup_order", "Looks up an order."), "kb": ("search", "Searches the knowledge base.")}
NAME = Path(__file__).stem
TOOL, DESCRIPTION = TOOLS.get(NAME, ("", ""))


def answer(method: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """The result of a request."""
    if method == "initialize":
        information = {"name": NAME, "version": "1.0.0"}
        version = parameters["protocolVersion"]
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": information}
    if method == "tools/list":
        return {"tools": [{"name": TOOL, "description": DESCRIPTION, "inputSchema": {"type": "object"}}]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": f"{NAME} knows: {json.dumps(parameters['arguments'])}"}]}
    return {}


if __name__ == "__main__":
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            result = answer(message["method"], message.get("params") or {})
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
