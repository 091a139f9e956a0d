/**
 * The object that `query()` returns: a stream of messages with methods for the running session, and the
 * results of those methods.
 */
import type { AgentInfo, EffortLevel } from './agents.js';
import type { SDKMessage, SDKUserMessage } from './messages.js';
import type {
  McpAuthenticateResult,
  McpServerConfig,
  McpServerStatus,
  McpSetServersResult,
  OAuthToken,
} from './mcp.js';
import type { BYOKProviderInfo, ModelInfo, UsageInfo } from './models.js';
import type { Settings } from './options.js';
import type { PermissionMode, PermissionUpdate } from './permissions.js';

/** A slash command of the session. */
export interface SlashCommand {
  name: string;
  description: string;
  argumentHint: string;
}

/** A row of a list of what the session has; which fields there are depends on the list. */
export interface ListedRow {
  name?: string;
  path?: string;
  description?: string | null;
  [key: string]: unknown;
}

/** The permission mode and the rules in force. */
export interface PermissionRulesInfo {
  mode: string;
  rules: { behavior: 'allow' | 'ask' | 'deny'; rule: string; origin?: unknown }[];
  /** False when the folder is not trusted, so that its own rules do not count. */
  trusted?: boolean;
}

/** Who the session works for. */
export interface AccountInfo {
  email?: string;
  organization?: string;
  subscriptionType?: string;
  tokenSource?: string;
  apiKeySource?: string;
  [key: string]: unknown;
}

/** What the runtime said when the session was set up. */
export interface InitializationResult {
  commands: SlashCommand[];
  agents: AgentInfo[];
  models: ModelInfo[];
  account: AccountInfo;
  output_style: string;
  skills: unknown[];
  plugins: PluginInfo[];
  protocol_version: number | string;
  qodercli_version: string;
  capabilities: string[];
  session_id?: string;
  pid?: number;
  [key: string]: unknown;
}

/** Which messages of the user an interrupt left in the queue, and which it removed. */
export interface InterruptResult {
  still_queued: string[];
  cancelled?: string[];
}

/** What rewinding did, or would do. */
export interface RewindFilesResult {
  canRewind: boolean;
  error?: string;
  filesChanged?: string[];
  /** Lines that come back into files. */
  insertions?: number;
  /** Lines that go from files. */
  deletions?: number;
  /** Places that are left alone because a link leads elsewhere by now. */
  skippedLinks?: string[];
  /** Files that something else than a file tool has changed as well; that goes too. */
  changedElsewhere?: string[];
}

/** What is rewound. */
export type RewindScope = 'both' | 'conversation' | 'files';

/** What rewinding a session did, or would do. */
export interface RewindResult extends Partial<RewindFilesResult> {
  /** Messages that the model no longer sees. */
  messagesRemoved?: number;
  [key: string]: unknown;
}

/** What fills the context window. */
export interface ContextUsage {
  categories: Array<{ name: string; tokens: number; color?: string; isDeferred?: boolean }>;
  totalTokens: number;
  maxTokens: number;
  rawMaxTokens: number;
  /** 0 to 100. */
  percentage: number;
  model: string;
  isAutoCompactEnabled: boolean;
  [key: string]: unknown;
}

/** A plugin of the session. */
export interface PluginInfo {
  name: string;
  /** Its folder. */
  path: string;
  /** `inline` for one of the option `plugins`, else its identifier such as `name@local`. */
  source?: string;
  version?: string;
  description?: string | null;
  /** How many definitions of each kind it brings. */
  parts?: Record<string, number>;
  /** What could not be loaded, with file and line. */
  errors?: string[];
  [key: string]: unknown;
}

/** What loading the plugins again brought. */
export interface ReloadPluginsResult {
  commands: SlashCommand[];
  agents: AgentInfo[];
  plugins: PluginInfo[];
  mcpServers: McpServerStatus[];
  /** How many parts of plugins could not be loaded. */
  error_count: number;
}

/**
 * A running session. Iterate over it for the messages; leave the loop and the session ends. The methods work
 * while the session is open: until the run is over for a text prompt, until `close()` or the end of the input
 * for a stream of prompts.
 */
