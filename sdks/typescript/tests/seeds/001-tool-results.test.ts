/**
 * The samples of seed 001 about what handlers return and throw.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';

import { type CallToolResult, createSdkMcpServer, query, type SDKMessage, tool } from '@qoder-ai/qoder-agent-sdk';
import { z } from 'zod';

import { collect, resultOf, sandbox, toolResults } from '../support/runtime.js';

/** Runs one call of a tool with this handler; gives back all messages. */
async function callOnce(context: TestContext, handler: () => Promise<CallToolResult>): Promise<SDKMessage[]> {
  const project = sandbox(context, [
    { toolCalls: [{ name: 'mcp__kit__run', input: { sql: 'x' } }] },
    { text: 'The loop goes on.' },
  ]);
  const server = createSdkMcpServer({
    name: 'kit',
    tools: [tool('run', 'Runs a statement and returns its rows.', { sql: z.string() }, handler)],
  });
  const messages = await collect(
    query({
      prompt: 'Run it.',
      options: { ...project.options(), mcpServers: { kit: server }, allowedTools: ['mcp__kit__run'] },
    }),
  );
  assert.equal(resultOf(messages).result, 'The loop goes on.');
  return messages;
}

test('seed 001, Business Failure: isError: true', async (context) => {
  const messages = await callOnce(context, async () => {
    return {
      isError: true,
      content: [{
        type: 'text',
        text: JSON.stringify({
          error: 'VALIDATION_ERROR',
          message: 'Only SELECT statements are allowed.',
        }),
      }],
    };
  });
  assert.deepEqual(toolResults(messages), [
    { text: '{"error":"VALIDATION_ERROR","message":"Only SELECT statements are allowed."}', isError: true },
  ]);
});

const userService = {
  fetch: async (userId: string) => ({ ok: userId === 'u1', text: async () => `user ${userId}` }),
};

const toolThatMayThrow = tool(
  'fetch_user',
  'Fetch a user by ID.',
  { userId: z.string() },
  async ({ userId }) => {
    const response = await userService.fetch(userId);
    if (!response.ok) {
      throw new Error('User service failed');
    }
    return { content: [{ type: 'text', text: await response.text() }] };
  },
);

test('seed 001, Unexpected Exception: the handler throws and the loop goes on', async (context) => {
  const project = sandbox(context, [
    { toolCalls: [{ name: 'mcp__users__fetch_user', input: { userId: 'u2' } }] },
    { when: { lastToolResultContains: 'User service failed' }, toolCalls: [{ name: 'mcp__users__fetch_user', input: { userId: 'u1' } }] },
    { when: { lastToolResultContains: 'user u1' }, text: 'Found u1.' },
  ]);
  const messages = await collect(
    query({
      prompt: 'Fetch u2.',
      options: {
        ...project.options(),
        mcpServers: { users: createSdkMcpServer({ name: 'users', tools: [toolThatMayThrow] }) },
        allowedTools: ['mcp__users__fetch_user'],
      },
    }),
  );
  assert.deepEqual(
    toolResults(messages).map((result) => result.isError),
    [true, false],
  );
  assert.equal(resultOf(messages).result, 'Found u1.');
});

test('seed 001, Tool Return Values: text', async (context) => {
  const messages = await callOnce(context, async () => {
    return {
      content: [{ type: 'text', text: 'done' }],
    };
  });
  assert.deepEqual(toolResults(messages), [{ text: 'done', isError: false }]);
});

test('seed 001, Tool Return Values: a JSON string', async (context) => {
  const messages = await callOnce(context, async () => {
    return {
      content: [{
        type: 'text',
        text: JSON.stringify({
          orderId: 'O-1001',
          status: 'shipped',
          eta: '2026-05-20',
        }),
      }],
    };
  });
  assert.deepEqual(toolResults(messages), [
    { text: '{"orderId":"O-1001","status":"shipped","eta":"2026-05-20"}', isError: false },
  ]);
});

test('seed 001, Common content blocks: image, audio, link and resource', async (context) => {
  const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  const messages = await callOnce(context, async () => ({
    content: [
      { type: 'text', text: 'first' },
      { type: 'image', data: dot, mimeType: 'image/png' },
      { type: 'audio', data: 'UklGRg==', mimeType: 'audio/wav' },
      { type: 'resource_link', uri: 'https://example.com/a.txt', description: 'A file' },
      { type: 'resource', resource: { uri: 'kb://1', mimeType: 'text/plain', text: 'embedded words' } },
      { type: 'resource', resource: { uri: 'kb://2', mimeType: 'application/zip', blob: 'UEsFBg==' } },
    ],
  }));
  const [result] = toolResults(messages);
  assert.equal(result?.isError, false);
  assert.match(result?.text ?? '', /first/);
  assert.match(result?.text ?? '', /\[image\]/);
  assert.match(result?.text ?? '', /https:\/\/example\.com\/a\.txt/);
  assert.match(result?.text ?? '', /embedded words/);
});
