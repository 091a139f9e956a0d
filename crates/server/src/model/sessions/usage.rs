//! What a session has used: tokens, tools of the web, and money at list prices.

use qoder_types::Usage;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What a session has used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionUsage {
    /// Tokens of all model calls.
    pub tokens: Usage,
    /// Pages that were fetched.
    pub web_fetches: u64,
    /// Searches on the web.
    pub web_searches: u64,
    /// Money at list prices.
    pub cost_usd: f64,
}

impl SessionUsage {
    /// Both together.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        self.tokens.add(&other.tokens);
        self.web_fetches += other.web_fetches;
        self.web_searches += other.web_searches;
        self.cost_usd += other.cost_usd;
        self
    }

    /// Tokens that models read, also those that came from a cache or went into one.
    #[must_use]
    pub fn tokens_read(&self) -> u64 {
        let tokens = &self.tokens;
        tokens.input_tokens + tokens.cache_read_input_tokens + tokens.cache_creation_input_tokens
    }

    /// Money in millionths of a dollar.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "no session costs so much")]
    pub fn cost_micros(&self) -> u64 {
        (self.cost_usd.max(0.0) * 1e6).round() as u64
    }

    /// As clients read it. A credit costs `credit_usd`.
    #[must_use]
    pub fn view(&self, active_seconds: f64, credit_usd: f64) -> Value {
        let credits = if credit_usd > 0.0 { self.cost_usd / credit_usd } else { 0.0 };
        json!({
            "input_tokens": self.tokens.input_tokens,
            "output_tokens": self.tokens.output_tokens,
            "cache_read_input_tokens": self.tokens.cache_read_input_tokens,
            "cache_creation": {
                "ephemeral_5m_input_tokens": self.tokens.cache_creation_input_tokens,
                "ephemeral_1h_input_tokens": 0,
            },
            "active_seconds": active_seconds,
            "server_tool_use": {
                "web_fetch_requests": self.web_fetches, "web_search_requests": self.web_searches,
            },
            "list_cost": { "amount": money(self.cost_usd), "currency": "USD" },
            "total_credits": rounded(credits),
            "model_credits": rounded(credits),
            "sandbox_runtime_credits": 0.0,
        })
    }
}

/// Dollars as a decimal number, to a millionth.
#[must_use]
pub fn money(dollars: f64) -> String {
    let text = format!("{dollars:.6}");
    let text = text.trim_end_matches('0');
    let decimals = text.split('.').nth(1).map_or(0, str::len);
    if decimals >= 2 { text.to_owned() } else { format!("{dollars:.2}") }
}

/// Credits to two decimals, rounded down.
#[must_use]
pub fn rounded(credits: f64) -> f64 {
    (credits * 100.0).floor() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_has_two_to_six_decimals() {
        for (dollars, text) in
            [(0.0, "0.00"), (1.5, "1.50"), (0.000_123, "0.000123"), (12.345, "12.345"), (3.0, "3.00")]
        {
            assert_eq!(money(dollars), text);
        }
        assert!((rounded(1.239) - 1.23).abs() < 1e-9);
    }
}
