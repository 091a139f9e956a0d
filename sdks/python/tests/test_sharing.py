"""Runs of pytest that share files: every test runs once, and fixtures begin and end as in one run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.sharing import CLAIMS_VARIABLE

SUPPORT = Path(__file__).parent / "support"

#: A fixture for the whole run, one for each file, and tests that say where they ran.
CONFTEST = """
import os, pytest
pytest_plugins = ["sharing"]
def say(text):
    with open(os.environ["HEARD"], "a") as file:
        file.write(f"{os.getpid()} {text}\\n")
@pytest.fixture(scope="session", autouse=True)
def whole():
    say("+run")
    yield
    say("-run")
@pytest.fixture(scope="module", autouse=True)
def of_file(request, whole):
    say(f"+{request.module.__name__}")
    yield
    say(f"-{request.module.__name__}")
@pytest.fixture
def heard(request):
    say(request.node.nodeid)
"""
TESTS = "import pytest\n@pytest.mark.parametrize('number', range({count}))\ndef test_it(number, heard):\n    {body}\n"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Files of different lengths in folders beside each other."""
    folder = tmp_path / "suite"
    for name, count in {"a/test_one": 3, "a/test_two": 1, "b/test_three": 4, "b/test_four": 2, "test_five": 2}.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TESTS.format(count=count, body="pass"))
    (folder / "conftest.py").write_text(CONFTEST)
    return folder


def start(suite: Path, claims: Path) -> subprocess.Popen[str]:
    claims.mkdir(exist_ok=True)
    environment = {
        **os.environ,
        CLAIMS_VARIABLE: str(claims),
        "HEARD": str(claims.with_name("heard")),
        "PYTHONPATH": str(SUPPORT),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(suite)]
    return subprocess.Popen(
        command, cwd=suite, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def heard(claims: Path) -> list[tuple[str, str]]:
    lines = claims.with_name("heard").read_text().splitlines()
    return [(run, text) for run, _, text in (line.partition(" ") for line in lines)]


def test_every_test_runs_once_in_one_of_the_runs(suite: Path, tmp_path: Path) -> None:
    claims = tmp_path / "claims"
    runs = [start(suite, claims) for _ in range(3)]
    outputs = [run.communicate(timeout=120)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], outputs
    tests = [text for _, text in heard(claims) if "::" in text]
    assert len(tests) == len(set(tests)) == 12
    by_file: dict[str, set[str]] = {}
    for run, text in heard(claims):
        if "::" in text:
            by_file.setdefault(text.split("::")[0], set()).add(run)
    assert all(len(which) == 1 for which in by_file.values()), "a file's tests run in one process"


def test_fixtures_last_as_long_as_in_a_run_of_its_own(suite: Path, tmp_path: Path) -> None:
    claims = tmp_path / "claims"
    claims.mkdir()
    # As if others had been here first: of the five files this run gets the first, the third and the last.
    for taken in ("1", "3"):
        (claims / taken).touch()
    run = start(suite, claims)
    output = run.communicate(timeout=120)[0]
    assert run.returncode == 0, output
    fixtures = [text for _, text in heard(claims) if text[0] in "+-"]
    assert fixtures[0] == "+run" and fixtures[-1] == "-run"
    assert fixtures[1:-1:2] == [f"+{name[1:]}" for name in fixtures[2:-1:2]] and len(fixtures) == 8


def test_a_failure_in_a_claimed_file_fails_the_run(suite: Path, tmp_path: Path) -> None:
    (suite / "test_five.py").write_text(TESTS.format(count=2, body="assert number == 0"))
    run = start(suite, tmp_path / "claims")
    output = run.communicate(timeout=120)[0]
    assert run.returncode == 1 and "1 failed, 11 passed" in output


def test_a_file_that_cannot_be_read_fails_the_run(suite: Path, tmp_path: Path) -> None:
    (suite / "test_five.py").write_text("import nowhere_at_all\n")
    run = start(suite, tmp_path / "claims")
    output = run.communicate(timeout=120)[0]
    assert run.returncode != 0 and "1 error" in output
