//! Workers of self-hosted environments as callers: those with the key of an environment, which is a token of the scope
//! `environment:<id>`, and those with the token of one work item.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::model::ids::{EnvironmentId, SessionId, WorkId};
use crate::model::work_items::Work;
use crate::secrets::ClusterKey;

/// What the scope of an environment begins with.
pub const ENVIRONMENT_SCOPE: &str = "environment:";
/// What the token of a work item begins with.
const PREFIX: &str = "wk-";

/// What a worker may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    environments: Vec<EnvironmentId>,
    item: Option<WorkItem>,
}

/// The item that a worker has the token of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkItem {
    /// The item.
    pub work: WorkId,
    /// Its session.
    pub session: SessionId,
    /// True once it is stopped.
    pub is_over: bool,
}

impl Worker {
    /// The worker of a token with these scopes; `None` when no environment is among them.
    #[must_use]
    pub fn of_scopes(scopes: &[String]) -> Option<Self> {
        let environments: Vec<EnvironmentId> = scopes
            .iter()
            .filter_map(|scope| EnvironmentId::parse(scope.strip_prefix(ENVIRONMENT_SCOPE)?))
            .collect();
        (!environments.is_empty()).then_some(Self { environments, item: None })
    }

    /// The worker that has the token of an item.
    #[must_use]
    pub fn of_work(work: &Work) -> Self {
        let item = WorkItem { work: work.id, session: work.session, is_over: work.is_over() };
        Self { environments: vec![work.environment], item: Some(item) }
    }

    /// True for an environment that it serves.
    #[must_use]
    pub fn serves(&self, environment: EnvironmentId) -> bool {
        self.environments.contains(&environment)
    }

    /// The one item that it reaches; `None` for the key of an environment.
    #[must_use]
    pub fn item(&self) -> Option<&WorkItem> {
        self.item.as_ref()
    }
}

/// The token of a work item, as a request has it.
#[derive(Clone, PartialEq, Eq)]
pub struct WorkToken {
    /// The item.
    pub work: WorkId,
    secret: Vec<u8>,
}

impl std::fmt::Debug for WorkToken {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "WorkToken({})", self.work)
    }
}

/// What is signed for an item; no other text that the key signs looks like it.
fn signed(work: WorkId) -> String {
    format!("{PREFIX}{work}")
}

impl WorkToken {
    /// The token of an item.
    #[must_use]
    pub fn of(work: WorkId, key: &ClusterKey) -> String {
        format!("{}.{}", signed(work), URL_SAFE_NO_PAD.encode(key.hash(&signed(work))))
    }

    /// Reads a token; `None` when it cannot be one of ours.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (work, secret) = text.strip_prefix(PREFIX)?.split_once('.')?;
        Some(Self { work: WorkId::parse(work)?, secret: URL_SAFE_NO_PAD.decode(secret).ok()? })
    }

    /// True when this key has made it; takes the same time whatever it is.
    #[must_use]
    pub fn is_of(&self, key: &ClusterKey) -> bool {
        key.fits(&signed(self.work), &self.secret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_name_environments() {
        let one = EnvironmentId([1; 16]);
        let worker = Worker::of_scopes(&["read".to_owned(), format!("environment:{one}")]).unwrap();
        assert!(worker.serves(one) && !worker.serves(EnvironmentId([2; 16])) && worker.item().is_none());
        assert_eq!(Worker::of_scopes(&["read".to_owned(), "environment:x".to_owned()]), None);
    }

    #[test]
    fn what_is_not_a_token_of_work_is_none() {
        let work = WorkId([7; 16]);
        for wrong in
            ["", "wk-", "wk-work_1.x", "pt-abcdefgh-x", &format!("wk-{work}"), &format!("wk-{work}.!")]
        {
            assert_eq!(WorkToken::parse(wrong), None, "{wrong}");
        }
        let read = WorkToken::parse(&format!("wk-{work}.AAAA")).unwrap();
        assert_eq!(read.work, work);
        assert!(!format!("{read:?}").contains("AAAA"));
    }
}
