"""Where the executable is looked for, and what is said when it is not there.

Every place is empty at first; each test fills the ones it is about. No process is
started.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from qoder_agent_sdk import CLIConnectionError, CLINotFoundError, QoderAgentOptions, query
from qoder_agent_sdk._process import binary
from qoder_agent_sdk._process.binary import find_binary


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def empty_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No variable, no bundled binary, an empty PATH."""
    monkeypatch.delenv("QODERCLI_PATH", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    bundled = tmp_path / "package" / "qodercli"
    monkeypatch.setattr(binary, "bundled_binary", lambda: str(bundled))
    return bundled


def test_places_are_tried_in_order(tmp_path: Path, empty_places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path = executable(tmp_path / "bin" / "qodercli")
    assert find_binary(None, {}) == str(on_path)
    bundled = executable(empty_places)
    assert find_binary(None, {}) == str(bundled)
    from_process = executable(tmp_path / "process-variable")
    monkeypatch.setenv("QODERCLI_PATH", str(from_process))
    assert find_binary(None, {}) == str(from_process)
    from_options = executable(tmp_path / "options-variable")
    assert find_binary(None, {"QODERCLI_PATH": str(from_options)}) == str(from_options)
    given = executable(tmp_path / "given")
    assert find_binary(given, {"QODERCLI_PATH": str(from_options)}) == str(given)


def test_an_unset_variable_in_the_options_hides_that_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QODERCLI_PATH", str(executable(tmp_path / "process-variable")))
    with pytest.raises(CLINotFoundError):
        find_binary(None, {"QODERCLI_PATH": None})


def test_the_error_lists_where_it_looked(tmp_path: Path, empty_places: Path) -> None:
    with pytest.raises(CLINotFoundError) as caught:
        find_binary(None, {})
    text = str(caught.value)
    for part in ("options.cli_path", "QODERCLI_PATH", str(empty_places), str(tmp_path / "bin")):
        assert part in text
    assert isinstance(caught.value, CLIConnectionError)


def test_a_file_that_cannot_be_run_is_named(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("text")
    with pytest.raises(CLINotFoundError, match=f"{plain}.*not an executable file"):
        find_binary(plain, {})


def test_a_named_file_that_is_absent_is_not_replaced_by_another(tmp_path: Path) -> None:
    executable(tmp_path / "bin" / "qodercli")
    with pytest.raises(CLINotFoundError, match="no such file"):
        find_binary(tmp_path / "absent", {})


def test_query_says_at_once_that_there_is_no_runtime(tmp_path: Path) -> None:
    with pytest.raises(CLINotFoundError):
        query(prompt="hi", options=QoderAgentOptions(cli_path=tmp_path / "absent"))


def test_a_relative_path_is_meant_from_here_not_from_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable(tmp_path / "here")
    monkeypatch.chdir(tmp_path)
    assert find_binary("./here", {}) == str(tmp_path / "here")
