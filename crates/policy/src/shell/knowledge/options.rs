//! Options of programs: how a table names them and how they are read from words, as `getopt` reads them. Entries stand
//! between commas; one is, for example, `n lines=`: all names of one option, the canonical one first, letters short.
//! Behind the names: `=` takes a value (`==` does so in every version), `=?` may have an attached one; then `<` the
//! value is a file that is read, `>` one that is changed; then `!` the program no longer only reads, `!!` it may also
//! touch files that cannot be listed. The entry `#` stands for a number such as `-5`. What no entry names is not
//! understood, abbreviations included.

use super::words::{behind, has_pattern, may_begin_with_dash, may_split, shown};
use crate::shell::Word;

/// Groups of entries; the first that has a name counts.
pub(super) type Groups = &'static [&'static str];

/// Whether an option has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    Value,
    /// A value in every version of the program, so that it may look like an option.
    CertainValue,
    AttachedValue,
}

/// What a value names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Text,
    Read,
    Edit,
}

/// What an option does to the proof that a program only reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caution {
    Harmless,
    Changes,
    Opaque,
}

/// One entry of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Setting {
    names: &'static str,
    pub(super) takes: Takes,
    pub(super) role: Role,
    pub(super) caution: Caution,
}

impl Setting {
    fn parse(entry: &'static str) -> Self {
        let (rest, caution) = match (entry.strip_suffix("!!"), entry.strip_suffix('!')) {
            (Some(rest), _) => (rest, Caution::Opaque),
            (None, Some(rest)) => (rest, Caution::Changes),
            (None, None) => (entry, Caution::Harmless),
        };
        let (rest, role) = match (rest.strip_suffix('<'), rest.strip_suffix('>')) {
            (Some(rest), _) => (rest, Role::Read),
            (None, Some(rest)) => (rest, Role::Edit),
            (None, None) => (rest, Role::Text),
        };
        let suffixes = [
            ("=?", Takes::AttachedValue),
            ("==", Takes::CertainValue),
            ("=", Takes::Value),
            ("", Takes::Nothing),
        ];
        let found = suffixes.iter().find_map(|(end, takes)| Some((rest.strip_suffix(end)?, *takes)));
        let (names, takes) = found.unwrap_or((rest, Takes::Nothing));
        Self { names, takes, role, caution }
    }

    /// The name that stands for all.
    pub(super) fn canonical(&self) -> &'static str {
        self.names().next().unwrap_or(self.names)
    }

    /// All its names.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.names.split(' ')
    }

    fn is_called(&self, name: &str) -> bool {
        self.names().any(|own| own == name)
    }
}

/// All entries of a table.
pub(super) fn settings(groups: Groups) -> impl Iterator<Item = Setting> {
    let entries = groups.iter().flat_map(|group| group.split(',')).map(str::trim);
    entries.filter(|entry| !entry.is_empty()).map(Setting::parse)
}

/// The entry of a name.
pub(super) fn find(groups: Groups, name: &str) -> Option<Setting> {
    // Looking for the text first spares reading every entry in front of it.
    let begins = |group: &str, at: usize| {
        at == 0 || matches!(group.as_bytes()[at - 1], b',' | b' ' | b'\n' | b'\r' | b'\t')
    };
    let places = groups.iter().flat_map(|group| group.match_indices(name).map(move |(at, _)| (group, at)));
    let entries = places.filter(|(group, at)| begins(group, *at)).map(|(group, at)| {
        let start = group[..at].rfind(',').map_or(0, |comma| comma + 1);
        let end = group[at..].find(',').map_or(group.len(), |comma| at + comma);
        group[start..end].trim()
    });
    entries.map(Setting::parse).find(|setting| setting.is_called(name))
}

/// The entry of a long name as GNU programs take it: in full, or any start of it.
pub(super) fn find_abbreviated(groups: Groups, name: &str) -> Option<Setting> {
    let begins = |own: &str| own.len() > 1 && own.starts_with(name);
    find(groups, name).or_else(|| settings(groups).find(|setting| setting.names().any(begins)))
}

