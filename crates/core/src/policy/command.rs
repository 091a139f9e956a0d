//! Reading a shell command far enough to judge it. A command is read only when it is one simple command of literal
//! words; anything with an operator, a substitution, a redirection, a variable or a glob is not understood, and what is
//! not understood is never allowed by a rule that names words.

/// What could be read of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandReading {
    /// One simple command: its literal words.
    Words(Vec<String>),
    /// More than this reader proves.
    NotUnderstood,
}

/// Reads a command.
#[must_use]
pub fn read_command(command: &str) -> CommandReading {
    let mut words: Vec<String> = Vec::new();
    let mut current: Option<String> = None;
    let mut chars = command.trim().chars();
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

/// True when a rule's content covers the words of a command: exactly, or as a prefix with `:*` or a final ` *`.
pub(super) fn covers(content: &str, words: &[String]) -> bool {
    let (pattern, prefix) = match content.strip_suffix(":*").or_else(|| content.strip_suffix(" *")) {
        Some(pattern) => (pattern, true),
        None => (content, false),
    };
    let CommandReading::Words(wanted) = read_command(pattern) else { return false };
    if prefix { words.starts_with(&wanted) } else { words == wanted }
}

/// True when a deny or ask rule's content may speak of the words: as [`covers`], looking past the command's directory.
pub(super) fn touches(content: &str, words: &[String]) -> bool {
    if covers(content, words) {
        return true;
    }
    let Some((first, rest)) = words.split_first() else { return false };
    let Some((_, base)) = first.rsplit_once('/') else { return false };
    let mut shortened = vec![base.to_owned()];
    shortened.extend_from_slice(rest);
    covers(content, &shortened)
}

/// True for a removal of the root, the home directory, a system directory, or the workspace itself.
pub(super) fn removes_everything(words: &[String], home: &str, roots: &[String]) -> bool {
    let Some((first, rest)) = words.split_first() else { return false };
    let name = first.rsplit('/').next().unwrap_or(first);
    if !matches!(name, "rm" | "rmdir" | "shred" | "unlink") {
        return false;
    }
    const SYSTEM: [&str; 14] = [
        "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/opt", "/proc", "/root", "/sbin",
        "/sys", "/usr", "/var",
    ];
    rest.iter().filter(|word| !word.starts_with('-')).any(|word| {
        let path = word.trim_end_matches('/').trim_end_matches("/.");
        path.is_empty()
            || path == home
            || SYSTEM.contains(&path)
            || roots.iter().any(|root| root == path || root.starts_with(&format!("{path}/")))
    })
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

    #[test]
    fn reads_plain_commands_and_nothing_else() {
        assert_eq!(words("git  log\t--oneline 'a b' \"c d\""), ["git", "log", "--oneline", "a b", "c d"]);
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
        ] {
            assert_eq!(read_command(command), CommandReading::NotUnderstood, "{command:?}");
        }
    }

    #[test]
    fn prefixes_end_at_a_word() {
        assert!(covers("npm run test:*", &words("npm run test -- x")));
        assert!(covers("npm run test:*", &words("npm run test")));
        assert!(covers("git log *", &words("git log -3")));
        assert!(!covers("npm run test:*", &words("npm run tests")));
        assert!(!covers("npm run build", &words("npm run build x")));
        assert!(!covers("terraform:*", &words("./terraform apply")));
        assert!(touches("terraform:*", &words("./terraform apply")));
    }

    #[test]
    fn wholesale_removal_is_seen() {
        let roots = ["/w/p".to_owned()];
        for command in ["rm -rf /", "rm -rf /etc/", "/bin/rm -r /home/u", "rm -rf /w/p", "rm -rf /w"] {
            assert!(removes_everything(&words(command), "/home/u", &roots), "{command}");
        }
        for command in ["rm -rf target", "rm -rf /w/p/target", "ls /"] {
            assert!(!removes_everything(&words(command), "/home/u", &roots), "{command}");
        }
    }
}
