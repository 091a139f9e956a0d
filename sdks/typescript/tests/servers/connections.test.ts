/**
 * External MCP servers: the three ways in, what comes back, and servers that fail alone. With servers of others.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createSdkMcpServer, type McpServerConfig, tool } from '@qoder-ai/qoder-agent-sdk';
import { z } from 'zod';

import { called, calledOnce, calling, rowOf, statuses, using } from '../support/live.js';
import { asking, askingOver, everything, everythingOver, installed, timeServer, type Way } from '../support/servers.js';

const far = await everythingOver();
const ours = await askingOver();
const ECHO = 'mcp__every-thing__echo';

for (const way of ['stdio', 'sse', 'http'] as Way[]) {
  test(`a server over ${way} is connected, discovered and called`, async (context) => {
    const project = calling(context, [ECHO, { message: 'hello' }]);
    await using(project.options({ mcpServers: { 'every-thing': far[way] } }), async (live) => {
      const row = rowOf(await live.settled(), 'every-thing');
      assert.equal(row.status, 'connected', row.error);
      assert.equal(row.config?.['type'], way);
      assert.match(row.serverInfo?.name ?? '', /everything$/);
      assert.ok(row.tools?.some((each) => each.name === 'echo'));
      const given = (await live.results())[ECHO];
      assert.deepEqual([given?.text, given?.isError], ['Echo: hello', false]);
    });
  });
}

test('the three methods work side by side', async (context) => {
  const greet = tool('greet', 'Greets.', { name: z.string() }, async ({ name }) => ({
    content: [{ type: 'text', text: `Hello, ${name}` }],
  }));
  const mcpServers: Record<string, McpServerConfig> = {
    inside: createSdkMcpServer({ name: 'inside', tools: [greet] }),
    child: far.stdio,
    far: far.http,
  };
  const project = calling(
    context,
    ['mcp__inside__greet', { name: 'Ada' }],
    ['mcp__child__get-sum', { a: 2, b: 3 }],
    ['mcp__far__get-sum', { a: 20, b: 3 }],
  );
  const given = await called(project.options({ mcpServers }));
  const texts = Object.values(given).map((each) => each.text);
  assert.deepEqual(texts, ['Hello, Ada', 'The sum of 2 and 3 is 5.', 'The sum of 20 and 3 is 23.']);
});

for (const type of ['stdio', undefined] as const) {
  test(`the type of a child process may be ${type ?? 'left out'}`, async (context) => {
    const server = { ...timeServer(), ...(type ? { type } : {}) };
    const input = { source_timezone: 'UTC', time: '12:00', target_timezone: 'Asia/Tokyo' };
    const given = await calledOnce(context, ['mcp__time__convert_time', input], { mcpServers: { time: server } });
    assert.match(given.text, /21:00/);
  });
}

test('arguments and environment reach a child process', async (context) => {
  const server = { ...asking(), env: { FRUIT: 'pear' } };
  const given = await calledOnce(context, ['mcp__asking__variable', { name: 'FRUIT' }], { mcpServers: { asking: server } });
  assert.equal(given.text, 'pear');

  const project = calling(context, ['mcp__files__list_allowed_directories', {}]);
  const files = { command: installed('node_modules/.bin/mcp-server-filesystem'), args: [project.directory] };
  const listed = await called(project.options({ mcpServers: { files } }));
  assert.ok(listed['mcp__files__list_allowed_directories']?.text.includes(project.directory));
});

for (const way of ['sse', 'http'] as const) {
  test(`headers reach a server over ${way} and are not shown`, async (context) => {
    const headers = { 'X-Fruit': 'pear', Authorization: 'Bearer secret-of-mine' };
    const name = 'mcp__asking__header';
    const project = calling(context, [name, { name: 'x-fruit' }]);
    await using(project.options({ mcpServers: { asking: { ...ours[way], headers } } }), async (live) => {
      const rows = await live.settled();
      assert.equal((await live.results())[name]?.text, 'pear');
      assert.ok(!JSON.stringify(rows).includes('secret-of-mine'));
    });
  });
}

const broken: Array<[string, McpServerConfig]> = [
  ['a command that cannot start', { command: '/nonexistent/server' }],
  ['a command that speaks no MCP', { command: '/bin/echo', args: ['good morning'] }],
  ['an address without a server', { type: 'http', url: 'http://127.0.0.1:9/mcp' }],
  ['an address for events without a server', { type: 'sse', url: 'http://127.0.0.1:9/sse' }],
];
for (const [what, server] of broken) {
  test(`${what} harms no other`, async (context) => {
    const project = calling(context, ['mcp__good__echo', { message: 'fine' }]);
    await using(project.options({ mcpServers: { broken: server, good: everything() } }), async (live) => {
      await live.statusIs('good', 'connected');
      assert.equal((await live.results())['mcp__good__echo']?.text, 'Echo: fine');
      const row = await live.statusIs('broken', 'failed');
      assert.ok(row.error);
      assert.equal(row.tools, undefined);
    });
  });
}

test('an error of a tool is an error result', async (context) => {
  const given = await calledOnce(context, ['mcp__asking__fail', { reason: 'no tables left' }], {
    mcpServers: { asking: asking() },
  });
  assert.ok(given.isError && given.text.includes('no tables left'));
});

test('images come as images', async (context) => {
  const given = await calledOnce(context, ['mcp__every__get-tiny-image', {}], { mcpServers: { every: everything() } });
  const blocks = given.content as Array<{ type: string; source?: { media_type: string } }>;
  assert.equal(blocks.find((block) => block.type === 'image')?.source?.media_type, 'image/png');
});

test('structured content is kept beside the text', async (context) => {
  const project = calling(context, ['mcp__every__get-structured-content', { location: 'Chicago' }]);
  await using(project.options({ mcpServers: { every: everything() } }), async (live) => {
    await live.settled();
    const messages = await live.go();
    const kept = messages.flatMap((message) => (message.type === 'user' && message.tool_use_result ? [message.tool_use_result] : []));
    const { structuredContent } = kept[0] as { structuredContent: object };
    assert.deepEqual(Object.keys(structuredContent).sort(), ['conditions', 'humidity', 'temperature']);
  });
});

test('the row shows hints without their suffix, and only those that were set', async (context) => {
  const project = calling(context);
  const row = await using(project.options({ mcpServers: { asking: asking() } }), async (live) =>
    rowOf(await live.settled(), 'asking'),
  );
  const hints = Object.fromEntries((row.tools ?? []).map((each) => [each.name, each.annotations]));
  assert.deepEqual(hints['book'], { readOnly: false, destructive: true, openWorld: true });
  assert.deepEqual(hints['header'], { readOnly: true });
  assert.equal(hints['fail'], undefined);
  assert.deepEqual(statuses({ asking: row }), { asking: 'connected' });
});
