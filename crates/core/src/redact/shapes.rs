//! The shapes of well-known tokens: how each begins, what a whole one looks like, and which end of a text may be the
//! beginning of one. Each is long enough that ordinary words do not match.

use std::sync::OnceLock;

use memchr::memmem;
use regex::bytes::Regex;

/// How tokens begin. A text without any of them is not looked at further.
const PREFIXES: [&str; 32] = [
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "whsec_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxa-",
    "xoxb-",
    "xoxp-",
    "xoxr-",
    "xoxs-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "npm_",
    "pypi-",
    "hf_",
    "gsk_",
    "xai-",
    "dop_v1_",
    "hvs.",
    "SG.",
    "eyJ",
    "AGE-SECRET-KEY-1",
];

/// Up to this length one look at each byte is faster than one search for each prefix.
const SHORT: usize = 512;

/// How a private key begins and ends.
const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";

const TOKENS: &str = r"(?x-u)
    \bsk-(?:ant-|proj-|or-|svcacct-)?[A-Za-z0-9_-]{24,}
  | \b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}
  | \bwhsec_[A-Za-z0-9+/]{24,}
  | \bgh[posur]_[A-Za-z0-9]{30,}
  | \bgithub_pat_[A-Za-z0-9_]{40,}
  | \bglpat-[A-Za-z0-9_-]{20,}
  | \bxox[abprs]-[A-Za-z0-9-]{20,}
  | \bxapp-[A-Za-z0-9-]{30,}
  | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b
  | \bAIza[A-Za-z0-9_-]{35}
  | \bya29\.[A-Za-z0-9_-]{30,}
  | \bnpm_[A-Za-z0-9]{36}
  | \bpypi-[A-Za-z0-9_-]{50,}
  | \bhf_[A-Za-z0-9]{30,}
  | \bgsk_[A-Za-z0-9]{40,}
  | \bxai-[A-Za-z0-9]{40,}
  | \bdop_v1_[a-f0-9]{40,}
  | \bhvs\.[A-Za-z0-9_-]{24,}
  | \bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{30,}
  | \beyJ[A-Za-z0-9_-]{12,}\.eyJ[A-Za-z0-9_-]{12,}\.[A-Za-z0-9_-]{12,}
  | \bAGE-SECRET-KEY-1[A-Z0-9]{40,}";

/// With its end, or as much of its body as there is. A body inside a JSON string has `\n` for its lines.
const PRIVATE_KEY: &str = r"(?x-u)
    -----BEGIN\ (?:[A-Z0-9]+\ )*PRIVATE\ KEY(?:\ BLOCK)?-----
    (?: (?s:.){0,65536}?-----END\ (?:[A-Z0-9]+\ )*PRIVATE\ KEY(?:\ BLOCK)?----- | (?:[A-Za-z0-9+/=\s]|\\n)* )";

fn compiled(cell: &'static OnceLock<Option<Regex>>, text: &str) -> Option<&'static Regex> {
    cell.get_or_init(|| Regex::new(text).ok()).as_ref()
}

fn tokens() -> Option<&'static Regex> {
    static COMPILED: OnceLock<Option<Regex>> = OnceLock::new();
    compiled(&COMPILED, TOKENS)
}

fn private_keys() -> Option<&'static Regex> {
    static COMPILED: OnceLock<Option<Regex>> = OnceLock::new();
    compiled(&COMPILED, PRIVATE_KEY)
}

fn begins(rest: &[u8]) -> bool {
    // Most bytes begin none; one look at the first byte is enough.
    matches!(
        rest.first(),
        Some(b's' | b'r' | b'w' | b'g' | b'x' | b'A' | b'y' | b'n' | b'p' | b'h' | b'd' | b'S' | b'e')
    ) && PREFIXES.iter().any(|prefix| rest.starts_with(prefix.as_bytes()))
}

/// True when something in there begins as a token does.
pub(super) fn may_find(bytes: &[u8]) -> bool {
    has_prefix(bytes) || memmem::find(bytes, BEGIN.as_bytes()).is_some()
}

fn has_prefix(bytes: &[u8]) -> bool {
    static FINDERS: OnceLock<Vec<memmem::Finder<'static>>> = OnceLock::new();
    if bytes.len() < SHORT {
        return (0..bytes.len()).any(|at| begins(&bytes[at..]));
    }
    let finders = FINDERS.get_or_init(|| PREFIXES.iter().map(memmem::Finder::new).collect());
    finders.iter().any(|finder| finder.find(bytes).is_some())
}

