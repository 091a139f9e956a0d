"""Blobs, files and workspaces in a store that speaks S3: moto's server, on this machine."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic

from conftest import environment
from test_anthropic import follow, message

BUCKET = "workspaces"
TOOLSET: Any = {"type": "agent_toolset_20260401"}


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The variables by which our server reaches a store with an empty bucket."""
    if importlib.util.find_spec("moto") is None or importlib.util.find_spec("flask") is None:
        pytest.skip("moto[server] is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    log = (tmp_path / "moto.log").open("w")
    store = subprocess.Popen(command, env=environment(tmp_path), stdout=log, stderr=log)
    endpoint = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + 60
        while True:
            try:
                make = urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")
                urllib.request.urlopen(make, timeout=10).close()
                break
            except (urllib.error.URLError, ConnectionError):
                assert store.poll() is None and time.monotonic() < until, (tmp_path / "moto.log").read_text()
                time.sleep(0.05)
        yield {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "tester",
            "AWS_SECRET_ACCESS_KEY": "very-secret-value",
            "AWS_REGION": "us-east-1",
            "QODER_SERVE_OBJECT_STORE": f"s3://{BUCKET}/cluster",
        }
    finally:
        store.kill()
        store.wait()


def test_a_session_finds_its_files_after_its_machine_is_gone(tmp_path: Path, s3: dict[str, str]) -> None:
    program = os.environ["QODERCLI_PATH"]
    data, log = tmp_path / "data", tmp_path / "serve.log"
    variables = environment(tmp_path) | s3
    make = "mkdir -p empty && printf kept > kept && head -c 20000000 /dev/urandom > long && sha256sum long > sum"
    look = "cat kept && ls && sha256sum -c sum"
    replies = [
        {"toolCalls": [{"name": "Bash", "input": {"command": make}}]},
        {"text": "Made."},
        {"toolCalls": [{"name": "Bash", "input": {"command": look}}]},
        {"text": "Seen."},
    ]
    playbook = tmp_path / "playbook.json"
    playbook.write_text(json.dumps({"replies": replies}))
    settings = {"model": {"tiers": {"auto": f"scripted:{playbook}"}}}
    (tmp_path / "serve.yaml").write_text(json.dumps({"settings": settings}))

    def launch() -> tuple[subprocess.Popen[str], Anthropic]:
        command = [program, "serve", "--listen", "127.0.0.1:0", "--data-dir", str(data)]
        command += ["--config", str(tmp_path / "serve.yaml")]
        process = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=log.open("a"), text=True)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("listening on "), log.read_text()
        return process, Anthropic(base_url=line.split()[-1], auth_token=token, api_key=None)

    create = [program, "serve", "token", "create", "--user", "ana", "--data-dir", str(data)]
    created = subprocess.run(create, env=variables, capture_output=True, text=True, check=True)
    token = created.stdout.split()[-1]
    process, client = launch()
    try:
        uploaded = client.beta.files.upload(file=("note.txt", b"a note", "text/plain"))
        agent = client.beta.agents.create(name="helper", model="auto", tools=[TOOLSET])
        place = client.beta.environments.create(name="here")
        session = client.beta.sessions.create(agent=agent.id, environment_id=place.id)
        follow(client, session.id, [message("make")])
        process.kill()
        process.wait()
        # The machine is gone; another one has the database.
        shutil.rmtree(data / "workspaces")
        process, client = launch()
        seen = follow(client, session.id, [message("look")])
        results = [str(event.content) for event in seen if event.type == "agent.tool_result"]
        assert len(results) == 1 and "kept" in results[0] and "empty" in results[0], results
        assert "long: OK" in results[0], results
        content = client.beta.files.download(uploaded.id).read()
        assert content == b"a note"
    finally:
        process.kill()
        process.wait()
    assert not (data / "blobs").exists(), "nothing is kept beside the store"
    assert "very-secret-value" not in log.read_text()
