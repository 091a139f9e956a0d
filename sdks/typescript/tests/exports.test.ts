/**
 * Everything that is documented is exported, with types that hold in strict code.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';

import * as sdk from '@qoder-ai/qoder-agent-sdk';
import type {
  AgentInput,
  AgentOutput,
  AskUserQuestionInput,
  AskUserQuestionOutput,
  BashInput,
  BashOutput,
  ConfigInput,
  ConfigOutput,
  EnterWorktreeInput,
  EnterWorktreeOutput,
  ExitPlanModeInput,
  ExitPlanModeOutput,
  ExitWorktreeInput,
  ExitWorktreeOutput,
  FileEditInput,
  FileEditOutput,
  FileReadInput,
  FileReadOutput,
  FileWriteInput,
  FileWriteOutput,
  GlobInput,
  GlobOutput,
  GrepInput,
  GrepOutput,
  HookCallback,
  ListMcpResourcesInput,
  ListMcpResourcesOutput,
  McpInput,
  McpOutput,
  NotebookEditInput,
  NotebookEditOutput,
  Options,
  ReadMcpResourceInput,
  TaskOutputInput,
  TaskStopInput,
  TaskStopOutput,
  TodoWriteInput,
  TodoWriteOutput,
  ToolConfig,
  ToolInputSchemas,
  ToolOutputSchemas,
  WebFetchInput,
  WebFetchOutput,
  WebSearchInput,
  WebSearchOutput,
} from '@qoder-ai/qoder-agent-sdk';

test('the values', () => {
  assert.deepEqual(Object.keys(sdk).sort(), [
    'AbortError',
    'AuthAccessTokenEnvVarError',
    'AuthNotConfiguredError',
    'ControlRequestError',
    'ControlRequestTimeoutError',
    'HOOK_EVENTS',
    'InMemorySessionStore',
    'MessageDecodeError',
    'ModelPolicyTimeoutError',
    'OptionsError',
    'PROTOCOL_VERSION',
    'ProtocolVersionMismatchError',
    'QoderAgentError',
    'QoderCliNotFoundError',
    'QoderCliProcessError',
    'SDK_VERSION',
    'SessionNotFoundError',
    'SessionStoreError',
    'UnsupportedCliCapabilityError',
    'accessToken',
    'accessTokenFromEnv',
    'createSdkMcpServer',
    'deleteSession',
    'forkSession',
    'getSessionInfo',
    'getSessionMessages',
    'getSubagentMessages',
    'listSessions',
    'listSubagents',
    'qodercliAuth',
    'query',
    'renameSession',
    'resolveSettings',
    'startup',
    'tagSession',
    'tool',
  ]);
});

test('the package says its version once, and brings no dependency but zod', () => {
  const path = createRequire(import.meta.url).resolve('@qoder-ai/qoder-agent-sdk/package.json');
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as Record<string, Record<string, string> | string>;
  assert.equal(manifest['version'], sdk.SDK_VERSION);
  assert.equal(manifest['type'], 'module');
  assert.equal(manifest['dependencies'], undefined);
  assert.deepEqual(Object.keys(manifest['peerDependencies'] as object), ['zod']);
});

test('seed 001: inputs of all built-in tools have types', () => {
  const inputs = {
    agent: { prompt: 'p', agent: 'Explore', timeout_ms: 1 } satisfies AgentInput,
    ask: { questions: [{ question: 'q', header: 'h', options: [{ label: 'a' }, { label: 'b' }] }] } satisfies AskUserQuestionInput,
    bash: { command: 'ls', timeout: 1, run_in_background: true, dangerouslyDisableSandbox: false } satisfies BashInput,
    config: { action: 'set', key: 'k', value: 1, scope: 'local' } satisfies ConfigInput,
    enterWorktree: { name: 'n' } satisfies EnterWorktreeInput,
    exitPlan: { confirm: true } satisfies ExitPlanModeInput,
    exitWorktree: { action: 'keep' } satisfies ExitWorktreeInput,
    edit: { file_path: 'f', old_string: 'a', new_string: 'b', replace_all: true } satisfies FileEditInput,
    read: { file_path: 'f', offset: 1, limit: 2, pages: '1-5' } satisfies FileReadInput,
    write: { file_path: 'f', content: 'c' } satisfies FileWriteInput,
    glob: { pattern: '*' } satisfies GlobInput,
    grep: { pattern: 'x', '-A': 1, '-i': true, output_mode: 'content', multiline: true } satisfies GrepInput,
    list: { server_name: 's' } satisfies ListMcpResourcesInput,
    mcp: { server_name: 's', tool_name: 't', arguments: {} } satisfies McpInput,
    notebook: { notebook_path: 'n', new_source: 's', edit_mode: 'insert', cell_type: 'code' } satisfies NotebookEditInput,
    resource: { server_name: 's', uri: 'u' } satisfies ReadMcpResourceInput,
    taskOutput: { task_id: 't', output: 'o' } satisfies TaskOutputInput,
    taskStop: { task_id: 't', reason: 'r' } satisfies TaskStopInput,
    todo: { todos: [{ content: 'c', status: 'pending', priority: 'low' }] } satisfies TodoWriteInput,
    fetch: { url: 'u', prompt: 'p' } satisfies WebFetchInput,
    search: { query: 'q', allowed_domains: [] } satisfies WebSearchInput,
  };
  const all: ToolInputSchemas[] = Object.values(inputs);
  assert.equal(all.length, 21);
});

test('seed 001: outputs of the built-in tools have types', () => {
  const outputs = {
    agent: { result: 'r' } satisfies AgentOutput,
    ask: { questions: [], answers: { q: 'a' } } satisfies AskUserQuestionOutput,
    bash: { stdout: '', stderr: '', exitCode: 0, interrupted: false } satisfies BashOutput,
    config: { success: true, value: 1 } satisfies ConfigOutput,
    enterWorktree: { success: true, worktree_path: 'p', branch_name: 'b' } satisfies EnterWorktreeOutput,
    exitPlan: { success: true } satisfies ExitPlanModeOutput,
    exitWorktree: { success: false, uncommitted_files: ['f'] } satisfies ExitWorktreeOutput,
    edit: { success: true, file_path: 'f', diff: 'd' } satisfies FileEditOutput,
    read: { type: 'text', text: 't', file_path: 'f' } satisfies FileReadOutput,
    write: { success: true, file_path: 'f', bytesWritten: 1 } satisfies FileWriteOutput,
    glob: { files: [], totalMatches: 0 } satisfies GlobOutput,
    grep: { results: '', matchCount: 0 } satisfies GrepOutput,
    list: { resources: [], server_name: 's' } satisfies ListMcpResourcesOutput,
    mcp: { content: [], isError: false } satisfies McpOutput,
    notebook: { success: true, notebook_path: 'n' } satisfies NotebookEditOutput,
    taskStop: { success: true, task_id: 't' } satisfies TaskStopOutput,
    todo: { success: true, todos: [] } satisfies TodoWriteOutput,
    fetch: { content: '', url: 'u', statusCode: 200 } satisfies WebFetchOutput,
    search: { results: [{ title: 't', url: 'u', snippet: 's' }], query: 'q' } satisfies WebSearchOutput,
  };
  const all: ToolOutputSchemas[] = Object.values(outputs);
  assert.equal(all.length, 19);
});

test('seed 004: the form of toolConfig', () => {
  const toolConfig: ToolConfig = { askUserQuestion: { previewFormat: 'html' } };
  assert.equal(toolConfig.askUserQuestion?.previewFormat, 'html');
});

test('a hook for any event can be used for each, and inputs are told apart by event', () => {
  const log: string[] = [];
  const any: HookCallback = (input) => {
    if (input.hook_event_name === 'PreToolUse') log.push(input.tool_name);
    else log.push(input.hook_event_name);
  };
  const hooks: Options['hooks'] = { PreToolUse: [{ hooks: [any] }], Stop: [{ hooks: [any] }] };
  // @ts-expect-error: such an event does not exist
  const wrong: Options['hooks'] = { PreTool: [] };
  assert.deepEqual([Object.keys(hooks), Object.keys(wrong ?? {}), log], [['PreToolUse', 'Stop'], ['PreTool'], []]);
});

test('errors have codes and say who they are', () => {
  const error = new sdk.ModelPolicyTimeoutError(500, 'main');
  assert.ok(error instanceof sdk.QoderAgentError);
  assert.equal(error.name, 'ModelPolicyTimeoutError');
  assert.equal(error.code, 'MODEL_POLICY_TIMEOUT');
  assert.equal(new sdk.AbortError().name, 'AbortError');
  assert.equal(new sdk.QoderCliProcessError('x').code, 'QODER_CLI_PROCESS_ERROR');
});
