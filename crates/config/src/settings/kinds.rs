//! What a key takes, and the check of a layer against it. A value of another kind stops the start: a setting that was
//! meant to protect and does not count would be worse than no start.

use std::time::Duration;

use qoder_types::PermissionMode;
use serde_json::Value;

use super::keys::{KNOWN_KEYS, is_group};
use super::{Layer, SettingsError};

/// What a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Anything: the key is kept for other versions.
    Any,
    /// `true` or `false`.
    Boolean,
    /// A whole number, at least this one.
    Whole(i64),
    /// A text.
    Text,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// A permission mode by any of its spellings.
    Mode,
    /// A list of texts.
    Texts,
    /// A text or a list of texts.
    TextOrTexts,
    /// An object.
    Object,
    /// A length of time such as `30d`.
    Age,
}

/// The largest whole number: what every part of the program can count to.
const MOST: i64 = u32::MAX as i64;

impl Kind {
    fn takes(self, value: &Value) -> bool {
        let texts = || value.as_array().is_some_and(|items| items.iter().all(Value::is_string));
        match self {
            Self::Any => true,
            Self::Boolean => value.is_boolean(),
            Self::Whole(least) => value.as_i64().is_some_and(|number| (least..=MOST).contains(&number)),
            Self::Text => value.is_string(),
            Self::OneOf(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            Self::Mode => value.as_str().is_some_and(|word| PermissionMode::parse(word).is_some()),
            Self::Texts => texts(),
            Self::TextOrTexts => value.is_string() || texts(),
            Self::Object => value.is_object(),
            Self::Age => value.as_str().is_some_and(|text| age(text).is_some()),
        }
    }

    /// What is accepted, for people.
    #[must_use]
    pub fn accepted(self) -> String {
        match self {
            Self::Any => "any value".to_owned(),
            Self::Boolean => "true or false".to_owned(),
            Self::Whole(least) => format!("a whole number from {least} to {MOST}"),
            Self::Text => "a text".to_owned(),
            Self::OneOf(words) => words.join(", "),
            Self::Mode => PermissionMode::ACCEPTED.to_owned(),
            Self::Texts => "a list of texts".to_owned(),
            Self::TextOrTexts => "a text or a list of texts".to_owned(),
            Self::Object => "an object".to_owned(),
            Self::Age => "a whole number and one of s, m, h, d and w, such as \"30d\"".to_owned(),
        }
    }
}

/// A length of time: a whole number and its unit.
#[must_use]
pub fn age(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        'w' => 7 * 24 * 60 * 60,
        _ => return None,
    };
    let number = text.strip_suffix(unit)?;
    // A sign would be accepted by the number's own reader.
    let number: u64 = number.chars().all(|c| c.is_ascii_digit()).then(|| number.parse().ok()).flatten()?;
    number.checked_mul(seconds).map(Duration::from_secs)
}

/// The first value of a layer that its key does not take.
pub(super) fn check(layer: &Layer) -> Result<(), SettingsError> {
    walk(&layer.value, "", layer)
}

fn walk(value: &Value, prefix: &str, layer: &Layer) -> Result<(), SettingsError> {
    let Value::Object(map) = value else { return Ok(()) };
    for (name, below) in map {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        let members = KNOWN_KEYS.iter().find(|known| known.path.strip_suffix(".*") == Some(path.as_str()));
        let kind = match KNOWN_KEYS.iter().find(|known| known.path == path) {
            Some(known) => known.kind,
            None if members.is_some_and(|members| members.kind == Kind::Any) => Kind::Any,
            None if is_group(&path) => Kind::Object,
            None => Kind::Any,
        };
        require(kind, below, &path, &layer.lines_at(&[&path]), layer)?;
        if let Some(members) = members {
            for (member, value) in below.as_object().into_iter().flatten() {
                let shown = format!("{path}.{member}");
                require(members.kind, value, &shown, &layer.lines_at(&[&path, member]), layer)?;
            }
        } else if kind == Kind::Object {
            walk(below, &path, layer)?;
        }
    }
    Ok(())
}

fn require(kind: Kind, value: &Value, key: &str, line: &str, layer: &Layer) -> Result<(), SettingsError> {
    if kind.takes(value) {
        return Ok(());
    }
    Err(SettingsError::Value {
        place: format!("{}{line}", layer.name()),
        key: key.to_owned(),
        problem: format!("is {}; accepted is {}", found(kind, value), kind.accepted()),
    })
}

