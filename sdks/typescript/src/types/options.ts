/**
 * The options of `query()`. Every name that is not here is refused, with the nearest one in the message; see
 * `options/validate.ts` for what excludes what.
 */
import type { SpawnQoderCLIProcess } from '../process.js';
import type { AuthOptions } from '../auth.js';
import type { AgentDefinition, EffortLevel } from './agents.js';
import type { HooksOption } from './hooks.js';
import type { McpServerConfig, OnElicitation, OnMcpOAuthRequired, OnMcpStatusChange } from './mcp.js';
import type { ModelPolicyProvider } from './models.js';
import type { CanUseTool, PermissionMode } from './permissions.js';
import type { SessionStore } from './session-types.js';

/** Which settings files are read. */
export type SettingSource = 'user' | 'project' | 'local';

/** Settings, as in a settings file. */
export type Settings = Record<string, unknown>;

/** A plugin in a directory. */
export interface SdkPluginConfig {
  type: 'local';
  /** Absolute, or relative to `cwd`. */
  path: string;
}

/** A system prompt: your own text, the built-in one with an addition, or a file. */
export type SystemPromptOption =
  | string
  | { type: 'preset'; preset: 'qodercli'; append?: string; excludeDynamicSections?: boolean }
  | { type: 'file'; path: string };

/** All built-in tools. */
export interface ToolsPreset {
  type: 'preset';
  preset: 'qodercli';
}

/** How the model thinks. */
export type ThinkingConfig =
  | { type: 'adaptive'; display?: 'summarized' | 'omitted' }
  | { type: 'enabled'; budgetTokens?: number; budget_tokens?: number; display?: 'summarized' | 'omitted' }
  | { type: 'disabled' };

/** How certain built-in tools behave. */
export interface ToolConfig {
  askUserQuestion?: { previewFormat?: 'markdown' | 'html' };
}

/** What confines commands. */
export interface SandboxSettings {
  enabled?: boolean;
  autoAllowBashIfSandboxed?: boolean;
  excludedCommands?: string[];
  allowUnsandboxedCommands?: boolean;
  network?: Record<string, unknown>;
  filesystem?: Record<string, unknown>;
  ignoreViolations?: { file?: string[]; network?: string[] };
  enableWeakerNestedSandbox?: boolean;
}

/** The form of the final answer. */
export interface JsonSchemaOutputFormat {
  type: 'json_schema';
  schema: Record<string, unknown>;
}

/** Options that have two spellings, of which one may be used. */
interface AliasedOptions {
  /** More directories that the session may use. */
  additionalDirectories?: string[];
  /** Same as `additionalDirectories`. */
  addDirs?: string[];
  /** Continues the newest session of `cwd`. */
  continue?: boolean;
  /** Same as `continue`. */
  continueConversation?: boolean;
  /** The runtime to start. */
  pathToQoderCLIExecutable?: string;
  /** Same as `pathToQoderCLIExecutable`. */
  cliPath?: string;
}

/** Options about tools and who may use them. */
interface PermissionOptions {
  /** The only tools the model sees; none with `[]`. Left out: all. */
  tools?: string[] | ToolsPreset;
  /** Rules for what runs without a question. */
  allowedTools?: string[];
  /** Rules for what never runs. */
  disallowedTools?: string[];
  /** Decides what the rules leave open. */
  canUseTool?: CanUseTool;
  permissionMode?: PermissionMode;
  /** Must be true for `bypassPermissions` and `yolo`. */
  allowDangerouslySkipPermissions?: boolean;
  /** An MCP tool that answers instead of `canUseTool`. */
  permissionPromptToolName?: string;
  /** What confines commands; becomes part of `settings`. */
  sandbox?: SandboxSettings;
  toolConfig?: ToolConfig;
  /** Replaces the instructions of plan mode. */
  planModeInstructions?: string;
}

