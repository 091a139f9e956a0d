//! Short ways to write agents, to run the program and to see what its model was asked.

use qoder_testkit::{Ran, Reply, Sandbox, Script, ScriptedServer, assistant_count};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_qodercli");

/// Runs the program without a model server.
pub fn run(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    Ran::from(sandbox.run(BINARY, arguments))
}

/// Runs a turn with a server as the model, as a stream.
pub fn stream(sandbox: &Sandbox, server: &ScriptedServer, arguments: &[&str]) -> Ran {
    let usual = ["--output-format", "stream-json", "--verbose", "-p"];
    Ran::from(sandbox.run_with(BINARY, server, &[&usual[..], arguments].concat()))
}

/// The text of an agent's file.
pub fn file(name: &str, description: &str, more: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n{more}\n---\n\nYou are {name}: {description}\n")
}

/// `qodercli agents list --json` in the trusted project.
pub fn listed(sandbox: &Sandbox, more: &[&str]) -> Value {
    let arguments = [&["agents", "list", "--json", "--trust"], more].concat();
    serde_json::from_str(&run(sandbox, &arguments).ok()).unwrap()
}

/// The rows of a name.
pub fn rows<'a>(listed: &'a Value, name: &str) -> Vec<&'a Value> {
    listed["agents"].as_array().unwrap().iter().filter(|row| row["name"] == name).collect()
}

/// A model that hands a task to an agent, and plays the agent with these replies.
pub fn delegating(agent: &str, child: Vec<Reply>) -> ScriptedServer {
    let input = json!({ "prompt": "CHILD TASK", "subagent_type": agent, "description": "x" });
    ScriptedServer::start(Script::by(move |request, _| {
        let replied = assistant_count(request);
        if is_child(request) {
            child.get(replied).cloned().unwrap_or_else(|| Reply::text("child is done"))
        } else if replied == 0 {
            Reply::tool("Agent", input.clone())
        } else {
            Reply::text("parent is done")
        }
    }))
}

fn is_child(request: &Value) -> bool {
    request["messages"][0].to_string().contains("CHILD TASK")
}

/// What the model was asked, in order.
pub fn requests(server: &ScriptedServer) -> Vec<Value> {
    server.requests().iter().map(qoder_testkit::ReceivedRequest::json).collect()
}

/// What the agent's model was asked first.
pub fn child_request(server: &ScriptedServer) -> Value {
    let mut children = requests(server).into_iter().filter(is_child);
    children.next().unwrap_or_else(|| panic!("no agent was started: {:#?}", requests(server)))
}

/// The names of the tools in a request.
pub fn tools(request: &Value) -> Vec<&str> {
    request["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// How the Agent tool is described to the model.
pub fn told(request: &Value) -> &str {
    let tools = request["tools"].as_array().unwrap();
    tools.iter().find(|tool| tool["name"] == "Agent").unwrap()["description"].as_str().unwrap()
}
