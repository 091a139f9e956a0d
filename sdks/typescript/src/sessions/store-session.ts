/**
 * A session with a store: before the start it brings a stored transcript into a temporary configuration
 * directory, and during the session it copies what the runtime writes. A fork is made in the store, because the
 * runtime reports only what it adds to one.
 */
import { randomUUID } from 'node:crypto';
import { cp, mkdir, mkdtemp, readdir, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve, sep } from 'node:path';

import { SessionNotFoundError } from '../errors.js';
import { isRecord } from '../options/kinds.js';
import type { CheckedOptions } from '../options/validate.js';
import type { SDKMessage } from '../types/messages.js';
import type { SessionKey, SessionStore, SessionStoreEntry } from '../types/session-types.js';
import { forkEntries } from './fork.js';
import { Mirror } from './mirror.js';
import { configRoot, projectKey, projectsDirectory } from './paths.js';
import { answerOf, asLine, describeKey, loadLog, storedSessions, storedSubpaths } from './store-reading.js';

/** The store's part of one session. */
export class StoreSession {
  /** The options to start the runtime with. */
  readonly options: CheckedOptions;
  /** Copies what is written. */
  readonly mirror: Mirror;

  readonly #temporary: string | undefined;

  private constructor(options: CheckedOptions, mirror: Mirror, temporary?: string) {
    this.options = options;
    this.mirror = mirror;
    this.#temporary = temporary;
  }

  /** Prepares a session; a stored one that is to be continued is written where the runtime will find it. */
  static async open(
    options: CheckedOptions,
    store: SessionStore,
    push: (message: SDKMessage) => void,
  ): Promise<StoreSession> {
    const root = configRoot(options.environment);
    const project = await projectKey(options.cwd ?? process.cwd());
    const sessionId = await wantedSession(options, store, project);
    const eager = options.sessionStoreFlush === 'eager';
    if (sessionId === undefined) {
      // Without a stored session to resume, "continue" has no meaning.
      const changed = { ...options, continue: false, forkSession: false };
      return new StoreSession(changed, new Mirror(store, projectsDirectory(root), eager, push));
    }
    const temporary = await realpath(await mkdtemp(join(tmpdir(), 'qoder-session-')));
    try {
      await borrowConfiguration(root, temporary);
      const projects = projectsDirectory(temporary);
      const changes = await restore(options, store, { projectKey: project, sessionId }, projects);
      const env = { ...options.env, QODER_CONFIG_DIR: temporary };
      const changed: CheckedOptions = { ...options, continue: false, env, ...changes };
      return new StoreSession(changed, new Mirror(store, projects, eager, push), temporary);
    } catch (thrown) {
      await rm(temporary, { recursive: true, force: true });
      throw thrown;
    }
  }

  /** Removes what was made for the session. */
  async dispose(): Promise<void> {
    if (this.#temporary !== undefined) await rm(this.#temporary, { recursive: true, force: true });
  }
}

/** The stored session to resume. */
async function wantedSession(
  options: CheckedOptions,
  store: SessionStore,
  project: string,
): Promise<string | undefined> {
  if (options.resume !== undefined) return options.resume;
  if (!options.continue) return undefined;
  const sessions = [...(await storedSessions(store, project))];
  return sessions.sort(([, first], [, second]) => second - first)[0]?.[0];
}

/** Writes a stored session below `projects`; returns the options that resume it. */
async function restore(
  options: CheckedOptions,
  store: SessionStore,
  key: SessionKey,
  projects: string,
): Promise<Partial<CheckedOptions>> {
  const entries = await loadLog(store, key);
  if (entries === null) {
    throw new SessionNotFoundError(
      key.sessionId,
      `The session store has no session ${key.sessionId} of this project. Check the id and options.cwd.`,
    );
  }
  const directory = join(projects, key.projectKey);
  if (options.forkSession) return restoreFork(options, store, key, entries, directory);
  await writeLines(join(directory, `${key.sessionId}.jsonl`), entries);
  await restoreAgents(store, key, join(directory, key.sessionId));
  return { resume: key.sessionId };
}

async function restoreFork(
  options: CheckedOptions,
  store: SessionStore,
  key: SessionKey,
  entries: SessionStoreEntry[],
  directory: string,
): Promise<Partial<CheckedOptions>> {
  const sessionId = options.sessionId ?? randomUUID();
  const ids = { from: key.sessionId, to: sessionId };
  const fork = forkEntries(entries, ids, undefined, undefined) as SessionStoreEntry[];
  await answerOf(`take a fork of ${describeKey(key)}`, () => store.append({ ...key, sessionId }, fork));
  await writeLines(join(directory, `${sessionId}.jsonl`), fork);
  // Messages have new ids in a fork.
  const newId = (uuid: string | undefined): string | undefined => {
    const copy = fork.find(({ forkedFrom }) => isRecord(forkedFrom) && forkedFrom['messageUuid'] === uuid);
    return typeof copy?.['uuid'] === 'string' ? copy['uuid'] : uuid;
  };
  return {
    resume: sessionId,
    forkSession: false,
    sessionId: undefined,
    resumeSessionAt: newId(options.resumeSessionAt),
    resumeDropsTurn: newId(options.resumeDropsTurn),
  };
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

async function restoreAgents(store: SessionStore, key: SessionKey, directory: string): Promise<void> {
  for (const subpath of await storedSubpaths(store, key)) {
    const path = resolve(directory, subpath);
    // A store is not trusted to name places outside the session.
    if (!path.startsWith(directory + sep)) continue;
    const entries = (await loadLog(store, { ...key, subpath })) ?? [];
    await writeLines(`${path}.jsonl`, entries.filter((entry) => entry.type !== 'agent_metadata'));
    const metadata = entries.filter((entry) => entry.type === 'agent_metadata').at(-1);
    if (metadata !== undefined) {
      const { type: _type, ...sidecar } = metadata;
      await writeFile(`${path}.meta.json`, JSON.stringify(sidecar), { mode: 0o600 });
    }
  }
}

async function writeLines(path: string, entries: SessionStoreEntry[]): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeFile(path, entries.map(asLine).join(''), { mode: 0o600 });
}
