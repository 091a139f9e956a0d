//! The Bash tool: one shell command, in the foreground with limits or in the background with a register entry.
//!
//! A command ends by itself, by its time limit, by its silence or by the caller; whatever it leaves in its process group
//! ends with it. While it runs in the foreground it can be moved to the background. The working directory is kept for the
//! next command as long as it stays in the session's directories.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use qoder_core::ports::{Access, Tool, ToolContext, ToolOutcome};
use qoder_process::sandbox::Sandbox;
use qoder_process::shell::{ErrorStream, Shell, directory_is_missing};
use qoder_process::tree::exit_code;
use qoder_types::{CallOutcome, ReplayClass, TaskStarted, ToolAnnotations, ToolDefinition};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::{sandbox_choice, sandbox_result};
use crate::call::refusal::interrupted;
use crate::call::schema::{Flag, Whole, definition, is_set, parse};
use crate::files::paths;
use crate::output::capture::{Activity, Capture, Viewer, pump};
use crate::shell::exit_status::one_is_an_answer;
use crate::shell::git_safety;
use crate::tasks::lifecycle::{DRAIN_GRACE, announce};
use crate::tasks::register::Foreground;
use crate::{SessionShared, ToolSettings};

/// The name the model calls.
const NAME: &str = "Bash";
/// Longer commands are not analysed and therefore not run.
const LONGEST_COMMAND: usize = 64 * 1024;
/// The most characters of output the model gets.
const OUTPUT_CHARACTERS: usize = 30_000;
/// What the error stream gets at least when both streams are long.
const ERROR_CHARACTERS: usize = 10_000;

/// Runs a command in bash and returns its output.
///
/// Use it for git, builds, tests, package managers and other programs. For files use the tools made for them: Read
/// instead of cat, head and tail; Edit instead of sed; Write instead of echo with a redirection; Glob instead of find
/// and ls; Grep instead of grep and rg. They are faster, and their results are easier to review.
///
/// - Each call starts a new shell. The working directory is kept between calls while it stays inside the project;
///   variables, functions and aliases are not. Prefer absolute paths to `cd`.
/// - Quote paths that contain spaces: cd "/path with spaces".
/// - Join dependent commands with `&&`. Independent commands belong in separate calls, which may be sent together.
/// - There is no terminal and no input: use flags such as `-y`, `--no-pager` and `-m` in place of interactive modes.
/// - A command is stopped after `timeout` milliseconds (default 120000, at most 600000) with everything it started.
/// - Servers, watchers and anything that outlives the call need `run_in_background`; you are told when such a command
///   ends. Do not end a command with `&`: processes left behind are stopped when the call ends.
/// - Output beyond 30000 characters is cut in the middle; the full output is kept in a file named in the result.
#[derive(Debug, Deserialize, JsonSchema)]
struct BashInput {
    /// The command to run.
    command: String,
    /// Time limit in milliseconds; at most 600000.
    timeout: Option<Whole>,
    /// What the command does, in five to ten words, for the person who watches.
    description: Option<String>,
    /// Run the command in the background: the call returns at once with a task id and the file that takes the output.
    /// TaskOutput shows how it goes, TaskStop ends it.
    run_in_background: Option<Flag>,
    /// Ask to run this one command outside the sandbox. The person decides.
    #[serde(rename = "dangerouslyDisableSandbox")]
    #[expect(dead_code, reason = "part of the published input; the sandbox reads it from the raw input")]
    dangerously_disable_sandbox: Option<Flag>,
}

/// See [`BashInput`].
#[derive(Debug, Clone)]
pub(crate) struct BashTool {
    default_timeout: u64,
    max_timeout: u64,
    inactivity: Option<Duration>,
    sandbox: Option<Arc<Sandbox>>,
}

impl BashTool {
    pub(crate) fn new(settings: &ToolSettings) -> Self {
        let seconds = settings.bash_inactivity_seconds;
        Self {
            default_timeout: settings.bash_default_timeout_ms,
            max_timeout: settings.bash_max_timeout_ms,
            inactivity: (seconds > 0).then(|| Duration::from_secs(seconds)),
            sandbox: settings.sandbox.clone(),
        }
    }
}

