/**
 * The start of a session: what is said, and runtimes that do not fit or do not live.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  ControlRequestTimeoutError,
  type Options,
  ProtocolVersionMismatchError,
  QoderCliProcessError,
  query,
  UnsupportedCliCapabilityError,
} from '@qoder-ai/qoder-agent-sdk';

import { type Wire, withPeer } from './support/peer.js';
import { collect } from './support/runtime.js';

/** How the stream fails when the runtime answers so. */
async function failureWith(answer: Wire, given: Options = {}): Promise<unknown> {
  const { options } = withPeer(async (peer) => {
    await peer.handshake(answer);
    await peer.untilClosed();
    peer.exit(0);
  }, given);
  const stream = query({ prompt: 'hello', options });
  const started = stream.initializationResult().catch((error: unknown) => error);
  const thrown = await stream.next().catch((error: unknown) => error);
  assert.equal(await started, thrown);
  return thrown;
}

test('only what the options ask for is in the request', async () => {
  const requests: Wire[] = [];
  const script = async (peer: Parameters<Parameters<typeof withPeer>[0]>[0]): Promise<void> => {
    requests.push(await peer.handshake());
    await peer.turn();
    await peer.untilClosed();
    peer.exit(0);
  };
  await collect(query({ prompt: 'x', options: withPeer(script).options }));
  const full: Options = {
    agents: { a: { description: 'd', prompt: 'p', tools: ['Read'] } },
    skills: ['pdf'],
    systemPrompt: { type: 'preset', preset: 'qodercli', excludeDynamicSections: true },
    proxy: 'socks5://p:1',
    planModeInstructions: 'plan so',
    toolConfig: { askUserQuestion: { previewFormat: 'html' } },
    promptSuggestions: true,
    forwardSubagentText: true,
    customContext: { ticket: '7' },
    goalMaxTurns: 4,
    resolveModel: () => ({ model: 'm' }),
    onElicitation: () => null,
    onMcpOAuthRequired: () => null,
    onAuthExpired: () => undefined,
    hooks: { Stop: [{ hooks: [() => ({})], timeout: 5 }] },
  };
  await collect(query({ prompt: 'x', options: withPeer(script, full).options }));
  const common = { subtype: 'initialize', protocolVersion: 1, sdk: { name: 'typescript', version: '0.1.0' } };
  assert.deepEqual(requests[0], { ...common, hooks: null });
  assert.deepEqual(requests[1], {
    ...common,
    hooks: { Stop: [{ matcher: null, hookCallbackIds: ['hook_0'], timeout: 5 }] },
    agents: full.agents,
    skills: ['pdf'],
    excludeDynamicSections: true,
    proxy: 'socks5://p:1',
    planModeInstructions: 'plan so',
    toolConfig: { askUserQuestion: { previewFormat: 'html' } },
    promptSuggestions: true,
    forwardSubagentText: true,
    customContext: { ticket: '7' },
    goalMaxTurns: 4,
    modelPolicy: true,
    elicitation: true,
    mcpOAuth: true,
    authExpired: true,
  });
});

test('a runtime with another protocol is refused, and both are named', async () => {
  const error = await failureWith({ protocol_version: 2 });
  assert.ok(error instanceof ProtocolVersionMismatchError);
  assert.match(error.message, /version 1 of the protocol.*version 2/);
});

test('a runtime that reports no protocol is refused', async () => {
  assert.ok((await failureWith({ protocol_version: undefined })) instanceof ProtocolVersionMismatchError);
});

test('a runtime of another minor version is refused, another patch is not', async () => {
  const error = await failureWith({ qodercli_version: '0.2.0' });
  assert.ok(error instanceof ProtocolVersionMismatchError);
  assert.match(error.message, /0\.1\.0.*0\.2\.0/);
  const { options } = withPeer(async (peer) => {
    await peer.handshake({ qodercli_version: '0.1.99' });
    await peer.turn();
    await peer.untilClosed();
    peer.exit(0);
  });
  assert.equal((await collect(query({ prompt: 'x', options }))).length, 2);
});

test('a runtime that cannot do what a hook asks for is refused', async () => {
  const hooks: Options['hooks'] = { PreToolUse: [{ hooks: [() => ({})], onFailure: 'block' }] };
  assert.ok((await failureWith({ hook_on_failure_supported: false }, { hooks })) instanceof UnsupportedCliCapabilityError);
  assert.ok((await failureWith({ hooks_applied: false }, { hooks })) instanceof UnsupportedCliCapabilityError);
});

test('a runtime that ends before it answers: code and diagnostics are in the error', async () => {
  const lines: string[] = [];
  const { options } = withPeer(
    async (peer) => {
      await peer.expect('initialize');
      peer.stderr.write('error: unknown flag --nonsense\n');
      await new Promise(setImmediate);
      peer.exit(42);
    },
    {
      stderr: (line) => {
        lines.push(line);
        throw new Error('an observer that fails');
      },
    },
  );
  const stream = query({ prompt: 'hello', options });
  const error = await stream.next().catch((thrown: unknown) => thrown);
  assert.ok(error instanceof QoderCliProcessError);
  assert.equal(error.code, 'QODER_CLI_PROCESS_ERROR');
  assert.equal(error.exitCode, 42);
  assert.equal(error.signal, null);
  assert.match(error.message, /code 42: error: unknown flag --nonsense/);
  assert.match(error.stderr, /nonsense/);
  assert.deepEqual(lines, ['error: unknown flag --nonsense']);
  await assert.rejects(stream.initializationResult(), QoderCliProcessError);
});

test('a runtime that ends well without an answer is an error too', async () => {
  const { options } = withPeer(async (peer) => {
    await peer.expect('initialize');
    peer.exit(0);
  });
  await assert.rejects(query({ prompt: 'hello', options }).initializationResult(), QoderCliProcessError);
});

test('a failed start that a result explains is reported once, by the result', async () => {
  const { options } = withPeer(async (peer) => {
    await peer.expect('initialize');
    peer.result(undefined, {
      subtype: 'error_during_execution',
      is_error: true,
      result: undefined,
      errors: ['No conversation found'],
    });
    peer.exit(1);
  });
  const stream = query({ prompt: 'hello', options });
  const messages = await collect(stream);
  assert.equal(messages.length, 1);
  assert.ok(messages[0]?.type === 'result' && messages[0].is_error);
  await assert.rejects(stream.initializationResult(), /No conversation found/);
});

test('a runtime that never answers is given up', async () => {
  const { options, peer } = withPeer(
    async (other) => {
      await other.untilClosed();
      other.exit(0);
    },
    { controlRequestTimeoutMs: 20 },
  );
  await assert.rejects(query({ prompt: 'hello', options }).next(), ControlRequestTimeoutError);
  assert.deepEqual(peer().signals, []);
});

test('a runtime that dies of a signal after the start', async () => {
  const { options } = withPeer(async (peer) => {
    await peer.handshake();
    await peer.read();
    peer.exit(null, 'SIGSEGV');
  });
  const error = await query({ prompt: 'hello', options })
    .next()
    .catch((thrown: unknown) => thrown);
  assert.ok(error instanceof QoderCliProcessError);
  assert.equal(error.signal, 'SIGSEGV');
});

test('a run that ends without a result is an error even with code 0', async () => {
  const { options } = withPeer(async (peer) => {
    await peer.handshake();
    await peer.read();
    peer.exit(0);
  });
  await assert.rejects(query({ prompt: 'hello', options }).next(), QoderCliProcessError);
});
