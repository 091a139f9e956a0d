/**
 * Session stores: copies of what the runtime writes, and sessions that resume from a store.
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
  SessionStoreError,
} from '@qoder-ai/qoder-agent-sdk';

import { type Peer, SESSION } from './support/peer.js';
import { withPeerProcess } from './support/process-peer.js';
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

async function run(context: TestContext, given: Options, script: (peer: Peer) => Promise<void>) {
  const { options, scriptDone, peer } = withPeerProcess(context, async (other) => {
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
  const { options, scriptDone } = withPeerProcess(
    context,
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

const beforeTheEnd: Array<[string, 'eager' | 'batched', Array<Array<Record<string, unknown>>>, number[]]> = [
  ['eager', 'eager', [[line('1')]], [1]],
  ['many entries', 'batched', [Array(200).fill(line('1')), Array(299).fill(line('2')), [line('3')]], [500]],
  ['large entries', 'batched', [[line('1')], [line('2', 'x'.repeat(1024 * 1024))]], [2]],
];
for (const [name, sessionStoreFlush, frames, expected] of beforeTheEnd) {
  test(`copies are made before the turn ends: ${name}`, async (context) => {
    const { cwd, root, projectKey, env } = place(context);
    const batches: number[] = [];
    let arrived: () => void = () => undefined;
    const first = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const sessionStore: SessionStore = {
      append: async (_key, entries) => {
        batches.push(entries.length);
        arrived();
      },
      load: async () => null,
    };
    const filePath = join(root, 'projects', projectKey, `${SESSION}.jsonl`);
    await run(context, { cwd, env, sessionStore, sessionStoreFlush }, async (peer) => {
      await peer.read();
      for (const entries of frames) peer.send({ type: 'transcript_mirror', filePath, entries });
      await first;
      peer.result();
      peer.state('idle');
    });
    assert.deepEqual(batches, expected);
  });
}

test('a turn is one batch for each transcript', async (context) => {
  const { cwd, root, projectKey, env } = place(context);
  const batches: number[] = [];
  const append = async (_key: unknown, entries: unknown[]): Promise<void> => void batches.push(entries.length);
  const filePath = join(root, 'projects', projectKey, `${SESSION}.jsonl`);
  await run(context, { cwd, env, sessionStore: { append, load: async () => null } }, async (peer) => {
    await peer.read();
    for (let number = 0; number < 499; number += 1) {
      peer.send({ type: 'transcript_mirror', filePath, entries: [line(String(number))] });
    }
    peer.result();
    peer.state('idle');
  });
  assert.deepEqual(batches, [499]);
});

/** Lets the limit for a store, and nothing shorter, pass in no time. */
function hurry(context: TestContext): void {
  const real = globalThis.setTimeout;
  const hurried = (run: () => void, ms?: number): NodeJS.Timeout => real(run, ms === 60_000 ? 0 : ms);
  globalThis.setTimeout = hurried as unknown as typeof real;
  context.after(() => {
    globalThis.setTimeout = real;
  });
}

test('a store that hangs is not tried again, and the session continues', async (context) => {
  const { cwd, root, projectKey, env } = place(context);
  let attempts = 0;
  const append = (): Promise<void> => {
    attempts += 1;
    return new Promise(() => undefined);
  };
  const filePath = join(root, 'projects', projectKey, `${SESSION}.jsonl`);
  const sessionStore = { append, load: async () => null };
  const { messages } = await run(context, { cwd, env, sessionStore }, async (peer) => {
    await peer.read();
    hurry(context);
    peer.send({ type: 'transcript_mirror', filePath, entries: [line('1')] });
    peer.result();
    peer.state('idle');
  });
  assert.equal(attempts, 1);
  assert.deepEqual(
    messages.map((message) => message.type),
    ['system', 'result'],
  );
  const [report] = messages;
  assert.ok(report?.type === 'system' && report.subtype === 'mirror_error');
  assert.match(report.error, /did not answer within 60 s/);
});

