//! Reading a shell command far enough to judge it. A command is read only when it is one simple command of literal
//! words; anything with an operator, a substitution, a redirection, a variable or a glob is not understood, and what is
//! not understood is never allowed by a rule that names words. Deny and ask rules look through programs that run others.

/// What could be read of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandReading {
    /// One simple command: its literal words.
    Words(Vec<String>),
    /// More than this reader proves.
    NotUnderstood,
}

/// Programs that run what their arguments name.
const RUNNERS: [&str; 31] = [
    "env", "timeout", "time", "nice", "ionice", "nohup", "stdbuf", "command", "builtin", "exec", "sudo",
    "doas", "su", "pkexec", "setsid", "xargs", "parallel", "watch", "chroot", "unshare", "nsenter", "strace",
    "ltrace", "script", "flock", "taskset", "chrt", "busybox", "find", "eval", "trap",
];
/// Shells, whose arguments may be whole scripts.
const SHELLS: [&str; 6] = ["bash", "sh", "dash", "zsh", "ksh", "fish"];
/// How deep scripts inside scripts are read.
const DEPTH: u32 = 4;

/// Reads a command.
#[must_use]
pub fn read_command(command: &str) -> CommandReading {
    let mut words: Vec<String> = Vec::new();
    let mut current: Option<String> = None;
    let mut chars = command.trim_matches([' ', '\t', '\n']).chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => words.extend(current.take()),
            '\'' => {
                let word = current.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('\'') => break,
                        Some(inner) if is_plain_inside_quotes(inner) => word.push(inner),
                        _ => return CommandReading::NotUnderstood,
                    }
                }
            }
            '"' => {
                let word = current.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('"') => break,
                        Some('$' | '`' | '\\' | '!') | None => return CommandReading::NotUnderstood,
                        Some(inner) if is_plain_inside_quotes(inner) => word.push(inner),
                        Some(_) => return CommandReading::NotUnderstood,
                    }
                }
            }
            // A tilde is literal only inside a word; at its start the shell expands it.
            '~' if current.is_some() => current.get_or_insert_default().push(c),
            c if c.is_ascii_alphanumeric() || "_-./:@%+,^".contains(c) => {
                current.get_or_insert_default().push(c)
            }
            '=' if !words.is_empty() => current.get_or_insert_default().push(c),
            c if !c.is_ascii() && c.is_alphanumeric() => current.get_or_insert_default().push(c),
            _ => return CommandReading::NotUnderstood,
        }
    }
    words.extend(current);
    if words.is_empty() { CommandReading::NotUnderstood } else { CommandReading::Words(words) }
}

fn is_plain_inside_quotes(c: char) -> bool {
    !c.is_control() && (c.is_ascii() || c.is_alphanumeric())
}

/// Stands between words, so that a blank inside a word is not one between words.
const BETWEEN: char = '\u{1f}';

/// What a rule says about commands: `words` exactly, `words:*` and `words *` as a prefix of whole words, and any other
/// `*` for any text inside one simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandPattern {
    text: String,
    prefix: bool,
}

impl CommandPattern {
    /// Reads a rule's content; `None` when it is not one simple command.
    pub(super) fn parse(content: &str) -> Option<Self> {
        let (body, prefix) = match content.strip_suffix(":*").or_else(|| content.strip_suffix(" *")) {
            Some(body) => (body, true),
            None => (content, false),
        };
        // A star is no literal; for reading it stands in as a letter that nobody writes.
        let CommandReading::Words(words) = read_command(&body.replace('*', STAR_TEXT)) else { return None };
        let text = words.join(&BETWEEN.to_string()).replace(STAR_TEXT, "*");
        Some(Self { text, prefix })
    }

    /// True when the words are what the rule says.
    pub(super) fn covers(&self, words: &[String]) -> bool {
        let joined = words.join(&BETWEEN.to_string());
        matches(&self.text, &joined) || (self.prefix && matches(&format!("{}{BETWEEN}*", self.text), &joined))
    }
}

const STAR_TEXT: &str = "ꙮ";

