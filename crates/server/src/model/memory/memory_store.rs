//! Memory stores: what is kept of one, what an update changes, and how clients read it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::fields::{Change, Fields};
use crate::model::ids::MemoryStoreId;
use crate::model::metadata::{self, EmptyText, Metadata};
use crate::model::problem::Problem;
use crate::model::time::Time;

const LONGEST_NAME: usize = 255;
const LONGEST_DESCRIPTION: usize = 1_024;

/// What a row keeps of a memory store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryStoreBody {
    /// Its name, from which the place is made at which it is mounted.
    pub name: String,
    /// What it is for; agents read it.
    pub description: String,
    /// What the owner wrote on it.
    #[serde(default)]
    pub metadata: Metadata,
}

impl MemoryStoreBody {
    /// Reads the body of a creation.
    ///
    /// # Errors
    /// When a field is missing or cannot be used.
    pub fn create(body: &Value) -> Result<Self, Problem> {
        let fields = Fields::of_body(body)?;
        Ok(Self {
            name: name(fields)?.ok_or_else(|| Problem::field("name", "is required"))?,
            description: fields
                .optional_text("description", 0..=LONGEST_DESCRIPTION)?
                .unwrap_or_default()
                .to_owned(),
            metadata: metadata::read(fields.get("metadata").unwrap_or(&Value::Null))?,
        })
    }

    /// Applies an update.
    ///
    /// # Errors
    /// When a field cannot be used.
    pub fn updated(&self, body: &Value) -> Result<Self, Problem> {
        let fields = Fields::of_body(body)?;
        let mut after = self.clone();
        if let Some(name) = name(fields)? {
            after.name = name;
        }
        if fields.change("description") != Change::Keep {
            let description = fields.optional_text("description", 0..=LONGEST_DESCRIPTION)?;
            after.description = description.unwrap_or_default().to_owned();
        }
        if let Change::Set(patch) = fields.change("metadata") {
            after.metadata = metadata::patched(&self.metadata, patch, EmptyText::Kept)?;
        }
        Ok(after)
    }
}

fn name(fields: Fields<'_>) -> Result<Option<String>, Problem> {
    let name = fields.optional_text("name", 1..=LONGEST_NAME)?;
    if name.is_some_and(|name| name.contains(char::is_control)) {
        return Err(Problem::field("name", "has control characters"));
    }
    Ok(name.map(str::to_owned))
}

/// A memory store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryStore {
    /// The store.
    pub id: MemoryStoreId,
    /// What is kept of it.
    pub body: MemoryStoreBody,
    /// How many memories it has.
    pub count: u64,
    /// How many bytes they have together.
    pub size: u64,
    /// When it was created.
    pub created_at: Time,
    /// When it was changed.
    pub updated_at: Time,
    /// When it was archived.
    pub archived_at: Option<Time>,
}

impl MemoryStore {
    /// As clients read it.
    #[must_use]
    pub fn view(&self) -> Value {
        let status = if self.archived_at.is_some() { "archived" } else { "active" };
        json!({
            "id": self.id, "type": "memory_store", "name": self.body.name, "description": self.body.description,
            "metadata": self.body.metadata, "status": status, "entry_count": self.count, "total_size": self.size,
            "created_at": self.created_at, "updated_at": self.updated_at, "archived_at": self.archived_at,
        })
    }
}