test('a store that fails is tried again, then reported, and the session continues', async (context) => {
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
  const { messages } = await run(context, { cwd, env, sessionStore: store }, async (peer) => {
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
  const { peer } = await run(context, { cwd, env, sessionStore: store, resume: SESSION }, async (other) => {
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
  const empty = await run(context, { cwd, env, sessionStore: store, continue: true }, turn);
  assert.equal(empty.peer.spawned.args.some((flag) => flag.startsWith('--resume') || flag === '--continue'), false);
  await store.append({ projectKey, sessionId: SESSION }, [line('1')]);
  const filled = await run(context, { cwd, env, sessionStore: store, continue: true }, turn);
  assert.ok(filled.peer.spawned.args.includes(`--resume=${SESSION}`));
});

test('a session that the store does not have', async (context) => {
  const { cwd, env } = place(context);
  const given = { cwd, env, sessionStore: new InMemorySessionStore(), resume: SESSION };
  const { options } = withPeerProcess(context, async () => undefined, given);
  await assert.rejects(query({ prompt: 'x', options }).next(), SessionNotFoundError);
});

test('entries that came twice are restored once, with the type in front', async (context) => {
  const { cwd, projectKey, env } = place(context);
  const store = new InMemorySessionStore();
  const key = { projectKey, sessionId: SESSION };
  const tag = { tag: 'a', sessionId: SESSION, type: 'tag' };
  for (const batch of [[line('1')], [line('1'), line('2')], [tag], [line('2')]]) await store.append(key, batch);
  await run(context, { cwd, env, sessionStore: store, resume: SESSION }, async (peer) => {
    const folder = join(peer.spawned.env['QODER_CONFIG_DIR'] as string, 'projects', projectKey);
    const lines = readFileSync(join(folder, `${SESSION}.jsonl`), 'utf8').trim().split('\n');
    assert.deepEqual(
      lines.map((each) => JSON.parse(each) as unknown),
      [line('1'), line('2'), tag],
    );
    assert.ok(lines[2]?.startsWith('{"type":"tag"'));
    await peer.turn();
  });
  const where = { dir: cwd, sessionStore: store };
  assert.deepEqual(
    (await getSessionMessages(SESSION, where)).map(({ uuid }) => uuid),
    ['2'],
  );
  assert.equal((await getSessionInfo(SESSION, where))?.tag, 'a');
});

test('continue believes no name that is not a session', async (context) => {
  const { cwd, env } = place(context);
  const store = Object.assign(new InMemorySessionStore(), {
    listSessions: async () => [{ sessionId: '../../evil', mtime: 1 }],
  });
  const { peer } = await run(context, { cwd, env, sessionStore: store, continue: true }, async (other) => {
    await other.turn();
  });
  assert.equal(peer.spawned.args.some((flag) => flag.startsWith('--resume')), false);
});

const unusable: Array<[string, () => Promise<never>, RegExp]> = [
  ['fails', () => Promise.reject(new Error('no connection')), /could not load .*no connection/],
  ['gives a text', async () => 'entries' as never, /array of objects/],
];
for (const [name, load, text] of unusable) {
  test(`a store that ${name} when it should load is an error that names it`, async (context) => {
    const { cwd, env } = place(context);
    const sessionStore = { append: async () => undefined, load };
    const { options } = withPeerProcess(context, async () => undefined, { cwd, env, sessionStore, resume: SESSION });
    await assert.rejects(query({ prompt: 'x', options }).next(), (thrown: unknown) => {
      assert.ok(thrown instanceof SessionStoreError);
      assert.match(thrown.message, text);
      return true;
    });
  });
}

test('the real runtime: a fork is complete in the store', async (context) => {
  const work = sandbox(context, [
    { when: { turn: 1 }, text: 'One.' },
    { when: { turn: 2 }, text: 'Two.' },
    { when: { turn: 3 }, text: 'Three.' },
  ]);
  const sessionStore = new InMemorySessionStore();
  const ask = async (prompt: string, more: Options = {}) =>
    resultOf(await collect(query({ prompt, options: work.options({ sessionStore, ...more }) })));
  const original = (await ask('first')).session_id;
  const where = { dir: work.directory, sessionStore };
  const before = await getSessionMessages(original, where);
  const second = await ask('second', { resume: original, forkSession: true });
  assert.notEqual(second.session_id, original);
  assert.equal(second.result, 'Two.');
  assert.deepEqual(await getSessionMessages(original, where), before);
  assert.equal((await getSessionMessages(second.session_id, where)).length, 4);
  assert.equal((await ask('third', { resume: second.session_id })).result, 'Three.');
  const named = '33333333-2222-4333-8444-555555555555';
  assert.equal((await ask('second', { resume: original, forkSession: true, sessionId: named })).session_id, named);
});

test('the place where a fork begins has its new id', async (context) => {
  const { cwd, projectKey, env } = place(context);
  const store = new InMemorySessionStore();
  await store.append({ projectKey, sessionId: SESSION }, [line('1'), { ...line('2'), parentUuid: '1' }]);
  const given: Options = { cwd, env, sessionStore: store, resume: SESSION, forkSession: true, resumeSessionAt: '1' };
  const { peer } = await run(context, given, async (other) => void (await other.turn()));
  const args = peer.spawned.args.join(' ');
  const fork = /--resume=(\S+)/.exec(args)?.[1] as string;
  const [first] = (await store.load({ projectKey, sessionId: fork })) ?? [];
  assert.notEqual(fork, SESSION);
  assert.ok(!args.includes('--fork-session') && args.includes(String(first?.['uuid'])));
});

test('a store with two methods does what it can', async (context) => {
  const { cwd, projectKey } = place(context);
  const full = new InMemorySessionStore();
  const sessionStore: SessionStore = {
    append: (key, entries) => full.append(key, entries),
    load: (key) => full.load(key),
  };
  const where = { dir: cwd, sessionStore };
  await sessionStore.append({ projectKey, sessionId: SESSION }, [{ ...line('1'), timestamp: '2026-01-02T03:04:05Z' }]);
  assert.equal((await getSessionInfo(SESSION, where))?.lastModified, 1767323045000);
  assert.deepEqual(await listSubagents(SESSION, where), []);
  await deleteSession(SESSION, where);
  assert.equal((await getSessionMessages(SESSION, where)).length, 1);
  await assert.rejects(listSessions(where), /no method listSessions/);
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

test('the real runtime: a session continues from the store after its files are gone', async (context) => {
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

test('a list loads no more transcripts than it shows', async (context) => {
  const { cwd, projectKey } = place(context);
  const ids = ['1', '2', '3', '4', '5'].map((digit) => `${digit.repeat(8)}-1111-4111-8111-111111111111`);
  let loaded = 0;
  const store: SessionStore = {
    append: async () => undefined,
    load: async (key) => {
      loaded += 1;
      assert.equal(key.projectKey, projectKey);
      return [line(key.sessionId, 'hello')];
    },
    listSessions: async () => ids.map((sessionId, mtime) => ({ sessionId, mtime })),
  };
  const listed = await listSessions({ dir: cwd, sessionStore: store, limit: 1, offset: 1 });
  assert.deepEqual(listed.map(({ sessionId }) => sessionId), [ids[3]]);
  assert.equal(loaded, 2);
});

test('a store that lists nonsense is an error that says so', async (context) => {
  const { cwd } = place(context);
  for (const nonsense of [undefined, [null], [{ sessionId: SESSION }], [{ sessionId: SESSION, mtime: 'x' }]]) {
    const sessionStore = {
      append: async () => undefined,
      load: async () => null,
      listSessions: async () => nonsense,
      listSubkeys: async () => nonsense,
    } as unknown as SessionStore;
    const options = { dir: cwd, sessionStore };
    await assert.rejects(listSessions(options), (error) => error instanceof SessionStoreError && /must list sessions/.test(error.message));
    await assert.rejects(listSubagents(SESSION, options), (error) => error instanceof SessionStoreError && /must list the agents/.test(error.message));
  }
});
