"""An MCP server on its pipes with one tool, which appends a line to notes.txt in its working directory."""

import json
import sys

SCHEMA = {"type": "object", "properties": {"line": {"type": "string"}}, "required": ["line"]}
TOOLS = [{"name": "note", "description": "Writes a note down.", "inputSchema": SCHEMA}]


def answer(message):
    method = message["method"]
    if method == "initialize":
        return {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "notes", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        with open("notes.txt", "a") as notes:
            notes.write(message["params"]["arguments"]["line"] + "\n")
        return {"content": [{"type": "text", "text": "noted"}]}
    return {}


for text in sys.stdin:
    message = json.loads(text)
    if "method" in message and "id" in message:
        line = {"jsonrpc": "2.0", "id": message["id"], "result": answer(message)}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
