//! Hooks that are programs: the event as JSON on their input, the answer in their exit code and on their output. A program
//! whose first line says `{"async": true}` goes on in the background.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_tools::{Captured, CapturedListener, CapturedProgram, CapturedRun, CapturedStream};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::HookEvent;
use super::action::{CommandHook, Shell};
use super::output::{bounded, is_async};
use super::set::HookServices;

/// How much of the error stream is told.
const TOLD_CHARACTERS: usize = 2_000;
/// The longest first line that is looked at.
const LONGEST_FIRST_LINE: usize = 4_096;

/// How a program answered.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) output: Result<Value, String>,
    pub(super) exit_code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// What became of a program.
pub(super) enum Ran {
    Ended(Program),
    /// It goes on; with the time that it asked for.
    Detached(BoxFuture<'static, Program>, Option<Duration>),
}

/// Runs a program. Dropping the future ends it.
pub(super) async fn run(
    hook: &CommandHook,
    event: HookEvent,
    input: &Value,
    services: &HookServices,
    listener: Option<CapturedListener>,
) -> Ran {
    let (listener, first) = watching(listener);
    let run = captured(hook, input, services, listener);
    let mut ended = run.run().boxed();
    tokio::select! {
        ended = &mut ended => Ran::Ended(program(event, ended, false)),
        Ok(wanted) = first => Ran::Detached(async move { program(event, ended.await, true) }.boxed(), wanted),
    }
}

/// Where a program starts.
pub(super) fn directory(input: &Value, services: &HookServices) -> PathBuf {
    let cwd = input.get("cwd").and_then(Value::as_str).map(PathBuf::from);
    cwd.filter(|cwd| cwd.is_dir()).unwrap_or_else(|| services.project_dir.clone())
}

fn captured(
    hook: &CommandHook,
    input: &Value,
    services: &HookServices,
    listener: CapturedListener,
) -> CapturedRun {
    let mut known = vec![("QODER_PROJECT_DIR", services.project_dir.to_string_lossy().into_owned())];
    if let Some(plugin) = &hook.plugin {
        known.push(("QODER_PLUGIN_ROOT", plugin.root.to_string_lossy().into_owned()));
        known.push(("QODER_PLUGIN_DATA", plugin.data.to_string_lossy().into_owned()));
    }
    // Without a shell nobody else would replace these.
    let literal = |text: &String| {
        known.iter().fold(text.clone(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value))
    };
    let program = match (&hook.args, hook.shell) {
        (Some(args), _) => {
            CapturedProgram::Direct(literal(&hook.command), args.iter().map(literal).collect())
        }
        (None, Shell::Bash) => CapturedProgram::Bash(hook.command.clone()),
        (None, Shell::PowerShell) => CapturedProgram::PowerShell(hook.command.clone()),
    };
    let mut added = hook.env.clone();
    added.extend(known.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    CapturedRun {
        program,
        directory: directory(input, services),
        environment: Arc::clone(&services.environment),
        added,
        input: input.to_string().into_bytes(),
        listener: Some(listener),
    }
}

/// A listener that also waits for a first line which says that the program goes on in the background.
fn watching(listener: Option<CapturedListener>) -> (CapturedListener, oneshot::Receiver<Option<Duration>>) {
    let (sender, first) = oneshot::channel();
    let waiting = Mutex::new(Some((String::new(), sender)));
    let watch: CapturedListener = Arc::new(move |stream, text| {
        if let Some(listener) = &listener {
            listener(stream, text);
        }
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((line, _)) = waiting.as_mut().filter(|_| stream == CapturedStream::Output) else { return };
        line.push_str(text);
        let Some((line, _)) = line.split_once('\n') else {
            if line.len() > LONGEST_FIRST_LINE {
                *waiting = None;
            }
            return;
        };
        let said: Option<Value> = serde_json::from_str(line).ok().filter(is_async);
        let Some((_, sender)) = waiting.take() else { return };
        if let Some(said) = said {
            let wanted = said.get("asyncTimeout").and_then(Value::as_u64).map(Duration::from_millis);
            // Nobody waits any more when the program has ended.
            let _ = sender.send(wanted);
        }
    });
    (watch, first)
}

/// Reads how a program ended; of one that went on in the background, its first line is not part of the answer.
fn program(event: HookEvent, ended: std::io::Result<Captured>, detached: bool) -> Program {
    let ended = match ended {
        Ok(ended) => ended,
        Err(error) => {
            return Program {
                output: Err(format!("it cannot be run: {error}")),
                exit_code: None,
                stdout: String::new(),
                stderr: String::new(),
            };
        }
    };
    let Captured { exit_code, stdout, stderr, is_cut } = ended;
    let answer = match detached {
        true => stdout.split_once('\n').map_or("", |(_, rest)| rest),
        false => stdout.as_str(),
    };
    let told = tail(&stderr);
    let output = match exit_code {
        0 if is_cut && answer.trim_start().starts_with('{') => {
            Err("its output is longer than a MiB and was cut".to_owned())
        }
        0 => plain_output(event, answer),
        2 if event.is_blockable() => {
            let reason =
                if told.is_empty() { "a hook blocked it".to_owned() } else { bounded(stderr.trim()) };
            Ok(json!({ "decision": "block", "reason": reason }))
        }
        code if told.is_empty() => Err(format!("it ended with exit code {code}")),
        code => Err(format!("it ended with exit code {code}: {told}")),
    };
    Program { output, exit_code: Some(exit_code), stdout, stderr }
}

/// The output that a text stands for: a JSON object, or words. Words are context where that is documented.
pub(super) fn plain_output(event: HookEvent, text: &str) -> Result<Value, String> {
    let text = text.trim();
    if text.starts_with('{') {
        return serde_json::from_str(text).map_err(|error| format!("its output is no JSON: {error}"));
    }
    let field = match event == HookEvent::WorktreeCreate {
        true => "worktreePath",
        false => "additionalContext",
    };
    if text.is_empty() || !(event.takes_text() || event == HookEvent::WorktreeCreate) {
        return Ok(json!({}));
    }
    let text = if event.takes_text() { text } else { text.lines().last().unwrap_or_default().trim() };
    Ok(json!({ "hookSpecificOutput": { "hookEventName": event.as_str(), field: text } }))
}

/// The end of what a program said.
pub(super) fn tail(text: &str) -> String {
    let text = text.trim();
    let characters = text.chars().count();
    text.chars().skip(characters.saturating_sub(TOLD_CHARACTERS)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(exit_code: i32, stdout: &str, stderr: &str) -> std::io::Result<Captured> {
        Ok(Captured { exit_code, stdout: stdout.to_owned(), stderr: stderr.to_owned(), is_cut: false })
    }

    #[test]
    fn exit_codes_mean_what_is_documented() {
        let output = |event, code, out: &str, err: &str| program(event, ended(code, out, err), false).output;
        let stop = HookEvent::Stop;
        assert_eq!(output(stop, 0, "{\"decision\":\"block\"}", ""), Ok(json!({"decision": "block"})));
        assert_eq!(output(stop, 0, "all fine", ""), Ok(json!({})));
        assert_eq!(output(stop, 2, "{}", " no \n"), Ok(json!({"decision": "block", "reason": "no"})));
        assert!(output(stop, 1, "{}", "boom").unwrap_err().contains("exit code 1: boom"));
        assert!(output(HookEvent::PostCompact, 2, "", "x").is_err(), "nothing to block");
        assert!(output(stop, 0, "{\"decision\"", "").unwrap_err().contains("no JSON"));
    }

    #[test]
    fn plain_text_is_context_for_session_start_and_user_prompt_submit() {
        for event in HookEvent::ALL {
            let output = plain_output(event, "words\n").unwrap();
            let context = output.pointer("/hookSpecificOutput/additionalContext").and_then(Value::as_str);
            assert_eq!(context.is_some(), event.takes_text(), "{event:?}");
        }
        let made = plain_output(HookEvent::WorktreeCreate, "making\n/tmp/w\n").unwrap();
        assert_eq!(made["hookSpecificOutput"]["worktreePath"], "/tmp/w");
    }

    #[test]
    fn the_first_line_of_a_detached_program_is_no_answer() {
        let said = "{\"async\":true}\n{\"systemMessage\":\"later\"}";
        let output = program(HookEvent::Stop, ended(0, said, ""), true).output;
        assert_eq!(output, Ok(json!({"systemMessage": "later"})));
    }
}
