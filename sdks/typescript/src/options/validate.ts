/**
 * Judges the options of `query()` before anything starts: names, kinds of values, and what excludes what.
 * The result has one spelling per option.
 */
import { resolveAuth, type ResolvedAuth } from '../auth.js';
import { OptionsError } from '../errors.js';
import { HOOK_EVENTS } from '../types/hooks.js';
import type { McpServerConfig } from '../types/mcp.js';
import type { Options } from '../types/options.js';
import { describeValue, isRecord } from './kinds.js';
import { nearestName } from './nearest.js';
import { OPTION_KINDS } from './table.js';

/** Options that have been judged, in one spelling. */
export interface CheckedOptions extends Omit<Options, 'auth' | 'addDirs' | 'continueConversation' | 'cliPath'> {
  /** The credentials that travel to the runtime. */
  resolvedAuth: ResolvedAuth | undefined;
  /** The environment of this process with `env` on top. */
  environment: Record<string, string | undefined>;
}

const ALIASES = [
  ['addDirs', 'additionalDirectories'],
  ['continueConversation', 'continue'],
  ['cliPath', 'pathToQoderCLIExecutable'],
] as const;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Judges options; throws an {@link OptionsError} that names the first thing that is wrong. */
export function checkOptions(given: Options | undefined): CheckedOptions {
  if (given !== undefined && !isRecord(given)) {
    throw new OptionsError(`options must be an object, not ${describeValue(given)}.`);
  }
  const options: Options = { ...given };
  checkNamesAndKinds(options as Record<string, unknown>);
  mergeAliases(options as Record<string, unknown>);
  checkExclusions(options);
  checkHooks(options);
  checkAgents(options);
  checkSkills(options);
  checkServers(options.mcpServers, 'options.mcpServers');
  const environment = { ...process.env, ...options.env };
  const { auth, ...rest } = options;
  return { ...rest, environment, resolvedAuth: resolveAuth(auth, environment) };
}

function checkNamesAndKinds(options: Record<string, unknown>): void {
  const names = Object.keys(OPTION_KINDS);
  for (const [name, value] of Object.entries(options)) {
    if (name === 'experimentalCloudAgent') {
      throw new OptionsError('options.experimentalCloudAgent is not available: sessions run on this machine.');
    }
    if (!Object.hasOwn(OPTION_KINDS, name)) {
      const near = nearestName(name, names);
      throw new OptionsError(
        `options.${name} does not exist.${near === undefined ? '' : ` Did you mean options.${near}?`}`,
      );
    }
    if (value === undefined || value === null) {
      delete options[name];
      continue;
    }
    const kind = OPTION_KINDS[name as keyof Options];
    if (!kind.accepts(value)) {
      throw new OptionsError(`options.${name} must be ${kind.words}, not ${describeValue(value)}.`);
    }
  }
}

function mergeAliases(options: Record<string, unknown>): void {
  for (const [alias, name] of ALIASES) {
    if (options[alias] === undefined) continue;
    if (options[name] !== undefined) {
      throw new OptionsError(`options.${alias} and options.${name} are the same option. Give one of them.`);
    }
    options[name] = options[alias];
    delete options[alias];
  }
}

function checkExclusions(options: Options): void {
  if (options.canUseTool && options.permissionPromptToolName) {
    throw new OptionsError(
      'options.canUseTool and options.permissionPromptToolName exclude each other. Give one of them.',
    );
  }
  const bypass = options.permissionMode === 'bypassPermissions' || options.permissionMode === 'yolo';
  if (bypass && options.allowDangerouslySkipPermissions !== true) {
    throw new OptionsError(
      `options.permissionMode "${options.permissionMode}" skips all permission checks. ` +
        'Also set options.allowDangerouslySkipPermissions to true if that is what you want.',
    );
  }
  if (options.resume !== undefined && options.continue) {
    throw new OptionsError('options.resume and options.continue exclude each other. Give one of them.');
  }
  if (options.forkSession && options.resume === undefined && !options.continue) {
    throw new OptionsError('options.forkSession needs options.resume: the session to fork from.');
  }
  if (options.resumeSessionAt !== undefined && options.resume === undefined) {
    throw new OptionsError('options.resumeSessionAt needs options.resume: the session it belongs to.');
  }
  if (options.resumeDropsTurn !== undefined && options.resumeSessionAt === undefined) {
    throw new OptionsError('options.resumeDropsTurn needs options.resumeSessionAt: the last message to keep.');
  }
  if (options.sessionId !== undefined) {
    if (!UUID.test(options.sessionId)) {
      throw new OptionsError(`options.sessionId must be a UUID, not ${describeValue(options.sessionId)}.`);
    }
    if ((options.resume !== undefined || options.continue) && !options.forkSession) {
      throw new OptionsError(
        'options.sessionId names a new session. To continue an old one under this ID, also set options.forkSession.',
      );
    }
  }
  checkStore(options);
}

