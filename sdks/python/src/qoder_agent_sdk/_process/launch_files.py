"""Values that should not, or cannot, be arguments of a process.

Every user of a machine can read the arguments of every process, so what may
hold a secret goes into a file that only this user can read. The same way takes
what is longer than an argument may be. The files live as long as the process.
"""

from __future__ import annotations

import os
import re
import weakref
from typing import Any

#: Linux refuses single arguments of 128 KiB and more.
LONGEST_ARGUMENT = 100_000

_SECRET_KEYS = re.compile(r"env|headers|key|token|secret|password|credential|auth", re.IGNORECASE)


class LaunchFiles:
    """A folder for such values, made when the first one comes."""

    def __init__(self) -> None:
        """No folder yet."""
        self._folder: str | None = None
        self._finalizer: weakref.finalize[..., LaunchFiles] | None = None

    def folder(self, name: str) -> str:
        """Make a folder; returns its path."""
        path = os.path.join(self._root(), name)
        os.mkdir(path, 0o700)
        return path

    def write(self, name: str, text: str) -> str:
        """Put a text into a file; returns its path."""
        path = os.path.join(self._root(), name)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def _root(self) -> str:
        if self._folder is None:
            # Few sessions need a folder; the others need not wait for these imports.
            import shutil
            import tempfile

            self._folder = tempfile.mkdtemp(prefix="qoder-sdk-")
            # A session that is prepared and never started must not leave it behind.
            self._finalizer = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder

    def remove(self) -> None:
        """Delete the folder."""
        if self._finalizer is not None:
            self._finalizer()
            self._folder = None


def is_too_long(text: str) -> bool:
    """Whether a text cannot be an argument."""
    return len(text) > LONGEST_ARGUMENT or len(text.encode("utf-8", "replace")) > LONGEST_ARGUMENT


def may_hold_secrets(value: Any) -> bool:
    """Whether a configuration has a key, at any depth, whose value is usually a secret."""
    if isinstance(value, dict):
        return any((_SECRET_KEYS.search(str(key)) and item) or may_hold_secrets(item) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return any(may_hold_secrets(item) for item in value)
    return False
