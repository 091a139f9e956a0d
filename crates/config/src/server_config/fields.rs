//! Reading the fields of a description: each by one of its spellings, with its type checked and named when it is wrong. A
//! null is a field that is not there.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use super::ConfigError;
use crate::sources::kind_of;

/// The fields of one server.
pub(super) struct Fields<'a> {
    pub(super) server: &'a str,
    pub(super) map: &'a Map<String, Value>,
    /// Where the fields are, for messages: empty, or a name with a dot.
    pub(super) place: &'a str,
}

impl<'a> Fields<'a> {
    /// The first of the spellings that is there.
    pub(super) fn get(&self, spellings: &[&'static str]) -> Option<(&'static str, &'a Value)> {
        let found = |name: &&'static str| self.map.get(*name).map(|value| (*name, value));
        spellings.iter().find_map(found).filter(|(_, value)| !value.is_null())
    }

    pub(super) fn wrong(&self, field: &str, problem: impl Into<String>) -> ConfigError {
        ConfigError::field(self.server, format!("{}{field}", self.place), problem)
    }

    pub(super) fn text(&self, spellings: &[&'static str]) -> Result<Option<&'a str>, ConfigError> {
        let Some((name, value)) = self.get(spellings) else { return Ok(None) };
        match value.as_str() {
            Some(text) if text.contains('\0') => Err(self.wrong(name, "has a NUL character")),
            Some(text) => Ok(Some(text)),
            None => Err(self.wrong(name, format!("must be a text, not {}", kind_of(value)))),
        }
    }

    /// A text that must be there and say something.
    pub(super) fn needed(&self, spellings: &[&'static str]) -> Result<&'a str, ConfigError> {
        let name = spellings.first().copied().unwrap_or_default();
        match self.text(spellings)? {
            None => Err(self.wrong(name, "is missing")),
            Some(text) if text.trim().is_empty() => Err(self.wrong(name, "is empty")),
            Some(text) => Ok(text),
        }
    }

    pub(super) fn flag(&self, spellings: &[&'static str]) -> Result<Option<bool>, ConfigError> {
        let Some((name, value)) = self.get(spellings) else { return Ok(None) };
        let wrong = || self.wrong(name, format!("must be true or false, not {}", kind_of(value)));
        value.as_bool().map(Some).ok_or_else(wrong)
    }

    pub(super) fn texts(&self, spellings: &[&'static str]) -> Result<Option<Vec<String>>, ConfigError> {
        let Some((name, value)) = self.get(spellings) else { return Ok(None) };
        let Some(items) = value.as_array() else {
            return Err(self.wrong(name, format!("must be a list of texts, not {}", kind_of(value))));
        };
        let item = |(index, item): (usize, &Value)| match item.as_str() {
            Some(text) if !text.contains('\0') => Ok(text.to_owned()),
            Some(_) => Err(self.wrong(&format!("{name}[{index}]"), "has a NUL character")),
            None => {
                Err(self.wrong(&format!("{name}[{index}]"), format!("must be a text, not {}", kind_of(item))))
            }
        };
        items.iter().enumerate().map(item).collect::<Result<_, _>>().map(Some)
    }

    pub(super) fn pairs(&self, name: &'static str) -> Result<BTreeMap<String, String>, ConfigError> {
        let Some((name, value)) = self.get(&[name]) else { return Ok(BTreeMap::new()) };
        let Some(map) = value.as_object() else {
            return Err(self.wrong(name, format!("must be an object of texts, not {}", kind_of(value))));
        };
        let pair = |(key, value): (&String, &Value)| match value.as_str() {
            Some(text) => Ok((key.clone(), text.to_owned())),
            None => {
                Err(self.wrong(&format!("{name}.{key}"), format!("must be a text, not {}", kind_of(value))))
            }
        };
        map.iter().map(pair).collect()
    }

    pub(super) fn milliseconds(&self, name: &'static str) -> Result<Option<Duration>, ConfigError> {
        let Some((name, value)) = self.get(&[name]) else { return Ok(None) };
        match value.as_u64() {
            Some(number) if number > 0 => Ok(Some(Duration::from_millis(number))),
            Some(_) | None => Err(self.wrong(name, "must be a whole number of milliseconds above 0")),
        }
    }

    pub(super) fn port(&self, spellings: &[&'static str]) -> Result<Option<u16>, ConfigError> {
        let Some((name, value)) = self.get(spellings) else { return Ok(None) };
        match value.as_u64().and_then(|number| u16::try_from(number).ok()) {
            Some(port) if port > 0 => Ok(Some(port)),
            Some(_) | None => Err(self.wrong(name, "must be a port: 1 to 65535")),
        }
    }
}
