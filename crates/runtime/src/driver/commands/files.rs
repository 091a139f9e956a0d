//! The text of a command's file on its way to the model: arguments in their places, the output of its command lines, and
//! the files it includes behind it. Command lines and files pass the gate; what is not allowed stops the whole command.

use std::collections::VecDeque;

use std::path::{Path, PathBuf};

use qoder_files::read_regular;
use qoder_types::{ContentBlock, RuleValue};
use serde_json::{Value, json};

use crate::driver::Driver;
use crate::driver::commands::calls::{CallOfCommand, Permit};
use crate::driver::commands::{Brought, Refusal};
use crate::error::DriveError;
use qoder_config::commands::{Arguments, Command, Piece, pieces};

/// Command lines of one command.
const MOST_LINES: usize = 20;
/// Files that one command includes, those that they include counted in.
const MOST_FILES: usize = 50;
/// How deep files may include files.
const DEEPEST: usize = 5;
/// Bytes of one file.
const LARGEST_FILE: u64 = 256 * 1024;
/// Bytes of all files.
const LARGEST_TOTAL: usize = 512 * 1024;

/// What a command came to; the error is why it cannot be made, or nothing when a person interrupted.
pub(in crate::driver) type Made<T> = Result<T, Option<Refusal>>;

/// A file that something includes.
struct Wanted {
    /// As it is written.
    shown: String,
    path: PathBuf,
    /// The files that led here.
    chain: Vec<PathBuf>,
}

/// A command that is being made.
struct Making<'c> {
    input_id: &'c str,
    name: &'c str,
    /// What the person wrote.
    typed: &'c str,
    rules: &'c [RuleValue],
    calls: usize,
}

impl Making<'_> {
    fn call(&mut self, tool: &'static str, input: Value, may_ask: bool) -> CallOfCommand {
        self.calls += 1;
        let id = format!("{}#{}", self.input_id, self.calls);
        let request = self.typed.to_owned();
        CallOfCommand { id, tool, input, request, rules: self.rules.to_vec(), may_ask, is_typed: false }
    }

    fn refusal(&self, refusal: Refusal) -> Option<Refusal> {
        let problem = format!("/{} was not run: {}", self.name, refusal.problem);
        Some(Refusal { problem, denial: refusal.denial })
    }
}

