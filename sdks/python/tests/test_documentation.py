"""The examples of the pages for Python and the example programs run as they stand.

A block marked `python runnable` is run as a program; a line `#=> text` in it says what
it must print. Nothing of the caller's environment reaches it, so that it finds the
runtime inside the installed package or none.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]
PAGES = [REPOSITORY / "docs" / name for name in ("quickstart-python.md", "session-stores.md", "model-policy.md")]
CHAT = REPOSITORY / "examples" / "python" / "chat.py"


def examples() -> list[tuple[str, str]]:
    """The runnable blocks of the pages, by the headings above them."""
    found = []
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading = section.splitlines()[0]
        found += [
            (heading, code)
            for code in re.findall(r"^```python runnable\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
        ]
    return found


def run_program(arguments: list[str], project: Path, lines: str = "") -> str:
    # As on a machine that has only the package: no variable of the caller, and no other program to find.
    home = project.parent / "newcomer"
    home.mkdir()
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=project,
        env=environment,
        input=lines,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("heading", "code"), examples(), ids=[heading for heading, _ in examples()])
def test_an_example_prints_what_it_says(heading: str, code: str, project: Path, tmp_path: Path) -> None:
    program = tmp_path / "example.py"
    program.write_text(code)
    output = run_program([str(program)], project)
    expected = re.findall(r"^#=> (.*)$", code, re.MULTILINE)
    assert expected, f"the example under '{heading}' says nothing of what it prints"
    for text in expected:
        assert text in output


def test_the_chat_uses_its_tool_and_asks_before_it_writes(project: Path) -> None:
    lines = (
        'call mcp__clock__what_time_is_it with {"city": "Paris"}\n'
        'create file yes.txt with "1"\ny\n'
        'create file no.txt with "1"\nn\n'
        "show me yes.txt\n"
    )
    output = run_program([str(CHAT)], project, lines)
    assert "convert it for Paris" in output
    assert (project / "yes.txt").exists() and not (project / "no.txt").exists()
