/**
 * Everything that this package offers. What is not exported here may change at any time.
 */
export { query } from './query.js';
export { startup, type WarmQuery } from './startup.js';
export {
  resolveSettings,
  type ResolvedSetting,
  type ResolvedSettings,
  type ResolveSettingsOptions,
} from './resolve-settings.js';
export type { Prompt } from './session.js';

export {
  accessToken,
  accessTokenFromEnv,
  qodercliAuth,
  type AccessTokenAuth,
  type AuthOptions,
  type QodercliAuth,
} from './auth.js';

export {
  tool,
  type CallToolResult,
  type McpToolResultContent,
  type SdkMcpToolDefinition,
  type ToolAnnotations,
  type ToolExtras,
  type ToolInvocationContext,
} from './mcp/tool.js';
export { createSdkMcpServer, type CreateSdkMcpServerOptions } from './mcp/server.js';
export type { AnyZodField, AnyZodRawShape, InferShape } from './mcp/shapes.js';

export {
  deleteSession,
  forkSession,
  getSessionInfo,
  getSessionMessages,
  getSubagentMessages,
  listSessions,
  listSubagents,
  renameSession,
  tagSession,
} from './sessions/functions.js';
export { InMemorySessionStore } from './sessions/memory-store.js';

export {
  AbortError,
  AuthAccessTokenEnvVarError,
  AuthNotConfiguredError,
  ControlRequestError,
  ControlRequestTimeoutError,
  MessageDecodeError,
  ModelPolicyTimeoutError,
  OptionsError,
  ProtocolVersionMismatchError,
  QoderAgentError,
  QoderCliNotFoundError,
  QoderCliProcessError,
  SessionNotFoundError,
  SessionStoreError,
  UnsupportedCliCapabilityError,
  type ProcessEnd,
} from './errors.js';

export type { SpawnedProcess, SpawnOptions, SpawnQoderCLIProcess } from './process.js';
export { HOOK_EVENTS } from './types/hooks.js';
export type * from './types/agents.js';
export type * from './types/content.js';
export type * from './types/hooks.js';
export type * from './types/mcp.js';
export type * from './types/messages.js';
export type * from './types/models.js';
export type * from './types/options.js';
export type * from './types/permissions.js';
export type * from './types/query.js';
export type * from './types/session-types.js';
export type * from './types/system-messages.js';
export type * from './types/tool-inputs.js';
export type * from './types/tool-outputs.js';
export { PROTOCOL_VERSION, SDK_VERSION } from './version.js';
