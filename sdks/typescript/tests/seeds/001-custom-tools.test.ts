/**
 * The samples of seed 001 about custom tools: the minimal example, metadata, registration and attachment.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { accessTokenFromEnv, createSdkMcpServer, query, tool } from '@qoder-ai/qoder-agent-sdk';
import { z } from 'zod';

import { collect, resultOf, sandbox, toolResults } from '../support/runtime.js';

const stored = new Map([['O-1001', { orderId: 'O-1001', status: 'shipped', eta: '2026-05-20' }]]);
const orders = { find: async (id: string) => stored.get(id) };

const lookupOrder = tool(
  'lookup_order',
  'Look up an order by order ID.',
  {
    orderId: z.string().describe('Order ID, such as O-1001'),
  },
  async ({ orderId }) => {
    const order = await orders.find(orderId);

    if (!order) {
      return {
        isError: true,
        content: [{ type: 'text', text: `Order not found: ${orderId}` }],
      };
    }

    return {
      content: [{ type: 'text', text: JSON.stringify(order) }],
    };
  },
  { annotations: { readOnlyHint: true } },
);

const orderTools = createSdkMcpServer({
  name: 'orders',
  tools: [lookupOrder],
});

test('seed 001, Custom Tool Integration Steps: the minimal example', async (context) => {
  const project = sandbox(context, [
    { toolCalls: [{ name: 'mcp__orders__lookup_order', input: { orderId: 'O-1001' } }] },
    { when: { lastToolResultContains: 'shipped' }, text: 'Order O-1001 has been shipped.' },
  ]);
  const messages = query({
    prompt: 'Check the status of order O-1001 and summarize it in one sentence.',
    options: {
      ...project.options(),
      auth: accessTokenFromEnv(),
      mcpServers: { orders: orderTools },
      allowedTools: ['mcp__orders__lookup_order'],
    },
  });
  const printed: unknown[] = [];
  for await (const message of messages) {
    if (message.type === 'result') {
      printed.push(message.result);
    }
  }
  assert.deepEqual(printed, ['Order O-1001 has been shipped.']);
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

test('seed 001, Configure Input Parameters: optional, range, enum and default', async (context) => {
  const seen: unknown[] = [];
  const search = tool(
    'search',
    'Search snippets by keywords and return them.',
    {
      query: z.string().describe('Search keywords'),
      maxResults: z.number().int().min(1).max(10).optional().describe('Maximum number of snippets to return'),
      source: z.enum(['docs', 'tickets', 'wiki']).default('docs').describe('Where to search'),
    },
    async (args) => {
      const source: 'docs' | 'tickets' | 'wiki' = args.source;
      const limit: number | undefined = args.maxResults;
      seen.push({ ...args, source, limit });
      return { content: [{ type: 'text', text: `${args.query} in ${source}` }] };
    },
  );
  const project = sandbox(context, [
    {
      toolCalls: [
        { name: 'mcp__kb__search', input: { query: 'refund' } },
        { name: 'mcp__kb__search', input: { query: 'refund', maxResults: 11 } },
        { name: 'mcp__kb__search', input: { query: 'refund', source: 'web' } },
      ],
    },
    { text: 'Done.' },
  ]);
  const messages = await collect(
    query({
      prompt: 'Search.',
      options: {
        ...project.options(),
        mcpServers: { kb: createSdkMcpServer({ name: 'kb', tools: [search] }) },
        allowedTools: ['mcp__kb__search'],
      },
    }),
  );
  assert.deepEqual(seen, [{ query: 'refund', source: 'docs', limit: undefined }]);
  const results = toolResults(messages);
  assert.deepEqual(
    results.filter((result) => !result.isError),
    [{ text: 'refund in docs', isError: false }],
  );
  assert.equal(results.length, 3);
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

test('seed 001, Step 3: attach to query()', async (context) => {
  const project = sandbox(context, [
    { toolCalls: [{ name: 'mcp__kb__search_docs', input: { query: 'refund policy' } }] },
    { when: { lastToolResultContains: 'refund policy' }, text: 'Refunds take five days.' },
  ]);
  const messages = await collect(
    query({
      prompt: 'Search docs for the refund policy and summarize it.',
      options: {
        ...project.options(),
        auth: accessTokenFromEnv(),
        mcpServers: { kb: kbTools },
        allowedTools: ['mcp__kb__search_docs'],
      },
    }),
  );
  assert.equal(resultOf(messages).result, 'Refunds take five days.');
  const init = messages.find((message) => message.type === 'system' && message.subtype === 'init');
  assert.ok(init?.type === 'system' && init.subtype === 'init');
  assert.ok(init.tools.includes('mcp__kb__search_docs'));
});