impl Tool for BashTool {
    fn definition(&self) -> &ToolDefinition {
        static CELL: OnceLock<ToolDefinition> = OnceLock::new();
        definition::<BashInput>(&CELL, NAME)
    }

    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations { read_only_hint: false, destructive_hint: true, open_world_hint: true }
    }

    fn replay(&self) -> ReplayClass {
        ReplayClass::Effectful
    }

    fn is_read_only(&self, _: &Value) -> bool {
        false
    }

    fn accesses(&self, input: &Value) -> Vec<Access> {
        match input.get("command").and_then(Value::as_str) {
            Some(command) => vec![Access::Command(command.to_owned())],
            None => vec![Access::Other],
        }
    }

    fn run(&self, input: Value, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let tool = self.clone();
        Box::pin(async move {
            let choice = sandbox_choice::choose(tool.sandbox.as_deref(), &input);
            let input = match parse::<BashInput>(NAME, input) {
                Ok(input) => input,
                Err(refusal) => return *refusal,
            };
            if let Some(complaint) = complaint(&input.command) {
                return ToolOutcome::failed(complaint);
            }
            if context.cancelled.peek().is_some() {
                return interrupted();
            }
            let confinement = match sandbox_result::confine(tool.sandbox.as_ref(), choice, &context).await {
                Ok(confinement) => confinement,
                Err(error) => return sandbox_result::refused(&error),
            };
            let shared = Arc::clone(&context.shared).downcast::<SessionShared>().ok();
            let background = is_set(input.run_in_background);
            // Before the command starts, so that no wish to move it comes too early.
            let foreground = shared.as_ref().filter(|_| !background);
            let foreground = foreground.map(|shared| shared.enter_foreground(&context.tool_use_id));
            let task = match &shared {
                Some(shared) if background => {
                    match announce(shared, &input.command, input.description.as_deref(), &context).await {
                        Ok(task) => Some(task),
                        Err(refusal) => return *refusal,
                    }
                }
                None if background => {
                    return ToolOutcome::failed(
                        "This session has no background commands. Run it in the foreground.",
                    );
                }
                Some(_) | None => None,
            };
            let errors = if background { ErrorStream::WithOutput } else { ErrorStream::Apart };
            let environment = &context.environment;
            let git = match git_safety::safe_environment(&input.command, &context).await {
                Ok(git) => git,
                Err(problem) => {
                    let text = format!("The command was not run: {problem}.");
                    if let Some(task) = task {
                        task.fail(&text);
                    }
                    return ToolOutcome::failed(text);
                }
            };
            let mut added = git;
            if let Some(shared) = shared.as_ref().filter(|_| confinement.is_none()) {
                added.extend(shared.multiplexer_variables(environment));
            }
            let shell =
                match Shell::start(&input.command, &context.cwd, environment, &added, errors, confinement) {
                    Ok(shell) => shell,
                    Err(error) => {
                        if let Some(task) = task {
                            task.fail(&error.to_string());
                        }
                        return not_started(&error, &context);
                    }
                };
            if let Some(task) = task {
                let outcome = task_outcome(task.start(), None);
                task.run(shell).await;
                return outcome;
            }
            let outcome = tool.run_in_foreground(&input, shell, foreground.as_ref(), &context).await;
            sandbox_result::annotate(tool.sandbox.as_deref(), choice, &input.command, outcome)
        })
    }
}

/// Why the command cannot be run at all.
fn complaint(command: &str) -> Option<String> {
    if command.len() > LONGEST_COMMAND {
        return Some(format!(
            "The command has {} bytes; at most {LONGEST_COMMAND} are allowed. Put long content into a file with Write.",
            command.len()
        ));
    }
    if command.contains('\0') {
        return Some("The command contains a NUL byte. Remove it.".to_owned());
    }
    command.trim().is_empty().then(|| "The command is empty.".to_owned())
}

fn not_started(error: &std::io::Error, context: &ToolContext) -> ToolOutcome {
    if let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref()) {
        return sandbox_result::refused(error);
    }
    if directory_is_missing(&context.cwd, error) {
        let home = context.roots.first().filter(|root| root.is_dir());
        let mut outcome = ToolOutcome::failed(match home {
            Some(root) => format!(
                "The working directory {} no longer exists. It is now {}; run the command again.",
                context.cwd.display(),
                root.display()
            ),
            None => format!("The working directory {} no longer exists.", context.cwd.display()),
        });
        outcome.new_cwd = home.cloned();
        return outcome;
    }
    ToolOutcome::failed(format!("bash could not be started: {error}."))
}

/// Why a command is over.
enum Ending {
    Exited(std::io::Result<ExitStatus>),
    TimedOut,
    Silent,
    Cancelled,
}

