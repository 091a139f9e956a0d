/**
 * Inputs of the built-in tools, for code that looks at calls in `canUseTool`, in hooks or in messages. The
 * names are those of the types; the tools themselves are called `Read`, `Edit`, `Write` and so on.
 */

/** Input of `Bash`. */
export interface BashInput {
  command: string;
  /** Milliseconds. */
  timeout?: number;
  description?: string;
  run_in_background?: boolean;
  dangerouslyDisableSandbox?: boolean;
}

/** Input of `Read`. */
export interface FileReadInput {
  file_path: string;
  /** First line, counted from 1. */
  offset?: number;
  /** Number of lines. */
  limit?: number;
  /** Pages of a PDF, such as `1-5`. */
  pages?: string;
}

/** Input of `Edit`. */
export interface FileEditInput {
  file_path: string;
  old_string: string;
  new_string: string;
  replace_all?: boolean;
}

/** Input of `Write`. */
export interface FileWriteInput {
  file_path: string;
  content: string;
}

/** Input of `Glob`. */
export interface GlobInput {
  pattern: string;
  path?: string;
}

/** Input of `Grep`. */
export interface GrepInput {
  pattern: string;
  path?: string;
  glob?: string;
  type?: string;
  output_mode?: 'content' | 'files_with_matches' | 'count';
  head_limit?: number;
  offset?: number;
  context?: number;
  '-A'?: number;
  '-B'?: number;
  '-C'?: number;
  '-i'?: boolean;
  '-n'?: boolean;
  multiline?: boolean;
}

/** Input of `WebFetch`. */
export interface WebFetchInput {
  url: string;
  prompt: string;
}

/** Input of `WebSearch`. */
export interface WebSearchInput {
  query: string;
  allowed_domains?: string[];
  blocked_domains?: string[];
}

/** Input of `Agent`. */
export interface AgentInput {
  prompt: string;
  /** Name of the agent; `subagent_type` is another spelling. */
  agent?: string;
  subagent_type?: string;
  description?: string;
  timeout_ms?: number;
  run_in_background?: boolean;
}

/** One question of `AskUserQuestion`. */
export interface AskUserQuestion {
  question: string;
  header: string;
  options: Array<{ label: string; description?: string; preview?: string }>;
  multiSelect?: boolean;
}

/** Input of `AskUserQuestion`; answers are added to it by `canUseTool`. */
export interface AskUserQuestionInput {
  questions: AskUserQuestion[];
  /** The answers by the full text of the question. */
  answers?: Record<string, string>;
}

/** Input of `NotebookEdit`. */
export interface NotebookEditInput {
  notebook_path: string;
  new_source: string;
  cell_id?: string;
  cell_type?: 'code' | 'markdown';
  edit_mode?: 'replace' | 'insert' | 'delete';
}

/** Input of `TaskOutput`. */
export interface TaskOutputInput {
  task_id: string;
  /** Text to send to the task. */
  output?: string;
  block?: boolean;
  /** Milliseconds. */
  timeout?: number;
}

/** Input of `TaskStop`. */
export interface TaskStopInput {
  task_id: string;
  reason?: string;
}

/** Input of `ExitPlanMode`. */
export interface ExitPlanModeInput {
  confirm?: boolean;
  plan?: string;
}

/** Input of `EnterWorktree`. */
export interface EnterWorktreeInput {
  name?: string;
}

/** Input of `ExitWorktree`. */
export interface ExitWorktreeInput {
  action: 'keep' | 'remove';
  discard_changes?: boolean;
}

/** Input of `Config`. */
export interface ConfigInput {
  action: 'get' | 'set' | 'list';
  key?: string;
  value?: unknown;
  scope?: 'user' | 'project' | 'local';
}

/** One item of a todo list. */
export interface TodoItem {
  id?: string;
  content: string;
  status: 'pending' | 'in_progress' | 'completed';
  priority?: 'low' | 'medium' | 'high';
}

/** Input of `TodoWrite`. */
export interface TodoWriteInput {
  todos: TodoItem[];
}

/** Input of `ListMcpResources`. */
export interface ListMcpResourcesInput {
  server_name: string;
}

/** Input of `ReadMcpResource`. */
export interface ReadMcpResourceInput {
  server_name: string;
  uri: string;
}

/** Input of `Mcp`. */
export interface McpInput {
  server_name: string;
  tool_name: string;
  arguments?: Record<string, unknown>;
}

/** Input of `ImageGen`, which exists where an image model is configured. */
export interface ImageGenInput {
  /** What the picture shows, or how the picture at `image_path` changes. */
  prompt: string;
  /** Ends in .png, .jpg, .jpeg or .webp; several pictures get a number before the extension. */
  file_path: string;
  /** `WIDTHxHEIGHT` or `auto`. */
  size?: string;
  /** 1 to 10. */
  count?: number;
  quality?: string;
  /** A picture to change. */
  image_path?: string;
  /** Replace files that exist. */
  overwrite?: boolean;
}

/** The input types by the names of the tools. */
export interface ToolInputMap {
  Bash: BashInput;
  Read: FileReadInput;
  Edit: FileEditInput;
  Write: FileWriteInput;
  Glob: GlobInput;
  Grep: GrepInput;
  WebFetch: WebFetchInput;
  WebSearch: WebSearchInput;
  Agent: AgentInput;
  AskUserQuestion: AskUserQuestionInput;
  NotebookEdit: NotebookEditInput;
  TaskOutput: TaskOutputInput;
  TaskStop: TaskStopInput;
  ExitPlanMode: ExitPlanModeInput;
  EnterWorktree: EnterWorktreeInput;
  ExitWorktree: ExitWorktreeInput;
  Config: ConfigInput;
  TodoWrite: TodoWriteInput;
  ListMcpResources: ListMcpResourcesInput;
  ReadMcpResource: ReadMcpResourceInput;
  Mcp: McpInput;
  ImageGen: ImageGenInput;
}

/** The name of a built-in tool. */
export type BuiltInToolName = keyof ToolInputMap;

/** The input of any built-in tool. */
export type ToolInputSchemas = ToolInputMap[BuiltInToolName];
