/**
 * Copies what the runtime writes into a session store: before the result of a turn is delivered, earlier when much
 * waits, or at once if asked for. A store that fails never stops the conversation: the batch is tried again, then
 * dropped, and a `mirror_error` message says so.
 */
import { randomUUID } from 'node:crypto';
import { relative, resolve, sep } from 'node:path';

import { errorText } from '../errors.js';
import type { SDKMessage } from '../types/messages.js';
import type { SessionKey, SessionStore, SessionStoreEntry } from '../types/session-types.js';
import { ANSWER_MS, TooLate, within } from './store-reading.js';

const ATTEMPTS = 3;
const RETRY_MS = 100;
const CLOSE_MS = 5_000;

/** When so much waits, it is handed over before the turn ends. */
const BATCH_ENTRIES = 500;
const BATCH_CHARACTERS = 1024 * 1024;

/** What waits to be copied. */
export class Mirror {
  readonly #store: SessionStore;
  readonly #projects: string;
  readonly #eager: boolean;
  readonly #push: (message: SDKMessage) => void;
  readonly #waiting = new Map<string, { key: SessionKey; entries: SessionStoreEntry[] }>();
  #count = 0;
  #characters = 0;
  #writing: Promise<void> = Promise.resolve();

  /** Copies transcripts below `projects`; `push` gets messages about what could not be copied. */
  constructor(store: SessionStore, projects: string, eager: boolean, push: (message: SDKMessage) => void) {
    this.#store = store;
    this.#projects = resolve(projects);
    this.#eager = eager;
    this.#push = push;
  }

  /** Takes a frame with lines that the runtime has written. */
  take(frame: Record<string, unknown>): void {
    const key = this.#keyOf(String(frame['filePath']));
    const entries = frame['entries'];
    if (key === undefined || !Array.isArray(entries)) return;
    const name = JSON.stringify(key);
    const waiting = this.#waiting.get(name) ?? { key, entries: [] };
    for (const entry of entries) waiting.entries.push(entry as SessionStoreEntry);
    this.#waiting.set(name, waiting);
    this.#count += entries.length;
    this.#characters += JSON.stringify(entries).length;
    if (this.#eager || this.#count >= BATCH_ENTRIES || this.#characters >= BATCH_CHARACTERS) void this.flush();
  }

  /** Hands over what waits; resolves when it is in the store or given up. */
  flush(): Promise<void> {
    // One write after the other keeps the lines of a transcript in their order.
    this.#writing = this.#writing.then(async () => {
      const batches = [...this.#waiting.values()];
      this.#waiting.clear();
      this.#count = 0;
      this.#characters = 0;
      for (const batch of batches) await this.#append(batch.key, batch.entries);
    });
    return this.#writing;
  }

  /** Hands over what waits, if the store is quick. */
  async close(): Promise<void> {
    // Only `flush` reports a late failure; after the end of the session there is no one to report it to.
    await within(CLOSE_MS, this.flush()).catch(() => undefined);
  }

  async #append(key: SessionKey, entries: SessionStoreEntry[]): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await within(ANSWER_MS, (async () => this.#store.append(key, entries))());
        return;
      } catch (thrown) {
        // One that took too long may still be at work; another attempt would only add to that.
        if (attempt === ATTEMPTS || thrown instanceof TooLate) return this.#tell(key, errorText(thrown));
        await new Promise((done) => setTimeout(done, RETRY_MS * attempt));
      }
    }
  }

  #tell(key: SessionKey, error: string): void {
    this.#push({ type: 'system', subtype: 'mirror_error', uuid: randomUUID(), session_id: key.sessionId, key, error });
  }

  /** Which transcript a file is; undefined for a file elsewhere. */
  #keyOf(path: string): SessionKey | undefined {
    if (!path.endsWith('.jsonl')) return undefined;
    const [project, session, ...rest] = relative(this.#projects, path.slice(0, -'.jsonl'.length)).split(sep);
    if (project === undefined || session === undefined || project === '..' || project === '') return undefined;
    if (rest.length === 0) return { projectKey: project, sessionId: session };
    if (rest.length < 2) return undefined;
    return { projectKey: project, sessionId: session, subpath: rest.join('/') };
  }
}
