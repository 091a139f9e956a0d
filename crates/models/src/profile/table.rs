//! The table of profiles: data alone. A row differs from the careful ones at the end only where a public source says
//! so; `tests/models/profile_quirks.rs` shows each difference and names its source.

use qoder_types::ModelFailureClass as Class;

use super::{
    ErrorWords, Images, ModelsList, NameForm, OutputLimit, Profile, ReasoningBack, SystemRole, Word,
};

const fn says(says: Word, means: Class) -> ErrorWords {
    ErrorWords { says, means }
}

const fn names(shortest: usize, longest: usize, further: Word) -> NameForm {
    NameForm { shortest, longest, further }
}

/// What Chat Completions servers accept as the id of a call: at most 40 characters at OpenAI.
const CHAT_IDS: NameForm = names(1, 40, "_-.:/|@#+=");
/// What the Messages and Responses protocols accept.
const STRICT_IDS: NameForm = names(1, 64, "_-");
/// What every provider accepts as the name of a tool.
const TOOL_NAMES: NameForm = names(1, 64, "_-");

/// An unknown server that speaks Chat Completions.
pub(crate) const UNKNOWN_CHAT: Profile = Profile {
    name: "unknown-chat",
    title: "unknown server, Chat Completions",
    never_sent: &[],
    output_limit: OutputLimit::ByModel,
    most_output_tokens: None,
    call_ids: CHAT_IDS,
    tool_names: TOOL_NAMES,
    images: Images::UserMessage,
    roles_alternate: true,
    user_after_tool: true,
    reasoning: ReasoningBack::AsReceived,
    reasoning_required: false,
    unsigned_reasoning: true,
    think_tags: true,
    system_role: SystemRole::System,
    refused_schema_keywords: &[],
    empty_text: true,
    null_content: true,
    cache_marks: true,
    models_list: ModelsList::Data,
    error_words: &[],
};

/// An unknown server that speaks Messages.
pub(crate) const UNKNOWN_MESSAGES: Profile = Profile {
    name: "unknown-messages",
    title: "unknown server, Messages",
    call_ids: STRICT_IDS,
    images: Images::Everywhere,
    // The protocol itself takes several messages of one role and reads them as one.
    roles_alternate: false,
    think_tags: false,
    ..UNKNOWN_CHAT
};

/// An unknown server that speaks Responses.
pub(crate) const UNKNOWN_RESPONSES: Profile = Profile {
    name: "unknown-responses",
    title: "unknown server, Responses",
    call_ids: STRICT_IDS,
    images: Images::Everywhere,
    roles_alternate: false,
    unsigned_reasoning: false,
    think_tags: false,
    ..UNKNOWN_CHAT
};

/// Claude, by whomever it is served.
const CLAUDE: Profile = Profile {
    call_ids: STRICT_IDS,
    images: Images::Everywhere,
    roles_alternate: false,
    unsigned_reasoning: false,
    think_tags: false,
    empty_text: false,
    error_words: &[
        says("credit balance is too low", Class::Quota),
        says("exceeds the maximum size", Class::ContextTooLong),
    ],
    ..UNKNOWN_MESSAGES
};

/// A hosted provider that names what it accepts and refuses the rest.
const STRICT_CHAT: Profile = Profile {
    never_sent: &["store", "include", "prompt_cache_key", "service_tier"],
    output_limit: OutputLimit::MaxCompletionTokens,
    roles_alternate: false,
    reasoning: ReasoningBack::None,
    think_tags: false,
    ..UNKNOWN_CHAT
};

/// A server for local models: chat templates demand alternating roles, and signatures do not exist.
const LOCAL: Profile = Profile {
    never_sent: &["store", "include", "prompt_cache_key", "service_tier"],
    output_limit: OutputLimit::MaxTokens,
    error_words: &[
        says("loading model", Class::Overloaded),
        says("model is loading", Class::Overloaded),
        says("try pulling it first", Class::NotFound),
    ],
    ..UNKNOWN_CHAT
};

