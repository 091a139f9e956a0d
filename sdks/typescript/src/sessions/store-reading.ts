/**
 * Reads transcripts from a session store, which is not trusted: it may hang, fail, answer with something else, or
 * hold an entry twice because its delivery was repeated. Everybody who reads from a store does it through this file.
 */
import { errorText, SessionStoreError } from '../errors.js';
import { isRecord } from '../options/kinds.js';
import type { SessionKey, SessionStore, SessionStoreEntry } from '../types/session-types.js';
import { isSessionId } from './paths.js';

/** A store that does not answer for so long is given up. */
export const ANSWER_MS = 60_000;

/** Raised inside this package when a store took too long. */
export class TooLate extends Error {}

/** What a promise gives, or {@link TooLate} after the limit. */
export async function within<Value>(limitMs: number, asked: Promise<Value>): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_resolve, reject) => {
    const late = new TooLate(`the session store did not answer within ${limitMs / 1000} s`);
    timer = setTimeout(() => reject(late), limitMs);
  });
  try {
    return await Promise.race([asked, limit]);
  } finally {
    clearTimeout(timer);
  }
}

/** What the store answers; an error that says what was tried when it does not. */
export async function answerOf<Value>(doing: string, ask: () => Promise<Value>): Promise<Value> {
  try {
    // A store may also throw before it gives a promise.
    return await within(ANSWER_MS, (async () => ask())());
  } catch (thrown) {
    throw new SessionStoreError(`The session store could not ${doing}: ${errorText(thrown)}`, { cause: thrown });
  }
}

/** The entries of a transcript, each once; null when the store does not know it, or has nothing in it. */
export async function loadLog(store: SessionStore, key: SessionKey): Promise<SessionStoreEntry[] | null> {
  const entries: unknown = await answerOf(`load ${describeKey(key)}`, () => store.load(key));
  if (entries === null || entries === undefined) return null;
  if (!Array.isArray(entries) || !entries.every(isRecord)) {
    throw new SessionStoreError(`The session store must return ${describeKey(key)} as an array of objects.`);
  }
  return entries.length === 0 ? null : withoutRepeats(entries as SessionStoreEntry[]);
}

/** The sessions of a project, with the times of their last changes. */
export async function storedSessions(store: SessionStore, projectKey: string): Promise<Map<string, number>> {
  if (!store.listSessions) {
    throw new SessionStoreError('This session store has no method listSessions, so its sessions cannot be listed.');
  }
  const rows: unknown = await answerOf(`list the sessions of ${projectKey}`, async () => store.listSessions?.(projectKey));
  if (!Array.isArray(rows) || !rows.every((row) => isRecord(row) && Number.isFinite(Number(row['mtime'] ?? NaN)))) {
    throw new SessionStoreError('The session store must list sessions as objects with a sessionId and a number mtime.');
  }
  // Names that are no ids would become paths elsewhere.
  const sessions = rows.filter(({ sessionId }) => isSessionId(String(sessionId)));
  return new Map(sessions.map(({ sessionId, mtime }) => [String(sessionId), Number(mtime)]));
}

/** The transcripts of a session's agents; none when the store cannot list them. */
export async function storedSubpaths(store: SessionStore, key: SessionKey): Promise<string[]> {
  const { projectKey, sessionId } = key;
  if (!store.listSubkeys) return [];
  const ask = async (): Promise<unknown> => store.listSubkeys?.({ projectKey, sessionId });
  const subpaths = await answerOf(`list the agents of ${describeKey(key)}`, ask);
  if (!Array.isArray(subpaths) || !subpaths.every((subpath) => typeof subpath === 'string')) {
    throw new SessionStoreError(`The session store must list the agents of ${describeKey(key)} as texts.`);
  }
  return subpaths;
}

/** The entries without those that were delivered twice; one without a uuid cannot be told apart and stays. */
export function withoutRepeats<Entry extends Record<string, unknown>>(entries: Entry[]): Entry[] {
  const seen = new Set<unknown>();
  return entries.filter(({ uuid }) => {
    if (typeof uuid !== 'string') return true;
    if (seen.has(uuid)) return false;
    seen.add(uuid);
    return true;
  });
}

/** An entry as a line. Stores may change the order of keys, but readers look for the type at the start. */
export function asLine(entry: Record<string, unknown>): string {
  return `${JSON.stringify('type' in entry ? { type: entry['type'], ...entry } : entry)}\n`;
}

/** A key for an error message. */
export function describeKey(key: SessionKey): string {
  return `the session ${key.sessionId}${key.subpath === undefined ? '' : ` (${key.subpath})`}`;
}