/// Matches with `*` for any text. Linear in practice: only the last star is ever tried again.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if p < pattern.len() && pattern[p] == '*' {
            star = Some((p, t));
            p += 1;
        } else if p < pattern.len() && pattern[p] == text[t] {
            p += 1;
            t += 1;
        } else if let Some((at, from)) = star {
            p = at + 1;
            t = from + 1;
            star = Some((at, from + 1));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// The commands that a simple command may come to: itself, and what it runs when it is a program that runs others. The
/// flag is true when something in it is a script that cannot be read.
pub(super) fn views(words: &[String]) -> (Vec<Vec<String>>, bool) {
    let mut all = Vec::new();
    let mut opaque = false;
    collect_views(words, &mut all, &mut opaque, DEPTH);
    (all, opaque)
}

fn collect_views(words: &[String], all: &mut Vec<Vec<String>>, opaque: &mut bool, depth: u32) {
    let Some((first, rest)) = words.split_first() else { return };
    all.push(words.to_vec());
    let base = base_name(first);
    if base != first {
        let mut by_base = vec![base.to_owned()];
        by_base.extend_from_slice(rest);
        all.push(by_base);
    }
    if depth == 0 {
        *opaque = true;
        return;
    }
    if SHELLS.contains(&base) || matches!(base, "eval" | "trap" | "su" | "script" | "watch") {
        for word in rest.iter().filter(|word| !word.starts_with('-')) {
            match read_command(word) {
                CommandReading::Words(inner) => collect_views(&inner, all, opaque, depth - 1),
                CommandReading::NotUnderstood => *opaque = true,
            }
        }
    }
    if RUNNERS.contains(&base) {
        // Where the inner command begins depends on options; every place is looked at.
        for start in 0..rest.len().min(16) {
            collect_views(&rest[start..], all, opaque, depth - 1);
        }
    }
}

/// The last part of a path.
pub(super) fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &str) -> Vec<String> {
        match read_command(command) {
            CommandReading::Words(words) => words,
            CommandReading::NotUnderstood => panic!("{command} was not read"),
        }
    }

    fn covers(content: &str, command: &str) -> bool {
        CommandPattern::parse(content).unwrap().covers(&words(command))
    }

    #[test]
    fn reads_plain_commands_and_nothing_else() {
        assert_eq!(words("git  log\t--oneline 'a b' \"c d\"\n"), ["git", "log", "--oneline", "a b", "c d"]);
        for command in [
            "",
            "a && b",
            "a; b",
            "a | b",
            "a $(b)",
            "a `b`",
            "a > f",
            "a $X",
            "a *",
            "X=1 a",
            "a\nb",
            "~/x",
            "a {b,c}",
            "a 'b",
            "a \"$X\"",
            "a \\b",
            "(a)",
            "a & b",
            "a # b",
            "a !b",
            "\u{202e}a",
            "a \u{200b}b",
            "ls\u{3000}",
        ] {
            assert_eq!(read_command(command), CommandReading::NotUnderstood, "{command:?}");
        }
    }

    #[test]
    fn patterns_match_whole_words_and_stars() {
        let must_match = [
            ("npm run test:*", "npm run test -- x"),
            ("npm run test:*", "npm run test"),
            ("git log *", "git log -3"),
            ("echo push*", "echo push origin"),
            ("echo push*", "echo pushing"),
            ("echo * --force", "echo a b --force"),
            ("git * main", "git merge main"),
            ("*", "anything at all"),
        ];
        for (content, command) in must_match {
            assert!(covers(content, command), "{content} must cover {command}");
        }
        let must_not_match = [
            ("npm run test:*", "npm run tests"),
            ("npm run build", "npm run build x"),
            ("terraform:*", "./terraform apply"),
            ("echo 'a b'", "echo a b"),
            ("echo * --force", "echo --forced"),
        ];
        for (content, command) in must_not_match {
            assert!(!covers(content, command), "{content} must not cover {command}");
        }
        for content in ["echo $X", "a && b", "X=1 a", "~/bin/x"] {
            assert_eq!(CommandPattern::parse(content), None, "{content}");
        }
    }

    #[test]
    fn programs_that_run_others_are_looked_through() {
        let rule = CommandPattern::parse("rm:*").unwrap();
        for command in [
            "rm x",
            "/bin/rm x",
            "env rm x",
            "env -i A=1 rm x",
            "timeout 5 rm x",
            "nice -n 5 rm x",
            "command rm x",
            "bash -c 'rm x'",
            "sudo -u root rm x",
            "xargs rm",
            "find . -exec rm x",
            "env bash -c 'nice rm x'",
        ] {
            let (views, _) = views(&words(command));
            assert!(views.iter().any(|view| rule.covers(view)), "{command}");
        }
        assert!(views(&words("bash -c 'a; b'")).1);
        let (plain, opaque) = views(&words("echo rm x"));
        assert!(!opaque && !plain.iter().any(|view| rule.covers(view)));
    }
}
