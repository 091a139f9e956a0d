//! Entries for programs: the names, the options, how the operands are used, and how words become effects. Most
//! programs need only a line in a table; those with a language or with operands in different roles bring a function.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::options::{Arguments, Caution, Groups, Role, Style, read};
use super::words::{has_pattern, may_begin_with_dash};
use super::{Effects, archives, builtins, changers, find, here, network, readers, search};
use crate::shell::Word;
use crate::shell::knowledge::languages::{awk, jq, sed};

/// How far a program goes below a folder.
#[derive(Debug, Clone, Copy)]
pub(super) enum Depth {
    /// Never.
    Flat,
    /// Always.
    Deep,
    /// With one of these options.
    With(&'static [&'static str]),
}

impl Depth {
    pub(super) fn of(self, arguments: &Arguments<'_>) -> bool {
        match self {
            Self::Flat => false,
            Self::Deep => true,
            Self::With(names) => arguments.has(names),
        }
    }
}

/// What the operands of a program are.
#[derive(Clone, Copy)]
pub(super) enum Operands {
    /// There are none.
    Nothing,
    /// Texts that name no file.
    Text,
    /// Files that are read; without any, the standard input.
    Files(Depth),
    /// Files that are read; without any, the folder in which the command runs.
    FilesOrHere(Depth),
    /// A function says.
    Special(fn(&Arguments<'_>, &mut Effects)),
    /// A function reads the words itself.
    Words(fn(&[Word], &mut Effects)),
}

/// An entry.
pub(super) struct Program {
    pub(super) names: &'static [&'static str],
    pub(super) groups: Groups,
    pub(super) style: Style,
    /// No option can write, run a program or reach another folder, so a file name that begins with a dash cannot
    /// either: a name in the folder holds no slash. Only then is a pattern such as `*.md` proven without `--`.
    steady: bool,
    /// May be proven to only read.
    reads_only: bool,
    network: bool,
    operands: Operands,
}

impl Program {
    /// A program that only reads unless an option says otherwise.
    pub(super) const fn reader(names: &'static [&'static str], groups: Groups, operands: Operands) -> Self {
        Self {
            names,
            groups,
            style: Style::Permuting,
            steady: false,
            reads_only: true,
            network: false,
            operands,
        }
    }

    /// A program that is never proven to only read.
    pub(super) const fn changer(names: &'static [&'static str], groups: Groups, operands: Operands) -> Self {
        let mut program = Self::reader(names, groups, operands);
        program.reads_only = false;
        program
    }

    /// A program that reaches the network.
    pub(super) const fn network(names: &'static [&'static str], groups: Groups, operands: Operands) -> Self {
        let mut program = Self::changer(names, groups, operands);
        program.network = true;
        program
    }

    /// The same without an option that could do harm.
    pub(super) const fn steady(mut self) -> Self {
        self.steady = true;
        self
    }

    /// The same with another way to read words.
    pub(super) const fn style(mut self, style: Style) -> Self {
        self.style = style;
        self
    }

    /// What the program does with the words behind its name.
    pub(super) fn effects(&self, words: &[Word]) -> Effects {
        let mut effects = Effects::of_known_program();
        effects.network = self.network;
        if self.network {
            effects.not_read_only("it reaches the network");
        } else if !self.reads_only {
            effects.not_read_only("it is not a program that only reads");
        }
        let own = match self.operands {
            Operands::Words(own) => {
                own(words, &mut effects);
                return effects;
            }
            Operands::Special(own) => Some(own),
            Operands::Nothing | Operands::Text | Operands::Files(_) | Operands::FilesOrHere(_) => None,
        };
        let arguments = read(words, self.groups, self.style, self.steady);
        apply_options(&arguments, &mut effects);
        match own {
            Some(own) => own(&arguments, &mut effects),
            None => self.plain_operands(&arguments, &mut effects),
        }
        effects
    }

    fn plain_operands(&self, arguments: &Arguments<'_>, effects: &mut Effects) {
        let (depth, or_here) = match self.operands {
            Operands::Nothing => {
                if !arguments.operands.is_empty() {
                    effects.incomplete("it takes no operands");
                }
                return;
            }
            Operands::Text => return texts(arguments, effects),
            Operands::Files(depth) => (depth, false),
            Operands::FilesOrHere(depth) => (depth, true),
            Operands::Special(_) | Operands::Words(_) => return,
        };
        read_files(&arguments.operands, depth.of(arguments), or_here, effects);
    }
}

