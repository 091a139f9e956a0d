/**
 * Options become flags and environment variables of the runtime.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { createSdkMcpServer, type Options, query } from '@qoder-ai/qoder-agent-sdk';

import { oneTurn, withPeer } from './support/peer.js';
import { collect } from './support/runtime.js';

async function spawnedWith(given: Options): Promise<{ args: string[]; env: Record<string, string>; cwd?: string }> {
  const { options, peer } = withPeer(oneTurn, given);
  await collect(query({ prompt: 'hello', options }));
  return peer().spawned;
}

/** The flags that these options add to those that are always there. */
async function flags(given: Options): Promise<string[]> {
  const { args } = await spawnedWith(given);
  assert.deepEqual(args.slice(0, 6), [
    '--output-format',
    'stream-json',
    '--verbose',
    '--input-format',
    'stream-json',
    '--disable-builtin-skills',
  ]);
  return args.slice(6);
}

const cases: Array<[options: Options, expected: string[]]> = [
  [{}, []],
  [{ systemPrompt: 'Be brief.' }, ['--system-prompt', 'Be brief.']],
  [{ systemPrompt: '' }, ['--system-prompt', '']],
  [{ systemPrompt: { type: 'preset', preset: 'qodercli' } }, []],
  [{ systemPrompt: { type: 'preset', preset: 'qodercli', append: 'x' } }, ['--append-system-prompt', 'x']],
  [{ systemPrompt: { type: 'file', path: 'p.md' } }, ['--system-prompt-file', 'p.md']],
  [{ tools: [] }, ['--tools', '']],
  [{ tools: ['Read', 'mcp__a__b'] }, ['--tools', 'Read,mcp__a__b']],
  [{ tools: { type: 'preset', preset: 'qodercli' } }, ['--tools', 'default']],
  [{ allowedTools: ['Read', 'Bash(a, b)'] }, ['--allowedTools', 'Read,Bash(a, b)']],
  [{ allowedTools: [] }, []],
  [{ disallowedTools: ['Bash'] }, ['--disallowedTools', 'Bash']],
  [{ skills: 'all' }, ['--allowedTools', 'Skill', '--setting-sources=user,project']],
  [
    { skills: ['pdf', 'p:x'], allowedTools: ['Read'], settingSources: ['local'] },
    ['--allowedTools', 'Read,Skill(pdf),Skill(p:x)', '--setting-sources=local'],
  ],
  [{ canUseTool: () => ({ behavior: 'allow' }) }, ['--permission-prompt-tool', 'stdio']],
  [{ permissionPromptToolName: 'mcp__a__ask' }, ['--permission-prompt-tool', 'mcp__a__ask']],
  [{ permissionMode: 'plan' }, ['--permission-mode', 'plan']],
  [
    { permissionMode: 'yolo', allowDangerouslySkipPermissions: true },
    ['--permission-mode', 'bypassPermissions', '--allow-dangerously-skip-permissions'],
  ],
  [{ additionalDirectories: ['/a', '/b'] }, ['--add-dir', '/a', '--add-dir', '/b']],
  [{ addDirs: ['/a'] }, ['--add-dir', '/a']],
  [{ model: 'auto', fallbackModel: 'lite', maxTurns: 3 }, ['--model', 'auto', '--fallback-model', 'lite', '--max-turns', '3']],
  [{ maxBudgetUsd: 0.5, taskBudget: 10 }, ['--max-budget-usd', '0.5', '--task-budget', '10']],
  [{ betas: ['x', 'y'], effort: 'high' }, ['--betas', 'x,y', '--effort', 'high']],
  [{ thinking: { type: 'disabled' } }, ['--thinking', 'disabled']],
  [{ thinking: { type: 'adaptive', display: 'omitted' } }, ['--thinking', 'adaptive', '--thinking-display', 'omitted']],
  [{ thinking: { type: 'enabled', budgetTokens: 2000 } }, ['--max-thinking-tokens', '2000']],
  [{ maxThinkingTokens: 100 }, ['--max-thinking-tokens', '100']],
  [{ outputFormat: { type: 'json_schema', schema: { type: 'object' } } }, ['--json-schema', '{"type":"object"}']],
  [{ continue: true }, ['--continue']],
  [{ continueConversation: true }, ['--continue']],
  [
    { resume: '-x', forkSession: true, resumeSessionAt: 'm', resumeDropsTurn: 'n' },
    ['--resume=-x', '--fork-session', '--resume-session-at=m', '--resume-drops-turn=n'],
  ],
  [
    { sessionId: '11111111-1111-4111-8111-111111111111' },
    ['--session-id=11111111-1111-4111-8111-111111111111'],
  ],
  [{ persistSession: false }, ['--no-session-persistence']],
  [{ settings: { a: 1 } }, ['--settings', '{"a":1}']],
  [{ settings: '/s.json' }, ['--settings', '/s.json']],
  [{ settings: { a: 1 }, sandbox: { enabled: true } }, ['--settings', '{"a":1,"sandbox":{"enabled":true}}']],
  [{ settingSources: [] }, ['--setting-sources=']],
  [{ agent: 'planner' }, ['--agent', 'planner']],
  [{ plugins: [{ type: 'local', path: '/p' }] }, ['--plugin-dir', '/p']],
  [{ mcpServers: '/servers.json' }, ['--mcp-config', '/servers.json']],
  [{ mcpServers: {} }, []],
  [
    { mcpServers: { kb: createSdkMcpServer({ name: 'other' }), time: { command: 'clock', args: ['-u'] } } },
    ['--mcp-config', '{"mcpServers":{"kb":{"type":"sdk","name":"kb"},"time":{"command":"clock","args":["-u"]}}}'],
  ],
  [{ strictMcpConfig: true, allowedMcpServerNames: ['a', 'b'] }, ['--strict-mcp-config', '--allowed-mcp-server-names', 'a,b']],
  [{ includePartialMessages: true, includeHookEvents: true }, ['--include-partial-messages', '--include-hook-events']],
  [
    { extraArgs: { 'replay-user-messages': null, name: 'v', other: '-v' } },
    ['--replay-user-messages', '--name', 'v', '--other=-v'],
  ],
];

