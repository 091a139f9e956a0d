"""Finds the `qodercli` executable.

In this order: the `cli_path` option, `QODERCLI_PATH` (in `options.env`, then
in the environment), the binary inside this package, `PATH`. The first three
name one file; if that file cannot be run, that is an error and not a reason to
run some other program.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .._errors import CLINotFoundError

if TYPE_CHECKING:
    from pathlib import Path

PATH_VARIABLE = "QODERCLI_PATH"

_FILE_NAME = "qodercli.exe" if sys.platform == "win32" else "qodercli"


def bundled_binary() -> str:
    """Where a package with a runtime inside keeps it."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return os.path.join(package, "_bundled", _FILE_NAME)


def find_binary(cli_path: str | Path | None, env: Mapping[str, str | None]) -> str:
    """The executable to start, as an absolute path where the place is known."""
    if cli_path is not None:
        return _usable(os.fspath(cli_path), "options.cli_path")
    named = env[PATH_VARIABLE] if PATH_VARIABLE in env else os.environ.get(PATH_VARIABLE)
    if named:
        return _usable(named, PATH_VARIABLE)
    bundled = bundled_binary()
    if os.path.exists(bundled):
        return _usable(bundled, "the package")
    import shutil  # only needed this late

    search_path = env["PATH"] if "PATH" in env else os.environ.get("PATH")
    found = shutil.which(_FILE_NAME, path=search_path or "")
    if found:
        return found
    raise CLINotFoundError(
        "qodercli was not found. Looked at: options.cli_path (not set), "
        f"{PATH_VARIABLE} (not set), {bundled} (no such file), PATH ({search_path or 'empty'}). "
        "Install the package with its runtime, or set one of the first two to the executable."
    )


def _usable(named: str, source: str) -> str:
    # A relative path would be looked for in the child's working directory.
    path = os.path.abspath(os.path.expanduser(named))
    if not os.path.exists(path):
        raise CLINotFoundError(f"qodercli was not found at {path} (from {source}): there is no such file")
    if not os.path.isfile(path) or not os.access(path, os.X_OK):
        raise CLINotFoundError(f"{path} (from {source}) is not an executable file; check its mode, or name another one")
    return path
