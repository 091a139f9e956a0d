"""The package itself: exports, typing, what importing it costs.

What is measured here is what is loaded, never how long it takes; times are in
`benchmarks/overhead.py`.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import metadata, requires
from pathlib import Path

import pytest

import qoder_agent_sdk


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def test_importing_does_not_load_heavy_packages() -> None:
    code = "import sys, qoder_agent_sdk\nprint([name for name in ('mcp', 'pydantic', 'trio', 'jsonschema') if name in sys.modules])"
    assert run_python(code).strip() == "[]"


def test_defining_tools_does_not_load_mcp() -> None:
    code = """
import sys
from qoder_agent_sdk import QoderAgentOptions, create_sdk_mcp_server, tool
@tool("t", "d", {"a": int})
async def t(args): return {"content": []}
QoderAgentOptions(mcp_servers={"s": create_sdk_mcp_server(name="s", tools=[t])})
print("mcp" in sys.modules)
"""
    assert run_python(code).strip() == "False"


def test_every_exported_name_exists_once() -> None:
    assert len(set(qoder_agent_sdk.__all__)) == len(qoder_agent_sdk.__all__)
    assert set(qoder_agent_sdk.__all__) == {*qoder_agent_sdk._HOMES, "__version__"}
    assert dir(qoder_agent_sdk) == sorted(qoder_agent_sdk.__all__)
    for name in qoder_agent_sdk.__all__:
        assert hasattr(qoder_agent_sdk, name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'quarry'"):
        qoder_agent_sdk.quarry  # type: ignore[attr-defined]


def test_the_package_is_typed() -> None:
    assert (Path(qoder_agent_sdk.__file__).parent / "py.typed").exists()


def test_the_metadata_fits_the_code() -> None:
    about = metadata("qoder-agent-sdk")
    assert about["Version"] == qoder_agent_sdk.__version__
    assert about["Requires-Python"] == ">=3.10"
    needed = [each for each in requires("qoder-agent-sdk") or [] if "extra ==" not in each]
    assert [each.split(">")[0] for each in needed] == ["anyio", "mcp", "typing_extensions"]
