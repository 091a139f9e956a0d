/**
 * `resolveModel` with the real runtime: what the callback gets and for which purposes it is asked, models on a key
 * of one's own in both protocols, and what counts in the fixed mode only.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { type CustomModel, type ModelPolicyContext, type Options, query } from '@qoder-ai/qoder-agent-sdk';

import { type ModelServer, modelServer } from './support/model-server.js';
import { Prompts } from './support/prompts.js';
import { collect, type Reply, resultOf, sandbox } from './support/runtime.js';

/** Long enough for a machine that is busy; no test waits for it. */
const resolveModelTimeoutMs = 30_000;

/** Options whose callback chooses their own model and keeps what it gets. */
function keeping(options: Options): { contexts: ModelPolicyContext[]; options: Options } {
  const contexts: ModelPolicyContext[] = [];
  const resolveModel = (context: ModelPolicyContext): { model: string } => {
    contexts.push(context);
    return { model: options.model as string };
  };
  return { contexts, options: { ...options, resolveModelTimeoutMs, resolveModel } };
}

const purposes = (contexts: ModelPolicyContext[]): string[] => contexts.map(({ purpose }) => purpose);

test('all fields of the context are there, and sessionId is the same across invocations', async (context) => {
  const replies: Reply[] = [
    { when: { turn: 1 }, toolCalls: [{ name: 'Agent', input: { description: 'look', prompt: 'Look around.' } }] },
    { when: { purpose: 'subagent' }, text: 'I looked.' },
    { text: 'Done.', repeat: true },
  ];
  const { contexts, options } = keeping(sandbox(context, replies).options({ allowedTools: ['Agent'] }));
  const result = resultOf(await collect(query({ prompt: 'go', options })));
  assert.equal(result.subtype === 'success' && result.result, 'Done.');
  assert.deepEqual(
    contexts.map(({ purpose, turnIndex }) => [purpose, turnIndex]),
    [
      ['main', 0],
      ['subagent', 0],
      ['main', 1],
    ],
  );
  assert.deepEqual(new Set(contexts.map(({ sessionId }) => sessionId)), new Set([result.session_id]));
  assert.equal(contexts[0]?.agentId, 'main');
  assert.match(contexts[1]?.agentId ?? '', /^(?!main$)./);
  assert.ok(contexts.every(({ availableModels }) => Array.isArray(availableModels)));
});

test("'web_fetch': a second call summarizes what was fetched", async (context) => {
  const server = await modelServer(context);
  const input = { url: `${server.url}/v1/models`, prompt: 'Which models?' };
  const replies: Reply[] = [
    { when: { turn: 1 }, toolCalls: [{ name: 'WebFetch', input }] },
    { when: { purpose: 'web_fetch' }, text: 'Two.' },
    { text: 'There are two.', repeat: true },
  ];
  const project = sandbox(context, replies);
  const { contexts, options } = keeping(project.options({ allowedTools: ['WebFetch(domain:127.0.0.1)'] }));
  const result = resultOf(await collect(query({ prompt: 'go', options })));
  assert.equal(result.subtype === 'success' && result.result, 'There are two.');
  assert.deepEqual(purposes(contexts), ['main', 'web_fetch', 'main']);
});

test("'compact': the callback is queried before compaction starts", async (context) => {
  const full = { input_tokens: 95_000, output_tokens: 5 };
  const replies = [
    { when: { purpose: 'compact' }, text: 'All is well so far.' },
    { when: { contains: 'All is well so far.' }, text: 'Done.' },
    { toolCalls: [{ name: 'Glob', input: { pattern: '*' } }], usage: full },
  ];
  const settings = { model: { contextWindow: 100_000 } };
  const { contexts, options } = keeping(sandbox(context, replies).options({ settings }));
  const result = resultOf(await collect(query({ prompt: 'go', options })));
  assert.equal(result.subtype === 'success' && result.result, 'Done.');
  assert.deepEqual(purposes(contexts), ['main', 'compact', 'main']);
});

test('availableModels are those of the account in real time', async (context) => {
  const server = await modelServer(context);
  const env = { OPENAI_API_KEY: 'k', OPENAI_BASE_URL: server.url };
  const { contexts, options } = keeping(sandbox(context, [{ text: 'hello' }]).options({ env }));
  await collect(query({ prompt: 'hi', options: { ...options, model: 'large' } }));
  assert.deepEqual(
    contexts[0]?.availableModels.map(({ value }) => value),
    ['large', 'small'],
  );
});

const custom = (server: ModelServer, style?: 'openai' | 'anthropic'): CustomModel => ({
  provider: 'openai',
  model: 'gpt-4o',
  api_key: 'byok-key',
  url: server.url,
  ...(style && { style }),
});

for (const [style, path, header, key] of [
  [undefined, '/v1/chat/completions', 'authorization', 'Bearer byok-key'],
  ['openai', '/v1/chat/completions', 'authorization', 'Bearer byok-key'],
  ['anthropic', '/v1/messages', 'x-api-key', 'byok-key'],
] as const) {
  test(`CustomModel: style ${style ?? 'left out, which is openai'}, parameters, cost 0 and tokens as they are`, async (context) => {
    const server = await modelServer(context);
    const options = sandbox(context, []).options({
      model: 'offline',
      resolveModelTimeoutMs,
      resolveModel: async () => ({
        model: custom(server, style),
        parameters: { temperature: 0.25, max_tokens: 77 },
      }),
    });
    const result = resultOf(await collect(query({ prompt: 'hi', options })));
    assert.equal(result.subtype === 'success' && result.result, 'hello');
    assert.equal(result.total_cost_usd, 0);
    assert.deepEqual([result.usage?.input_tokens, result.usage?.output_tokens], [1000, 20]);
    const [request] = server.requests;
    assert.deepEqual([request?.path, request?.headers[header]], [path, key]);
    const { model, temperature, max_tokens } = request?.body ?? {};
    assert.deepEqual({ model, temperature, max_tokens }, { model: 'gpt-4o', temperature: 0.25, max_tokens: 77 });
  });
}

test('a wrong api_key fails the query directly, without a fallback', async (context) => {
  const server = await modelServer(context, 401);
  const options = sandbox(context, []).options({
    model: 'offline',
    fallbackModel: 'auto',
    resolveModelTimeoutMs,
    resolveModel: () => ({ model: custom(server) }),
  });
  const result = resultOf(await collect(query({ prompt: 'hi', options })));
  assert.equal(result.is_error, true);
  assert.match(JSON.stringify(result), /Incorrect API key/);
  assert.equal(server.requests.length, 1);
});

for (const [mode, isDynamic, expected] of [
  ['does not override the callback', true, 'chosen'],
  ['takes effect in fixed-model mode', false, 'offline'],
] as const) {
  test(`setModel ${mode}`, async (context) => {
    const fixed = sandbox(context, [{ text: 'chosen', repeat: true }]).options();
    const options = isDynamic ? keeping(fixed).options : fixed;
    const prompts = new Prompts();
    const running = query({ prompt: prompts, options });
    await running.setModel('offline');
    prompts.say('hi');
    let said = '';
    for await (const message of running) {
      if (message.type !== 'result') continue;
      said = message.subtype === 'success' ? message.result : message.subtype;
      prompts.end();
    }
    assert.match(said, new RegExp(expected));
  });
}
