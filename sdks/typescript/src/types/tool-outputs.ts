/**
 * Typed outputs of the built-in tools, as `tool_use_result` of a user message carries them. Tools may add
 * fields that are not listed.
 */
import type { AskUserQuestion, TodoItem } from './tool-inputs.js';

/** Output of `Bash`. */
export interface BashOutput {
  stdout: string;
  stderr: string;
  exitCode: number;
  interrupted?: boolean;
  backgroundTaskId?: string;
  persistedOutputPath?: string;
}

/** Output of `Read`, by the kind of file. */
export type FileReadOutput =
  | { type: 'text'; text: string; file_path: string; totalLines?: number }
  | { type: 'image'; source: { type: 'base64'; media_type: string; data: string }; file_path: string }
  | {
      type: 'notebook';
      cells: Array<{
        cell_number: number;
        cell_type: 'code' | 'markdown' | 'raw';
        source: string;
        outputs?: unknown[];
      }>;
      file_path: string;
    }
  | {
      type: 'pdf';
      pages: Array<{ page_number: number; content: string }>;
      file_path: string;
      totalPages: number;
    }
  | { type: 'parts'; parts: unknown[]; file_path: string }
  | { type: 'file_unchanged'; file_path: string; message: string };

/** Output of `Edit`. */
export interface FileEditOutput {
  success: boolean;
  file_path: string;
  diff?: string;
  error?: string;
}

/** Output of `Write`. */
export interface FileWriteOutput {
  success: boolean;
  file_path: string;
  bytesWritten?: number;
  error?: string;
}

/** Output of `Glob`. */
export interface GlobOutput {
  files: string[];
  totalMatches: number;
  truncated?: boolean;
}

/** Output of `Grep`. */
export interface GrepOutput {
  results: string;
  matchCount: number;
  truncated?: boolean;
}

/** Output of `WebFetch`. */
export interface WebFetchOutput {
  content: string;
  url: string;
  statusCode?: number;
  error?: string;
  redirectUrl?: string;
}

/** Output of `WebSearch`. */
export interface WebSearchOutput {
  results: Array<{ title: string; url: string; snippet: string }>;
  query: string;
}

/** Output of `Agent`. */
export interface AgentOutput {
  result: string;
  agent?: string;
  error?: string;
  transcript?: string;
}

/** Output of `AskUserQuestion`. */
export interface AskUserQuestionOutput {
  questions: AskUserQuestion[];
  answers: Record<string, string>;
}

/** Output of `NotebookEdit`. */
export interface NotebookEditOutput {
  success: boolean;
  notebook_path: string;
  error?: string;
}

/** Output of `TaskStop`. */
export interface TaskStopOutput {
  success: boolean;
  task_id: string;
  error?: string;
}

/** Output of `ExitPlanMode`. */
export interface ExitPlanModeOutput {
  success: boolean;
  error?: string;
}

/** Output of `EnterWorktree`. */
export interface EnterWorktreeOutput {
  worktree_path: string;
  branch_name: string;
  success: boolean;
  error?: string;
}

/** Output of `ExitWorktree`. */
export interface ExitWorktreeOutput {
  success: boolean;
  error?: string;
  uncommitted_files?: string[];
  unmerged_commits?: string[];
}

/** Output of `Config`. */
export interface ConfigOutput {
  success: boolean;
  value?: unknown;
  values?: unknown;
  error?: string;
}

/** Output of `TodoWrite`. */
export interface TodoWriteOutput {
  success: boolean;
  todos: TodoItem[];
  error?: string;
}

/** Output of `ListMcpResources`. */
export interface ListMcpResourcesOutput {
  resources: Array<{ uri: string; name: string; description?: string; mimeType?: string }>;
  server_name: string;
}

/** Output of `Mcp`. */
export interface McpOutput {
  content: unknown;
  isError?: boolean;
}

/** A file that `ImageGen` wrote. */
export interface GeneratedImage {
  file_path: string;
  media_type: string;
  width: number;
  height: number;
  bytesWritten: number;
}

/** Output of `ImageGen`. */
export interface ImageGenOutput {
  images: GeneratedImage[];
  /** The image model that answered. */
  model: string;
  costUSD: number;
  /** The prompt as the provider rewrote it. */
  revised_prompt?: string;
  error?: string;
  /** What kind of failure, such as `image_refused`. */
  code?: string;
}

/** The output types by the names of the tools that have one. */
export interface ToolOutputMap {
  Bash: BashOutput;
  Read: FileReadOutput;
  Edit: FileEditOutput;
  Write: FileWriteOutput;
  Glob: GlobOutput;
  Grep: GrepOutput;
  WebFetch: WebFetchOutput;
  WebSearch: WebSearchOutput;
  Agent: AgentOutput;
  AskUserQuestion: AskUserQuestionOutput;
  NotebookEdit: NotebookEditOutput;
  TaskStop: TaskStopOutput;
  ExitPlanMode: ExitPlanModeOutput;
  EnterWorktree: EnterWorktreeOutput;
  ExitWorktree: ExitWorktreeOutput;
  Config: ConfigOutput;
  TodoWrite: TodoWriteOutput;
  ListMcpResources: ListMcpResourcesOutput;
  Mcp: McpOutput;
  ImageGen: ImageGenOutput;
}

/** The output of any built-in tool. */
export type ToolOutputSchemas = ToolOutputMap[keyof ToolOutputMap];
