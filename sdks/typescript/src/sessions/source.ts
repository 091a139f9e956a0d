/**
 * The two places that transcripts are read from: the files of this machine, and a session store. Both are used
 * through {@link TranscriptSource}.
 */
import type { Stats } from 'node:fs';
import { appendFile, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative, sep } from 'node:path';

import { OptionsError, SessionNotFoundError } from '../errors.js';
import { isRecord } from '../options/kinds.js';
import type { SDKSessionInfo, SessionDirectoryOptions, SessionKey, SessionStore } from '../types/session-types.js';
import { isSessionId, projectDirectories, projectKey, type SessionFile, sessionFiles, workTrees } from './paths.js';
import { answerOf, asLine, describeKey, loadLog, storedSessions, storedSubpaths } from './store-reading.js';
import { EDGE_BYTES, type Entry, parseEntries, sessionFacts } from './transcript.js';

/** A place with transcripts. */
export interface TranscriptSource {
  /** All sessions, newest first; only so many of them when a number is given. */
  list(most?: number): Promise<SDKSessionInfo[]>;
  /** What is known of a session; undefined when no session has this ID. */
  info(sessionId: string): Promise<SDKSessionInfo | undefined>;
  /** All lines of a session. */
  entries(sessionId: string): Promise<Entry[]>;
  /** Adds a line to a session. */
  append(sessionId: string, entry: Entry): Promise<void>;
  /** Writes a new session beside another one. */
  create(sessionId: string, beside: string, entries: Entry[]): Promise<void>;
  /** Removes a session. */
  remove(sessionId: string): Promise<void>;
  /** The transcripts of a session's agents: their ids, and what they are read by. */
  agents(sessionId: string): Promise<Map<string, string>>;
  /** All lines of an agent, by what {@link TranscriptSource.agents} gave. */
  agentEntries(sessionId: string, place: string): Promise<Entry[]>;
}

/** The source that the options of a session function name. */
export async function openSource(
  options: SessionDirectoryOptions & { includeWorktrees?: boolean } = {},
): Promise<TranscriptSource> {
  if (options.sessionStore === undefined) return new FileSource(options.dir, options.includeWorktrees !== false);
  return new StoreSource(options.sessionStore, await projectKey(options.dir ?? process.cwd()));
}

function checkId(sessionId: string): void {
  if (!isSessionId(sessionId)) throw new OptionsError(`${JSON.stringify(sessionId)} is no id of a session: it must be a UUID.`);
}

/** How far a first prompt is looked for that is not in the usual head of a file. */
const LONG_HEAD_BYTES = 4 * 1024 * 1024;
const AGENT_FILE = /(?:^|\/)agent-([^/]+?)(?:\.jsonl)?$/;

/** Transcripts on this machine. */
class FileSource implements TranscriptSource {
  readonly #directory: string | undefined;
  readonly #withWorkTrees: boolean;

  constructor(directory: string | undefined, withWorkTrees: boolean) {
    this.#directory = directory;
    this.#withWorkTrees = withWorkTrees;
  }

