//! Rejects a first word that looks like a misspelt subcommand instead of sending it to a model, which costs money. The
//! error names the nearest command; `-p` sends the word as a prompt.

use crate::exit::Fault;

/// The subcommands.
pub const COMMANDS: [&str; 22] = [
    "sessions",
    "attach",
    "config",
    "permissions",
    "sandbox",
    "agents",
    "hooks",
    "skills",
    "commands",
    "models",
    "mcp",
    "plugins",
    "serve",
    "tool-host",
    "work",
    "trust",
    "init",
    "login",
    "logout",
    "completions",
    "man",
    "help",
];

/// Commands that other programs of this kind have, and what does the same here.
const ELSEWHERE: &[(&str, &str)] = &[
    ("doctor", "qodercli sandbox status, qodercli mcp list or qodercli config"),
    ("status", "qodercli sandbox status, qodercli mcp list or qodercli sessions list"),
    ("model", "qodercli --model NAME, or qodercli models list"),
    ("settings", "qodercli config"),
    ("rules", "qodercli permissions list"),
    ("providers", "qodercli models list"),
    ("servers", "qodercli mcp list"),
    ("resume", "qodercli --resume SESSION"),
    ("continue", "qodercli --continue"),
    ("version", "qodercli --version"),
    ("update", "the way it was installed: qodercli does not update itself"),
    ("upgrade", "the way it was installed: qodercli does not update itself"),
    ("install", "qodercli plugins install DIR"),
];

/// The complaint about a command line whose first word is nearly a subcommand; `None` when it may be a prompt.
pub fn mistaken(words: &[std::ffi::OsString]) -> Option<Fault> {
    let texts: Vec<&str> = words.iter().skip(1).filter_map(|word| word.to_str()).collect();
    let means_a_prompt = |text: &&str| {
        matches!(*text, "-p" | "--print") || text.starts_with("--input-format") || is_bundle_with_print(text)
    };
    let first = texts.first()?;
    let is_word = !first.is_empty() && first.chars().all(|c| c.is_ascii_alphabetic() || c == '-' || c == '_');
    if !is_word || first.starts_with('-') || texts.iter().any(means_a_prompt) {
        return None;
    }
    let word = first.to_ascii_lowercase();
    let meant = match ELSEWHERE.iter().find(|(name, _)| *name == word) {
        Some((_, here)) => (*here).to_owned(),
        None => {
            let near = nearest(&word)?;
            let rest = texts[1..].iter().map(|text| format!(" {text}")).collect::<String>();
            format!("qodercli {near}{rest}")
        }
    };
    Some(Fault::input(
        format!("`{first}` is not a command"),
        format!("did you mean {meant}? To send it to the model, use -p: qodercli -p \"{first}\""),
    ))
}

/// `-dp` and the like.
fn is_bundle_with_print(text: &str) -> bool {
    text.strip_prefix('-').is_some_and(|flags| {
        flags.contains('p')
            && !flags.starts_with('-')
            && flags.chars().all(|flag| matches!(flag, 'p' | 'd' | 'c'))
    })
}

/// The subcommand nearest to a word.
fn nearest(word: &str) -> Option<&'static str> {
    let begins = |name: &&&str| {
        (word.len() >= 4 && name.starts_with(word)) || (**name != "help" && word.starts_with(**name))
    };
    if let Some(name) = COMMANDS.iter().find(begins) {
        return Some(name);
    }
    let most = if word.len() <= 5 { 1 } else { 2 };
    let near = COMMANDS.iter().map(|name| (distance(word, name), *name));
    near.filter(|(distance, _)| *distance <= most).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// How many letters have to be typed otherwise; two that changed places are one.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for i in 1..=one.len() {
        let mut row = vec![i];
        for j in 1..=other.len() {
            let differs = usize::from(one[i - 1] != other[j - 1]);
            let mut least = (rows[i - 1][j - 1] + differs).min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_near_a_command_stand_for_it_and_others_are_prompts() {
        for (word, name) in [
            ("mpc", "mcp"),
            ("session", "sessions"),
            ("sesions", "sessions"),
            ("plugin", "plugins"),
            ("agent", "agents"),
            ("hook", "hooks"),
            ("skill", "skills"),
            ("command", "commands"),
            ("permision", "permissions"),
            ("confg", "config"),
            ("configure", "config"),
            ("trsut", "trust"),
            ("hlep", "help"),
        ] {
            assert_eq!(nearest(word), Some(name), "{word}");
        }
        for word in
            ["hello", "test", "summarize", "review", "explain", "hi", "fix", "why", "refactor", "helpful"]
        {
            assert_eq!(nearest(word), None, "{word}");
        }
    }
}
