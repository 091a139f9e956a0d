/**
 * The scenarios that all SDKs share: what a user sees, described once in the files of `sdks/scenarios`.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { test } from 'node:test';

import {
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
const scenarios = ['scenarios', 'around-the-turn', 'definitions', 'external-servers'].flatMap(
  (name) => JSON.parse(readFileSync(join(repository, `sdks/scenarios/${name}.json`), 'utf8')) as Data[],
);

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

function callbacks(scenario: Data): Options {
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
    options['canUseTool'] = async (toolName: string) => {
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
    return [{ result_of: names.get(block['tool_use_id']), text, is_error: block['is_error'] ?? false }];
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
    let answered: () => void = () => {};
    async function* prompts(): AsyncGenerator<SDKUserMessage> {
      for (const [index, content] of (scenario['prompts'] as Array<string | Data>).entries()) {
        if (typeof content !== 'string') {
          seen.push(await rewound(running, content));
          continue;
        }
        const turn = new Promise<void>((resolve) => {
          answered = resolve;
        });
        yield { type: 'user', message: { role: 'user', content }, uuid: messageId(index + 1) };
        await turn;
      }
    }
    const names = new Map<string, string>();
    const seen: Data[] = [];
    const plugins = ((scenario['plugins'] ?? []) as string[]).map((name) => ({
      type: 'local' as const,
      path: join(project.directory, name),
    }));
    const options = { ...callbacks(scenario), ...(plugins.length > 0 ? { plugins } : {}) };
    const running = query({ prompt: prompts(), options: project.options(options) });
    try {
      for await (const message of running) {
        seen.push(...said(message, names));
        if (message.type === 'result') answered();
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
    for (const [name, content] of Object.entries((scenario['left'] ?? {}) as Record<string, string | null>)) {
      const path = join(project.directory, name);
      assert.equal(existsSync(path) ? readFileSync(path, 'utf8') : null, content, name);
    }
  });
}
