//! What settings and SDKs write under `compat`: the name of a profile, or an object of fields that differ, with the
//! profile they differ from under `profile`. A name or a field that does not exist is an error that names the nearest.

use qoder_types::display::distance;
use serde_json::{Map, Value};

use super::{Profile, profiles};
use crate::error::ModelConfigError;

/// The key of the profile that an object starts from.
const START: &str = "profile";

/// The profile that `compat` describes, starting from `found` where it names none. `setting` is the path of the
/// setting, for errors.
pub(crate) fn apply(found: Profile, compat: &Value, setting: &str) -> Result<Profile, ModelConfigError> {
    match compat {
        Value::Null => Ok(found),
        Value::String(name) => named(name, setting),
        Value::Object(fields) => {
            let start = match fields.get(START) {
                None | Some(Value::Null) => found,
                Some(Value::String(name)) => named(name, &format!("{setting}.{START}"))?,
                Some(other) => {
                    return Err(invalid(&format!("{setting}.{START}"), other, "the name of a profile"));
                }
            };
            with_fields(start, fields, setting)
        }
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            Err(invalid(setting, compat, "the name of a profile or an object of its fields"))
        }
    }
}

/// True when `compat` names a profile and leaves nothing to be found out.
pub(crate) fn names_profile(compat: &Value) -> bool {
    compat.is_string() || compat.get(START).is_some_and(Value::is_string)
}

/// The profile of this name.
fn named(name: &str, setting: &str) -> Result<Profile, ModelConfigError> {
    let wanted = name.trim().to_ascii_lowercase();
    let known = profiles().iter().find(|profile| profile.name == wanted);
    known.copied().ok_or_else(|| ModelConfigError::UnknownProfile {
        setting: setting.to_owned(),
        name: name.to_owned(),
        nearest: nearest(&wanted, profiles().iter().map(|profile| profile.name)),
    })
}

fn invalid(setting: &str, value: &Value, accepted: &str) -> ModelConfigError {
    ModelConfigError::BadCompat {
        setting: setting.to_owned(),
        problem: format!("is {value}; accepted is {accepted}"),
    }
}

/// The profile with the fields that differ. Fields of an object differ one by one.
pub(crate) fn with_fields(
    profile: Profile,
    fields: &Map<String, Value>,
    setting: &str,
) -> Result<Profile, ModelConfigError> {
    let mut value = serde_json::to_value(profile).unwrap_or_default();
    for (name, change) in fields.iter().filter(|(name, _)| *name != START) {
        let Some(kept) = value.get_mut(name).filter(|_| name != "name" && name != "title") else {
            let known: Vec<String> =
                value.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
            return Err(ModelConfigError::UnknownCompatField {
                setting: setting.to_owned(),
                field: name.clone(),
                nearest: nearest(name, known.iter().map(String::as_str)),
            });
        };
        match (kept, change) {
            (Value::Object(inner), Value::Object(changes)) => inner.extend(changes.clone()),
            (kept, change) => *kept = change.clone(),
        }
        // One by one, so that an error is about this field.
        serde_json::from_value::<Profile>(value.clone()).map_err(|error| ModelConfigError::BadCompat {
            setting: format!("{setting}.{name}"),
            problem: format!("is {change}: {error}"),
        })?;
    }
    serde_json::from_value(value).map_err(|error| ModelConfigError::BadCompat {
        setting: setting.to_owned(),
        problem: error.to_string(),
    })
}

/// The known word that is nearest to `word`: the fewest changes, and a common beginning where that is a tie.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    let wanted = word.to_ascii_lowercase();
    let common = |name: &str| name.chars().zip(wanted.chars()).take_while(|(a, b)| a == b).count();
    known
        .min_by_key(|name| {
            let lower = name.to_ascii_lowercase();
            let inside = lower.contains(&wanted) || wanted.contains(&lower);
            (if inside { 1 } else { distance(&lower, &wanted) }, usize::MAX - common(&lower))
        })
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Images, UNKNOWN_CHAT};
    use super::*;

    #[test]
    fn a_name_or_an_object_changes_the_profile() {
        let by_name = apply(UNKNOWN_CHAT, &json!("mistral"), "s").unwrap();
        assert_eq!(by_name.name, "mistral");
        let changed = apply(
            UNKNOWN_CHAT,
            &json!({"profile": "mistral", "images": "none", "callIds": {"longest": 12}, "neverSent": ["x"]}),
            "s",
        )
        .unwrap();
        assert_eq!((changed.name, changed.images), ("mistral", Images::None));
        assert_eq!((changed.call_ids.shortest, changed.call_ids.longest), (9, 12));
        assert!(!changed.sends("x"));
        assert_eq!(apply(UNKNOWN_CHAT, &Value::Null, "s").unwrap(), UNKNOWN_CHAT);
    }

    #[test]
    fn every_field_of_every_profile_can_be_written_in_settings() {
        for profile in profiles() {
            let mut fields = serde_json::to_value(profile).unwrap();
            fields.as_object_mut().unwrap().retain(|name, _| name != "name" && name != "title");
            let read = apply(UNKNOWN_CHAT, &fields, "s").unwrap();
            assert_eq!(Profile { name: profile.name, title: profile.title, ..read }, *profile);
        }
    }

    #[test]
    fn mistakes_name_the_setting_and_the_nearest_name() {
        for (compat, expected) in [
            (json!("mistrel"), ["`providers.p.compat`", "`mistrel`", "`mistral`"]),
            (json!({"profile": "vllmm"}), ["`providers.p.compat.profile`", "`vllmm`", "`vllm`"]),
            (json!({"neverSend": []}), ["`providers.p.compat`", "`neverSend`", "`neverSent`"]),
            (json!({"images": "no"}), ["`providers.p.compat.images`", "\"no\"", "user_message"]),
            (json!(7), ["`providers.p.compat`", "is 7", "the name of a profile"]),
        ] {
            let error = apply(UNKNOWN_CHAT, &compat, "providers.p.compat").unwrap_err();
            let text = format!("{error}. {}", error.hint());
            for part in expected {
                assert!(text.contains(part), "{text} has no {part}");
            }
        }
    }
}
