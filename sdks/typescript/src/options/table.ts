/**
 * The table of all options with the kind of value each takes. A name that is not here does not exist.
 */
import type { Options } from '../types/options.js';
import {
  abortController,
  argumentRecord,
  arrayOf,
  callback,
  count,
  either,
  environmentRecord,
  flag,
  type Kind,
  listOf,
  nonEmptyText,
  oneOf,
  positiveCount,
  positiveNumber,
  record,
  tagged,
  text,
  textRecord,
  texts,
} from './kinds.js';

const permissionMode = oneOf('default', 'acceptEdits', 'bypassPermissions', 'yolo', 'plan', 'dontAsk', 'auto');

const preset = tagged(
  ['preset'],
  '{ type: "preset", preset: "qodercli" }',
  (value) => value['preset'] === 'qodercli',
);

const systemPromptFile = tagged(
  ['file'],
  '{ type: "file", path }',
  (value) => typeof value['path'] === 'string',
);

const plugin = tagged(['local'], '{ type: "local", path }', (value) => typeof value['path'] === 'string');

const thinking = tagged(
  ['adaptive', 'enabled', 'disabled'],
  'an object whose type is "adaptive", "enabled" or "disabled"',
  () => true,
);

const outputFormat = tagged(
  ['json_schema'],
  '{ type: "json_schema", schema }',
  (value) => typeof value['schema'] === 'object' && value['schema'] !== null,
);

/** Kind of each option. */
export const OPTION_KINDS: Readonly<Record<keyof Options, Kind>> = {
  abortController,
  addDirs: texts,
  additionalDirectories: texts,
  agent: nonEmptyText,
  agents: record,
  allowDangerouslySkipPermissions: flag,
  allowedMcpServerNames: texts,
  allowedTools: texts,
  auth: record,
  betas: texts,
  canUseTool: callback,
  cliPath: nonEmptyText,
  continue: flag,
  continueConversation: flag,
  controlRequestTimeoutMs: count,
  customContext: textRecord,
  cwd: nonEmptyText,
  disallowedTools: texts,
  effort: oneOf('low', 'medium', 'high', 'xhigh', 'max'),
  enableFileCheckpointing: flag,
  env: environmentRecord,
  executable: oneOf('node', 'bun', 'deno'),
  executableArgs: texts,
  extraArgs: argumentRecord,
  fallbackModel: nonEmptyText,
  forkSession: flag,
  forwardSubagentText: flag,
  goalMaxTurns: positiveCount,
  hooks: record,
  includeHookEvents: flag,
  includePartialMessages: flag,
  maxBudgetUsd: positiveNumber,
  maxThinkingTokens: count,
  maxTurns: positiveCount,
  mcpServers: either(record, nonEmptyText),
  model: nonEmptyText,
  onAuthExpired: callback,
  onElicitation: callback,
  onMcpOAuthRequired: callback,
  onMcpStatusChange: callback,
  outputFormat,
  pathToQoderCLIExecutable: nonEmptyText,
  permissionMode,
  permissionPromptToolName: nonEmptyText,
  persistSession: flag,
  planModeInstructions: text,
  plugins: arrayOf(plugin, 'an array of { type: "local", path }'),
  promptSuggestions: flag,
  proxy: nonEmptyText,
  resolveModel: callback,
  resolveModelTimeoutMs: positiveNumber,
  resume: nonEmptyText,
  resumeDropsTurn: nonEmptyText,
  resumeSessionAt: nonEmptyText,
  sandbox: record,
  sessionId: nonEmptyText,
  sessionStore: record,
  sessionStoreFlush: oneOf('batched', 'eager'),
  settings: either(record, nonEmptyText),
  settingSources: listOf('user', 'project', 'local'),
  skills: either(texts, oneOf('all')),
  spawnQoderCLIProcess: callback,
  stderr: callback,
  strictMcpConfig: flag,
  systemPrompt: either(either(text, preset), systemPromptFile),
  taskBudget: positiveCount,
  thinking,
  toolConfig: record,
  tools: either(texts, preset),
};
