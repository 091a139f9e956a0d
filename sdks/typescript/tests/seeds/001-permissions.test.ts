/**
 * What seed 001 says of permissions beside its samples: precedence, return values, and names in a subagent.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { createSdkMcpServer, query, tool } from '@qoder-ai/qoder-agent-sdk';
import { z } from 'zod';

import { collect, resultOf, sandbox, toolResults } from '../support/runtime.js';

const orderTools = createSdkMcpServer({
  name: 'orders',
  tools: [
    tool('lookup_order', 'Look up an order by order ID.', { orderId: z.string() }, async ({ orderId }) => ({
      content: [{ type: 'text', text: `${orderId}: shipped` }],
    })),
  ],
});

const callLookup = { toolCalls: [{ name: 'mcp__orders__lookup_order', input: { orderId: 'O-1001' } }] };

test('seed 001, Method 1: the deny rule takes precedence over the allow rule', async (context) => {
  const project = sandbox(context, [
    { toolCalls: [{ name: 'Bash', input: { command: 'touch made' } }] },
    { text: 'Reported.' },
  ]);
  const messages = await collect(
    query({
      prompt: 'Review the project and report issues.',
      options: {
        ...project.options(),
        allowedTools: ['Bash'],
        disallowedTools: ['Bash', 'Write', 'Edit'],
      },
    }),
  );
  assert.equal(toolResults(messages)[0]?.isError, true);
  assert.equal(existsSync(join(project.directory, 'made')), false);
});

test('seed 001, Common return values: other arguments', async (context) => {
  const project = sandbox(context, [
    { toolCalls: [{ name: 'Bash', input: { command: 'touch wrong' } }] },
    { text: 'Done.' },
  ]);
  await collect(
    query({
      prompt: 'Make a file.',
      options: {
        ...project.options(),
        canUseTool: async () => ({ behavior: 'allow', updatedInput: { command: 'touch right' } }),
      },
    }),
  );
  assert.equal(existsSync(join(project.directory, 'right')), true);
  assert.equal(existsSync(join(project.directory, 'wrong')), false);
});

test('seed 001, Common return values: deny and interrupt', async (context) => {
  const project = sandbox(context, [
    { toolCalls: [{ name: 'Bash', input: { command: 'touch made' } }] },
    { text: 'This must not be reached.', repeat: true },
  ]);
  const messages = await collect(
    query({
      prompt: 'Make a file.',
      options: {
        ...project.options(),
        canUseTool: async () => ({ behavior: 'deny', message: 'reason', interrupt: true }),
      },
    }),
  );
  assert.equal(messages.filter((message) => message.type === 'assistant').length, 1);
  assert.equal(messages.at(-1)?.type, 'result');
});

const delegate = { toolCalls: [{ name: 'Agent', input: { prompt: 'Check order O-1001.', agent: 'order-support' } }] };

test('seed 001, Method 3: the subagent reaches a tool that is pre-authorized by its full name', async (context) => {
  const project = sandbox(context, [
    delegate,
    { when: { purpose: 'subagent', turn: 1 }, ...callLookup },
    { when: { purpose: 'subagent', lastToolResultContains: 'shipped' }, text: 'The agent says: shipped.' },
    { when: { lastToolResultContains: 'The agent says' }, text: 'It was shipped.' },
  ]);
  const messages = await collect(
    query({
      prompt: 'Use the order-support agent to check order O-1001.',
      options: {
        ...project.options(),
        mcpServers: { orders: orderTools },
        allowedTools: ['Agent', 'mcp__orders__lookup_order'],
        agents: {
          'order-support': {
            description: 'Handles order lookup and explains order status.',
            prompt: 'Use order tools to answer order status questions clearly.',
            tools: ['mcp__orders__lookup_order'],
          },
        },
      },
    }),
  );
  assert.equal(resultOf(messages).result, 'It was shipped.');
});
