/**
 * The samples of seed 001 about permissions: lists, modes, the callback, and a hook.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { accessTokenFromEnv, createSdkMcpServer, query, tool } from '@qoder-ai/qoder-agent-sdk';
import { z } from 'zod';

import { collect, resultOf, sandbox, toolResults } from '../support/runtime.js';

const orderTools = createSdkMcpServer({
  name: 'orders',
  tools: [
    tool('lookup_order', 'Look up an order by order ID.', { orderId: z.string() }, async ({ orderId }) => ({
      content: [{ type: 'text', text: `${orderId}: shipped` }],
    })),
  ],
});

const callLookup = { toolCalls: [{ name: 'mcp__orders__lookup_order', input: { orderId: 'O-1001' } }] };

test('seed 001, Method 1: only read and search tools', async (context) => {
  const project = sandbox(context, [{ text: 'Analysed.' }]);
  const messages = await collect(
    query({
      prompt: 'Analyze the repository without editing files.',
      options: {
        ...project.options(),
        tools: ['Read', 'Glob', 'Grep'],
        allowedTools: ['Read', 'Glob', 'Grep'],
      },
    }),
  );
  assert.equal(resultOf(messages).result, 'Analysed.');
});

test('seed 001, Method 1: high-risk tools are denied', async (context) => {
  const project = sandbox(context, [
    { toolCalls: [{ name: 'Bash', input: { command: 'touch made' } }] },
    { text: 'Reported.' },
  ]);
  const messages = await collect(
    query({
      prompt: 'Review the project and report issues.',
      options: {
        ...project.options(),
        // Deny wins over allow.
        allowedTools: ['Bash'],
        disallowedTools: ['Bash', 'Write', 'Edit'],
      },
    }),
  );
  assert.equal(toolResults(messages)[0]?.isError, true);
  assert.equal(existsSync(join(project.directory, 'made')), false);
});

test('seed 001, Method 1: full names for custom tools', async (context) => {
  const project = sandbox(context, [callLookup, { when: { lastToolResultContains: 'shipped' }, text: 'Shipped.' }]);
  const messages = await collect(
    query({
      prompt: 'Check order O-1001.',
      options: {
        ...project.options(),
        mcpServers: { orders: orderTools },
        allowedTools: ['mcp__orders__lookup_order'],
      },
    }),
  );
  assert.equal(resultOf(messages).result, 'Shipped.');
});

test('seed 001, Method 1: no tools at all', async (context) => {
  const project = sandbox(context, [{ text: 'It runs agents.' }]);
  const messages = await collect(
    query({
      prompt: 'Explain what this SDK does at a high level.',
      options: { ...project.options(), tools: [] },
    }),
  );
  const init = messages.find((message) => message.type === 'system' && message.subtype === 'init');
  assert.ok(init?.type === 'system' && init.subtype === 'init');
  assert.deepEqual(init.tools, []);
  assert.equal(resultOf(messages).result, 'It runs agents.');
});

test('seed 001, Method 2: acceptEdits lets a file be written', async (context) => {
  const project = sandbox(context, [
    { toolCalls: [{ name: 'Write', input: { file_path: 'new.txt', content: 'better' } }] },
    { text: 'Refactored.' },
  ]);
  const messages = await collect(
    query({
      prompt: 'Refactor the code.',
      options: {
        ...project.options(),
        permissionMode: 'acceptEdits',
      },
    }),
  );
  assert.equal(resultOf(messages).result, 'Refactored.');
  assert.equal(existsSync(join(project.directory, 'new.txt')), true);
});

test('seed 001, Method 3: canUseTool allows one tool and denies the others', async (context) => {
  const project = sandbox(context, [
    { toolCalls: [{ name: 'Bash', input: { command: 'touch made' }, id: 'call_1' }] },
    { when: { lastToolResultContains: 'Only order lookup is allowed' }, ...callLookup },
    { when: { lastToolResultContains: 'shipped' }, text: 'Shipped.' },
  ]);
  const asked: string[] = [];
  const messages = await collect(
    query({
      prompt: 'Check order O-1001.',
      options: {
        ...project.options(),
        auth: accessTokenFromEnv(),
        mcpServers: { orders: orderTools },
        allowedTools: ['mcp__orders__lookup_order'],
        async canUseTool(toolName, input, options) {
          asked.push(`${toolName} ${options.toolUseID}`);
          if (toolName !== 'mcp__orders__lookup_order') {
            return {
              behavior: 'deny',
              message: 'Only order lookup is allowed in this workflow.',
              toolUseID: options.toolUseID,
            };
          }

          return {
            behavior: 'allow',
            updatedInput: input,
            toolUseID: options.toolUseID,
          };
        },
      },
    }),
  );
  assert.deepEqual(asked, ['Bash call_1']);
  assert.equal(existsSync(join(project.directory, 'made')), false);
  assert.equal(resultOf(messages).result, 'Shipped.');
});

test('seed 001, Common return values: other arguments', async (context) => {
  const project = sandbox(context, [
    { toolCalls: [{ name: 'Bash', input: { command: 'touch wrong' } }] },
    { text: 'Done.' },
  ]);
  await collect(
    query({
      prompt: 'Make a file.',
      options: {
        ...project.options(),
        canUseTool: async () => ({ behavior: 'allow', updatedInput: { command: 'touch right' } }),
      },
    }),
  );
  assert.equal(existsSync(join(project.directory, 'right')), true);
  assert.equal(existsSync(join(project.directory, 'wrong')), false);
});

test('seed 001, Common return values: deny and interrupt', async (context) => {
  const project = sandbox(context, [
    { toolCalls: [{ name: 'Bash', input: { command: 'touch made' } }] },
    { text: 'This must not be reached.', repeat: true },
  ]);
  const messages = await collect(
    query({
      prompt: 'Make a file.',
      options: {
        ...project.options(),
        canUseTool: async () => ({ behavior: 'deny', message: 'reason', interrupt: true }),
      },
    }),
  );
  assert.equal(messages.filter((message) => message.type === 'assistant').length, 1);
  assert.equal(messages.at(-1)?.type, 'result');
});

const delegate = { toolCalls: [{ name: 'Agent', input: { prompt: 'Check order O-1001.', agent: 'order-support' } }] };

test('seed 001, Method 3: a custom tool in a subagent', async (context) => {
  const project = sandbox(context, [
    delegate,
    { when: { purpose: 'subagent', turn: 1 }, ...callLookup },
    { when: { purpose: 'subagent' }, text: 'The agent is done.' },
    { when: { lastToolResultContains: 'The agent is done.' }, text: 'The agent has answered.' },
  ]);
  const messages = await collect(
    query({
      prompt: 'Use the order-support agent to check order O-1001.',
      options: {
        ...project.options(),
        auth: accessTokenFromEnv(),
        mcpServers: { orders: orderTools },
        allowedTools: ['Agent'],
        agents: {
          'order-support': {
            description: 'Handles order lookup and explains order status.',
            prompt: 'Use order tools to answer order status questions clearly.',
            tools: ['mcp__orders__lookup_order'],
          },
        },
      },
    }),
  );
  assert.equal(resultOf(messages).result, 'The agent has answered.');
});

test('seed 001, Method 3: the subagent reaches a tool that is pre-authorized by its full name', async (context) => {
  const project = sandbox(context, [
    delegate,
    { when: { purpose: 'subagent', turn: 1 }, ...callLookup },
    { when: { purpose: 'subagent', lastToolResultContains: 'shipped' }, text: 'The agent says: shipped.' },
    { when: { lastToolResultContains: 'The agent says' }, text: 'It was shipped.' },
  ]);
  const messages = await collect(
    query({
      prompt: 'Use the order-support agent to check order O-1001.',
      options: {
        ...project.options(),
        mcpServers: { orders: orderTools },
        allowedTools: ['Agent', 'mcp__orders__lookup_order'],
        agents: {
          'order-support': {
            description: 'Handles order lookup and explains order status.',
            prompt: 'Use order tools to answer order status questions clearly.',
            tools: ['mcp__orders__lookup_order'],
          },
        },
      },
    }),
  );
  assert.equal(resultOf(messages).result, 'It was shipped.');
});

test('seed 001, Method 4: a PreToolUse hook denies a command', async (context) => {
  const project = sandbox(context, [
    { toolCalls: [{ name: 'Bash', input: { command: 'rm -rf build' } }] },
    { when: { lastToolResultContains: 'rm -rf is not allowed' }, toolCalls: [{ name: 'Bash', input: { command: 'echo tested' } }] },
    { when: { lastToolResultContains: 'tested' }, text: 'Tests ran.' },
  ]);
  const messages = await collect(
    query({
      prompt: 'Run the test command.',
      options: {
        ...project.options(),
        allowedTools: ['Bash'],
        hooks: {
          PreToolUse: [
            {
              matcher: 'Bash',
              hooks: [
                async (input) => {
                  const command = (input.tool_input as { command: string }).command;
                  if (command.includes('rm -rf')) {
                    return {
                      hookSpecificOutput: {
                        hookEventName: 'PreToolUse',
                        permissionDecision: 'deny',
                        permissionDecisionReason: 'rm -rf is not allowed',
                      },
                    };
                  }

                  return {
                    hookSpecificOutput: {
                      hookEventName: 'PreToolUse',
                      permissionDecision: 'allow',
                    },
                  };
                },
              ],
            },
          ],
        },
      },
    }),
  );
  assert.equal(resultOf(messages).result, 'Tests ran.');
});
