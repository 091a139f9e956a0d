/**
 * Turns judged options into the command line of the runtime. Callbacks, agents and credentials are not here:
 * they travel in the `initialize` request.
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

import { errorText, OptionsError } from '../errors.js';
import type { McpServerConfig } from '../types/mcp.js';
import { isRecord } from './kinds.js';
import { mayHoldSecrets } from './private-file.js';
import { impliesSources } from './sources.js';
import type { CheckedOptions } from './validate.js';

const FIXED = ['--output-format', 'stream-json', '--verbose', '--input-format', 'stream-json'];

/** Puts a text into a private file and gives back its path. */
export type Hide = (content: string) => string;

/** The command line, without the executable. What may hold secrets is hidden, if there is a way to. */
export function commandLine(options: CheckedOptions, hide?: Hide): string[] {
  return [
    ...FIXED,
    '--disable-builtin-skills',
    ...promptArguments(options),
    ...toolArguments(options),
    ...modelArguments(options),
    ...sessionArguments(options),
    ...componentArguments(options),
    ...serverArguments(options, hide),
    ...extraArguments(options.extraArgs),
  ];
}

function promptArguments(options: CheckedOptions): string[] {
  const prompt = options.systemPrompt;
  if (prompt === undefined) return [];
  if (typeof prompt === 'string') return ['--system-prompt', prompt];
  if (prompt.type === 'file') return ['--system-prompt-file', prompt.path];
  return prompt.append === undefined ? [] : ['--append-system-prompt', prompt.append];
}

function toolArguments(options: CheckedOptions): string[] {
  const list: string[] = [];
  if (options.tools !== undefined) {
    list.push('--tools', Array.isArray(options.tools) ? options.tools.join(',') : 'default');
  }
  const allowed = [...(options.allowedTools ?? []), ...skillRules(options.skills)];
  if (allowed.length > 0) list.push('--allowedTools', allowed.join(','));
  const disallowed = options.disallowedTools ?? [];
  if (disallowed.length > 0) list.push('--disallowedTools', disallowed.join(','));
  const promptTool = options.canUseTool ? 'stdio' : options.permissionPromptToolName;
  if (promptTool !== undefined) list.push('--permission-prompt-tool', promptTool);
  if (options.permissionMode !== undefined) {
    const mode = options.permissionMode === 'yolo' ? 'bypassPermissions' : options.permissionMode;
    list.push('--permission-mode', mode);
  }
  if (options.allowDangerouslySkipPermissions) list.push('--allow-dangerously-skip-permissions');
  for (const directory of options.additionalDirectories ?? []) list.push('--add-dir', directory);
  return list;
}

/** Rules that let skills be used. */
function skillRules(skills: string[] | 'all' | undefined): string[] {
  if (skills === undefined) return [];
  if (skills === 'all') return ['Skill'];
  return skills.map((name) => `Skill(${name})`);
}

function modelArguments(options: CheckedOptions): string[] {
  const list: string[] = [];
  const add = (name: string, value: string | number | undefined): void => {
    if (value !== undefined) list.push(name, String(value));
  };
  add('--model', options.model);
  add('--fallback-model', options.fallbackModel);
  add('--max-turns', options.maxTurns);
  add('--max-budget-usd', options.maxBudgetUsd);
  add('--task-budget', options.taskBudget);
  add('--betas', options.betas?.length ? options.betas.join(',') : undefined);
  add('--effort', options.effort);
  add('--json-schema', options.outputFormat && JSON.stringify(options.outputFormat.schema));
  const thinking = options.thinking;
  let budget = options.maxThinkingTokens;
  if (thinking !== undefined) {
    if (thinking.type === 'enabled') budget = thinking.budgetTokens ?? thinking.budget_tokens ?? budget;
    add('--thinking', thinking.type === 'disabled' ? 'disabled' : budget === undefined ? 'adaptive' : undefined);
    if (thinking.type !== 'disabled') add('--thinking-display', thinking.display);
  }
  add('--max-thinking-tokens', budget);
  return list;
}

