//! Clones a repository with `git`, into a folder that no session reaches until it is complete. Nothing on this machine configures
//! that git: no settings, hooks, filters or submodules. The credential goes to the repository's own host and is written nowhere.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::process::Command;
use url::Url;

/// How long a clone may take.
const PATIENCE: Duration = Duration::from_secs(10 * 60);
/// The most characters of what git says that are kept.
const LONGEST: usize = 500;

/// What is cloned.
#[derive(Debug, Clone)]
pub struct RepositoryClone<'a> {
    /// The address.
    pub url: &'a Url,
    /// What is checked out.
    pub checkout: Checkout<'a>,
    /// The user name that goes with the credential, and the credential.
    pub credential: Option<(&'a str, &'a str)>,
    /// Where the host's name leads, when that was looked up before.
    pub resolved: Option<String>,
    /// Proxies, certificates and where programs are.
    pub environment: &'a BTreeMap<String, String>,
}

/// What is checked out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checkout<'a> {
    /// The default branch.
    Default,
    /// A branch.
    Branch(&'a str),
    /// A commit.
    Commit(&'a str),
}

/// A repository that could not be cloned. Each kind has a documented name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CloneError {
    /// The host wants another credential.
    #[error("the host refused the credential: {0}")]
    Authentication(String),
    /// The credential may not read it.
    #[error("the credential may not read the repository: {0}")]
    Forbidden(String),
    /// It is not there.
    #[error("there is no such repository: {0}")]
    NotFound(String),
    /// The branch or commit is not there, or the path is taken.
    #[error("{0}")]
    Checkout(String),
    /// Anything else.
    #[error("{0}")]
    Clone(String),
}

impl CloneError {
    /// The documented name.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Authentication(_) => "repository_authentication_error",
            Self::Forbidden(_) => "repository_forbidden_error",
            Self::NotFound(_) => "repository_not_found_error",
            Self::Checkout(_) => "repository_checkout_error",
            Self::Clone(_) => "repository_clone_error",
        }
    }

    /// From what git printed.
    fn of(text: &str) -> Self {
        let lines = text.lines().rev();
        let line = lines.map(str::trim).find(|line| line.starts_with("fatal:") || line.starts_with("error:"));
        let shown: String = line.unwrap_or_else(|| text.trim()).chars().take(LONGEST).collect();
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        if has(&["Authentication failed", "could not read Username", "error: 401", "Invalid username"]) {
            Self::Authentication(shown)
        } else if has(&["error: 403"]) {
            Self::Forbidden(shown)
        } else if has(&["Remote branch", "did not match any", "not our ref", "reference is not a tree"]) {
            Self::Checkout(shown)
        } else if has(&["not found", "error: 404"]) {
            Self::NotFound(shown)
        } else {
            Self::Clone(shown)
        }
    }
}

impl RepositoryClone<'_> {
    /// Clones into a folder that is not there yet.
    ///
    /// # Errors
    /// When git is missing or fails, or takes too long.
    pub async fn make(&self, folder: &Path) -> Result<(), CloneError> {
        let mut clone = self.git();
        clone.args(["clone", "--quiet", "--template=", "--no-recurse-submodules"]);
        match self.checkout {
            Checkout::Default => {}
            Checkout::Branch(name) => drop(clone.arg(format!("--branch={name}"))),
            Checkout::Commit(_) => drop(clone.arg("--no-checkout")),
        }
        self.run(clone.arg("--").arg(self.url.as_str()).arg(folder)).await?;
        if let Checkout::Commit(sha) = self.checkout {
            let mut checkout = self.git();
            checkout.arg("-C").arg(folder).args(["checkout", "--quiet", "--detach", sha, "--"]);
            self.run(&mut checkout).await?;
        }
        Ok(())
    }

    async fn run(&self, command: &mut Command) -> Result<(), CloneError> {
        let missing = |error: std::io::Error| CloneError::Clone(format!("`git` cannot be started: {error}"));
        let child = command.spawn().map_err(missing)?;
        let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
        let late = || CloneError::Clone(format!("it took longer than {} minutes", PATIENCE.as_secs() / 60));
        let output = output.map_err(|_| late())?.map_err(missing)?;
        if output.status.success() {
            return Ok(());
        }
        let mut said = String::from_utf8_lossy(&output.stderr).into_owned();
        if let Some((_, secret)) = self.credential {
            said = said.replace(secret, "[redacted]");
        }
        Err(CloneError::of(&said))
    }

    /// Git without anything that this machine or a repository could configure.
    fn git(&self) -> Command {
        let mut command = Command::new("git");
        command
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let known = qoder_http::variables().chain(["PATH", "NO_PROXY", "no_proxy"]);
        command.envs(known.filter_map(|name| Some((name, self.environment.get(name)?))));
        if let Some(certificates) = self.environment.get("SSL_CERT_FILE") {
            command.env("GIT_SSL_CAINFO", certificates);
        }
        for (name, value) in [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ALLOW_PROTOCOL", "http:https"),
            ("HOME", "/nonexistent"),
            ("LC_ALL", "C"),
        ] {
            command.env(name, value);
        }
        let settings = self.settings();
        command.env("GIT_CONFIG_COUNT", settings.len().to_string());
        for (index, (key, value)) in settings.into_iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{index}"), key);
            command.env(format!("GIT_CONFIG_VALUE_{index}"), value);
        }
        command
    }

    /// Settings that git has in its environment alone, and so in no file of the clone.
    fn settings(&self) -> Vec<(String, String)> {
        let mut settings = vec![
            ("core.hooksPath".to_owned(), "/dev/null".to_owned()),
            ("core.askPass".to_owned(), String::new()),
            ("credential.helper".to_owned(), String::new()),
            ("http.followRedirects".to_owned(), "false".to_owned()),
            ("transfer.fsckObjects".to_owned(), "true".to_owned()),
        ];
        let origin = self.url.origin().ascii_serialization();
        if let Some((user, secret)) = self.credential {
            let basic = STANDARD.encode(format!("{user}:{secret}"));
            settings.push((format!("http.{origin}/.extraHeader"), format!("Authorization: Basic {basic}")));
        }
        if let Some(resolved) = &self.resolved {
            settings.push(("http.curloptResolve".to_owned(), resolved.clone()));
        }
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_says_has_a_documented_name() {
        for (text, kind) in [
            ("fatal: Authentication failed for 'https://h/r/'", "repository_authentication_error"),
            (
                "fatal: unable to access 'https://h/r/': The requested URL returned error: 403",
                "repository_forbidden_error",
            ),
            ("remote: x\nfatal: repository 'https://h/r/' not found", "repository_not_found_error"),
            ("fatal: Remote branch x not found in upstream origin", "repository_checkout_error"),
            ("fatal: reference is not a tree: 1234", "repository_checkout_error"),
            ("fatal: unable to access: Could not resolve host: h", "repository_clone_error"),
        ] {
            assert_eq!(CloneError::of(text).kind(), kind, "{text}");
        }
    }
}
