/**
 * Every sample of seed 001, letter by letter: compiled strictly, run by a process of its own, and looked at. Nothing
 * is added to a sample; what it leaves out is in the frame around it, and the model is named by the environment.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import type { SDKMessage } from '@qoder-ai/qoder-agent-sdk';

import { type Reply, resultOf, sandbox, toolResults } from '../support/runtime.js';
import { IMPORTS, LISTENED, LISTENING, Programs, samples } from '../support/samples.js';

const all = samples('001');

/** A sample by its number. */
function sample(number: number): string {
  const code = all.get(number);
  assert.ok(code, `there is no sample ${number}`);
  return code;
}

const ORDERS = `
const stored = new Map([['O-1001', { orderId: 'O-1001', status: 'shipped', eta: '2026-05-20' }]]);
const orders = { find: async (id: string) => stored.get(id) };
`;

/** The tools that the later samples use are those of the minimal example. */
const minimal = sample(2);
const ORDER_TOOLS = ORDERS + minimal.slice(minimal.indexOf('const lookupOrder'), minimal.indexOf('const messages'));

/** A session whose model calls the only tool of a server that the lines in front define. */
const CALLING = `
query({
  prompt: 'Call it.',
  options: {
    mcpServers: { kit: createSdkMcpServer({ name: 'kit', tools: [made] }) },
    allowedTools: ['mcp__kit__made'],
  },
});
`;

/** A handler whose body is a sample. */
function handler(number: number): string[] {
  return [
    LISTENING,
    "const made = tool('made', 'Runs a statement and returns its rows.', {}, async () => {",
    sample(number),
    '});',
    CALLING,
    LISTENED,
  ];
}

const SERVICE = `
const userService = {
  fetch: async (userId: string) => ({ ok: userId === 'u1', text: async () => \`user \${userId}\` }),
};
`;

const SHAPED = `
;
const made = tool('made', 'Search snippets by keywords and return them.', shape, async (args) => {
  const source: 'docs' | 'tickets' | 'wiki' = args.source;
  const limit: number | undefined = args.maxResults;
  return { content: [{ type: 'text', text: \`\${args.query} in \${source}, \${limit ?? 'all'}\` }] };
});
`;

const SOURCES: Record<string, string[]> = {
  builtIn: [LISTENING, sample(1), LISTENED],
  minimal: [ORDERS, minimal],
  shape: [LISTENING, 'const shape =', sample(3), SHAPED, CALLING, LISTENED],
  attached: [LISTENING, 'const searchDocs =', sample(4), sample(5), sample(6), LISTENED],
  lists: [LISTENING, ORDER_TOOLS, sample(8), LISTENED],
  mode: [IMPORTS, sample(9)],
  callback: [LISTENING, ORDER_TOOLS, sample(10), LISTENED],
  agent: [LISTENING, ORDER_TOOLS, sample(11), LISTENED],
  hook: [IMPORTS, sample(12)],
  hookHeard: [LISTENING, sample(12), LISTENED],
  failure: handler(13),
  throwing: [LISTENING, SERVICE, sample(14), 'const made = { ...toolThatMayThrow, name: "made" };', CALLING, LISTENED],
  text: handler(15),
  json: handler(16),
  // The types that the document refers to.
  names: [
    "import type { AnyZodRawShape, CallToolResult, CanUseTool, CanUseToolOptions, CreateSdkMcpServerOptions, InferShape,",
    "McpToolResultContent, PermissionResult, ToolAnnotations, ToolExtras } from '@qoder-ai/qoder-agent-sdk';",
    'export type All = [AnyZodRawShape, CallToolResult, CanUseTool, CanUseToolOptions, CreateSdkMcpServerOptions,',
    'InferShape<{}>, McpToolResultContent, PermissionResult, ToolAnnotations, ToolExtras];',
  ],
  toolConfig: [
    "import type { ToolConfig as Ours } from '@qoder-ai/qoder-agent-sdk';",
    samples('004').get(44) ?? '',
    'export const same: [(given: ToolConfig) => Ours, (given: Ours) => ToolConfig] = [(given) => given, (given) => given];',
  ],
};

let programs: Programs;
before(() => {
  programs = new Programs(SOURCES);
});
after(() => programs.remove());