/// Every profile; the careful ones for unknown servers are last.
pub(super) static PROFILES: &[Profile] = &[
    Profile { name: "anthropic", title: "Anthropic", ..CLAUDE },
    Profile {
        name: "bedrock",
        title: "Bedrock (Claude)",
        never_sent: &["cache_control", "output_config"],
        models_list: ModelsList::None,
        error_words: &[
            says("input is too long for requested model", Class::ContextTooLong),
            says("the provided model identifier is invalid", Class::NotFound),
            says("too many tokens, please wait", Class::RateLimit),
            says("security token included in the request is", Class::Authentication),
        ],
        ..CLAUDE
    },
    Profile {
        name: "vertex",
        title: "Vertex AI (Claude)",
        never_sent: &["cache_control", "output_config"],
        models_list: ModelsList::None,
        error_words: &[
            says("publisher model", Class::NotFound),
            says("quota exceeded for", Class::RateLimit),
        ],
        ..CLAUDE
    },
    Profile {
        name: "openai",
        title: "OpenAI",
        never_sent: &[],
        images: Images::Everywhere,
        unsigned_reasoning: false,
        error_words: &[
            says("exceeded your current quota", Class::Quota),
            says("incorrect api key provided", Class::Authentication),
        ],
        ..STRICT_CHAT
    },
    Profile {
        name: "azure",
        title: "Azure OpenAI",
        never_sent: &["service_tier"],
        images: Images::Everywhere,
        unsigned_reasoning: false,
        error_words: &[
            says("the api deployment for this resource does not exist", Class::NotFound),
            says("content management policy", Class::InvalidRequest),
        ],
        ..STRICT_CHAT
    },
    Profile {
        name: "openrouter",
        title: "OpenRouter",
        never_sent: &["store"],
        output_limit: OutputLimit::MaxTokens,
        images: Images::Everywhere,
        reasoning: ReasoningBack::AsReceived,
        error_words: &[
            says("is not a valid model id", Class::NotFound),
            says("no endpoints found for", Class::NotFound),
            says("insufficient credits", Class::Quota),
            says("user not found", Class::Authentication),
        ],
        ..STRICT_CHAT
    },
    Profile {
        name: "mistral",
        title: "Mistral",
        never_sent: &[
            "store",
            "include",
            "prompt_cache_key",
            "service_tier",
            "stream_options",
            "reasoning_effort",
        ],
        output_limit: OutputLimit::MaxTokens,
        call_ids: names(9, 9, ""),
        roles_alternate: true,
        user_after_tool: false,
        error_words: &[says("invalid model", Class::NotFound)],
        ..STRICT_CHAT
    },
    Profile {
        name: "deepseek",
        title: "DeepSeek",
        output_limit: OutputLimit::MaxTokens,
        images: Images::None,
        reasoning: ReasoningBack::ReasoningContent,
        reasoning_required: true,
        error_words: &[says("insufficient balance", Class::Quota), says("model not exist", Class::NotFound)],
        ..STRICT_CHAT
    },
    Profile {
        name: "kimi",
        title: "Kimi (Moonshot)",
        output_limit: OutputLimit::MaxTokens,
        reasoning: ReasoningBack::ReasoningContent,
        reasoning_required: true,
        empty_text: false,
        error_words: &[
            says("not found the model", Class::NotFound),
            says("exceeded_current_quota", Class::Quota),
            says("engine is currently overloaded", Class::Overloaded),
        ],
        ..STRICT_CHAT
    },
    Profile {
        name: "groq",
        title: "Groq",
        error_words: &[says("request too large for model", Class::ContextTooLong)],
        ..STRICT_CHAT
    },
    Profile { name: "cerebras", title: "Cerebras", reasoning: ReasoningBack::Reasoning, ..STRICT_CHAT },
    Profile {
        name: "xai",
        title: "xAI",
        never_sent: &["presence_penalty", "frequency_penalty"],
        error_words: &[
            says("incorrect api key provided", Class::Authentication),
            says("used all available credits", Class::Quota),
            says("maximum prompt length is", Class::ContextTooLong),
        ],
        ..STRICT_CHAT
    },
    Profile {
        name: "together",
        title: "Together",
        output_limit: OutputLimit::MaxTokens,
        think_tags: true,
        models_list: ModelsList::Array,
        error_words: &[
            says("unable to access model", Class::NotFound),
            says("unable to access non-serverless model", Class::NotFound),
            says("dedicated_endpoint_not_running", Class::NotFound),
        ],
        ..STRICT_CHAT
    },
    Profile {
        name: "gemini",
        title: "Gemini (OpenAI form)",
        never_sent: &[
            "store",
            "include",
            "prompt_cache_key",
            "service_tier",
            "parallel_tool_calls",
            "frequency_penalty",
            "presence_penalty",
        ],
        output_limit: OutputLimit::MaxTokens,
        reasoning: ReasoningBack::AsReceived,
        refused_schema_keywords: &[
            "$schema",
            "$id",
            "$defs",
            "definitions",
            "additionalProperties",
            "const",
            "exclusiveMaximum",
            "exclusiveMinimum",
            "multipleOf",
            "patternProperties",
            "propertyNames",
            "uniqueItems",
        ],
        models_list: ModelsList::Resources,
        error_words: &[
            says("api key not valid", Class::Authentication),
            says("api_key_invalid", Class::Authentication),
            says("exceeds the maximum number of tokens", Class::ContextTooLong),
        ],
        ..STRICT_CHAT
    },
    Profile {
        name: "litellm",
        title: "LiteLLM",
        images: Images::Everywhere,
        reasoning: ReasoningBack::ThinkingBlocks,
        error_words: &[
            says("contextwindowexceedederror", Class::ContextTooLong),
            says("budget has been exceeded", Class::Quota),
            says("exceededbudget", Class::Quota),
            says("invalid model name passed in", Class::NotFound),
            says("llm provider not provided", Class::NotFound),
            says("authentication error", Class::Authentication),
        ],
        ..UNKNOWN_CHAT
    },
    Profile { name: "vllm", title: "vLLM", ..LOCAL },
    Profile { name: "sglang", title: "SGLang", ..LOCAL },
    Profile { name: "llamacpp", title: "llama.cpp", null_content: false, ..LOCAL },
    Profile {
        name: "ollama",
        title: "Ollama",
        reasoning: ReasoningBack::Reasoning,
        models_list: ModelsList::Tags,
        ..LOCAL
    },
    Profile {
        name: "lmstudio",
        title: "LM Studio",
        null_content: false,
        error_words: &[
            says("no models loaded", Class::NotFound),
            says("trying to keep the first", Class::ContextTooLong),
        ],
        ..LOCAL
    },
    UNKNOWN_MESSAGES,
    UNKNOWN_CHAT,
    UNKNOWN_RESPONSES,
];