function sessionArguments(options: CheckedOptions): string[] {
  const list: string[] = [];
  if (options.continue) list.push('--continue');
  if (options.resume !== undefined) list.push(`--resume=${options.resume}`);
  if (options.sessionId !== undefined) list.push(`--session-id=${options.sessionId}`);
  if (options.forkSession) list.push('--fork-session');
  if (options.resumeSessionAt !== undefined) list.push(`--resume-session-at=${options.resumeSessionAt}`);
  if (options.resumeDropsTurn !== undefined) list.push(`--resume-drops-turn=${options.resumeDropsTurn}`);
  if (options.persistSession === false) list.push('--no-session-persistence');
  if (options.sessionStore !== undefined) list.push('--session-mirror');
  return list;
}

function componentArguments(options: CheckedOptions): string[] {
  const list: string[] = [];
  const settings = settingsArgument(options);
  if (settings !== undefined) list.push('--settings', settings);
  const sources = impliesSources(options) ? ['user', 'project'] : options.settingSources;
  if (sources !== undefined) list.push(`--setting-sources=${sources.join(',')}`);
  if (options.agent !== undefined) list.push('--agent', options.agent);
  for (const plugin of options.plugins ?? []) {
    list.push('--plugin-dir', resolve(options.cwd ?? process.cwd(), plugin.path));
  }
  if (options.includePartialMessages) list.push('--include-partial-messages');
  if (options.includeHookEvents) list.push('--include-hook-events');
  return list;
}

function serverArguments(options: CheckedOptions, hide: Hide | undefined): string[] {
  const list: string[] = [];
  const servers = options.mcpServers;
  if (typeof servers === 'string') {
    list.push('--mcp-config', servers);
  } else if (servers !== undefined && Object.keys(servers).length > 0) {
    const described = JSON.stringify({ mcpServers: describeServers(servers) });
    list.push('--mcp-config', hide && mayHoldSecrets(servers) ? hide(described) : described);
  }
  if (options.strictMcpConfig) list.push('--strict-mcp-config');
  const names = options.allowedMcpServerNames ?? [];
  if (names.length > 0) list.push('--allowed-mcp-server-names', names.join(','));
  return list;
}

/** Server configurations as the runtime reads them: what answers in this process stays here. */
export function describeServers(servers: Record<string, McpServerConfig>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(servers).map(([name, config]) => {
      if (config.type !== 'sdk') return [name, config];
      return [name, { type: 'sdk', name, ...(config.tools ? { tools: config.tools } : {}) }];
    }),
  );
}

/** The settings with the sandbox in them. A file is only read when something must be added to it. */
function settingsArgument(options: CheckedOptions): string | undefined {
  const { settings, sandbox } = options;
  if (sandbox === undefined) {
    return typeof settings === 'object' ? JSON.stringify(settings) : settings;
  }
  const base = typeof settings === 'string' ? readSettings(settings, options.cwd) : (settings ?? {});
  return JSON.stringify({ ...base, sandbox });
}

function readSettings(textOrPath: string, cwd: string | undefined): Record<string, unknown> {
  const trimmed = textOrPath.trim();
  const inline = trimmed.startsWith('{') && trimmed.endsWith('}');
  try {
    const content = inline ? trimmed : readFileSync(resolve(cwd ?? process.cwd(), textOrPath), 'utf8');
    const parsed: unknown = JSON.parse(content.replace(/^\uFEFF/, ''));
    if (isRecord(parsed)) return parsed;
    throw new Error('it is no JSON object');
  } catch (thrown) {
    throw new OptionsError(
      `options.sandbox cannot be added to the settings ${inline ? 'text' : textOrPath}: ${errorText(thrown)}. ` +
        'Pass options.settings as an object.',
    );
  }
}

function extraArguments(extra: Record<string, string | null> | undefined): string[] {
  const list: string[] = [];
  for (const [name, value] of Object.entries(extra ?? {})) {
    if (value === null) list.push(`--${name}`);
    else if (value.startsWith('-')) list.push(`--${name}=${value}`);
    else list.push(`--${name}`, value);
  }
  return list;
}
