"""Fixtures: both event loops, a runtime to run against, playbooks for its model.

Tests run against the installed package. The runtime is the one inside the
package, or the one that `QODERCLI_PATH` names.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qoder_agent_sdk import QoderAgentOptions

pytest_plugins = ["support.server_fixtures", "support.sharing"]

SUPPORT = Path(__file__).parent / "support"


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Every asynchronous test runs on both event loops."""
    return str(request.param)


@pytest.fixture(autouse=True)
def isolated_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration directory of the test's own, and no keys of the developer."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("QODER_CONFIG_DIR", str(home / ".qoder"))
    for name in list(os.environ):
        if name.endswith("_API_KEY") or name in ("QODER_PERSONAL_ACCESS_TOKEN", "QODER_MODEL"):
            monkeypatch.delenv(name)
    return home


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty working directory."""
    directory = tmp_path / "project"
    directory.mkdir()
    return directory


FakeRuntime = Callable[[str], Path]


@pytest.fixture
def fake_runtime(tmp_path: Path) -> FakeRuntime:
    """Makes an executable that follows a script; see `support/fake_runtime.py`."""

    def make(script: str) -> Path:
        path = tmp_path / "fake-qodercli"
        head = f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(SUPPORT)!r})\nfrom fake_runtime import *\n"
        path.write_text(head + script)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return make


Scripted = Callable[..., QoderAgentOptions]


@pytest.fixture
def scripted(project: Path) -> Scripted:
    """Makes options for a session whose model follows a playbook."""

    def make(*replies: dict[str, Any], **options: Any) -> QoderAgentOptions:
        playbook = project.parent / "playbook.json"
        playbook.write_text(json.dumps({"replies": list(replies)}))
        options.setdefault("cwd", project)
        return QoderAgentOptions(model=f"scripted:{playbook}", **options)

    return make
