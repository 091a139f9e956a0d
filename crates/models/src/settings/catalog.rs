//! Defaults for well-known models: context window, output limit and price. A default, not an
//! authority: settings and flags win over it, and a model that is not listed gets a cautious window
//! and no price.

use qoder_types::Usage;

use crate::settings::{ModelOptions, Price};

/// The window of a model without a description.
const UNKNOWN_WINDOW: u64 = 200_000;
/// The output limit of a model without a description, and the most that is asked for unless a request says more.
pub(crate) const DEFAULT_OUTPUT: u64 = 32_000;

/// What is known about one model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Entry {
    pub(crate) context_window: u64,
    pub(crate) max_output_tokens: u64,
    /// True when the settings or the table say how long a reply may be.
    pub(crate) has_output_limit: bool,
    pub(crate) price: Option<Price>,
}

struct ModelFamily {
    prefix: &'static str,
    context_window: u64,
    max_output_tokens: u64,
    price: Price,
}

const fn price(input: f64, output: f64, cache_read: f64, cache_write: f64) -> Price {
    Price { input, output, cache_read, cache_write, image: 0.0 }
}

/// An image model: dollars per million tokens, or per picture. Input counts as pictures, which cost more than text.
const fn images(prefix: &'static str, input: f64, output: f64, image: f64) -> ModelFamily {
    let price = Price { input, output, cache_read: 0.0, cache_write: 0.0, image };
    family(prefix, UNKNOWN_WINDOW, DEFAULT_OUTPUT, price)
}

const fn family(
    prefix: &'static str,
    context_window: u64,
    max_output_tokens: u64,
    price: Price,
) -> ModelFamily {
    ModelFamily { prefix, context_window, max_output_tokens, price }
}

/// The longest matching prefix wins, so dated ids find their family.
static FAMILIES: &[ModelFamily] = &[
    family("claude-opus-4", 200_000, 32_000, price(15.0, 75.0, 1.5, 18.75)),
    family("claude-opus-4-5", 200_000, 64_000, price(5.0, 25.0, 0.5, 6.25)),
    family("claude-opus-4-6", 200_000, 128_000, price(5.0, 25.0, 0.5, 6.25)),
    family("claude-sonnet-4", 200_000, 64_000, price(3.0, 15.0, 0.3, 3.75)),
    family("claude-haiku-4-5", 200_000, 64_000, price(1.0, 5.0, 0.1, 1.25)),
    family("claude-3-7-sonnet", 200_000, 64_000, price(3.0, 15.0, 0.3, 3.75)),
    family("claude-3-5-sonnet", 200_000, 8_192, price(3.0, 15.0, 0.3, 3.75)),
    family("claude-3-5-haiku", 200_000, 8_192, price(0.8, 4.0, 0.08, 1.0)),
    family("claude-3-opus", 200_000, 4_096, price(15.0, 75.0, 1.5, 18.75)),
    family("claude-3-haiku", 200_000, 4_096, price(0.25, 1.25, 0.03, 0.3)),
    family("gpt-5", 400_000, 128_000, price(1.25, 10.0, 0.125, 1.25)),
    family("gpt-5-mini", 400_000, 128_000, price(0.25, 2.0, 0.025, 0.25)),
    family("gpt-5-nano", 400_000, 128_000, price(0.05, 0.4, 0.005, 0.05)),
    family("gpt-5.2", 400_000, 128_000, price(1.75, 14.0, 0.175, 1.75)),
    family("gpt-4.1", 1_047_576, 32_768, price(2.0, 8.0, 0.5, 2.0)),
    family("gpt-4.1-mini", 1_047_576, 32_768, price(0.4, 1.6, 0.1, 0.4)),
    family("gpt-4.1-nano", 1_047_576, 32_768, price(0.1, 0.4, 0.025, 0.1)),
    family("gpt-4o", 128_000, 16_384, price(2.5, 10.0, 1.25, 2.5)),
    family("gpt-4o-mini", 128_000, 16_384, price(0.15, 0.6, 0.075, 0.15)),
    family("o3", 200_000, 100_000, price(2.0, 8.0, 0.5, 2.0)),
    family("o3-mini", 200_000, 100_000, price(1.1, 4.4, 0.55, 1.1)),
    family("o4-mini", 200_000, 100_000, price(1.1, 4.4, 0.275, 1.1)),
    family("o1", 200_000, 100_000, price(15.0, 60.0, 7.5, 15.0)),
    images("gpt-image-1", 10.0, 40.0, 0.0),
    images("gpt-image-1-mini", 2.5, 8.0, 0.0),
    images("gpt-image-1.5", 8.0, 32.0, 0.0),
    images("dall-e-3", 0.0, 0.0, 0.04),
    images("dall-e-2", 0.0, 0.0, 0.02),
];

