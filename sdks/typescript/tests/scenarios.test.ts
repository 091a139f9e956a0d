/**
 * The scenarios that all SDKs share: what a user sees, described once in the files of `sdks/scenarios`.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { test } from 'node:test';

import {
  type CanUseToolOptions,
  createSdkMcpServer,
  type Options,
  type Query,
  query,
  type SDKMessage,
  type SDKUserMessage,
  tool,
} from '@qoder-ai/qoder-agent-sdk';
import { z } from 'zod';

import { sandbox } from './support/runtime.js';
import { installed, own } from './support/servers.js';

type Data = Record<string, any>;

const repository = process.env['QODER_SDK_REPOSITORY'];
assert.ok(repository, 'QODER_SDK_REPOSITORY names the repository');
const scenarios = ['scenarios', 'questions', 'around-the-turn', 'notices', 'definitions', 'external-servers'].flatMap(
  (name) => JSON.parse(readFileSync(join(repository, `sdks/scenarios/${name}.json`), 'utf8')) as Data[],
);

/** The session of a scenario that resumes one. */
const SESSION = '5ce7a210-0000-4000-8000-000000000001';

/** The exit code of a run whose question waits. */
const WAITING = 54;

/** Fields of system messages that are not compared; the README of the scenarios says why. */
const LEFT_OUT = new Set(
  ('type uuid session_id cwd model apiKeySource qodercli_version claude_code_version ' +
    'hook_id task_id output_file usage').split(' '),
);

/** System messages that `system` does not have; the README of the scenarios says why. */
const OTHERS = ['notice', 'mcp_status_change', 'task_progress'];

const camelCase = (name: string): string => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

/** A Zod shape for the simple schemas of the scenarios. */
function shape(schema: Data): Record<string, z.ZodTypeAny> {
  const kinds: Record<string, () => z.ZodTypeAny> = { number: () => z.number(), string: () => z.string() };
  const made: Record<string, z.ZodTypeAny> = {};
  for (const [name, property] of Object.entries(schema['properties'] as Data)) {
    const kind = kinds[property.type as string];
    assert.ok(kind, `no Zod type for ${property.type}`);
    made[name] = schema['required']?.includes(name) ? kind() : kind().optional();
  }
  return made;
}

function server(name: string, tools: Data) {
  const made = Object.entries(tools).map(([toolName, described]: [string, Data]) =>
    tool(
      toolName,
      described['description'],
      shape(described['input_schema']),
      async () => {
        if (described['raises']) throw new Error(described['raises']);
        const { content, is_error } = described['result'] as Data;
        return { content, ...(is_error ? { isError: true } : {}) };
      },
      { annotations: described['annotations'] },
    ),
  );
  return createSdkMcpServer({ name, version: '1.0.0', tools: made });
}

/** The configuration of a server outside of this program. */
function external({ own: file, program, ...config }: Data): Data {
  if (file) return { command: installed('venv/bin/python'), args: [own(file), 'stdio'], ...config };
  return program ? { command: installed(program), ...config } : config;
}

const snakeCase = (name: string): string =>
  name.replace('ID', 'Id').replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Everything that a permission callback is given, but the signal. */
function given(toolName: string, input: Data, { signal: _, ...context }: CanUseToolOptions): Data {
  const known = Object.entries(context).filter(([, value]) => value !== undefined && value !== null);
  return { tool: toolName, input, ...Object.fromEntries(known.map(([name, value]) => [snakeCase(name), value])) };
}

/** Runs a turn in print mode whose question waits in the session. */
function park(prompt: string, { cwd, model, env }: Options): void {
  const settings = JSON.stringify({ permissions: { unattended: 'park' } });
  const args = ['-p', prompt, '--session-id', SESSION, '--model', String(model), '--settings', settings];
  const program = process.env['QODERCLI_PATH'];
  assert.ok(program, 'QODERCLI_PATH names the program');
  const finished = spawnSync(program, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
  });
  assert.equal(finished.status, WAITING, `${finished.stdout}\n${finished.stderr}`);
}

