"""Where files are that all SDKs share: scenarios, and servers to speak with."""

from __future__ import annotations

import os
from pathlib import Path


def repository() -> Path:
    """The checkout; tests that were copied elsewhere are told where it is."""
    return Path(os.environ.get("QODER_SDK_REPOSITORY", Path(__file__).resolve().parents[4]))
