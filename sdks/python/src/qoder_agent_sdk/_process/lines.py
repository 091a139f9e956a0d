"""Splits the bytes of a pipe into lines, and lines into JSON objects.

Only a newline byte ends a line: other line separators of Unicode may stand
inside JSON strings. A line that grows past the limit is an error at once, so
that a runtime that never ends a line cannot fill the memory.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from .._errors import CLIJSONDecodeError

logger = logging.getLogger("qoder_agent_sdk")

#: Default of `max_buffer_size`.
DEFAULT_LINE_LIMIT = 16 * 1024 * 1024


class LineSplitter:
    """Collects chunks and gives complete lines."""

    def __init__(self, limit: int) -> None:
        """A splitter for lines of at most `limit` bytes."""
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take a chunk; return the lines that are now complete, without their newlines."""
        if b"\n" not in chunk:
            self._keep(chunk)
            return []
        lines = (b"".join(self._parts) + chunk).split(b"\n")
        self._parts = []
        self._size = 0
        self._keep(lines.pop())
        for line in lines:
            if len(line) > self._limit:
                self._refuse(line)
        return lines

    def rest(self) -> bytes:
        """What came after the last newline."""
        return b"".join(self._parts)

    def _keep(self, part: bytes) -> None:
        if not part:
            return
        self._parts.append(part)
        self._size += len(part)
        if self._size > self._limit:
            self._refuse(self._parts[0])

    def _refuse(self, start: bytes) -> None:
        raise CLIJSONDecodeError(
            f"qodercli printed a line of more than {self._limit} bytes; "
            "raise options.max_buffer_size if that is expected",
            line=start[:200].decode("utf-8", "replace"),
        )


def decode_line(line: bytes) -> dict[str, Any] | None:
    """The JSON object on a line; None for a line that holds none."""
    if not line.startswith(b"{"):
        if line.strip():
            logger.debug("skipped a line of qodercli that is not JSON: %r", line[:200])
        return None
    try:
        decoded: dict[str, Any] = json.loads(line)
    except ValueError as error:
        shown = line[:200].decode("utf-8", "replace")
        raise CLIJSONDecodeError(
            f"qodercli printed a line that is not JSON ({error}): {shown}", shown, error
        ) from error
    return decoded


def decode_rest(line: bytes) -> dict[str, Any] | None:
    """The object on a last line without newline; one that was cut off is dropped."""
    try:
        return decode_line(line)
    except CLIJSONDecodeError:
        return None
