/**
 * Plugins with the real runtime: the option, what each plugin brings, and reading them anew.
 */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { query } from '@qoder-ai/qoder-agent-sdk';

import { Prompts } from './support/prompts.js';
import { collect, sandbox } from './support/runtime.js';

/** Writes an agent into a plugin. */
function agent(folder: string, name: string): void {
  mkdirSync(join(folder, 'agents'), { recursive: true });
  writeFileSync(join(folder, 'agents', `${name}.md`), `---\nname: ${name}\ndescription: Does ${name}.\n---\nDo it.\n`);
}

test('plugins loads local plugins in order', async (context) => {
  const project = sandbox(context, [{ text: 'done', repeat: true }]);
  const [one, two] = [join(project.directory, 'one'), join(project.directory, 'two')];
  agent(one, 'first');
  agent(two, 'second');
  const plugins = [
    { type: 'local' as const, path: './one' },
    { type: 'local' as const, path: two },
  ];
  const messages = await collect(query({ prompt: 'hi', options: project.options({ plugins }) }));
  const init = messages.find((message) => message.type === 'system' && message.subtype === 'init');
  assert.ok(init?.type === 'system' && init.subtype === 'init');
  assert.deepEqual(init.plugins, [
    { name: 'one', path: one, source: 'inline' },
    { name: 'two', path: two, source: 'inline' },
  ]);
  assert.ok(init.agents?.includes('first') && init.agents.includes('second'));
});

test('listPlugins and reloadPlugins', async (context) => {
  const project = sandbox(context, [{ text: 'done', repeat: true }]);
  const [demo, late] = [join(project.directory, 'demo'), join(project.directory, 'late')];
  agent(demo, 'first');
  mkdirSync(join(demo, 'commands'));
  const plugins = [
    { type: 'local' as const, path: demo },
    { type: 'local' as const, path: late },
  ];
  const session = query({ prompt: new Prompts(), options: project.options({ plugins }) });
  context.after(() => session.close());
  const [row] = await session.listPlugins();
  assert.equal(row?.name, 'demo');
  assert.equal(row.parts?.['agents'], 1);
  assert.deepEqual(row.errors, []);
  assert.equal((await session.reloadPlugins()).error_count, 1, 'a path that does not exist');
  agent(late, 'second');
  writeFileSync(join(demo, 'commands', 'greet.md'), 'Greet.\n');
  const told = await session.reloadPlugins();
  assert.equal(told.error_count, 0);
  assert.deepEqual(
    told.plugins.map((plugin) => plugin.name),
    ['demo', 'late'],
  );
  assert.ok(told.agents.some((one) => one.name === 'second'));
  assert.deepEqual(await session.supportedAgents(), told.agents, 'what was read anew is what there is');
  assert.deepEqual(await session.supportedCommands(), told.commands);
  assert.ok(told.commands.some((one) => one.name === 'demo:greet'));
  assert.deepEqual(await session.supportedModels(), await session.getAvailableModels());
  assert.ok(!(await session.initializationResult()).agents.some((one) => one.name === 'second'));
});
