/**
 * Sessions that end before their time: the consumer leaves, aborts or closes, or the prompts fail.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { AbortError, ControlRequestError, query, type SDKUserMessage } from '@qoder-ai/qoder-agent-sdk';

import { type Peer, withPeer } from './support/peer.js';

/** Sends messages endlessly, and stops when the client asks it to. */
async function endless(peer: Peer): Promise<void> {
  await peer.handshake();
  await peer.read();
  peer.state('running');
  for (let index = 0; index < 50; index += 1) peer.say(`message ${index}`);
  const line = await peer.next();
  if (line !== null) {
    assert.equal(line['request'].subtype, 'interrupt');
    await peer.untilClosed();
  }
  peer.exit(0);
}

test('leaving the loop interrupts the turn, closes the input and waits for the end', async () => {
  const { options, peer, scriptDone } = withPeer(endless);
  for await (const message of query({ prompt: 'go', options })) {
    assert.equal(message.type, 'assistant');
    break;
  }
  assert.equal(peer().exitCode, 0);
  assert.deepEqual(peer().signals, []);
  await scriptDone;
});

test('close ends the stream and drops what was not read', async () => {
  const { options, peer } = withPeer(endless);
  const session = query({ prompt: 'go', options });
  await session.next();
  await session.close();
  assert.deepEqual(await session.next(), { value: undefined, done: true });
  assert.equal(peer().exitCode, 0);
  await session.close();
  await assert.rejects(session.setModel('m'), ControlRequestError);
});

test('a session at rest is closed without an interrupt', async () => {
  const waiting = async function* (): AsyncGenerator<SDKUserMessage> {
    await new Promise(() => undefined);
  };
  const { options, scriptDone } = withPeer(async (peer) => {
    await peer.handshake();
    assert.equal(await peer.next(), null);
    peer.exit(0);
  });
  const session = query({ prompt: waiting(), options });
  await session.initializationResult();
  await session.close();
  await scriptDone;
});

test('throw and await using end the session too', async () => {
  const first = withPeer(endless);
  const session = query({ prompt: 'go', options: first.options });
  await session.next();
  await assert.rejects(session.throw(new Error('mine')), /mine/);
  assert.equal(first.peer().exitCode, 0);
  const second = withPeer(endless);
  const other = query({ prompt: 'go', options: second.options });
  await other.next();
  const dispose = (Symbol as { asyncDispose?: symbol }).asyncDispose;
  if (dispose !== undefined) await (other as unknown as Record<symbol, () => Promise<void>>)[dispose]?.();
  else await other.close();
  assert.equal(second.peer().exitCode, 0);
});

test('abort ends the process at once and the stream with an AbortError', async () => {
  const abortController = new AbortController();
  const { options, peer } = withPeer(
    async (other) => {
      other.once('signal', () => other.exit(null, 'SIGTERM'));
      await endless(other);
    },
    { abortController },
  );
  const session = query({ prompt: 'go', options });
  await session.next();
  abortController.abort();
  const rest = (async () => {
    for await (const message of session) assert.equal(message.type, 'assistant');
  })();
  await assert.rejects(rest, (error: unknown) => error instanceof AbortError && error.name === 'AbortError');
  assert.deepEqual(peer().signals, ['SIGTERM']);
  assert.equal(peer().spawned.signal.aborted, true);
});

test('a signal that is already aborted starts nothing', async () => {
  const abortController = new AbortController();
  abortController.abort();
  const { options, peer } = withPeer(endless, { abortController });
  await assert.rejects(query({ prompt: 'go', options }).next(), AbortError);
  assert.throws(peer, /was not started/);
});

test('a stream of prompts that fails: its error reaches the consumer and the process ends', async () => {
  async function* failing(): AsyncGenerator<SDKUserMessage> {
    yield { type: 'user', message: { role: 'user', content: 'one' } };
    throw new Error('the prompts ran out');
  }
  const { options, peer, scriptDone } = withPeer(async (other) => {
    await other.handshake();
    await other.untilClosed();
    other.exit(0);
  });
  const session = query({ prompt: failing(), options });
  await assert.rejects(async () => {
    for await (const message of session) assert.fail(`unexpected ${message.type}`);
  }, /the prompts ran out/);
  await scriptDone;
  assert.equal(peer().exitCode, 0);
});

test('a stream of things that are no messages is refused', async () => {
  async function* wrong(): AsyncGenerator<SDKUserMessage> {
    yield 'hello' as unknown as SDKUserMessage;
  }
  const { options } = withPeer(async (peer) => {
    await peer.handshake();
    await peer.untilClosed();
    peer.exit(0);
  });
  await assert.rejects(query({ prompt: wrong(), options }).next(), /must yield messages such as/);
});

test('a stream of prompts is closed when the session ends', async () => {
  let markFinished: () => void = () => undefined;
  const finished = new Promise<void>((resolve) => {
    markFinished = resolve;
  });
  async function* prompts(): AsyncGenerator<SDKUserMessage> {
    try {
      for (let index = 0; ; index += 1) {
        yield { type: 'user', message: { role: 'user', content: String(index) }, shouldQuery: false };
        await new Promise(setImmediate);
      }
    } finally {
      markFinished();
    }
  }
  let markRead: () => void = () => undefined;
  const read = new Promise<void>((resolve) => {
    markRead = resolve;
  });
  const { options } = withPeer(async (peer) => {
    await peer.handshake();
    await peer.read();
    markRead();
    await peer.untilClosed();
    peer.exit(0);
  });
  const session = query({ prompt: prompts(), options });
  await read;
  await session.close();
  await finished;
  assert.deepEqual(await session.next(), { value: undefined, done: true });
});

test('a runtime that ends neither with its input nor with SIGTERM is killed', async () => {
  const { options, peer } = withPeer(async (other) => {
    other.on('signal', (signal: string) => {
      if (signal === 'SIGKILL') other.exit(null, 'SIGKILL');
    });
    await other.handshake();
    await other.read();
    other.say('hello');
  });
  const session = query({ prompt: 'go', options });
  await session.next();
  await session.close();
  assert.deepEqual(peer().signals, ['SIGTERM', 'SIGKILL']);
});
