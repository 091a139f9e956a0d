//! Resources of a session: repositories that are mounted into its workspace. Their credentials are kept apart, sealed, and never
//! shown.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use crate::model::fields::Fields;
use crate::model::ids::ResourceId;
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;
use crate::model::time::Time;

/// A repository that is mounted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// The resource, as clients name it.
    pub id: String,
    /// `github_repository` or `git_repository`.
    pub kind: String,
    /// Its address.
    pub url: String,
    /// What is checked out; the default branch without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<Value>,
    /// Where it is mounted.
    pub mount_path: String,
    /// When it was added, in microseconds.
    pub created_at: i64,
    /// When it was changed.
    pub updated_at: i64,
}

impl Resource {
    /// As clients read it.
    #[must_use]
    pub fn view(&self) -> Value {
        json!({
            "id": self.id, "type": self.kind, "url": self.url, "checkout": self.checkout,
            "mount_path": self.mount_path, "created_at": Time(self.created_at), "updated_at": Time(self.updated_at),
        })
    }
}

/// A resource that a request adds, and the credential that came with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewResource {
    /// The resource.
    pub resource: Resource,
    /// Its token or password.
    pub credential: Option<String>,
}

/// Reads a resource.
///
/// # Errors
/// When it cannot be used, or names a file or memory store that is not there.
pub fn read(value: &Value, now: Time) -> Result<NewResource, Refusal> {
    let fields = Fields::of(value, "type")?;
    let accepted = ["file", "github_repository", "git_repository", "memory_store"];
    let kind = match fields.word("type", &accepted)? {
        Some("file") => {
            return Err(Refusal::not_found("file", fields.text("file_id", 1..=256)?));
        }
        Some("memory_store") => {
            return Err(Refusal::not_found("memory store", fields.text("memory_store_id", 1..=256)?));
        }
        Some(kind) => kind,
        None => return Err(Problem::field("type", "is required").into()),
    };
    let url = fields.text("url", 1..=2_048)?;
    let parsed =
        Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let Some(parsed) = parsed else {
        return Err(Problem::field("url", "must be an http or https address").into());
    };
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(Problem::field("url", "must not contain credentials").into());
    }
    let name = parsed.path_segments().and_then(|mut parts| parts.rfind(|part| !part.is_empty()));
    let name = name.map(|name| name.strip_suffix(".git").unwrap_or(name)).unwrap_or("repository");
    let mount_path = match fields.optional_text("mount_path", 1..=1_024)? {
        Some(path) => mount_path(path)?,
        None => format!("/workspace/{name}"),
    };
    let resource = Resource {
        id: ResourceId::random().to_string(),
        kind: kind.to_owned(),
        url: url.to_owned(),
        checkout: checkout(fields)?,
        mount_path,
        created_at: now.0,
        updated_at: now.0,
    };
    Ok(NewResource { resource, credential: credential(fields)? })
}

/// The credential in a request: a token or a password.
///
/// # Errors
/// When it is not a text.
pub fn credential(fields: Fields<'_>) -> Result<Option<String>, Problem> {
    for key in ["authorization_token", "password"] {
        if let Some(credential) = fields.optional_text(key, 1..=16_384)? {
            return Ok(Some(credential.to_owned()));
        }
    }
    Ok(None)
}

fn checkout(fields: Fields<'_>) -> Result<Option<Value>, Problem> {
    let Some(checkout) = fields.object("checkout")? else { return Ok(None) };
    let read = || match checkout.word("type", &["branch", "commit"])? {
        Some("branch") => Ok(json!({ "type": "branch", "name": checkout.text("name", 1..=256)? })),
        Some(_) => {
            let sha = checkout.text("sha", 4..=64)?;
            if !sha.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(Problem::field("sha", "is not a commit"));
            }
            Ok(json!({ "type": "commit", "sha": sha }))
        }
        None => Err(Problem::field("type", "is required")),
    };
    read().map(Some).map_err(|problem: Problem| problem.inside("checkout"))
}

/// An absolute path inside of the session's own folders.
fn mount_path(path: &str) -> Result<String, Problem> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let is_inside =
        ["/workspace/", "/mnt/session/", "/data/workspace/"].iter().any(|root| path.starts_with(root));
    let is_plain = parts.iter().all(|part| *part != "." && *part != ".." && !part.contains(['\0', '\n']));
    if !is_inside || !is_plain {
        return Err(Problem::field("mount_path", "must be an absolute path below `/workspace`"));
    }
    Ok(format!("/{}", parts.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_mounted_below_the_workspace() {
        let new = read(
            &json!({ "type": "github_repository", "url": "https://github.com/a/tool.git",
            "authorization_token": "t", "checkout": { "type": "branch", "name": "main" } }),
            Time(5),
        )
        .unwrap();
        assert_eq!(
            (new.resource.mount_path.as_str(), new.credential.as_deref()),
            ("/workspace/tool", Some("t"))
        );
        assert!(!new.resource.view().to_string().contains("\"t\""), "credentials are not shown");
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let repository = |more: Value| {
            let mut value = json!({ "type": "git_repository", "url": "https://h/r" });
            value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            read(&value, Time(0))
        };
        assert!(repository(json!({})).is_ok());
        for (more, field) in [
            (json!({ "url": "git@h:r" }), "url"),
            (json!({ "url": "https://u:p@h/r" }), "url"),
            (json!({ "mount_path": "/etc" }), "mount_path"),
            (json!({ "mount_path": "/workspace/../etc" }), "mount_path"),
            (json!({ "checkout": { "type": "commit", "sha": "zzzz" } }), "checkout.sha"),
            (json!({ "type": "disk" }), "type"),
        ] {
            match repository(more.clone()).unwrap_err() {
                Refusal::Invalid(problem) => assert_eq!(problem.field.as_deref(), Some(field), "{more}"),
                other => panic!("{more}: {other}"),
            }
        }
        let file = read(&json!({ "type": "file", "file_id": "file_1" }), Time(0));
        assert_eq!(file.unwrap_err(), Refusal::not_found("file", "file_1"));
    }
}
