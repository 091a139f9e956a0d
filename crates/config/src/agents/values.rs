//! Values that definitions and the settings about them have in common: times, numbers, lists of names and servers.

use std::time::Duration;

use serde_json::{Map, Value};

use super::ServerReference;
use crate::server_config::{check_name, parse_server};

/// The longest time limit: a week.
const MOST_MINUTES: f64 = 7.0 * 24.0 * 60.0;
/// The most entries of a list.
pub(super) const MOST_ENTRIES: usize = 1_000;

/// What a time limit takes.
pub(super) const MINUTES_ACCEPTED: &str = "accepted are minutes above 0, at most a week";
/// What a temperature takes.
pub(super) const TEMPERATURES_ACCEPTED: &str = "accepted are numbers from 0 to 2";

/// A time limit in minutes.
pub(super) fn minutes(value: &Value) -> Option<Duration> {
    let minutes = value.as_f64().filter(|minutes| *minutes > 0.0 && *minutes <= MOST_MINUTES)?;
    Duration::try_from_secs_f64(minutes * 60.0).ok()
}

/// How much words may vary.
pub(super) fn temperature(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| (0.0..=2.0).contains(number))
}

/// Names and descriptions of servers: a list of both, or an object of descriptions by name. The error says what is wrong.
pub(super) fn servers(value: &Value) -> Result<Vec<ServerReference>, String> {
    let accepted = "accepted is a list of names and of objects such as {\"kb\": {\"command\": \"…\"}}";
    let mut all = Vec::new();
    match value {
        Value::Array(items) => {
            for item in items {
                match item {
                    Value::String(name) => {
                        check_name(name).map_err(|error| error.to_string())?;
                        all.push(ServerReference::Name(name.clone()));
                    }
                    Value::Object(described) => all.extend(inline(described)?),
                    other => return Err(format!("has {} in it; {accepted}", shown(other))),
                }
            }
        }
        Value::Object(described) => all.extend(inline(described)?),
        other => return Err(format!("is {}; {accepted}", shown(other))),
    }
    if all.len() > MOST_ENTRIES {
        return Err(format!("has more than {MOST_ENTRIES} entries"));
    }
    Ok(all)
}

fn inline(described: &Map<String, Value>) -> Result<Vec<ServerReference>, String> {
    let read = |(name, config): (&String, &Value)| {
        parse_server(name, config).map_err(|error| format!("{error}; {}", error.hint()))?;
        Ok(ServerReference::Inline { name: name.clone(), config: config.clone() })
    };
    described.iter().map(read).collect()
}

/// Names between commas; those inside of parentheses belong to what stands before them.
pub(super) fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0_usize;
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match (letter, depth, parts.last_mut()) {
            (',', 0, _) => parts.push(String::new()),
            (_, _, Some(part)) => part.push(letter),
            (_, _, None) => {}
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// A value as a message shows it: short, and nothing of what an object holds.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if text.chars().count() > 60 => "a long text".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}
