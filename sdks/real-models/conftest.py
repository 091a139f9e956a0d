"""A real model behind real servers: llama.cpp itself, and LiteLLM's proxy in front of it; and our program before them."""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

#: A guard against waiting for ever; no test depends on how long it is.
PATIENCE = 300.0
HERE = Path(__file__).parent
#: The most tokens of a reply. One that is cut is continued, which would take long.
SHORT = 48


def wait_until(what: str, holds: Callable[[], bool]) -> None:
    """Waits for a condition of the world outside."""
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"waited in vain until {what}")
        time.sleep(0.05)


def get(url: str) -> Any:
    """The JSON at an address; `None` when the request fails or the body is not JSON."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)
    except (OSError, ValueError, urllib.error.URLError):
        return None


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@dataclass
class Server:
    """A server that speaks all three wire protocols."""

    url: str
    key: str
    #: The server that has the model, also when a proxy is in front of it.
    model_url: str

    def is_free(self) -> bool:
        """True when the model works on nothing."""
        slots = get(f"{self.model_url}/slots")
        return bool(slots) and not any(slot["is_processing"] for slot in slots)


def start(command: list[str], log: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            start_new_session=True,
        )


def ready(process: subprocess.Popen[bytes], log: Path, url: str) -> None:
    """Waits until a server answers, or ends with what it said."""

    def answers() -> bool:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended: {log.read_text(errors='replace')[-2000:]}")
        return get(url) is not None

    wait_until(f"{url} answers", answers)


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """llama.cpp's server with the model."""
    port, log = free_port(), tmp_path_factory.mktemp("llama") / "log"
    process = start([sys.executable, str(HERE / "serve.py"), str(port)], log, {})
    url = f"http://127.0.0.1:{port}"
    try:
        ready(process, log, f"{url}/health")
        yield Server(url, "none", url)
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def litellm(llama: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """LiteLLM's proxy in front of that server."""
    if importlib.util.find_spec("litellm") is None:
        pytest.skip("litellm is not installed")
    folder, port, key = tmp_path_factory.mktemp("litellm"), free_port(), f"sk-{secrets.token_hex(24)}"
    model = {"model": "openai/smol", "api_base": f"{llama.url}/v1", "api_key": "none"}
    config = folder / "config.yaml"
    # JSON is YAML.
    config.write_text(
        json.dumps({
            "model_list": [{"model_name": "smol", "litellm_params": model}],
            "litellm_settings": {"telemetry": False},
        })
    )
    program = Path(sys.executable).with_name("litellm")
    environment = {"LITELLM_MASTER_KEY": key, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "HOME": str(folder)}
    command = [str(program), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    process = start(command, folder / "log", environment)
    url = f"http://127.0.0.1:{port}"
    try:
        ready(process, folder / "log", f"{url}/health/liveliness")
        yield Server(url, key, llama.url)
    finally:
        process.kill()
        process.wait()


@pytest.fixture(params=["llama", "litellm"])
def server(request: pytest.FixtureRequest) -> Server:
    """Each of the two."""
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=["openai-chat", "openai-responses", "anthropic-messages"])
def wire(request: pytest.FixtureRequest) -> str:
    """Each of the three wire protocols."""
    protocol: str = request.param
    return protocol


class Program:
    """Our program, with the server as its provider."""

    def __init__(self, folder: Path, server: Server, wire: str) -> None:
        self.folder = folder
        # The address as people write it: with the version for OpenAI's protocols, without for Anthropic's.
        base = server.url if wire == "anthropic-messages" else f"{server.url}/v1"
        provider = {"protocol": wire, "baseUrl": base, "apiKey": server.key, "models": ["smol"]}
        self.settings: dict[str, Any] = {
            "providers": {"local": provider},
            "model": {"name": "local/smol", "maxOutputTokens": SHORT},
        }

    def start(self, *arguments: str, prompt: str, system: str = "Be brief.") -> subprocess.Popen[str]:
        """Starts a turn."""
        project = self.folder / "project"
        project.mkdir(exist_ok=True)
        kept = ("PATH", "LANG", "TMPDIR")
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        environment.update(HOME=str(self.folder), QODER_CONFIG_DIR=str(self.folder / "config"))
        command = [os.environ["QODERCLI_PATH"], "-p", "--output-format", "stream-json", "--verbose"]
        command += ["--settings", json.dumps(self.settings), "--system-prompt", system, *arguments, prompt]
        return subprocess.Popen(
            command,
            cwd=project,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, prompt: str, system: str = "Be brief.") -> Turn:
        """Runs a turn to its end."""
        process = self.start(*arguments, prompt=prompt, system=system)
        output, errors = process.communicate(timeout=PATIENCE)
        return Turn([json.loads(line) for line in output.splitlines()], process.returncode, errors)


@dataclass
class Turn:
    """What a turn came to."""

    messages: list[dict[str, Any]]
    code: int
    errors: str

    @property
    def result(self) -> dict[str, Any]:
        results = [message for message in self.messages if message["type"] == "result"]
        assert len(results) == 1, (self.messages, self.errors)
        return results[0]

    def blocks(self, kind: str) -> list[dict[str, Any]]:
        """The blocks of one type in all messages."""
        contents = [
            message["message"]["content"] for message in self.messages if message["type"] in ("assistant", "user")
        ]
        blocks = [block for content in contents if isinstance(content, list) for block in content]
        return [block for block in blocks if block["type"] == kind]


@pytest.fixture
def program(tmp_path: Path, server: Server, wire: str) -> Program:
    """Our program with each server over each protocol."""
    return Program(tmp_path, server, wire)
