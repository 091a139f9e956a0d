/**
 * A session store in memory, for tests and as an example of the interface.
 */
import type { SessionKey, SessionStore, SessionStoreEntry } from '../types/session-types.js';

interface Transcript {
  key: SessionKey;
  entries: SessionStoreEntry[];
  mtime: number;
}

/** Holds transcripts for as long as the program runs. */
export class InMemorySessionStore implements SessionStore {
  readonly #transcripts = new Map<string, Transcript>();

  async append(key: SessionKey, entries: SessionStoreEntry[]): Promise<void> {
    const name = nameOf(key);
    const transcript = this.#transcripts.get(name) ?? { key: { ...key }, entries: [], mtime: 0 };
    transcript.entries.push(...structuredClone(entries));
    transcript.mtime = Date.now();
    this.#transcripts.set(name, transcript);
  }

  async load(key: SessionKey): Promise<SessionStoreEntry[] | null> {
    const transcript = this.#transcripts.get(nameOf(key));
    return transcript ? structuredClone(transcript.entries) : null;
  }

  async listSessions(projectKey: string): Promise<Array<{ sessionId: string; mtime: number }>> {
    return [...this.#transcripts.values()]
      .filter(({ key }) => key.projectKey === projectKey && key.subpath === undefined)
      .map(({ key, mtime }) => ({ sessionId: key.sessionId, mtime }));
  }

  async listSubkeys(key: { projectKey: string; sessionId: string }): Promise<string[]> {
    return [...this.#transcripts.values()]
      .filter((transcript) => isOf(transcript.key, key) && transcript.key.subpath !== undefined)
      .map((transcript) => transcript.key.subpath as string);
  }

  async delete(key: SessionKey): Promise<void> {
    for (const [name, transcript] of this.#transcripts) {
      const inside = isOf(transcript.key, key);
      if (inside && (key.subpath === undefined || key.subpath === transcript.key.subpath)) {
        this.#transcripts.delete(name);
      }
    }
  }
}

function nameOf(key: SessionKey): string {
  return JSON.stringify([key.projectKey, key.sessionId, key.subpath ?? null]);
}

function isOf(key: SessionKey, session: { projectKey: string; sessionId: string }): boolean {
  return key.projectKey === session.projectKey && key.sessionId === session.sessionId;
}
