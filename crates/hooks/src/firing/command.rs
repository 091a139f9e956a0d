//! Hooks that are programs: the event as JSON on their input, the answer in their exit code and on their output. A program
//! whose first line says `{"async": true}` continues in the background.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_process::{Captured, CapturedListener, CapturedProgram, CapturedRun, CapturedStream};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::answers::output::{bounded, is_async};
use crate::firing::set::HookServices;
use qoder_config::hooks::HookEvent;
use qoder_config::hooks::{CommandHook, Shell};
use qoder_config::sources::kind_of;

/// How much of the error stream is reported.
const TOLD_CHARACTERS: usize = 2_000;
/// The longest first line that is looked at.
const LONGEST_FIRST_LINE: usize = 4_096;
/// The keys by which an object is known for an answer.
const ANSWERS: [&str; 3] = ["decision", "continue", "hookSpecificOutput"];

/// How a program answered.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) output: Result<Value, String>,
    pub(crate) exit_code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// What became of a program.
pub(crate) enum Ran {
    Ended(Program),
    /// It continues; with the time that it asked for.
    Detached(BoxFuture<'static, Program>, Option<Duration>),
}

/// Runs a program. Dropping the future ends it.
pub(crate) async fn run(
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
pub(crate) fn directory(input: &Value, services: &HookServices) -> PathBuf {
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
    // Without a shell nothing else would replace these.
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

/// A listener that also waits for a first line which says that the program continues in the background.
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
            // The receiver is gone when the program has ended.
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
        // An answer may be in the part that was cut.
        0 if is_cut && !event.takes_text() => Err("its output is longer than a MiB and was cut".to_owned()),
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
pub(crate) fn plain_output(event: HookEvent, text: &str) -> Result<Value, String> {
    // Some programs begin whatever they write with a byte order mark.
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.starts_with('{') {
        return serde_json::from_str(text).map_err(|error| format!("its output is no JSON: {error}"));
    }
    let field = match event == HookEvent::WorktreeCreate {
        true => "worktreePath",
        false => "additionalContext",
    };
    if text.is_empty() {
        return Ok(json!({}));
    }
    if !(event.takes_text() || event == HookEvent::WorktreeCreate) {
        return lost_answer(text).map_or(Ok(json!({})), Err);
    }
    let text = if event.takes_text() { text } else { text.lines().last().unwrap_or_default().trim() };
    Ok(json!({ "hookSpecificOutput": { "hookEventName": event.as_str(), field: text } }))
}

/// Why words do not pass for having no opinion: they are JSON of another kind, or an answer is between them.
fn lost_answer(text: &str) -> Option<String> {
    if text.starts_with(['[', '"'])
        && let Ok(value) = serde_json::from_str::<Value>(text)
    {
        return Some(format!("its output is {} and not an object", kind_of(&value)));
    }
    let mut begins = 0;
    let objects = text.split_inclusive('\n').filter_map(|line| {
        let at = begins;
        begins += line.len();
        line.trim_start().starts_with('{').then_some(at)
    });
    let objects: Vec<usize> = objects.collect();
    // The first and the last are enough to notice a mistake, and keep it cheap to look.
    let answers = |at: &usize| {
        let mut values = serde_json::Deserializer::from_str(&text[*at..]).into_iter::<Value>();
        let value = values.next().and_then(Result::ok);
        value.is_some_and(|value| ANSWERS.iter().any(|key| value.get(key).is_some()))
    };
    let found = objects.first().into_iter().chain(objects.last()).any(answers);
    found.then(|| "words stand beside its JSON; it has to print the object and nothing else".to_owned())
}

/// The end of what a program said.
pub(crate) fn tail(text: &str) -> String {
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
    fn an_answer_that_cannot_be_read_is_no_missing_opinion() {
        let output = |text: &str| plain_output(HookEvent::PreToolUse, text);
        let deny = "{\"decision\": \"block\"}";
        assert_eq!(output(&format!("\u{feff}{deny}")), Ok(json!({"decision": "block"})));
        for text in [format!("[{deny}]"), "\"deny\"".to_owned()] {
            assert!(output(&text).unwrap_err().contains("not an object"), "{text}");
        }
        for text in [format!("a profile greets\n{deny}"), format!("a\n  {{}}\nb\n{deny}\nbye")] {
            assert!(output(&text).unwrap_err().contains("words stand beside its JSON"), "{text}");
        }
        for words in ["all fine", "[info] checked", "looked at\n{\"level\": 1}\n{half"] {
            assert_eq!(output(words), Ok(json!({})), "{words}");
        }
        let cut = Captured { exit_code: 0, stdout: "x".to_owned(), stderr: String::new(), is_cut: true };
        assert!(program(HookEvent::PreToolUse, Ok(cut), false).output.unwrap_err().contains("MiB"));
    }

    #[test]
    fn the_first_line_of_a_detached_program_is_no_answer() {
        let said = "{\"async\":true}\n{\"systemMessage\":\"later\"}";
        let output = program(HookEvent::Stop, ended(0, said, ""), true).output;
        assert_eq!(output, Ok(json!({"systemMessage": "later"})));
    }
}
