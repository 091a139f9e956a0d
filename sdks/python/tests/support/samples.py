"""Runs the code samples of the product's documents, as they stand.

Samples are kept in Markdown files under `seeds/samples`, one heading each. A
sample is a program, a fragment with `await` at its top, the body of a handler,
or a declaration to compare ours with.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from pathlib import Path
from typing import Any

import qoder_agent_sdk

#: A runtime that offers the agents it was told about, and shows what it was asked for.
AGENT_RUNTIME = """
request = read_request("initialize")
asked = request["request"]
agents = [{"name": name, "description": agent["description"]} for name, agent in asked["agents"].items()]
known = {"protocol_version": 1, "qodercli_version": "0.1.0", "agents": agents}
answer(request, {**known, "asked": asked, "arguments": sys.argv})
while (message := read()) is not None:
    if message["type"] == "user":
        result()
"""

FOLDER = Path(__file__).parent.parent / "seeds" / "samples"


def samples(name: str) -> dict[str, str]:
    """All samples of a file, by their headings."""
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    found = re.findall(r"^## ([^\n]+)\n\n```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found, f"{name}.md has no samples"
    return dict(found)


def sample(name: str, title: str) -> str:
    """One sample."""
    return samples(name)[title]


def public_names() -> dict[str, Any]:
    """A namespace with everything that the package exports."""
    return {each: getattr(qoder_agent_sdk, each) for each in qoder_agent_sdk.__all__}


async def execute(code: str, names: dict[str, Any]) -> dict[str, Any]:
    """Run a fragment, which may await at its top; returns the names it defined."""
    compiled = compile(code, "<sample>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    value = eval(compiled, names)
    if inspect.iscoroutine(value):
        await value
    return names


async def returned(body: str, names: dict[str, Any]) -> Any:
    """Run the body of a handler; returns what it returns."""
    code = "async def handler(args):\n" + textwrap.indent(body, "    ")
    defined = await execute(code, names)
    return await defined["handler"]({})


def playbook(folder: Path, *replies: dict[str, Any]) -> str:
    """The name of a model that follows a playbook."""
    path = folder / "playbook.json"
    path.write_text(json.dumps({"replies": list(replies)}))
    return f"scripted:{path}"
