"""The rules that a session store has to keep; `testing` runs them.

Each rule is a function that gets a store and raises AssertionError. Rules use
random project keys, so that they disturb neither each other nor what is in the
store already.
"""

from __future__ import annotations

import copy
import json
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import anyio

from .reading import without_repeats
from .store import SessionKey

Check = Callable[[Any], Awaitable[None]]

_DAY = 24 * 60 * 60 * 1000

#: So long that every usual clock has moved on.
_CLOCK_SECONDS = 0.05

_NEVER_STORED = {"type": "user", "uuid": "changed", "message": "changed after it was stored"}


@dataclass(frozen=True)
class Rule:
    """A check, and the methods without which it says nothing."""

    check: Check
    needs: tuple[str, ...] = ()


def _project(name: str = "rule") -> str:
    return f"-{name}-{uuid.uuid4().hex}"


def _key(project: str | None = None, **more: str) -> SessionKey:
    key: SessionKey = {"project_key": project or _project(), "session_id": str(uuid.uuid4())}
    key.update(more)  # type: ignore[typeddict-item]
    return key


def _entry(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "user", "uuid": str(uuid.uuid4()), "message": {"role": "user", "content": text}, **more}


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True, default=repr)
    return text if len(text) <= 300 else text[:300] + "…"


def _same(first: Any, second: Any) -> bool:
    """Equal as JSON: true is not 1, and the order of keys does not count."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(_same(first[name], second[name]) for name in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(_same, first, second))
    if isinstance(first, (int, float)) and isinstance(second, (int, float)):
        return first == second
    return type(first) is type(second) and bool(first == second)


def _insist(holds: bool, violation: str) -> None:
    # Not `assert`, which Python leaves out when it optimises.
    if not holds:
        raise AssertionError(violation)


async def _expect(store: Any, key: SessionKey, entries: list[dict[str, Any]] | None, why: str) -> None:
    found = await store.load(key)
    _insist(_same(found, entries), f"{why}: load({dict(key)}) gave {_shown(found)} instead of {_shown(entries)}")


async def append_order(store: Any) -> None:
    key, entries = _key(), [_entry(f"entry {number}") for number in range(60)]
    for start in range(0, 60, 7):
        await store.append(key, entries[start : start + 7])
    await _expect(store, key, entries, "entries come back in the order of their arrival")


async def deep_equality(store: Any) -> None:
    nested: Any = "bottom"
    for level in range(30):
        nested = {"level": level, "inside": [nested]}
    values = {
        "texts": [
            "",
            " ",
            "é e\u0301 ß",
            "日本語 🦀 👩‍👩‍👧",
            "שלום",
            "\u2028\u2029",
            '"\\/\b\f\n\r\t',
            "a\u0000b",
            "\x7f\ufeff",
        ],
        "looks": ["1", "1.0", "true", "null", "2026-01-02T03:04:05.678Z", "{}", "\\u0041", "$1", "%s", "'; --"],
        "numbers": [0, 1, -1, 9007199254740991, -9007199254740991, 0.1, 1.5e-7, 1e21, 123456789.125],
        "constants": [True, False, None],
        "empty": {"object": {}, "list": [], "text": "", "nothing": None},
        "names": {"": 1, "a b": 2, "a.b": 3, "$ref": 4, "ключ": 5, "UPPER": 6, "upper": 7, "0": 8},
        "nested": nested,
    }
    key, entry = _key(), _entry("all kinds of values", **values)
    await store.append(key, [entry, {"type": "without-uuid"}])
    await _expect(store, key, [entry, {"type": "without-uuid"}], "entries come back as they were")


async def values_are_copies(store: Any) -> None:
    key, entries = _key(), [_entry("first"), _entry("second")]
    given = copy.deepcopy(entries)
    await store.append(key, given)
    given[0]["message"]["content"] = "changed"
    given.append(dict(_NEVER_STORED))
    await _expect(store, key, entries, "what a caller changes after append is not stored")
    loaded = await store.load(key)
    loaded[0]["message"]["content"] = "changed"
    loaded.append(dict(_NEVER_STORED))
    await _expect(store, key, entries, "what a caller changes after load is not stored")


async def unknown_key(store: Any) -> None:
    key = _key()
    await _expect(store, key, None, "a session that was never stored is None")
    await store.append({**key, "subpath": "subagents/agent-a"}, [_entry("agent")])
    await _expect(store, key, None, "an agent's log does not make one of the session")
    await _expect(store, {**key, "subpath": "subagents/agent-b"}, None, "an agent that was never stored is None")


async def keys_are_separate(store: Any) -> None:
    base, session = _project(), str(uuid.uuid4())
    keys: list[SessionKey] = [
        {"project_key": base, "session_id": session},
        {"project_key": base + "-a", "session_id": session},
        {"project_key": base + "-A", "session_id": session},
        {"project_key": base, "session_id": str(uuid.uuid4())},
        {"project_key": base, "session_id": session, "subpath": "subagents/agent-a"},
        {"project_key": base, "session_id": session, "subpath": "subagents/agent-A"},
        {"project_key": base, "session_id": session, "subpath": "subagents/deeper/agent-a"},
        {"project_key": base + "-a", "session_id": session, "subpath": "subagents/agent-a"},
    ]
    entries = [[_entry(f"log {number}")] for number in range(len(keys))]
    for key, own in zip(keys, entries, strict=True):
        await store.append(key, own)
    for key, own in zip(keys, entries, strict=True):
        await _expect(store, key, own, "each project, session and subpath has a log of its own")


async def subkeys_listed(store: Any) -> None:
    key = _key()
    other = _key(key["project_key"])
    _insist(list(await store.list_subkeys(key)) == [], "a session that was never stored has no subpaths")
    await store.append(key, [_entry("main")])
    _insist(list(await store.list_subkeys(key)) == [], "the log of the session itself is no subpath")
    subpaths = ["subagents/agent-a", "subagents/agent-b", "subagents/deeper/agent-c"]
    for subpath in [*subpaths, subpaths[0]]:
        await store.append({**key, "subpath": subpath}, [_entry(subpath)])
    await store.append({**other, "subpath": "subagents/agent-other"}, [_entry("other")])
    found = sorted(await store.list_subkeys(key))
    _insist(found == subpaths, f"list_subkeys gave {found} instead of {subpaths}")


async def session_list(store: Any) -> None:
    project = _project()
    first, second, elsewhere = _key(project), _key(project), _key()
    _insist(list(await store.list_sessions(project)) == [], "a project that was never stored has no sessions")
    for key in (first, second, elsewhere):
        await store.append(key, [_entry("one")])
    await store.append({**first, "subpath": "subagents/agent-a"}, [_entry("agent")])
    times = await _listed(store, project)
    wanted = {first["session_id"], second["session_id"]}
    _insist(set(times) == wanted, f"list_sessions gave {sorted(times)} instead of {sorted(wanted)}")
    for mtime in times.values():
        _insist(isinstance(mtime, (int, float)) and not isinstance(mtime, bool), f"mtime is {mtime!r}, no number")
        _insist(
            abs(mtime - time.time() * 1000) < _DAY, f"mtime is {mtime!r}, not the time of the append in milliseconds"
        )
    await anyio.sleep(_CLOCK_SECONDS)
    await store.append(first, [_entry("two")])
    times = await _listed(store, project)
    _insist(times[first["session_id"]] > times[second["session_id"]], "an append makes a session the newest")


async def _listed(store: Any, project: str) -> dict[str, Any]:
    rows = list(await store.list_sessions(project))
    times = {row["session_id"]: row["mtime"] for row in rows}
    _insist(len(times) == len(rows), f"list_sessions names a session twice: {_shown(rows)}")
    return times


async def delete_cascades(store: Any) -> None:
    key = _key()
    same_project, same_id = _key(key["project_key"]), _key(session_id=key["session_id"])
    agent: SessionKey = {**key, "subpath": "subagents/agent-a"}
    kept: list[SessionKey] = [same_project, same_id, {**same_id, "subpath": "subagents/agent-a"}]
    entry = _entry("kept")
    for each in (key, agent, *kept):
        await store.append(each, [entry])
    await store.delete(key)
    await _expect(store, key, None, "a deleted session is None")
    await _expect(store, agent, None, "deleting a session deletes the logs of its agents")
    if hasattr(store, "list_subkeys"):
        _insist(list(await store.list_subkeys(key)) == [], "a deleted session has no subpaths")
    if hasattr(store, "list_sessions"):
        left = set(await _listed(store, key["project_key"]))
        _insist(left == {same_project["session_id"]}, f"after delete, list_sessions gave {sorted(left)}")
    for each in kept:
        await _expect(store, each, [entry], "deleting a session leaves all others alone")
    again = _entry("anew")
    await store.append(key, [again])
    await _expect(store, key, [again], "a session that is stored again starts empty")


async def delete_of_a_subpath(store: Any) -> None:
    key, entry = _key(), _entry("kept")
    gone: SessionKey = {**key, "subpath": "subagents/agent-a"}
    sibling: SessionKey = {**key, "subpath": "subagents/agent-ab"}
    for each in (key, gone, sibling):
        await store.append(each, [entry])
    await store.delete(gone)
    await _expect(store, gone, None, "a deleted log of an agent is None")
    await _expect(store, key, [entry], "deleting the log of an agent leaves that of the session")
    await _expect(store, sibling, [entry], "deleting the log of an agent leaves those of others")


async def delete_of_unknown(store: Any) -> None:
    key = _key()
    await store.delete(key)
    await store.delete({**key, "subpath": "subagents/agent-a"})
    await _expect(store, key, None, "deleting what is not there changes nothing")


async def concurrent_appends(store: Any) -> None:
    project = _project()
    keys = [_key(project) for _ in range(6)] + [_key(project, subpath="subagents/agent-a") for _ in range(2)]
    logs = [[_entry(f"{log}.{number}") for number in range(10)] for log in range(len(keys))]

    async def write(key: SessionKey, entries: list[dict[str, Any]]) -> None:
        for start in range(0, 10, 2):
            await store.append(key, entries[start : start + 2])

    async with anyio.create_task_group() as group:
        for key, entries in zip(keys, logs, strict=True):
            group.start_soon(write, key, entries)
    for key, entries in zip(keys, logs, strict=True):
        await _expect(store, key, entries, "appends to different logs at the same time do not disturb each other")


async def large_batches(store: Any) -> None:
    key = _key()
    entries = [_entry("ü" * (1024 * 1024)), *(_entry(f"entry {number}") for number in range(1000))]
    await store.append(key, entries)
    await _expect(store, key, entries, "an entry of 1 MiB and a thousand more are stored in one append")


async def repeated_delivery(store: Any) -> None:
    key, entries = _key(), [_entry(f"entry {number}") for number in range(4)]
    await store.append(key, entries[:2])
    await store.append(key, entries[:3])
    await store.append(key, entries[3:])
    await store.append(key, entries[:1])
    found = without_repeats(list(await store.load(key) or []))
    _insist(
        _same(found, entries),
        f"after a repeated append, the entries by their first arrival are {_shown(found)} instead of {_shown(entries)}",
    )


async def odd_keys(store: Any) -> None:
    token = uuid.uuid4().hex
    names = ["a/b", "..", "ä 日本 🦀", "quote'\"\\", "%2F*?:|<>", "-" + "x" * 300]
    keys = [_key(f"{token}{name}", subpath=f"subagents/{name}/agent-{token}") for name in names]
    logs = [[_entry(f"{name} {part}") for part in ("main", "agent")] for name in names]
    for key, (main, agent) in zip(keys, logs, strict=True):
        await store.append(_main(key), [main])
        await store.append(key, [agent])
    for key, (main, agent) in zip(keys, logs, strict=True):
        await _expect(store, _main(key), [main], "every text can be a project key")
        await _expect(store, key, [agent], "every text can be a subpath")
        if hasattr(store, "list_subkeys"):
            found = list(await store.list_subkeys(_main(key)))
            _insist(found == [key["subpath"]], f"list_subkeys gave {found} instead of the subpath as it was given")
        if hasattr(store, "list_sessions"):
            listed = set(await _listed(store, key["project_key"]))
            _insist(listed == {key["session_id"]}, f"list_sessions({key['project_key']!r}) gave {sorted(listed)}")


def _main(key: SessionKey) -> SessionKey:
    return {"project_key": key["project_key"], "session_id": key["session_id"]}


RULES: dict[str, Rule] = {
    "append-order": Rule(append_order),
    "deep-equality": Rule(deep_equality),
    "values-are-copies": Rule(values_are_copies),
    "unknown-key": Rule(unknown_key),
    "keys-are-separate": Rule(keys_are_separate),
    "subkeys-listed": Rule(subkeys_listed, ("list_subkeys",)),
    "session-list": Rule(session_list, ("list_sessions",)),
    "delete-cascades": Rule(delete_cascades, ("delete",)),
    "delete-of-a-subpath": Rule(delete_of_a_subpath, ("delete",)),
    "delete-of-unknown": Rule(delete_of_unknown, ("delete",)),
    "concurrent-appends": Rule(concurrent_appends),
    "large-batches": Rule(large_batches),
    "repeated-delivery": Rule(repeated_delivery),
    "odd-keys": Rule(odd_keys),
}
