//! The keys that are known, what they take and what they mean. An unknown key is warned about with the nearest known
//! name: a misspelt key that is ignored in silence is a setting that does not hold. The page about settings is made
//! from this table.

use qoder_types::display::distance;
use serde_json::Value;

use super::Layer;
use super::kinds::Kind;

/// A known key.
#[derive(Debug)]
pub struct KnownKey {
    /// Dotted path. A final `.*` takes any name.
    pub path: &'static str,
    /// What it takes; with a final `.*`, what each name takes.
    pub kind: Kind,
    /// What it is for.
    pub meaning: &'static str,
    /// The value without any layer, as JSON text; empty for none.
    pub default: &'static str,
    /// False for a key that is accepted, because other programs write it, and changes nothing yet.
    pub has_effect: bool,
}

const fn key(path: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> KnownKey {
    KnownKey { path, kind, meaning, default, has_effect: true }
}

/// A key that changes nothing yet.
const fn reserved(path: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> KnownKey {
    KnownKey { path, kind, meaning, default, has_effect: false }
}

/// The first three switch thinking off.
const EFFORTS: &[&str] = &["disabled", "off", "none", "low", "medium", "high", "xhigh", "max"];

/// Every key this version knows, used or reserved for parts that other versions have.
pub const KNOWN_KEYS: &[KnownKey] = &[
    key(
        "model.name",
        Kind::Text,
        "\"auto\"",
        "model or tier: auto, ultimate, performance, efficient, lite, provider/model",
    ),
    key("model.fallback", Kind::Text, "", "model to ask when the main one fails"),
    key(
        "model.image",
        Kind::Text,
        "",
        "image model of the tool ImageGen, such as openai/gpt-image-1; without one the tool is not offered",
    ),
    key(
        "model.reasoningEffort",
        Kind::OneOf(EFFORTS),
        "",
        "disabled, off or none: no thinking; low, medium, high, xhigh or max",
    ),
    key("model.contextWindow", Kind::Whole(1), "", "context window in tokens"),
    key("model.maxOutputTokens", Kind::Whole(1), "", "the most tokens of one reply"),
    key("model.maxSessionTurns", Kind::Whole(-1), "-1", "model calls per turn; -1 is unlimited"),
    key("model.tiers.*", Kind::Text, "", "model behind a tier"),
    key(
        "model.prices.*",
        Kind::Object,
        "",
        "dollars per million tokens: input, output, cacheRead, cacheWrite; image: dollars per picture",
    ),
    key("model.contextWindows.*", Kind::Whole(1), "", "context window of a model in tokens"),
    key("model.maxOutputTokensByModel.*", Kind::Whole(1), "", "the most tokens of one reply, per model"),
    key(
        "providers.*",
        Kind::Object,
        "",
        "an endpoint: protocol, baseUrl, apiKey or apiKeyEnv, headers, models, compat; see models.md",
    ),
    key("models.providers.*", Kind::Object, "", "the same as `providers.*`"),
    key("permissions.allow", Kind::Texts, "[]", "rules that allow"),
    key("permissions.ask", Kind::Texts, "[]", "rules that ask"),
    key("permissions.deny", Kind::Texts, "[]", "rules that deny"),
    key("permissions.additionalDirectories", Kind::Texts, "[]", "more directories to work in"),
    key(
        "permissions.unattended",
        Kind::OneOf(&["deny", "park"]),
        "\"deny\"",
        "what an ask means without anyone to answer: deny it, or park it in the session until it is answered",
    ),
    key("permissions.trustDirectories", Kind::Texts, "[]", "trusted folders (user settings only)"),
    key(
        "general.defaultPermissionMode",
        Kind::Mode,
        "\"default\"",
        "default, accept_edits, plan, dont_ask, auto, bypass_permissions",
    ),
    key("general.maxAttempts", Kind::Whole(0), "10", "attempts per model request, at most 10"),
    reserved("general.retryFetchErrors", Kind::Boolean, "true", "try again after network errors"),
    key(
        "general.durability",
        Kind::OneOf(&["process", "power"]),
        "\"process\"",
        "process: survives a crash; power: survives a loss of power too",
    ),
    key(
        "general.sessionRetention.enabled",
        Kind::Boolean,
        "true",
        "delete old sessions (not in project settings)",
    ),
    key(
        "general.sessionRetention.maxAge",
        Kind::Age,
        "\"30d\"",
        "how long a session is kept after it was last used",
    ),
    key(
        "general.sessionRetention.minRetention",
        Kind::Age,
        "\"1d\"",
        "no session younger than this is ever deleted",
    ),
    key(
        "general.fileCheckpointing.enabled",
        Kind::Boolean,
        "false",
        "keep files as they were before tools change them, for rewinding; the interactive terminal does so unless this is false",
    ),
    key(
        "general.fileCheckpointing.maxBytes",
        Kind::Whole(0),
        "1073741824",
        "room for the checkpoints of all sessions together (not in project settings)",
    ),
    reserved("general.plan.*", Kind::Any, "", "plan mode"),
    reserved("general.outputStyle", Kind::Text, "", "output style"),
    key(
        "general.preferredEditor",
        Kind::Text,
        "",
        "editor of the terminal; otherwise $VISUAL, $EDITOR or vi",
    ),
    key("general.vimMode", Kind::Boolean, "false", "vim keys in the prompt of the terminal"),
    reserved("general.enableAutoUpdate", Kind::Boolean, "true", "update by itself"),
    key(
        "general.enableNotifications",
        Kind::Boolean,
        "false",
        "notify when a question waits or a long turn ended, while the terminal has no focus",
    ),
    key(
        "general.notificationMethod",
        Kind::OneOf(&["auto", "osc9", "osc777", "bell"]),
        "\"auto\"",
        "how the terminal notifies: auto, osc9, osc777 or bell",
    ),
    key("context.fileName", Kind::TextOrTexts, "\"AGENTS.md\"", "name or names of memory files"),
    key("context.discoveryMaxDirs", Kind::Whole(0), "200", "directories searched for memory files"),
    reserved("context.memoryBoundaryMarkers", Kind::Texts, "[\".git\"]", "what marks the top of a project"),
    reserved("context.importFormat", Kind::OneOf(&["tree", "flat"]), "\"tree\"", "tree or flat"),
    reserved(
        "context.loadMemoryFromIncludeDirectories",
        Kind::Boolean,
        "false",
        "memory files of additional directories too",
    ),
    key(
        "context.fileFiltering.respectGitIgnore",
        Kind::Boolean,
        "true",
        "Glob and Grep leave ignored files out",
    ),
    reserved(
        "context.fileFiltering.enableRecursiveFileSearch",
        Kind::Boolean,
        "true",
        "search below the working directory",
    ),
    key("agentsMdExcludes", Kind::Texts, "[]", "memory files to leave out, as globs"),
    key("tools.core", Kind::Texts, "", "the built-in tools that exist"),
    key("tools.exclude", Kind::Texts, "[]", "built-in tools to leave out"),
    key("tools.shell.timeoutMs", Kind::Whole(0), "120000", "default time limit of a command"),
    key(
        "tools.shell.inactivityTimeout",
        Kind::Whole(0),
        "300",
        "seconds without output before a command is stopped",
    ),
    reserved("tools.shell.pager", Kind::Text, "\"cat\"", "pager of commands"),
    key(
        "tools.webSearch.provider",
        Kind::OneOf(&["searxng", "brave", "tavily"]),
        "",
        "the service behind WebSearch: searxng, brave or tavily",
    ),
    key("tools.webSearch.baseUrl", Kind::Text, "", "where the search service is; searxng needs it"),
    key("tools.webSearch.apiKeyEnv", Kind::Text, "", "the environment variable that holds its key"),
    key("tools.webSearch.apiKey", Kind::Text, "", "its key itself; a variable is better"),
    key("tools.webSearch.maxResults", Kind::Whole(1), "10", "results of one search"),
    key("tools.sandbox", Kind::Any, "", "confine commands: true, a backend, or the fields of `sandbox`"),
    key("tools.sandboxAllowedPaths", Kind::Texts, "[]", "paths a confined command may write"),
    key("tools.sandboxNetworkAccess", Kind::Boolean, "false", "network for confined commands"),
    reserved("tools.useRipgrep", Kind::Boolean, "true", "search engine"),
    reserved("tools.disableLLMCorrection", Kind::Boolean, "true", "no repair of failing edits by a model"),
    key(
        "security.folderTrust.enabled",
        Kind::Boolean,
        "true",
        "folders must be trusted before their files are used",
    ),
    key(
        "security.projectEnvironment",
        Kind::Texts,
        "[]",
        "variables that `${NAME}` in a project's files may stand for (not in a project's settings)",
    ),
    key("security.disableYoloMode", Kind::Boolean, "false", "forbid bypassPermissions"),
    key("security.toolSandboxing", Kind::Boolean, "false", "confine commands"),
    reserved("security.environmentVariableRedaction.*", Kind::Any, "", "hide environment variables"),
    key(
        "advanced.excludedEnvVars",
        Kind::Texts,
        "[\"DEBUG\",\"DEBUG_MODE\"]",
        "variables that commands do not inherit",
    ),
    key(
        "output.format",
        Kind::OneOf(&["text", "json", "stream-json"]),
        "\"text\"",
        "text, json or stream-json",
    ),
    key("hooks.*", Kind::Any, "", "hooks by event; those of all layers run; see hooks.md"),
    key("mcpServers.*", Kind::Any, "", "MCP servers by name; see mcp.md"),
    key("mcp.allowed", Kind::Texts, "", "only these MCP servers"),
    key("mcp.excluded", Kind::Texts, "[]", "not these MCP servers"),
    key(
        "mcp.enableAllProjectMcpServers",
        Kind::Boolean,
        "false",
        "servers of trusted folders need no approval (not in a project's settings)",
    ),
    key(
        "mcp.enabledProjectMcpServers",
        Kind::Texts,
        "[]",
        "names of servers that need no approval (not in a project's settings)",
    ),
    key("mcp.disabledProjectMcpServers", Kind::Texts, "[]", "servers of folders that are switched off"),
    key(
        "mcp.lazyLoad",
        Kind::Any,
        "\"auto\"",
        "true: the model looks tools of servers up by name; auto: when they would fill over a tenth of the context",
    ),
    key(
        "mcp.startWaitMs",
        Kind::Whole(0),
        "5000",
        "how long the first model call waits for servers that still connect",
    ),
    key(
        "agents.overrides.*",
        Kind::Object,
        "",
        "changes of an agent: enabled, tools, runConfig, modelConfig, mcpServers; see subagents.md",
    ),
    key(
        "agents.maxConcurrent",
        Kind::Whole(1),
        "8",
        "agents that work at the same time, at each depth; no more",
    ),
    key(
        "agents.maxDepth",
        Kind::Whole(0),
        "1",
        "how deep agents may start agents, at most 10: with 1 no agent starts another; a project can only lower it",
    ),
    key("agents.maxTotal", Kind::Whole(0), "200", "agents of one session; no more"),
    key(
        "autoMode.classifier",
        Kind::Text,
        "",
        "model that judges calls in auto mode; without one they are denied",
    ),
    key("autoMode.allow", Kind::Texts, "[]", "what the classifier should usually allow, in words"),
    key("autoMode.soft_deny", Kind::Texts, "[]", "what the classifier should usually deny, in words"),
    key("autoMode.environment", Kind::Texts, "[]", "what the classifier should know about the surroundings"),
    key(
        "enabledPlugins.*",
        Kind::Boolean,
        "",
        "switches an installed plugin on or off, by its identifier such as `name@local`",
    ),
    key("sandbox.enabled", Kind::Boolean, "false", "confine commands"),
    key(
        "sandbox.autoAllowBashIfSandboxed",
        Kind::Boolean,
        "true",
        "confined commands need no question; deny and ask rules still hold",
    ),
    key("sandbox.excludedCommands", Kind::Texts, "[]", "first words of commands that run outside"),
    key(
        "sandbox.allowUnsandboxedCommands",
        Kind::Boolean,
        "true",
        "the model may ask to run a command outside; the person decides",
    ),
    key(
        "sandbox.network.allowedDomains",
        Kind::Texts,
        "[]",
        "hosts that may be reached: host, *.host for subdomains, * for every public host",
    ),
    key("sandbox.network.deniedDomains", Kind::Texts, "[]", "hosts that may not, whatever is allowed"),
    key(
        "sandbox.network.allowLocalBinding",
        Kind::Boolean,
        "false",
        "servers may listen on the command's own loopback",
    ),
    key(
        "sandbox.network.allowUnixSockets",
        Kind::Texts,
        "[]",
        "unix sockets that may be used; no system enforces a list, so one is refused",
    ),
    key("sandbox.network.allowAllUnixSockets", Kind::Boolean, "false", "every unix socket may be used"),
    key("sandbox.network.httpProxyPort", Kind::Whole(1), "", "your own HTTP proxy decides, on this port"),
    key("sandbox.network.socksProxyPort", Kind::Whole(1), "", "your own SOCKS proxy decides, on this port"),
    key("sandbox.filesystem.allowWrite", Kind::Texts, "[]", "more places to write"),
    key("sandbox.filesystem.denyWrite", Kind::Texts, "[]", "places in the workspace that stay as they are"),
    key("sandbox.filesystem.denyRead", Kind::Texts, "[]", "places that cannot be read"),
    key("sandbox.filesystem.allowRead", Kind::Texts, "[]", "places inside those that can"),
    key(
        "sandbox.filesystem.allowManagedReadPathsOnly",
        Kind::Boolean,
        "false",
        "only managed settings name readable places",
    ),
    key("sandbox.ignoreViolations.*", Kind::Texts, "", "messages not to be told, by command prefix or `*`"),
    key(
        "sandbox.enableWeakerNestedSandbox",
        Kind::Boolean,
        "false",
        "do without namespaces where there are none; protected files are then guarded by the gate alone",
    ),
    key("ui.theme", Kind::Text, "\"ANSI\"", "colours of the terminal; see terminal.md"),
    key("ui.customThemes.*", Kind::Object, "", "themes of your own, by name"),
    key("ui.showSpinner", Kind::Boolean, "true", "false: nothing on the screen moves by itself"),
    key("ui.inlineThinkingMode", Kind::Text, "", "full: thinking is shown whole, not as one line"),
    key("ui.toolOutputLines", Kind::Whole(0), "5", "lines of output that a finished command shows"),
    key("ui.compactToolOutput", Kind::Boolean, "false", "show no output of finished commands"),
    key("ui.hideWindowTitle", Kind::Boolean, "false", "leave the title of the window alone"),
    key("ui.doubleEscToInterrupt", Kind::Boolean, "false", "Esc has to be pressed twice to stop a turn"),
    key(
        "ui.accessibility.screenReader",
        Kind::Boolean,
        "false",
        "the terminal prints lines and moves no cursor, for screen readers",
    ),
    reserved("ui.autoThemeSwitching", Kind::Boolean, "true", "theme by the terminal's background"),
    reserved("ui.terminalBackgroundPollingInterval", Kind::Whole(0), "60", "seconds between looks at it"),
    key("statusLine.command", Kind::Text, "", "command that prints the status line of the terminal"),
    reserved("statusLine.type", Kind::Text, "", "command"),
    reserved("statusLine.padding", Kind::Any, "", "blanks around the status line"),
    reserved("statusLine.colors.*", Kind::Any, "", "colours of the status line"),
    key("agent", Kind::Text, "", "the agent that the main conversation runs as; see subagents.md"),
    reserved("outputStyle", Kind::Text, "", "output style"),
    key("language", Kind::Text, "", "language of replies"),
    reserved("autoMemoryEnabled", Kind::Boolean, "false", "memory that writes itself"),
    reserved("allowManagedPermissionRulesOnly", Kind::Boolean, "false", "only managed rules count"),
    reserved("vpcInstanceName", Kind::Text, "", "private deployment"),
    key("$schema", Kind::Text, "", "JSON schema of this file"),
];

/// Warnings about keys that are not known.
pub(super) fn check(layer: &Layer) -> Vec<String> {
    let mut warnings = Vec::new();
    walk(&layer.value, "", layer, &mut warnings);
    warnings
}

fn walk(value: &Value, prefix: &str, layer: &Layer, warnings: &mut Vec<String>) {
    let Value::Object(map) = value else { return };
    for (name, below) in map {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        if is_known(&path) {
            continue;
        }
        if below.is_object() && is_group(&path) {
            walk(below, &path, layer, warnings);
            continue;
        }
        let nearest = nearest(&path).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        warnings.push(format!("{}: unknown setting `{path}`{nearest}", layer.place(&path)));
    }
}

/// True for a dotted path that this version knows.
#[must_use]
pub fn is_known(path: &str) -> bool {
    KNOWN_KEYS.iter().any(|known| match known.path.strip_suffix(".*") {
        Some(group) => path == group || path.strip_prefix(group).is_some_and(|rest| rest.starts_with('.')),
        None => known.path == path,
    })
}

/// Every known path and every group on the way to it.
fn names() -> impl Iterator<Item = &'static str> {
    KNOWN_KEYS.iter().flat_map(|known| {
        let path = known.path.trim_end_matches(".*");
        path.match_indices('.').map(|(at, _)| &path[..at]).chain([path])
    })
}

/// True for a name with known keys below it.
pub(super) fn is_group(path: &str) -> bool {
    let below = |known: &KnownKey| known.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
    KNOWN_KEYS.iter().any(below)
}

fn nearest(path: &str) -> Option<&'static str> {
    let last = |text: &str| text.rsplit('.').next().unwrap_or_default().to_lowercase();
    let wanted = last(path);
    names()
        .map(|known| {
            let whole = distance(&path.to_lowercase(), &known.to_lowercase());
            // The right name in the wrong group is the commonest mistake.
            let name = if last(known) == wanted { 0 } else { distance(&wanted, &last(known)) + 1 };
            (whole.min(name), known)
        })
        .min()
        .filter(|(distance, _)| *distance <= 3)
        .map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use qoder_types::RuleSource;

    use super::*;

    fn layer(value: Value) -> Layer {
        Layer {
            source: RuleSource::ProjectSettings,
            file: None,
            value,
            lines: std::collections::BTreeMap::new(),
        }
    }

    #[test]
    fn unknown_keys_are_named_with_their_neighbour() {
        let warnings = check(&layer(serde_json::json!({
            "permisions": {"allow": []}, "general": {"maxAttemps": 3}, "maxAttempts": 2, "hooks": {"X": []}
        })));
        assert_eq!(warnings.len(), 3, "{warnings:?}");
        assert!(warnings.iter().any(|warning| warning.contains("`permisions`; did you mean `permissions`?")));
        assert!(
            warnings
                .iter()
                .any(|warning| warning.contains("`general.maxAttemps`; did you mean `general.maxAttempts`?"))
        );
        assert!(
            warnings
                .iter()
                .any(|warning| warning.contains("`maxAttempts`; did you mean `general.maxAttempts`?"))
        );
    }
}