for (const [options, expected] of cases) {
  const name = JSON.stringify(options, (_, value: unknown) => (typeof value === 'function' ? 'function' : value));
  test(`flags of ${name.slice(0, 100)}`, async () => {
    assert.deepEqual(await flags(options), expected);
  });
}

test('a settings file is read only to add the sandbox', async (context) => {
  const directory = mkdtempSync(join(tmpdir(), 'qoder-sdk-settings-'));
  context.after(() => rmSync(directory, { recursive: true }));
  writeFileSync(join(directory, 's.json'), '\uFEFF{"a": 1}');
  const given: Options = { cwd: directory, settings: 's.json', sandbox: { enabled: true } };
  assert.deepEqual(await flags(given), ['--settings', '{"a":1,"sandbox":{"enabled":true}}']);
  const missing = query({ prompt: 'x', options: { ...withPeer(oneTurn).options, ...given, settings: 'no.json' } });
  await assert.rejects(missing.next(), /options\.sandbox cannot be added to the settings no\.json/);
});

test('the environment says who is there, and env wins and removes', async () => {
  process.env['QODER_SDK_TEST_REMOVED'] = 'here';
  const { env, cwd } = await spawnedWith({
    cwd: '/',
    enableFileCheckpointing: true,
    env: { MINE: 'x', QODER_SDK_TEST_REMOVED: undefined },
  });
  delete process.env['QODER_SDK_TEST_REMOVED'];
  assert.equal(cwd, '/');
  assert.equal(env['QODER_ENTRYPOINT'], 'sdk-ts');
  assert.equal(env['QODER_SDK_VERSION'], '0.1.0');
  assert.equal(env['QODER_SDK_READS_SESSION_STATE'], '1');
  assert.equal(env['QODER_ENABLE_SDK_FILE_CHECKPOINTING'], 'true');
  assert.equal(env['PWD'], '/');
  assert.equal(env['MINE'], 'x');
  assert.equal(env['PATH'], process.env['PATH']);
  assert.equal('QODER_SDK_TEST_REMOVED' in env, false);
});

/** A runtime that reports its arguments, and what is in the file that the servers are in. */
const TELLING_RUNTIME = `
const { readFileSync, statSync } = require('node:fs');
const send = (message) => process.stdout.write(JSON.stringify(message) + '\\n');
const path = process.argv[process.argv.indexOf('--mcp-config') + 1];
const told = { argv: process.argv, path, mode: statSync(path).mode & 0o777, content: readFileSync(path, 'utf8') };
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const response = { protocol_version: 1, qodercli_version: '0.1.0', told };
  const request_id = JSON.parse(line).request_id;
  if (request_id) send({ type: 'control_response', response: { subtype: 'success', request_id, response } });
});
`;

test('headers and variables of servers do not stand on the command line', async (context) => {
  const directory = mkdtempSync(join(tmpdir(), 'qoder-sdk-private-'));
  context.after(() => rmSync(directory, { recursive: true }));
  const script = join(directory, 'runtime.cjs');
  writeFileSync(script, TELLING_RUNTIME);
  const remote = { type: 'http' as const, url: 'https://x', headers: { Authorization: 'Bearer secret' } };
  const session = query({ prompt: 'x', options: { cliPath: script, mcpServers: { remote } } });
  const { told } = (await session.initializationResult()) as unknown as {
    told: { argv: string[]; path: string; mode: number; content: string };
  };
  await session.close();
  assert.equal(told.argv.join(' ').includes('secret'), false);
  assert.equal(told.mode, 0o600);
  assert.deepEqual(JSON.parse(told.content), { mcpServers: { remote } });
  assert.equal(existsSync(told.path), false);
});
