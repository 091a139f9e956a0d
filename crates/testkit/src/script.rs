//! Which reply a request gets. A script that decides by the request alone gives a client that was
//! killed and started again the same answers; a script that counts requests is for tests of
//! retries.

use std::fmt;

use serde_json::Value;

use crate::{ImageCall, ImageReply, Reply};

/// Decides by the parsed request and its number.
type Decide = Box<dyn Fn(&Value, usize) -> Reply + Send + Sync>;

/// Decides by a request for pictures and its number among those.
type DecideImages = Box<dyn Fn(&ImageCall, usize) -> ImageReply + Send + Sync>;

/// A file that the server has: its path, content type and bytes.
type ServedFile = (String, String, Vec<u8>);

/// Which reply a request gets.
pub struct Script {
    decide: Decide,
    images: Option<DecideImages>,
    files: Vec<ServedFile>,
    pub(crate) keeps_bodies: bool,
}

impl fmt::Debug for Script {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Script").field("keeps_bodies", &self.keeps_bodies).finish_non_exhaustive()
    }
}

impl Script {
    /// The replies in order, one for each request. After the end the last one repeats, unless it calls tools: then the
    /// text `done` follows, because an endless loop helps no test.
    #[must_use]
    pub fn list(replies: Vec<Reply>) -> Self {
        let decide = move |_: &Value, number: usize| pick(&replies, number);
        Self { decide: Box::new(decide), images: None, files: Vec::new(), keeps_bodies: true }
    }

    /// A function of the request's body and its number, which counts from 0. A body that is not JSON arrives as null.
    pub fn by(decide: impl Fn(&Value, usize) -> Reply + Send + Sync + 'static) -> Self {
        Self { decide: Box::new(decide), images: None, files: Vec::new(), keeps_bodies: true }
    }

    /// Picks by the number of replies of the model that the request already holds, in any of the three protocols. It
    /// keeps no state, so that a client that was killed and resumed gets the same answers. The end of the list is as in
    /// [`Script::list`].
    #[must_use]
    pub fn by_assistant_count(replies: Vec<Reply>) -> Self {
        Self::by(move |request, _| pick(&replies, assistant_count(request)))
    }

    /// Answers requests for pictures; without it the server has no images endpoint.
    #[must_use]
    pub fn images(
        mut self,
        decide: impl Fn(&ImageCall, usize) -> ImageReply + Send + Sync + 'static,
    ) -> Self {
        self.images = Some(Box::new(decide));
        self
    }

    /// Serves a file at a path, such as `/pictures/1.png`.
    #[must_use]
    pub fn file(mut self, path: &str, content_type: &str, bytes: Vec<u8>) -> Self {
        self.files.push((path.to_owned(), content_type.to_owned(), bytes));
        self
    }

    /// The reply to a request for pictures.
    pub(crate) fn image_reply(&self, call: &ImageCall, number: usize) -> Option<ImageReply> {
        self.images.as_ref().map(|decide| decide(call, number))
    }

    /// The file at a path.
    pub(crate) fn served(&self, path: &str) -> Option<&ServedFile> {
        self.files.iter().find(|(known, ..)| known == path)
    }

    /// Does not keep the requests' bodies, for long runs with large requests.
    #[must_use]
    pub fn forget_bodies(mut self) -> Self {
        self.keeps_bodies = false;
        self
    }

    /// The reply to a request.
    pub(crate) fn reply(&self, request: &Value, number: usize) -> Reply {
        (self.decide)(request, number)
    }
}

fn pick(replies: &[Reply], index: usize) -> Reply {
    match (replies.get(index), replies.last()) {
        (Some(reply), _) => reply.clone(),
        (None, Some(last)) if !last.calls_tools() => last.clone(),
        (None, _) => Reply::text("done"),
    }
}

/// How many replies of the model a request holds, in any of the three protocols.
#[must_use]
pub fn assistant_count(request: &Value) -> usize {
    if let Some(messages) = request["messages"].as_array() {
        return messages.iter().filter(|message| message["role"] == "assistant").count();
    }
    // In the Responses protocol a reply is a run of items: reasoning, text and calls stand side by side.
    let items = request["input"].as_array().map_or(&[][..], Vec::as_slice);
    let mut runs = 0;
    let mut inside = false;
    for item in items {
        let by_model =
            item["role"] == "assistant" || item["type"] == "function_call" || item["type"] == "reasoning";
        runs += usize::from(by_model && !inside);
        inside = by_model;
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text_of(reply: Reply) -> String {
        match reply {
            Reply::Text(text) => text,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn the_last_reply_of_a_list_repeats() {
        let script = Script::list(vec![Reply::text("one"), Reply::text("two")]);
        let texts: Vec<String> = (0..4).map(|number| text_of(script.reply(&Value::Null, number))).collect();
        assert_eq!(texts, ["one", "two", "two", "two"]);
    }

    #[test]
    fn a_list_that_ends_with_calls_is_followed_by_a_text() {
        let script = Script::list(vec![Reply::tool("Read", json!({}))]);
        assert!(script.reply(&Value::Null, 0).calls_tools());
        assert_eq!(text_of(script.reply(&Value::Null, 1)), "done");
        assert_eq!(text_of(Script::list(Vec::new()).reply(&Value::Null, 0)), "done");
    }

    #[test]
    fn replies_are_counted_in_every_protocol() {
        let messages = json!({ "messages": [
            { "role": "user", "content": "a" },
            { "role": "assistant", "content": "b" },
            { "role": "tool", "content": "c" },
            { "role": "assistant", "content": "d" },
        ]});
        assert_eq!(assistant_count(&messages), 2);
        let items = json!({ "input": [
            { "type": "message", "role": "user", "content": "a" },
            { "type": "reasoning", "summary": [] },
            { "type": "message", "role": "assistant", "content": [] },
            { "type": "function_call", "name": "x" },
            { "type": "function_call", "name": "y" },
            { "type": "function_call_output", "output": "1" },
            { "type": "function_call_output", "output": "2" },
            { "type": "message", "role": "assistant", "content": [] },
        ]});
        assert_eq!(assistant_count(&items), 2);
        assert_eq!(assistant_count(&Value::Null), 0);
    }

    #[test]
    fn a_stateless_script_ignores_the_number() {
        let script = Script::by_assistant_count(vec![Reply::text("first"), Reply::text("second")]);
        let fresh = json!({ "messages": [{ "role": "user", "content": "a" }] });
        assert_eq!(text_of(script.reply(&fresh, 17)), "first");
    }
}
