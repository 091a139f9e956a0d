/**
 * `resolveModel`: what it gets, what its answers become, and how slowness and failures end the query.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { type ModelPolicyProvider, ModelPolicyTimeoutError, type Options, query } from '@qoder-ai/qoder-agent-sdk';

import { type Peer, withPeer } from './support/peer.js';
import { collect, resultOf, sandbox } from './support/runtime.js';

const question = {
  subtype: 'get_model_policy',
  purpose: 'main',
  sessionId: 's',
  agentId: 'main',
  turnIndex: 0,
  availableModels: [{ value: 'm', displayName: 'M' }],
};

async function runtimeDoes(options: Options, script: (peer: Peer) => Promise<void>): Promise<void> {
  const started = withPeer(async (peer) => {
    assert.equal((await peer.handshake())['modelPolicy'], true);
    await script(peer);
    await peer.turn();
    await peer.untilClosed();
    peer.exit(0);
  }, options);
  await collect(query({ prompt: 'hello', options: started.options }));
  await started.scriptDone;
}

test('the callback gets the context, and its model and parameters are passed on', async () => {
  const contexts: unknown[] = [];
  await runtimeDoes(
    {
      resolveModel: (context) => {
        contexts.push(context);
        return { model: 'performance', parameters: { reasoningEffort: 'high' } };
      },
    },
    async (peer) => {
      assert.deepEqual(await peer.askWell(question), {
        model: 'performance',
        parameters: { reasoningEffort: 'high' },
      });
    },
  );
  const { subtype: _subtype, ...expected } = question;
  assert.deepEqual(contexts, [expected]);
});

test('a model of a third party: its name and the credentials travel apart', () =>
  runtimeDoes(
    { resolveModel: async () => ({ model: { provider: 'p', model: 'm', api_key: 'k', url: 'u', style: 'anthropic' } }) },
    async (peer) => {
      assert.deepEqual(await peer.askWell(question), {
        model: 'm',
        credentials: { provider: 'p', api_key: 'k', url: 'u', style: 'anthropic' },
      });
    },
  ));

const failures: Array<[name: string, callback: ModelPolicyProvider, expected: RegExp]> = [
  ['an error', () => Promise.reject(new Error('no policy')), /no policy/],
  ['an empty model', () => ({ model: '' }), /empty model/],
  ['no answer', () => undefined as never, /must return \{ model \}/],
  ['a third party without a model', () => ({ model: { provider: 'p', api_key: 'k' } as never }), /without a name/],
];

for (const [name, resolveModel, expected] of failures) {
  test(`${name} is an error for the runtime`, () =>
    runtimeDoes({ resolveModel }, async (peer) => {
      const response = await peer.ask(question);
      assert.equal(response['subtype'], 'error');
      assert.match(response['error'], expected);
    }));
}

test('a callback that is too slow fails the query with ModelPolicyTimeoutError', async () => {
  const { options, scriptDone } = withPeer(
    async (peer) => {
      await peer.handshake();
      await peer.read();
      const response = await peer.ask(question);
      assert.match(response['error'], /ModelPolicyTimeoutError/);
      await peer.untilClosed();
      peer.exit(1);
    },
    { resolveModel: () => new Promise(() => undefined), resolveModelTimeoutMs: 10 },
  );
  await assert.rejects(
    collect(query({ prompt: 'hello', options })),
    (error: unknown) => error instanceof ModelPolicyTimeoutError && error.timeoutMs === 10,
  );
  await scriptDone;
});

test('a callback that blocks for too long fails the query, although it answers', async () => {
  const { options, scriptDone } = withPeer(
    async (peer) => {
      await peer.handshake();
      await peer.read();
      const response = await peer.ask(question);
      assert.match(response['error'], /ModelPolicyTimeoutError/);
      await peer.untilClosed();
      peer.exit(1);
    },
    {
      resolveModel: () => {
        const begun = performance.now();
        while (performance.now() - begun < 30);
        return { model: 'offline' };
      },
      resolveModelTimeoutMs: 10,
    },
  );
  await assert.rejects(collect(query({ prompt: 'hello', options })), ModelPolicyTimeoutError);
  await scriptDone;
});

test('the real runtime asks before each request, and uses the answer', async (context) => {
  const project = sandbox(context, [
    { toolCalls: [{ name: 'Glob', input: { pattern: '*' } }] },
    { text: 'Chosen.' },
  ]);
  const { model, ...options } = project.options({ allowedTools: ['Glob'] });
  const purposes: string[] = [];
  const messages = await collect(
    query({
      prompt: 'Look.',
      options: {
        ...options,
        resolveModelTimeoutMs: 30_000,
        resolveModel: ({ purpose }) => {
          purposes.push(purpose);
          return { model: model as string };
        },
      },
    }),
  );
  assert.equal(resultOf(messages).result, 'Chosen.');
  assert.deepEqual(purposes, ['main', 'main']);
});
