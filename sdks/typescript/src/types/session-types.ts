/**
 * What the session functions take and return, and the store that can hold copies of transcripts.
 */

/** A session on this machine or in a store. */
export interface SDKSessionInfo {
  sessionId: string;
  /** Its title, else what it is about. */
  summary: string;
  /** Milliseconds since 1970. */
  lastModified: number;
  customTitle?: string;
  firstPrompt?: string;
  gitBranch?: string;
  cwd?: string;
  tag?: string;
  /** Milliseconds since 1970. */
  createdAt?: number;
  fileSize?: number;
}

/** One message of a session. */
export interface SessionMessage {
  type: 'user' | 'assistant' | 'system';
  uuid: string;
  session_id: string;
  message: unknown;
  parent_tool_use_id: string | null;
  timestamp?: string;
  subtype?: string;
  compact_metadata?: unknown;
}

/** Which transcript: of a project, a session, and with `subpath` of one of its agents. */
export interface SessionKey {
  projectKey: string;
  sessionId: string;
  subpath?: string;
}

/** One line of a transcript. Keep it as it is. */
export type SessionStoreEntry = { type: string; [key: string]: unknown };

/** Holds copies of transcripts, so that a session can be resumed on another machine. */
export interface SessionStore {
  /** Adds lines, in this order. The same line may come twice; tell by its `uuid`. */
  append(key: SessionKey, entries: SessionStoreEntry[]): Promise<void>;
  /** All lines in order, or null for an unknown transcript. */
  load(key: SessionKey): Promise<SessionStoreEntry[] | null>;
  /** The sessions of a project; needed for `continue`. */
  listSessions?(projectKey: string): Promise<Array<{ sessionId: string; mtime: number }>>;
  /** The subpaths of a session; needed to restore the transcripts of agents. */
  listSubkeys?(key: { projectKey: string; sessionId: string }): Promise<string[]>;
  /** Removes a transcript, and with a session its subpaths. */
  delete?(key: SessionKey): Promise<void>;
}

/** Which project a session function looks at. */
export interface SessionDirectoryOptions {
  /** The working directory of the session. Left out: all projects. */
  dir?: string;
  /** Where the transcripts are, instead of this machine. */
  sessionStore?: SessionStore;
}

/** Options of `listSessions()`. */
export interface ListSessionsOptions extends SessionDirectoryOptions {
  limit?: number;
  offset?: number;
  /** Also sessions of other work trees of the same git repository; true when left out. */
  includeWorktrees?: boolean;
}

/** Options of `getSessionMessages()`. */
export interface GetSessionMessagesOptions extends SessionDirectoryOptions {
  limit?: number;
  offset?: number;
  /** Also system messages, such as the places where the conversation was summarised. */
  includeSystemMessages?: boolean;
}

/** Options of `forkSession()`. */
export interface ForkSessionOptions extends SessionDirectoryOptions {
  /** The last message that the fork has. Left out: all. */
  upToMessageId?: string;
  title?: string;
}

/** What `forkSession()` made. */
export interface ForkSessionResult {
  sessionId: string;
}
