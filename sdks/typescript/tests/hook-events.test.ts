/**
 * Every hook event of the document, in a session with the real runtime: when it comes, and with which fields.
 */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test, type TestContext } from 'node:test';

import { type HookEvent, type HookInput, type Options, query } from '@qoder-ai/qoder-agent-sdk';

import { collect, type Reply, resultOf, type Sandbox, sandbox } from './support/runtime.js';

type Data = Record<string, any>;

const once = (name: string, input: Record<string, unknown>): Reply[] => [
  { when: { turn: 1 }, toolCalls: [{ name, input }] },
  { text: 'Done.', repeat: true },
];

const agent: Reply[] = [
  {
    when: { turn: 1 },
    toolCalls: [{ name: 'Agent', input: { description: 'look', prompt: 'Look.', subagent_type: 'general-purpose' } }],
  },
  { when: { purpose: 'subagent' }, text: 'I looked.' },
  { text: 'Done.', repeat: true },
];

const compacting: Reply[] = [
  { when: { purpose: 'compact' }, text: 'All is well so far.' },
  { when: { contains: 'All is well so far.' }, text: 'Done.' },
  { toolCalls: [{ name: 'Glob', input: { pattern: '*' } }], usage: { input_tokens: 95_000, output_tokens: 5 } },
];
const smallWindow: Options = { settings: { model: { contextWindow: 100_000 } } };

interface Case {
  replies: Reply[];
  options?: Options;
  prepare?: (project: Sandbox) => void;
  /** What the input has; a pattern for texts that are not known. */
  has: (project: Sandbox) => Data;
}

