/**
 * The first sample of seed 001: built-in tools that are visible and pre-authorized.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { accessTokenFromEnv, query } from '@qoder-ai/qoder-agent-sdk';

import { collect, resultOf, sandbox, toolResults } from '../support/runtime.js';

test('seed 001, Built-in Tools: read and search without changes', async (context) => {
  const project = sandbox(context, [
    { toolCalls: [{ name: 'Grep', input: { pattern: 'password', output_mode: 'content' } }] },
    { when: { lastToolResultContains: 'hunter2' }, text: 'A password is in the code.' },
  ]);
  project.write('auth.ts', 'const password = "hunter2";\n');
  const messages = await collect(
    query({
      prompt: 'Read this repository and summarize risks in the authentication module. Do not modify files.',
      options: {
        ...project.options(),
        auth: accessTokenFromEnv(),
        cwd: project.directory,
        tools: ['Read', 'Grep', 'Glob'],
        allowedTools: ['Read', 'Grep', 'Glob'],
      },
    }),
  );
  assert.equal(resultOf(messages).result, 'A password is in the code.');
  const init = messages.find((message) => message.type === 'system' && message.subtype === 'init');
  assert.ok(init?.type === 'system' && init.subtype === 'init');
  assert.deepEqual([...init.tools].sort(), ['Glob', 'Grep', 'Read']);
});

test('seed 001, Built-in Tools: a tool that is not listed does not run', async (context) => {
  const project = sandbox(context, [
    { toolCalls: [{ name: 'Bash', input: { command: 'echo ran' } }] },
    { text: 'No shell here.' },
  ]);
  const messages = await collect(
    query({
      prompt: 'Run something.',
      options: { ...project.options(), tools: ['Read', 'Grep', 'Glob'], allowedTools: ['Read', 'Grep', 'Glob', 'Bash'] },
    }),
  );
  const [answer] = toolResults(messages);
  assert.equal(answer?.isError, true);
  assert.equal(resultOf(messages).result, 'No shell here.');
});
