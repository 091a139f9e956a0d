"""Type checkers over what programs write: samples, and every Python block of the pages.

`mypy --strict` and `pyright` read them against the installed package, as an
editor does. A mistake that a checker passes over is a failure too.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.repository import repository

SAMPLES = Path(__file__).parent / "typing_samples"
PAGES = [
    *("README.md", "sdks/python/README.md"),
    *(f"docs/{name}.md" for name in ("quickstart-python", "session-stores", "model-policy")),
]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that is checked."""
    folder = tmp_path_factory.mktemp("typed")
    for sample in SAMPLES.glob("*.py"):
        (folder / sample.name).write_text(sample.read_text())
    for page in PAGES:
        text = (repository() / page).read_text(encoding="utf-8")
        blocks = re.findall(r"^```python[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        assert blocks, f"{page} has no Python"
        for number, code in enumerate(blocks):
            (folder / f"{re.sub(r'[^a-z]+', '_', page.lower())}_{number}.py").write_text(code)
    settings = {"typeCheckingMode": "standard", "reportUnnecessaryTypeIgnoreComment": "error"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    return folder


def checked(arguments: list[str], folder: Path) -> str:
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, timeout=600)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_mypy_passes_what_is_right_and_finds_what_is_wrong(programs: Path) -> None:
    files = [path.name for path in programs.glob("*.py")]
    # In the environment, where a later run finds it: most of the time goes into the packages that ours uses.
    cache = Path(sys.prefix) / "mypy"
    assert checked([sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache), *files], programs) == ""


def test_pyright_passes_what_is_right_and_finds_what_is_wrong(programs: Path) -> None:
    pyright = os.environ.get("QODER_TEST_PYRIGHT")
    assert pyright, "QODER_TEST_PYRIGHT names the program; `cargo xtask test` installs it and sets this"
    assert checked([pyright, "--pythonpath", sys.executable, "--warnings"], programs) == ""
