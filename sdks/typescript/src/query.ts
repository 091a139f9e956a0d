/**
 * `query()` and the object it returns. The methods are control requests; their answers are brought into the
 * form that the types promise.
 */
import { ControlRequestError, OptionsError } from './errors.js';
import { describeValue } from './options/kinds.js';
import { checkOptions, checkServers } from './options/validate.js';
import { type Prompt, Session } from './session.js';
import type { AgentInfo, EffortLevel } from './types/agents.js';
import type { SDKMessage, SDKUserMessage } from './types/messages.js';
import type {
  McpAuthenticateResult,
  McpServerConfig,
  McpServerStatus,
  McpSetServersResult,
  OAuthToken,
} from './types/mcp.js';
import type {
  BYOKProviderInfo,
  ModelInfo,
  SDKControlGetByokConfigResponse,
  UsageInfo,
} from './types/models.js';
import type { Options, Settings } from './types/options.js';
import type { PermissionMode, PermissionUpdate } from './types/permissions.js';
import type {
  AccountInfo,
  ContextUsage,
  InitializationResult,
  InterruptResult,
  ListedRow,
  PermissionRulesInfo,
  Query,
  PluginInfo,
  ReloadPluginsResult,
  RewindFilesResult,
  RewindResult,
  RewindScope,
  SlashCommand,
} from './types/query.js';

/**
 * Starts a session. A text is one task, and the session ends with it; a stream of messages keeps the session
 * open until the stream ends or `close()` is called. Options that are wrong throw at once.
 */
export function query(parameters: { prompt: Prompt; options?: Options }): Query {
  checkPrompt(parameters.prompt);
  const session = new Session(checkOptions(parameters.options));
  session.begin(parameters.prompt);
  return queryOf(session);
}

/** A session that has begun, as its user sees it. */
export function queryOf(session: Session): Query {
  return new SessionQuery(session);
}

/** Rejects a value that is not a prompt. */
export function checkPrompt(prompt: unknown): asserts prompt is Prompt {
  if (typeof prompt === 'string') return;
  const iterable = typeof prompt === 'object' && prompt !== null && Symbol.asyncIterator in prompt;
  if (!iterable) {
    throw new OptionsError(`prompt must be a string or an async iterable of messages, not ${describeValue(prompt)}.`);
  }
}

// Not exported: whether a class has all that generators have depends on the version of `@types/node`, which must not
// change the public declarations.
class SessionQuery implements Query {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  next(): Promise<IteratorResult<SDKMessage, void>> {
    return this.#session.next();
  }

  async return(): Promise<IteratorResult<SDKMessage, void>> {
    await this.#session.close();
    return { value: undefined, done: true };
  }

  async throw(error: unknown): Promise<IteratorResult<SDKMessage, void>> {
    await this.#session.close();
    throw error;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  initializationResult(): Promise<InitializationResult> {
    return this.#session.initialized;
  }

  async interrupt(): Promise<InterruptResult> {
    const answer = await this.#ask('interrupt');
    return { ...answer, still_queued: list(answer['still_queued']), cancelled: list(answer['cancelled']) };
  }

  async cancelAsyncMessage(uuid: string): Promise<boolean> {
    return (await this.#ask('cancel_async_message', { uuid }))['cancelled'] === true;
  }

  async setPermissionMode(mode: PermissionMode): Promise<void> {
    await this.#ask('set_permission_mode', { mode: mode === 'yolo' ? 'bypassPermissions' : mode });
  }

  async setModel(model?: string): Promise<void> {
    await this.#ask('set_model', { model: model ?? null });
  }

  async addDirectories(directories: string[]): Promise<{ added: string[] }> {
    const answer = await this.#ask('add_directories', { directories });
    return { ...answer, added: list(answer['added']) };
  }

  async stopTask(taskId: string): Promise<void> {
    await this.#ask('stop_task', { task_id: taskId });
  }

  async backgroundTasks(toolUseId?: string): Promise<boolean> {
    const answer = await this.#ask('background_tasks', toolUseId === undefined ? {} : { tool_use_id: toolUseId });
    return answer['moved'] === true;
  }

  async rewindFiles(userMessageId: string, options?: { dryRun?: boolean }): Promise<RewindFilesResult> {
    const answer = await this.#ask('rewind_files', {
      user_message_id: userMessageId,
      ...(options?.dryRun === undefined ? {} : { dry_run: options.dryRun }),
    });
    return { ...answer, canRewind: answer['canRewind'] !== false };
  }

