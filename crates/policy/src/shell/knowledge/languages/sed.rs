//! Scripts of sed, as far as they are read completely: addresses, printing, deleting, quitting, the hold space and
//! substitution without a file or a program. Any other command, label or flag is not proven. In place the operands are
//! edits.

use crate::shell::Word;
use crate::shell::knowledge::Effects;
use crate::shell::knowledge::options::Arguments;
use crate::shell::knowledge::program::Operands::Special;
use crate::shell::knowledge::program::Program;

const SED: &str = "
    n quiet silent, E r regexp-extended, e expression=, s separate, u unbuffered, z null-data,
    line-length=, posix, debug, sandbox, b binary, follow-symlinks!, help, version, i in-place=?!,
    f file=<!!
";

/// The entry.
pub(crate) const TABLE: &[Program] = &[Program::reader(&["sed", "gsed"], &[SED], Special(sed))];

fn sed(arguments: &Arguments<'_>, effects: &mut Effects) {
    let mut scripts: Vec<&Word> = arguments.values("e").collect();
    let mut files = arguments.operands.as_slice();
    if scripts.is_empty() && !arguments.has(&["f"]) {
        match files.split_first() {
            Some((script, rest)) => {
                scripts.push(script);
                files = rest;
            }
            None => return effects.incomplete("the script is missing"),
        }
    }
    for script in scripts {
        if !script.as_literal().is_some_and(only_prints) {
            effects.incomplete("the script does more than select and print");
        }
    }
    for file in files {
        effects.read_file(file, false);
        if arguments.has(&["i"]) {
            effects.edit(file, false);
        }
    }
}

/// True when the script is read completely and only writes to the standard output.
pub(crate) fn only_prints(script: &str) -> bool {
    let mut reader = Script { rest: script };
    reader.read().is_some()
}

struct Script<'a> {
    rest: &'a str,
}

impl Script<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn skip(&mut self, skipped: impl Fn(char) -> bool) -> usize {
        let before = self.rest.len();
        self.rest = self.rest.trim_start_matches(skipped);
        before - self.rest.len()
    }

    fn read(&mut self) -> Option<()> {
        let mut depth = 0_u32;
        loop {
            self.skip(|c| c.is_ascii_whitespace() || c == ';');
            if self.peek().is_none() {
                return (depth == 0).then_some(());
            }
            if self.address()? {
                self.skip(|c| c == ' ');
                if self.peek() == Some(',') {
                    self.next();
                    self.skip(|c| c == ' ');
                    if matches!(self.peek(), Some('+' | '~')) {
                        self.next();
                    }
                    if !self.address()? {
                        return None;
                    }
                }
            }
            self.skip(|c| c == ' ' || c == '!');
            match self.next()? {
                '{' => {
                    depth += 1;
                    continue;
                }
                '}' => depth = depth.checked_sub(1)?,
                'p' | 'd' | '=' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | 'P' | 'D' => {}
                'q' | 'Q' | 'l' => {
                    self.skip(|c| c == ' ');
                    self.skip(|c| c.is_ascii_digit());
                }
                's' => self.substitution()?,
                'y' => {
                    let delimiter = self.delimiter()?;
                    self.until(delimiter, false)?;
                    self.until(delimiter, false)?;
                }
                _ => return None,
            }
            self.skip(|c| c == ' ');
            if !matches!(self.peek(), None | Some(';' | '\n' | '}')) {
                return None;
            }
        }
    }

    /// Reads an address, when there is one.
    fn address(&mut self) -> Option<bool> {
        match self.peek() {
            Some('0'..='9') => {
                self.skip(|c| c.is_ascii_digit());
                if self.peek() == Some('~') {
                    self.next();
                    if self.skip(|c| c.is_ascii_digit()) == 0 {
                        return None;
                    }
                }
            }
            Some('$') => {
                self.next();
            }
            Some(first @ ('/' | '\\')) => {
                self.next();
                let delimiter = if first == '/' { '/' } else { self.delimiter()? };
                self.until(delimiter, true)?;
                self.skip(|c| matches!(c, 'I' | 'M'));
            }
            _ => return Some(false),
        }
        Some(true)
    }

    fn delimiter(&mut self) -> Option<char> {
        self.next().filter(|c| !matches!(c, '\\' | '\n'))
    }

    /// Reads up to the delimiter. Some implementations let a bracket hide a delimiter and others do not; where that
    /// could make a difference, the text is not read at all.
    fn until(&mut self, delimiter: char, regex: bool) -> Option<()> {
        let whole = self.rest;
        loop {
            let before = self.rest;
            match self.next()? {
                '\\' => {
                    self.next()?;
                }
                '\n' => return None,
                c if c == delimiter => {
                    let text = &whole[..whole.len() - before.len()];
                    return (!regex || has_simple_classes(text)).then_some(());
                }
                _ => {}
            }
        }
    }

    fn substitution(&mut self) -> Option<()> {
        let delimiter = self.delimiter()?;
        if matches!(delimiter, '[' | ']') {
            return None;
        }
        self.until(delimiter, true)?;
        self.until(delimiter, false)?;
        // The flags `e` and `w` run a program and write a file.
        self.skip(|c| matches!(c, 'g' | 'p' | 'i' | 'I' | 'm' | 'M') || c.is_ascii_digit());
        Some(())
    }
}

/// True when every class in a regular expression is closed inside it, however one reads it: none is empty at its start,
/// and none holds another bracket or an escape.
pub(crate) fn has_simple_classes(regex: &str) -> bool {
    let mut rest = regex;
    while let Some(at) = rest.find(['\\', '[']) {
        let behind = &rest[at + 1..];
        if rest[at..].starts_with('\\') {
            let mut escaped = behind.chars();
            escaped.next();
            rest = escaped.as_str();
            continue;
        }
        let Some((class, after)) = behind.split_once(']') else { return false };
        if class.trim_start_matches('^').is_empty() || class.contains(['[', '\\']) {
            return false;
        }
        rest = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::only_prints;

    #[test]
    fn selecting_and_printing_is_read() {
        for script in [
            "5p",
            "1,20p",
            "$p",
            "$!p",
            "/re/p",
            "/a/,/b/p",
            "1~2p",
            "0,/x/d",
            "10q",
            "5,+3p",
            "s/a/b/",
            "s|a|b|g",
            "s/a\\/b/c/gp",
            "/x/I p",
            "1p;3p",
            "1d\n2d",
            "y/abc/xyz/",
            "/a/{p;q}",
            "$=",
            "\\,x,p",
            "s/[ab]/c/2",
            "",
        ] {
            assert!(only_prints(script), "{script}");
        }
    }

    #[test]
    fn everything_else_is_not() {
        for script in [
            "w out",
            "1w out",
            "e",
            "1e id",
            "s/a/b/e",
            "s/a/b/w out",
            "s/a/b/gw out",
            "r file",
            "R file",
            "a text",
            "i\\",
            ":a",
            "b",
            "t a",
            "p x",
            "s/a/b",
            "s/a/b/ge",
            "5",
            "1,p",
            "F",
            "W out",
            "/a",
            "s/[/]e;w x/b/",
            "{p",
            "p}",
            "M",
            "1!!e",
            "s\na\nb\n",
            "s/[]/]/b/",
            "s/[\\]/]e/b/",
        ] {
            assert!(!only_prints(script), "{script}");
        }
    }
}
