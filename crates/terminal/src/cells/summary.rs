//! A call in a few words: its tool, what it is about, and what came of it. The command itself is never replaced by its
//! description.

use std::time::Duration;

use serde_json::Value;

use crate::state::{Call, CallProgress};
use crate::text::one_line;

/// The tool's name for people: `mcp__server__tool` is `server · tool`.
pub(crate) fn tool_name(tool: &str) -> String {
    match tool.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
        Some((server, tool)) => one_line(&format!("{server} · {tool}")),
        None => one_line(tool),
    }
}

/// What a call is about: its command, file, pattern or address. May have several lines when it is a command.
pub(crate) fn call_about(call: &Call, cwd: &str) -> String {
    let text = |field: &str| call.text(field).unwrap_or_default();
    match call.tool.as_str() {
        "Bash" => text("command").to_owned(),
        "Read" | "Edit" | "Write" | "NotebookEdit" => {
            let path = if call.tool == "NotebookEdit" { "notebook_path" } else { "file_path" };
            one_line(&short_path(text(path), cwd))
        }
        "Grep" | "Glob" => {
            let place = call.text("path").map(|path| format!(" in {}", short_path(path, cwd)));
            one_line(&format!("{}{}", text("pattern"), place.unwrap_or_default()))
        }
        "Agent" => {
            let name = call.text("agent").or_else(|| call.text("subagent_type")).unwrap_or("general-purpose");
            let about = call.text("description").unwrap_or_else(|| text("prompt"));
            one_line(&format!("{name}: {}", about.lines().next().unwrap_or_default()))
        }
        "WebFetch" => one_line(text("url")),
        "WebSearch" => one_line(text("query")),
        "Skill" => one_line(call.text("skill").unwrap_or_else(|| text("name"))),
        "AskUserQuestion" | "ExitPlanMode" => String::new(),
        _ => arguments(&call.input),
    }
}

/// Arguments of a tool that is not ours, on one line.
fn arguments(input: &Value) -> String {
    let Some(fields) = input.as_object() else { return String::new() };
    let field = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name}: {text}"),
        other => format!("{name}: {other}"),
    };
    one_line(&fields.iter().map(field).collect::<Vec<_>>().join(", "))
}

/// The path from the working directory, when it is below.
pub(crate) fn short_path(path: &str, cwd: &str) -> String {
    let below = path.strip_prefix(cwd).and_then(|rest| rest.strip_prefix('/'));
    below.filter(|_| !cwd.is_empty()).unwrap_or(path).to_owned()
}

/// What came of a call, in a few words; empty when its title says enough.
pub(crate) fn call_outcome(call: &Call) -> String {
    if let Some(reason) = &call.denial {
        return format!("denied: {}", one_line(reason));
    }
    let result = match &call.progress {
        CallProgress::Written => {
            let bytes = call.input.as_u64().unwrap_or(0);
            return if bytes > 1024 {
                format!("writing its input, {} KB", bytes / 1024)
            } else {
                String::new()
            };
        }
        CallProgress::Pending => return String::new(),
        CallProgress::Done(result) => result,
    };
    let data = &result.structured;
    let number = |field: &str| data[field].as_u64();
    let words = match call.tool.as_str() {
        "Bash" => match (
            data["backgroundTaskId"].as_str(),
            data["exitCode"].as_i64(),
            data["interrupted"].as_bool(),
        ) {
            (Some(task), ..) => format!("in the background as {task}"),
            (_, _, Some(true)) => "interrupted".to_owned(),
            (_, Some(0), _) => String::new(),
            (_, Some(code), _) => format!("exit {code}"),
            (_, None, _) if result.is_error => "failed".to_owned(),
            (_, None, _) => String::new(),
        },
        _ if result.is_error => "failed".to_owned(),
        "Read" => match (number("totalLines"), data["type"].as_str()) {
            (Some(lines), _) => plural(lines, "line"),
            (None, Some("file_unchanged")) => "unchanged".to_owned(),
            (None, Some(kind)) => kind.to_owned(),
            (None, None) => String::new(),
        },
        "Glob" => number("totalMatches").map(|count| plural(count, "file")).unwrap_or_default(),
        "Grep" => number("numFiles").map(|count| plural(count, "file")).unwrap_or_default(),
        "Edit" | "NotebookEdit" | "Write" => change_figures(call, data),
        "Agent" => call
            .agent
            .as_ref()
            .map(|agent| format!("{}, {} tokens", plural(agent.calls, "call"), agent.tokens))
            .unwrap_or_default(),
        _ => String::new(),
    };
    let took = result.took.filter(|took| *took >= Duration::from_secs(2)).map(duration);
    [Some(words).filter(|words| !words.is_empty()), took]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" · ")
}

