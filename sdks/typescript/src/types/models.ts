/**
 * Models: what is offered, the callback that chooses one before each request, and the catalog of providers
 * for which a user can bring a key.
 */

/** A model that can be chosen. */
export interface ModelInfo {
  value: string;
  displayName: string;
  description?: string;
  /** Left out means available. */
  isEnabled?: boolean;
  isNew?: boolean;
  isFree?: boolean;
  isDefault?: boolean;
  priceFactor?: number;
  context_config?: Record<string, { token_count: number; is_default?: boolean }>;
  thinking_config?: Record<string, unknown>;
  promotion?: Record<string, unknown>;
  serverModel?: unknown;
}

/** What a model request is for. */
export type QoderModelPurpose =
  | 'main'
  | 'plan'
  | 'task'
  | 'compact'
  | 'title'
  | 'suggestion'
  | 'generate'
  | 'hook_prompt'
  | 'subagent'
  | 'web_fetch'
  | 'image_gen'
  | 'compression'
  | 'utility';

/** What `resolveModel` gets. */
export interface ModelPolicyContext {
  purpose: QoderModelPurpose;
  /** The same for all requests of a session. */
  sessionId: string;
  agentId: string;
  turnIndex: number;
  availableModels: ModelInfo[];
}

/** A model of a third party, with the key for it. */
export interface CustomModel {
  /** The key of the provider in the catalog. */
  provider: string;
  model: string;
  api_key: string;
  url?: string;
  /** Protocol of the endpoint; `openai` when left out. */
  style?: 'openai' | 'anthropic' | (string & {});
  /** Compatibility profile of the server: its name, or the fields that differ. */
  compat?: string | Record<string, unknown>;
}

/** What `resolveModel` answers. */
export interface ModelPolicyResult {
  model: string | CustomModel;
  parameters?: Record<string, unknown>;
}

/** Chooses the model of each request. Its answer is final: nothing else is tried. */
export type ModelPolicyProvider = (
  context: ModelPolicyContext,
) => ModelPolicyResult | Promise<ModelPolicyResult>;

/** The catalog as the runtime answers it; `listByokProviders()` gives its list. */
export interface SDKControlGetByokConfigResponse {
  providers: BYOKProviderInfo[];
}

/** A provider for which a user can bring a key. */
export interface BYOKProviderInfo {
  key: string;
  display_name?: string;
  api_key_url?: string;
  url?: string;
  fields?: BYOKFieldInfo[];
  types?: BYOKModelTypeInfo[];
}

/** Something the user fills in for a provider. */
export interface BYOKFieldInfo {
  key: string;
  display_name?: string;
  type?: string;
  mandatory?: boolean;
}

/** A group of models of a provider. */
export interface BYOKModelTypeInfo {
  key?: string;
  display_name?: string;
  models: BYOKModelInfo[];
}

/** One model of a provider. */
export interface BYOKModelInfo {
  key: string;
  display_name?: string;
  is_vl?: boolean;
  is_reasoning?: boolean;
  format?: string;
  max_input_tokens?: number;
}

/** What the account has used; every field may be missing. */
export interface UsageInfo {
  userId?: string;
  userType?: string;
  totalUsagePercentage?: number;
  isHighestTier?: boolean;
  expiresAt?: number;
  upgradeUrl?: string;
  userQuota?: Record<string, unknown>;
  addOnQuota?: Record<string, unknown>;
  isQuotaExceeded?: boolean;
  orgResourcePackage?: Record<string, unknown>;
  session?: { total_credits?: number; model_usage?: Record<string, unknown> };
  [key: string]: unknown;
}
