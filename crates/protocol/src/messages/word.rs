//! Words of a closed list that a later version may extend. What this version knows has a type; any other word is kept.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use qoder_types::TaskStatus;
use qoder_types::record::{TerminalReason, TurnSubtype};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A closed list of words.
pub trait Vocabulary: Copy {
    /// The word.
    fn word(self) -> &'static str;
}

impl Vocabulary for TurnSubtype {
    fn word(self) -> &'static str {
        self.as_str()
    }
}

impl Vocabulary for TerminalReason {
    fn word(self) -> &'static str {
        self.as_str()
    }
}

impl Vocabulary for TaskStatus {
    fn word(self) -> &'static str {
        self.as_str()
    }
}

/// A word of the list `T`, or one that this version does not know. It can be used as a text.
///
/// ```
/// use qoder_protocol::messages::Word;
/// use qoder_types::record::TurnSubtype;
///
/// let known: Word<TurnSubtype> = "success".into();
/// assert_eq!(known.known(), Some(TurnSubtype::Success));
/// assert_eq!(known, "success");
/// let later: Word<TurnSubtype> = "error_later".into();
/// assert_eq!((later.known(), later.as_str()), (None, "error_later"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word<T> {
    /// A word of the list.
    Known(T),
    /// Any other word.
    Other(String),
}

impl<T: Vocabulary> Word<T> {
    /// The word as a text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(known) => known.word(),
            Self::Other(word) => word,
        }
    }

    /// The word, when it is one of the list.
    #[must_use]
    pub fn known(&self) -> Option<T> {
        match self {
            Self::Known(known) => Some(*known),
            Self::Other(_) => None,
        }
    }
}

impl<T> Default for Word<T> {
    fn default() -> Self {
        Self::Other(String::new())
    }
}

impl<T: Vocabulary> Deref for Word<T> {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl<T: Vocabulary> fmt::Display for Word<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl<T: Vocabulary> PartialEq<str> for Word<T> {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl<T: Vocabulary> PartialEq<&str> for Word<T> {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl<T> From<T> for Word<T>
where
    T: Vocabulary,
{
    fn from(known: T) -> Self {
        Self::Known(known)
    }
}

impl<T: for<'de> Deserialize<'de>> From<&str> for Word<T> {
    fn from(word: &str) -> Self {
        let words: StrDeserializer<'_, Error> = word.into_deserializer();
        T::deserialize(words).map_or_else(|_| Self::Other(word.to_owned()), Self::Known)
    }
}

impl<T: Vocabulary> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de, T: for<'word> Deserialize<'word>> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|word| Self::from(word.as_str()))
    }
}

/// The schema lists the words that this version writes.
impl<T: JsonSchema> JsonSchema for Word<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