fn change_figures(call: &Call, data: &Value) -> String {
    match data["diff"].as_str() {
        Some(diff) => {
            let count = |sign: char, head: &str| {
                diff.lines().filter(|line| line.starts_with(sign) && !line.starts_with(head)).count()
            };
            format!("+{} −{}", count('+', "+++"), count('-', "---"))
        }
        None => plural(call.text("content").unwrap_or_default().lines().count() as u64, "line"),
    }
}

/// The output of a finished call that is worth showing: of commands, of tools that are not ours, and of errors.
pub(crate) fn call_output(call: &Call) -> String {
    let Some(result) = call.result() else { return String::new() };
    if call.denial.is_some() {
        return String::new();
    }
    let is_quiet = matches!(
        call.tool.as_str(),
        "Read"
            | "Edit"
            | "Write"
            | "NotebookEdit"
            | "Glob"
            | "Grep"
            | "TaskOutput"
            | "Skill"
            | "WebFetch"
            | "Agent"
            | "AskUserQuestion"
            | "ExitPlanMode"
    );
    let is_shown = result.is_error || !is_quiet;
    if !is_shown {
        return String::new();
    }
    let streams = |field: &str| result.structured[field].as_str().unwrap_or_default();
    match (call.tool.as_str(), result.structured.get("stdout")) {
        ("Bash", Some(_)) => {
            let (out, err) = (streams("stdout").trim_end(), streams("stderr").trim_end());
            [out, err].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
        }
        _ => result.text.trim_end().to_owned(),
    }
}

/// A number of things.
pub(crate) fn plural(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

/// A time that is still running, in whole seconds: `3 s`.
pub(crate) fn elapsed_seconds(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..=9 => format!("{seconds} s"),
        seconds => duration(Duration::from_secs(seconds)),
    }
}

/// A time for people: `3.2 s`, `12 s`, `4 min 5 s`, `2 h 3 min`.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..=9 => format!("{}.{} s", seconds, time.subsec_millis() / 100),
        10..=59 => format!("{seconds} s"),
        60..=3599 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::CallResult;
    use serde_json::json;

    fn done(tool: &str, input: Value, structured: Value, is_error: bool) -> Call {
        let mut call = Call::new("t", tool, input, None);
        let result = CallResult { text: "text".to_owned(), is_error, structured, took: None };
        call.progress = CallProgress::Done(Box::new(result));
        call
    }

    #[test]
    fn outcomes_have_the_figures_that_matter() {
        for (call, about, outcome) in [
            (
                done("Read", json!({ "file_path": "/p/src/a.rs" }), json!({ "totalLines": 120 }), false),
                "src/a.rs",
                "120 lines",
            ),
            (
                done("Bash", json!({ "command": "false" }), json!({ "stdout": "", "exitCode": 1 }), true),
                "false",
                "exit 1",
            ),
            (
                done("Grep", json!({ "pattern": "x", "path": "/p/src" }), json!({ "numFiles": 1 }), false),
                "x in src",
                "1 file",
            ),
            (
                done(
                    "Edit",
                    json!({ "file_path": "/q/a" }),
                    json!({ "diff": "--- a\n+++ a\n@@\n-x\n+y\n+z\n" }),
                    false,
                ),
                "/q/a",
                "+2 −1",
            ),
            (done("mcp__s__t", json!({ "a": 1, "b": "c" }), Value::Null, false), "a: 1, b: c", ""),
        ] {
            assert_eq!((call_about(&call, "/p").as_str(), call_outcome(&call).as_str()), (about, outcome));
        }
    }

    #[test]
    fn a_denial_says_why() {
        let mut call = done("Bash", json!({ "command": "x" }), Value::Null, true);
        call.denial = Some("rule Bash(x)".to_owned());
        assert_eq!(call_outcome(&call), "denied: rule Bash(x)");
        assert_eq!(call_output(&call), "");
    }

    #[test]
    fn both_streams_of_a_command_are_output() {
        let call =
            done("Bash", json!({}), json!({ "stdout": "out\n", "stderr": "err\n", "exitCode": 0 }), false);
        assert_eq!(call_output(&call), "out\nerr");
    }

    #[test]
    fn times_are_short() {
        for (milliseconds, text) in
            [(3_240, "3.2 s"), (12_900, "12 s"), (245_000, "4 min 5 s"), (7_380_000, "2 h 3 min")]
        {
            assert_eq!(duration(Duration::from_millis(milliseconds)), text);
        }
    }
}
