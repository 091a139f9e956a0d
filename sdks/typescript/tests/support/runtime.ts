/**
 * A real runtime for tests: a folder of its own as project and configuration, and a playbook as the model, so
 * that no network is needed. The binary is the installed one, or the one that `QODERCLI_PATH` names.
 */
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

import type { Options, Query, SDKMessage, SDKResultMessage } from '@qoder-ai/qoder-agent-sdk';

/** One reply of the model in a playbook. */
export interface Reply {
  when?: { turn?: number; contains?: string; lastToolResultContains?: string; purpose?: string };
  text?: string;
  thinking?: string;
  toolCalls?: Array<{ name: string; input?: Record<string, unknown>; id?: string }>;
  delayMs?: number;
  chunks?: number;
  repeat?: boolean;
  error?: Record<string, unknown>;
  usage?: Record<string, number>;
}

/** A project folder with options that use it. */
export interface Sandbox {
  directory: string;
  configuration: string;
  /** Options for a run in the folder. */
  options(more?: Options): Options;
  /** Writes a file into the project. */
  write(name: string, content: string): string;
}

/** Makes a project with a playbook; both are gone after the test. */
export function sandbox(test: TestContext, replies: Reply[]): Sandbox {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'qoder-sdk-test-')));
  test.after(() => rmSync(base, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }));
  const directory = realpathSync(mkdtempSync(join(base, 'project-')));
  const configuration = join(base, 'configuration');
  const playbook = join(base, 'playbook.json');
  writeFileSync(playbook, JSON.stringify({ replies }));
  const environment = { QODER_CONFIG_DIR: configuration, QODER_PERSONAL_ACCESS_TOKEN: 'test-token' };
  return {
    directory,
    configuration,
    options: (more = {}) => ({
      cwd: directory,
      model: `scripted:${playbook}`,
      ...more,
      env: { ...environment, ...more.env },
    }),
    write(name, content) {
      const path = join(directory, name);
      writeFileSync(path, content);
      return path;
    },
  };
}

/** All messages of a run. */
export async function collect(query: Query): Promise<SDKMessage[]> {
  const messages: SDKMessage[] = [];
  for await (const message of query) messages.push(message);
  return messages;
}

/** The last result among messages. */
export function resultOf(messages: SDKMessage[]): SDKResultMessage {
  const result = messages.filter((message) => message.type === 'result').at(-1);
  if (!result) throw new Error(`no result among: ${messages.map((message) => message.type).join(', ')}`);
  return result;
}

/** The texts of all tool results among messages. */
export function toolResults(messages: SDKMessage[]): Array<{ text: string; isError: boolean }> {
  return messages.flatMap((message) => {
    if (message.type !== 'user' || typeof message.message.content === 'string') return [];
    return message.message.content.flatMap((block) => {
      if (block.type !== 'tool_result') return [];
      const content = block.content ?? '';
      const text =
        typeof content === 'string'
          ? content
          : content.map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join('\n');
      return [{ text, isError: block.is_error === true }];
    });
  });
}
