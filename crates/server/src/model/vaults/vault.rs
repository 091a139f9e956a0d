//! Vaults and the credentials in them: what is kept of each, what an update changes, and how clients read them.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::auth::{Auth, Secrets};
use crate::model::fields::{Change, Fields};
use crate::model::ids::{CredentialId, VaultId};
use crate::model::metadata::{self, EmptyText, Metadata};
use crate::model::problem::Problem;
use crate::model::time::Time;

const LONGEST_NAME: usize = 255;

/// What a row keeps of a vault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VaultBody {
    /// For people.
    pub display_name: String,
    /// What the owner wrote on it.
    #[serde(default)]
    pub metadata: Metadata,
}

impl VaultBody {
    /// Reads the body of a creation.
    ///
    /// # Errors
    /// When a field is missing or cannot be used.
    pub fn create(body: &Value) -> Result<Self, Problem> {
        let fields = Fields::of_body(body)?;
        Ok(Self {
            display_name: fields.text("display_name", 1..=LONGEST_NAME)?.to_owned(),
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
        if let Some(name) = fields.optional_text("display_name", 1..=LONGEST_NAME)? {
            after.display_name = name.to_owned();
        }
        if let Change::Set(patch) = fields.change("metadata") {
            after.metadata = metadata::patched(&self.metadata, patch, EmptyText::Kept)?;
        }
        Ok(after)
    }
}

/// A vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vault {
    /// The vault.
    pub id: VaultId,
    /// What is kept of it.
    pub body: VaultBody,
    /// When it was created.
    pub created_at: Time,
    /// When it was changed.
    pub updated_at: Time,
    /// When it was archived.
    pub archived_at: Option<Time>,
}

impl Vault {
    /// As clients read it.
    #[must_use]
    pub fn view(&self) -> Value {
        json!({
            "id": self.id, "type": "vault", "display_name": self.body.display_name, "metadata": self.body.metadata,
            "created_at": self.created_at, "updated_at": self.updated_at, "archived_at": self.archived_at,
        })
    }
}

/// What a row keeps of a credential that is not secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialBody {
    /// For people.
    pub display_name: Option<String>,
    /// What the owner wrote on it.
    #[serde(default)]
    pub metadata: Metadata,
    /// What it is for.
    pub auth: Auth,
}

impl CredentialBody {
    /// Reads the body of a creation, and what is secret of it.
    ///
    /// # Errors
    /// When a field is missing or cannot be used.
    pub fn create(body: &Value) -> Result<(Self, Secrets), Problem> {
        let fields = Fields::of_body(body)?;
        let auth = fields.object("auth")?.ok_or_else(|| Problem::field("auth", "is required"))?;
        let (auth, secrets) = Auth::create(auth).map_err(|problem| problem.inside("auth"))?;
        let created = Self {
            display_name: fields.optional_text("display_name", 0..=LONGEST_NAME)?.map(str::to_owned),
            metadata: metadata::read(fields.get("metadata").unwrap_or(&Value::Null))?,
            auth,
        };
        Ok((created, secrets))
    }

    /// Applies an update.
    ///
    /// # Errors
    /// When a field cannot be used or cannot change.
    pub fn updated(&self, secrets: &Secrets, body: &Value) -> Result<(Self, Secrets), Problem> {
        let fields = Fields::of_body(body)?;
        let (mut after, mut changed) = (self.clone(), secrets.clone());
        if fields.change("display_name") != Change::Keep {
            after.display_name = fields.optional_text("display_name", 0..=LONGEST_NAME)?.map(str::to_owned);
        }
        if let Change::Set(patch) = fields.change("metadata") {
            after.metadata = metadata::patched(&self.metadata, patch, EmptyText::Kept)?;
        }
        if let Some(auth) = fields.object("auth")? {
            after.auth.update(&mut changed, auth).map_err(|problem| problem.inside("auth"))?;
        }
        Ok((after, changed))
    }
}

/// A credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The credential.
    pub id: CredentialId,
    /// The vault that it is in.
    pub vault: VaultId,
    /// What is kept of it.
    pub body: CredentialBody,
    /// When it was created.
    pub created_at: Time,
    /// When it was changed.
    pub updated_at: Time,
    /// When it was archived.
    pub archived_at: Option<Time>,
}

impl Credential {
    /// As clients read it: nothing that is secret.
    #[must_use]
    pub fn view(&self) -> Value {
        json!({
            "id": self.id, "type": "vault_credential", "vault_id": self.vault, "display_name": self.body.display_name,
            "auth": self.body.auth.view(), "metadata": self.body.metadata, "created_at": self.created_at,
            "updated_at": self.updated_at, "archived_at": self.archived_at,
        })
    }
}
