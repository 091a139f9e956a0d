/**
 * Methods of a running session and answers of callbacks, with the real runtime.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import {
  type AskUserQuestionInput,
  type AskUserQuestionOutput,
  createSdkMcpServer,
  query,
  tool,
} from '@qoder-ai/qoder-agent-sdk';

import { Prompts } from './support/prompts.js';
import { collect, resultOf, sandbox, toolResults } from './support/runtime.js';

test('a question to the user is answered by canUseTool', async (context) => {
  const question = 'Which colour?';
  const project = sandbox(context, [
    {
      toolCalls: [
        {
          name: 'AskUserQuestion',
          input: { questions: [{ question, header: 'Colour', options: [{ label: 'Red' }, { label: 'Blue' }], multiSelect: false }] },
        },
      ],
    },
    { when: { lastToolResultContains: 'Blue' }, text: 'Blue it is.' },
  ]);
  const messages = await collect(
    query({
      prompt: 'Paint it.',
      options: project.options({
        async canUseTool(toolName, input) {
          assert.equal(toolName, 'AskUserQuestion');
          const { questions } = input as unknown as AskUserQuestionInput;
          return { behavior: 'allow', updatedInput: { questions, answers: { [question]: 'Blue' } } };
        },
      }),
    }),
  );
  assert.equal(resultOf(messages).result, 'Blue it is.');
  const typed = messages.flatMap((message) => (message.type === 'user' && message.tool_use_result ? [message.tool_use_result] : []));
  assert.equal((typed[0] as AskUserQuestionOutput).answers[question], 'Blue');
});

test('a rule that canUseTool returns makes the next question unnecessary', async (context) => {
  const project = sandbox(context, [
    { toolCalls: [{ name: 'Bash', input: { command: 'touch one' } }] },
    { toolCalls: [{ name: 'Bash', input: { command: 'touch two' } }] },
    { text: 'Both.' },
  ]);
  const asked: string[] = [];
  const messages = await collect(
    query({
      prompt: 'go',
      options: project.options({
        async canUseTool(_toolName, input) {
          asked.push(String(input['command']));
          return {
            behavior: 'allow',
            updatedPermissions: [
              {
                type: 'addRules',
                behavior: 'allow',
                destination: 'session',
                rules: [{ toolName: 'Bash', ruleContent: 'touch:*' }],
              },
            ],
          };
        },
      }),
    }),
  );
  assert.equal(resultOf(messages).result, 'Both.');
  assert.deepEqual(asked, ['touch one']);
  assert.equal(existsSync(join(project.directory, 'two')), true);
});

test('addDirectories and applyFlagSettings change what is allowed', async (context) => {
  const project = sandbox(context, [
    { when: { contains: 'read' }, toolCalls: [{ name: 'Glob', input: { pattern: '*', path: '../more' } }] },
    { when: { contains: 'run' }, toolCalls: [{ name: 'Bash', input: { command: 'touch made' } }] },
    { text: 'ok', repeat: true },
  ]);
  const more = join(project.directory, '..', 'more');
  mkdirSync(more);
  const prompts = new Prompts();
  const session = query({ prompt: prompts, options: project.options() });
  context.after(() => session.close());
  assert.deepEqual((await session.addDirectories([more])).added, [more]);
  await session.applyFlagSettings({ permissions: { allow: ['Bash(touch:*)'] } });
  prompts.say('read');
  prompts.say('run');
  prompts.end();
  const messages = await collect(session);
  assert.deepEqual(
    toolResults(messages).map((result) => result.isError),
    [false, false],
  );
  assert.equal(existsSync(join(project.directory, 'made')), true);
});

test('what can be asked without a turn', async (context) => {
  const project = sandbox(context, []);
  const session = query({ prompt: new Prompts(), options: project.options() });
  context.after(() => session.close());
  const usage = await session.getContextUsage();
  assert.ok(usage.maxTokens > 0 && usage.percentage >= 0 && usage.percentage <= 100);
  assert.ok(usage.categories.every((category) => typeof category.tokens === 'number'));
  assert.ok(Array.isArray(await session.getAvailableModels()));
  assert.ok(Array.isArray(await session.supportedCommands()));
  assert.ok((await session.supportedAgents()).some((agent) => agent.name === 'general-purpose'));
  assert.equal(typeof (await session.accountInfo()), 'object');
  assert.equal(await session.getUsageInfo(), null);
  assert.equal(await session.cancelAsyncMessage('11111111-1111-4111-8111-111111111111'), false);
  assert.equal(await session.backgroundTasks(), false);
});

test('a server that is switched off has no tools, and gets them back', async (context) => {
  const project = sandbox(context, []);
  const kb = createSdkMcpServer({
    name: 'kb',
    tools: [tool('look', 'Looks something up.', {}, async () => ({ content: [] }))],
  });
  const session = query({ prompt: new Prompts(), options: project.options({ mcpServers: { kb } }) });
  context.after(() => session.close());
  const status = async (): Promise<string | undefined> => (await session.mcpServerStatus())[0]?.status;
  while ((await status()) !== 'connected') await new Promise(setImmediate);
  await session.toggleMcpServer('kb', false);
  assert.equal(await status(), 'disabled');
  await session.toggleMcpServer('kb', true);
  while ((await status()) !== 'connected') await new Promise(setImmediate);
  await session.reconnectMcpServer('kb');
  assert.equal((await session.mcpServerStatus())[0]?.tools?.[0]?.name, 'look');
});

test('a long result of a tool of this process is cut, unless the tool asks for more', async (context) => {
  const project = sandbox(context, [
    { toolCalls: [{ name: 'mcp__kb__short', input: {} }, { name: 'mcp__kb__long', input: {} }] },
    { text: 'Read.' },
  ]);
  const text = '§'.repeat(60_000);
  const answer = async (): Promise<{ content: Array<{ type: 'text'; text: string }> }> => ({
    content: [{ type: 'text', text }],
  });
  const kb = createSdkMcpServer({
    name: 'kb',
    tools: [
      tool('short', 'Returns much.', {}, answer),
      tool('long', 'Returns much.', {}, answer, { annotations: { maxResultSizeChars: 100_000 } }),
    ],
  });
  const messages = await collect(
    query({ prompt: 'go', options: project.options({ mcpServers: { kb }, allowedTools: ['mcp__kb'] }) }),
  );
  assert.equal(resultOf(messages).result, 'Read.');
  const lengths = toolResults(messages).map((result) => (result.text.match(/§/g) ?? []).length);
  assert.ok(Math.min(...lengths) <= 50_000, String(lengths));
  assert.equal(Math.max(...lengths), 60_000);
});

test('queued prompts that an interrupt leaves are named', async (context) => {
  const project = sandbox(context, [
    { when: { contains: 'second' }, text: 'Second.' },
    { when: { contains: 'first' }, text: 'Never.', delayMs: 20_000 },
  ]);
  const prompts = new Prompts();
  const second = '22222222-2222-4222-8222-222222222222';
  prompts.say('first');
  const session = query({ prompt: prompts, options: project.options() });
  context.after(() => session.close());
  const results: Array<string | undefined> = [];
  for await (const message of session) {
    if (message.type === 'system' && message.subtype === 'init' && results.length === 0) {
      prompts.say('second', { uuid: second });
      prompts.end();
      // The prompt is on its way before the interrupt is asked for.
      await new Promise(setImmediate);
      const receipt = await session.interrupt();
      assert.deepEqual([...receipt.still_queued, ...(receipt.cancelled ?? [])], [second]);
    }
    if (message.type === 'result') results.push(message.result);
  }
  assert.equal(results.at(-1), 'Second.');
});