function checkStore(options: Options): void {
  const store = options.sessionStore;
  if (store === undefined) return;
  if (typeof store.append !== 'function' || typeof store.load !== 'function') {
    throw new OptionsError('options.sessionStore must have the methods append and load.');
  }
  if (options.persistSession === false) {
    throw new OptionsError('options.sessionStore copies what is written; it cannot be used with persistSession: false.');
  }
  if (options.enableFileCheckpointing) {
    throw new OptionsError('options.sessionStore holds no file checkpoints; it excludes enableFileCheckpointing.');
  }
  if (options.resume !== undefined && !UUID.test(options.resume)) {
    const given = describeValue(options.resume);
    throw new OptionsError(`With options.sessionStore, options.resume must be the UUID of a session, not ${given}.`);
  }
  if (options.continue && typeof store.listSessions !== 'function') {
    throw new OptionsError('options.continue with options.sessionStore needs a store with the method listSessions.');
  }
  if (options.spawnQoderCLIProcess !== undefined) {
    throw new OptionsError(
      'options.sessionStore excludes options.spawnQoderCLIProcess: a stored session is laid out on this machine, ' +
        'and a runtime that is started in another way may not find it.',
    );
  }
}

function checkHooks(options: Options): void {
  for (const [event, matchers] of Object.entries(options.hooks ?? {})) {
    if (!(HOOK_EVENTS as readonly string[]).includes(event)) {
      const near = nearestName(event, HOOK_EVENTS);
      throw new OptionsError(
        `options.hooks.${event} is no hook event.${near === undefined ? '' : ` Did you mean ${near}?`}`,
      );
    }
    if (!Array.isArray(matchers)) {
      throw new OptionsError(`options.hooks.${event} must be an array of { matcher?, hooks, timeout? }.`);
    }
    for (const matcher of matchers as unknown[]) {
      const hooks = isRecord(matcher) ? matcher['hooks'] : undefined;
      if (!Array.isArray(hooks) || !hooks.every((hook) => typeof hook === 'function')) {
        throw new OptionsError(`Each entry of options.hooks.${event} needs hooks: an array of functions.`);
      }
      const { matcher: pattern, timeout } = matcher as Record<string, unknown>;
      if (pattern !== undefined && pattern !== null && typeof pattern !== 'string') {
        throw new OptionsError(`The matcher of options.hooks.${event} must be a string: a name or a regular expression.`);
      }
      if (timeout !== undefined && !(typeof timeout === 'number' && timeout > 0 && Number.isFinite(timeout))) {
        throw new OptionsError(`The timeout of options.hooks.${event} must be a number of seconds above 0.`);
      }
    }
  }
}

function checkAgents(options: Options): void {
  for (const [name, agent] of Object.entries(options.agents ?? {})) {
    for (const field of ['description', 'prompt'] as const) {
      if (!isRecord(agent) || typeof agent[field] !== 'string') {
        throw new OptionsError(`options.agents[${JSON.stringify(name)}].${field} must be a string.`);
      }
    }
    for (const server of agent.mcpServers ?? []) {
      if (typeof server === 'string') continue;
      if (isRecord(server) && Object.values(server).some((config) => config?.type === 'sdk')) {
        throw new OptionsError(
          `options.agents[${JSON.stringify(name)}].mcpServers has a server of this process. ` +
            'Put it into options.mcpServers and give its name here.',
        );
      }
    }
  }
}

function checkSkills(options: Options): void {
  for (const name of Array.isArray(options.skills) ? options.skills : []) {
    // Names become rules, so nothing in them may mean something in a rule or in a path.
    if (!/^(?:[A-Za-z0-9_-]{1,64}:)?[a-z0-9-]{1,64}$/.test(name)) {
      throw new OptionsError(`options.skills has ${JSON.stringify(name)}, which is no name of a skill.`);
    }
  }
}

/** Judges the kinds of MCP servers; used for the option and for `setMcpServers()`. */
export function checkServers(servers: Record<string, McpServerConfig> | string | undefined, place: string): void {
  if (servers === undefined || typeof servers === 'string') return;
  for (const [name, config] of Object.entries(servers)) {
    const where = `${place}[${JSON.stringify(name)}]`;
    if (!isRecord(config)) throw new OptionsError(`${where} must be an object, not ${describeValue(config)}.`);
    const type = config['type'] ?? 'stdio';
    if (type === 'sdk') {
      const instance = config['instance'];
      if (!isRecord(instance) || typeof instance['connect'] !== 'function') {
        throw new OptionsError(`${where}.instance must be what createSdkMcpServer() made, or an McpServer.`);
      }
    } else if (type === 'stdio') {
      if (typeof config['command'] !== 'string') throw new OptionsError(`${where}.command must be a string.`);
    } else if (type === 'sse' || type === 'http') {
      if (typeof config['url'] !== 'string') throw new OptionsError(`${where}.url must be a string.`);
    } else {
      throw new OptionsError(`${where}.type must be "stdio", "sse", "http" or "sdk", not ${describeValue(type)}.`);
    }
  }
}