/** `asked` keeps what the permission callback is given; it answers after `mayAnswer`. */
function callbacks(scenario: Data, asked: Data[], mayAnswer: Promise<void>): Options {
  const options: Data = {};
  for (const [name, value] of Object.entries(scenario['options'] ?? {})) options[camelCase(name)] = value;
  if (scenario['trusted']) options['extraArgs'] = { trust: null };
  if (scenario['servers']) {
    const entries = Object.entries(scenario['servers'] as Data);
    options['mcpServers'] = Object.fromEntries(entries.map(([name, tools]) => [name, server(name, tools)]));
  }
  if (scenario['external_servers']) {
    const entries = Object.entries(scenario['external_servers'] as Record<string, Data>);
    options['mcpServers'] = Object.fromEntries(entries.map(([name, config]) => [name, external(config)]));
  }
  if ('elicitation' in scenario) options['onElicitation'] = async () => scenario['elicitation'];
  if (scenario['can_use_tool']) {
    options['canUseTool'] = async (toolName: string, input: Data, context: CanUseToolOptions) => {
      asked.push(given(toolName, input, context));
      await mayAnswer;
      const answer = scenario['can_use_tool'][toolName] as Data;
      if (answer['raises']) throw new Error(answer['raises']);
      if (answer['deny']) return { behavior: 'deny', message: answer['message'], interrupt: answer['interrupt'] ?? false };
      return { behavior: 'allow', updatedInput: answer['updated_input'] };
    };
  }
  if (scenario['hooks']) {
    const made = (entry: Data) => ({
      ...(entry['matcher'] ? { matcher: entry['matcher'] } : {}),
      ...(entry['on_failure'] ? { onFailure: entry['on_failure'] } : {}),
      hooks: [
        async () => {
          if (entry['raises']) throw new Error(entry['raises']);
          return entry['output'];
        },
      ],
    });
    const entries = Object.entries(scenario['hooks'] as Record<string, Data[]>);
    options['hooks'] = Object.fromEntries(entries.map(([event, list]) => [event, list.map(made)]));
  }
  return options as Options;
}

/** What a message says, in the scenario's words. */
function said(message: SDKMessage, names: Map<string, string>): Data[] {
  const line = message as unknown as Data;
  if (line['type'] === 'result') {
    const denied = (line['permission_denials'] as Data[]).map((denial) => denial['tool_name']);
    const structured = line['structured_output'];
    return [{ end: line['subtype'], result: line['result'], errors: line['errors'] ?? [], denied, structured }];
  }
  if ((line['type'] !== 'assistant' && line['type'] !== 'user') || line['parent_tool_use_id']) return [];
  const content = line['message'].content as Data[] | string;
  if (typeof content === 'string') return [];
  return content.flatMap((block): Data[] => {
    if (block['type'] === 'text') return [{ text: block['text'] }];
    if (block['type'] === 'tool_use') {
      names.set(block['id'], block['name']);
      return [{ tool: block['name'], input: block['input'] }];
    }
    if (block['type'] !== 'tool_result') return [];
    const text = typeof block['content'] === 'string' ? block['content'] : JSON.stringify(block['content']);
    return [{ result_of: names.get(block['tool_use_id']) ?? null, text, is_error: block['is_error'] ?? false }];
  });
}

/** True when what was said is what is expected; `~` at the start of a text means that it is contained. */
function fits(expected: unknown, actual: unknown): boolean {
  if (typeof expected === 'string' && expected.startsWith('~')) {
    return typeof actual === 'string' && actual.includes(expected.slice(1));
  }
  if (Array.isArray(expected)) {
    return Array.isArray(actual) && expected.length === actual.length && expected.every((one, at) => fits(one, actual[at]));
  }
  if (expected !== null && typeof expected === 'object') {
    const other = actual as Data | null | undefined;
    return other != null && Object.entries(expected).every(([key, value]) => fits(value, other[key]));
  }
  return expected === actual;
}

/** Like `fits`, but every field must be named, except where the subtype stands alone. */
function fitsWhole(expected: Data[], actual: Data[]): boolean {
  const names = (one: Data | undefined): string => Object.keys(one ?? {}).sort().join();
  const named = expected.every((one, at) => names(one) === 'subtype' || names(one) === names(actual[at]));
  return named && fits(expected, actual);
}

/** A system message without what differs from run to run. */
const news = (message: SDKMessage): Data =>
  Object.fromEntries(Object.entries(message).filter(([name]) => !LEFT_OUT.has(name)));