/// Where tokens begin and end.
pub(super) fn places(bytes: &[u8], from: usize) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    if has_prefix(&bytes[from..]) {
        found.extend(all(tokens(), bytes, from));
    }
    if memmem::find(&bytes[from..], BEGIN.as_bytes()).is_some() {
        found.extend(all(private_keys(), bytes, from));
    }
    found
}

fn all(regex: Option<&Regex>, bytes: &[u8], from: usize) -> Vec<(usize, usize)> {
    let Some(regex) = regex else { return Vec::new() };
    let mut found = Vec::new();
    let mut at = from;
    while let Some(place) = regex.find_at(bytes, at) {
        found.push((place.start(), place.end()));
        at = place.end();
    }
    found
}

/// How many bytes at the end may be the beginning of a token, or one that is not over; `None` when that would be more than
/// `longest`.
pub(super) fn begun_token(bytes: &[u8], longest: usize) -> Option<usize> {
    let run = bytes.iter().rev().take(longest + 1).take_while(|byte| is_of_token(**byte)).count();
    if run > longest {
        return None;
    }
    let start = bytes.len() - run;
    let may_begin = |at: &usize| {
        let rest = &bytes[*at..];
        at_boundary(bytes, *at)
            && (begins(rest) || PREFIXES.iter().any(|prefix| prefix.as_bytes().starts_with(rest)))
    };
    Some((start..bytes.len()).find(may_begin).map_or(0, |at| bytes.len() - at))
}

/// True for what tokens consist of.
pub(super) fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'+' | b'/')
}

fn at_boundary(bytes: &[u8], at: usize) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    at == 0 || !is_word(bytes[at - 1])
}

/// How many bytes at the end may be the beginning of a private key, or one that is not over.
pub(super) fn begun_key(bytes: &[u8]) -> usize {
    if let Some(at) = memmem::rfind(bytes, BEGIN.as_bytes()) {
        let rest = &bytes[at..];
        if !ends_key(rest) && may_be_private_key(&rest[BEGIN.len()..]) {
            return rest.len();
        }
    }
    (1..BEGIN.len()).rev().find(|length| bytes.ends_with(&BEGIN.as_bytes()[..*length])).unwrap_or(0)
}

/// How far back of new bytes the end of a private key may begin.
pub(super) const LONGEST_END: usize = 80;

/// True when a private key ends in there.
pub(super) fn ends_key(bytes: &[u8]) -> bool {
    memmem::find(bytes, END.as_bytes())
        .is_some_and(|end| memmem::find(&bytes[end + END.len()..], b"-----").is_some())
}

/// What follows the beginning: words in capitals, the last of them those of a private key, as far as they have come.
fn may_be_private_key(rest: &[u8]) -> bool {
    let words =
        rest.iter().take_while(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || **byte == b' ');
    let head = words.count();
    let after = &rest[head..];
    if after.is_empty() {
        return head <= 64;
    }
    let named = rest[..head].ends_with(b"PRIVATE KEY") || rest[..head].ends_with(b"PRIVATE KEY BLOCK");
    named && (after.starts_with(b"-----") || b"-----".starts_with(after))
}

/// True for what the body of a private key consists of.
pub(super) fn is_of_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace() || matches!(byte, b'+' | b'/' | b'=' | b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shapes_compile() {
        assert!(tokens().is_some() && private_keys().is_some());
    }

    #[test]
    fn every_prefix_leads_to_a_shape() {
        for prefix in PREFIXES {
            let body =
                if prefix == "eyJ" { format!("{0}.eyJ{0}.{0}", "A1".repeat(10)) } else { "A1".repeat(30) };
            let body =
                if prefix == "SG." { format!("{}.{}", "A1".repeat(10), "A1".repeat(20)) } else { body };
            let body = if prefix == "dop_v1_" { body.to_lowercase() } else { body };
            let body = if matches!(prefix, "AKIA" | "ASIA") { "A1".repeat(8) } else { body };
            let text = format!("x {prefix}{body} y");
            assert_eq!(places(text.as_bytes(), 0).len(), 1, "{text}");
        }
    }
}
