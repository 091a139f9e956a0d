//! Wrappers with a syntax of their own: shells, `eval` and `trap`, exec actions of `find` and `fd`, git's ways to run a
//! program, and programs that give their words to a shell as text.

use super::super::Word;
use super::git_subcommands::is_own_subcommand;
use super::options::guesses;
use super::{Inner, InnerCommands, Script, table};

/// What a program without a row in the table runs.
pub(super) fn inner_of(base: &str, arguments: &[Word]) -> InnerCommands {
    match base {
        "eval" => joined(arguments),
        "trap" => trap(arguments),
        "find" => exec_actions(arguments, &["-exec", "-execdir", "-ok", "-okdir"]),
        "fd" | "fdfind" => exec_actions(arguments, &["-x", "--exec", "-X", "--exec-batch"]),
        "git" => git(arguments),
        _ if table::is_shell(base) => shell(arguments),
        _ if table::is_runner(base) => runner(base, arguments),
        _ => match table::running_subcommands(base) {
            Some(subcommands) => subcommand(arguments, subcommands),
            None => InnerCommands::default(),
        },
    }
}

/// `eval`: all words joined by blanks are a script.
fn joined(arguments: &[Word]) -> InnerCommands {
    let arguments = match arguments {
        [first, rest @ ..] if first.as_literal() == Some("--") => rest,
        _ => arguments,
    };
    let scripts =
        joined_text(arguments).map_or_else(|| partly_known(arguments), |text| vec![Script::Known(text)]);
    InnerCommands { scripts, ..InnerCommands::default() }
}

/// A script of which only parts are known: not proven, but what can be read of it is collected for rules that stop.
fn partly_known(words: &[Word]) -> Vec<Script> {
    let shown = words.iter().map(Word::to_display).collect::<Vec<_>>().join(" ");
    vec![Script::Unknown, Script::Guessed(shown)]
}

/// The words joined by blanks, when all are known.
fn joined_text(words: &[Word]) -> Option<String> {
    Some(words.iter().map(Word::as_literal).collect::<Option<Vec<_>>>()?.join(" "))
}

/// `trap`: the first operand is a script.
fn trap(arguments: &[Word]) -> InnerCommands {
    let action = arguments.iter().find(|word| word.as_literal() != Some("--"));
    let script = match action.map(Word::as_literal) {
        Some(Some(text)) if text.starts_with('-') => return InnerCommands::default(),
        Some(Some(text)) => Script::Known(text.to_owned()),
        Some(None) | None => Script::Unknown,
    };
    InnerCommands { scripts: vec![script], ..InnerCommands::default() }
}

/// The options of a shell: whether its first operand is a script, and the operands.
fn shell_operands(arguments: &[Word]) -> (bool, &[Word]) {
    let mut rest = arguments;
    let mut script = false;
    while let Some(text) = rest.first().and_then(Word::as_literal) {
        if matches!(text, "--" | "-") {
            rest = rest.get(1..).unwrap_or_default();
            break;
        }
        let Some(letters) = text.strip_prefix(['-', '+']) else { break };
        let mut count = 1;
        if let Some(long) = letters.strip_prefix('-') {
            count += usize::from(matches!(long, "rcfile" | "init-file"));
            script |= matches!(long, "command" | "init-command") || long.starts_with("command=");
        } else {
            script |= letters.contains('c');
            count += usize::from(letters.contains(['o', 'O']));
        }
        rest = rest.get(count..).unwrap_or_default();
    }
    (script, rest)
}

/// A shell with a script as text.
fn shell(arguments: &[Word]) -> InnerCommands {
    let (script, operands) = shell_operands(arguments);
    let mut found = InnerCommands::default();
    if arguments.iter().any(|word| word.to_display().starts_with("<(")) {
        // What the substitution writes is a script, a start-up file or an argument.
        found.scripts.push(Script::Unknown);
    }
    if script {
        let Some(first) = operands.first() else { return found };
        match first.as_literal() {
            Some(text) => found.scripts.push(Script::Known(text.to_owned())),
            None => found.scripts.extend(partly_known(std::slice::from_ref(first))),
        }
        // Options of other shells may stand differently; what looks like a script is read as one too.
        let others = operands.iter().skip(1).filter_map(Word::as_literal).filter(|text| text.contains(' '));
        found.scripts.extend(others.take(4).map(|text| Script::Guessed(text.to_owned())));
    } else if operands.first().is_some_and(|word| word.is_dynamic() && word.known_start().is_empty()) {
        // The word may become an option that makes the next one a script.
        found.scripts.push(Script::Unknown);
        found.scripts.extend(
            operands.iter().filter_map(Word::as_literal).take(4).map(|it| Script::Guessed(it.to_owned())),
        );
    }
    found
}

/// True when a shell with these arguments reads its script from its input.
pub(super) fn shell_reads_input(arguments: &[Word]) -> bool {
    let (script, operands) = shell_operands(arguments);
    let asked =
        arguments.iter().filter_map(Word::as_literal).any(|text| text == "-s" || text == "/dev/stdin");
    !script && (operands.is_empty() || asked)
}

