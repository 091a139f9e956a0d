/**
 * A session store in a directory, such as one that several hosts have mounted. Keys can be long and can hold any
 * character, so names of files are hashes of them; the first line of each file says what its key is. One host at a
 * time may write a session, which the runtime sees to on one machine and you on several.
 */
import { createHash } from 'node:crypto';
import { appendFile, mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import type { SessionKey, SessionStore, SessionStoreEntry } from '@qoder-ai/qoder-agent-sdk';

const MAIN = 'main.jsonl';

/** Keeps each transcript as a file with a JSON object a line. */
export class FileSessionStore implements SessionStore {
  readonly #directory: string;

  /** The directory is made when the first transcript comes. */
  constructor(directory: string) {
    this.#directory = directory;
  }

  async append(key: SessionKey, entries: SessionStoreEntry[]): Promise<void> {
    const path = this.#path(key);
    await mkdir(dirname(path), { recursive: true });
    const known = await stat(path).catch(ifMissing(undefined));
    const lines = known === undefined ? [key, ...entries] : entries;
    await appendFile(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  }

  async load(key: SessionKey): Promise<SessionStoreEntry[] | null> {
    const text = await readFile(this.#path(key), 'utf8').catch(ifMissing(undefined));
    return text === undefined ? null : lines(text).slice(1).map((line) => JSON.parse(line) as SessionStoreEntry);
  }

  async listSessions(projectKey: string): Promise<Array<{ sessionId: string; mtime: number }>> {
    const folder = join(this.#directory, nameOf(projectKey));
    const sessions: Array<{ sessionId: string; mtime: number }> = [];
    for (const name of await readdir(folder).catch(ifMissing([]))) {
      const path = join(folder, name, MAIN);
      const status = await stat(path).catch(ifMissing(undefined));
      if (status) sessions.push({ sessionId: (await keyOf(path)).sessionId, mtime: status.mtimeMs });
    }
    return sessions;
  }

  async listSubkeys(key: { projectKey: string; sessionId: string }): Promise<string[]> {
    const folder = dirname(this.#path(key));
    const names = (await readdir(folder).catch(ifMissing([]))).filter((name) => name !== MAIN);
    return Promise.all(names.map(async (name) => (await keyOf(join(folder, name))).subpath ?? ''));
  }

  async delete(key: SessionKey): Promise<void> {
    const path = this.#path(key);
    await rm(key.subpath === undefined ? dirname(path) : path, { recursive: true, force: true });
  }

  #path({ projectKey, sessionId, subpath }: SessionKey): string {
    const file = subpath === undefined ? MAIN : `${nameOf(subpath)}.jsonl`;
    return join(this.#directory, nameOf(projectKey), nameOf(sessionId), file);
  }
}

function nameOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Split by the line feed only: other characters that end lines may stand inside of texts. */
function lines(text: string): string[] {
  return text.split('\n').filter((line) => line !== '');
}

async function keyOf(path: string): Promise<SessionKey> {
  return JSON.parse(lines(await readFile(path, 'utf8'))[0] as string) as SessionKey;
}

/** What to give for a file that does not exist; other errors stay errors. */
function ifMissing<Value>(value: Value): (error: NodeJS.ErrnoException) => Value {
  return (error) => {
    if (error.code === 'ENOENT') return value;
    throw error;
  };
}
