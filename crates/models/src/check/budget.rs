//! What a check may cost. A request is made only when its worst case fits into what is left.

use crate::settings::Price;

/// The price that is assumed where none is known: that of a large open model at a host.
const ASSUMED: Price = Price { input: 0.6, output: 2.5, cache_read: 0.6, cache_write: 0.6, image: 0.0 };
/// The longest reply that a probe asks for.
const LONGEST_REPLY: u32 = 256;
/// A shorter reply shows nothing.
const SHORTEST_REPLY: u32 = 32;

/// What is left to spend.
pub(super) struct Budget {
    left: f64,
    spent: f64,
    price: Price,
}

impl Budget {
    /// A budget in dollars. A model without a network costs nothing.
    pub(super) fn new(dollars: f64, price: Option<Price>, is_remote: bool) -> Self {
        let price = match (price, is_remote) {
            (Some(price), _) => price,
            (None, true) => ASSUMED,
            (None, false) => Price::default(),
        };
        Self { left: dollars, spent: 0.0, price }
    }

    /// The limit for a reply to so many tokens of input; `None` when it cannot be paid for.
    pub(super) fn reply_tokens(&self, input: u32) -> Option<u32> {
        let most = self.affordable_output(input);
        (most >= f64::from(SHORTEST_REPLY)).then(|| {
            if most >= f64::from(LONGEST_REPLY) { LONGEST_REPLY } else { rounded(most).max(SHORTEST_REPLY) }
        })
    }

    /// True when a request with so much input and at most so much output can be paid for.
    pub(super) fn allows(&self, input: u32, output: u32) -> bool {
        self.affordable_output(input) >= f64::from(output)
    }

    /// How many tokens of input are affordable, up to `most`, with a short reply to them.
    pub(super) fn input_tokens(&self, most: u32) -> u32 {
        let left = self.left - f64::from(SHORTEST_REPLY) * self.price.output / 1e6;
        if self.price.input <= 0.0 { most } else { rounded(left * 1e6 / self.price.input).min(most) }
    }

    /// Takes the cost of a reply: what the account says, else what the counts come to.
    pub(super) fn spend(&mut self, reported: f64, input: u64, output: u64) {
        #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
        let counted = (input as f64 * self.price.input + output as f64 * self.price.output) / 1e6;
        self.left -= counted.max(reported);
        self.spent += reported;
    }

    /// What was spent, by known prices.
    pub(super) fn spent(&self) -> f64 {
        self.spent
    }

    fn affordable_output(&self, input: u32) -> f64 {
        let left = self.left * 1e6 - f64::from(input) * self.price.input;
        match () {
            () if left < 0.0 => 0.0,
            () if self.price.output <= 0.0 => f64::INFINITY,
            () => left / self.price.output,
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float becomes the nearest number that fits"
)]
fn rounded(value: f64) -> u32 {
    value as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEAR: Price = Price { input: 15.0, output: 75.0, cache_read: 1.5, cache_write: 18.75, image: 0.0 };

    #[test]
    fn a_dear_model_gets_short_replies_and_then_none() {
        let mut budget = Budget::new(0.01, Some(DEAR), true);
        let first = budget.reply_tokens(100).unwrap_or_default();
        assert!((SHORTEST_REPLY..LONGEST_REPLY).contains(&first), "{first}");
        assert!(!budget.allows(100, 1_200));
        budget.spend(0.008, 100, 80);
        assert_eq!(budget.reply_tokens(100), None);
        assert!((budget.spent() - 0.008).abs() < 1e-12);
    }

    #[test]
    fn what_has_no_price_costs_nothing_here_and_something_elsewhere() {
        let here = Budget::new(0.0, None, false);
        assert_eq!(here.reply_tokens(1_000_000), Some(LONGEST_REPLY));
        assert_eq!(here.input_tokens(5_000), 5_000);
        let mut remote = Budget::new(0.01, None, true);
        assert_eq!(remote.reply_tokens(200), Some(LONGEST_REPLY));
        remote.spend(0.0, 0, 4_000);
        assert_eq!(remote.reply_tokens(200), None);
        assert_eq!(remote.input_tokens(5_000), 0);
    }
}
