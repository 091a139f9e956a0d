//! The keys that are known, what they mean, and which a project may not set. An unknown key is warned about with the
//! nearest known name: a misspelt key that is ignored in silence is a setting that does not hold.

use qoder_types::{PermissionMode, RuleSource};
use serde_json::Value;

use super::Layer;

/// A known key.
#[derive(Debug)]
pub struct KnownKey {
    /// Dotted path. A final `.*` takes any name.
    pub path: &'static str,
    /// What it takes and means.
    pub meaning: &'static str,
    /// The value without any layer, as JSON text; empty for none.
    pub default: &'static str,
}

const fn key(path: &'static str, default: &'static str, meaning: &'static str) -> KnownKey {
    KnownKey { path, meaning, default }
}

/// Every key this version knows, used or reserved for parts that other versions have.
pub const KNOWN_KEYS: &[KnownKey] = &[
    key(
        "model.name",
        "\"auto\"",
        "model or tier: auto, ultimate, performance, efficient, lite, provider/model",
    ),
    key("model.fallback", "", "model to ask when the main one fails"),
    key("model.reasoningEffort", "", "off, none, low, medium, high, xhigh or max"),
    key("model.contextWindow", "", "context window in tokens"),
    key("model.maxOutputTokens", "", "the most tokens of one reply"),
    key("model.maxSessionTurns", "-1", "model calls per turn; -1 is unlimited"),
    key("model.tiers.*", "", "model behind a tier"),
    key("model.prices.*", "", "dollars per million tokens: input, output, cacheRead, cacheWrite"),
    key("model.contextWindows.*", "", "context window of a model in tokens"),
    key("model.maxOutputTokensByModel.*", "", "the most tokens of one reply, per model"),
    key("providers.*", "", "an endpoint: protocol, baseUrl, apiKey or apiKeyEnv, headers, models"),
    key("permissions.allow", "[]", "rules that allow"),
    key("permissions.ask", "[]", "rules that ask"),
    key("permissions.deny", "[]", "rules that deny"),
    key("permissions.additionalDirectories", "[]", "more directories to work in"),
    key("permissions.trustDirectories", "[]", "trusted folders (user settings only)"),
    key(
        "general.defaultPermissionMode",
        "\"default\"",
        "default, accept_edits, plan, dont_ask, auto, bypass_permissions",
    ),
    key("general.maxAttempts", "10", "attempts per model request, at most 10"),
    key("general.retryFetchErrors", "true", "try again after network errors"),
    key(
        "general.durability",
        "\"process\"",
        "process: survives a crash; power: survives a loss of power too",
    ),
    key("general.sessionRetention.*", "", "how long sessions are kept"),
    key("general.fileCheckpointing.enabled", "true", "keep file versions for rewind"),
    key("general.plan.*", "", "plan mode"),
    key("general.outputStyle", "", "output style"),
    key("general.preferredEditor", "", "editor"),
    key("general.vimMode", "false", "vim keys"),
    key("general.enableAutoUpdate", "true", "update by itself"),
    key("general.enableNotifications", "false", "desktop notifications"),
    key("context.fileName", "\"AGENTS.md\"", "name or names of memory files"),
    key("context.discoveryMaxDirs", "200", "directories searched for memory files"),
    key("context.memoryBoundaryMarkers", "[\".git\"]", "what marks the top of a project"),
    key("context.importFormat", "\"tree\"", "tree or flat"),
    key("context.loadMemoryFromIncludeDirectories", "false", "memory files of additional directories too"),
    key("context.fileFiltering.respectGitIgnore", "true", "Glob and Grep leave ignored files out"),
    key("context.fileFiltering.enableRecursiveFileSearch", "true", "search below the working directory"),
    key("agentsMdExcludes", "[]", "memory files to leave out, as globs"),
    key("tools.core", "", "the built-in tools that exist"),
    key("tools.exclude", "[]", "built-in tools to leave out"),
    key("tools.shell.timeoutMs", "120000", "default time limit of a command"),
    key("tools.shell.inactivityTimeout", "300", "seconds without output before a command is stopped"),
    key("tools.shell.pager", "\"cat\"", "pager of commands"),
    key("tools.sandbox", "", "confine commands"),
    key("tools.sandboxAllowedPaths", "[]", "paths a confined command may write"),
    key("tools.sandboxNetworkAccess", "false", "network for confined commands"),
    key("tools.useRipgrep", "true", "search engine"),
    key("tools.disableLLMCorrection", "true", "no repair of failing edits by a model"),
    key("security.folderTrust.enabled", "true", "folders must be trusted before their files are used"),
    key("security.disableYoloMode", "false", "forbid bypassPermissions"),
    key("security.toolSandboxing", "false", "confine tools"),
    key("security.environmentVariableRedaction.*", "", "hide environment variables"),
    key("advanced.excludedEnvVars", "[\"DEBUG\",\"DEBUG_MODE\"]", "variables that commands do not inherit"),
    key("output.format", "\"text\"", "text, json or stream-json"),
    key("hooks.*", "", "hooks"),
    key("mcpServers.*", "", "MCP servers"),
    key("mcp.*", "", "MCP"),
    key("agents.*", "", "subagents"),
    key("autoMode.*", "", "hints for auto mode"),
    key("enabledPlugins.*", "", "plugins"),
    key("sandbox.*", "", "sandbox"),
    key("ui.*", "", "terminal"),
    key("statusLine.*", "", "status line"),
    key("agent", "", "agent of the main thread"),
    key("outputStyle", "", "output style"),
    key("language", "", "language of replies"),
    key("autoMemoryEnabled", "false", "memory that writes itself"),
    key("allowManagedPermissionRulesOnly", "false", "only managed rules count"),
    key("vpcInstanceName", "", "private deployment"),
    key("$schema", "", "JSON schema of this file"),
];