/** The id of a prompt, by its number. */
const messageId = (number: number): string => `c0ffee00-0000-4000-8000-${String(number).padStart(12, '0')}`;

/** Goes back to a prompt; what came of it, in the scenario's words. */
async function rewound(running: Query, step: Data): Promise<Data> {
  const report = await running.rewindFiles(messageId(step['rewind_files']), { dryRun: step['dry_run'] ?? false });
  const files = (report.filesChanged ?? []).map((path) => basename(path));
  return { rewound: files, insertions: report.insertions, deletions: report.deletions };
}

for (const scenario of scenarios) {
  test(`scenario: ${scenario['name']}`, async (context) => {
    const project = sandbox(context, scenario['playbook'] ?? []);
    for (const [name, text] of Object.entries((scenario['files'] ?? {}) as Record<string, string>)) {
      mkdirSync(dirname(join(project.directory, name)), { recursive: true });
      writeFileSync(join(project.directory, name), text);
    }
    const ended: Array<() => void> = [];
    const turns = (scenario['prompts'] as unknown[]).map(() => new Promise<void>((resolve) => ended.push(resolve)));
    let [finishing, finished] = [0, 0];
    let answer: () => void = () => {};
    const mayAnswer = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const asked: Data[] = [];
    const reported: Data[] = [];
    async function* prompts(): AsyncGenerator<SDKUserMessage> {
      for (const [index, content] of (scenario['prompts'] as Array<string | Data>).entries()) {
        if (typeof content !== 'string' && 'rewind_files' in content) {
          seen.push(await rewound(running, content));
          continue;
        }
        if (typeof content === 'string') {
          yield { type: 'user', message: { role: 'user', content }, uuid: messageId(index + 1) };
        }
        answer();
        await turns[finishing++];
      }
    }
    const names = new Map<string, string>();
    const seen: Data[] = [];
    const plugins = ((scenario['plugins'] ?? []) as string[]).map((name) => ({
      type: 'local' as const,
      path: join(project.directory, name),
    }));
    const called = callbacks(scenario, asked, mayAnswer);
    const options = project.options({ ...called, ...(plugins.length > 0 ? { plugins } : {}) });
    if (scenario['parked']) {
      park(scenario['parked'], options);
      options.resume = SESSION;
    }
    const warned: Data[] = [];
    const logged = context.mock.method(console, 'warn', () => undefined);
    const running = query({ prompt: prompts(), options });
    try {
      for await (const message of running) {
        seen.push(...said(message, names));
        if (message.type === 'system' && message.subtype === 'notice') warned.push(message);
        if (message.type === 'system' && !OTHERS.includes(message.subtype)) reported.push(news(message));
        if (message.type === 'result') ended[finished++]?.();
      }
    } catch (error) {
      if (scenario['fails']) {
        assert.ok(fits(scenario['fails'], String(error)), String(error));
        return;
      }
      // A run that ends with an error result may raise after it; the result has said everything.
      assert.ok(seen.at(-1)?.['end']?.startsWith('error'), String(error));
    }
    assert.ok(!scenario['fails'], 'it did not fail');
    assert.ok(fits(scenario['expect'], seen), JSON.stringify(seen, null, 1));
    const steps = scenario['prompts'] as Array<string | Data>;
    const eachTurn = steps.filter((step) => typeof step === 'string').map(() => ({ subtype: 'init' }));
    assert.ok(fitsWhole(scenario['system'] ?? eachTurn, reported), JSON.stringify(reported, null, 1));
    assert.ok(fitsWhole(scenario['asked'] ?? [], asked), JSON.stringify(asked, null, 1));
    if (scenario['notices']) {
      assert.ok(fits(scenario['notices'], warned), JSON.stringify(warned, null, 1));
      const lines = logged.mock.calls.map((call) => call.arguments[0]);
      assert.deepEqual(lines, warned.map((notice) => `qodercli: ${notice['message']}`));
    }
    for (const [name, content] of Object.entries((scenario['left'] ?? {}) as Record<string, string | null>)) {
      const path = join(project.directory, name);
      assert.equal(existsSync(path) ? readFileSync(path, 'utf8') : null, content, name);
    }
  });
}
