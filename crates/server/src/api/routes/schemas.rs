//! The schemas of what the server takes and gives, in the notation of `notation`. Every answer in the tests of the server is checked
//! against them, without fields that are not listed.

/// The schemas by their names. `+` lets an object have further fields; `=` names another schema.
pub(super) const SCHEMAS: &[(&str, &str)] = &[
    // Everything.
    ("Error", "type:'error' request_id:string error:ErrorBody"),
    ("ErrorBody", "type:string message:string param?:string details?:ErrorDetails"),
    ("ErrorDetails", "+error_code:string"),
    ("Deleted", "id:string type:string"),
    ("Health", "status:string"),
    ("Document", "+openapi:string"),
    ("Metadata", "={string}"),
    ("MetadataPatch", "={string?}"),
    // Agents.
    (
        "Agent",
        "id:string type:'agent' name:string description:string? model:AgentModel system:string? tools:[AgentTool] mcp_servers:[McpServer] skills:[AgentSkill] multiagent:Multiagent? execution_identity:Kind version:integer metadata:Metadata created_at:time updated_at:time archived_at:time?",
    ),
    (
        "AgentSnapshot",
        "id:string type:'agent' name:string description:string? model:AgentModel system:string? tools:[AgentTool] mcp_servers:[McpServer] skills:[AgentSkill] multiagent?:SessionRoster? execution_identity:Kind version:integer",
    ),
    ("Advisor", "type:'advisor' model:any"),
    ("Kind", "type:string"),
    ("AgentModel", "id:string effort:Kind? speed:string inference_geo?:string context_window?:integer"),
    ("AgentTool", "=BuiltInToolset|McpToolset|CustomTool"),
    (
        "BuiltInToolset",
        "type:'agent_toolset_20260401' default_config:ToolConfig configs:[ToolConfig] enabled_tools?:[string] disallowed_tools?:[string]",
    ),
    (
        "McpToolset",
        "type:'mcp_toolset' mcp_server_name:string default_config:ToolConfig configs:[ToolConfig]",
    ),
    ("CustomTool", "type:'custom' name:string description:string input_schema:object"),
    ("ToolConfig", "+enabled:boolean permission_policy:Kind type?:string name?:string"),
    ("McpServer", "type:'url' name:string url:string"),
    ("AgentSkill", "type:string skill_id:string version:string"),
    ("Multiagent", "type:'coordinator' agents:[RosterEntry]"),
    ("RosterEntry", "=RosterAgent|Advisor"),
    ("RosterAgent", "type:'agent' id:string version:integer name?:string"),
    ("SessionRoster", "type:'coordinator' agents:[AgentSnapshot|Advisor|RosterAgent]"),
    (
        "NewAgent",
        "+name:string model:string|object description?:string? system?:string? tools?:[object] mcp_servers?:[McpServer] skills?:[object] multiagent?:object? metadata?:Metadata",
    ),
    (
        "AgentUpdate",
        "+version?:integer name?:string model?:string|object description?:string? system?:string? tools?:[object]? mcp_servers?:[McpServer]? skills?:[object]? multiagent?:object? metadata?:MetadataPatch",
    ),
    // Environments.
    (
        "Environment",
        "id:string type:'environment' name:string description:string? config:EnvironmentConfig scope:string metadata:Metadata created_at:time updated_at:time archived_at:time?",
    ),
    ("EnvironmentConfig", "=CloudConfig|SelfHostedConfig"),
    ("CloudConfig", "type:'cloud' networking:Networking packages:Packages setup_script?:string"),
    ("SelfHostedConfig", "type:'self_hosted' setup_script?:string"),
    (
        "Networking",
        "type:'unrestricted|limited' allowed_hosts?:[string] allow_mcp_servers?:boolean allow_package_managers?:boolean",
    ),
    (
        "Packages",
        "type:'packages' apt:[string] cargo:[string] gem:[string] go:[string] npm:[string] pip:[string]",
    ),
    (
        "NewEnvironment",
        "+name:string description?:string? config?:object scope?:'organization|account' metadata?:Metadata",
    ),
    (
        "EnvironmentUpdate",
        "+name?:string description?:string? config?:object scope?:'organization|account' metadata?:MetadataPatch",
    ),
    // Work of self-hosted environments.
    (
        "Work",
        "id:string type:'work' environment_id:string data:WorkData state:'queued|starting|active|stopping|stopped' metadata:Metadata secret:string? created_at:time acknowledged_at:time? started_at:time? latest_heartbeat_at:time? stop_requested_at:time? stopped_at:time?",
    ),
    ("WorkData", "type:'session' id:string"),
    ("PolledWork", "=Work?"),
    (
        "WorkHeartbeat",
        "type:'work_heartbeat' last_heartbeat:string lease_extended:boolean state:string ttl_seconds:integer",
    ),
    (
        "WorkStats",
        "type:'work_queue_stats' depth:integer pending:integer oldest_queued_at:time? workers_polling:integer",
    ),
    ("WorkUpdate", "+metadata:MetadataPatch"),
    ("WorkStop", "+force?:boolean"),
    // Sessions.
    (
        "Session",
        "id:string type:'session' agent:AgentSnapshot environment_id:string status:SessionStatus title:string? metadata:Metadata resources:[SessionResource] vault_ids:[string] outcome_evaluations:[OutcomeEvaluation] stats:SessionStats usage:Usage budget:Budget? deployment_id:string? created_at:time updated_at:time archived_at:time? agent_id?:string environment_variables?:{string}",
    ),
    (
        "OutcomeEvaluation",
        "type:'outcome_evaluation' outcome_id:string description:string result:'running|evaluating|satisfied|max_iterations_reached|failed|interrupted' iteration:integer explanation:string? completed_at:time?",
    ),
    ("SessionStatus", "='idle|running|rescheduling|terminated'"),
    ("SessionStats", "active_seconds:number duration_seconds:number startup_seconds?:number"),
    (
        "Usage",
        "input_tokens:integer output_tokens:integer cache_read_input_tokens:integer cache_creation:object active_seconds:number server_tool_use:object list_cost:Money total_credits:number model_credits:number sandbox_runtime_credits:number",
    ),
    ("Money", "amount:string currency:string"),
    ("Budget", "type:'limit' max_list_cost?:Money max_credit_cost?:string"),
    (
        "NewSession",
        "+agent?:string|object environment_id?:string title?:string? metadata?:Metadata resources?:[object] vault_ids?:[string] initial_events?:[object] budget?:object? environment_variables?:{string}",
    ),
    (
        "SessionUpdate",
        "+agent?:object title?:string? metadata?:MetadataPatch budget?:object? vault_ids?:[string] environment_variables?:{string?}",
    ),
    ("Canceled", "id:string type:'session' status:string"),
    ("SessionResource", "=FileResource|RepositoryResource|MemoryStoreResource"),
    (
        "FileResource",
        "id:string type:'file' file_id:string mount_path:string created_at:time updated_at:time",
    ),
    (
        "RepositoryResource",
        "id:string type:'github_repository|git_repository' url:string checkout:object? mount_path:string created_at:time updated_at:time",
    ),
    (
        "MemoryStoreResource",
        "id:string type:'memory_store' memory_store_id:string access:string instructions:string? name:string description:string mount_path:string created_at:time updated_at:time",
    ),
    ("NewResource", "+type:string mount_path?:string"),
    ("ResourceUpdate", "+authorization_token?:string password?:string"),
    (
        "Event",
        "+id:string type:string processed_at:time? session_thread_id?:string? content?:any stop_reason?:object",
    ),
    ("NewEvents", "events:[NewEvent]"),
    ("NewEvent", "+type:string"),
    ("SentEvents", "data:[Event]"),
    (
        "Thread",
        "id:string type:'session_thread' session_id:string parent_thread_id:string? agent:AgentSnapshot|Advisor status:SessionStatus stats:SessionStats usage:Usage created_at:time updated_at:time archived_at:time? role?:'coordinator|child'",
    ),
    // Files and skills.
    (
        "File",
        "id:string type:'file' filename:string mime_type:string size_bytes:integer created_at:time expires_at:time? downloadable:boolean scope:FileScope? metadata:Metadata status:string",
    ),
    ("FileScope", "type:'session' id:string"),
    ("FileLink", "url:string expires_at:time"),
    ("NewFile", "+file:bytes name?:string metadata?:string expires_in_seconds?:integer"),
    (
        "Skill",
        "id:string type:'skill' display_name:string display_title:string latest_version_id:string? latest_version:string? source:Kind metadata:Metadata created_at:time updated_at:time",
    ),
    (
        "SkillVersion",
        "id:string type:'skill_version' skill_id:string name:string description:string version:string directory:string created_at:time",
    ),
    ("NewSkill", "+files?:[bytes] display_name?:string display_title?:string metadata?:string"),
    // Vaults.
    (
        "Vault",
        "id:string type:'vault' display_name:string metadata:Metadata created_at:time updated_at:time archived_at:time?",
    ),
    ("NewVault", "+display_name:string metadata?:Metadata"),
    ("VaultUpdate", "+display_name?:string metadata?:MetadataPatch"),
    (
        "Credential",
        "id:string type:'vault_credential' vault_id:string display_name:string? auth:CredentialAuth metadata:Metadata created_at:time updated_at:time archived_at:time?",
    ),
    ("CredentialAuth", "=BearerAuth|OauthAuth|VariableAuth"),
    ("BearerAuth", "type:'static_bearer' mcp_server_url:string"),
    ("OauthAuth", "type:'mcp_oauth' mcp_server_url:string expires_at:time? refresh:OauthRefresh?"),
    (
        "OauthRefresh",
        "client_id:string token_endpoint:string token_endpoint_auth:Kind resource:string? scope:string?",
    ),
    (
        "VariableAuth",
        "type:'environment_variable' secret_name:string networking:Networking injection_location:Injection",
    ),
    ("Injection", "header:boolean body:boolean"),
    ("NewCredential", "+auth:object display_name?:string? metadata?:Metadata"),
    ("CredentialUpdate", "+auth?:object display_name?:string? metadata?:MetadataPatch"),
    (
        "CredentialValidation",
        "type:'vault_credential_validation' credential_id:string vault_id:string status:'valid|invalid|unknown' has_refresh_token:boolean refresh:ValidatedRefresh? mcp_probe:ValidatedProbe validated_at:time",
    ),
    ("ValidatedRefresh", "status:string http_response:HttpResponse?"),
    ("ValidatedProbe", "method:string http_response:HttpResponse?"),
    ("HttpResponse", "status_code:integer content_type:string body:string body_truncated:boolean"),
    // Memory.
    (
        "MemoryStore",
        "id:string type:'memory_store' name:string description:string metadata:Metadata status:string entry_count:integer total_size:integer created_at:time updated_at:time archived_at:time?",
    ),
    ("NewMemoryStore", "+name:string description?:string? metadata?:Metadata"),
    ("MemoryStoreUpdate", "+name?:string description?:string? metadata?:MetadataPatch"),
    ("MemoryItem", "=Memory|MemoryPrefix"),
    (
        "Memory",
        "id:string type:'memory' memory_store_id:string memory_version_id:string path:string content:string? content_sha256:string content_size_bytes:integer metadata:Metadata created_at:time updated_at:time",
    ),
    ("MemoryPrefix", "type:'memory_prefix' path:string"),
    ("NewMemory", "+path:string content?:string? metadata?:Metadata"),
    (
        "MemoryUpdate",
        "+path?:string content?:string metadata?:MetadataPatch precondition?:object content_sha256?:string",
    ),
    (
        "MemoryVersion",
        "id:string type:'memory_version' memory_id:string memory_store_id:string operation:'created|modified|deleted' path:string? content:string? content_sha256:string? content_size_bytes:integer? created_by:Actor created_at:time redacted_at:time? redacted_by:Actor?",
    ),
    ("Actor", "type:string api_key_id?:string session_id?:string"),
    // Deployments.
    (
        "Deployment",
        "id:string type:'deployment' name:string description:string? agent:AgentReference environment_id:string initial_events:[NewEvent] resources:[object] vault_ids:[string] budget:object? schedule:Schedule? status:'active|paused' paused_reason:PausedReason? metadata:Metadata created_at:time updated_at:time archived_at:time?",
    ),
    ("AgentReference", "type:'agent' id:string version:integer"),
    ("Schedule", "type:'cron' expression:string timezone:string last_run_at:time? upcoming_runs_at:[time]"),
    ("PausedReason", "type:'manual|error' error?:RunError"),
    ("RunError", "type:string message:string"),
    (
        "NewDeployment",
        "+name:string agent:string|object environment_id:string initial_events:[NewEvent] description?:string? schedule?:object? resources?:[object] vault_ids?:[string] budget?:object? metadata?:Metadata environment_variables?:{string}|string",
    ),
    (
        "DeploymentUpdate",
        "+name?:string agent?:string|object environment_id?:string initial_events?:[NewEvent] description?:string? schedule?:object? resources?:[object]? vault_ids?:[string]? budget?:object? metadata?:MetadataPatch environment_variables?:{string}|string",
    ),
    (
        "DeploymentRun",
        "id:string type:'deployment_run' deployment_id:string agent:AgentReference session_id:string? error:RunError? trigger_context:RunTrigger created_at:time",
    ),
    ("RunTrigger", "type:'manual|schedule' scheduled_at?:time"),
    // Webhooks.
    (
        "WebhookEndpoint",
        "id:string type:'webhook_endpoint' url:string events:[string] description:string metadata:Metadata active:boolean disabled_reason:string? consecutive_fail:integer last_success_at:time? last_failure_at:time? created_at:time updated_at:time signing_secret?:string",
    ),
    ("NewWebhookEndpoint", "+url:string events:[string] description?:string? metadata?:Metadata"),
    (
        "WebhookEndpointUpdate",
        "+url?:string events?:[string] description?:string? metadata?:MetadataPatch active?:boolean",
    ),
    ("WebhookTest", "event_id:string delivery_rows:integer"),
    (
        "WebhookDelivery",
        "id:string type:'webhook_delivery' endpoint_id:string event_id:string event_type:string status:'pending|delivered|failed' attempts:integer next_attempt_at:time? last_attempt_at:time? response_status:integer? error:string? created_at:time",
    ),
    // Models.
    (
        "Model",
        "id:string type:'model' display_name:string created_at:time max_input_tokens:integer max_tokens:integer capabilities:object lifecycle:string source:string is_enabled:boolean is_new:boolean price_factor:number efforts:[string] default_effort:string? default_context_window:integer available_context_windows:[integer]",
    ),
];
