/**
 * Session stores: copies of what the runtime writes, and sessions that go on from a store.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';

import {
  deleteSession,
  forkSession,
  getSessionInfo,
  getSessionMessages,
  getSubagentMessages,
  InMemorySessionStore,
  listSessions,
  listSubagents,
  type Options,
  query,
  renameSession,
  SessionNotFoundError,
  type SessionStore,
} from '@qoder-ai/qoder-agent-sdk';

import { type Peer, SESSION, withPeer } from './support/peer.js';
import { collect, resultOf, sandbox } from './support/runtime.js';

interface Place {
  cwd: string;
  root: string;
  projectKey: string;
  env: Record<string, string>;
}

function place(context: TestContext): Place {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'qoder-sdk-store-')));
  context.after(() => rmSync(base, { recursive: true, force: true }));
  const cwd = join(base, 'work');
  const root = join(base, 'configuration');
  mkdirSync(cwd);
  mkdirSync(root);
  return { cwd, root, projectKey: cwd.replace(/[^A-Za-z0-9]/g, '-'), env: { QODER_CONFIG_DIR: root } };
}

async function run(given: Options, script: (peer: Peer) => Promise<void>) {
  const { options, scriptDone, peer } = withPeer(async (other) => {
    await other.handshake();
    await script(other);
    await other.untilClosed();
    other.exit(0);
  }, given);
  const messages = await collect(query({ prompt: 'hello', options }));
  await scriptDone;
  return { messages, peer: peer() };
}

const line = (uuid: string, content = 'x'): { type: string } & Record<string, unknown> => ({
  type: 'user',
  uuid,
  parentUuid: null,
  sessionId: SESSION,
  message: { role: 'user', content },
});

test('what is written is in the store before the result is seen', async (context) => {
  const { cwd, root, projectKey, env } = place(context);
  const store = new InMemorySessionStore();
  const main = join(root, 'projects', projectKey, `${SESSION}.jsonl`);
  const agent = join(root, 'projects', projectKey, SESSION, 'subagents', 'agent-a.jsonl');
  const { options, scriptDone } = withPeer(
    async (peer) => {
      assert.ok(peer.spawned.args.includes('--session-mirror'));
      await peer.handshake();
      await peer.read();
      peer.send({ type: 'transcript_mirror', filePath: main, entries: [line('1'), line('2')] });
      peer.send({ type: 'transcript_mirror', filePath: agent, entries: [line('3')] });
      peer.send({ type: 'transcript_mirror', filePath: '/elsewhere/x.jsonl', entries: [line('4')] });
      peer.result();
      peer.state('idle');
      await peer.untilClosed();
      peer.exit(0);
    },
    { cwd, env, sessionStore: store },
  );
  for await (const message of query({ prompt: 'hello', options })) {
    assert.equal(message.type, 'result');
    const entries = await store.load({ projectKey, sessionId: SESSION });
    assert.deepEqual(
      entries?.map((entry) => entry['uuid']),
      ['1', '2'],
    );
    const subpath = 'subagents/agent-a';
    assert.equal((await store.load({ projectKey, sessionId: SESSION, subpath }))?.length, 1);
  }
  await scriptDone;
});

test('eager stores get each frame at once', async (context) => {
  const { cwd, root, projectKey, env } = place(context);
  const batches: number[] = [];
  let arrived: () => void = () => undefined;
  const first = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const store: SessionStore = {
    append: async (_key, entries) => {
      batches.push(entries.length);
      arrived();
    },
    load: async () => null,
  };
  const filePath = join(root, 'projects', projectKey, `${SESSION}.jsonl`);
  await run({ cwd, env, sessionStore: store, sessionStoreFlush: 'eager' }, async (peer) => {
    await peer.read();
    peer.send({ type: 'transcript_mirror', filePath, entries: [line('1')] });
    await first;
    peer.result();
    peer.state('idle');
  });
  assert.deepEqual(batches, [1]);
});

test('a store that fails is tried again, then reported, and the session goes on', async (context) => {
  const { cwd, root, projectKey, env } = place(context);
  let attempts = 0;
  const store: SessionStore = {
    append: async () => {
      attempts += 1;
      throw new Error('disk full');
    },
    load: async () => null,
  };
  const filePath = join(root, 'projects', projectKey, `${SESSION}.jsonl`);
  const { messages } = await run({ cwd, env, sessionStore: store }, async (peer) => {
    await peer.read();
    peer.send({ type: 'transcript_mirror', filePath, entries: [line('1')] });
    peer.result();
    peer.state('idle');
  });
  assert.equal(attempts, 3);
  const [report, result] = messages;
  assert.ok(report?.type === 'system' && report.subtype === 'mirror_error');
  assert.equal(report.error, 'disk full');
  assert.deepEqual(report.key, { projectKey, sessionId: SESSION });
  assert.equal(result?.type, 'result');
});

test('resume: the transcript is laid out for the runtime, and gone afterwards', async (context) => {
  const { cwd, root, projectKey, env } = place(context);
  writeFileSync(join(root, 'settings.json'), '{"a":1}');
  const store = new InMemorySessionStore();
  await store.append({ projectKey, sessionId: SESSION }, [line('1')]);
  await store.append({ projectKey, sessionId: SESSION, subpath: 'subagents/agent-a' }, [
    line('2'),
    { type: 'agent_metadata', agentType: 'old' },
    { type: 'agent_metadata', agentType: 'Explore' },
  ]);
  await store.append({ projectKey, sessionId: SESSION, subpath: '../../../outside' }, [line('3')]);
  let temporary = '';
  const { peer } = await run({ cwd, env, sessionStore: store, resume: SESSION }, async (other) => {
    temporary = other.spawned.env['QODER_CONFIG_DIR'] as string;
    assert.notEqual(temporary, root);
    const folder = join(temporary, 'projects', projectKey);
    assert.match(readFileSync(join(folder, `${SESSION}.jsonl`), 'utf8'), /"uuid":"1"/);
    const agent = join(folder, SESSION, 'subagents', 'agent-a');
    assert.equal(readFileSync(`${agent}.jsonl`, 'utf8').trim().split('\n').length, 1);
    assert.equal(readFileSync(`${agent}.meta.json`, 'utf8'), '{"agentType":"Explore"}');
    assert.equal(existsSync(join(temporary, 'outside.jsonl')), false);
    assert.equal(readFileSync(join(temporary, 'settings.json'), 'utf8'), '{"a":1}');
    await other.read();
    other.send({ type: 'transcript_mirror', filePath: join(folder, `${SESSION}.jsonl`), entries: [line('9')] });
    other.result();
    other.state('idle');
  });
  assert.ok(peer.spawned.args.includes(`--resume=${SESSION}`));
  assert.equal((await store.load({ projectKey, sessionId: SESSION }))?.at(-1)?.['uuid'], '9');
  while (existsSync(temporary)) await new Promise(setImmediate);
});

test('continue takes the newest of the store; without any it starts anew', async (context) => {
  const { cwd, projectKey, env } = place(context);
  const store = new InMemorySessionStore();
  const turn = async (peer: Peer): Promise<void> => void (await peer.turn());
  const empty = await run({ cwd, env, sessionStore: store, continue: true }, turn);
  assert.equal(empty.peer.spawned.args.some((flag) => flag.startsWith('--resume') || flag === '--continue'), false);
  await store.append({ projectKey, sessionId: SESSION }, [line('1')]);
  const filled = await run({ cwd, env, sessionStore: store, continue: true }, turn);
  assert.ok(filled.peer.spawned.args.includes(`--resume=${SESSION}`));
});

test('a session that the store does not have', async (context) => {
  const { cwd, env } = place(context);
  const { options } = withPeer(async () => undefined, { cwd, env, sessionStore: new InMemorySessionStore(), resume: SESSION });
  await assert.rejects(query({ prompt: 'x', options }).next(), SessionNotFoundError);
});

test('the session functions work on a store', async (context) => {
  const { cwd, projectKey } = place(context);
  const sessionStore = new InMemorySessionStore();
  const where = { dir: cwd, sessionStore };
  await sessionStore.append({ projectKey, sessionId: SESSION }, [line('1', 'Stored prompt')]);
  await sessionStore.append({ projectKey, sessionId: SESSION, subpath: 'subagents/agent-a' }, [line('2')]);
  assert.equal((await listSessions(where))[0]?.summary, 'Stored prompt');
  await renameSession(SESSION, 'Renamed', where);
  assert.equal((await getSessionInfo(SESSION, where))?.summary, 'Renamed');
  assert.equal((await getSessionMessages(SESSION, where)).length, 1);
  assert.deepEqual(await listSubagents(SESSION, where), ['a']);
  assert.equal((await getSubagentMessages(SESSION, 'a', where)).length, 1);
  const fork = await forkSession(SESSION, where);
  assert.equal((await getSessionInfo(fork.sessionId, where))?.summary, 'Renamed (fork)');
  await deleteSession(SESSION, where);
  assert.deepEqual(
    (await listSessions(where)).map((session) => session.sessionId),
    [fork.sessionId],
  );
  assert.deepEqual(await sessionStore.listSubkeys({ projectKey, sessionId: SESSION }), []);
});

test('the real runtime: a session goes on from the store after its files are gone', async (context) => {
  const work = sandbox(context, [
    { when: { contains: 'first' }, text: 'One.' },
    { when: { contains: 'second' }, text: 'Two.' },
  ]);
  const sessionStore = new InMemorySessionStore();
  const first = resultOf(await collect(query({ prompt: 'first', options: work.options({ sessionStore }) })));
  rmSync(join(work.configuration, 'projects'), { recursive: true });
  const options = work.options({ sessionStore, resume: first.session_id });
  const second = resultOf(await collect(query({ prompt: 'second', options })));
  assert.equal(second.result, 'Two.');
  assert.equal(second.session_id, first.session_id);
  const messages = await getSessionMessages(first.session_id, { dir: work.directory, sessionStore });
  assert.equal(messages.length, 4);
});
