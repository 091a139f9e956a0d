//! Takes secrets out of text: the values of configured keys, and what has the shape of a well-known token. One engine for
//! whole texts and for text that comes in pieces; code that keeps text or lets it out uses one of the two.

mod shapes;
mod stream;

use std::borrow::Cow;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use memchr::memmem;
use serde_json::Value;

pub use stream::RedactedStream;

/// The text that replaces a secret.
pub const PLACEHOLDER: &str = "[redacted]";

/// A shorter value could be any word.
const SHORTEST: usize = 8;

/// Knows the secrets of one session.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    values: Arc<[String]>,
    learned: Learned,
}

/// Secrets that become known while a session runs, such as tokens of MCP servers.
#[derive(Clone, Debug, Default)]
pub struct Learned(Arc<RwLock<Vec<String>>>);

impl Learned {
    /// Takes a secret in; one too short to be one is ignored.
    pub fn add(&self, secret: &str) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for form in forms(secret) {
            if !known.contains(&form) {
                known.push(form);
            }
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Vec<String>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A secret as it is, and as it looks inside a JSON string.
fn forms(secret: &str) -> Vec<String> {
    if secret.len() < SHORTEST {
        return Vec::new();
    }
    let json = Value::from(secret).to_string();
    let inside = json.get(1..json.len() - 1).unwrap_or_default();
    let mut forms = vec![secret.to_owned()];
    if inside != secret {
        forms.push(inside.to_owned());
    }
    forms
}

/// Where secrets are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    /// The values of keys, and what has the shape of a token.
    All,
    /// The values of keys alone: in the input of a call, which runs as the model wrote it.
    Values,
}

impl Redactor {
    /// A redactor for these values; ones too short to be secrets are ignored.
    #[must_use]
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut values: Vec<String> = values.into_iter().flat_map(|value| forms(&value)).collect();
        values.sort();
        values.dedup();
        Self { values: values.into(), learned: Learned::default() }
    }

    /// Also takes out what is learned later.
    #[must_use]
    pub fn learning(mut self, learned: &Learned) -> Self {
        self.learned = learned.clone();
        self
    }

