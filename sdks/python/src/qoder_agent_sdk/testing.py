"""Checks for what users of the SDK write themselves: does a session store keep the rules?

    await run_session_store_conformance(lambda: MyStore())

needs no test framework. `SESSION_STORE_RULES` has the names of the rules, for
`pytest.mark.parametrize` with `check_session_store_rule`. Every rule works with
keys of its own, so a store that already holds something can be checked as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Union

import anyio

from ._stores.rules import RULES, Rule
from ._stores.store import SessionStore

__all__ = ["SESSION_STORE_RULES", "MakeSessionStore", "check_session_store_rule", "run_session_store_conformance"]

#: Makes the store to check, or gives one that is there; it may have to be awaited.
MakeSessionStore = Callable[[], Union[SessionStore, Awaitable[SessionStore]]]

#: The names of all rules.
SESSION_STORE_RULES: tuple[str, ...] = tuple(RULES)

#: A store that takes longer for one rule hangs.
_RULE_SECONDS = 120.0


async def run_session_store_conformance(make_store: MakeSessionStore) -> list[str]:
    """Check all rules, each on a store from `make_store`; returns the names of those that were checked.

    Rules about methods that a store may leave out are passed over when it has left them out.
    Raises AssertionError with the name of the first rule that is violated.
    """
    return [name for name in SESSION_STORE_RULES if await check_session_store_rule(make_store, name)]


async def check_session_store_rule(make_store: MakeSessionStore, name: str) -> bool:
    """Check one rule; False when it is about a method that the store has left out.

    Raises AssertionError with the name of the rule when it is violated.
    """
    if name not in RULES:
        raise ValueError(f"there is no rule {name!r}; the rules are {', '.join(SESSION_STORE_RULES)}")
    made = make_store()
    store = await made if inspect.isawaitable(made) else made
    rule = RULES[name]
    if any(not hasattr(store, method) for method in rule.needs):
        return False
    await _apply(rule, name, store)
    return True


async def _apply(rule: Rule, name: str, store: Any) -> None:
    try:
        with anyio.fail_after(_RULE_SECONDS):
            await rule.check(store)
    except AssertionError as violation:
        raise AssertionError(f"session store rule '{name}': {violation}") from None
    except TimeoutError as error:
        raise AssertionError(f"session store rule '{name}': nothing came back for {_RULE_SECONDS:.0f} s") from error
    except Exception as error:
        raise AssertionError(f"session store rule '{name}': the store raised {error!r}") from error
