//! What follows the name of a command, and putting it into a text: `$ARGUMENTS` is all of it, `$1` to `$9` are its
//! words. Words are read as a shell reads them: quotes keep blanks together, a backslash takes the next character as it is.

/// What follows the name of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    all: String,
    words: Vec<String>,
}

/// Where arguments are put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Into {
    /// Into words for the model.
    Text,
    /// Into a command line, where each word stays one word.
    Shell,
}

impl Arguments {
    /// Reads the text behind a name.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let all = text.trim().to_owned();
        let words = words(&all);
        Self { all, words }
    }

    /// The text with the arguments in their places; behind it when it has none for them.
    #[must_use]
    pub fn put_into(&self, text: &str) -> String {
        let (filled, used) = self.fill(text, Into::Text);
        if used { filled } else { self.put_behind(filled) }
    }

    /// The text with the arguments in their places, and whether it had places for them.
    #[must_use]
    pub fn filled(&self, text: &str) -> (String, bool) {
        self.fill(text, Into::Text)
    }

    /// A command line with the arguments in their places, quoted where they have to be.
    #[must_use]
    pub fn into_shell(&self, line: &str) -> (String, bool) {
        self.fill(line, Into::Shell)
    }

    /// The text with the arguments behind it.
    #[must_use]
    pub fn put_behind(&self, text: String) -> String {
        if self.all.is_empty() { text } else { format!("{}\n\nARGUMENTS: {}", text.trim_end(), self.all) }
    }

    fn fill(&self, text: &str, into: Into) -> (String, bool) {
        let mut out = String::with_capacity(text.len());
        let mut used = false;
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            let (before, from) = rest.split_at(at);
            let behind = &from[1..];
            // A backslash keeps the dollar; a shell needs the backslash, too.
            if let Some(kept) = before.strip_suffix('\\') {
                out.push_str(if into == Into::Shell { before } else { kept });
                out.push('$');
                rest = behind;
                continue;
            }
            out.push_str(before);
            rest = match place(behind) {
                Some((place, rest)) => {
                    out.push_str(&self.value(place, into));
                    used = true;
                    rest
                }
                None => {
                    out.push('$');
                    behind
                }
            };
        }
        out.push_str(rest);
        (out, used)
    }

    fn value(&self, place: Option<usize>, into: Into) -> String {
        match (place, into) {
            (None, Into::Text) => self.all.clone(),
            (None, Into::Shell) => self.words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
            (Some(place), _) => {
                let word = self.words.get(place - 1);
                match into {
                    Into::Text => word.cloned().unwrap_or_default(),
                    Into::Shell => word.map(|word| quoted(word)).unwrap_or_default(),
                }
            }
        }
    }
}

/// The place behind a dollar, and what follows it: none is all arguments.
fn place(behind: &str) -> Option<(Option<usize>, &str)> {
    if let Some(rest) = behind.strip_prefix("ARGUMENTS") {
        let ends = !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        return ends.then_some((None, rest));
    }
    let digit = behind.chars().next()?.to_digit(10).filter(|digit| *digit > 0)?;
    let rest = &behind[1..];
    let ends = !rest.starts_with(|c: char| c.is_ascii_digit());
    ends.then_some((Some(usize::try_from(digit).ok()?), rest))
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@=+,%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), c) if c == open => quote = None,
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(chars.next()),
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_take_their_places() {
        let arguments = Arguments::new("  src/a 'two words' \"x y\" a\\ b ");
        assert_eq!(arguments.put_into("[$1] [$2] [$3] [$4] [$5]"), "[src/a] [two words] [x y] [a b] []");
        assert_eq!(arguments.put_into("all: $ARGUMENTS."), "all: src/a 'two words' \"x y\" a\\ b.");
        assert_eq!(arguments.put_into("no place"), format!("no place\n\nARGUMENTS: {}", arguments.all));
        assert_eq!(Arguments::new("").put_into("no place"), "no place");
        assert_eq!(arguments.put_into("\\$1 costs $10, $ARGUMENTSX $x $0 $"), {
            format!("$1 costs $10, $ARGUMENTSX $x $0 $\n\nARGUMENTS: {}", arguments.all)
        });
        assert_eq!(Arguments::new("'open").words, ["open"]);
        assert_eq!(Arguments::new("''").words, [""]);
    }

    #[test]
    fn what_an_argument_says_is_not_read_as_a_place() {
        assert_eq!(Arguments::new("$1 $ARGUMENTS").put_into("<$1>"), "<$1>");
    }

    #[test]
    fn a_word_stays_one_word_in_a_command_line() {
        let arguments = Arguments::new("a 'b; rm -rf c' \"it's\"");
        assert_eq!(arguments.into_shell("git log $1 $2 $3").0, "git log a 'b; rm -rf c' 'it'\\''s'");
        assert_eq!(arguments.into_shell("echo $ARGUMENTS").0, "echo a 'b; rm -rf c' 'it'\\''s'");
        assert_eq!(arguments.into_shell("echo \\$1 $HOME").0, "echo \\$1 $HOME");
    }
}
