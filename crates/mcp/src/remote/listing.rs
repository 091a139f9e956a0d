//! The tools of a server: all pages, within bounds. A list that does not end, repeats itself or is invalid is cut, and
//! the log says so; one strange tool spoils only itself.

use std::collections::HashSet;

use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams};
use serde_json::Value;

use super::ask::{Asker, Terms};
use super::{Limits, wire};
use crate::{ListedTool, PeerError};

/// Pages of one list.
const MOST_PAGES: usize = 200;
/// Complaints about single tools; the rest is counted.
const MOST_COMPLAINTS: usize = 5;

/// Reads the whole list.
pub(super) async fn tools(asker: &Asker, limits: &Limits) -> Result<Vec<ListedTool>, PeerError> {
    let mut list = List::default();
    let mut cursor: Option<String> = None;
    let mut seen = HashSet::new();
    for _ in 0..MOST_PAGES {
        let params = cursor.take().map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let request = ListToolsRequest { params, ..ListToolsRequest::default() };
        let terms = Terms::within(limits.start_up);
        let mut page = wire::value(asker.ask(ClientRequest::ListToolsRequest(request), &terms).await?);
        let Some(Value::Array(tools)) = page.get_mut("tools").map(Value::take) else {
            return Err(PeerError::Failed("the server's list of tools cannot be read".to_owned()));
        };
        let problem = list.add(tools, limits);
        let next = page.get("nextCursor").and_then(Value::as_str).filter(|next| !next.is_empty());
        let (None, Some(next)) = (&problem, next) else {
            return Ok(list.finish(problem, asker));
        };
        if !seen.insert(next.to_owned()) {
            return Ok(list.finish(Some("it repeats itself".to_owned()), asker));
        }
        cursor = Some(next.to_owned());
    }
    Ok(list.finish(Some(format!("it has more than {MOST_PAGES} pages")), asker))
}

#[derive(Default)]
struct List {
    tools: Vec<ListedTool>,
    names: HashSet<String>,
    bytes: usize,
    complaints: Vec<String>,
}

impl List {
    /// Takes in one page; the problem says why the list ends here.
    fn add(&mut self, page: Vec<Value>, limits: &Limits) -> Option<String> {
        for value in page {
            if self.tools.len() >= limits.tools {
                return Some(format!("it has more than {} tools", limits.tools));
            }
            self.bytes = self.bytes.saturating_add(value.to_string().len());
            if self.bytes > limits.message {
                return Some(format!("it has more than {} MiB", limits.message / (1024 * 1024)));
            }
            match serde_json::from_value::<ListedTool>(value) {
                Ok(tool) if tool.name.is_empty() => self.complaints.push("a tool has no name".to_owned()),
                Ok(tool) if self.names.contains(&tool.name) => {
                    self.complaints.push(format!("the tool `{}` is listed twice", tool.name));
                }
                Ok(tool) => {
                    self.names.insert(tool.name.clone());
                    self.tools.push(tool);
                }
                Err(error) => self.complaints.push(format!("a tool cannot be read: {error}")),
            }
        }
        None
    }

    fn finish(self, problem: Option<String>, asker: &Asker) -> Vec<ListedTool> {
        let events = &asker.handler.events;
        if let Some(problem) = problem {
            events.log("warning", &format!("the server's list of tools was cut: {problem}"));
        }
        let further = self.complaints.len().saturating_sub(MOST_COMPLAINTS);
        for complaint in self.complaints.into_iter().take(MOST_COMPLAINTS) {
            events.log("warning", &complaint);
        }
        if further > 0 {
            events.log("warning", &format!("{further} further tools were left out"));
        }
        self.tools
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_strange_tool_spoils_only_itself() {
        let mut list = List::default();
        let page = vec![
            json!({ "name": "a", "annotations": { "odd": 1 }, "_meta": { "x/y": [2] } }),
            json!({ "name": 5 }),
            json!("nonsense"),
            json!({ "name": "" }),
            json!({ "name": "a", "description": "again" }),
            json!({ "name": "b" }),
        ];
        assert_eq!(list.add(page, &Limits::default()), None);
        let names: Vec<&str> = list.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(list.tools[0].annotations, Some(json!({ "odd": 1 })));
        assert_eq!(list.tools[0].meta, Some(json!({ "x/y": [2] })));
        assert_eq!(list.complaints.len(), 4);
    }

    #[test]
    fn a_list_is_bounded_in_number_and_size() {
        let limits = Limits { tools: 3, message: 1024 * 1024, ..Limits::default() };
        let many = (0..10).map(|number| json!({ "name": number.to_string() })).collect();
        let mut list = List::default();
        assert_eq!(list.add(many, &limits).unwrap(), "it has more than 3 tools");
        assert_eq!(list.tools.len(), 3);
        let large = json!({ "name": "x", "description": "y".repeat(2 * 1024 * 1024) });
        assert_eq!(List::default().add(vec![large], &limits).unwrap(), "it has more than 1 MiB");
    }
}
