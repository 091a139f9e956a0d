//! Finds out which field of a request an error is about. Names that are also words of the language count only where they
//! are written as names: in quotes, behind a dot, or in front of a colon.

use serde_json::Value;

/// Words, in lower case, by which servers refuse a field.
const OBJECTIONS: [&str; 24] = [
    "unknown",
    "unrecognized",
    "unrecognised",
    "unsupported",
    "not supported",
    "not support",
    "n't support",
    "not permitted",
    "not allowed",
    "not accepted",
    "not available",
    "not a valid",
    "extra inputs",
    "extra fields",
    "extra_forbidden",
    "extraneous",
    "unexpected",
    "invalid",
    "additional properties",
    "cannot find field",
    "no such field",
    "deprecated",
    "removed",
    "disallowed",
];

/// The field among `sent` that the error names and refuses. `param` of the error decides where it is one of them.
pub(super) fn refused<'a>(body: &str, sent: &[&'a str]) -> Option<&'a str> {
    let lower = body.to_ascii_lowercase();
    // The type that every such error has is no objection to a field.
    let said = lower.replace("invalid_request", "");
    if !OBJECTIONS.iter().any(|words| said.contains(words)) {
        return None;
    }
    if let Some(param) = param(body)
        && let Some(field) = sent.iter().find(|field| last_name(&param) == **field)
    {
        return Some(field);
    }
    let place = |field: &&'a str| mention(&lower, field).map(|at| (at, *field));
    sent.iter().filter_map(place).min().map(|(_, field)| field)
}

/// `error.param`, or the end of the first `loc` of a list of problems.
fn param(body: &str) -> Option<String> {
    let value: Value = serde_json::from_str(body).ok()?;
    let error = value.get("error").filter(|error| error.is_object()).unwrap_or(&value);
    if let Some(param) = error.get("param").and_then(Value::as_str).filter(|param| !param.is_empty()) {
        return Some(param.to_owned());
    }
    let problems = value.get("detail").or_else(|| error.get("message")?.get("detail"))?.as_array()?;
    let place = problems.first()?.get("loc")?.as_array()?;
    place.iter().rev().find_map(Value::as_str).map(str::to_owned)
}

/// `c` of `a.b[0].c`.
fn last_name(path: &str) -> &str {
    let end = path.rsplit(['.', '/']).next().unwrap_or(path);
    end.split('[').next().unwrap_or(end)
}

/// Where the text mentions `field` as a name.
pub(super) fn mention(text: &str, field: &str) -> Option<usize> {
    let is_word = !field.contains('_');
    text.match_indices(field).map(|(at, _)| at).find(|at| {
        let before = text.get(..*at).and_then(|front| front.chars().last());
        let after = text.get(at + field.len()..).and_then(|rest| rest.chars().next());
        let part_of_name = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
        if part_of_name(before) || part_of_name(after) {
            return false;
        }
        let quote = |c: Option<char>| matches!(c, Some('\'' | '"' | '`' | '\\'));
        // `reasoning.effort` is about `reasoning`.
        let ends = quote(after) || matches!(after, Some('.' | '['));
        !is_word || (quote(before) && ends) || before == Some('.') || after == Some(':')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_is_found_in_the_words_of_many_servers() {
        let sent = [
            "stream_options",
            "include",
            "store",
            "reasoning_content",
            "cache_control",
            "thinking",
            "reasoning",
        ];
        for (body, expected) in [
            (
                r#"{"error":{"message":"property 'store' is unsupported, did you mean 'stop'?"}}"#,
                Some("store"),
            ),
            (
                r#"{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}"#,
                Some("stream_options"),
            ),
            (
                r#"{"error":{"message":"messages.1.assistant.reasoning_content: property is unsupported"}}"#,
                Some("reasoning_content"),
            ),
            (
                r#"{"error":{"message":"cache_control: Extra inputs are not permitted"}}"#,
                Some("cache_control"),
            ),
            (
                r#"{"error":{"message":"Unsupported parameter","param":"include","code":"unsupported_parameter"}}"#,
                Some("include"),
            ),
            (r#"{"error":{"message":"smol doesn't support `reasoning.effort`"}}"#, Some("reasoning")),
            (r#"{"error":"please include a message; this is not supported"}"#, None),
            (r#"{"error":"the store of thinking is full"}"#, None),
            (r#"{"error":"stream_options"}"#, None),
            (r#"{"error":{"type":"invalid_request_error","message":"thinking: needs a budget"}}"#, None),
        ] {
            assert_eq!(refused(body, &sent), expected, "{body}");
        }
    }
}
