//! News of the runtime, as a view of their fields: every subtype reaches the program, also one that a later version of the
//! runtime writes. The common one, `init`, has a type of its own; all others are read from `data`.

use qoder_protocol::messages::{self, InitMessage};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// News of the runtime.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SystemMessage {
    /// `init`, `compact_boundary`, `status`, `task_started` and many others.
    pub subtype: String,
    /// All other fields.
    #[serde(flatten, deserialize_with = "data")]
    pub data: Map<String, Value>,
}

impl SystemMessage {
    /// A field that is a text.
    #[must_use]
    pub fn text(&self, field: &str) -> Option<&str> {
        self.data.get(field)?.as_str()
    }

    /// The view of a message of the runtime.
    pub(super) fn of(message: &messages::SystemMessage) -> serde_json::Result<Self> {
        Self::deserialize(serde_json::to_value(message)?)
    }

    /// What the session is, when this is `init`.
    #[must_use]
    pub fn init(&self) -> Option<InitMessage> {
        if self.subtype != "init" {
            return None;
        }
        serde_json::from_value(Value::Object(self.data.clone())).ok()
    }
}

/// All fields but the word that says the kind of the message.
fn data<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    let mut map = Map::deserialize(deserializer)?;
    map.remove("type");
    Ok(map)
}