/// Takes over what the options themselves say: problems, files in values, cautions.
pub(super) fn apply_options(arguments: &Arguments<'_>, effects: &mut Effects) {
    if let Some(problem) = &arguments.problem {
        effects.incomplete(problem.clone());
    }
    for given in &arguments.given {
        let name = given.setting.canonical();
        match (given.setting.role, &given.value) {
            (Role::Read, Some(value)) => effects.read_file(value, false),
            (Role::Edit, Some(value)) => effects.edit(value, false),
            (Role::Read | Role::Edit, None) | (Role::Text, _) => {}
        }
        match given.setting.caution {
            Caution::Harmless => {}
            Caution::Changes => effects.not_read_only(format!("the option `{name}` does more than read")),
            Caution::Opaque => {
                effects.incomplete(format!("the option `{name}` may run a program or reach more files"));
            }
        }
    }
}

/// Files that are read.
pub(super) fn read_files(operands: &[&Word], recursive: bool, or_here: bool, effects: &mut Effects) {
    for word in operands {
        effects.read_file(word, recursive);
    }
    if operands.is_empty() && or_here {
        effects.read(&here(), recursive);
    }
}

/// Texts; a pattern among them still reads the names in a folder.
fn texts(arguments: &Arguments<'_>, effects: &mut Effects) {
    for word in arguments.operands.iter().filter(|word| has_pattern(word)) {
        effects.read(word, false);
    }
}

/// Operands of which the first is a text in a language of its own and the rest are files. A pattern in the place of
/// the text becomes names, of which all but the first are read.
pub(super) fn text_then_files(operands: &[&Word], recursive: bool, or_here: bool, effects: &mut Effects) {
    let Some((first, files)) = operands.split_first() else {
        return effects.incomplete("the pattern is missing");
    };
    if has_pattern(first) {
        effects.read(first, false);
        if may_begin_with_dash(first) {
            effects.incomplete("an unquoted pattern stands where a text is expected");
        }
    }
    read_files(files, recursive, or_here, effects);
}

/// All tables. Git and interpreters have their own.
const TABLES: [&[Program]; 10] = [
    readers::TABLE,
    search::TABLE,
    find::TABLE,
    builtins::TABLE,
    sed::TABLE,
    awk::TABLE,
    jq::TABLE,
    changers::TABLE,
    archives::TABLE,
    network::TABLE,
];

/// The entry of a program.
pub(super) fn find(name: &str) -> Option<&'static Program> {
    static BY_NAME: OnceLock<HashMap<&'static str, &'static Program>> = OnceLock::new();
    let by_name = BY_NAME.get_or_init(|| {
        let programs = TABLES.iter().copied().flatten();
        programs.flat_map(|program| program.names.iter().map(move |name| (*name, program))).collect()
    });
    by_name.get(name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::knowledge::options::settings;

    #[test]
    fn every_program_has_one_entry_and_every_option_one_meaning() {
        let mut seen = std::collections::HashSet::new();
        for program in TABLES.iter().copied().flatten() {
            for name in program.names {
                assert!(seen.insert(*name), "{name} has two entries");
            }
            let mut options = std::collections::HashSet::new();
            for setting in settings(program.groups) {
                for name in setting.names() {
                    let plain = |c: char| c.is_ascii_alphanumeric() || "-.#".contains(c);
                    assert!(!name.is_empty() && name.chars().all(plain), "{:?}: {name:?}", program.names);
                    assert!(options.insert(name), "{:?}: {name} twice", program.names);
                }
            }
        }
        assert!(seen.len() > 120, "{}", seen.len());
    }
}