/// Commands behind exec actions, each up to its end; what the action fills in is not known.
fn exec_actions(arguments: &[Word], actions: &[&str]) -> InnerCommands {
    let mut found = InnerCommands::default();
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        at += 1;
        let Some(text) = word.as_literal() else {
            // A word that is not known may become an action.
            found.dynamic |= word.known_start().is_empty()
                && !matches!(word.pieces.as_slice(), [super::super::Piece::Home, ..]);
            continue;
        };
        if !actions.contains(&text) {
            continue;
        }
        let rest = arguments.get(at..).unwrap_or_default();
        let length =
            rest.iter().position(|word| matches!(word.as_literal(), Some(";" | "+"))).unwrap_or(rest.len());
        let words: Vec<Word> = rest.iter().take(length).map(filled_in).collect();
        if !words.is_empty() {
            found.commands.push(Inner { assignments: Vec::new(), words, transparent: false, guessed: false });
        }
        at += length;
    }
    if found.commands.is_empty() {
        // Without an action the operands are only paths and patterns.
        found.dynamic = false;
    }
    found
}

/// The word with its placeholders as unknown.
fn filled_in(word: &Word) -> Word {
    match word.as_literal() {
        Some(text) if text.contains('{') && text.contains('}') => Word::unknown(text),
        Some(_) | None => word.clone(),
    }
}

/// A program that runs a command somewhere among its words.
fn runner(base: &str, arguments: &[Word]) -> InnerCommands {
    let mut found = guesses(arguments, false);
    if table::is_text_runner(base) {
        for (at, word) in arguments.iter().enumerate().take(16) {
            let text = word.as_literal().unwrap_or_default();
            if matches!(text, "-c" | "--command" | "--session-command") {
                let script = arguments.get(at + 1).map(|word| word.as_literal().map(str::to_owned));
                found.scripts.extend(script.map(|text| text.map_or(Script::Unknown, Script::Known)));
            }
            if let Some(text) = text.strip_prefix("--command=") {
                found.scripts.push(Script::Known(text.to_owned()));
            }
        }
        if let Some(text) = joined_text(arguments) {
            found.scripts.push(Script::Guessed(text));
        }
    }
    found
}

/// A program of which some subcommands run a command.
fn subcommand(arguments: &[Word], subcommands: &[&str]) -> InnerCommands {
    let at =
        arguments.iter().position(|word| word.as_literal().is_some_and(|text| subcommands.contains(&text)));
    match at {
        Some(at) => guesses(arguments.get(at + 1..).unwrap_or_default(), false),
        None => InnerCommands::default(),
    }
}

/// Git's own ways to run a program: configuration given on the line, aliases, `rebase --exec`, `bisect run`, `submodule
/// foreach`.
fn git(arguments: &[Word]) -> InnerCommands {
    let mut found = InnerCommands { dynamic: may_be_alias(arguments), ..InnerCommands::default() };
    for (at, word) in arguments.iter().enumerate() {
        let Some(text) = word.as_literal() else { continue };
        let next = arguments.get(at + 1);
        let rest = arguments.get(at + 1..).unwrap_or_default();
        match text {
            "-c" => {
                let value = next.and_then(Word::as_literal).and_then(|text| text.split_once('='));
                found.scripts.extend(value.map(|(_, value)| guessed_value(value)));
            }
            "--exec" | "-x" | "--upload-pack" | "--receive-pack" => {
                found.scripts.extend(next.and_then(Word::as_literal).map(guessed_value));
            }
            "run" if arguments.iter().any(|word| word.as_literal() == Some("bisect")) => {
                found.commands.extend(guesses(rest, false).commands);
            }
            "foreach" if arguments.iter().any(|word| word.as_literal() == Some("submodule")) => {
                found.scripts.extend(joined_text(rest).map(Script::Guessed));
                found.commands.extend(guesses(rest, false).commands);
            }
            _ => {
                let value = text.strip_prefix("--exec=").or_else(|| text.strip_prefix("--upload-pack="));
                found.scripts.extend(value.map(guessed_value));
            }
        }
    }
    found
}

/// True when the subcommand may be another one, or a program, by an alias: it is not one of git's own, or the line itself
/// gives git configuration that can hold one.
fn may_be_alias(arguments: &[Word]) -> bool {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(text) = word.as_literal() else { return true };
        let setting = match text {
            "-c" | "--config-env" => words.next().map(Word::known_start),
            _ => text.strip_prefix("--config-env="),
        };
        if let Some(setting) = setting {
            let name = setting.to_ascii_lowercase();
            if name.is_empty() || name.starts_with("alias.") || name.starts_with("include") {
                return true;
            }
            continue;
        }
        match text {
            "-C" | "--git-dir" | "--work-tree" | "--namespace" | "--super-prefix" | "--attr-source" => {
                words.next();
            }
            _ if text.starts_with('-') => {}
            _ => return !is_own_subcommand(text),
        }
    }
    false
}

/// A configuration value that git may give to a shell.
fn guessed_value(value: &str) -> Script {
    Script::Guessed(value.strip_prefix('!').unwrap_or(value).to_owned())
}
