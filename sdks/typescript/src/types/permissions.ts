/**
 * Who decides what may run: modes, the `canUseTool` callback with its context and answers, and updates of the
 * rules.
 */

/** The default policy of a session. `yolo` is another name for `bypassPermissions`. */
export type PermissionMode =
  | 'default'
  | 'acceptEdits'
  | 'bypassPermissions'
  | 'yolo'
  | 'plan'
  | 'dontAsk'
  | 'auto';

/** What a rule does. */
export type PermissionBehavior = 'allow' | 'deny' | 'ask';

/** Where an update is kept. */
export type PermissionUpdateDestination =
  | 'userSettings'
  | 'projectSettings'
  | 'localSettings'
  | 'session'
  | 'cliArg';

/** One rule, such as `Bash(npm test:*)`. */
export interface PermissionRuleValue {
  toolName: string;
  ruleContent?: string | null;
}

/** A change of rules, mode or directories. */
export type PermissionUpdate =
  | {
      type: 'addRules' | 'replaceRules' | 'removeRules';
      rules: PermissionRuleValue[];
      behavior: PermissionBehavior;
      destination: PermissionUpdateDestination;
    }
  | { type: 'setMode'; mode: PermissionMode; destination: PermissionUpdateDestination }
  | {
      type: 'addDirectories' | 'removeDirectories';
      directories: string[];
      destination: PermissionUpdateDestination;
    };

/** How a person decided; for statistics only. */
export type PermissionDecisionClassification = 'user_temporary' | 'user_permanent' | 'user_reject' | (string & {});

/** What there is to approve when the model wants to leave plan mode. */
export interface ExitPlanModeApprovalDetails {
  plan?: string;
  planFilePath?: string;
  [key: string]: unknown;
}

/** What `canUseTool` gets besides the call. */
export interface CanUseToolOptions {
  /** Aborted when the answer is no longer wanted. */
  signal: AbortSignal;
  /** Updates that would make this question unnecessary; return one in `updatedPermissions` to accept it. */
  suggestions?: PermissionUpdate[];
  /** The file that the question is about. */
  blockedPath?: string;
  /** Why there is a question. */
  decisionReason?: string;
  decisionReasonType?: string;
  /** Whether the runtime's classifier could approve the call by itself. */
  classifierApprovable?: boolean;
  /** Texts to show to a person. */
  title?: string;
  displayName?: string;
  description?: string;
  /** The id of the call. */
  toolUseID: string;
  /** The subagent that makes the call. */
  agentID?: string;
  exitPlanMode?: ExitPlanModeApprovalDetails;
}

/** Lets the call run, with other arguments if `updatedInput` is given. */
export interface PermissionResultAllow {
  behavior: 'allow';
  updatedInput?: Record<string, unknown>;
  updatedPermissions?: PermissionUpdate[];
  toolUseID?: string;
  decisionClassification?: PermissionDecisionClassification;
}

/** Denies the call; the model reads `message`. `interrupt` also ends the turn. */
export interface PermissionResultDeny {
  behavior: 'deny';
  message: string;
  interrupt?: boolean;
  toolUseID?: string;
  decisionClassification?: PermissionDecisionClassification;
}

/** The answer of `canUseTool`. */
export type PermissionResult = PermissionResultAllow | PermissionResultDeny;

/** Decides about a call that the rules leave open. An error that it throws denies the call. */
export type CanUseTool = (
  toolName: string,
  input: Record<string, unknown>,
  options: CanUseToolOptions,
) => Promise<PermissionResult> | PermissionResult;
