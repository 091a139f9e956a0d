/**
 * The rules that a session store has to keep. Each is a function that gets a store and throws a {@link Violation}.
 * Rules use random project keys, so that they disturb neither each other nor what is in the store already.
 */
import { randomUUID } from 'node:crypto';

import { isRecord } from '../options/kinds.js';
import { withoutRepeats } from '../sessions/store-reading.js';
import type { SessionKey, SessionStore, SessionStoreEntry } from '../types/session-types.js';

/** A store with all methods; a rule calls only those that it needs. */
type Store = Required<SessionStore>;
type Method = 'listSessions' | 'listSubkeys' | 'delete';

/** What a store did that it must not do. */
export class Violation extends Error {}

const DAY_MS = 24 * 60 * 60 * 1000;
/** So long that every usual clock has moved on. */
const CLOCK_MS = 50;

function project(name = 'rule'): string {
  return `-${name}-${randomUUID()}`;
}

function newKey(more: Partial<SessionKey> = {}): SessionKey {
  return { projectKey: project(), sessionId: randomUUID(), ...more };
}

function entry(text: string, more: Record<string, unknown> = {}): SessionStoreEntry {
  return { type: 'user', uuid: randomUUID(), message: { role: 'user', content: text }, ...more };
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined';
  return text.length <= 300 ? text : `${text.slice(0, 300)}…`;
}

/** Equal as JSON: the order of keys does not count. */
function same(first: unknown, second: unknown): boolean {
  if (Array.isArray(first) && Array.isArray(second)) {
    return first.length === second.length && first.every((each, index) => same(each, second[index]));
  }
  if (Array.isArray(first) || Array.isArray(second)) return false;
  if (isRecord(first) && isRecord(second)) {
    const names = Object.keys(first);
    return (
      names.length === Object.keys(second).length &&
      names.every((name) => Object.hasOwn(second, name) && same(first[name], second[name]))
    );
  }
  return first === second;
}

function insist(holds: boolean, violation: string): void {
  if (!holds) throw new Violation(violation);
}

async function expectLog(
  store: Store,
  key: SessionKey,
  entries: SessionStoreEntry[] | null,
  why: string,
): Promise<void> {
  const found = await store.load(key);
  insist(same(found, entries), `${why}: load(${shown(key)}) gave ${shown(found)} instead of ${shown(entries)}`);
}

async function appendOrder(store: Store): Promise<void> {
  const key = newKey();
  const entries = Array.from({ length: 60 }, (_, number) => entry(`entry ${number}`));
  for (let start = 0; start < 60; start += 7) await store.append(key, entries.slice(start, start + 7));
  await expectLog(store, key, entries, 'entries come back in the order of their arrival');
}

async function deepEquality(store: Store): Promise<void> {
  let nested: unknown = 'bottom';
  for (let level = 0; level < 30; level += 1) nested = { level, inside: [nested] };
  const values = {
    languages: ['é e\u0301 ß', '日本語 🦀', 'שלום'],
    texts: ['', ' ', '\u2028\u2029', '"\\/\b\f\n\r\t', 'a\u0000b', '\x7f\ufeff'],
    looks: ['1', '1.0', 'true', 'null', '2026-01-02T03:04:05.678Z', '{}', '\\u0041', '$1', '%s', "'; --"],
    numbers: [0, 1, -1, 9007199254740991, -9007199254740991, 0.1, 1.5e-7, 1e21, 123456789.125],
    constants: [true, false, null],
    empty: { object: {}, list: [], text: '', nothing: null },
    names: { '': 1, 'a b': 2, 'a.b': 3, $ref: 4, ключ: 5, UPPER: 6, upper: 7, '0': 8 },
    nested,
  };
  const key = newKey();
  const entries = [entry('all kinds of values', values), { type: 'without-uuid' }];
  await store.append(key, entries);
  await expectLog(store, key, entries, 'entries come back as they were');
}

async function valuesAreCopies(store: Store): Promise<void> {
  const key = newKey();
  const entries = [entry('first'), entry('second')];
  const given = structuredClone(entries);
  await store.append(key, given);
  spoil(given);
  await expectLog(store, key, entries, 'what a caller changes after append is not stored');
  spoil((await store.load(key)) ?? []);
  await expectLog(store, key, entries, 'what a caller changes after load is not stored');
}

function spoil(entries: SessionStoreEntry[]): void {
  for (const each of entries) each['message'] = 'changed';
  entries.push(entry('never stored'));
}

async function unknownKey(store: Store): Promise<void> {
  const key = newKey();
  await expectLog(store, key, null, 'a session that was never stored is null');
  await store.append({ ...key, subpath: 'subagents/agent-a' }, [entry('agent')]);
  await expectLog(store, key, null, "an agent's transcript does not make one of the session");
  await expectLog(store, { ...key, subpath: 'subagents/agent-b' }, null, 'an agent that was never stored is null');
}

