"""Builds the wheel: the package and, inside it, the `qodercli` executable.

A PEP 517 backend without dependencies, so that an installation needs nothing
but Python and cargo. The executable is built from the cargo workspace that this
directory belongs to, or taken from the file that `QODERCLI_BINARY` names. The
wheel fits every Python 3 on the platform it was built for.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
import re
import stat
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Any

BINARY_VARIABLE = "QODERCLI_BINARY"
PROJECT = Path(__file__).resolve().parent.parent
SOURCES = PROJECT / "src"
PACKAGE = "qoder_agent_sdk"
LICENSES = ("LICENSE-APACHE", "LICENSE-MIT")
FILE_NAME = "qodercli.exe" if sys.platform == "win32" else "qodercli"


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """Build a wheel with the executable inside."""
    binary = _binary()
    files = {str(path.relative_to(SOURCES)): path for path in _package_files()}
    files[f"{PACKAGE}/_bundled/{FILE_NAME}"] = binary
    return _write_wheel(Path(wheel_directory), {name: path.read_bytes() for name, path in files.items()})


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Any = None) -> str:
    """Write the metadata alone; without this hook, installers build the whole wheel to read it."""
    project = _project_table()
    info = Path(metadata_directory) / f"{_stem(project)}.dist-info"
    info.mkdir()
    (info / "licenses").mkdir()
    for name, content in _info_files(project).items():
        (info / name).write_text(content, encoding="utf-8")
    return info.name


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """Build a wheel that only points at the sources; the executable is found by `QODERCLI_PATH` or `PATH`."""
    pointer = f"{SOURCES}\n".encode()
    return _write_wheel(Path(wheel_directory), {f"__editable__.{PACKAGE}.pth": pointer})


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    """Refuse: the sources of the executable are not part of this directory."""
    raise SystemExit(
        "a source distribution cannot be built: the wheel contains qodercli, whose sources are the cargo workspace "
        "around this directory. Build a wheel from a checkout instead (pip wheel ./sdks/python)."
    )


def _binary() -> Path:
    """The executable for the wheel."""
    ready = os.environ.get(BINARY_VARIABLE)
    if ready:
        path = Path(ready).expanduser().resolve()
        if not path.is_file() or not os.access(path, os.X_OK):
            raise SystemExit(f"{BINARY_VARIABLE} names {path}, which is not an executable file")
        return path
    workspace = next((folder for folder in PROJECT.parents if _is_workspace(folder)), None)
    if workspace is None:
        raise SystemExit(
            "the cargo workspace of qodercli was not found above this directory. Install from a checkout of the "
            f"repository, or set {BINARY_VARIABLE} to a qodercli executable."
        )
    command = [
        "cargo",
        "build",
        "--release",
        "--locked",
        "-p",
        "qodercli",
        "--message-format",
        "json-render-diagnostics",
    ]
    try:
        done = subprocess.run(command, cwd=workspace, stdout=subprocess.PIPE, check=True)
    except FileNotFoundError:
        raise SystemExit(
            f"cargo is needed to build qodercli and was not found; install Rust, or set {BINARY_VARIABLE} "
            "to a qodercli executable."
        ) from None
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"building qodercli failed: {' '.join(command)} ended with {error.returncode}") from None
    return _built_executable(done.stdout)


def _is_workspace(folder: Path) -> bool:
    manifest = folder / "Cargo.toml"
    return (
        manifest.is_file()
        and "[workspace]" in manifest.read_text(encoding="utf-8")
        and (folder / "crates/cli").is_dir()
    )


def _built_executable(messages: bytes) -> Path:
    # Cargo says where it put the file; the target directory may be anywhere.
    for line in messages.splitlines():
        message = json.loads(line) if line.startswith(b"{") else {}
        if message.get("executable") and message.get("target", {}).get("name") == "qodercli":
            return Path(message["executable"])
    raise SystemExit("cargo built no executable named qodercli")


def _package_files() -> list[Path]:
    return sorted(
        path
        for path in (SOURCES / PACKAGE).rglob("*")
        if path.is_file() and (path.suffix == ".py" or path.name == "py.typed")
    )


def _project_table() -> dict[str, Any]:
    """The few values of pyproject.toml that the metadata needs; Python 3.10 has no TOML reader."""
    text = (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
    table: dict[str, Any] = {
        key: re.search(rf'^{key} = "(.*)"$', text, re.MULTILINE).group(1)  # type: ignore[union-attr]
        for key in ("name", "version", "description", "requires-python", "license")
    }
    for key in ("dependencies", "test"):
        values = re.search(rf"^{key} = \[(.*?)\]$", text, re.MULTILINE | re.DOTALL).group(1)  # type: ignore[union-attr]
        table[key] = re.findall(r'"([^"]+)"', values)
    return table


def _metadata(project: dict[str, Any]) -> str:
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License-Expression: {project['license']}",
        *(f"License-File: {name}" for name in LICENSES),
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {each}" for each in project["dependencies"]),
        "Provides-Extra: test",
        *(f'Requires-Dist: {each}; extra == "test"' for each in project["test"]),
        "Description-Content-Type: text/markdown",
        "",
        (PROJECT / "README.md").read_text(encoding="utf-8"),
    ]
    return "\n".join(lines)


def _platform_tag() -> str:
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"py3-none-{platform}"


def _stem(project: dict[str, Any]) -> str:
    return f"{project['name'].replace('-', '_')}-{project['version']}"


def _info_files(project: dict[str, Any]) -> dict[str, str]:
    wheel = f"Wheel-Version: 1.0\nGenerator: qoder_build\nRoot-Is-Purelib: false\nTag: {_platform_tag()}\n"
    texts = {f"licenses/{name}": (PROJECT / name).read_text(encoding="utf-8") for name in LICENSES}
    return {"METADATA": _metadata(project), "WHEEL": wheel, **texts}


def _write_wheel(folder: Path, files: dict[str, bytes]) -> str:
    project = _project_table()
    info = f"{_stem(project)}.dist-info"
    contents = {**files, **{f"{info}/{name}": text.encode() for name, text in _info_files(project).items()}}
    name = f"{_stem(project)}-{_platform_tag()}.whl"
    rows = []
    with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for path, content in contents.items():
            mode = 0o755 if path.endswith(f"_bundled/{FILE_NAME}") else 0o644
            _add(archive, path, content, mode)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            rows.append((path, f"sha256={digest}", str(len(content))))
        record = io.StringIO()
        csv.writer(record, lineterminator="\n").writerows([*rows, (f"{info}/RECORD", "", "")])
        _add(archive, f"{info}/RECORD", record.getvalue().encode(), 0o644)
    return name


def _add(archive: zipfile.ZipFile, path: str, content: bytes, mode: int) -> None:
    # A fixed date, so that the same sources always give the same wheel.
    entry = zipfile.ZipInfo(path, date_time=(2020, 1, 1, 0, 0, 0))
    entry.external_attr = (stat.S_IFREG | mode) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content)
