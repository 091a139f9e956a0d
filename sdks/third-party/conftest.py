"""A playbook model, a project and a configuration of its own for every test of the third-party client."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Callable

import pytest
from claude_agent_sdk import ClaudeAgentOptions


@pytest.fixture
def anyio_backend() -> str:
    """The client is tested on asyncio."""
    return "asyncio"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project; sessions are kept beside it."""
    monkeypatch.setenv("QODER_CONFIG_DIR", str(tmp_path / "config"))
    for name in list(os.environ):
        if name.startswith(("ANTHROPIC_", "OPENAI_", "CLAUDE")):
            monkeypatch.delenv(name)
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def options(tmp_path: Path, project: Path) -> Callable[..., ClaudeAgentOptions]:
    """Options with our program behind the client and these replies as the model's."""

    def make(replies: list[dict[str, Any]], **others: Any) -> ClaudeAgentOptions:
        playbook = tmp_path / "playbook.json"
        playbook.write_text(json.dumps({"replies": replies}))
        return ClaudeAgentOptions(
            cli_path=os.environ["QODERCLI_PATH"], cwd=project, model=f"scripted:{playbook}", **others
        )

    return make
