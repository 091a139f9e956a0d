//! Hooks that are a request: the event is posted, and the body of the answer is the output. A header may hold a variable
//! only when the hook names it as allowed.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::firing::command::plain_output;
use crate::firing::set::PostJson;
use qoder_config::hooks::HookEvent;
use qoder_config::hooks::HttpHook;

/// Posts the event.
pub(crate) async fn post(
    hook: &HttpHook,
    event: HookEvent,
    input: &Value,
    variables: &BTreeMap<String, String>,
    post: &PostJson,
) -> Result<Value, String> {
    let headers = hook
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), expanded(value, &hook.allowed_variables, variables)));
    let headers: Vec<(String, String)> = headers.collect();
    let (status, body) = post(hook.url.clone(), headers, input.to_string().into_bytes()).await?;
    match status {
        // A proxy may answer with a page of its own.
        200..=299 if is_no_answer(&body) => {
            Err(format!("{} answered with something that is neither JSON nor plain words", hook.url))
        }
        200..=299 => plain_output(event, &body),
        _ => Err(format!("{} answered with the status {status}", hook.url)),
    }
}

/// True for a page, and for bytes that are no text.
fn is_no_answer(body: &str) -> bool {
    let text = body.trim_start_matches('\u{feff}').trim_start();
    let begins = |word: &str| text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    begins("<!doctype") || begins("<html") || body.contains(['\u{fffd}', '\0'])
}

/// The value with allowed variables in place of their names; every other name stands for nothing.
fn expanded(text: &str, allowed: &[String], variables: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else { break };
        let name = &rest[start + 2..start + length];
        out.push_str(&rest[..start]);
        if allowed.iter().any(|one| one == name) {
            out.push_str(variables.get(name).map_or("", String::as_str));
        }
        rest = &rest[start + length + 1..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_and_bytes_are_no_answer() {
        for body in ["<!DOCTYPE html>", "\u{feff} <html>", "\u{1f}\u{fffd}\u{8}", "a\0b"] {
            assert!(is_no_answer(body), "{body:?}");
        }
        for body in ["", "ok", "{}", "<notes>be brief</notes>", "{\"reason\": \"<b>\"}"] {
            assert!(!is_no_answer(body), "{body:?}");
        }
    }

    #[test]
    fn only_allowed_variables_reach_a_header() {
        let variables = BTreeMap::from([("A".to_owned(), "1".to_owned()), ("B".to_owned(), "2".to_owned())]);
        let allowed = ["A".to_owned(), "C".to_owned()];
        assert_eq!(expanded("Bearer ${A}${B}${C} ${", &allowed, &variables), "Bearer 1 ${");
    }
}
