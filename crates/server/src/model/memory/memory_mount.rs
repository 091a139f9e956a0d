//! Memory stores as resources of sessions.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::memory_path::slug;
use super::memory_store::MemoryStore;
use crate::model::fields::Fields;
use crate::model::ids::MemoryStoreId;
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;

/// The most memory stores of a session.
pub const MOST_STORES: usize = 8;
const LONGEST_INSTRUCTIONS: usize = 4_096;

/// What a session may do with a memory store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// It reads memories.
    ReadOnly,
    /// It reads and changes memories.
    ReadWrite,
}

/// A memory store that is mounted into a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryMount {
    /// The store, as clients name it.
    #[serde(rename = "memory_store_id")]
    pub store: String,
    /// What the session may do with it.
    pub access: Access,
    /// What the agent is to do with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The name of the store when it was mounted.
    pub name: String,
    /// What the store is for.
    pub description: String,
}

impl MemoryMount {
    /// Reads a resource; name and description come with the store.
    ///
    /// # Errors
    /// When a field cannot be used, or the store cannot exist.
    pub fn read(fields: Fields<'_>) -> Result<Self, Refusal> {
        let text = fields.text("memory_store_id", 1..=256)?;
        let id = MemoryStoreId::parse(text).ok_or_else(|| Refusal::not_found("memory store", text))?;
        let access = match fields.word("access", &["read_write", "read_only"])? {
            Some("read_only") => Access::ReadOnly,
            Some(_) | None => Access::ReadWrite,
        };
        let instructions = fields.optional_text("instructions", 0..=LONGEST_INSTRUCTIONS)?;
        Ok(Self {
            store: id.to_string(),
            access,
            instructions: instructions.map(str::to_owned),
            name: String::new(),
            description: String::new(),
        })
    }

    /// The store.
    #[must_use]
    pub fn id(&self) -> Option<MemoryStoreId> {
        MemoryStoreId::parse(&self.store)
    }

    /// Takes over what the store says about itself. Answers with the path at which it is mounted, which none of `taken` has.
    ///
    /// # Errors
    /// When the store is archived.
    pub fn complete(&mut self, store: &MemoryStore, taken: &[String]) -> Result<String, Problem> {
        if store.archived_at.is_some() {
            let problem = format!("is `{}`, which is archived", store.id);
            return Err(Problem::field("memory_store_id", problem).with_code("memory_store_archived"));
        }
        self.name.clone_from(&store.body.name);
        self.description.clone_from(&store.body.description);
        let first = format!("/mnt/memory/{}", slug(&self.name));
        let others = (2..).map(|number| format!("{first}-{number}"));
        let mut free = std::iter::once(first.clone()).chain(others).filter(|path| !taken.contains(path));
        Ok(free.next().unwrap_or(first))
    }

    /// As clients read it.
    #[must_use]
    pub fn view(&self, id: &str) -> Value {
        json!({ "id": id, "type": "memory_store", "memory_store_id": self.store, "access": self.access,
            "instructions": self.instructions, "name": self.name, "description": self.description })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::memory_store::MemoryStoreBody;
    use crate::model::metadata::Metadata;
    use crate::model::time::Time;

    #[test]
    fn stores_of_one_name_are_mounted_at_two_places() {
        let body = MemoryStoreBody {
            name: "Team Notes".to_owned(),
            description: "About us".to_owned(),
            metadata: Metadata::default(),
        };
        let mut store = MemoryStore {
            id: MemoryStoreId([1; 16]),
            body,
            count: 0,
            size: 0,
            created_at: Time(0),
            updated_at: Time(0),
            archived_at: None,
        };
        let value = json!({ "memory_store_id": store.id, "access": "read_only" });
        let mut mount = MemoryMount::read(Fields::of_body(&value).unwrap()).unwrap();
        let first = mount.complete(&store, &[]).unwrap();
        assert_eq!((first.as_str(), mount.access), ("/mnt/memory/team-notes", Access::ReadOnly));
        assert_eq!(mount.complete(&store, &[first]).unwrap(), "/mnt/memory/team-notes-2");
        assert_eq!(mount.view("r")["access"], "read_only");
        store.archived_at = Some(Time(1));
        assert_eq!(mount.complete(&store, &[]).unwrap_err().field.as_deref(), Some("memory_store_id"));
    }
}
