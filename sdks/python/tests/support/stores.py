"""Session stores for tests: the examples, and a store that is needed by a running server.

Examples are programs beside the SDK and no package; they are loaded from their files.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

EXAMPLES = Path(__file__).parents[4] / "examples" / "python"


def example(name: str) -> ModuleType:
    """An example, as a module."""
    found = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


class Bare:
    """The two methods that every store has, and no others."""

    def __init__(self, store: Any) -> None:
        self._store = store

    async def append(self, key: Any, entries: Any) -> None:
        await self._store.append(key, entries)

    async def load(self, key: Any) -> Any:
        return await self._store.load(key)
