//! What the words of an error mean, whatever its status: an unknown model, a key that is not accepted, a prompt that does
//! not fit, a quota that is used up, a server that still loads, and how long to wait.

use qoder_types::ModelFailureClass as Class;

use crate::profile::ErrorWords;

/// Words, in lower case, that mean the same at every endpoint, and the statuses with which they do.
struct Meaning {
    class: Class,
    statuses: &'static [u16],
    words: &'static [&'static str],
}

const MEANINGS: [Meaning; 5] = [
    Meaning {
        class: Class::Authentication,
        statuses: &[400, 403, 404, 422, 500],
        words: &[
            "invalid api key",
            "invalid api_key",
            "invalid_api_key",
            "incorrect api key",
            "api key not valid",
            "api_key_invalid",
            "api key is invalid",
            "invalid x-api-key",
            "no api key",
            "missing api key",
            "api key required",
            "no auth credentials",
            "invalid authentication",
            "authentication_error",
            "malformed api key",
            "api key expired",
        ],
    },
    Meaning {
        class: Class::Quota,
        statuses: &[400, 403, 429],
        words: &[
            "insufficient_quota",
            "exceeded your current quota",
            "insufficient balance",
            "insufficient credits",
            "insufficient funds",
            "credit balance is too low",
            "quota is exhausted",
            "quota has been exhausted",
            "out of credits",
            "billing_hard_limit",
            "billing hard limit",
            "monthly spending limit",
            "payment required",
        ],
    },
    Meaning {
        class: Class::NotFound,
        statuses: &[400, 422, 500],
        words: &[
            "model_not_found",
            "model not found",
            "unknown model",
            "no such model",
            "invalid model name",
            "not a valid model",
            "model_not_exist",
            "model not exist",
            "invalid_model",
            "model does not exist",
            "try pulling it first",
        ],
    },
    Meaning {
        class: Class::Overloaded,
        statuses: &[400, 429, 500, 502, 503, 504],
        words: &[
            "overloaded_error",
            "loading model",
            "model is loading",
            "model is currently loading",
            "still loading",
            "server is starting",
            "currently overloaded",
            "no healthy upstream",
        ],
    },
    Meaning { class: Class::ContextTooLong, statuses: &[400, 413, 422, 500], words: &TOO_LONG },
];

/// The words by which endpoints say that the prompt does not fit.
const TOO_LONG: [&str; 17] = [
    "prompt is too long",
    "input is too long",
    "context_length",
    "context window",
    "maximum context length",
    "maximum model length",
    "model's context length",
    "context size has been exceeded",
    "exceeds the available context size",
    "exceed_context_size",
    "exceed context limit",
    "exceeds the maximum number of tokens",
    "reduce the length of the messages",
    "reduce the length of the prompt",
    "longer than the model's context",
    "greater than the context length",
    "too many tokens in the prompt",
];

/// True when the words mean that the prompt does not fit.
pub(crate) fn says_too_long(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    TOO_LONG.iter().any(|words| text.contains(words))
}

/// The class that the words mean; none when the status says all there is. `own` are those of the server itself.
pub(crate) fn class_of_words(status: u16, text: &str, own: &[ErrorWords]) -> Option<Class> {
    let text = text.to_ascii_lowercase();
    if let Some(known) = own.iter().find(|known| status >= 400 && text.contains(known.says)) {
        return Some(known.means);
    }
    let fits = |meaning: &&Meaning| {
        meaning.statuses.contains(&status) && meaning.words.iter().any(|words| text.contains(words))
    };
    if let Some(meaning) = MEANINGS.iter().find(fits) {
        return Some(meaning.class);
    }
    // "The model `x` does not exist or you do not have access to it", in the order of words of many.
    let names_model = text.contains("model") || text.contains("deployment");
    let missing = [
        "does not exist",
        "not found",
        "is not available",
        "not be found",
        "is not supported by any provider",
    ];
    let is_missing =
        matches!(status, 400 | 422) && names_model && missing.iter().any(|words| text.contains(words));
    is_missing.then_some(Class::NotFound)
}

/// How long the words ask to wait, in milliseconds: "try again in 1m3.5s", "retry after 20 seconds", `retryDelay`.
pub(crate) fn retry_hint(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    const FRONTS: [&str; 8] = [
        "try again in ",
        "retry in ",
        "retry after ",
        "retrydelay\": \"",
        "retrydelay\":\"",
        "retry_after\":",
        "retry_after\": ",
        "retry_after_seconds\":",
    ];
    FRONTS.iter().find_map(|front| duration(lower.get(lower.find(front)? + front.len()..)?))
}

/// A length of time at the start of a text: numbers with units; a number alone is seconds.
fn duration(text: &str) -> Option<u64> {
    let mut rest = text.trim_start_matches(['"', ' ']);
    let mut total: Option<f64> = None;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Some(number) =
            rest.get(..digits).and_then(|number| number.trim_end_matches('.').parse::<f64>().ok())
        else {
            break;
        };
        rest = rest.get(digits..)?.trim_start_matches(' ');
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let factor = match rest.get(..letters)? {
            "ms" | "milliseconds" => 1.0,
            "m" | "min" | "minute" | "minutes" => 60_000.0,
            "h" | "hour" | "hours" => 3_600_000.0,
            _ => 1000.0,
        };
        rest = rest.get(letters..)?;
        total = Some(total.unwrap_or(0.0) + number * factor);
        if !rest.starts_with(|c: char| c.is_ascii_digit()) {
            break;
        }
    }
    total.filter(|total| total.is_finite()).map(to_whole)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to a day before the cast"
)]
fn to_whole(milliseconds: f64) -> u64 {
    milliseconds.clamp(0.0, 86_400_000.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_read_from_words() {
        for (text, expected) in [
            ("Rate limit reached. Please try again in 20ms.", Some(20)),
            ("Please try again in 1m3.5s. Visit", Some(63_500)),
            ("Please retry in 34.07s.", Some(34_070)),
            (r#"{"@type": "RetryInfo", "retryDelay": "34s"}"#, Some(34_000)),
            ("retry after 20 seconds", Some(20_000)),
            (r#"{"error":{"retry_after":7}}"#, Some(7000)),
            ("try again in a while", None),
            ("try again later", None),
        ] {
            assert_eq!(retry_hint(text), expected, "{text}");
        }
    }
}