export interface Query extends AsyncGenerator<SDKMessage, void> {
  /** What the runtime said at the start; waits for it. */
  initializationResult(): Promise<InitializationResult>;
  /** Stops the current reply or tool. The session stays open. */
  interrupt(): Promise<InterruptResult>;
  /** Takes a message out of the queue; false when it is too late. */
  cancelAsyncMessage(uuid: string): Promise<boolean>;
  setPermissionMode(mode: PermissionMode): Promise<void>;
  /** Another model from the next request on; none means the default. */
  setModel(model?: string): Promise<void>;
  /** Gives the session access to more directories. */
  addDirectories(directories: string[]): Promise<{ added: string[] }>;
  stopTask(taskId: string): Promise<void>;
  /** Moves running calls to the background; false when there was none. */
  backgroundTasks(toolUseId?: string): Promise<boolean>;
  /** Restores files as they were before a message of the user. */
  rewindFiles(userMessageId: string, options?: { dryRun?: boolean }): Promise<RewindFilesResult>;
  /** Goes back to a message of the user: the conversation, the files or both. */
  rewind(userMessageId: string, options?: { scope?: RewindScope; dryRun?: boolean }): Promise<RewindResult>;
  mcpServerStatus(): Promise<McpServerStatus[]>;
  /** Replaces all servers; those not named are removed. */
  setMcpServers(servers: Record<string, McpServerConfig>): Promise<McpSetServersResult>;
  reconnectMcpServer(serverName: string): Promise<void>;
  toggleMcpServer(serverName: string, enabled: boolean): Promise<void>;
  mcpAuthenticate(serverName: string, redirectUri?: string): Promise<McpAuthenticateResult>;
  mcpSubmitOAuthCallbackUrl(serverName: string, callbackUrl: string): Promise<void>;
  injectMcpToken(serverName: string, token: OAuthToken): Promise<void>;
  mcpClearAuth(serverName: string): Promise<void>;
  /** The models that can be chosen now; an empty list when they cannot be fetched. */
  getAvailableModels(options?: { fetchStrategy?: 'live' }): Promise<ModelInfo[]>;
  /** The models that can be chosen now; those that the runtime named at the start when they cannot be fetched. */
  supportedModels(): Promise<ModelInfo[]>;
  /** The providers for which a user can bring a key; null when the runtime has no such list. */
  listByokProviders(): Promise<BYOKProviderInfo[] | null>;
  getUsageInfo(): Promise<UsageInfo | null>;
  getContextUsage(): Promise<ContextUsage>;
  accountInfo(): Promise<AccountInfo>;
  /** The slash commands that can be used now. */
  supportedCommands(): Promise<SlashCommand[]>;
  /** The agents that can be used now. */
  supportedAgents(): Promise<AgentInfo[]>;
  /** Every definition of an agent with its source, shadowed ones included. */
  listAgents(): Promise<ListedRow[]>;
  /** The hooks that the settings define. */
  listHooks(): Promise<ListedRow[]>;
  listSkills(): Promise<ListedRow[]>;
  /** The memory files that the model has read. */
  listMemory(): Promise<ListedRow[]>;
  /** The tools that the model sees, with their annotations. */
  listTools(): Promise<ListedRow[]>;
  /** The permission mode and the rules in force, with the file and line of each. */
  listPermissionRules(): Promise<PermissionRulesInfo>;
  /** Changes rules, the mode or the directories. */
  updatePermissions(updates: PermissionUpdate[]): Promise<void>;
  /** The effort from the next model call on; null is the default of the model. */
  setEffort(effort: EffortLevel | null): Promise<void>;
  setSessionTitle(title: string): Promise<void>;
  /** Runs a command in the shell, as the user; the model reads its output with the next prompt. */
  runCommand(command: string): Promise<void>;
  /** The end of what a background task has printed. */
  taskOutput(taskId: string): Promise<string>;
  /** Reads the descriptions of MCP servers in settings and files again. */
  reloadMcpServers(): Promise<Record<string, unknown>>;
  listPlugins(): Promise<PluginInfo[]>;
  reloadPlugins(): Promise<ReloadPluginsResult>;
  generateSessionTitle(description: string, options?: { persist?: boolean }): Promise<string | null>;
  /** Limits the turns of a running goal; null removes the limit. */
  setGoalMaxTurns(maxTurns: number | null): Promise<void>;
  /** Adds to the settings of the running session; the last value of each key counts. */
  applyFlagSettings(settings: Settings): Promise<void>;
  /** Sends more messages; resolves when the stream has ended. */
  streamInput(stream: AsyncIterable<SDKUserMessage>): Promise<void>;
  /** Ends the session and its process. */
  close(): Promise<void>;
}
