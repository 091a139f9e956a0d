//! What a project's own files may not do: set keys that decide about trust, keys and endpoints, reach places outside
//! the project, or give commands more time than the person does. What is taken away is reported.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use qoder_types::tool::{SHELL_INACTIVITY_SECONDS, SHELL_TIMEOUT_MS};
use qoder_types::{PermissionMode, RuleSource};
use serde_json::Value;

use super::Layer;
use crate::home;

/// Keys that a project's files may not set: they would let a folder choose who is trusted, where keys go, what runs, or
/// what is kept of other projects.
const FORBIDDEN_IN_PROJECT: [&str; 16] = [
    "/providers",
    "/models/providers",
    "/permissions/trustDirectories",
    "/security",
    "/model/prices",
    "/autoMode",
    "/allowManagedPermissionRulesOnly",
    "/sandbox",
    "/tools/sandbox",
    "/tools/webSearch",
    "/tools/sandboxAllowedPaths",
    "/tools/sandboxNetworkAccess",
    "/mcp/enableAllProjectMcpServers",
    "/mcp/enabledProjectMcpServers",
    "/general/fileCheckpointing/maxBytes",
    "/general/sessionRetention",
];

fn is_of_project(layer: &Layer) -> bool {
    matches!(layer.source, RuleSource::ProjectSettings | RuleSource::LocalSettings)
}

/// Removes what a project may not set and says so.
pub(super) fn take_forbidden(layer: &mut Layer) -> Vec<String> {
    if !is_of_project(layer) {
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

/// Takes directories outside the project out of a project's list, and makes the others absolute.
pub(super) fn confine_directories(
    layer: &mut Layer,
    project_root: &Path,
    environment: &BTreeMap<String, String>,
) -> Vec<String> {
    let pointer = "/permissions/additionalDirectories";
    if !is_of_project(layer) {
        return Vec::new();
    }
    let Some(Value::Array(items)) = layer.value.pointer_mut(pointer).map(Value::take) else {
        return Vec::new();
    };
    let mut warnings = Vec::new();
    let mut kept = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let text = item.as_str().unwrap_or_default();
        let folder = project_root.join(home::expand_home(text, environment));
        match place_inside(&folder, project_root) {
            Some(folder) => kept.push(Value::String(folder.to_string_lossy().into_owned())),
            None => warnings.push(format!(
                "{}: a project cannot add the directory `{text}`, which is outside of it; it is ignored",
                layer.place(&format!("permissions.additionalDirectories.{index}"))
            )),
        }
    }
    if let Some(list) = layer.value.pointer_mut(pointer) {
        *list = Value::Array(kept);
    }
    warnings
}

/// The real place of a folder when it is inside `root`. One that does not exist yet must be inside by its name.
fn place_inside(folder: &Path, root: &Path) -> Option<PathBuf> {
    let climbs = folder.components().any(|part| part == Component::ParentDir);
    match folder.canonicalize() {
        Ok(real) => real.starts_with(root).then_some(real),
        Err(_) => (!climbs && folder.starts_with(root)).then(|| folder.to_path_buf()),
    }
}

/// Takes time limits out of a project's layer that are longer than those in force without it. `personal` are the layers
/// below.
pub(super) fn confine_times(layer: &mut Layer, personal: &[Layer]) -> Vec<String> {
    if !is_of_project(layer) {
        return Vec::new();
    }
    let limits = [
        ("tools.shell.timeoutMs", SHELL_TIMEOUT_MS),
        ("tools.shell.inactivityTimeout", SHELL_INACTIVITY_SECONDS),
    ];
    let mut warnings = Vec::new();
    for (key, default) in limits {
        let pointer = super::pointer(key);
        let number = |layer: &Layer| layer.value.pointer(&pointer).and_then(Value::as_u64);
        // Nothing is longer than no limit, which is what 0 stands for.
        let length = |number: u64| if number == 0 { u64::MAX } else { number };
        let most = personal.iter().rev().filter(|layer| !is_of_project(layer)).find_map(number);
        let most = length(most.unwrap_or(default));
        if number(layer).is_some_and(|wanted| length(wanted) > most) {
            warnings.push(format!("{}: a project can only shorten `{key}`; it is ignored", layer.place(key)));
            remove(&mut layer.value, &pointer);
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(source: RuleSource, value: Value) -> Layer {
        Layer { source, file: None, value, lines: BTreeMap::new() }
    }

    #[test]
    fn a_project_cannot_redirect_keys_or_loosen_itself() {
        let mut layer = layer(
            RuleSource::ProjectSettings,
            serde_json::json!({
                "providers": {"x": {}}, "general": {"defaultPermissionMode": "bypass_permissions"}, "model": {"name": "m"}
            }),
        );
        assert_eq!(take_forbidden(&mut layer).len(), 2);
        assert_eq!(layer.value, serde_json::json!({"general": {}, "model": {"name": "m"}}));
    }

    #[test]
    fn a_project_can_only_shorten_times() {
        let times = |first: u64, second: u64| serde_json::json!({"tools": {"shell": {"timeoutMs": first, "inactivityTimeout": second}}});
        let left = |value: Value, personal: &[Layer]| {
            let mut layer = layer(RuleSource::LocalSettings, value);
            let warnings = confine_times(&mut layer, personal).len();
            (layer.value["tools"]["shell"].as_object().unwrap().len(), warnings)
        };
        assert_eq!(left(times(120_000, 300), &[]), (2, 0));
        assert_eq!(left(times(120_001, 0), &[]), (0, 2));
        let user = [layer(RuleSource::UserSettings, times(1_000, 0))];
        assert_eq!(left(times(2_000, 9_999), &user), (1, 1));
        let mut own = layer(RuleSource::FlagSettings, times(0, 0));
        assert_eq!(confine_times(&mut own, &[]), Vec::<String>::new());
    }
}