/// An option as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) setting: Setting,
    pub(super) value: Option<Word>,
}

/// How a program reads its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Options may stand behind operands.
    Permuting,
    /// The first operand ends the options.
    Leading,
    /// The whole word behind the dash is one name, as in `-ps`.
    WholeWords,
}

/// The words behind the name of a program, sorted into options and operands.
#[derive(Debug)]
pub(super) struct Arguments<'a> {
    pub(super) given: Vec<Given>,
    pub(super) operands: Vec<&'a Word>,
    /// The first thing that was not understood.
    pub(super) problem: Option<String>,
}

impl Arguments<'_> {
    /// True when one of these options was given; names are canonical.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.given.iter().any(|given| names.contains(&given.setting.canonical()))
    }

    /// The values of an option in their order.
    pub(super) fn values(&self, name: &str) -> impl Iterator<Item = &Word> {
        self.given
            .iter()
            .filter(move |given| given.setting.canonical() == name)
            .filter_map(|g| g.value.as_ref())
    }
}

/// Reads the words behind the program's name. `steady` programs have no option that could do harm, so a pattern whose
/// names may begin with a dash is still only names.
pub(super) fn read(words: &[Word], groups: Groups, style: Style, steady: bool) -> Arguments<'_> {
    let mut reader = Reader {
        words,
        at: 0,
        groups,
        steady,
        out: Arguments { given: Vec::new(), operands: Vec::new(), problem: None },
    };
    reader.run(style);
    reader.out
}

struct Reader<'a> {
    words: &'a [Word],
    at: usize,
    groups: Groups,
    steady: bool,
    out: Arguments<'a>,
}

impl<'a> Reader<'a> {
    fn run(&mut self, style: Style) {
        let mut ended = false;
        while let Some(word) = self.words.get(self.at) {
            self.at += 1;
            let start = word.known_start();
            if may_split(word) {
                self.problem(format!("`{}` is not known before it runs", shown(word)));
            }
            if !ended && word.as_literal() == Some("--") {
                ended = true;
            } else if ended || !start.starts_with('-') || word.as_literal() == Some("-") {
                if !ended && !self.steady && !may_split(word) && may_begin_with_dash(word) {
                    self.problem(format!("`{}` may become an option", shown(word)));
                }
                self.out.operands.push(word);
                ended |= style == Style::Leading;
            } else if let Some(long) = start.strip_prefix("--") {
                self.long(word, long, 2);
            } else if style == Style::WholeWords {
                self.long(word, &start[1..], 1);
            } else {
                self.bundle(word, start);
            }
        }
    }

    fn problem(&mut self, text: String) {
        self.out.problem.get_or_insert(text);
    }

    /// One name of a whole word, behind so many dashes. Two dashes never stand before a short name.
    fn long(&mut self, word: &Word, long: &str, dashes: usize) {
        let (name, attached) = match long.split_once('=') {
            Some((name, _)) => (name, true),
            None => (long, false),
        };
        // A name that continues with something unknown is no name.
        let known = attached || word.as_literal().is_some();
        let Some(setting) = find(self.groups, name).filter(|_| known && name.len() >= dashes) else {
            return self.problem(format!("the option `{}` is not on the list", shown(word)));
        };
        let value = match (setting.takes, attached) {
            (Takes::Nothing, true) => {
                return self.problem(format!("the option `--{name}` has no value"));
            }
            (Takes::Nothing, false) | (Takes::AttachedValue, false) => None,
            (Takes::Value | Takes::CertainValue, false) => match self.next_value(name, setting) {
                Some(value) => Some(value),
                None => return,
            },
            (Takes::Value | Takes::CertainValue | Takes::AttachedValue, true) => {
                Some(behind(word, dashes + name.len() + 1))
            }
        };
        self.out.given.push(Given { setting, value });
    }