  async rewind(
    userMessageId: string,
    options?: { scope?: RewindScope; dryRun?: boolean },
  ): Promise<RewindResult> {
    return this.#ask('rewind', {
      user_message_id: userMessageId,
      ...(options?.scope === undefined ? {} : { scope: options.scope }),
      ...(options?.dryRun === undefined ? {} : { dry_run: options.dryRun }),
    });
  }

  async mcpServerStatus(): Promise<McpServerStatus[]> {
    return list((await this.#ask('mcp_status'))['mcpServers']);
  }

  async setMcpServers(servers: Record<string, McpServerConfig>): Promise<McpSetServersResult> {
    checkServers(servers, 'setMcpServers()');
    const answer = await this.#session.setServers(servers);
    return {
      added: list(answer['added']),
      removed: list(answer['removed']),
      errors: (answer['errors'] ?? {}) as Record<string, string>,
    };
  }

  async reconnectMcpServer(serverName: string): Promise<void> {
    await this.#ask('mcp_reconnect', { serverName });
  }

  async toggleMcpServer(serverName: string, enabled: boolean): Promise<void> {
    await this.#ask('mcp_toggle', { serverName, enabled });
  }

  async mcpAuthenticate(serverName: string, redirectUri?: string): Promise<McpAuthenticateResult> {
    const answer = await this.#ask('mcp_authenticate', {
      serverName,
      ...(redirectUri === undefined ? {} : { redirectUri }),
    });
    return { ...answer, requiresUserAction: answer['requiresUserAction'] === true };
  }

  async mcpSubmitOAuthCallbackUrl(serverName: string, callbackUrl: string): Promise<void> {
    await this.#ask('mcp_submit_oauth_callback_url', { serverName, callbackUrl });
  }

  async injectMcpToken(serverName: string, token: OAuthToken): Promise<void> {
    await this.#ask('inject_mcp_token', { serverName, token });
  }

  async mcpClearAuth(serverName: string): Promise<void> {
    await this.#ask('mcp_clear_auth', { serverName });
  }

  async getAvailableModels(options?: { fetchStrategy?: 'live' }): Promise<ModelInfo[]> {
    const strategy = options?.fetchStrategy;
    const answer = await this.#askOrNothing(
      'get_available_models',
      strategy === undefined ? {} : { fetchStrategy: strategy },
    );
    return list(answer?.['models']);
  }

  async supportedModels(): Promise<ModelInfo[]> {
    const models = await this.getAvailableModels();
    return models.length > 0 ? models : (await this.#session.initialized).models;
  }

  async listByokProviders(): Promise<BYOKProviderInfo[] | null> {
    const answer = (await this.#askOrNothing('get_byok_config')) as SDKControlGetByokConfigResponse | null;
    return answer === null ? null : list(answer.providers);
  }

  async getUsageInfo(): Promise<UsageInfo | null> {
    return ((await this.#ask('get_usage_info'))['usageInfo'] ?? null) as UsageInfo | null;
  }

  async getContextUsage(): Promise<ContextUsage> {
    return (await this.#ask('get_context_usage')) as unknown as ContextUsage;
  }

  async accountInfo(): Promise<AccountInfo> {
    return ((await this.#ask('account_info'))['account'] ?? {}) as AccountInfo;
  }

  async supportedCommands(): Promise<SlashCommand[]> {
    return list((await this.#ask('supported_commands'))['commands']);
  }

  async supportedAgents(): Promise<AgentInfo[]> {
    return list((await this.#ask('supported_agents'))['agents']);
  }

  async listAgents(): Promise<ListedRow[]> {
    return list((await this.#ask('list_agents'))['agents']);
  }

  async listHooks(): Promise<ListedRow[]> {
    return list((await this.#ask('list_hooks'))['hooks']);
  }

  async listSkills(): Promise<ListedRow[]> {
    return list((await this.#ask('list_skills'))['skills']);
  }

  async listMemory(): Promise<ListedRow[]> {
    return list((await this.#ask('list_memory'))['files']);
  }

  async listTools(): Promise<ListedRow[]> {
    return list((await this.#ask('list_tools'))['tools']);
  }

  async listPermissionRules(): Promise<PermissionRulesInfo> {
    const answer = await this.#ask('list_permission_rules');
    return { ...answer, mode: String(answer['mode'] ?? ''), rules: list(answer['rules']) };
  }

  async updatePermissions(updates: PermissionUpdate[]): Promise<void> {
    await this.#ask('update_permissions', { updates });
  }

  async setEffort(effort: EffortLevel | null): Promise<void> {
    await this.#ask('set_effort', { effort });
  }

  async setSessionTitle(title: string): Promise<void> {
    await this.#ask('set_session_title', { title });
  }

  async runCommand(command: string): Promise<void> {
    await this.#ask('run_command', { command });
  }

  async taskOutput(taskId: string): Promise<string> {
    return String((await this.#ask('task_output', { task_id: taskId }))['output'] ?? '');
  }

  async reloadMcpServers(): Promise<Record<string, unknown>> {
    return this.#ask('mcp_reload');
  }

  async listPlugins(): Promise<PluginInfo[]> {
    return list((await this.#ask('list_plugins'))['plugins']);
  }

  async reloadPlugins(): Promise<ReloadPluginsResult> {
    const answer = await this.#ask('reload_plugins');
    return {
      commands: list(answer['commands']),
      agents: list(answer['agents']),
      plugins: list(answer['plugins']),
      mcpServers: list(answer['mcpServers']),
      error_count: Number(answer['error_count'] ?? 0),
    };
  }

  async generateSessionTitle(description: string, options?: { persist?: boolean }): Promise<string | null> {
    const answer = await this.#ask('generate_session_title', {
      description,
      ...(options?.persist === undefined ? {} : { persist: options.persist }),
    });
    return (answer['title'] ?? null) as string | null;
  }

  async setGoalMaxTurns(maxTurns: number | null): Promise<void> {
    await this.#ask('set_goal_max_turns', { maxTurns });
  }

  async applyFlagSettings(settings: Settings): Promise<void> {
    await this.#ask('apply_flag_settings', { settings });
  }

  async streamInput(stream: AsyncIterable<SDKUserMessage>): Promise<void> {
    checkPrompt(stream);
    if (await this.#session.send(stream)) return;
    throw new ControlRequestError('stream_input', 'The session ended before all messages were sent.');
  }

  close(): Promise<void> {
    return this.#session.close();
  }

  #ask(subtype: string, fields: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    return this.#session.request({ subtype, ...fields });
  }

  /** For questions to which "no answer" is an answer. */
  async #askOrNothing(
    subtype: string,
    fields: Record<string, unknown> = {},
  ): Promise<Record<string, unknown> | null> {
    try {
      return await this.#ask(subtype, fields);
    } catch (thrown) {
      if (thrown instanceof ControlRequestError) return null;
      throw thrown;
    }
  }
}

// `await using` ends a session too, where the engine knows the symbol for it.
const asyncDispose = (Symbol as { asyncDispose?: symbol }).asyncDispose;
if (asyncDispose !== undefined) {
  Object.defineProperty(SessionQuery.prototype, asyncDispose, {
    value(this: SessionQuery): Promise<void> {
      return this.close();
    },
  });
}

function list<Element>(value: unknown): Element[] {
  return Array.isArray(value) ? (value as Element[]) : [];
}
