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
/// Nor for more than this where there is another model.
const LONGEST_BEFORE_FALLBACK_MS: u64 = 10_000;
/// After so many failures in a row another model takes over.
const ROW_BEFORE_FALLBACK: u32 = 3;
/// Attempts at an address where nothing listens.
const REFUSED_ATTEMPTS: u32 = 4;

/// How often and how patiently to try.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RetryPolicy {
    max_attempts: u32,
    base_ms: u64,
    has_fallback: bool,
}

/// The attempts of one call so far.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    /// How many there were.
    pub(crate) count: u32,
    /// How many of the last ones failed in a way that another model may not.
    row: u32,
}

/// What to do after a failed attempt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Wait, then try again, at most so many times.
    Wait(Duration, u32),
    /// Give up with this failure.
    GiveUp(ModelFailure),
}

impl RetryPolicy {
    /// The policy of one process. `QODER_RETRY_BASE_MS` changes the first wait.
    pub(crate) fn new(options: &ModelOptions) -> Self {
        let base_ms =
            options.variable("QODER_RETRY_BASE_MS").and_then(|value| value.parse().ok()).unwrap_or(500);
        Self { max_attempts: options.max_attempts.max(1), base_ms, has_fallback: false }
    }

    /// The same where another model takes over.
    pub(crate) fn with_fallback(self) -> Self {
        Self { has_fallback: true, ..self }
    }

    /// What to do after an attempt failed.
    pub(crate) fn verdict(&self, attempts: &mut Attempts, failed: AttemptFailure) -> Verdict {
        let AttemptFailure { mut failure, should_retry, is_refused, response: _ } = failed;
        attempts.count += 1;
        attempts.row = if is_outage(failure.class) { attempts.row + 1 } else { 0 };
        let attempt = attempts.count;
        let again = should_retry.unwrap_or_else(|| is_retryable(failure.class));
        if !again || self.gives_way(attempts, &failure) {
            return Verdict::GiveUp(failure);
        }
        let most = if is_refused { self.max_attempts.min(REFUSED_ATTEMPTS) } else { self.max_attempts };
        let most = match self.has_fallback && attempts.row > 0 {
            true => most.min(attempt + ROW_BEFORE_FALLBACK - attempts.row),
            false => most,
        };
        if attempt >= most {
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
            Some(wait) => Verdict::Wait(Duration::from_millis(wait), most - 1),
            None => Verdict::Wait(Duration::from_millis(self.backoff(attempt)), most - 1),
        }
    }

    /// True when the other model takes over now.
    fn gives_way(&self, attempts: &Attempts, failure: &ModelFailure) -> bool {
        let long = failure.retry_after_ms.is_some_and(|wait| wait > LONGEST_BEFORE_FALLBACK_MS);
        self.has_fallback && (attempts.row >= ROW_BEFORE_FALLBACK || long)
    }

    /// Doubles from the base and varies by a quarter, so that many clients do not come back at once.
    fn backoff(&self, attempt: u32) -> u64 {
        let doubled = self.base_ms.saturating_mul(1_u64 << (attempt - 1).min(20)).min(LONGEST_BACKOFF_MS);
        let random = RandomState::new().build_hasher().finish() % 501;
        (doubled * (750 + random) / 1000).min(LONGEST_BACKOFF_MS)
    }
}

/// True for failures of the endpoint or of the way to it, which say nothing about the request.
fn is_outage(class: ModelFailureClass) -> bool {
    use ModelFailureClass as Class;
    match class {
        Class::Overloaded | Class::Server | Class::Network | Class::Timeout | Class::MalformedStream => true,
        Class::RateLimit
        | Class::Authentication
        | Class::Permission
        | Class::Quota
        | Class::NotFound
        | Class::ContextTooLong
        | Class::InvalidRequest
        | Class::Configuration => false,
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
        | Class::Quota
        | Class::NotFound
        | Class::ContextTooLong
        | Class::InvalidRequest
        | Class::Configuration => false,
    }
}

