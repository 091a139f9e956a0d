/**
 * Agents: the definitions that a session registers, and the summary of those it has.
 */
import type { McpServerConfig } from './mcp.js';
import type { PermissionMode } from './permissions.js';

/** How hard a model thinks. */
export type EffortLevel = 'low' | 'medium' | 'high' | 'xhigh' | 'max';

/** An agent that the model can hand a task to through the tool `Agent`. */
export interface AgentDefinition {
  /** When to use it; the model decides by this. */
  description: string;
  /** Its system prompt. */
  prompt: string;
  /** The only tools it has, by full name. Left out: the default set for agents. */
  tools?: string[];
  disallowedTools?: string[];
  /** A tier, an id, or `inherit`. */
  model?: string;
  skills?: string[];
  /** Names of servers of the session, or servers of its own. */
  mcpServers?: Array<string | Record<string, McpServerConfig>>;
  /** The first prompt, when the agent runs the main session. */
  initialPrompt?: string;
  maxTurns?: number;
  effort?: EffortLevel;
  permissionMode?: PermissionMode;
  background?: boolean;
  memory?: 'user' | 'project' | 'local';
}

/** An agent of the session. */
export interface AgentInfo {
  name: string;
  description: string;
  /** Empty when the agent uses the session's model. */
  model?: string;
}
