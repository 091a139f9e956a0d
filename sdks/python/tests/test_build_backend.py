"""The wheel: what is in it, and what is said when it cannot be built.

The backend is called as pip calls it. Cargo is replaced by a script, so that nothing
is compiled here.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import shutil
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parent.parent


def backend_in(project: Path) -> Any:
    """The build backend of a project directory."""
    path = project / "build_support" / "qoder_build.py"
    specification = importlib.util.spec_from_file_location(f"qoder_build_{abs(hash(path))}", path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture
def binary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for the executable."""
    path = tmp_path / "ready-qodercli"
    path.write_bytes(b"#!/bin/sh\n")
    path.chmod(0o755)
    monkeypatch.setenv("QODERCLI_BINARY", str(path))
    return path


def test_a_wheel_holds_the_package_and_the_executable(binary: Path, tmp_path: Path) -> None:
    name = backend_in(PROJECT).build_wheel(str(tmp_path))
    assert name.startswith("qoder_agent_sdk-0.1.0-py3-none-") and name.endswith(".whl") and "any" not in name
    with zipfile.ZipFile(tmp_path / name) as wheel:
        names = wheel.namelist()
        bundled = wheel.getinfo("qoder_agent_sdk/_bundled/qodercli")
        assert stat.S_IMODE(bundled.external_attr >> 16) == 0o755
        assert wheel.read(bundled) == binary.read_bytes()
        assert "qoder_agent_sdk/py.typed" in names and "qoder_agent_sdk/__init__.py" in names
        assert "Root-Is-Purelib: false" in wheel.read("qoder_agent_sdk-0.1.0.dist-info/WHEEL").decode()
        record = csv.reader(io.StringIO(wheel.read("qoder_agent_sdk-0.1.0.dist-info/RECORD").decode()))
        assert sorted(row[0] for row in record) == sorted(names)
        requirements = wheel.read("qoder_agent_sdk-0.1.0.dist-info/METADATA").decode()
        assert "Requires-Dist: anyio>=4\n" in requirements and 'extra == "test"' in requirements


def test_a_wheel_carries_its_licence_texts(binary: Path, tmp_path: Path) -> None:
    backend = backend_in(PROJECT)
    info = "qoder_agent_sdk-0.1.0.dist-info"
    with zipfile.ZipFile(tmp_path / backend.build_wheel(str(tmp_path))) as wheel:
        about = wheel.read(f"{info}/METADATA").decode()
        assert "License-Expression: MIT OR Apache-2.0\n" in about
        for name in ("LICENSE-MIT", "LICENSE-APACHE"):
            assert f"License-File: {name}\n" in about
            assert wheel.read(f"{info}/licenses/{name}") == (PROJECT.parents[1] / name).read_bytes()


def test_the_same_sources_give_the_same_wheel(binary: Path, tmp_path: Path) -> None:
    backend = backend_in(PROJECT)
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    name = backend.build_wheel(str(tmp_path / "one"))
    backend.build_wheel(str(tmp_path / "two"))
    assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_the_metadata_is_the_same_with_and_without_the_wheel(binary: Path, tmp_path: Path) -> None:
    backend = backend_in(PROJECT)
    info = backend.prepare_metadata_for_build_wheel(str(tmp_path))
    with zipfile.ZipFile(tmp_path / backend.build_wheel(str(tmp_path))) as wheel:
        for name in ("METADATA", "WHEEL", "licenses/LICENSE-MIT"):
            assert wheel.read(f"{info}/{name}") == (tmp_path / info / name).read_bytes()


def test_an_editable_wheel_points_at_the_sources(tmp_path: Path) -> None:
    name = backend_in(PROJECT).build_editable(str(tmp_path))
    with zipfile.ZipFile(tmp_path / name) as wheel:
        assert wheel.read("__editable__.qoder_agent_sdk.pth").decode().strip() == str(PROJECT / "src")


def test_a_binary_that_cannot_be_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QODERCLI_BINARY", str(tmp_path / "absent"))
    with pytest.raises(SystemExit, match="absent, which is not an executable file"):
        backend_in(PROJECT).build_wheel(str(tmp_path))


def test_without_a_workspace_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QODERCLI_BINARY", raising=False)
    copy = tmp_path / "unpacked"
    shutil.copytree(PROJECT / "build_support", copy / "build_support")
    with pytest.raises(SystemExit, match="cargo workspace of qodercli was not found.*QODERCLI_BINARY"):
        backend_in(copy).build_wheel(str(tmp_path))


def test_a_source_distribution_is_refused_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="Build a wheel from a checkout"):
        backend_in(PROJECT).build_sdist(str(tmp_path))


def workspace_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cargo: str) -> Any:
    """The backend inside a workspace, with a cargo that does as told."""
    monkeypatch.delenv("QODERCLI_BINARY", raising=False)
    workspace = tmp_path / "checkout"
    (workspace / "crates" / "cli").mkdir(parents=True)
    (workspace / "Cargo.toml").write_text("[workspace]\n")
    project = workspace / "sdks" / "python"
    for name in ("build_support", "src"):
        shutil.copytree(PROJECT / name, project / name)
    for name in ("pyproject.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE"):
        shutil.copy(PROJECT / name, project / name)
    program = tmp_path / "bin" / "cargo"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{cargo}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return backend_in(project)


def test_the_executable_is_built_where_the_workspace_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cargo = (
        f'test "$*" = "build --release --locked -p qodercli --message-format json-render-diagnostics" || exit 9\n'
        f'test "$PWD" = "{tmp_path}/checkout" || exit 8\n'
        f'mkdir -p "{tmp_path}/elsewhere" && printf built > "{tmp_path}/elsewhere/qodercli"\n'
        'echo \'{"reason":"compiler-artifact","target":{"name":"other"},"executable":null}\'\n'
        f'echo \'{{"reason":"compiler-artifact","target":{{"name":"qodercli"}},"executable":"{tmp_path}/elsewhere/qodercli"}}\''
    )
    name = workspace_with(tmp_path, monkeypatch, cargo).build_wheel(str(tmp_path))
    with zipfile.ZipFile(tmp_path / name) as wheel:
        assert wheel.read("qoder_agent_sdk/_bundled/qodercli") == b"built"


def test_a_build_that_fails_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match="building qodercli failed.*ended with 101"):
        workspace_with(tmp_path, monkeypatch, "exit 101").build_wheel(str(tmp_path))


def test_without_cargo_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = workspace_with(tmp_path, monkeypatch, "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="cargo is needed.*QODERCLI_BINARY"):
        backend.build_wheel(str(tmp_path))
