//! Permission rules out of the layers, each with the file and line it was written in. An allow rule that cannot be read
//! is dropped with a warning; a deny or ask rule that cannot be read stops the start, because losing it in silence
//! would be worse.

use qoder_policy::{Rule, RuleSet, split_rules};
use qoder_types::{Behavior, RuleOrigin, RuleSource};
use serde_json::Value;

use super::{Layer, Settings, SettingsError};

/// Rules that a front gives beside the settings, as lists.
#[derive(Debug, Clone, Copy, Default)]
pub struct GivenRules<'a> {
    /// Rules that allow.
    pub allowed: &'a [String],
    /// Rules that deny.
    pub disallowed: &'a [String],
    /// Tools that are denied and stay visible to the model.
    pub disallowed_visible: &'a [String],
}

/// Collects the rules of all layers and of the front.
pub fn collect_rules(
    settings: &Settings,
    given: GivenRules<'_>,
    warnings: &mut Vec<String>,
) -> Result<RuleSet, SettingsError> {
    let mut rules = RuleSet::default();
    for layer in &settings.layers {
        for (behavior, key) in [(Behavior::Deny, "deny"), (Behavior::Ask, "ask"), (Behavior::Allow, "allow")]
        {
            add_layer(&mut rules, layer, behavior, key, warnings)?;
        }
    }
    let origin = RuleOrigin { source: RuleSource::CliArg, file: None, line: None };
    let wrong = |key: &str, problem: String| SettingsError::Value {
        place: "command line".to_owned(),
        key: key.to_owned(),
        problem,
    };
    for (behavior, flag, lists) in [
        (Behavior::Deny, "--disallowed-tools", given.disallowed),
        (Behavior::Allow, "--allowed-tools", given.allowed),
    ] {
        for text in lists.iter().flat_map(|list| split_rules(list)) {
            let rule = Rule::parse(&text, origin.clone()).map_err(|error| wrong(flag, error.to_string()))?;
            rules.add(behavior, rule);
        }
    }
    for text in given.disallowed_visible {
        let key = "disallowed_visible_tools";
        let rule = Rule::parse(text, origin.clone()).map_err(|error| wrong(key, error.to_string()))?;
        if rule.content.is_some() {
            return Err(wrong(key, format!("`{text}` names a part of a tool; name the whole tool")));
        }
        rules.add(Behavior::Deny, Rule { is_visible: true, ..rule });
    }
    Ok(rules)
}

fn add_layer(
    rules: &mut RuleSet,
    layer: &Layer,
    behavior: Behavior,
    key: &str,
    warnings: &mut Vec<String>,
) -> Result<(), SettingsError> {
    let pointer = format!("/permissions/{key}");
    let name = format!("permissions.{key}");
    let wrong =
        |problem: String| SettingsError::Value { place: layer.place(&name), key: name.clone(), problem };
    let items = match layer.value.pointer(&pointer) {
        None => return Ok(()),
        Some(Value::Array(items)) => items,
        Some(_) => return Err(wrong("is not a list of rules".to_owned())),
    };
    for (index, item) in items.iter().enumerate() {
        let Some(text) = item.as_str() else {
            return Err(wrong(format!("has an entry that is not text: {item}")));
        };
        let origin = RuleOrigin {
            source: layer.source,
            file: layer.file.as_ref().map(|file| file.display().to_string()),
            line: layer.lines.get(&format!("{pointer}/{index}")).copied(),
        };
        match Rule::parse(text, origin) {
            Ok(rule) => rules.add(behavior, rule),
            Err(error) if behavior == Behavior::Allow => {
                warnings.push(format!("{}: {error}; it is ignored", layer.name()));
            }
            Err(error) => return Err(wrong(format!("cannot be used: {error}"))),
        }
    }
    Ok(())
}
