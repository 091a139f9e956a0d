//! A flag that is given twice with the same value is no conflict: scripts and wrappers add flags that are there already. The
//! parser knows repeats only as errors, so each such error is looked at.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, CommandFactory, Parser};

use super::arguments::Arguments;

/// Parses the command line of a run.
pub(crate) fn parse(words: &[OsString]) -> Result<Arguments, clap::Error> {
    let mut words = words.to_vec();
    loop {
        let error = match Arguments::try_parse_from(&words) {
            Ok(arguments) => return Ok(arguments),
            Err(error) => error,
        };
        words = without_repeats(&words, &error).ok_or(error)?;
    }
}

/// The words without the repeats that the error is about; `None` when it is about something else, or they do not agree.
fn without_repeats(words: &[OsString], error: &clap::Error) -> Option<Vec<OsString>> {
    if error.kind() != ErrorKind::ArgumentConflict {
        return None;
    }
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidArg) else { return None };
    let mut command = Arguments::command();
    command.build();
    let flag = command.get_arguments().find(|argument| argument.to_string() == *name)?;
    let given = occurrences(words, flag);
    let (first, repeats) = given.split_first()?;
    if repeats.is_empty() || repeats.iter().any(|repeat| repeat.value != first.value) {
        return None;
    }
    let left_out =
        |at: usize| repeats.iter().any(|repeat| (repeat.at..repeat.at + repeat.words).contains(&at));
    Some(words.iter().enumerate().filter(|(at, _)| !left_out(*at)).map(|(_, word)| word.clone()).collect())
}

/// A flag on the command line.
struct Occurrence {
    at: usize,
    words: usize,
    value: Option<String>,
}

fn occurrences(words: &[OsString], flag: &Arg) -> Vec<Occurrence> {
    let takes_value = flag.get_action().takes_values();
    let longs: Vec<String> = flag
        .get_long_and_visible_aliases()
        .unwrap_or_default()
        .into_iter()
        .chain(flag.get_aliases().unwrap_or_default())
        .map(|name| format!("--{name}"))
        .collect();
    let short = flag.get_short().map(|letter| format!("-{letter}"));
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate().skip(1) {
        let Some(word) = word.to_str() else { continue };
        if word == "--" {
            break;
        }
        let alone = longs.iter().any(|long| word == long) || short.as_deref() == Some(word);
        let joined = || {
            let of_long = longs.iter().find_map(|long| word.strip_prefix(long)?.strip_prefix('='));
            let of_short = || Some(word.strip_prefix(short.as_deref()?)?.trim_start_matches('='));
            of_long.or_else(|| of_short().filter(|_| !word.starts_with("--"))).map(str::to_owned)
        };
        match (takes_value, alone) {
            (false, true) => found.push(Occurrence { at, words: 1, value: None }),
            (true, true) => {
                let value = words.get(at + 1).and_then(|word| word.to_str()).map(str::to_owned);
                found.push(Occurrence { at, words: 2, value });
            }
            (true, false) => {
                found.extend(joined().map(|value| Occurrence { at, words: 1, value: Some(value) }))
            }
            (false, false) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Arguments, clap::Error> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        parse(&words)
    }

    #[test]
    fn repeats_that_agree_are_one() {
        for line in [
            "qodercli -p --permission-mode plan --permission-mode plan hi",
            "qodercli -p --permission-mode=plan hi --permission-mode plan --permission-mode=plan",
            "qodercli --model offline -m offline -moffline -p hi",
            "qodercli --trust -p --trust --print hi",
            "qodercli -c --continue -p hi",
            "qodercli --output-format json -o json --output-format=json -p hi",
        ] {
            assert_eq!(parsed(line).unwrap().prompt.as_deref(), Some("hi"), "{line}");
        }
    }

    #[test]
    fn repeats_that_disagree_are_an_error() {
        for line in [
            "qodercli -p --permission-mode plan --permission-mode default hi",
            "qodercli --model offline -mother -p hi",
            "qodercli -p --max-turns 1 --max-turns 2 hi",
        ] {
            let error = parsed(line).unwrap_err().to_string();
            assert!(error.contains("cannot be used multiple times"), "{line}: {error}");
        }
    }
}
