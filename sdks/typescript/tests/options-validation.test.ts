/**
 * Options that are wrong are refused at once, by name, and nothing is started.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { type Options, OptionsError, query } from '@qoder-ai/qoder-agent-sdk';

import { oneTurn, withPeer } from './support/peer.js';

/** What `query()` says about these options. No process may start. */
function complaint(options: unknown): string {
  let started = false;
  const spawnQoderCLIProcess = (): never => {
    started = true;
    throw new Error('started');
  };
  try {
    query({ prompt: 'hello', options: { spawnQoderCLIProcess, ...(options as Options) } });
  } catch (thrown) {
    assert.ok(thrown instanceof OptionsError, String(thrown));
    assert.ok(thrown instanceof TypeError);
    assert.equal(thrown.code, 'INVALID_OPTIONS');
    assert.equal(started, false);
    return thrown.message;
  }
  throw new Error('the options were accepted');
}

const cases: Array<[name: string, options: unknown, expected: RegExp]> = [
  ['an unknown name', { alowedTools: [] }, /options\.alowedTools does not exist\. Did you mean options\.allowedTools\?/],
  ['a name in snake_case', { max_turns: 3 }, /Did you mean options\.maxTurns\?/],
  ['a name like no other', { zzzzzzzz: 1 }, /options\.zzzzzzzz does not exist\.$/],
  ['a text where a list belongs', { allowedTools: 'Read' }, /options\.allowedTools must be an array of strings, not "Read"/],
  ['a number that is too small', { maxTurns: 0 }, /options\.maxTurns must be a whole number of 1 or more, not 0/],
  ['an unknown mode', { permissionMode: 'root' }, /options\.permissionMode must be one of "default"/],
  ['an unknown source', { settingSources: ['world'] }, /options\.settingSources must be an array of "user"/],
  ['a plugin of another kind', { plugins: [{ type: 'git', path: 'x' }] }, /type: "local"/],
  ['a value that is not a function', { canUseTool: {} }, /options\.canUseTool must be a function/],
  ['both spellings', { addDirs: [], additionalDirectories: [] }, /are the same option/],
  [
    'callback and prompt tool',
    { canUseTool: () => ({ behavior: 'allow' }), permissionPromptToolName: 'mcp__a__b' },
    /canUseTool and options\.permissionPromptToolName exclude each other/,
  ],
  ['bypass without consent', { permissionMode: 'bypassPermissions' }, /allowDangerouslySkipPermissions/],
  ['yolo without consent', { permissionMode: 'yolo' }, /allowDangerouslySkipPermissions/],
  ['resume and continue', { resume: 'x', continue: true }, /options\.resume and options\.continue exclude/],
  ['resume and continueConversation', { resume: 'x', continueConversation: true }, /exclude each other/],
  ['fork of nothing', { forkSession: true }, /options\.forkSession needs options\.resume/],
  ['a place in no session', { resumeSessionAt: 'x' }, /needs options\.resume/],
  ['an id that is no UUID', { sessionId: 'mine' }, /options\.sessionId must be a UUID, not "mine"/],
  ['an unknown hook event', { hooks: { PreTooluse: [] } }, /no hook event\. Did you mean PreToolUse\?/],
  ['hooks without functions', { hooks: { Stop: [{ hooks: ['x'] }] } }, /options\.hooks\.Stop needs hooks/],
  ['a hook without time', { hooks: { Stop: [{ hooks: [() => ({})], timeout: NaN }] } }, /hooks\.Stop must be a number of/],
  ['a matcher of another kind', { hooks: { Stop: [{ hooks: [], matcher: /a/ }] } }, /matcher of options\.hooks\.Stop/],
  ['an agent without a prompt', { agents: { a: { description: 'd' } } }, /options\.agents\["a"\]\.prompt must be a string/],
  ['a server of another kind', { mcpServers: { a: { type: 'ws', url: 'x' } } }, /mcpServers\["a"\]\.type must be "stdio"/],
  ['a server without a command', { mcpServers: { a: {} } }, /mcpServers\["a"\]\.command must be a string/],
  ['a server of this process without one', { mcpServers: { a: { type: 'sdk', name: 'a' } } }, /\.instance must be/],
  ['a skill that is a rule', { skills: ['a b'] }, /options\.skills has "a b"/],
  ['a skill that is a path', { skills: ['../pdf'] }, /options\.skills has "\.\.\/pdf"/],
  ['a skill with a leading slash', { skills: ['/pdf'] }, /options\.skills has "\/pdf"/],
  ['the cloud', { experimentalCloudAgent: {} }, /experimentalCloudAgent is not available/],
  ['a store without methods', { sessionStore: {} }, /append and load/],
  ['a store and no transcript', { sessionStore: store(), persistSession: false }, /persistSession: false/],
  ['a store and checkpoints', { sessionStore: store(), enableFileCheckpointing: true }, /enableFileCheckpointing/],
  ['a store and a process elsewhere', { sessionStore: store() }, /spawnQoderCLIProcess/],
  ['a store and a title to resume', { sessionStore: store(), resume: 'my title' }, /UUID of a session/],
  ['a store that cannot list', { sessionStore: store(), continue: true }, /listSessions/],
];

function store(): unknown {
  return { append: async () => undefined, load: async () => null };
}

for (const [name, options, expected] of cases) {
  test(`refused: ${name}`, () => {
    assert.match(complaint(options), expected);
  });
}

test('a prompt must be a text or a stream', () => {
  assert.throws(() => query({ prompt: 7 as unknown as string }), /prompt must be a string or an async iterable/);
});

test('undefined and null count as left out', async () => {
  const { options } = withPeer(oneTurn, { model: undefined, maxTurns: null as unknown as undefined });
  const messages = [];
  for await (const message of query({ prompt: 'hello', options })) messages.push(message.type);
  assert.deepEqual(messages, ['assistant', 'result']);
});
