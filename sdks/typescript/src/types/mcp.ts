/**
 * MCP servers: how they are configured, how they are doing, and what they may ask of the host (OAuth and
 * user input). The in-process kind is made by `createSdkMcpServer()`.
 */

/** What may be done with one tool of a server. */
export interface McpServerToolPolicy {
  name: string;
  permission_policy: 'always_allow' | 'always_ask' | 'always_deny';
}

/** A server that is a child process of the session. */
export interface McpStdioServerConfig {
  type?: 'stdio';
  command: string;
  args?: string[];
  env?: Record<string, string>;
  tools?: McpServerToolPolicy[];
}

/** A server reached by server-sent events. */
export interface McpSSEServerConfig {
  type: 'sse';
  url: string;
  headers?: Record<string, string>;
  tools?: McpServerToolPolicy[];
}

/** A server reached by streamable HTTP. */
export interface McpHttpServerConfig {
  type: 'http';
  url: string;
  headers?: Record<string, string>;
  tools?: McpServerToolPolicy[];
}

/** Something that speaks MCP over a transport, such as an `McpServer` of `@modelcontextprotocol/sdk`. */
export interface ConnectableMcpServer {
  // Parameters of that package's own transport type would tie this one to its versions.
  connect(transport: any): Promise<void>;
  close?(): Promise<void>;
}

/** A server in this process. */
export interface McpSdkServerConfig {
  type: 'sdk';
  name: string;
  tools?: McpServerToolPolicy[];
}

/** A server in this process together with what answers for it. */
export interface McpSdkServerConfigWithInstance extends McpSdkServerConfig {
  instance: ConnectableMcpServer;
}

/** The configuration of one server. */
export type McpServerConfig =
  | McpStdioServerConfig
  | McpSSEServerConfig
  | McpHttpServerConfig
  | McpSdkServerConfigWithInstance;

/** How a server is doing. */
export type McpServerConnectionStatus =
  | 'pending'
  | 'connecting'
  | 'connected'
  | 'failed'
  | 'needs-auth'
  | 'disabled';

/** Hints of a tool as the status shows them: without `Hint`, and only those that were set. */
export interface McpToolAnnotations {
  readOnly?: boolean;
  destructive?: boolean;
  openWorld?: boolean;
}

/** One tool of a server. */
export interface McpToolInfo {
  name: string;
  description?: string;
  annotations?: McpToolAnnotations;
}

/** One row of `mcpServerStatus()`. */
export interface McpServerStatus {
  name: string;
  status: McpServerConnectionStatus;
  serverInfo?: { name: string; version: string; title?: string };
  /** Why it is `failed`. */
  error?: string;
  config?: Record<string, unknown>;
  scope?: string;
  tools?: McpToolInfo[];
}

/** What `setMcpServers()` did. */
export interface McpSetServersResult {
  added: string[];
  removed: string[];
  errors: Record<string, string>;
}

/** An OAuth token. */
export interface OAuthToken {
  access_token: string;
  token_type?: string;
  refresh_token?: string;
  expires_in?: number;
  expires_at?: number;
  scope?: string;
}

/** A server cannot be used before a user authorises it. */
export interface McpOAuthRequest {
  serverName: string;
  serverUrl: string;
  authUrl: string;
  state: string;
  scopes?: string[];
  resourceMetadataUrl?: string;
}

/** How the host authorised a server; null refuses, and the server counts as failed. */
export type McpOAuthResolution =
  | OAuthToken
  | { token: OAuthToken }
  | { callbackUrl: string }
  | { code: string; state: string }
  | null
  | undefined;

/** Called when a server needs OAuth. */
export type OnMcpOAuthRequired = (
  request: McpOAuthRequest,
  options: { signal: AbortSignal },
) => Promise<McpOAuthResolution> | McpOAuthResolution;

/** Called with the servers whose state changed. */
export type OnMcpStatusChange = (servers: McpServerStatus[]) => void | Promise<void>;

/** What `mcpAuthenticate()` found: where to send the user, or that nothing is to be done. */
export interface McpAuthenticateResult {
  authUrl?: string;
  requiresUserAction: boolean;
}

/** An MCP server asks the user for input. */
export interface ElicitationRequest {
  serverName: string;
  message: string;
  mode: 'form' | 'url';
  elicitationId?: string;
  /** JSON Schema of the wanted input. */
  requestedSchema?: Record<string, unknown>;
  url?: string;
  title?: string;
  displayName?: string;
}

/** What the user answered. */
export interface ElicitationResult {
  action: 'accept' | 'decline' | 'cancel';
  content?: Record<string, unknown>;
}

/** Called when an MCP server asks the user for input. Nothing, or an error, cancels. */
export type OnElicitation = (
  request: ElicitationRequest,
  options: { signal: AbortSignal },
) => Promise<ElicitationResult | null | undefined> | ElicitationResult | null | undefined;
