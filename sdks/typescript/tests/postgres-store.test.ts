/**
 * The example of a store in PostgreSQL, against a real server and with the real runtime.
 */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { after, before, test } from 'node:test';

import {
  deleteSession,
  forkSession,
  getSessionInfo,
  getSessionMessages,
  listSessions,
  query,
  renameSession,
  tagSession,
} from '@qoder-ai/qoder-agent-sdk';
import { runSessionStoreConformance, SESSION_STORE_RULES } from '@qoder-ai/qoder-agent-sdk/testing';
import pg from 'pg';

import { PostgresSessionStore } from './examples/postgres-session-store.js';
import { type PostgresServer, startPostgres } from './support/postgres.js';
import { collect, resultOf, sandbox } from './support/runtime.js';

let server: PostgresServer;
let pool: pg.Pool;
let sessionStore: PostgresSessionStore;

before(async () => {
  server = await startPostgres();
  pool = new pg.Pool({ ...server.address, max: 4 });
  sessionStore = new PostgresSessionStore(pool);
  await sessionStore.createTable();
});

after(async () => {
  await pool?.end();
  await server?.stop();
});

test('it keeps every rule', async () => {
  assert.deepEqual(await runSessionStoreConformance(() => sessionStore), SESSION_STORE_RULES);
});

test('a session continues after another host has taken it over', async (context) => {
  // The playbook counts the turns of the conversation: its third can only follow the two that were restored.
  const work = sandbox(context, [
    { when: { turn: 1 }, toolCalls: [{ name: 'Bash', input: { command: "printf 'kept: caf\\303\\251'" } }] },
    { when: { lastToolResultContains: 'café' }, text: 'It says café.' },
    { when: { turn: 3, contains: 'again' }, text: 'The third answer.' },
  ]);
  const where = { dir: work.directory, sessionStore };
  const first = resultOf(
    await collect(query({ prompt: 'look', options: work.options({ sessionStore, allowedTools: ['Bash'] }) })),
  );
  assert.equal(first.result, 'It says café.');
  const before = await getSessionMessages(first.session_id, where);
  assert.equal(before.length, 4);

  rmSync(work.configuration, { recursive: true });
  const options = work.options({ sessionStore, resume: first.session_id });
  const second = resultOf(await collect(query({ prompt: 'again', options })));
  assert.equal(second.result, 'The third answer.');
  assert.equal(second.session_id, first.session_id);
  const messages = await getSessionMessages(first.session_id, where);
  assert.deepEqual(messages.slice(0, 4), before);
  assert.equal(messages.length, 6);
});

test('a session is changed in the database', async (context) => {
  const work = sandbox(context, [
    { when: { turn: 1 }, text: 'Hi.' },
    { when: { turn: 2 }, text: 'Again.' },
  ]);
  const where = { dir: work.directory, sessionStore };
  const session = query({ prompt: 'hello', options: work.options({ sessionStore }) });
  const { session_id: id } = resultOf(await collect(session));
  await renameSession(id, 'Kept elsewhere', where);
  await tagSession(id, 'moved', where);
  const fork = await forkSession(id, where);
  const info = await getSessionInfo(id, where);
  assert.deepEqual([info?.summary, info?.tag], ['Kept elsewhere', 'moved']);
  await deleteSession(id, where);
  assert.deepEqual(
    (await listSessions(where)).map(({ summary }) => summary),
    ['Kept elsewhere (fork)'],
  );
  const options = work.options({ sessionStore, resume: fork.sessionId });
  assert.equal(resultOf(await collect(query({ prompt: 'continue', options }))).result, 'Again.');
});
