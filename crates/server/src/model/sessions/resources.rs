//! Resources of a session: files, repositories and memory stores that are mounted into it. Credentials are kept apart, sealed, and
//! never shown.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use crate::model::fields::Fields;
use crate::model::ids::{FileId, ResourceId};
use crate::model::memory_mount::MemoryMount;
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;
use crate::model::time::Time;

/// What is mounted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Mounted {
    /// A file.
    File {
        /// The file, as clients name it.
        file_id: String,
    },
    /// A repository on GitHub.
    GithubRepository(Repository),
    /// A repository anywhere.
    GitRepository(Repository),
    /// A memory store.
    MemoryStore(MemoryMount),
}

/// A repository that is mounted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repository {
    /// Its address.
    pub url: String,
    /// What is checked out; the default branch without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<Value>,
}

/// Something that is mounted into a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// The resource, as clients name it.
    pub id: String,
    /// What is mounted.
    #[serde(flatten)]
    pub mounted: Mounted,
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
        let mut view = match &self.mounted {
            Mounted::File { file_id } => json!({ "id": self.id, "type": "file", "file_id": file_id }),
            Mounted::GithubRepository(repository) => self.repository("github_repository", repository),
            Mounted::GitRepository(repository) => self.repository("git_repository", repository),
            Mounted::MemoryStore(mount) => mount.view(&self.id),
        };
        view["mount_path"] = json!(self.mount_path);
        view["created_at"] = json!(Time(self.created_at));
        view["updated_at"] = json!(Time(self.updated_at));
        view
    }

    fn repository(&self, kind: &str, repository: &Repository) -> Value {
        json!({ "id": self.id, "type": kind, "url": repository.url, "checkout": repository.checkout })
    }

    /// The file that is mounted.
    #[must_use]
    pub fn file(&self) -> Option<FileId> {
        match &self.mounted {
            Mounted::File { file_id } => FileId::parse(file_id),
            Mounted::GithubRepository(_) | Mounted::GitRepository(_) | Mounted::MemoryStore(_) => None,
        }
    }

    /// The memory store that is mounted.
    #[must_use]
    pub fn memory(&self) -> Option<&MemoryMount> {
        match &self.mounted {
            Mounted::MemoryStore(mount) => Some(mount),
            Mounted::File { .. } | Mounted::GithubRepository(_) | Mounted::GitRepository(_) => None,
        }
    }
}

/// Makes sure that no two things are mounted at the same place.
///
/// # Errors
/// When two are.
pub fn check_paths<'a>(resources: impl Iterator<Item = &'a Resource>) -> Result<(), Problem> {
    let mut paths: Vec<&str> = resources.map(|resource| resource.mount_path.as_str()).collect();
    paths.sort_unstable();
    let twice = paths.windows(2).find(|pair| pair[0] == pair[1]);
    match twice {
        Some(pair) => Err(Problem::field("mount_path", format!("is `{}` for two resources", pair[0]))),
        None => Ok(()),
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

impl NewResource {
    /// A resource without a credential.
    #[must_use]
    pub fn now(mounted: Mounted, mount_path: String, now: Time) -> Self {
        let id = ResourceId::random().to_string();
        let resource = Resource { id, mounted, mount_path, created_at: now.0, updated_at: now.0 };
        Self { resource, credential: None }
    }
}

/// Reads a resource.
///
/// # Errors
/// When it cannot be used, or names a file or memory store that is not there.
pub fn read(value: &Value, now: Time) -> Result<NewResource, Refusal> {
    let fields = Fields::of(value, "type")?;
    let accepted = ["file", "github_repository", "git_repository", "memory_store"];
    let kind = fields.word("type", &accepted)?.ok_or_else(|| Problem::field("type", "is required"))?;
    let (mounted, default) = match kind {
        "file" => {
            let text = fields.text("file_id", 1..=256)?;
            let id = FileId::parse(text).ok_or_else(|| Refusal::not_found("file", text))?;
            (Mounted::File { file_id: id.to_string() }, format!("/mnt/session/uploads/{id}"))
        }
        "memory_store" => {
            let mount = MemoryMount::read(fields)?;
            // Its name, which the API looks up, replaces the end of the path.
            let path = format!("/mnt/memory/{}", mount.store);
            return Ok(NewResource::now(Mounted::MemoryStore(mount), path, now));
        }
        "github_repository" => {
            let (repository, path) = repository(fields)?;
            (Mounted::GithubRepository(repository), path)
        }
        _ => {
            let (repository, path) = repository(fields)?;
            (Mounted::GitRepository(repository), path)
        }
    };
    let mount_path = match fields.optional_text("mount_path", 1..=1_024)? {
        Some(path) => mount_path(path)?,
        None => default,
    };
    Ok(NewResource { credential: credential(fields)?, ..NewResource::now(mounted, mount_path, now) })
}

/// A repository, and where it is mounted unless a request says otherwise.
fn repository(fields: Fields<'_>) -> Result<(Repository, String), Problem> {
    let url = fields.text("url", 1..=2_048)?;
    let parsed =
        Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let Some(parsed) = parsed else {
        return Err(Problem::field("url", "must be an http or https address"));
    };
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(Problem::field("url", "must not contain credentials"));
    }
    let name = parsed.path_segments().and_then(|mut parts| parts.rfind(|part| !part.is_empty()));
    let name = name.map(|name| name.strip_suffix(".git").unwrap_or(name)).unwrap_or("repository");
    let repository = Repository { url: url.to_owned(), checkout: checkout(fields)? };
    Ok((repository, format!("/workspace/{name}")))
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

/// Why a session in a self-hosted environment has no resources: the server does not reach the machine that they would be on.
#[must_use]
pub fn unsupported(field: &str) -> Problem {
    let problem =
        "cannot be used in a self-hosted environment; put files and repositories on the worker's machine";
    Problem::field(field, problem).with_code("self_hosted_resources_unsupported")
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

    #[test]
    fn a_file_is_mounted_beside_the_workspace_unless_a_path_says_otherwise() {
        let id = FileId([1; 16]);
        let file = |path: Option<&str>| {
            let value = json!({ "type": "file", "file_id": id, "mount_path": path });
            read(&value, Time(0)).unwrap().resource
        };
        let one = file(None);
        assert_eq!(
            (one.mount_path.as_str(), one.file()),
            (format!("/mnt/session/uploads/{id}").as_str(), Some(id))
        );
        assert_eq!(file(Some("/data/workspace/a.csv")).mount_path, "/data/workspace/a.csv");
        let stored = serde_json::to_string(&one).unwrap();
        assert_eq!(serde_json::from_str::<Resource>(&stored).unwrap(), one);
        let older = json!({ "id": "sesrsc_1", "kind": "git_repository", "url": "https://h/r", "mount_path": "/workspace/r",
            "created_at": 1, "updated_at": 1 });
        assert_eq!(serde_json::from_value::<Resource>(older).unwrap().view()["url"], "https://h/r");
        assert!(check_paths([&one, &file(None)].into_iter()).is_err());
        assert!(check_paths([&one, &file(Some("/workspace/b"))].into_iter()).is_ok());
    }
}
