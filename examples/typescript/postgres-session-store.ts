/**
 * A session store in PostgreSQL, with `pg`:
 *
 *   const store = new PostgresSessionStore(new Pool({ connectionString }));
 *   await store.createTable();
 *   query({ prompt, options: { sessionStore: store } });
 *
 * One table holds all transcripts, one row an entry. The column is `json` and not `jsonb`, which cannot hold the
 * character U+0000; the output of a tool may have it.
 */
import type { SessionKey, SessionStore, SessionStoreEntry } from '@qoder-ai/qoder-agent-sdk';
import type { Pool } from 'pg';

const TABLE = `
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
`;

/** Keeps transcripts in the table `session_entries`. */
export class PostgresSessionStore implements SessionStore {
  readonly #pool: Pool;

  /** The pool stays the caller's to end. */
  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** Makes the table, unless it is there. */
  async createTable(): Promise<void> {
    await this.#pool.query(TABLE);
  }

  /** One statement: all entries or, if it fails, none. */
  async append(key: SessionKey, entries: SessionStoreEntry[]): Promise<void> {
    await this.#pool.query(
      `INSERT INTO session_entries (project_key, session_id, subpath, entry)
       SELECT $1, $2, $3, given::json FROM unnest($4::text[]) WITH ORDINALITY AS list (given, place) ORDER BY place`,
      [...columns(key), entries.map((entry) => JSON.stringify(entry))],
    );
  }

  async load(key: SessionKey): Promise<SessionStoreEntry[] | null> {
    const { rows } = await this.#pool.query<{ entry: SessionStoreEntry }>(
      `SELECT entry FROM session_entries
       WHERE project_key = $1 AND session_id = $2 AND subpath = $3 ORDER BY number`,
      columns(key),
    );
    return rows.length === 0 ? null : rows.map(({ entry }) => entry);
  }

  async listSessions(projectKey: string): Promise<Array<{ sessionId: string; mtime: number }>> {
    const { rows } = await this.#pool.query<{ session_id: string; mtime: string }>(
      `SELECT session_id, floor(extract(epoch FROM max(stored_at)) * 1000) AS mtime
       FROM session_entries WHERE project_key = $1 AND subpath = '' GROUP BY session_id`,
      [projectKey],
    );
    return rows.map((row) => ({ sessionId: row.session_id, mtime: Number(row.mtime) }));
  }

  async listSubkeys({ projectKey, sessionId }: { projectKey: string; sessionId: string }): Promise<string[]> {
    const { rows } = await this.#pool.query<{ subpath: string }>(
      `SELECT DISTINCT subpath FROM session_entries
       WHERE project_key = $1 AND session_id = $2 AND subpath <> '' ORDER BY subpath`,
      [projectKey, sessionId],
    );
    return rows.map(({ subpath }) => subpath);
  }

  /** The transcript of a session takes those of its agents with it. */
  async delete(key: SessionKey): Promise<void> {
    await this.#pool.query(
      `DELETE FROM session_entries WHERE project_key = $1 AND session_id = $2 AND $3 IN ('', subpath)`,
      columns(key),
    );
  }
}

function columns(key: SessionKey): [string, string, string] {
  return [key.projectKey, key.sessionId, key.subpath ?? ''];
}
