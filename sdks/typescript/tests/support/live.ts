/**
 * A session that stays open while a test looks at its MCP servers: rows by name, waiting for a status, and prompts whose
 * tool results come back by tool.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';

import { type McpServerStatus, type Options, type Query, query, type SDKMessage } from '@qoder-ai/qoder-agent-sdk';

import { Prompts } from './prompts.js';
import { type Reply, type Sandbox, sandbox } from './runtime.js';
import { PATIENCE_MS } from './servers.js';

/** Servers by name. */
export type Rows = Record<string, McpServerStatus>;
/** One tool call of the model. */
export type Call = [name: string, input: Record<string, unknown>];
/** What a call gave. */
export interface Given {
  text: string;
  isError: boolean;
  content: unknown;
}

/** An open session. */
export class Live {
  readonly query: Query;
  readonly #prompts = new Prompts();

  constructor(options: Options) {
    this.query = query({ prompt: this.#prompts, options });
  }

  /** The servers. */
  async rows(): Promise<Rows> {
    const rows = await this.query.mcpServerStatus();
    return Object.fromEntries(rows.map((row) => [row.name, row]));
  }

  /** The servers once something is true of them. */
  async until(reached: (rows: Rows) => boolean): Promise<Rows> {
    const end = Date.now() + PATIENCE_MS;
    for (;;) {
      const rows = await this.rows();
      if (reached(rows)) return rows;
      assert.ok(Date.now() < end, `the servers did not get there: ${JSON.stringify(rows)}`);
      await pause(50);
    }
  }

  /** The servers once each has been tried. */
  settled(): Promise<Rows> {
    return this.until((rows) => Object.values(rows).every((row) => !['pending', 'connecting'].includes(row.status)));
  }

  /** The row of a server once it has this status. */
  async statusIs(name: string, status: string): Promise<McpServerStatus> {
    return rowOf(await this.until((rows) => rows[name]?.status === status), name);
  }

  /** One prompt; all messages up to its result. */
  async go(prompt = 'go'): Promise<SDKMessage[]> {
    this.#prompts.say(prompt);
    const messages: SDKMessage[] = [];
    for (;;) {
      const { value, done } = await this.query.next();
      assert.ok(!done && value, 'the session ended before the result');
      messages.push(value);
      if (value.type === 'result') return messages;
    }
  }

  /** One prompt; what its calls gave, by tool. */
  async results(): Promise<Record<string, Given>> {
    return resultsByTool(await this.go());
  }
}

/** The row of a server, which must be there. */
export function rowOf(rows: Rows, name: string): McpServerStatus {
  const row = rows[name];
  assert.ok(row, `there is no server ${name}`);
  return row;
}

/** The statuses of servers by name. */
export function statuses(rows: Rows): Record<string, string> {
  return Object.fromEntries(Object.values(rows).map((row) => [row.name, row.status]));
}

/** What calls gave, by tool. */
export function resultsByTool(messages: SDKMessage[]): Record<string, Given> {
  const names = new Map<string, string>();
  const given: Record<string, Given> = {};
  for (const message of messages) {
    if ((message.type !== 'assistant' && message.type !== 'user') || typeof message.message.content === 'string') continue;
    for (const block of message.message.content) {
      if (block.type === 'tool_use') names.set(block.id, block.name);
      if (block.type !== 'tool_result') continue;
      const content = block.content ?? '';
      const parts = typeof content === 'string' ? [content] : content.map((part) => (part.type === 'text' ? part.text : ''));
      given[names.get(block.tool_use_id) ?? ''] = { text: parts.join('\n'), isError: block.is_error === true, content };
    }
  }
  return given;
}

/** A project whose model makes these calls, each in a turn of its own, and then is done. */
export function calling(test: TestContext, ...calls: Call[]): Sandbox {
  const replies: Reply[] = calls.map(([name, input], at) => ({ when: { turn: at + 1 }, toolCalls: [{ name, input }] }));
  const project = sandbox(test, [...replies, { text: 'Done.', repeat: true }]);
  const allowedTools = calls.map(([name]) => name);
  return { ...project, options: (more = {}) => project.options({ allowedTools, ...more }) };
}

/** Opens a session for as long as it is used. */
export async function using<Result>(options: Options, use: (live: Live) => Promise<Result>): Promise<Result> {
  const live = new Live(options);
  try {
    return await use(live);
  } finally {
    await live.query.close();
  }
}

/** What the calls of a session gave, by tool; its servers are tried first. */
export function called(options: Options): Promise<Record<string, Given>> {
  return using(options, async (live) => {
    await live.settled();
    return live.results();
  });
}

/** What one call gave. */
export async function calledOnce(test: TestContext, call: Call, more: Options): Promise<Given> {
  const given = (await called(calling(test, call).options(more)))[call[0]];
  assert.ok(given, `${call[0]} was not called`);
  return given;
}