/** One turn of the model with calls. */
function calls(...each: Array<[name: string, input: Record<string, unknown>]>): Reply {
  return { toolCalls: each.map(([name, input]) => ({ name, input })) };
}

const lookup = calls(['mcp__orders__lookup_order', { orderId: 'O-1001' }]);

/** The tools that a session began with. */
function toolsOf(messages: SDKMessage[] | undefined): string[] {
  const init = messages?.find((message) => message.type === 'system' && message.subtype === 'init');
  assert.ok(init?.type === 'system' && init.subtype === 'init');
  return init.tools;
}

test('seed 001 has 15 samples', () => {
  assert.equal(all.size, 15);
});

test('seed 001, Built-in Tools: read and search without changes', (context) => {
  const project = sandbox(context, [
    calls(['Grep', { pattern: 'password', output_mode: 'content' }]),
    { when: { lastToolResultContains: 'hunter2' }, text: 'A password is in the code.' },
  ]);
  project.write('auth.ts', 'const password = "hunter2";\n');
  const [messages = []] = programs.sessions('builtIn', project);
  assert.deepEqual(toolsOf(messages).sort(), ['Glob', 'Grep', 'Read']);
  assert.equal(resultOf(messages).result, 'A password is in the code.');
});

test('seed 001, Custom Tool Integration Steps: the minimal example', (context) => {
  const project = sandbox(context, [
    lookup,
    { when: { lastToolResultContains: 'shipped' }, text: 'Order O-1001 has been shipped.' },
  ]);
  assert.equal(programs.run('minimal', project), 'Order O-1001 has been shipped.\n');
});

test('seed 001, Configure Input Parameters: optional, range, enum and default', (context) => {
  const project = sandbox(context, [
    calls(
      ['mcp__kit__made', { query: 'refund' }],
      ['mcp__kit__made', { query: 'refund', maxResults: 11 }],
      ['mcp__kit__made', { query: 'refund', source: 'web' }],
    ),
    { text: 'Done.' },
  ]);
  const results = toolResults(programs.sessions('shape', project)[0] ?? []);
  const good = results.filter((result) => !result.isError);
  assert.deepEqual([results.length, good], [3, [{ text: 'refund in docs, all', isError: false }]]);
});

test('seed 001, Configure Tool Metadata, Step 2 and Step 3: attach to query()', (context) => {
  const project = sandbox(context, [
    calls(['mcp__kb__search_docs', { query: 'refund policy' }]),
    { when: { lastToolResultContains: 'refund policy' }, text: 'Refunds take five days.' },
  ]);
  const [messages = []] = programs.sessions('attached', project);
  assert.ok(toolsOf(messages).includes('mcp__kb__search_docs'));
  assert.equal(resultOf(messages).result, 'Refunds take five days.');
});

test('seed 001, Method 1: tools, allowedTools, disallowedTools', (context) => {
  const project = sandbox(context, [
    { when: { contains: 'Review the project' }, ...calls(['Bash', { command: 'touch made' }]) },
    { when: { contains: 'Check order' }, ...lookup },
    { text: 'Done.', repeat: true },
  ]);
  const [expose, deny, custom, none] = programs.sessions('lists', project);
  assert.deepEqual(toolsOf(expose).sort(), ['Glob', 'Grep', 'Read']);
  assert.equal(toolResults(deny ?? [])[0]?.isError, true);
  assert.equal(existsSync(join(project.directory, 'made')), false);
  assert.match(toolResults(custom ?? [])[0]?.text ?? '', /"status":"shipped"/);
  assert.deepEqual(toolsOf(none), []);
  for (const each of [expose, deny, custom, none]) assert.equal(resultOf(each ?? []).result, 'Done.');
});

test('seed 001, Method 2: acceptEdits lets a file be written, though no one reads the messages', (context) => {
  const project = sandbox(context, [calls(['Write', { file_path: 'new.txt', content: 'better' }]), { text: 'Refactored.' }]);
  programs.run('mode', project);
  assert.equal(existsSync(join(project.directory, 'new.txt')), true);
});