/// Hosts that identify the profile; a `*` matches anything.
pub(super) static HOSTS: &[(Word, Word)] = &[
    ("api.anthropic.com", "anthropic"),
    ("bedrock-*.amazonaws.com", "bedrock"),
    ("bedrock-*.api.aws", "bedrock"),
    ("aiplatform.googleapis.com", "vertex"),
    ("*-aiplatform.googleapis.com", "vertex"),
    ("api.openai.com", "openai"),
    ("*.api.openai.com", "openai"),
    ("*.openai.azure.com", "azure"),
    ("*.cognitiveservices.azure.com", "azure"),
    ("*.services.ai.azure.com", "azure"),
    ("openrouter.ai", "openrouter"),
    ("api.mistral.ai", "mistral"),
    ("codestral.mistral.ai", "mistral"),
    ("api.deepseek.com", "deepseek"),
    ("api.moonshot.ai", "kimi"),
    ("api.moonshot.cn", "kimi"),
    ("api.kimi.com", "kimi"),
    ("api.groq.com", "groq"),
    ("api.cerebras.ai", "cerebras"),
    ("api.x.ai", "xai"),
    ("*.api.x.ai", "xai"),
    ("api.together.xyz", "together"),
    ("api.together.ai", "together"),
    ("generativelanguage.googleapis.com", "gemini"),
    ("ollama.com", "ollama"),
];

/// Ports that a server has by itself and hardly any other.
pub(super) static PORTS: &[(u16, Word)] =
    &[(11434, "ollama"), (1234, "lmstudio"), (4000, "litellm"), (30000, "sglang")];

/// Further names that people give a provider in their settings.
pub(super) static ALIASES: &[(Word, Word)] = &[
    ("azure-openai", "azure"),
    ("aws-bedrock", "bedrock"),
    ("vertex-ai", "vertex"),
    ("moonshot", "kimi"),
    ("google", "gemini"),
    ("grok", "xai"),
    ("x-ai", "xai"),
    ("together-ai", "together"),
    ("llama.cpp", "llamacpp"),
    ("llama-cpp", "llamacpp"),
    ("llama-server", "llamacpp"),
    ("lm-studio", "lmstudio"),
];

/// Response headers that tell the profile: a part of the name, a part of the value in lower case.
pub(super) static HEADERS: &[(Word, Word, Word)] = &[
    ("x-litellm-", "", "litellm"),
    ("server", "llama.cpp", "llamacpp"),
    ("server", "vllm", "vllm"),
    ("server", "sglang", "sglang"),
    ("server", "ollama", "ollama"),
    ("x-groq-", "", "groq"),
    ("apim-request-id", "", "azure"),
];

/// Who owns the models of a list, in the servers that say so.
pub(super) static OWNERS: &[(Word, Word)] = &[
    ("vllm", "vllm"),
    ("sglang", "sglang"),
    ("llamacpp", "llamacpp"),
    ("library", "ollama"),
    ("organization_owner", "lmstudio"),
];

/// How the keys of providers start, where that identifies the provider.
pub(super) static KEYS: &[(Word, Word)] = &[
    ("sk-ant-", "anthropic"),
    ("sk-or-", "openrouter"),
    ("sk-proj-", "openai"),
    ("gsk_", "groq"),
    ("xai-", "xai"),
    ("csk-", "cerebras"),
    ("AIza", "gemini"),
    ("tgp_", "together"),
];