async function keysAreSeparate(store: Store): Promise<void> {
  const projectKey = project();
  const sessionId = randomUUID();
  const keys: SessionKey[] = [
    { projectKey, sessionId },
    { projectKey: `${projectKey}-a`, sessionId },
    { projectKey: `${projectKey}-A`, sessionId },
    { projectKey, sessionId: randomUUID() },
    { projectKey, sessionId, subpath: 'subagents/agent-a' },
    { projectKey, sessionId, subpath: 'subagents/agent-A' },
    { projectKey, sessionId, subpath: 'subagents/deeper/agent-a' },
    { projectKey: `${projectKey}-a`, sessionId, subpath: 'subagents/agent-a' },
  ];
  const logs = keys.map((key) => ({ key, entries: [entry(shown(key))] }));
  for (const { key, entries } of logs) await store.append(key, entries);
  for (const { key, entries } of logs) {
    await expectLog(store, key, entries, 'each project, session and subpath has a transcript of its own');
  }
}

async function subkeysListed(store: Store): Promise<void> {
  const key = newKey();
  const found = async (): Promise<string> => shown([...(await store.listSubkeys(key))].sort());
  insist((await found()) === '[]', 'a session that was never stored has no subpaths');
  await store.append(key, [entry('main')]);
  insist((await found()) === '[]', 'the transcript of the session itself is no subpath');
  const subpaths = ['subagents/agent-a', 'subagents/agent-b', 'subagents/deeper/agent-c'];
  for (const subpath of [...subpaths, 'subagents/agent-a']) await store.append({ ...key, subpath }, [entry(subpath)]);
  await store.append({ ...key, sessionId: randomUUID(), subpath: 'subagents/agent-other' }, [entry('other')]);
  insist((await found()) === shown(subpaths), `listSubkeys gave ${await found()} instead of ${shown(subpaths)}`);
}

async function sessionList(store: Store): Promise<void> {
  const first = newKey();
  const second = newKey({ projectKey: first.projectKey });
  insist((await listed(store, first.projectKey)).size === 0, 'a project that was never stored has no sessions');
  for (const key of [first, second, newKey()]) await store.append(key, [entry('one')]);
  await store.append({ ...first, subpath: 'subagents/agent-a' }, [entry('agent')]);
  let times = await listed(store, first.projectKey);
  const [ids, wanted] = [[...times.keys()].sort(), [first.sessionId, second.sessionId].sort()];
  insist(same(ids, wanted), `listSessions gave ${shown(ids)} instead of ${shown(wanted)}`);
  for (const mtime of times.values()) {
    insist(typeof mtime === 'number', `mtime is ${shown(mtime)}, no number`);
    const near = Math.abs(mtime - Date.now()) < DAY_MS;
    insist(near, `mtime is ${mtime}, not the time of the append in milliseconds`);
  }
  await new Promise((done) => setTimeout(done, CLOCK_MS));
  await store.append(first, [entry('two')]);
  times = await listed(store, first.projectKey);
  const newest = (times.get(first.sessionId) ?? 0) > (times.get(second.sessionId) ?? 0);
  insist(newest, 'an append makes a session the newest');
}

async function listed(store: Store, projectKey: string): Promise<Map<string, number>> {
  const rows = await store.listSessions(projectKey);
  const times = new Map(rows.map(({ sessionId, mtime }) => [sessionId, mtime]));
  insist(times.size === rows.length, `listSessions names a session twice: ${shown(rows)}`);
  return times;
}

async function deleteCascades(store: Store): Promise<void> {
  const key = newKey();
  const agent = { ...key, subpath: 'subagents/agent-a' };
  const sameProject = newKey({ projectKey: key.projectKey });
  const sameId = newKey({ sessionId: key.sessionId });
  const kept = [sameProject, sameId, { ...sameId, subpath: 'subagents/agent-a' }];
  const entries = [entry('kept')];
  for (const each of [key, agent, ...kept]) await store.append(each, entries);
  await store.delete(key);
  await expectLog(store, key, null, 'a deleted session is null');
  await expectLog(store, agent, null, 'deleting a session deletes the transcripts of its agents');
  if (has(store, 'listSubkeys')) {
    insist((await store.listSubkeys(key)).length === 0, 'a deleted session has no subpaths');
  }
  if (has(store, 'listSessions')) {
    const left = [...(await listed(store, key.projectKey)).keys()];
    insist(same(left, [sameProject.sessionId]), `after delete, listSessions gave ${shown(left)}`);
  }
  for (const each of kept) await expectLog(store, each, entries, 'deleting a session leaves all others alone');
  const again = [entry('anew')];
  await store.append(key, again);
  await expectLog(store, key, again, 'a session that is stored again starts empty');
}

function has(store: Store, method: Method): boolean {
  return typeof store[method] === 'function';
}

