//! Who calls: tokens, what they may do, and what becomes of those that are wrong.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use ring::rand::{SecureRandom, SystemRandom};

use super::errors::ApiError;
use super::workers::{WorkToken, Worker};
use crate::model::ids::{TenantId, WorkId};
use crate::model::time::Time;
use crate::secrets::ClusterKey;
use crate::store::{DbError, Store, TenantRow, TokenRow};

/// How long a token is believed without looking it up, by requests and by streams.
const BELIEVED: Duration = Duration::from_secs(5);
const BELIEVED_BY_STREAMS: Duration = Duration::from_secs(1);
/// Tokens and addresses that are remembered.
const MOST_REMEMBERED: usize = 10_000;
/// How long an answer to a wrong token waits at first, and at most.
const FIRST_DELAY: Duration = Duration::from_millis(50);
const LONGEST_DELAY: Duration = Duration::from_secs(2);
/// After this long without a wrong token an address is forgotten.
const FORGIVEN: Duration = Duration::from_secs(60);
const ID_LETTERS: &[u8] = b"abcdefghijkmnpqrstuvwxyz23456789";
const ID_LENGTH: usize = 8;

/// What a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Read everything of its tenant.
    Read,
    /// Create sessions and send into them.
    Run,
    /// Answer asks.
    Approve,
    /// Change agents and environments.
    Admin,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 4] = [Self::Read, Self::Run, Self::Approve, Self::Admin];

    /// The word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Run => "run",
            Self::Approve => "approve",
            Self::Admin => "admin",
        }
    }
}

/// A token as its user has it.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenText {
    /// Its public part.
    pub id: String,
    /// All of it.
    pub text: String,
}

impl std::fmt::Debug for TokenText {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "TokenText(pt-{})", self.id)
    }
}

impl TokenText {
    /// A new token; `None` when the system has no random bytes.
    #[must_use]
    pub fn random() -> Option<Self> {
        let (mut id, mut secret) = ([0_u8; ID_LENGTH], [0_u8; 32]);
        let random = SystemRandom::new();
        random.fill(&mut id).and_then(|()| random.fill(&mut secret)).ok()?;
        let letter = |byte: &u8| char::from(ID_LETTERS[usize::from(*byte) % ID_LETTERS.len()]);
        let id: String = id.iter().map(letter).collect();
        let text = format!("pt-{id}-{}", URL_SAFE_NO_PAD.encode(secret));
        Some(Self { id, text })
    }

    /// Reads a token; `None` when it cannot be one of ours.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("pt-")?;
        let (id, secret) = rest.split_at_checked(ID_LENGTH)?;
        let secret = secret.strip_prefix('-')?;
        let is_plain =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        (is_plain(id) && (32..=128).contains(&secret.len()) && is_plain(secret))
            .then(|| Self { id: id.to_owned(), text: text.to_owned() })
    }
}

/// Who calls.
#[derive(Debug, Clone)]
pub struct Principal {
    /// The public part of the token.
    pub token_id: String,
    /// Who has it.
    pub user: String,
    /// Whose things it reaches.
    pub tenant: TenantRow,
    scopes: Vec<String>,
    worker: Option<Worker>,
}

impl Principal {
    /// Whose things it reaches.
    #[must_use]
    pub fn tenant_id(&self) -> TenantId {
        self.tenant.id
    }

    /// What it may do as a worker; `None` for one that is not a worker.
    #[must_use]
    pub fn worker(&self) -> Option<&Worker> {
        self.worker.as_ref()
    }

    /// Makes sure that the token may do this.
    ///
    /// # Errors
    /// When it may not.
    pub fn needs(&self, scope: Scope) -> Result<(), ApiError> {
        if self.scopes.iter().any(|known| known == scope.as_str()) {
            return Ok(());
        }
        Err(ApiError::forbidden(format!("The token does not have the scope `{}`.", scope.as_str())))
    }
}

#[derive(Debug, Default)]
struct Memory {
    tokens: HashMap<String, (TokenRow, Instant)>,
    used: HashMap<String, Time>,
    wrong: HashMap<IpAddr, (u32, Instant)>,
}

/// Knows who calls.
#[derive(Debug)]
pub struct Authenticator {
    store: Store,
    cluster: ClusterKey,
    memory: Mutex<Memory>,
}

