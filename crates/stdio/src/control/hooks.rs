//! Hooks of the program that started us: an event goes out as a request, and what the answer changes of it is put back
//! together with what had no room in the line.

use std::sync::Arc;

use futures::FutureExt;
use qoder_protocol::control::RuntimeRequest;
use qoder_runtime::config::hooks::HookFunction;
use serde_json::Value;

use super::channel::{Answered, Channel};
use crate::output::Shown;

/// What an answer may replace: the way to the new value, and the field of the event that it takes the place of.
const REPLACEMENTS: [(&[&str], &str); 4] = [
    (&["hookSpecificOutput", "updatedInput"], "tool_input"),
    (&["hookSpecificOutput", "decision", "updatedInput"], "tool_input"),
    (&["hookSpecificOutput", "updatedToolOutput"], "tool_response"),
    (&["hookSpecificOutput", "updatedMCPToolOutput"], "tool_response"),
];

/// The hook that the program registered under this ID.
pub(super) fn function(channel: &Arc<Channel>, id: &str) -> HookFunction {
    let (channel, id) = (Arc::clone(channel), id.to_owned());
    Arc::new(move |call| {
        let shown = Shown::new(call.input);
        let input = shown.sent().clone();
        let last = input.get("hook_event_name").and_then(Value::as_str) == Some("SessionEnd");
        let request =
            RuntimeRequest::HookCallback { callback_id: id.clone(), input, tool_use_id: call.tool_use_id };
        // At the end of a session the other side has usually closed its own; it still reads, and nothing hangs on its
        // answer.
        if last && !channel.is_open() {
            channel.notify(request);
            return std::future::ready(Ok(Value::Object(serde_json::Map::new()))).boxed();
        }
        let answer = channel.request(request);
        async move { restored(answer.await?, &shown) }.boxed()
    })
}

fn restored(mut answer: Value, shown: &Shown) -> Answered {
    for (path, field) in REPLACEMENTS {
        let replaced = path.iter().try_fold(&mut answer, |value, key| value.get_mut(key));
        let (Some(replaced), Some(shown)) = (replaced, shown.part(field)) else { continue };
        *replaced = shown.restore(replaced.take()).map_err(|changed| changed.to_string())?;
    }
    Ok(answer)
}