    fn bundle(&mut self, word: &Word, start: &str) {
        let letters = &start[1..];
        if word.as_literal().is_some()
            && letters.bytes().all(|b| b.is_ascii_digit())
            && let Some(setting) = find(self.groups, "#")
        {
            return self.out.given.push(Given { setting, value: None });
        }
        for (at, letter) in letters.char_indices() {
            let mut name = [0; 4];
            let Some(setting) = find(self.groups, letter.encode_utf8(&mut name)) else {
                return self.problem(format!("the option `-{letter}` is not on the list"));
            };
            let used = 1 + at + letter.len_utf8();
            let is_last = word.pieces.len() == 1 && used == start.len();
            match setting.takes {
                Takes::Nothing => self.out.given.push(Given { setting, value: None }),
                Takes::Value | Takes::CertainValue if is_last => {
                    let Some(value) = self.next_value(&letter.to_string(), setting) else { return };
                    return self.out.given.push(Given { setting, value: Some(value) });
                }
                Takes::Value | Takes::CertainValue | Takes::AttachedValue => {
                    let value = (!is_last).then(|| behind(word, used));
                    return self.out.given.push(Given { setting, value });
                }
            }
        }
        if word.as_literal().is_none() {
            self.problem(format!("the option `{}` is not known before it runs", shown(word)));
        }
    }

    /// The next word as a value. A pattern may become several words, of which only the first would be the value. A value
    /// that looks like an option is not believed where options can do harm: another version of the program may have
    /// no value there, and then it would be an option.
    fn next_value(&mut self, name: &str, setting: Setting) -> Option<Word> {
        let Some(word) = self.words.get(self.at) else {
            self.problem(format!("the option `{name}` has no value"));
            return None;
        };
        self.at += 1;
        if may_split(word) || has_pattern(word) {
            self.problem(format!("the value `{}` is not known before it runs", shown(word)));
        }
        let letter = word.known_start().strip_prefix('-').and_then(|rest| rest.chars().next());
        let believed = self.steady || setting.takes == Takes::CertainValue;
        if !believed && letter.is_some_and(|letter| !letter.is_ascii_digit()) {
            self.problem(format!("the value `{}` looks like an option", shown(word)));
        }
        Some(word.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: Groups = &["n lines=, q quiet silent, color=?, I=?, o output=>, f=<!!, e==, #"];

    fn words(line: &str) -> Vec<Word> {
        line.split_whitespace().map(Word::literal).collect()
    }

    #[test]
    fn entries_say_names_values_roles_and_caution() {
        let setting = find(TABLE, "f").unwrap();
        assert_eq!(
            (setting.takes, setting.role, setting.caution),
            (Takes::Value, Role::Read, Caution::Opaque)
        );
        assert_eq!(find(TABLE, "silent").unwrap().canonical(), "q");
        assert_eq!(find(TABLE, "output").unwrap().role, Role::Edit);
        assert_eq!(find(TABLE, "outp"), None);
        assert_eq!(find_abbreviated(TABLE, "outp").unwrap().canonical(), "o");
    }

    #[test]
    fn bundles_values_and_ends_are_read_as_getopt_reads_them() {
        let words = words("-qn5 a -n 6 --lines=7 --color b -Iq -5 -- -q -");
        let read = read(&words, TABLE, Style::Permuting, false);
        assert_eq!(read.problem, None);
        let values: Vec<_> = read.values("n").map(|word| word.as_literal().unwrap()).collect();
        assert_eq!(values, ["5", "6", "7"]);
        let operands: Vec<_> = read.operands.iter().map(|word| word.as_literal().unwrap()).collect();
        assert_eq!(operands, ["a", "b", "-q", "-"]);
        assert!(read.has(&["color"]) && read.has(&["#"]));
    }

    #[test]
    fn what_no_entry_names_is_a_problem() {
        assert_eq!(read(&words("-e -q"), TABLE, Style::Permuting, false).problem, None);
        for line in ["-n -q", "-x", "-qx", "--outp=a", "--quiet=a", "-n", "--lines", "--", "-q5", "-é"] {
            let words = words(line);
            let read = read(&words, TABLE, Style::Permuting, false);
            assert_eq!(read.problem.is_none(), line == "--", "{line}");
        }
    }
}
