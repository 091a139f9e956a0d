/**
 * What MCP servers have besides tools: resources that the model reads, prompts that are commands, directories they ask
 * for. With the server of others that has a bit of everything.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';

import { called, calledOnce, calling, using } from '../support/live.js';
import { resultOf, sandbox } from '../support/runtime.js';
import { everything } from '../support/servers.js';

const mcpServers = { every: everything() };
const TEXT = 'demo://resource/dynamic/text/1';

test('resources are listed and read', async (context) => {
  const project = calling(context, ['ListMcpResources', { server: 'every' }], ['ReadMcpResource', { server: 'every', uri: TEXT }]);
  const given = await called(project.options({ mcpServers, allowedTools: ['mcp__every'] }));
  assert.match(given['ListMcpResources']?.text ?? '', /demo:\/\/resource/);
  assert.match(given['ReadMcpResource']?.text ?? '', /Resource 1/);
});

test('prompts are commands', async (context) => {
  const project = sandbox(context, [
    { when: { contains: 'weather in Paris' }, text: 'It rains.' },
    { text: 'What?', repeat: true },
  ]);
  await using(project.options({ mcpServers }), async (live) => {
    await live.settled();
    const names = (await live.query.supportedCommands()).map((command) => command.name);
    assert.ok(names.includes('mcp__every__args-prompt'), names.join(', '));
    const end = resultOf(await live.go('/mcp__every__args-prompt Paris'));
    assert.equal(end.subtype === 'success' && end.result, 'It rains.');
  });
});

test('servers are told the directories of the session', async (context) => {
  const name = 'mcp__every__get-roots-list';
  const project = calling(context, [name, {}]);
  const given = await called(project.options({ mcpServers }));
  assert.ok(given[name]?.text.includes(pathToFileURL(project.directory).href), given[name]?.text);
});

test('a form of a server of others is answered', async (context) => {
  const given = await calledOnce(context, ['mcp__every__trigger-elicitation-request', {}], {
    mcpServers,
    onElicitation: ({ requestedSchema }) => {
      const properties = requestedSchema?.['properties'] as Record<string, { default?: unknown }>;
      const defaults = Object.entries(properties).flatMap(([key, value]) => ('default' in value ? [[key, value.default]] : []));
      return { action: 'accept', content: { ...Object.fromEntries(defaults), name: 'Ada' } };
    },
  });
  const raw = JSON.parse(given.text.slice(given.text.indexOf('{'))) as { action: string; content: Record<string, unknown> };
  assert.deepEqual([raw.action, raw.content['name'], raw.content['integer']], ['accept', 'Ada', 42]);
});

test('a long result is cut and says so', async (context) => {
  const given = await calledOnce(context, ['mcp__every__echo', { message: 'x'.repeat(60_000) }], { mcpServers });
  const kept = given.text.split('x').length - 1;
  assert.ok(!given.isError && kept > 10_000 && kept < 51_000 && given.text.length > kept);
});
