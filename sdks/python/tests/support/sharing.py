"""Several runs of pytest that share the files between them.

With `QODER_TEST_CLAIMS` set to an empty folder, a run executes only the files that it
claims there first, one after another. Runs that are given the same folder and the same
tests execute each test exactly once, whichever of them is faster. Without the variable
pytest works as always.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

CLAIMS_VARIABLE = "QODER_TEST_CLAIMS"


def files_of(items: list[pytest.Item]) -> list[list[pytest.Item]]:
    """The tests by file, those with many tests first: a long file that begins last makes the others wait."""
    by_file: dict[Path, list[pytest.Item]] = {}
    for item in items:
        by_file.setdefault(item.path, []).append(item)
    return sorted(by_file.values(), key=lambda tests: (-len(tests), str(tests[0].path)))


def claimed(folder: Path, files: list[list[pytest.Item]]) -> Iterator[list[pytest.Item]]:
    """The files that no other run has claimed. A file is claimed when it is asked for and not earlier."""
    for number, tests in enumerate(files):
        try:
            os.close(os.open(folder / str(number), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            continue
        yield tests


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the claimed files. What comes next is always known, because fixtures end by it."""
    folder = os.environ.get(CLAIMS_VARIABLE)
    if not folder or session.config.option.collectonly:
        return None
    if session.testsfailed and not session.config.option.continue_on_collection_errors:
        raise session.Interrupted(f"{session.testsfailed} errors during collection")
    files = claimed(Path(folder), files_of(session.items))
    current = next(files, None)
    while current is not None:
        following: list[pytest.Item] | None = None
        for number, item in enumerate(current):
            if number + 1 < len(current):
                after: pytest.Item | None = current[number + 1]
            else:
                following = next(files, None)
                after = following[0] if following else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
        current = following
    return True
