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


def values(code: str, names: dict[str, Any]) -> list[Any]:
    """Run a fragment; returns the values of the expressions that stand alone in it."""
    found: list[Any] = []
    for statement in ast.parse(code).body:
        if isinstance(statement, ast.Expr):
            expression = ast.Expression(statement.value)
            found.append(eval(compile(expression, "<sample>", "eval", dont_inherit=True), names))
        else:
            exec(compile(ast.Module([statement], []), "<sample>", "exec", dont_inherit=True), names)
    return found


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
