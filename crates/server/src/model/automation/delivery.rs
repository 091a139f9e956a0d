//! Deliveries of notices: when they are tried, how they are signed, and what is on record about them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::{Value, json};

use crate::model::ids::{DeliveryId, WebhookEndpointId, WebhookEventId};
use crate::model::time::Time;

/// How often and when a notice is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetrySchedule {
    /// Milliseconds before the second try; each further pause is four times as long.
    pub first_pause_ms: i64,
    /// The most tries.
    pub tries: u64,
}

impl Default for RetrySchedule {
    fn default() -> Self {
        Self { first_pause_ms: 5_000, tries: 8 }
    }
}

impl RetrySchedule {
    /// When a notice that failed this often is tried again; `None` when it is given up.
    #[must_use]
    pub fn next(&self, failed: u64, now: Time) -> Option<Time> {
        if failed >= self.tries {
            return None;
        }
        let doublings = u32::try_from(failed.saturating_sub(1)).unwrap_or(u32::MAX);
        Some(now.after(self.first_pause_ms.saturating_mul(4_i64.saturating_pow(doublings))))
    }
}

/// The signature of a notice as Standard Webhooks has it: over its id, the second at which it is sent, and its body.
#[must_use]
pub fn sign(key: &[u8], id: WebhookEventId, seconds: i64, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    let tag = hmac::sign(&key, format!("{id}.{seconds}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(tag))
}

/// How a delivery is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// It is tried, or waits for its next try.
    Pending,
    /// The endpoint took it.
    Delivered,
    /// It was given up.
    Failed,
}

impl DeliveryState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Delivered, Self::Failed];

    /// The word on the wire and in rows.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

/// A notice on its way to an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The delivery.
    pub id: DeliveryId,
    /// Where it goes.
    pub endpoint: WebhookEndpointId,
    /// What it is about, the same for all endpoints.
    pub event: WebhookEventId,
    /// The type of what happened.
    pub kind: String,
    /// How it is doing.
    pub state: DeliveryState,
    /// Tries so far.
    pub attempts: u64,
    /// When it is tried next.
    pub next_at: Option<Time>,
    /// When it was last tried.
    pub attempted_at: Option<Time>,
    /// The HTTP status of the last try.
    pub response_status: Option<u16>,
    /// What went wrong at the last try.
    pub error: Option<String>,
    /// When it happened.
    pub created_at: Time,
}

impl Delivery {
    /// As clients read it.
    #[must_use]
    pub fn view(&self) -> Value {
        json!({
            "id": self.id, "type": "webhook_delivery", "endpoint_id": self.endpoint, "event_id": self.event,
            "event_type": self.kind, "status": self.state.as_str(), "attempts": self.attempts,
            "next_attempt_at": self.next_at, "last_attempt_at": self.attempted_at,
            "response_status": self.response_status, "error": self.error, "created_at": self.created_at,
        })
    }
}

/// What a try came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The HTTP status, when there was an answer.
    pub status: Option<u16>,
    /// What went wrong; nothing when the endpoint took the notice.
    pub error: Option<String>,
}

impl Attempt {
    /// True when the endpoint took the notice.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.error.is_none()
    }

    /// True when the endpoint says that it is gone for good.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.status == Some(410)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_fourfold_until_a_notice_is_given_up() {
        let schedule = RetrySchedule::default();
        let pauses: Vec<u64> =
            (1..8).map(|failed| schedule.next(failed, Time(0)).unwrap().milliseconds() / 1000).collect();
        assert_eq!(pauses, [5, 20, 80, 320, 1_280, 5_120, 20_480]);
        assert_eq!(schedule.next(8, Time(0)), None);
    }

    #[test]
    fn the_signature_is_that_of_the_standard() {
        // The vector of the Standard Webhooks specification, with its id in the place of ours.
        let key = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let tag = hmac::sign(
            &hmac::Key::new(hmac::HMAC_SHA256, &key),
            b"msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{\"test\": 2432232314}",
        );
        assert_eq!(STANDARD.encode(tag), "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        let signed = sign(&key, WebhookEventId([0; 16]), 5, "{}");
        let text = format!("{}.5.{{}}", WebhookEventId([0; 16]));
        let expected = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), text.as_bytes());
        assert_eq!(signed, format!("v1,{}", STANDARD.encode(expected)));
    }
}
