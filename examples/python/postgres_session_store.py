"""A session store in PostgreSQL, with asyncpg.

    pool = await asyncpg.create_pool(dsn)
    store = PostgresSessionStore(pool)
    await store.create_table()
    options = QoderAgentOptions(session_store=store)

One table holds all logs, one row an entry. The column is `json` and not `jsonb`,
which cannot hold the character U+0000; the output of a tool may have it.
"""

from __future__ import annotations

import json
from typing import Any

import asyncpg

from qoder_agent_sdk import SessionKey, SessionStoreEntry, SessionStoreListEntry

TABLE = """
CREATE TABLE IF NOT EXISTS session_entries (
    number      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_key text NOT NULL,
    session_id  text NOT NULL,
    subpath     text NOT NULL,
    entry       json NOT NULL,
    stored_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX IF NOT EXISTS session_entries_by_key
    ON session_entries (project_key, session_id, subpath, number);
"""


class PostgresSessionStore:
    """Keeps logs in the table `session_entries`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        """Use a pool, which stays the caller's to close."""
        self._pool = pool

    async def create_table(self) -> None:
        """Make the table, unless it is there."""
        await self._pool.execute(TABLE)

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Add entries in one statement: all of them or, if it fails, none."""
        await self._pool.execute(
            "INSERT INTO session_entries (project_key, session_id, subpath, entry) "
            "SELECT $1, $2, $3, entry FROM unnest($4::json[]) WITH ORDINALITY AS given (entry, place) ORDER BY place",
            *_columns(key),
            [json.dumps(entry) for entry in entries],
        )

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """All entries of a log."""
        rows = await self._pool.fetch(
            "SELECT entry FROM session_entries "
            "WHERE project_key = $1 AND session_id = $2 AND subpath = $3 ORDER BY number",
            *_columns(key),
        )
        return [json.loads(row["entry"]) for row in rows] or None

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """The sessions of a project."""
        rows = await self._pool.fetch(
            "SELECT session_id, floor(extract(epoch FROM max(stored_at)) * 1000)::bigint AS mtime "
            "FROM session_entries WHERE project_key = $1 AND subpath = '' GROUP BY session_id",
            project_key,
        )
        return [{"session_id": row["session_id"], "mtime": row["mtime"]} for row in rows]

    async def list_subkeys(self, key: SessionKey) -> list[str]:
        """The logs of agents that a session has started."""
        rows = await self._pool.fetch(
            "SELECT DISTINCT subpath FROM session_entries "
            "WHERE project_key = $1 AND session_id = $2 AND subpath <> '' ORDER BY subpath",
            *_columns(key)[:2],
        )
        return [row["subpath"] for row in rows]

    async def delete(self, key: SessionKey) -> None:
        """Delete a log; that of a session takes those of its agents with it."""
        await self._pool.execute(
            "DELETE FROM session_entries WHERE project_key = $1 AND session_id = $2 AND $3 IN ('', subpath)",
            *_columns(key),
        )


def _columns(key: SessionKey) -> tuple[Any, ...]:
    return key["project_key"], key["session_id"], key.get("subpath", "")