  async list(most = Infinity): Promise<SDKSessionInfo[]> {
    const dated = await Promise.all(
      (await this.#files()).map(async (file) => ({ file, changed: (await statusOf(file.path))?.mtimeMs })),
    );
    dated.sort((first, second) => (second.changed ?? 0) - (first.changed ?? 0));
    // Read each file lazily: a caller that wants the newest few of many does not wait for the rest.
    const found = new Map<string, SDKSessionInfo>();
    for (const { file, changed } of dated) {
      if (found.size >= most) break;
      if (changed === undefined || found.has(file.sessionId)) continue;
      const info = await fileInfo(file);
      if (info) found.set(file.sessionId, info);
    }
    return [...found.values()];
  }

  async info(sessionId: string): Promise<SDKSessionInfo | undefined> {
    const file = await this.#find(sessionId);
    return file && fileInfo(file);
  }

  async entries(sessionId: string): Promise<Entry[]> {
    return entriesOfFile((await this.#demand(sessionId)).path);
  }

  async append(sessionId: string, entry: Entry): Promise<void> {
    const { path } = await this.#demand(sessionId);
    // One write of a whole line, so that the runtime may append at the same time.
    await appendFile(path, `${JSON.stringify(entry)}\n`);
  }

  async create(sessionId: string, beside: string, entries: Entry[]): Promise<void> {
    const path = join(dirname((await this.#demand(beside)).path), `${sessionId}.jsonl`);
    const text = entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
    await writeFile(path, text, { mode: 0o600, flag: 'wx' });
  }

  async remove(sessionId: string): Promise<void> {
    const { path } = await this.#demand(sessionId);
    await rm(path);
    await rm(path.slice(0, -'.jsonl'.length), { recursive: true, force: true });
  }

  async agents(sessionId: string): Promise<Map<string, string>> {
    const { path } = await this.#demand(sessionId);
    const directory = join(path.slice(0, -'.jsonl'.length), 'subagents');
    const found = new Map<string, string>();
    for (const file of await filesBelow(directory)) {
      const id = file.endsWith('.jsonl') ? AGENT_FILE.exec(relative(directory, file).split(sep).join('/'))?.[1] : undefined;
      if (id !== undefined) found.set(id, file);
    }
    return found;
  }

  async agentEntries(_sessionId: string, place: string): Promise<Entry[]> {
    return entriesOfFile(place);
  }

  async #files(): Promise<SessionFile[]> {
    const directory = this.#directory;
    const roots = directory === undefined ? [undefined] : this.#withWorkTrees ? await workTrees(directory) : [directory];
    const projects = new Set((await Promise.all(roots.map((root) => projectDirectories(root)))).flat());
    return (await Promise.all([...projects].map(sessionFiles))).flat();
  }

  async #find(sessionId: string): Promise<SessionFile | undefined> {
    checkId(sessionId);
    for (const file of await this.#files()) {
      if (file.sessionId.toLowerCase() !== sessionId.toLowerCase()) continue;
      if (((await statusOf(file.path))?.size ?? 0) > 0) return file;
    }
    return undefined;
  }

  async #demand(sessionId: string): Promise<SessionFile> {
    const file = await this.#find(sessionId);
    if (file) return file;
    const where = this.#directory === undefined ? 'any project' : this.#directory;
    throw new SessionNotFoundError(sessionId, `There is no session ${sessionId} of ${where}. Check the id and dir.`);
  }
}

/** The lines of a file, with texts that were moved to files of their own because of their size. */
async function entriesOfFile(path: string): Promise<Entry[]> {
  const folder = join(path.slice(0, -'.jsonl'.length), 'blobs');
  const entries = parseEntries(await readFile(path, 'utf8'));
  for (const entry of entries) {
    const { blobs } = entry;
    if (!isRecord(blobs)) continue;
    for (const [pointer, name] of Object.entries(blobs)) {
      // When the blob is missing, the short text in the record says so.
      const text = await readFile(join(folder, basename(String(name))), 'utf8').catch(() => undefined);
      if (text !== undefined) putText(entry, pointer, text);
    }
    delete entry['blobs'];
  }
  return entries;
}

/** Puts a text at the place that a JSON pointer names, if there is one. */
function putText(entry: Entry, pointer: string, text: string): void {
  const names = pointer.split('/').slice(1).map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'));
  const last = names.pop();
  let target: unknown = entry;
  for (const name of names) target = inside(target, name);
  if (last !== undefined && typeof inside(target, last) === 'string') (target as Record<string, unknown>)[last] = text;
}

function inside(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;
}

/** The status of a file; undefined when it was deleted meanwhile. */
async function statusOf(path: string): Promise<Stats | undefined> {
  const status = await stat(path).catch(() => undefined);
  // Only regular files: opening a pipe would wait for a writer.
  return status?.isFile() ? status : undefined;
}

async function fileInfo(file: SessionFile): Promise<SDKSessionInfo | undefined> {
  const handle = await open(file.path, 'r').catch(() => undefined);
  if (handle === undefined) return undefined;
  try {
    const { size, mtimeMs } = await handle.stat();
    if (size === 0) return undefined;
    const read = async (start: number, length: number): Promise<string> =>
      (await handle.read(Buffer.alloc(length), 0, length, start)).buffer.toString('utf8');
    const tailLength = Math.min(size, EDGE_BYTES);
    const tail = await read(size - tailLength, tailLength);
    // A first prompt that is longer than the usual head is looked for once more, further on.
    const factsWith = async (headLength: number): Promise<SDKSessionInfo | undefined> => {
      const head = await read(0, Math.min(size, headLength));
      return sessionFacts({ head, tail }, file.sessionId, Math.floor(mtimeMs), size);
    };
    const facts = await factsWith(EDGE_BYTES);
    return facts?.firstPrompt === undefined && size > EDGE_BYTES ? await factsWith(LONG_HEAD_BYTES) : facts;
  } finally {
    await handle.close();
  }
}

async function filesBelow(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  const nested = await Promise.all(
    entries.map((entry) => {
      const path = join(directory, entry.name);
      return entry.isDirectory() ? filesBelow(path) : [path];
    }),
  );
  return nested.flat();
}

/** Transcripts in a store. */
class StoreSource implements TranscriptSource {
  readonly #store: SessionStore;
  readonly #projectKey: string;

  constructor(store: SessionStore, key: string) {
    this.#store = store;
    this.#projectKey = key;
  }

  async list(most = Infinity): Promise<SDKSessionInfo[]> {
    const sessions = [...(await storedSessions(this.#store, this.#projectKey))];
    sessions.sort(([, first], [, second]) => second - first);
    const infos: SDKSessionInfo[] = [];
    // A log is loaded as a whole, so one after the other and no more of them than the list shows.
    for (const [sessionId, mtime] of sessions) {
      if (infos.length >= most) break;
      const info = await this.#facts(sessionId, mtime);
      if (info !== undefined) infos.push(info);
    }
    return infos;
  }

  async info(sessionId: string): Promise<SDKSessionInfo | undefined> {
    checkId(sessionId);
    const sessions = this.#store.listSessions && (await storedSessions(this.#store, this.#projectKey));
    return this.#facts(sessionId, sessions?.get(sessionId));
  }

  async entries(sessionId: string): Promise<Entry[]> {
    checkId(sessionId);
    return this.#load(this.#key(sessionId), sessionId);
  }

  async append(sessionId: string, entry: Entry): Promise<void> {
    await this.entries(sessionId);
    await this.create(sessionId, sessionId, [entry]);
  }

  async create(sessionId: string, _beside: string, entries: Entry[]): Promise<void> {
    const key = this.#key(sessionId);
    const lines = entries as Array<{ type: string }>;
    await answerOf(`take a change of ${describeKey(key)}`, () => this.#store.append(key, lines));
  }

  async remove(sessionId: string): Promise<void> {
    checkId(sessionId);
    const key = this.#key(sessionId);
    // A store that cannot delete keeps its copy.
    await answerOf(`delete ${describeKey(key)}`, async () => this.#store.delete?.(key));
  }

  async agents(sessionId: string): Promise<Map<string, string>> {
    checkId(sessionId);
    const found = new Map<string, string>();
    for (const subpath of await storedSubpaths(this.#store, this.#key(sessionId))) {
      const id = AGENT_FILE.exec(subpath)?.[1];
      if (id !== undefined) found.set(id, subpath);
    }
    return found;
  }

  async agentEntries(sessionId: string, place: string): Promise<Entry[]> {
    return this.#load({ ...this.#key(sessionId), subpath: place }, sessionId);
  }

  #key(sessionId: string): SessionKey {
    return { projectKey: this.#projectKey, sessionId };
  }

  async #load(key: SessionKey, sessionId: string): Promise<Entry[]> {
    const entries = await loadLog(this.#store, key);
    if (entries === null) throw new SessionNotFoundError(sessionId, `The session store has no session ${sessionId}.`);
    return entries;
  }

  async #facts(sessionId: string, mtime: number | undefined): Promise<SDKSessionInfo | undefined> {
    const entries = await loadLog(this.#store, this.#key(sessionId));
    if (entries === null) return undefined;
    const text = entries.map(asLine).join('');
    const last = entries.filter(({ timestamp }) => typeof timestamp === 'string').at(-1);
    const changed = Date.parse(String(last?.['timestamp'] ?? ''));
    return sessionFacts({ head: text, tail: text }, sessionId, mtime ?? (Number.isNaN(changed) ? 0 : changed));
  }
}
