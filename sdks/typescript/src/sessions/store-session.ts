/**
 * A session with a store: before the start it brings a stored transcript into a temporary configuration
 * directory, and during the session it copies what the runtime writes. The store can fail; the session goes on
 * and says so in a `mirror_error` message.
 */
import { randomUUID } from 'node:crypto';
import { cp, mkdir, mkdtemp, readdir, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve, sep } from 'node:path';

import { errorText, SessionNotFoundError } from '../errors.js';
import { isRecord } from '../options/kinds.js';
import type { CheckedOptions } from '../options/validate.js';
import type { SDKMessage } from '../types/messages.js';
import type { SessionKey, SessionStore, SessionStoreEntry } from '../types/session-types.js';
import { configRoot, projectKey, projectsDirectory } from './paths.js';

const ATTEMPTS = 3;
const RETRY_MS = 100;

/** The store's part of one session. */
export class StoreSession {
  /** The options to start the runtime with. */
  readonly options: CheckedOptions;

  readonly #store: SessionStore;
  readonly #push: (message: SDKMessage) => void;
  readonly #projects: string;
  readonly #temporary: string | undefined;
  readonly #pending = new Map<string, { key: SessionKey; entries: SessionStoreEntry[] }>();
  #writing: Promise<void> = Promise.resolve();

  private constructor(
    options: CheckedOptions,
    store: SessionStore,
    push: (message: SDKMessage) => void,
    places: { projects: string; temporary?: string },
  ) {
    this.options = options;
    this.#store = store;
    this.#push = push;
    this.#projects = places.projects;
    this.#temporary = places.temporary;
  }

  /** Prepares a session; a stored one that is to be continued is written where the runtime will find it. */
  static async open(
    options: CheckedOptions,
    store: SessionStore,
    push: (message: SDKMessage) => void,
  ): Promise<StoreSession> {
    const root = configRoot(options.environment);
    const key = await projectKey(options.cwd ?? process.cwd());
    const sessionId = await wantedSession(options, store, key);
    if (sessionId === undefined) {
      // Without a stored session to go on with, "continue" has nothing to say.
      return new StoreSession({ ...options, continue: false }, store, push, { projects: projectsDirectory(root) });
    }
    const temporary = await realpath(await mkdtemp(join(tmpdir(), 'qoder-session-')));
    try {
      await borrowConfiguration(root, temporary);
      await writeTranscripts(store, key, sessionId, projectsDirectory(temporary));
    } catch (thrown) {
      await rm(temporary, { recursive: true, force: true });
      throw thrown;
    }
    const changed: CheckedOptions = {
      ...options,
      continue: false,
      resume: sessionId,
      env: { ...options.env, QODER_CONFIG_DIR: temporary },
    };
    return new StoreSession(changed, store, push, { projects: projectsDirectory(temporary), temporary });
  }

  /** Takes a frame with lines that the runtime has written. */
  mirror(frame: Record<string, unknown>): void {
    const key = this.#keyOf(String(frame['filePath']));
    const entries = frame['entries'];
    if (key === undefined || !Array.isArray(entries)) return;
    const name = JSON.stringify(key);
    const pending = this.#pending.get(name) ?? { key, entries: [] };
    pending.entries.push(...(entries as SessionStoreEntry[]));
    this.#pending.set(name, pending);
    if (this.options.sessionStoreFlush === 'eager') void this.flush();
  }

  /** Writes what is pending; resolves when it is in the store or given up. */
  flush(): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      const batches = [...this.#pending.values()];
      this.#pending.clear();
      for (const batch of batches) await this.#append(batch.key, batch.entries);
    });
    return this.#writing;
  }

  /** Removes what was made for the session. */
  async dispose(): Promise<void> {
    if (this.#temporary !== undefined) await rm(this.#temporary, { recursive: true, force: true });
  }

  async #append(key: SessionKey, entries: SessionStoreEntry[]): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.#store.append(key, entries);
        return;
      } catch (thrown) {
        if (attempt === ATTEMPTS) {
          this.#push({
            type: 'system',
            subtype: 'mirror_error',
            uuid: randomUUID(),
            session_id: key.sessionId,
            key,
            error: errorText(thrown),
          });
          return;
        }
        await new Promise((done) => setTimeout(done, RETRY_MS * attempt));
      }
    }
  }

  /** Which transcript a file is; undefined for a file elsewhere. */
  #keyOf(path: string): SessionKey | undefined {
    const parts = relative(resolve(this.#projects), path).split(sep);
    const [project, session, ...rest] = parts;
    if (project === undefined || session === undefined || project === '..' || project === '') return undefined;
    if (rest.length === 0 && session.endsWith('.jsonl')) {
      return { projectKey: project, sessionId: session.slice(0, -'.jsonl'.length) };
    }
    if (rest.length < 2) return undefined;
    return { projectKey: project, sessionId: session, subpath: rest.join('/').replace(/\.jsonl$/, '') };
  }
}

/** The stored session to go on with. */
async function wantedSession(options: CheckedOptions, store: SessionStore, key: string): Promise<string | undefined> {
  if (options.resume !== undefined) return options.resume;
  if (!options.continue) return undefined;
  const sessions = (await store.listSessions?.(key)) ?? [];
  return sessions.sort((first, second) => second.mtime - first.mtime)[0]?.sessionId;
}

/** Lets the temporary directory stand for the real one in everything but transcripts. */
async function borrowConfiguration(root: string, temporary: string): Promise<void> {
  const names = await readdir(root).catch(() => []);
  for (const name of names) {
    if (name === 'projects') continue;
    const source = join(root, name);
    // A link keeps what the runtime changes, such as a renewed token; a copy is what some systems allow.
    await symlink(source, join(temporary, name)).catch(() =>
      cp(source, join(temporary, name), { recursive: true }),
    );
  }
}

async function writeTranscripts(
  store: SessionStore,
  key: string,
  sessionId: string,
  projects: string,
): Promise<void> {
  const main = await store.load({ projectKey: key, sessionId });
  if (main === null) {
    throw new SessionNotFoundError(
      sessionId,
      `The session store has no session ${sessionId} of this project. Check the id and options.cwd.`,
    );
  }
  const directory = join(projects, key);
  await writeLines(join(directory, `${sessionId}.jsonl`), main);
  for (const subpath of (await store.listSubkeys?.({ projectKey: key, sessionId })) ?? []) {
    const path = resolve(directory, sessionId, subpath);
    // A store is not trusted to name places outside the session.
    if (!path.startsWith(join(directory, sessionId) + sep)) continue;
    const entries = (await store.load({ projectKey: key, sessionId, subpath })) ?? [];
    await writeLines(`${path}.jsonl`, entries.filter((entry) => entry.type !== 'agent_metadata'));
    const metadata = entries.filter((entry) => entry.type === 'agent_metadata').at(-1);
    if (isRecord(metadata)) {
      const { type: _type, ...sidecar } = metadata;
      await writeFile(`${path}.meta.json`, JSON.stringify(sidecar), { mode: 0o600 });
    }
  }
}

async function writeLines(path: string, entries: SessionStoreEntry[]): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeFile(path, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''), { mode: 0o600 });
}