    /// The text without secrets.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.without(text, Secrets::All)
    }

    /// The text without the values of keys.
    #[must_use]
    pub fn without_values<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.without(text, Secrets::Values)
    }

    /// True when there is a secret in the text.
    #[must_use]
    pub fn finds(&self, text: &str) -> bool {
        !self.places(text.as_bytes(), 0, Secrets::All).is_empty()
    }

    /// False when there is no secret in the text, also where it is written with escapes.
    #[must_use]
    pub fn may_find(&self, text: &str) -> bool {
        let has = |value: &String| memmem::find(text.as_bytes(), value.as_bytes()).is_some();
        self.values.iter().chain(self.learned.read().iter()).any(has) || shapes::may_find(text.as_bytes())
    }

    fn without<'a>(&self, text: &'a str, secrets: Secrets) -> Cow<'a, str> {
        let places = self.places(text.as_bytes(), 0, secrets);
        if places.is_empty() {
            return Cow::Borrowed(text);
        }
        let clean = replaced(text.as_bytes(), 0, text.len(), &places);
        Cow::Owned(String::from_utf8_lossy(&clean).into_owned())
    }

    /// Takes secrets out of every string in the JSON. True when there was one.
    pub fn json(&self, value: &mut Value, secrets: Secrets) -> bool {
        match value {
            Value::String(text) => match self.without(text, secrets) {
                Cow::Owned(clean) => {
                    *text = clean;
                    true
                }
                Cow::Borrowed(_) => false,
            },
            // Every part is looked at, so no short circuit.
            Value::Array(items) => {
                items.iter_mut().fold(false, |found, item| self.json(item, secrets) | found)
            }
            Value::Object(map) => {
                map.values_mut().fold(false, |found, item| self.json(item, secrets) | found)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// A redactor for text that comes in pieces.
    #[must_use]
    pub fn stream(&self, secrets: Secrets) -> RedactedStream {
        RedactedStream::new(self.clone(), secrets)
    }

    /// Where secrets begin and end, in order and apart; `from` is where to begin, what is before it is only looked at.
    fn places(&self, bytes: &[u8], from: usize, secrets: Secrets) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        for value in self.values.iter().chain(self.learned.read().iter()) {
            let matches = memmem::find_iter(&bytes[from..], value.as_bytes());
            found.extend(matches.map(|at| (from + at, from + at + value.len())));
        }
        if secrets == Secrets::All {
            found.extend(shapes::places(bytes, from));
        }
        found.sort_unstable();
        let mut apart: Vec<(usize, usize)> = Vec::with_capacity(found.len());
        for (start, end) in found {
            match apart.last_mut() {
                Some(last) if start < last.1 => last.1 = last.1.max(end),
                _ => apart.push((start, end)),
            }
        }
        apart
    }

    /// How many bytes at the end may be the beginning of a value.
    fn begun_value(&self, bytes: &[u8]) -> usize {
        let begun = |value: &String| {
            let value = value.as_bytes();
            let longest = value.len().saturating_sub(1).min(bytes.len());
            (1..=longest).rev().find(|length| bytes.ends_with(&value[..*length])).unwrap_or(0)
        };
        self.values.iter().chain(self.learned.read().iter()).map(begun).max().unwrap_or(0)
    }
}

/// The bytes from one place to another with a placeholder for each secret.
fn replaced(bytes: &[u8], from: usize, to: usize, places: &[(usize, usize)]) -> Vec<u8> {
    let mut clean = Vec::with_capacity(to - from);
    let mut at = from;
    for (start, end) in places.iter().filter(|(start, end)| *start >= from && *end <= to) {
        clean.extend_from_slice(&bytes[at..*start]);
        clean.extend_from_slice(PLACEHOLDER.as_bytes());
        at = *end;
    }
    clean.extend_from_slice(&bytes[at..to]);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_shapes_are_taken_out_and_ordinary_text_stays() {
        let redactor = Redactor::new(["my-own-secret-value".to_owned(), "short".to_owned()]);
        let token = format!("ghp_{}", "a1B2".repeat(9));
        let cases = [
            ("key my-own-secret-value!".to_owned(), "key [redacted]!".to_owned()),
            (format!("push with {token}"), "push with [redacted]".to_owned()),
            (format!("sk-ant-api03-{}", "x".repeat(40)), "[redacted]".to_owned()),
            (format!("jwt eyJ{0}.eyJ{0}.{0}", "aB3_".repeat(5)), "jwt [redacted]".to_owned()),
            (
                "a\n-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nb".to_owned(),
                "a\n[redacted]\nb".to_owned(),
            ),
            ("a short sk-learn import of ghp_x".to_owned(), "a short sk-learn import of ghp_x".to_owned()),
        ];
        for (text, clean) in cases {
            assert_eq!(redactor.text(&text), clean);
        }
    }

    #[test]
    fn a_private_key_without_its_end_is_taken_out_as_far_as_it_goes() {
        let redactor = Redactor::default();
        let text = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk+/=\nmore\n[cut here] ordinary";
        assert_eq!(redactor.text(text), "[redacted][cut here] ordinary");
        let other = "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----";
        assert_eq!(redactor.text(other), other);
    }

    #[test]
    fn overlapping_values_become_one_placeholder() {
        let redactor =
            Redactor::new(["abcdefgh".to_owned(), "abcdefghij".to_owned(), "ghijklmnop".to_owned()]);
        assert_eq!(redactor.text("<abcdefghijklmnop>"), "<[redacted]>");
    }

    #[test]
    fn a_value_with_a_quote_is_found_inside_json_too() {
        let redactor = Redactor::new(["quoted\"secret".to_owned()]);
        assert_eq!(redactor.without_values(r#"{"a":"quoted\"secret"}"#), r#"{"a":"[redacted]"}"#);
    }
}