test('seed 001, Method 3: canUseTool allows one tool and denies the others', (context) => {
  const project = sandbox(context, [
    calls(['Bash', { command: 'touch made' }]),
    { when: { lastToolResultContains: 'Only order lookup is allowed in this workflow.' }, ...lookup },
    { when: { lastToolResultContains: 'shipped' }, text: 'Shipped.' },
  ]);
  assert.equal(resultOf(programs.sessions('callback', project)[0] ?? []).result, 'Shipped.');
  assert.equal(existsSync(join(project.directory, 'made')), false);
});

const DELEGATED: Reply[] = [
  { when: { turn: 1, purpose: 'main' }, ...calls(['Agent', { prompt: 'Check order O-1001.', agent: 'order-support' }]) },
  { when: { purpose: 'subagent', turn: 1 }, ...lookup },
  { when: { purpose: 'subagent', lastToolResultContains: 'shipped' }, text: 'The agent says: shipped.' },
  { when: { purpose: 'subagent' }, text: 'The agent may not look.' },
  { when: { lastToolResultContains: 'The agent says: shipped.' }, text: 'It was shipped.' },
  { when: { lastToolResultContains: 'The agent may not look.' }, text: 'It is not known.' },
];

test('seed 001, Method 3: a custom tool in a subagent, once the user has allowed it', (context) => {
  const project = sandbox(context, DELEGATED);
  mkdirSync(project.configuration, { recursive: true });
  const settings = { permissions: { allow: ['mcp__orders__lookup_order'] } };
  writeFileSync(join(project.configuration, 'settings.json'), JSON.stringify(settings));
  assert.equal(resultOf(programs.sessions('agent', project)[0] ?? []).result, 'It was shipped.');
});

test('seed 001, Method 3: a subagent has no more authority than its session', (context) => {
  const project = sandbox(context, DELEGATED);
  assert.equal(resultOf(programs.sessions('agent', project)[0] ?? []).result, 'It is not known.');
});

const HOOKED: Reply[] = [
  calls(['Bash', { command: 'rm -rf kept' }]),
  { when: { lastToolResultContains: 'rm -rf is not allowed' }, ...calls(['Bash', { command: 'mkdir tested' }]) },
  { text: 'Tests ran.' },
];

for (const program of ['hook', 'hookHeard']) {
  test(`seed 001, Method 4: a PreToolUse hook denies a command and allows another (${program})`, (context) => {
    const project = sandbox(context, HOOKED);
    mkdirSync(join(project.directory, 'kept'));
    const printed = programs.run(program, project);
    assert.equal(printed.includes('Tests ran.'), program === 'hookHeard');
    assert.equal(existsSync(join(project.directory, 'kept')), true);
    assert.equal(existsSync(join(project.directory, 'tested')), true);
  });
}

const RETURNED: Array<[program: string, title: string, text: string, isError: boolean]> = [
  ['failure', 'Business Failure', '{"error":"VALIDATION_ERROR","message":"Only SELECT statements are allowed."}', true],
  ['text', 'Tool Return Values: text', 'done', false],
  ['json', 'Tool Return Values: a JSON string', '{"orderId":"O-1001","status":"shipped","eta":"2026-05-20"}', false],
];

for (const [program, title, text, isError] of RETURNED) {
  test(`seed 001, ${title}`, (context) => {
    const project = sandbox(context, [calls(['mcp__kit__made', {}]), { text: 'The loop continues.' }]);
    const [messages = []] = programs.sessions(program, project);
    assert.deepEqual(toolResults(messages), [{ text, isError }]);
    assert.equal(resultOf(messages).result, 'The loop continues.');
  });
}

test('seed 001, Unexpected Exception: the handler throws and the loop continues', (context) => {
  const project = sandbox(context, [
    calls(['mcp__kit__made', { userId: 'u2' }]),
    { when: { lastToolResultContains: 'User service failed' }, ...calls(['mcp__kit__made', { userId: 'u1' }]) },
    { when: { lastToolResultContains: 'user u1' }, text: 'Found u1.' },
  ]);
  const [messages = []] = programs.sessions('throwing', project, /the handler of the tool made failed: Error: User service failed\n +at /);
  assert.deepEqual(
    toolResults(messages).map((result) => result.isError),
    [true, false],
  );
  assert.equal(resultOf(messages).result, 'Found u1.');
});
