"""Session stores that each break one rule, to show that the suite for stores notices.

All are stores in memory with one mistake, of the kind that real stores make.
"""

from __future__ import annotations

import copy
import json
from typing import Any

from qoder_agent_sdk import InMemorySessionStore


class NewestFirst(InMemorySessionStore):
    async def load(self, key: Any) -> Any:
        entries = await super().load(key)
        return entries and entries[::-1]


class TextWithoutNul(InMemorySessionStore):
    """Cuts a character out that many databases refuse."""

    async def append(self, key: Any, entries: Any) -> None:
        await super().append(key, json.loads(json.dumps(entries).replace("\\u0000", "")))


class NumbersForTruth(InMemorySessionStore):
    """Has no column type for true and false."""

    async def load(self, key: Any) -> Any:
        return _replaced(await super().load(key))


def _replaced(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _replaced(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_replaced(each) for each in value]
    return int(value) if isinstance(value, bool) else value


class KeepsReferences(InMemorySessionStore):
    async def append(self, key: Any, entries: Any) -> None:
        self._logs.setdefault((key["project_key"], key["session_id"], key.get("subpath", "")), entries)


class GivesReferences(InMemorySessionStore):
    async def load(self, key: Any) -> Any:
        return self._logs.get((key["project_key"], key["session_id"], key.get("subpath", "")))


class EmptyForUnknown(InMemorySessionStore):
    async def load(self, key: Any) -> Any:
        return await super().load(key) or []


class _OtherKeys(InMemorySessionStore):
    """Changes keys on the way in."""

    def changed(self, key: Any) -> Any:
        raise NotImplementedError

    async def append(self, key: Any, entries: Any) -> None:
        await super().append(self.changed(key), entries)

    async def load(self, key: Any) -> Any:
        return await super().load(self.changed(key))

    async def list_subkeys(self, key: Any) -> Any:
        return await super().list_subkeys(self.changed(key))


class ForgetsProjects(_OtherKeys):
    def changed(self, key: Any) -> Any:
        return {**key, "project_key": "all"}


class IgnoresCase(_OtherKeys):
    def changed(self, key: Any) -> Any:
        return {name: value.lower() for name, value in key.items()}


class FlatSubpaths(_OtherKeys):
    """Uses the last part of a path only."""

    def changed(self, key: Any) -> Any:
        return {**key, "subpath": key["subpath"].split("/")[-1]} if "subpath" in key else key


class CutsNames(_OtherKeys):
    """As a column that is too narrow, in a database that does not complain."""

    def changed(self, key: Any) -> Any:
        return {name: value[:255] for name, value in key.items()}


class ListsMainAsSubkey(InMemorySessionStore):
    async def list_subkeys(self, key: Any) -> Any:
        main = [""] if await self.load({name: key[name] for name in ("project_key", "session_id")}) else []
        return [*main, *await super().list_subkeys(key)]


class Seconds(InMemorySessionStore):
    async def list_sessions(self, project_key: str) -> Any:
        return [{**row, "mtime": row["mtime"] // 1000} for row in await super().list_sessions(project_key)]


class TimeOfCreation(InMemorySessionStore):
    async def append(self, key: Any, entries: Any) -> None:
        before = self._changed.get((key["project_key"], key["session_id"]))
        await super().append(key, entries)
        if before is not None:
            self._changed[key["project_key"], key["session_id"]] = before


class DeletesMainOnly(InMemorySessionStore):
    async def delete(self, key: Any) -> None:
        self._logs.pop((key["project_key"], key["session_id"], key.get("subpath", "")), None)
        self._changed.pop((key["project_key"], key["session_id"]), None)


class DeletesInAllProjects(InMemorySessionStore):
    async def delete(self, key: Any) -> None:
        for project in {project for project, _, _ in self._logs}:
            await super().delete({**key, "project_key": project})


class DeletesByPrefix(InMemorySessionStore):
    async def delete(self, key: Any) -> None:
        wanted = (key["project_key"], key["session_id"])
        for each in [each for each in self._logs if each[:2] == wanted and each[2].startswith(key.get("subpath", ""))]:
            del self._logs[each]
        if "subpath" not in key:
            self._changed.pop(wanted, None)


class DeleteMustFind(InMemorySessionStore):
    async def delete(self, key: Any) -> None:
        if await self.load(key) is None:
            raise KeyError(key["session_id"])
        await super().delete(key)


class OneWriterAtATime(InMemorySessionStore):
    """Reads everything, waits, and writes everything back."""

    async def append(self, key: Any, entries: Any) -> None:
        import anyio

        logs = copy.deepcopy(self._logs)
        await anyio.sleep(0)
        logs.setdefault((key["project_key"], key["session_id"], key.get("subpath", "")), []).extend(entries)
        self._logs = logs


class SmallRows(InMemorySessionStore):
    async def append(self, key: Any, entries: Any) -> None:
        if any(len(json.dumps(entry)) > 1_000_000 for entry in entries):
            raise ValueError("the row is too large")
        await super().append(key, entries)


class SmallBatches(InMemorySessionStore):
    async def append(self, key: Any, entries: Any) -> None:
        await super().append(key, entries[:500])


class UniqueEntries(InMemorySessionStore):
    async def append(self, key: Any, entries: Any) -> None:
        known = {entry.get("uuid") for entry in await self.load(key) or []} - {None}
        if any(entry.get("uuid") in known for entry in entries):
            raise ValueError("duplicate key value violates unique constraint")
        await super().append(key, entries)


class MovesRepeats(InMemorySessionStore):
    """Replaces an entry that it has by the new one, which goes to the end."""

    async def append(self, key: Any, entries: Any) -> None:
        new = {entry.get("uuid") for entry in entries} - {None}
        log = self._logs.get((key["project_key"], key["session_id"], key.get("subpath", "")), [])
        log[:] = [entry for entry in log if entry.get("uuid") not in new]
        await super().append(key, entries)


#: The rule that each of them breaks.
BROKEN: list[tuple[str, type[InMemorySessionStore]]] = [
    ("append-order", NewestFirst),
    ("deep-equality", TextWithoutNul),
    ("deep-equality", NumbersForTruth),
    ("values-are-copies", KeepsReferences),
    ("values-are-copies", GivesReferences),
    ("unknown-key", EmptyForUnknown),
    ("keys-are-separate", ForgetsProjects),
    ("keys-are-separate", IgnoresCase),
    ("keys-are-separate", FlatSubpaths),
    ("subkeys-listed", ListsMainAsSubkey),
    ("session-list", Seconds),
    ("session-list", TimeOfCreation),
    ("delete-cascades", DeletesMainOnly),
    ("delete-cascades", DeletesInAllProjects),
    ("delete-of-a-subpath", DeletesByPrefix),
    ("delete-of-unknown", DeleteMustFind),
    ("concurrent-appends", OneWriterAtATime),
    ("large-batches", SmallRows),
    ("large-batches", SmallBatches),
    ("repeated-delivery", UniqueEntries),
    ("repeated-delivery", MovesRepeats),
    ("odd-keys", CutsNames),
]