impl BashTool {
    async fn run_in_foreground(
        &self,
        input: &BashInput,
        mut shell: Shell,
        foreground: Option<&Foreground>,
        context: &ToolContext,
    ) -> ToolOutcome {
        // Some models write 0 for "as usual".
        let wanted = input.timeout.map(|whole| whole.0).filter(|wanted| *wanted > 0);
        let limit = wanted.unwrap_or(self.default_timeout).min(self.max_timeout);
        let deadline = Instant::now() + Duration::from_millis(limit);
        let activity = Activity::start();
        let stdout = Arc::new(Mutex::new(Capture::new(&context.outputs, "stdout")));
        let stderr = Arc::new(Mutex::new(Capture::new(&context.outputs, "stderr")));
        let viewer = Viewer::new(context.progress.clone());
        let mut pumps = JoinSet::new();
        if let Some(stream) = shell.tree.child.stdout.take() {
            pumps.spawn(pump(stream, stdout.clone(), viewer.clone(), activity.clone()));
        }
        if let Some(stream) = shell.tree.child.stderr.take() {
            pumps.spawn(pump(stream, stderr.clone(), viewer, activity.clone()));
        }
        let ending = loop {
            let ending = self.await_end(&mut shell, deadline, &activity, foreground, context).await;
            if let Some(ending) = ending {
                break ending;
            }
            let Some(foreground) = foreground else { continue };
            let description = input.description.as_deref();
            // A command that cannot become a task stays where it is.
            if let Ok(task) = announce(&foreground.shared, &input.command, description, context).await {
                let mut stdout = stdout.lock().unwrap_or_else(PoisonError::into_inner);
                let mut stderr = stderr.lock().unwrap_or_else(PoisonError::into_inner);
                stdout.move_to(task.file());
                stderr.move_to(task.file());
                let outcome = task_outcome(task.start(), Some(&Streams::bounded(&mut stdout, &mut stderr)));
                task.take_over(shell, pumps);
                return outcome;
            }
        };
        let status = match &ending {
            Ending::Exited(Ok(status)) => Ok(*status),
            Ending::Exited(Err(error)) => Err(error.to_string()),
            Ending::TimedOut | Ending::Silent | Ending::Cancelled => {
                shell.tree.terminate().await.map_err(|error| error.to_string())
            }
        };
        let drained = async { while pumps.join_next().await.is_some() {} };
        drop(timeout(DRAIN_GRACE, drained).await);
        let left_behind = shell.tree.end_leftovers().await && matches!(ending, Ending::Exited(_));
        pumps.shutdown().await;
        let directory = shell.final_directory();
        let mut stdout = stdout.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stderr = stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let streams = Streams::bounded(&mut stdout, &mut stderr);
        match status {
            Ok(status) => Report { command: &input.command, ending, limit, left_behind, directory, context }
                .outcome(self, exit_code(status), &streams),
            Err(error) => ToolOutcome::failed(format!("The command could not be waited for: {error}.")),
        }
    }

    /// Waits until the command is over; `None` when it shall continue as a background task.
    async fn await_end(
        &self,
        shell: &mut Shell,
        deadline: Instant,
        activity: &Activity,
        foreground: Option<&Foreground>,
        context: &ToolContext,
    ) -> Option<Ending> {
        let silence = async {
            let Some(inactivity) = self.inactivity else { return std::future::pending().await };
            loop {
                let due = activity.last() + inactivity;
                if due <= Instant::now() {
                    return;
                }
                sleep_until(due).await;
            }
        };
        let moving = async {
            match foreground {
                Some(foreground) => foreground.moving().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            status = shell.tree.wait() => Some(Ending::Exited(status)),
            () = context.cancelled.clone() => Some(Ending::Cancelled),
            () = sleep_until(deadline) => Some(Ending::TimedOut),
            () = silence => Some(Ending::Silent),
            () = moving => None,
        }
    }
}

/// Both streams as the model gets them.
struct Streams {
    stdout: String,
    stderr: String,
    file: Option<PathBuf>,
    silent: bool,
}

impl Streams {
    fn bounded(stdout: &mut Capture, stderr: &mut Capture) -> Self {
        let silent = stderr.is_empty();
        let for_errors =
            stderr.length().min(OUTPUT_CHARACTERS.saturating_sub(stdout.length()).max(ERROR_CHARACTERS));
        let (stderr, error_file) = stderr.text(for_errors);
        let (stdout, file) = stdout.text(OUTPUT_CHARACTERS - for_errors);
        Self { stdout, stderr, file: file.or(error_file), silent }
    }
}

/// Everything that is known about a finished command besides its output.
struct Report<'a> {
    command: &'a str,
    ending: Ending,
    limit: u64,
    left_behind: bool,
    directory: Option<PathBuf>,
    context: &'a ToolContext,
}