/** Options about the model. */
interface ModelOptions {
  model?: string;
  /** Used when the main model fails. */
  fallbackModel?: string;
  /** Chooses the model before each request; `model` is then not used. */
  resolveModel?: ModelPolicyProvider;
  /** Limit for `resolveModel`; 500 when left out. */
  resolveModelTimeoutMs?: number;
  systemPrompt?: SystemPromptOption;
  thinking?: ThinkingConfig;
  maxThinkingTokens?: number;
  effort?: EffortLevel;
  maxTurns?: number;
  maxBudgetUsd?: number;
  /** Tokens that a task may use. */
  taskBudget?: number;
  betas?: string[];
  outputFormat?: JsonSchemaOutputFormat;
  promptSuggestions?: boolean;
  /** What agents say and think is among the messages; without it only their calls and results are. */
  forwardSubagentText?: boolean;
  goalMaxTurns?: number;
}

/** Options about what is kept, and where a session begins. */
interface SessionOptions {
  /** The id of the new session, a UUID. */
  sessionId?: string;
  /** The session to continue. */
  resume?: string;
  /** With `resume`: continue under a new id and leave the old session as it is. */
  forkSession?: boolean;
  /** With `resume`: the id of the last message to keep. */
  resumeSessionAt?: string;
  /** With `resumeSessionAt`: the id of the prompt whose turn is dropped. */
  resumeDropsTurn?: string;
  /** False writes no transcript. */
  persistSession?: boolean;
  sessionStore?: SessionStore;
  /** When copies go to the store: at the end of a turn, or at once. */
  sessionStoreFlush?: 'batched' | 'eager';
  enableFileCheckpointing?: boolean;
  /** Strings that are attached to messages. */
  customContext?: Record<string, string>;
}

/** Options about what the session is made of. */
interface ComponentOptions {
  /** Servers by name, or the path of a JSON file with them. */
  mcpServers?: Record<string, McpServerConfig> | string;
  /** The only servers outside this process that are used. Empty: all. */
  allowedMcpServerNames?: string[];
  /** Only the servers given here. */
  strictMcpConfig?: boolean;
  hooks?: HooksOption;
  agents?: Record<string, AgentDefinition>;
  /** The agent that runs the main session. */
  agent?: string;
  plugins?: SdkPluginConfig[];
  /** Skills that may be used. */
  skills?: string[] | 'all';
  /** Settings, or the path of a file with them. They win over the files of `settingSources`. */
  settings?: string | Settings;
  /**
   * Which settings files are read. Left out: all; `[]`: none. Listing `project` or `local` vouches for the working
   * directory: its settings, rules, skills, agents and `AGENTS.md` count in this session. Left out vouches for nothing.
   */
  settingSources?: SettingSource[];
}

/** Options about the process of the runtime and the traffic with it. */
interface ProcessOptions {
  cwd?: string;
  /** Added to the environment of the runtime; undefined removes a variable. */
  env?: Record<string, string | undefined>;
  /** What runs the runtime if it is a script. */
  executable?: 'node' | 'bun' | 'deno';
  /** Arguments of `executable`. */
  executableArgs?: string[];
  /** More flags: name without dashes, and its value or null. */
  extraArgs?: Record<string, string | null>;
  /** Starts the runtime in another way, for example in a container. */
  spawnQoderCLIProcess?: SpawnQoderCLIProcess;
  /** Called with each line of diagnostics. */
  stderr?: (data: string) => void;
  /** Ends the session. */
  abortController?: AbortController;
  /** Limit for answers of the runtime; 60000 when left out, 0 for none. */
  controlRequestTimeoutMs?: number;
  /** Proxy for the runtime's own requests. */
  proxy?: string;
  /** Adds pieces of replies to the stream. */
  includePartialMessages?: boolean;
  /** Adds the life of hooks to the stream. */
  includeHookEvents?: boolean;
}

/** Options about the account, and what the runtime may ask of the host. */
interface HostOptions {
  auth?: AuthOptions;
  /** Called once when the credentials are no longer accepted. */
  onAuthExpired?: (context: { reason: string }) => void | { accessToken?: string } | Promise<void | { accessToken?: string }>;
  onMcpOAuthRequired?: OnMcpOAuthRequired;
  onMcpStatusChange?: OnMcpStatusChange;
  onElicitation?: OnElicitation;
}

/** The options of `query()`. */
export interface Options
  extends AliasedOptions,
    PermissionOptions,
    ModelOptions,
    SessionOptions,
    ComponentOptions,
    ProcessOptions,
    HostOptions {}
