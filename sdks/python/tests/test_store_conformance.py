"""The suite for session stores: good stores pass it, and every rule catches a store that breaks it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.broken_stores import BROKEN
from support.stores import Bare, example

from qoder_agent_sdk import InMemorySessionStore
from qoder_agent_sdk.testing import (
    SESSION_STORE_RULES,
    check_session_store_rule,
    run_session_store_conformance,
)

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("rule", SESSION_STORE_RULES)
async def test_the_store_in_memory_keeps_every_rule(rule: str) -> None:
    assert await check_session_store_rule(InMemorySessionStore, rule)


async def test_the_store_in_files_keeps_every_rule(tmp_path: Path) -> None:
    store = example("file_session_store").FileSessionStore(tmp_path / "store")
    assert await run_session_store_conformance(lambda: store) == list(SESSION_STORE_RULES)


@pytest.mark.parametrize(("rule", "store"), BROKEN, ids=[store.__name__ for _, store in BROKEN])
async def test_a_rule_catches_the_store_that_breaks_it(rule: str, store: type[InMemorySessionStore]) -> None:
    with pytest.raises(AssertionError, match=f"^session store rule '{rule}': "):
        await check_session_store_rule(store, rule)
    with pytest.raises(AssertionError):
        await run_session_store_conformance(store)


def test_every_rule_has_a_store_that_breaks_it() -> None:
    assert {rule for rule, _ in BROKEN} == set(SESSION_STORE_RULES)


async def test_rules_about_methods_that_are_left_out_are_passed_over() -> None:
    async def make() -> Any:
        return Bare(InMemorySessionStore())

    checked = await run_session_store_conformance(make)
    left_out = {"subkeys-listed", "session-list", "delete-cascades", "delete-of-a-subpath", "delete-of-unknown"}
    assert set(checked) == set(SESSION_STORE_RULES) - left_out


async def test_an_error_of_the_store_is_a_violation() -> None:
    class Failing(InMemorySessionStore):
        async def load(self, key: Any) -> Any:
            raise OSError("no connection")

    with pytest.raises(AssertionError, match="'append-order': the store raised OSError\\('no connection'\\)"):
        await run_session_store_conformance(Failing)


async def test_an_unknown_rule_is_an_error_that_names_the_rules() -> None:
    with pytest.raises(ValueError, match="append-order"):
        await check_session_store_rule(InMemorySessionStore, "append-odor")