impl Driver<'_> {
    /// What a command's file comes to.
    pub(in crate::driver) async fn expand_file(
        &mut self,
        (input_id, typed): (&str, &str),
        command: &Command,
        arguments: &Arguments,
    ) -> Result<Made<(Vec<ContentBlock>, Brought)>, DriveError> {
        let body = match command.body() {
            Ok(body) => body,
            Err(problem) => return Ok(Err(Some(format!("/{}: {problem}", command.name).into()))),
        };
        // Nothing runs for a turn that cannot begin.
        let model = match self.usable_model(command.model.as_deref()) {
            Ok(model) => model,
            Err(problem) => return Ok(Err(Some(format!("/{}: {problem}", command.name).into()))),
        };
        let parts = pieces(body.trim());
        let mut making = Making { input_id, name: &command.name, typed, rules: &command.allowed, calls: 0 };
        let (mut text, mut used) = (String::new(), false);
        let mut files = VecDeque::new();
        for part in &parts {
            let (filled, took) = match part {
                Piece::Text(words) => arguments.filled(words),
                Piece::File(path) => {
                    let (path, took) = arguments.filled(path);
                    files.extend(self.wanted(&path, Path::new(&self.session.state.cwd), Vec::new()));
                    (format!("@{path}"), took)
                }
                Piece::Shell(line) => {
                    let (line, took) = arguments.into_shell(line);
                    match self.output_of(&mut making, &line).await? {
                        Ok(output) => (output, took),
                        Err(stop) => return Ok(Err(stop)),
                    }
                }
            };
            text.push_str(&filled);
            used |= took;
        }
        let text = if used { text } else { arguments.put_behind(text) };
        if text.trim().is_empty() {
            return Ok(Err(Some(format!("/{} is empty: its file has no text", command.name).into())));
        }
        let mut blocks = vec![ContentBlock::Text { text }];
        match self.include(&mut making, files).await? {
            Ok(included) => blocks.extend(included),
            Err(stop) => return Ok(Err(stop)),
        }
        let turn_rules = command.allowed.clone();
        Ok(Ok((blocks, Brought { turn_rules, model, ..Brought::default() })))
    }

    /// Runs a command line and answers with what it said.
    async fn output_of(&mut self, making: &mut Making<'_>, line: &str) -> Result<Made<String>, DriveError> {
        let refuse = |making: &Making<'_>, problem: String| Ok(Err(making.refusal(problem.into())));
        if making.calls >= MOST_LINES {
            return refuse(making, format!("it has more than {MOST_LINES} command lines"));
        }
        // A process that died meanwhile may have run them; what they did is unknown.
        if making.calls == 0 && self.session.state.begun_input.as_deref() == Some(making.input_id) {
            let problem = "an earlier process ended while its command lines ran, and they are not run twice. Send it again \
                           if they may be.";
            return refuse(making, problem.to_owned());
        }
        let call = making.call("Bash", json!({ "command": line }), true);
        match self.permit(&call).await? {
            Permit::Granted(tool, input) => match self.run_for_command(&call.id, tool, input).await? {
                Some(output) => Ok(Ok(output.trim_end().to_owned())),
                None => Ok(Err(None)),
            },
            Permit::Refused(refusal) => Ok(Err(making.refusal(refusal))),
            Permit::Interrupted => Ok(Err(None)),
        }
    }

    /// The file that is meant, if there is one; other words that begin with `@` are words.
    fn wanted(&self, shown: &str, folder: &Path, chain: Vec<PathBuf>) -> Option<Wanted> {
        let path = match shown.strip_prefix("~/") {
            Some(rest) => self.engine.gate.workspace.home.join(rest),
            None => folder.join(shown),
        };
        let path = path.canonicalize().ok().filter(|path| path.is_file())?;
        Some(Wanted { shown: shown.to_owned(), path, chain })
    }

    /// Reads the files that a command includes, and those that Markdown among them includes.
    async fn include(
        &mut self,
        making: &mut Making<'_>,
        mut wanted: VecDeque<Wanted>,
    ) -> Result<Made<Vec<ContentBlock>>, DriveError> {
        let mut blocks = Vec::new();
        let mut seen: Vec<PathBuf> = Vec::new();
        let mut total = 0;
        while let Some(file) = wanted.pop_front() {
            let block = |text: String| ContentBlock::Text { text };
            if file.chain.contains(&file.path) {
                let name = &file.shown;
                blocks.push(block(format!("[@{name} is not included again: the files include each other.]")));
                continue;
            }
            if seen.contains(&file.path) {
                continue;
            }
            if seen.len() >= MOST_FILES || total >= LARGEST_TOTAL || file.chain.len() >= DEEPEST {
                blocks.push(block(format!("[@{} is left out: there is too much to include.]", file.shown)));
                continue;
            }
            seen.push(file.path.clone());
            let call = making.call("Read", json!({ "file_path": file.path }), false);
            let path = match self.permit(&call).await? {
                // A hook may have put another file in its place; that is what was judged.
                Permit::Granted(_, input) => match input.get("file_path").and_then(Value::as_str) {
                    Some(path) => Path::new(&self.session.state.cwd).join(path),
                    None => file.path.clone(),
                },
                Permit::Refused(refusal) => {
                    let problem = format!("@{} cannot be included: {}", file.shown, refusal.problem);
                    return Ok(Err(making.refusal(Refusal { problem, denial: refusal.denial })));
                }
                Permit::Interrupted => return Ok(Err(None)),
            };
            let text = match read(&path) {
                Ok(text) => text,
                Err(problem) => {
                    blocks.push(block(format!("[@{} is left out: {problem}.]", file.shown)));
                    continue;
                }
            };
            total += text.len();
            if file.path.extension().is_some_and(|end| end == "md") {
                let folder = file.path.parent().unwrap_or(Path::new("/"));
                let chain: Vec<PathBuf> = file.chain.iter().chain([&file.path]).cloned().collect();
                for part in pieces(&text) {
                    if let Piece::File(path) = part {
                        wanted.extend(self.wanted(&path, folder, chain.clone()));
                    }
                }
            }
            blocks.push(block(format!("Contents of {}:\n\n{text}", file.shown)));
        }
        Ok(Ok(blocks))
    }
}

/// The text of a file, cut when it is too long.
fn read(path: &Path) -> Result<String, String> {
    let (bytes, cut) =
        read_regular(path, None, LARGEST_FILE).map_err(|error| format!("it cannot be read: {error}"))?;
    if bytes.contains(&0) {
        return Err("it is not text".to_owned());
    }
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if cut {
        text.push_str("\n[… the rest of this file was left out …]");
    }
    Ok(text)
}
