/**
 * What seed 001 says of the content that handlers return.
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
    { text: 'The loop continues.' },
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
  assert.equal(resultOf(messages).result, 'The loop continues.');
  return messages;
}

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