impl Report<'_> {
    fn outcome(self, tool: &BashTool, code: i32, streams: &Streams) -> ToolOutcome {
        let mut notes = Vec::new();
        let outcome = match self.ending {
            Ending::Exited(_) if code == 0 => CallOutcome::Completed,
            Ending::Exited(_) => {
                notes.push(format!("Exit code {code}"));
                let answer = code == 1 && one_is_an_answer(self.command, streams.silent);
                if answer { CallOutcome::Completed } else { CallOutcome::Failed }
            }
            Ending::TimedOut => {
                notes.push(format!(
                    "The command was stopped after its time limit of {} ms. Give a larger `timeout` (at most {}) or use \
                     run_in_background.",
                    self.limit, tool.max_timeout
                ));
                CallOutcome::Failed
            }
            Ending::Silent => {
                let seconds = tool.inactivity.unwrap_or_default().as_secs();
                notes.push(format!(
                    "The command was stopped because it printed nothing for {seconds} s. Use run_in_background for \
                     commands that are quiet for long."
                ));
                CallOutcome::Failed
            }
            Ending::Cancelled => {
                notes.push("The command was interrupted.".to_owned());
                CallOutcome::Interrupted
            }
        };
        if self.left_behind {
            notes.push(
                "Processes that the command left behind were stopped. Use run_in_background to keep one running."
                    .to_owned(),
            );
        }
        let new_cwd = directory_change(self.directory, self.context, &mut notes);
        let interrupted = !matches!(self.ending, Ending::Exited(_));
        let mut structured = json!({
            "stdout": streams.stdout, "stderr": streams.stderr, "exitCode": code, "interrupted": interrupted,
        });
        if matches!(self.ending, Ending::TimedOut) {
            structured["timedOutAfterMs"] = json!(self.limit);
        }
        if let Some(path) = &streams.file {
            structured["persistedOutputPath"] = json!(path);
        }
        let text = assemble(streams, &notes);
        ToolOutcome { outcome, new_cwd, ..ToolOutcome::completed(text, structured) }
    }
}

/// The text for the model: output, errors, notes; a word when there is nothing at all.
fn assemble(streams: &Streams, notes: &[String]) -> String {
    let mut text = String::with_capacity(streams.stdout.len() + streams.stderr.len() + 64);
    let parts = [streams.stdout.as_str(), streams.stderr.as_str()];
    for part in parts.into_iter().chain(notes.iter().map(String::as_str)) {
        if part.is_empty() {
            continue;
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(part);
    }
    if text.is_empty() {
        text.push_str("(The command succeeded without output.)");
    }
    text
}

/// The directory to continue with, when the command changed it.
fn directory_change(
    found: Option<PathBuf>,
    context: &ToolContext,
    notes: &mut Vec<String>,
) -> Option<PathBuf> {
    let found = found.filter(|found| *found != context.cwd)?;
    if paths::is_inside(&found, &context.roots) {
        return Some(found);
    }
    notes.push(format!(
        "The working directory was reset to {}: {} is outside the session's directories.",
        context.cwd.display(),
        found.display()
    ));
    None
}

/// What the model reads about a task; `so_far` is what a command printed before it became one.
fn task_outcome(start: &TaskStarted, so_far: Option<&Streams>) -> ToolOutcome {
    let TaskStarted { task_id, output_file, .. } = start;
    let advice = "You are told when it ends; TaskOutput shows how it goes and TaskStop ends it.";
    let (stdout, stderr) = so_far.map_or(("", ""), |streams| (&*streams.stdout, &*streams.stderr));
    let structured = json!({
        "stdout": stdout, "stderr": stderr, "exitCode": 0, "interrupted": false, "backgroundTaskId": task_id,
        "persistedOutputPath": output_file,
    });
    let text = match so_far {
        None => {
            format!(
                "The command runs in the background as {task_id}. Its output goes to {output_file}. {advice}"
            )
        }
        Some(streams) => {
            let note = format!(
                "The command was moved to the background as {task_id} and is still running. What it prints from now on \
                 goes to {output_file}. {advice}"
            );
            assemble(streams, &[note])
        }
    };
    ToolOutcome::completed(text, structured)
}