/// The value that was found. A text in the place of an object may be a key that must stay hidden.
fn found(kind: Kind, value: &Value) -> String {
    match value {
        Value::String(_) if kind == Kind::Object => "a text".to_owned(),
        Value::String(text) if text.chars().count() > 60 => "a long text".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(items) => match items.iter().find(|item| !item.is_string()) {
            Some(Value::Array(_)) => "a list with a list in it".to_owned(),
            Some(Value::Object(_)) => "a list with an object in it".to_owned(),
            Some(other) => format!("a list with {other} in it"),
            None => "a list".to_owned(),
        },
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use qoder_types::RuleSource;
    use serde_json::json;

    use super::*;

    fn problem(value: Value) -> Option<String> {
        let source = RuleSource::UserSettings;
        let layer = Layer { source, file: None, value, lines: BTreeMap::new() };
        check(&layer).err().map(|error| error.to_string())
    }

    #[test]
    fn every_default_is_of_its_kind() {
        for known in KNOWN_KEYS.iter().filter(|known| !known.default.is_empty()) {
            let default: Value = serde_json::from_str(known.default).unwrap();
            assert!(known.kind.takes(&default), "{}", known.path);
        }
    }

    #[test]
    fn lengths_of_time_are_a_number_and_a_unit() {
        let seconds = |text: &str| age(text).map(|age| age.as_secs());
        let good =
            [("30d", 2_592_000), ("1d", 86_400), ("12h", 43_200), ("5m", 300), ("0s", 0), ("2w", 1_209_600)];
        for (text, expected) in good {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for text in ["", "d", "30", "-1d", "+1d", "1.5d", "30 d", "30D", "1y", "99999999999999999999d", "９d"]
        {
            assert_eq!(seconds(text), None, "{text}");
        }
        assert_eq!(seconds(&format!("{}w", u64::MAX)), None);
        let told = problem(json!({"general": {"sessionRetention": {"maxAge": "soon"}}})).unwrap();
        assert!(told.contains("general.sessionRetention.maxAge") && told.contains("\"30d\""), "{told}");
    }

    #[test]
    fn values_of_another_kind_are_told_with_what_is_accepted() {
        let cases = [
            (json!({"security": {"disableYoloMode": "true"}}), "is \"true\"; accepted is true or false"),
            (json!({"general": {"maxAttempts": 1.5}}), "is 1.5; accepted is a whole number from 0"),
            (json!({"model": {"maxOutputTokens": 5_000_000_000_u64}}), "is 5000000000; accepted is a whole"),
            (json!({"model": {"maxSessionTurns": -2}}), "is -2; accepted is a whole number from -1"),
            (json!({"model": {"name": null}}), "is null; accepted is a text"),
            (json!({"model": {"tiers": {"a.b": 3}}}), "`model.tiers.a.b` is 3; accepted is a text"),
            (json!({"model": "x"}), "`model` is a text; accepted is an object"),
            (json!({"security": {"folderTrust": false}}), "`security.folderTrust` is false; accepted is an"),
            (json!({"providers": {"x": "sk-secret"}}), "`providers.x` is a text; accepted is an object"),
            (json!({"permissions": {"deny": ["a", 3]}}), "is a list with 3 in it; accepted is a list of"),
            (json!({"permissions": {"deny": "a"}}), "is \"a\"; accepted is a list of texts"),
            (json!({"context": {"fileName": 1}}), "is 1; accepted is a text or a list of texts"),
        ];
        for (value, expected) in cases {
            let problem = problem(value).unwrap();
            assert!(problem.contains(expected), "{problem}");
            assert!(!problem.contains("sk-secret"), "{problem}");
        }
    }

    #[test]
    fn values_of_their_kind_and_keys_of_other_versions_pass() {
        assert_eq!(
            problem(json!({"hooks": [], "unknown": {"model": 1}, "tools": {"sandbox": true, "core": []},
            "general": {"defaultPermissionMode": "accept_edits"}, "context": {"fileName": ["a"]},
            "model": {"maxSessionTurns": -1, "reasoningEffort": "off"}})),
            None
        );
    }
}
