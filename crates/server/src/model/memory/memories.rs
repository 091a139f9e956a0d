//! Memories and their versions: what requests say about them, and how clients read them.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::memory_path;
use crate::model::fields::{Change, Fields};
use crate::model::ids::{MemoryId, MemoryStoreId, MemoryVersionId, SessionId, hex};
use crate::model::metadata::{self, EmptyText, Metadata};
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;
use crate::model::time::Time;

/// The longest content of a memory.
pub const LONGEST_CONTENT: usize = 102_400;

/// The hash of content, as clients write it.
#[must_use]
pub fn digest(content: &str) -> String {
    hex(&Sha256::digest(content))
}

/// Who changed a memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// A client, by its token.
    Token(String),
    /// An agent, by its session.
    Session(SessionId),
}

impl Actor {
    /// As rows keep it and clients read it.
    #[must_use]
    pub fn view(&self) -> Value {
        match self {
            Self::Token(id) => json!({ "type": "api_actor", "api_key_id": id }),
            Self::Session(id) => json!({ "type": "session_actor", "session_id": id }),
        }
    }
}

/// A memory that a request creates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMemory {
    /// Its path.
    pub path: String,
    /// Its content.
    pub content: String,
    /// What the owner wrote on it.
    pub metadata: Metadata,
}

impl NewMemory {
    /// Reads the body of a creation.
    ///
    /// # Errors
    /// When a field is missing or cannot be used.
    pub fn read(body: &Value) -> Result<Self, Problem> {
        let fields = Fields::of_body(body)?;
        Ok(Self {
            path: memory_path::read(fields.text("path", 1..=4_096)?)?,
            content: content(fields)?.unwrap_or_default(),
            metadata: metadata::read(fields.get("metadata").unwrap_or(&Value::Null))?,
        })
    }
}

fn content(fields: Fields<'_>) -> Result<Option<String>, Problem> {
    let content = fields.optional_text("content", 0..=LONGEST_CONTENT)?;
    if content.is_some_and(|content| content.len() > LONGEST_CONTENT) {
        return Err(Problem::field("content", format!("has more than {LONGEST_CONTENT} bytes")));
    }
    Ok(content.map(str::to_owned))
}

/// What an update changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryUpdate {
    /// Another path.
    pub path: Option<String>,
    /// Other content.
    pub content: Option<String>,
    /// A patch of what the owner wrote on it.
    pub metadata: Option<Value>,
    /// The hash that the content must have.
    pub expected: Option<String>,
}

impl MemoryUpdate {
    /// Reads the body of an update, with the lock of either dialect.
    ///
    /// # Errors
    /// When a field cannot be used.
    pub fn read(body: &Value) -> Result<Self, Problem> {
        let fields = Fields::of_body(body)?;
        let expected = match fields.object("precondition")? {
            Some(lock) => {
                let read = || {
                    lock.word("type", &["content_sha256"])?;
                    lock.optional_text("content_sha256", 64..=64)
                };
                read().map_err(|problem: Problem| problem.inside("precondition"))?
            }
            None => fields.optional_text("content_sha256", 64..=64)?,
        };
        let path = fields.optional_text("path", 1..=4_096)?.map(memory_path::read).transpose()?;
        let metadata = match fields.change("metadata") {
            Change::Set(patch) => Some(patch.clone()),
            Change::Keep | Change::Clear => None,
        };
        Ok(Self { path, content: content(fields)?, metadata, expected: expected.map(str::to_owned) })
    }

    /// Makes sure that a memory has the content that the sender expects.
    ///
    /// # Errors
    /// When it has other content.
    pub fn check(expected: Option<&str>, memory: &Memory) -> Result<(), Refusal> {
        match expected {
            Some(expected) if expected != memory.sha256 => Err(Refusal::Conflict {
                message: format!(
                    "The content of `{}` is not what the request expects: its hash is {}. Read it again.",
                    memory.path, memory.sha256
                ),
                code: Some("memory_precondition_failed_error"),
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// What the owner wrote on the memory, after the update.
    ///
    /// # Errors
    /// When the patch cannot be used.
    pub fn metadata(&self, before: &Metadata) -> Result<Metadata, Problem> {
        match &self.metadata {
            Some(patch) => metadata::patched(before, patch, EmptyText::Kept),
            None => Ok(before.clone()),
        }
    }
}

/// A memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// The memory.
    pub id: MemoryId,
    /// Its store.
    pub store: MemoryStoreId,
    /// The version that it has.
    pub version: MemoryVersionId,
    /// Its path.
    pub path: String,
    /// Its content, when it was asked for.
    pub content: Option<String>,
    /// The hash of its content.
    pub sha256: String,
    /// The length of its content.
    pub size: u64,
    /// What the owner wrote on it.
    pub metadata: Metadata,
    /// When it was created.
    pub created_at: Time,
    /// When it was changed.
    pub updated_at: Time,
}

impl Memory {
    /// As clients read it, with its content or without it.
    #[must_use]
    pub fn view(&self, is_full: bool) -> Value {
        json!({
            "id": self.id, "type": "memory", "memory_store_id": self.store, "memory_version_id": self.version,
            "path": self.path, "content": self.content.as_ref().filter(|_| is_full), "content_sha256": self.sha256,
            "content_size_bytes": self.size, "metadata": self.metadata, "created_at": self.created_at,
            "updated_at": self.updated_at,
        })
    }
}

/// What a version did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// It created the memory.
    Created,
    /// It changed the memory.
    Modified,
    /// It deleted the memory.
    Deleted,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 3] = [Self::Created, Self::Modified, Self::Deleted];

    /// The word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
        }
    }

    /// The operation of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.as_str() == word)
    }
}

/// A version of a memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryVersion {
    /// The version.
    pub id: MemoryVersionId,
    /// Its memory, which may be deleted.
    pub memory: MemoryId,
    /// The store of that.
    pub store: MemoryStoreId,
    /// What it did, as a word.
    pub operation: String,
    /// The path; none when it is redacted.
    pub path: Option<String>,
    /// The content; none when it is redacted or a deletion.
    pub content: Option<String>,
    /// The hash of that.
    pub sha256: Option<String>,
    /// Who made it.
    pub created_by: Value,
    /// When it was made.
    pub created_at: Time,
    /// When it was redacted.
    pub redacted_at: Option<Time>,
    /// By whom.
    pub redacted_by: Option<Value>,
}

impl MemoryVersion {
    /// As clients read it, with its content or without it.
    #[must_use]
    pub fn view(&self, is_full: bool) -> Value {
        json!({
            "id": self.id, "type": "memory_version", "memory_id": self.memory, "memory_store_id": self.store,
            "operation": self.operation, "path": self.path, "content": self.content.as_ref().filter(|_| is_full),
            "content_sha256": self.sha256, "content_size_bytes": self.content.as_ref().map(String::len),
            "created_by": self.created_by, "created_at": self.created_at, "redacted_at": self.redacted_at,
            "redacted_by": self.redacted_by,
        })
    }
}