const echo = { command: 'echo original' };
const cases: Array<[event: HookEvent, described: Case]> = [
  [
    'PreToolUse',
    {
      replies: once('Bash', echo),
      options: { allowedTools: ['Bash'], permissionMode: 'acceptEdits' },
      has: () => ({ permission_mode: 'acceptEdits', tool_name: 'Bash', tool_input: echo }),
    },
  ],
  [
    'PostToolUse',
    {
      replies: once('Bash', echo),
      options: { allowedTools: ['Bash'] },
      has: () => ({ tool_name: 'Bash', tool_input: echo, tool_response: /original/ }),
    },
  ],
  [
    'PostToolUseFailure',
    {
      replies: once('Read', { file_path: 'missing.txt' }),
      has: () => ({ tool_name: 'Read', tool_input: { file_path: 'missing.txt' }, error: /missing\.txt/ }),
    },
  ],
  ['UserPromptSubmit', { replies: [{ text: 'hi' }], has: () => ({ prompt: 'go' }) }],
  ['SessionStart', { replies: [{ text: 'hi' }], has: () => ({ source: 'startup' }) }],
  ['SessionEnd', { replies: [{ text: 'hi' }], has: () => ({ reason: 'other' }) }],
  ['Stop', { replies: [{ text: 'hi' }], has: () => ({ stop_hook_active: false }) }],
  [
    'SubagentStart',
    { replies: agent, options: { allowedTools: ['Agent'] }, has: () => ({ agent_id: /./, agent_type: 'general-purpose' }) },
  ],
  ['SubagentStop', { replies: agent, options: { allowedTools: ['Agent'] }, has: () => ({ stop_hook_active: false }) }],
  ['PreCompact', { replies: compacting, options: smallWindow, has: () => ({ trigger: 'auto' }) }],
  [
    'PostCompact',
    { replies: compacting, options: smallWindow, has: () => ({ trigger: 'auto', compact_summary: /All is well so far\./ }) },
  ],
  [
    'CwdChanged',
    {
      replies: once('Bash', { command: 'cd inner' }),
      options: { allowedTools: ['Bash'] },
      prepare: ({ directory }) => mkdirSync(join(directory, 'inner')),
      has: ({ directory }) => ({ old_cwd: directory, new_cwd: join(directory, 'inner') }),
    },
  ],
  [
    'InstructionsLoaded',
    {
      replies: once('Read', { file_path: 'inner/note.txt' }),
      options: { extraArgs: { trust: null } },
      prepare: ({ directory }) => {
        mkdirSync(join(directory, 'inner'));
        writeFileSync(join(directory, 'inner', 'AGENTS.md'), 'Be kind.\n');
        writeFileSync(join(directory, 'inner', 'note.txt'), 'buy milk\n');
      },
      has: () => ({ load_reason: 'nested_traversal' }),
    },
  ],
  [
    'InstructionsLoaded',
    {
      replies: once('Read', { file_path: 'note.txt' }),
      options: { extraArgs: { trust: null } },
      prepare: ({ directory }) => {
        mkdirSync(join(directory, '.qoder', 'rules'), { recursive: true });
        writeFileSync(join(directory, '.qoder', 'rules', 'notes.md'), "---\npaths: ['*.txt']\n---\nBe brief.\n");
        writeFileSync(join(directory, 'note.txt'), 'buy milk\n');
      },
      has: () => ({ load_reason: 'path_glob_match', globs: /\*\.txt/ }),
    },
  ],
  [
    'FileChanged',
    {
      replies: once('Write', { file_path: 'a.txt', content: 'x\n' }),
      options: { allowedTools: ['Write'] },
      has: ({ directory }) => ({ file_path: join(directory, 'a.txt'), event: 'add' }),
    },
  ],
  [
    'PermissionRequest',
    {
      replies: once('Write', { file_path: 'a.txt', content: 'x' }),
      has: () => ({ tool_name: 'Write', tool_input: { file_path: 'a.txt', content: 'x' }, permission_suggestions: /^\[/ }),
    },
  ],
];

async function told(context: TestContext, event: HookEvent, described: Case): Promise<{ project: Sandbox; inputs: Data[]; id: string }> {
  const project = sandbox(context, described.replies);
  described.prepare?.(project);
  const inputs: Data[] = [];
  const hook = (input: HookInput): Record<string, never> => {
    inputs.push(input as Data);
    return {};
  };
  const options = project.options({ ...described.options, hooks: { [event]: [{ hooks: [hook] }] } });
  const result = resultOf(await collect(query({ prompt: 'go', options })));
  return { project, inputs, id: result.session_id };
}

for (const [event, described] of cases) {
  const fields = Object.keys(described.has({ directory: '' } as Sandbox)).join(', ');
  test(`hook event ${event}: ${fields}`, async (context) => {
    const { project, inputs, id } = await told(context, event, described);
    assert.equal(inputs.length, 1, JSON.stringify(inputs));
    const input = inputs[0] as Data;
    assert.equal(input['hook_event_name'], event);
    assert.equal(input['session_id'], id);
    assert.equal(basename(input['transcript_path']), `${id}.jsonl`);
    assert.ok((input['cwd'] as string).startsWith(project.directory));
    for (const [name, wanted] of Object.entries(described.has(project))) {
      if (wanted instanceof RegExp) {
        const text = typeof input[name] === 'string' ? input[name] : JSON.stringify(input[name]);
        assert.match(text, wanted, name);
      } else assert.deepEqual(input[name], wanted, name);
    }
  });
}

test('a hook that takes too long is withdrawn, and its failure counts', async (context) => {
  const project = sandbox(context, once('Bash', { command: 'touch a.txt' }));
  let aborted = false;
  const options = project.options({
    allowedTools: ['Bash'],
    hooks: {
      PreToolUse: [
        {
          timeout: 1,
          hooks: [
            (_input, _id, { signal }) =>
              new Promise((resolve) => {
                signal.addEventListener('abort', () => {
                  aborted = true;
                  resolve({});
                });
              }),
          ],
        },
      ],
    },
  });
  const result = resultOf(await collect(query({ prompt: 'go', options })));
  assert.equal(result.subtype === 'success' && result.result, 'Done.');
  assert.equal(result.permission_denials?.[0]?.tool_name, 'Bash');
  assert.ok(aborted);
});
