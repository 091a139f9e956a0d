/**
 * What seed 001 says of custom tools beside its samples: failures, metadata and registration.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createSdkMcpServer, query, tool } from '@qoder-ai/qoder-agent-sdk';
import { z } from 'zod';

import { collect, resultOf, sandbox, toolResults } from '../support/runtime.js';

const lookupOrder = tool('lookup_order', 'Look up an order by order ID.', { orderId: z.string() }, async ({ orderId }) => ({
  isError: true,
  content: [{ type: 'text', text: `Order not found: ${orderId}` }],
}));

const orderTools = createSdkMcpServer({
  name: 'orders',
  tools: [lookupOrder],
});

test('seed 001, Custom Tool Integration Steps: an order that does not exist', async (context) => {
  const project = sandbox(context, [
    { toolCalls: [{ name: 'mcp__orders__lookup_order', input: { orderId: 'O-9' } }] },
    { when: { lastToolResultContains: 'Order not found: O-9' }, text: 'There is no such order.' },
  ]);
  const messages = await collect(
    query({
      prompt: 'Check O-9.',
      options: {
        ...project.options(),
        mcpServers: { orders: orderTools },
        allowedTools: ['mcp__orders__lookup_order'],
      },
    }),
  );
  assert.deepEqual(toolResults(messages), [{ text: 'Order not found: O-9', isError: true }]);
  assert.equal(resultOf(messages).result, 'There is no such order.');
});

const searchDocs = tool(
  'search_docs',
  'Search internal product documentation.',
  { query: z.string().describe('Search keywords') },
  async ({ query }) => ({ content: [{ type: 'text', text: query }] }),
  {
    annotations: {
      readOnlyHint: true,
      destructiveHint: false,
      openWorldHint: false,
    },
  },
);

const kbTools = createSdkMcpServer({
  name: 'kb',
  version: '1.0.0',
  tools: [searchDocs],
});

test('seed 001, Configure Tool Metadata: annotations stay on the definition', () => {
  assert.deepEqual(searchDocs.annotations, { readOnlyHint: true, destructiveHint: false, openWorldHint: false });
});

test('seed 001, Step 2: the server is a configuration with an instance', () => {
  assert.equal(kbTools.type, 'sdk');
  assert.equal(kbTools.name, 'kb');
  assert.equal(typeof kbTools.instance.connect, 'function');
});
