/**
 * What reaches the consumer of a stream, and what does not.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { MessageDecodeError, query } from '@qoder-ai/qoder-agent-sdk';

import { oneTurn, SESSION, withPeer } from './support/peer.js';
import { collect } from './support/runtime.js';

test('messages arrive in order and the stream ends with the process', async () => {
  const { options } = withPeer(oneTurn);
  const messages = await collect(query({ prompt: 'hello', options }));
  assert.deepEqual(
    messages.map((message) => message.type),
    ['assistant', 'result'],
  );
});

test('the prompt travels as one user message', async () => {
  const { options, scriptDone } = withPeer(async (peer) => {
    await peer.handshake();
    const line = await peer.turn();
    assert.deepEqual(line, {
      parent_tool_use_id: null,
      session_id: '',
      type: 'user',
      message: { role: 'user', content: 'Zwölf “Töne”\n\u2028 🦀' },
    });
    await peer.untilClosed();
    peer.exit(0);
  });
  await collect(query({ prompt: 'Zwölf “Töne”\n\u2028 🦀', options }));
  await scriptDone;
});

test('states for the host are hidden, states for the user are not', async () => {
  const { options } = withPeer(async (peer) => {
    await peer.handshake();
    await peer.read();
    peer.state('running');
    peer.send({ type: 'system', subtype: 'session_state_changed', state: 'running', uuid: 'u', session_id: SESSION });
    peer.result();
    peer.state('idle');
    await peer.untilClosed();
    peer.exit(0);
  });
  const messages = await collect(query({ prompt: 'hello', options }));
  assert.deepEqual(
    messages.map((message) => message.type),
    ['system', 'result'],
  );
});

test('kinds that are not known are passed on, and can be told apart by type', async () => {
  const { options } = withPeer(async (peer) => {
    await peer.handshake();
    await peer.read();
    peer.send({ type: 'from_the_future', value: 7 });
    peer.send({ type: 'system', subtype: 'also_new', value: 8 });
    peer.send({ type: 'keep_alive' });
    peer.result();
    peer.state('idle');
    await peer.untilClosed();
    peer.exit(0);
  });
  const seen: unknown[] = [];
  for await (const message of query({ prompt: 'hello', options })) {
    switch (message.type) {
      case 'result':
        seen.push(message.result);
        break;
      case 'system':
        if (message.subtype === 'init') seen.push(message.tools);
        else seen.push(message.subtype);
        break;
      case 'assistant':
      case 'user':
      case 'stream_event':
      case 'prompt_suggestion':
      case 'rate_limit_event':
      case 'conversation_reset':
        break;
      default:
        seen.push([message.type, message['value']]);
    }
  }
  assert.deepEqual(seen, [['from_the_future', 7], 'also_new', 'done']);
});

test('lines that are no objects are skipped, a broken object ends the stream', async () => {
  const { options } = withPeer(async (peer) => {
    await peer.handshake();
    await peer.read();
    peer.stdout.write('a wrapper says hello\n\n');
    peer.say('fine');
    peer.stdout.write('{"type": "assist\n');
    await peer.untilClosed();
    peer.exit(0);
  });
  const stream = query({ prompt: 'hello', options });
  assert.equal((await stream.next()).value?.type, 'assistant');
  await assert.rejects(stream.next(), MessageDecodeError);
  assert.deepEqual(await stream.next(), { value: undefined, done: true });
});

test('a message may come in pieces, and characters in halves', async () => {
  const { options } = withPeer(async (peer) => {
    await peer.handshake();
    await peer.read();
    const line = Buffer.from(
      `${JSON.stringify({ type: 'prompt_suggestion', suggestion: 'Grüße 🦀 \u2028 ende', uuid: 'p', session_id: SESSION })}\r\n`,
    );
    for (const byte of line) peer.stdout.write(Buffer.from([byte]));
    peer.result();
    peer.state('idle');
    await peer.untilClosed();
    peer.exit(0);
  });
  const [first] = await collect(query({ prompt: 'hello', options }));
  assert.ok(first?.type === 'prompt_suggestion');
  assert.equal(first.suggestion, 'Grüße 🦀 \u2028 ende');
});

test('a last line without its end counts', async () => {
  const { options } = withPeer(async (peer) => {
    await peer.handshake();
    await peer.read();
    peer.stdout.write(
      JSON.stringify({ type: 'result', subtype: 'success', is_error: false, result: 'late', session_id: SESSION }),
    );
    peer.exit(0);
  });
  const messages = await collect(query({ prompt: 'hello', options }));
  assert.equal(messages.at(-1)?.type, 'result');
});
