//! Rates: a bucket a token and a bucket a tenant, for requests that read and for those that write.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::config::Rates;

/// Buckets that are kept; full ones are forgotten first.
const MOST_BUCKETS: usize = 20_000;

#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
}

/// Counts requests.
#[derive(Debug, Default)]
pub struct RateLimiter {
    rates: Option<Rates>,
    buckets: Mutex<HashMap<(String, bool), Bucket>>,
}

impl RateLimiter {
    /// A limiter; without rates it lets everything pass.
    #[must_use]
    pub fn new(rates: Option<Rates>) -> Self {
        Self { rates, buckets: Mutex::default() }
    }

    /// Takes a request of a token and its tenant. The error is the number of seconds after which one passes.
    pub(super) fn take(&self, token: &str, tenant: &str, writes: bool, now: Instant) -> Result<(), u64> {
        let Some(rates) = self.rates else { return Ok(()) };
        let most = f64::from(if writes { rates.writes_per_minute } else { rates.reads_per_minute });
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() > MOST_BUCKETS {
            let is_full = |bucket: &Bucket| bucket.left + elapsed(bucket, now) * most / 60.0 >= most;
            buckets.retain(|_, bucket| !is_full(bucket));
        }
        let names = [(format!("token {token}"), writes), (format!("tenant {tenant}"), writes)];
        let mut wait: f64 = 0.0;
        for name in &names {
            let bucket = buckets.entry(name.clone()).or_insert(Bucket { left: most, at: now });
            bucket.left = (bucket.left + elapsed(bucket, now) * most / 60.0).min(most);
            bucket.at = now;
            if bucket.left < 1.0 {
                wait = wait.max((1.0 - bucket.left) * 60.0 / most.max(1.0));
            }
        }
        if wait > 0.0 {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "at most a minute, and not negative"
            )]
            return Err((wait.ceil() as u64).max(1));
        }
        for name in &names {
            if let Some(bucket) = buckets.get_mut(name) {
                bucket.left -= 1.0;
            }
        }
        Ok(())
    }
}

fn elapsed(bucket: &Bucket, now: Instant) -> f64 {
    now.saturating_duration_since(bucket.at).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_tenant_shares_what_its_tokens_may_do() {
        let limiter = RateLimiter::new(Some(Rates { writes_per_minute: 60, reads_per_minute: 600 }));
        let now = Instant::now();
        for number in 0..60 {
            assert_eq!(limiter.take(&format!("t{}", number % 2), "a", true, now), Ok(()), "{number}");
        }
        assert_eq!(limiter.take("t2", "a", true, now), Err(1));
        assert_eq!(limiter.take("t2", "a", false, now), Ok(()), "reads are counted apart");
        assert_eq!(limiter.take("t3", "b", true, now), Ok(()), "another tenant");
        assert_eq!(limiter.take("t2", "a", true, now + Duration::from_secs(1)), Ok(()));
        assert_eq!(limiter.take("t2", "a", true, now + Duration::from_secs(1)), Err(1));
        assert_eq!(RateLimiter::new(None).take("t", "a", true, now), Ok(()));
    }
}