/// Keys that a project's files may not set: they would let a folder choose who is trusted, where keys go, or what runs.
const FORBIDDEN_IN_PROJECT: [&str; 8] = [
    "/providers",
    "/permissions/trustDirectories",
    "/security",
    "/model/prices",
    "/autoMode",
    "/allowManagedPermissionRulesOnly",
    "/sandbox",
    "/tools/sandbox",
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
        let inner = format!("{path}.");
        if is_known(&path) {
            continue;
        }
        if below.is_object() && KNOWN_KEYS.iter().any(|known| known.path.starts_with(&inner)) {
            walk(below, &path, layer, warnings);
            continue;
        }
        let pointer = format!("/{}", path.replace('.', "/"));
        let line = layer.lines.get(&pointer).map(|line| format!(":{line}")).unwrap_or_default();
        let nearest = nearest(&path).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        warnings.push(format!("{}{line}: unknown setting `{path}`{nearest}", layer.name()));
    }
}

fn is_known(path: &str) -> bool {
    KNOWN_KEYS.iter().any(|known| match known.path.strip_suffix(".*") {
        Some(group) => path == group || path.strip_prefix(group).is_some_and(|rest| rest.starts_with('.')),
        None => known.path == path,
    })
}

fn nearest(path: &str) -> Option<&'static str> {
    let last = |text: &str| text.trim_end_matches(".*").rsplit('.').next().unwrap_or_default().to_lowercase();
    let wanted = last(path);
    KNOWN_KEYS
        .iter()
        .map(|known| {
            let whole = distance(&path.to_lowercase(), &known.path.to_lowercase());
            // The right name in the wrong group is the commonest mistake.
            let name = if last(known.path) == wanted { 0 } else { distance(&wanted, &last(known.path)) + 1 };
            (whole.min(name), known.path)
        })
        .min()
        .filter(|(distance, _)| *distance <= 3)
        .map(|(_, path)| path)
}

/// Levenshtein distance.
pub(super) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut previous = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = previous + usize::from(x != *y);
            previous = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(previous + 1);
        }
    }
    row[b.len()]
}

/// Removes what a project may not set and says so.
pub(super) fn take_forbidden(layer: &mut Layer) -> Vec<String> {
    let project = matches!(layer.source, RuleSource::ProjectSettings | RuleSource::LocalSettings);
    if !project {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    let name = layer.name();
    for pointer in FORBIDDEN_IN_PROJECT {
        if remove(&mut layer.value, pointer) {
            let key = pointer.trim_start_matches('/').replace('/', ".");
            warnings.push(format!("{name}: `{key}` cannot be set by a project; it is ignored"));
        }
    }
    let mode = layer.value.pointer("/general/defaultPermissionMode").and_then(Value::as_str);
    let loose = mode
        .and_then(PermissionMode::parse)
        .is_some_and(|mode| matches!(mode, PermissionMode::BypassPermissions | PermissionMode::Auto));
    if loose && remove(&mut layer.value, "/general/defaultPermissionMode") {
        warnings.push(format!("{name}: a project cannot choose that permission mode; it is ignored"));
    }
    warnings
}

fn remove(value: &mut Value, pointer: &str) -> bool {
    let Some((parent, name)) = pointer.rsplit_once('/') else { return false };
    value.pointer_mut(parent).and_then(Value::as_object_mut).is_some_and(|map| map.remove(name).is_some())
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn a_project_cannot_redirect_keys_or_loosen_itself() {
        let mut layer = layer(serde_json::json!({
            "providers": {"x": {}}, "general": {"defaultPermissionMode": "bypass_permissions"}, "model": {"name": "m"}
        }));
        assert_eq!(take_forbidden(&mut layer).len(), 2);
        assert_eq!(layer.value, serde_json::json!({"general": {}, "model": {"name": "m"}}));
    }
}