async function deleteOfASubpath(store: Store): Promise<void> {
  const key = newKey();
  const gone = { ...key, subpath: 'subagents/agent-a' };
  const sibling = { ...key, subpath: 'subagents/agent-ab' };
  const entries = [entry('kept')];
  for (const each of [key, gone, sibling]) await store.append(each, entries);
  await store.delete(gone);
  await expectLog(store, gone, null, 'a deleted transcript of an agent is null');
  await expectLog(store, key, entries, 'deleting the transcript of an agent leaves that of the session');
  await expectLog(store, sibling, entries, 'deleting the transcript of an agent leaves those of others');
}

async function deleteOfUnknown(store: Store): Promise<void> {
  const key = newKey();
  await store.delete(key);
  await store.delete({ ...key, subpath: 'subagents/agent-a' });
  await expectLog(store, key, null, 'deleting what is not there changes nothing');
}

async function concurrentAppends(store: Store): Promise<void> {
  const projectKey = project();
  const logs = Array.from({ length: 8 }, (_, log) => ({
    key: newKey(log < 6 ? { projectKey } : { projectKey, subpath: 'subagents/agent-a' }),
    entries: Array.from({ length: 10 }, (_each, number) => entry(`${log}.${number}`)),
  }));
  const write = async ({ key, entries }: (typeof logs)[number]): Promise<void> => {
    for (let start = 0; start < 10; start += 2) await store.append(key, entries.slice(start, start + 2));
  };
  await Promise.all(logs.map(write));
  for (const { key, entries } of logs) {
    await expectLog(store, key, entries, 'appends to different transcripts at the same time do not disturb each other');
  }
}

async function largeBatches(store: Store): Promise<void> {
  const key = newKey();
  const small = Array.from({ length: 1000 }, (_, number) => entry(`entry ${number}`));
  const entries = [entry('ü'.repeat(1024 * 1024)), ...small];
  await store.append(key, entries);
  await expectLog(store, key, entries, 'an entry of 1 MiB and a thousand more are stored in one append');
}

async function repeatedDelivery(store: Store): Promise<void> {
  const key = newKey();
  const entries = Array.from({ length: 4 }, (_, number) => entry(`entry ${number}`));
  await store.append(key, entries.slice(0, 2));
  await store.append(key, entries.slice(0, 3));
  await store.append(key, entries.slice(3));
  await store.append(key, entries.slice(0, 1));
  const found = withoutRepeats((await store.load(key)) ?? []);
  const violation = 'after a repeated append, the entries by their first arrival are';
  insist(same(found, entries), `${violation} ${shown(found)} instead of ${shown(entries)}`);
}

async function oddKeys(store: Store): Promise<void> {
  const token = randomUUID();
  const names = ['a/b', '..', 'ä 日本 🦀', 'quote\'"\\', '%2F*?:|<>', `-${'x'.repeat(300)}`];
  const logs = names.map((name) => {
    const main = newKey({ projectKey: `${token}${name}` });
    const subpath = `subagents/${name}/agent-${token}`;
    return { main, subpath, entries: [entry(`${name} main`)], agent: [entry(`${name} agent`)] };
  });
  for (const { main, subpath, entries, agent } of logs) {
    await store.append(main, entries);
    await store.append({ ...main, subpath }, agent);
  }
  for (const { main, subpath, entries, agent } of logs) {
    await expectLog(store, main, entries, 'every text can be a project key');
    await expectLog(store, { ...main, subpath }, agent, 'every text can be a subpath');
    if (has(store, 'listSubkeys')) {
      const found = await store.listSubkeys(main);
      insist(same(found, [subpath]), `listSubkeys gave ${shown(found)} instead of the subpath as it was given`);
    }
    if (has(store, 'listSessions')) {
      const found = [...(await listed(store, main.projectKey)).keys()];
      insist(same(found, [main.sessionId]), `listSessions(${shown(main.projectKey)}) gave ${shown(found)}`);
    }
  }
}

/** A check, and the methods without which it says nothing. */
interface Rule {
  check: (store: Store) => Promise<void>;
  needs: Method[];
}

/** All rules by their names. */
export const RULES: ReadonlyMap<string, Rule> = new Map([
  ['append-order', { check: appendOrder, needs: [] }],
  ['deep-equality', { check: deepEquality, needs: [] }],
  ['values-are-copies', { check: valuesAreCopies, needs: [] }],
  ['unknown-key', { check: unknownKey, needs: [] }],
  ['keys-are-separate', { check: keysAreSeparate, needs: [] }],
  ['subkeys-listed', { check: subkeysListed, needs: ['listSubkeys'] }],
  ['session-list', { check: sessionList, needs: ['listSessions'] }],
  ['delete-cascades', { check: deleteCascades, needs: ['delete'] }],
  ['delete-of-a-subpath', { check: deleteOfASubpath, needs: ['delete'] }],
  ['delete-of-unknown', { check: deleteOfUnknown, needs: ['delete'] }],
  ['concurrent-appends', { check: concurrentAppends, needs: [] }],
  ['large-batches', { check: largeBatches, needs: [] }],
  ['repeated-delivery', { check: repeatedDelivery, needs: [] }],
  ['odd-keys', { check: oddKeys, needs: [] }],
]);