impl Authenticator {
    /// Knows the tokens of a store.
    #[must_use]
    pub fn new(store: Store, cluster: ClusterKey) -> Arc<Self> {
        Arc::new(Self { store, cluster, memory: Mutex::default() })
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who sends these headers. A wrong token is answered later each time that it comes from the same address.
    ///
    /// # Errors
    /// When the token is missing or wrong, or the database does not work.
    pub async fn authenticate(&self, headers: &HeaderMap, from: IpAddr) -> Result<Principal, ApiError> {
        let text = text_of(headers);
        let known = match (text.and_then(TokenText::parse), text.and_then(WorkToken::parse)) {
            (Some(token), _) => self.principal(&token).await?,
            (None, Some(token)) => self.principal_of_work(&token).await?,
            (None, None) => None,
        };
        if let Some(principal) = known {
            return Ok(principal);
        }
        let delay = self.next_delay(from);
        tokio::time::sleep(delay).await;
        Err(ApiError::unauthenticated())
    }

    async fn principal(&self, token: &TokenText) -> Result<Option<Principal>, DbError> {
        let Some(row) = self.row(&token.id, BELIEVED).await? else { return Ok(None) };
        let now = Time::now();
        let is_over = row.revoked_at.is_some() || row.expires_at.is_some_and(|at| at <= now);
        if !self.cluster.fits(&token.text, &row.hash) || is_over {
            return Ok(None);
        }
        self.memory().used.insert(row.id.clone(), now);
        let worker = Worker::of_scopes(&row.scopes);
        let TokenRow { id, user, tenant, scopes, .. } = row;
        Ok(Some(Principal { token_id: id, user, tenant, scopes, worker }))
    }

    /// The worker that has the token of a work item.
    async fn principal_of_work(&self, token: &WorkToken) -> Result<Option<Principal>, DbError> {
        if !token.is_of(&self.cluster) {
            return Ok(None);
        }
        let Some((work, tenant)) = self.store.db.work_of_token(token.work).await? else { return Ok(None) };
        Ok(Some(Principal {
            token_id: work.id.to_string(),
            user: "worker".to_owned(),
            tenant,
            scopes: Vec::new(),
            worker: Some(Worker::of_work(&work)),
        }))
    }

    /// The token of a work item. It is made from the item, so that every poll that hands the item out gives the same one.
    #[must_use]
    pub fn token_of_work(&self, work: WorkId) -> String {
        WorkToken::of(work, &self.cluster)
    }

    async fn row(&self, id: &str, believed: Duration) -> Result<Option<TokenRow>, DbError> {
        if let Some((row, at)) = self.memory().tokens.get(id)
            && at.elapsed() < believed
        {
            return Ok(Some(row.clone()));
        }
        let row = self.store.db.token(id.to_owned()).await?;
        let mut memory = self.memory();
        if memory.tokens.len() >= MOST_REMEMBERED {
            memory.tokens.retain(|_, (_, at)| at.elapsed() < BELIEVED);
        }
        match &row {
            Some(row) => drop(memory.tokens.insert(id.to_owned(), (row.clone(), Instant::now()))),
            None => drop(memory.tokens.remove(id)),
        }
        Ok(row)
    }

    /// True while a token is good; for streams, which outlive the request that opened them.
    pub async fn is_good(&self, token_id: &str) -> bool {
        if let Some(work) = WorkId::parse(token_id) {
            return match self.store.db.work_of_token(work).await {
                Ok(found) => found.is_some_and(|(work, _)| !work.is_over()),
                Err(_) => true,
            };
        }
        match self.row(token_id, BELIEVED_BY_STREAMS).await {
            Ok(Some(row)) => row.revoked_at.is_none() && row.expires_at.is_none_or(|at| at > Time::now()),
            Ok(None) => false,
            // A database that does not work at this moment ends no stream.
            Err(_) => true,
        }
    }

    fn next_delay(&self, from: IpAddr) -> Duration {
        let mut memory = self.memory();
        if memory.wrong.len() >= MOST_REMEMBERED {
            memory.wrong.retain(|_, (_, at)| at.elapsed() < FORGIVEN);
        }
        let now = Instant::now();
        let (count, at) = memory.wrong.entry(from).or_insert((0, now));
        *count = if at.elapsed() < FORGIVEN { count.saturating_add(1) } else { 1 };
        *at = now;
        (FIRST_DELAY * 2_u32.saturating_pow((*count - 1).min(10))).min(LONGEST_DELAY)
    }

    /// Notes in the database which tokens were used since the last time.
    ///
    /// # Errors
    /// When the database does not work.
    pub async fn note_used(&self) -> Result<(), DbError> {
        let used: Vec<(String, Time)> = self.memory().used.drain().collect();
        if used.is_empty() { Ok(()) } else { self.store.db.touch_tokens(used).await }
    }
}

/// The token in the headers: as a bearer, or as an API key.
fn text_of(headers: &HeaderMap) -> Option<&str> {
    let bearer = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    let key = || headers.get("x-api-key").and_then(|value| value.to_str().ok()).map(str::trim);
    bearer.or_else(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read_as_they_are_made_and_nothing_else_is() {
        let token = TokenText::random().unwrap();
        assert_eq!(TokenText::parse(&token.text), Some(token.clone()));
        assert!(token.text.len() >= "pt-12345678-".len() + 43, "256 random bits");
        assert!(!format!("{token:?}").contains(&token.text));
        for wrong in [
            "",
            "pt-",
            "pt-short-x",
            &token.text[1..],
            &token.text[..40],
            &format!("{} x", token.text),
            "pt-ä2345678-",
        ] {
            assert_eq!(TokenText::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_token_comes_in_either_header() {
        let token = TokenText::random().unwrap();
        let headers = |name: &'static str, value: String| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            headers
        };
        for headers in [
            headers("authorization", format!("Bearer {}", token.text)),
            headers("authorization", format!("bearer  {}", token.text)),
            headers("x-api-key", token.text.clone()),
        ] {
            assert_eq!(text_of(&headers), Some(token.text.as_str()));
        }
        for headers in [headers("authorization", format!("Basic {}", token.text)), HeaderMap::new()] {
            assert_eq!(text_of(&headers), None);
        }
    }
}
