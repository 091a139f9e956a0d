//! When to try again and how long to wait. One policy for every
//! kind of model, so that a playbook's errors behave like an
//! endpoint's.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use qoder_types::{ModelFailure, ModelFailureClass};

use crate::failure::AttemptFailure;
use crate::settings::ModelOptions;

/// No single wait is longer than this, unless the endpoint asks for it.
const LONGEST_BACKOFF_MS: u64 = 32_000;
/// An endpoint that asks for more than this is not waited for.
const LONGEST_RETRY_AFTER_MS: u64 = 60_000;

/// How often and how patiently to try.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RetryPolicy {
    pub(crate) max_attempts: u32,
    base_ms: u64,
}

/// What to do after a failed attempt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Wait, then try again.
    Wait(Duration),
    /// Give up with this failure.
    GiveUp(ModelFailure),
}

impl RetryPolicy {
    /// The policy of one process. `QODER_RETRY_BASE_MS` changes the first wait.
    pub(crate) fn new(options: &ModelOptions) -> Self {
        let base_ms =
            options.variable("QODER_RETRY_BASE_MS").and_then(|value| value.parse().ok()).unwrap_or(500);
        Self { max_attempts: options.max_attempts.max(1), base_ms }
    }

    /// What to do after attempt number `attempt` (from 1) failed.
    pub(crate) fn verdict(&self, attempt: u32, failed: AttemptFailure) -> Verdict {
        let AttemptFailure { mut failure, should_retry } = failed;
        let again = should_retry.unwrap_or_else(|| is_retryable(failure.class));
        if !again {
            return Verdict::GiveUp(failure);
        }
        if attempt >= self.max_attempts {
            if attempt > 1 {
                failure.message = format!("{} (after {attempt} attempts)", failure.message);
            }
            return Verdict::GiveUp(failure);
        }
        match failure.retry_after_ms {
            Some(wait) if wait > LONGEST_RETRY_AFTER_MS => {
                failure.message = format!(
                    "{}. The endpoint asks to wait {} seconds, which is too long to wait for: try again later or use another model",
                    failure.message,
                    wait.div_ceil(1000)
                );
                Verdict::GiveUp(failure)
            }
            Some(wait) => Verdict::Wait(Duration::from_millis(wait)),
            None => Verdict::Wait(Duration::from_millis(self.backoff(attempt))),
        }
    }

    /// Doubles from the base and varies by a quarter, so that many clients do not come back at once.
    fn backoff(&self, attempt: u32) -> u64 {
        let doubled = self.base_ms.saturating_mul(1_u64 << (attempt - 1).min(20)).min(LONGEST_BACKOFF_MS);
        let random = RandomState::new().build_hasher().finish() % 501;
        (doubled * (750 + random) / 1000).min(LONGEST_BACKOFF_MS)
    }
}

/// True for failures that may pass by themselves.
pub(crate) fn is_retryable(class: ModelFailureClass) -> bool {
    use ModelFailureClass as Class;
    match class {
        Class::RateLimit
        | Class::Overloaded
        | Class::Server
        | Class::Network
        | Class::Timeout
        | Class::MalformedStream => true,
        Class::Authentication
        | Class::Permission
        | Class::NotFound
        | Class::ContextTooLong
        | Class::InvalidRequest
        | Class::Configuration => false,
    }
}

/// True for failures after which another model may do better.
pub(crate) fn deserves_fallback(class: ModelFailureClass) -> bool {
    is_retryable(class) || class == ModelFailureClass::NotFound
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::failure;

    fn policy(max_attempts: u32) -> RetryPolicy {
        RetryPolicy { max_attempts, base_ms: 500 }
    }

    #[test]
    fn waits_double_with_a_quarter_of_jitter_and_a_cap() {
        for (attempt, expected) in [(1, 500), (2, 1000), (3, 2000), (6, 16_000)] {
            for _ in 0..50 {
                let wait = policy(10).backoff(attempt);
                assert!((expected * 3 / 4..=expected * 5 / 4).contains(&wait), "{attempt}: {wait}");
            }
        }
        assert!(policy(99).backoff(64) <= LONGEST_BACKOFF_MS);
    }

    #[test]
    fn retry_after_is_honoured_up_to_a_minute() {
        let failed = |wait| {
            let mut failure = failure(ModelFailureClass::RateLimit, "slow down");
            failure.retry_after_ms = Some(wait);
            AttemptFailure::from(failure)
        };
        assert_eq!(policy(2).verdict(1, failed(60_000)), Verdict::Wait(Duration::from_secs(60)));
        let Verdict::GiveUp(given_up) = policy(2).verdict(1, failed(61_000)) else { panic!("must give up") };
        assert!(given_up.message.contains("61 seconds"), "{}", given_up.message);
    }

    #[test]
    fn the_endpoint_has_the_last_word_and_attempts_end() {
        let refused =
            AttemptFailure { failure: failure(ModelFailureClass::Server, "no"), should_retry: Some(false) };
        assert!(matches!(policy(5).verdict(1, refused), Verdict::GiveUp(_)));
        let wanted = AttemptFailure {
            failure: failure(ModelFailureClass::InvalidRequest, "again"),
            should_retry: Some(true),
        };
        assert!(matches!(policy(5).verdict(1, wanted), Verdict::Wait(_)));
        let last = failure(ModelFailureClass::Server, "no").into();
        assert!(
            matches!(policy(5).verdict(5, last), Verdict::GiveUp(failure) if failure.message.contains("5 attempts"))
        );
    }
}