/// True for failures after which another model may do better.
pub(crate) fn deserves_fallback(failure: &ModelFailure) -> bool {
    is_retryable(failure.class)
        || matches!(failure.class, ModelFailureClass::NotFound | ModelFailureClass::Quota)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::failure;

    fn policy(max_attempts: u32) -> RetryPolicy {
        RetryPolicy { max_attempts, base_ms: 500, has_fallback: false }
    }

    fn after(count: u32) -> Attempts {
        Attempts { count, row: count }
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

    fn limited(wait: u64) -> AttemptFailure {
        let mut failure = failure(ModelFailureClass::RateLimit, "slow down");
        failure.retry_after_ms = Some(wait);
        AttemptFailure::from(failure)
    }

    #[test]
    fn retry_after_is_honoured_up_to_a_minute() {
        let waited = policy(2).verdict(&mut after(0), limited(60_000));
        assert_eq!(waited, Verdict::Wait(Duration::from_secs(60), 1));
        let Verdict::GiveUp(given_up) = policy(2).verdict(&mut after(0), limited(61_000)) else {
            panic!("must give up")
        };
        assert!(given_up.message.contains("61 seconds"), "{}", given_up.message);
    }

    #[test]
    fn the_endpoint_has_the_last_word_and_attempts_end() {
        let refused =
            AttemptFailure { should_retry: Some(false), ..failure(ModelFailureClass::Server, "no").into() };
        assert!(matches!(policy(5).verdict(&mut after(0), refused), Verdict::GiveUp(_)));
        let wanted = AttemptFailure {
            should_retry: Some(true),
            ..failure(ModelFailureClass::InvalidRequest, "again").into()
        };
        assert!(matches!(policy(5).verdict(&mut after(0), wanted), Verdict::Wait(..)));
        let last = failure(ModelFailureClass::Server, "no").into();
        assert!(
            matches!(policy(5).verdict(&mut after(4), last), Verdict::GiveUp(failure) if failure.message.contains("5 attempts"))
        );
    }

    #[test]
    fn another_model_takes_over_after_three_outages_in_a_row() {
        use ModelFailureClass as Class;
        let policy = policy(10).with_fallback();
        for class in
            [Class::Overloaded, Class::Server, Class::Network, Class::Timeout, Class::MalformedStream]
        {
            let mut attempts = Attempts::default();
            for number in 1..=3 {
                let verdict = policy.verdict(&mut attempts, failure(class, "no").into());
                match verdict {
                    Verdict::Wait(_, most) => assert_eq!((most, number < 3), (2, true), "{class:?}"),
                    Verdict::GiveUp(_) => assert_eq!(number, 3, "{class:?}"),
                }
            }
        }
        let mut attempts = Attempts::default();
        for class in [Class::Server, Class::Server, Class::RateLimit, Class::Server, Class::Timeout] {
            let verdict = policy.verdict(&mut attempts, failure(class, "no").into());
            assert!(matches!(verdict, Verdict::Wait(..)), "they are not in a row: {class:?}");
        }
    }

    #[test]
    fn a_long_wait_is_not_waited_for_where_there_is_another_model() {
        let policy = policy(10).with_fallback();
        assert!(matches!(policy.verdict(&mut after(0), limited(10_000)), Verdict::Wait(..)));
        assert!(matches!(policy.verdict(&mut after(0), limited(10_001)), Verdict::GiveUp(_)));
    }

    #[test]
    fn an_address_where_nothing_listens_is_tried_again_three_times() {
        let mut attempts = Attempts::default();
        for number in 1..=4 {
            let failed =
                AttemptFailure { is_refused: true, ..failure(ModelFailureClass::Network, "refused").into() };
            match policy(10).verdict(&mut attempts, failed) {
                Verdict::Wait(_, most) => assert!(most == 3 && number < 4, "{number}"),
                Verdict::GiveUp(failure) => assert!(number == 4 && failure.message.contains("4 attempts")),
            }
        }
    }
}
