"""A server of our own for every test, with a playbook as its model, and what a client needs to reach it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

Replies = list[dict[str, Any]]


@dataclass
class Served:
    """A server that runs."""

    url: str
    token: str
    process: subprocess.Popen[str]
    start_again: Callable[[], None]


def environment(folder: Path) -> dict[str, str]:
    """Nothing of the caller's but where programs are."""
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"}


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[Replies], Served]]:
    """Starts a server whose model gives these replies."""
    program = os.environ["QODERCLI_PATH"]
    data = tmp_path / "data"
    running: list[Served] = []

    def launch() -> tuple[subprocess.Popen[str], str]:
        command = [program, "serve", "--listen", "127.0.0.1:0", "--data-dir", str(data)]
        command += ["--config", str(tmp_path / "serve.yaml")]
        log = (tmp_path / "serve.log").open("a")
        process = subprocess.Popen(command, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=log, text=True)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("listening on "), line
        return process, line.split()[-1]

    def start(replies: Replies) -> Served:
        playbook = tmp_path / "playbook.json"
        playbook.write_text(json.dumps({"replies": replies}))
        # JSON is YAML, too.
        tiers = {"auto": f"scripted:{playbook}"}
        (tmp_path / "serve.yaml").write_text(json.dumps({"settings": {"model": {"tiers": tiers}}}))
        create = [program, "serve", "token", "create", "--user", "ana", "--data-dir", str(data)]
        created = subprocess.run(create, env=environment(tmp_path), capture_output=True, text=True, check=True)
        process, url = launch()
        served = Served(url, created.stdout.split()[-1], process, lambda: None)

        def again() -> None:
            served.process.kill()
            served.process.wait()
            served.process, served.url = launch()

        served.start_again = again
        running.append(served)
        return served

    yield start
    for served in running:
        served.process.kill()
        served.process.wait()
