/**
 * When the input of the runtime is closed: as soon as nothing more is owed, and not before.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { type Options, query, type SDKUserMessage, startup } from '@qoder-ai/qoder-agent-sdk';

import { type Peer, SESSION, withPeer } from './support/peer.js';
import { collect } from './support/runtime.js';

function user(content: string, more: Partial<SDKUserMessage> = {}): SDKUserMessage {
  return { type: 'user', message: { role: 'user', content }, ...more };
}

async function* these(...messages: SDKUserMessage[]): AsyncGenerator<SDKUserMessage> {
  yield* messages;
}

async function run(prompt: string | AsyncIterable<SDKUserMessage>, script: (peer: Peer) => Promise<void>, given?: Options) {
  const { options, scriptDone, peer } = withPeer(script, given);
  const messages = await collect(query({ prompt, options }));
  await scriptDone;
  return { messages, peer: peer() };
}

/** Fails when the input is closed before this has passed. */
async function assertOpen(peer: Peer): Promise<void> {
  const closed = new Promise((resolve) => peer.stdin.once('end', () => resolve('closed')));
  const asked = peer.ask({ subtype: 'nothing' }).then(() => 'open');
  assert.equal(await Promise.race([closed, asked]), 'open');
}

test('after the result and the rest that follows it', async () => {
  await run('hello', async (peer) => {
    await peer.handshake();
    await peer.read();
    peer.state('running');
    peer.result();
    await assertOpen(peer);
    peer.state('idle');
    assert.equal(await peer.next(), null);
    peer.exit(0);
  });
});

test('rest just before the result works too', async () => {
  await run('hello', async (peer) => {
    await peer.handshake();
    await peer.read();
    peer.state('running');
    peer.state('idle');
    await assertOpen(peer);
    peer.result();
    assert.equal(await peer.next(), null);
    peer.exit(0);
  });
});

test('not while an agent in the background will wake the model again', async () => {
  await run('hello', async (peer) => {
    await peer.handshake();
    await peer.read();
    peer.state('running');
    peer.result('first');
    await assertOpen(peer);
    peer.result('second');
    await assertOpen(peer);
    peer.state('idle');
    assert.equal(await peer.next(), null);
    peer.exit(0);
  });
});

test('a runtime that reports no states: with the result, but not before its agents are done', async () => {
  await run('hello', async (peer) => {
    await peer.handshake();
    await peer.read();
    const task = { type: 'system', task_id: 't1', uuid: 'u', session_id: SESSION };
    peer.send({ ...task, subtype: 'task_started', description: 'd', task_type: 'local_agent' });
    peer.result();
    await assertOpen(peer);
    peer.send({ ...task, subtype: 'task_notification', status: 'completed', output_file: '', summary: '' });
    assert.equal(await peer.next(), null);
    peer.exit(0);
  });
});

test('a stream that ends: after the answer to its last message', async () => {
  const { messages } = await run(these(user('one'), user('two')), async (peer) => {
    await peer.handshake();
    await peer.turn('1');
    await peer.turn('2');
    assert.equal(await peer.next(), null);
    peer.exit(0);
  });
  assert.equal(messages.filter((message) => message.type === 'result').length, 2);
});

test('a stream whose messages are answered together', async () => {
  const { messages } = await run(these(user('one'), user('two')), async (peer) => {
    await peer.handshake();
    await peer.read();
    await peer.read();
    peer.state('running');
    peer.result('both');
    peer.state('idle');
    assert.equal(await peer.next(), null);
    peer.exit(0);
  });
  assert.equal(messages.filter((message) => message.type === 'result').length, 1);
});

test('an empty stream, and one that wants no answer', async () => {
  await run(these(), async (peer) => {
    await peer.handshake();
    assert.equal(await peer.next(), null);
    peer.exit(0);
  });
  await run(these(user('remember this', { shouldQuery: false })), async (peer) => {
    await peer.handshake();
    assert.equal((await peer.read())['shouldQuery'], false);
    assert.equal(await peer.next(), null);
    peer.exit(0);
  });
});

test('a stream of messages keeps their fields', async () => {
  await run(these(user('x', { uuid: 'mine', priority: 'now' })), async (peer) => {
    await peer.handshake();
    const line = await peer.turn();
    assert.equal(line['uuid'], 'mine');
    assert.equal(line['priority'], 'now');
    await peer.untilClosed();
    peer.exit(0);
  });
});

test('streamInput adds messages to a session that is open', async () => {
  let release: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  async function* slow(): AsyncGenerator<SDKUserMessage> {
    yield user('one');
    await gate;
  }
  const texts: string[] = [];
  const { options } = withPeer(async (peer) => {
    await peer.handshake();
    for (let index = 0; index < 2; index += 1) texts.push((await peer.turn())['message'].content);
    await peer.untilClosed();
    peer.exit(0);
  });
  const session = query({ prompt: slow(), options });
  await session.streamInput(these(user('two')));
  release();
  await collect(session);
  assert.deepEqual(texts, ['one', 'two']);
  await assert.rejects(session.streamInput(these(user('three'))), /session ended before all messages were sent/);
});

test('startup: the process is ready before the prompt, and serves one', async () => {
  const { options } = withPeer(async (peer) => {
    await peer.handshake({ capabilities: ['x'] });
    const line = await peer.turn();
    assert.equal(line['message'].content, 'late');
    await peer.untilClosed();
    peer.exit(0);
  });
  const warm = await startup({ options });
  assert.deepEqual(warm.initialization.capabilities, ['x']);
  const messages = await collect(warm.query('late'));
  assert.equal(messages.at(-1)?.type, 'result');
  assert.throws(() => warm.query('again'), /can be used once/);
});

test('startup: a runtime that is never ready, and one that is not wanted', async () => {
  const silent = withPeer(async (peer) => {
    await peer.untilClosed();
    peer.exit(0);
  });
  await assert.rejects(startup({ options: silent.options, initializeTimeoutMs: 20 }), /not ready within 20 ms/);
  const unwanted = withPeer(async (peer) => {
    await peer.handshake();
    await peer.untilClosed();
    peer.exit(0);
  });
  await (await startup({ options: unwanted.options })).close();
  await unwanted.scriptDone;
});