/// What is known about `model`, options first, then settings, then the table.
pub(crate) fn lookup(options: &ModelOptions, model: &str) -> Entry {
    let known = FAMILIES
        .iter()
        .filter(|family| {
            // `o3` must not claim `o3x-custom`: after the prefix the id ends or has a separator.
            model
                .strip_prefix(family.prefix)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.', '@', ':']))
        })
        .max_by_key(|family| family.prefix.len());
    let settings = &options.settings;
    let limit = options
        .max_output_tokens
        .map(u64::from)
        .or_else(|| settings.max_output_tokens.get(model).copied())
        .or(known.map(|family| family.max_output_tokens));
    Entry {
        context_window: options
            .context_window
            .or_else(|| settings.context_windows.get(model).copied())
            .or(known.map(|family| family.context_window))
            .unwrap_or(UNKNOWN_WINDOW),
        max_output_tokens: limit.unwrap_or(DEFAULT_OUTPUT).max(1),
        has_output_limit: limit.is_some(),
        price: settings.prices.get(model).copied().or(known.map(|family| family.price)),
    }
}

/// What a call cost in dollars.
#[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
pub(crate) fn cost(price: Option<Price>, usage: &Usage) -> f64 {
    let Some(price) = price else { return 0.0 };
    (usage.input_tokens as f64 * price.input
        + usage.output_tokens as f64 * price.output
        + usage.cache_read_input_tokens as f64 * price.cache_read
        + usage.cache_creation_input_tokens as f64 * price.cache_write)
        / 1_000_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_wins_and_dated_ids_find_their_family() {
        let options = ModelOptions::default();
        assert_eq!(lookup(&options, "gpt-5-mini-2025-08-07").price, Some(price(0.25, 2.0, 0.025, 0.25)));
        assert_eq!(lookup(&options, "claude-opus-4-5-20251101").max_output_tokens, 64_000);
        assert_eq!(lookup(&options, "gpt-image-1-mini").price.map(|price| price.output), Some(8.0));
        assert_eq!(lookup(&options, "dall-e-3").price.map(|price| price.image), Some(0.04));
        let unknown = lookup(&options, "o3x-custom");
        assert_eq!(
            (unknown.context_window, unknown.max_output_tokens, unknown.price),
            (200_000, 32_000, None)
        );
    }

    #[test]
    fn settings_extend_the_table_and_options_win() {
        let mut options = ModelOptions::default();
        options.settings.prices.insert("mine".into(), price(1.0, 2.0, 0.1, 3.0));
        options.settings.context_windows.insert("mine".into(), 8_000);
        assert_eq!(lookup(&options, "mine").context_window, 8_000);
        options.context_window = Some(4_000);
        assert_eq!(lookup(&options, "mine").context_window, 4_000);
        let usage = Usage {
            input_tokens: 1_000_000,
            output_tokens: 500_000,
            cache_creation_input_tokens: 1_000_000,
            cache_read_input_tokens: 1_000_000,
        };
        assert!((cost(lookup(&options, "mine").price, &usage) - 5.1).abs() < 1e-9);
        assert!(cost(None, &usage).abs() < f64::EPSILON);
    }
}
