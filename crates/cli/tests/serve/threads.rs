//! Coordinators: agents of a roster run in threads of the session, with their own tools, policies, logs and events, through
//! answers, interrupts and crashes.

use qoder_testkit::{Reply, Script, assistant_count};
use serde_json::{Value, json};

use super::support::{
    Server, bash, confirm, custom, id, kind, message, pending, result, result_text, toolset,
};

const READER: &str = "You read things for others.";

/// A model that answers as the coordinator, or as the reader, by how far each came.
fn playing(coordinator: Vec<Reply>, reader: Vec<Reply>) -> Script {
    Script::by(move |request, _| {
        let replies = if request["system"].to_string().contains(READER) { &reader } else { &coordinator };
        replies.get(assistant_count(request)).cloned().unwrap_or_else(|| Reply::text("nothing is left"))
    })
}

fn delegate(agent: &str, prompt: &str) -> Reply {
    Reply::tool("Agent", json!({ "agent": agent, "prompt": prompt, "description": "reads" }))
}

/// A coordinator with a reader that has these tools.
fn coordinator(server: &Server, own: &Value, tools: &Value) -> String {
    let reader = json!({ "name": "The Reader", "model": "auto", "system": READER, "description": "Reads.", "tools": tools });
    let reader = id(&server.post("/v1/agents", &reader).ok());
    let body = json!({ "name": "lead", "model": "auto", "system": "You lead.", "tools": own,
        "multiagent": { "type": "coordinator", "agents": [reader] } });
    id(&server.post("/v1/agents", &body).ok())
}

fn session(server: &Server, agent: &str) -> String {
    let body = json!({ "agent": agent, "environment_id": server.environment() });
    id(&server.post("/v1/sessions", &body).ok())
}

fn threads(server: &Server, session: &str) -> Vec<Value> {
    server.get(&format!("/v1/sessions/{session}/threads")).ok()["data"].as_array().unwrap().clone()
}

/// The events of a thread.
fn thread_events(server: &Server, session: &str, thread: &str) -> Vec<Value> {
    let listed = server.get(&format!("/v1/sessions/{session}/threads/{thread}/events?limit=1000")).ok();
    listed["data"].as_array().unwrap().clone()
}

fn kinds(events: &[Value]) -> Vec<String> {
    events.iter().map(kind).filter(|kind| !kind.starts_with("span.")).collect()
}

fn find<'a>(events: &'a [Value], wanted: &str) -> &'a Value {
    events.iter().find(|event| kind(event) == wanted).unwrap_or_else(|| panic!("no {wanted} in {events:#?}"))
}

#[test]
fn an_agent_of_the_roster_works_in_a_thread() {
    let server = Server::scripted(playing(
        vec![delegate("the-reader", "Read the file."), Reply::text("It says hello.")],
        vec![bash("echo hello"), Reply::text("The file says hello.")],
    ));
    // The coordinator has no tools of its own.
    let agent = coordinator(&server, &json!([]), &json!([toolset(&[])]));
    let session = session(&server, &agent);
    assert_eq!(server.ask(&session, "go")["stop_reason"]["type"], "end_turn");
    let events = server.events(&session);
    let shown = [
        "user.message",
        "session.status_running",
        "session.thread_status_running",
        "session.thread_created",
        "agent.thread_message_sent",
        "session.thread_status_running",
        "session.thread_status_idle",
        "agent.thread_message_received",
        "agent.message",
        "session.thread_status_idle",
        "session.status_idle",
    ];
    assert_eq!(kinds(&events), shown, "{events:#?}");
    let own = find(&events, "session.thread_status_running");
    assert_eq!(
        own["session_thread_id"],
        format!("sthr_{}", session.trim_start_matches("sess_")),
        "its own first"
    );
    let created = find(&events, "session.thread_created");
    assert_eq!(created["agent_name"], "the-reader");
    let child = created["session_thread_id"].as_str().unwrap();
    let received = find(&events, "agent.thread_message_received");
    assert_eq!(received["from_session_thread_id"], child);
    assert_eq!(received["content"][0]["text"], "The file says hello.");
    let [primary, thread] = threads(&server, &session).try_into().unwrap();
    assert_eq!((&primary["parent_thread_id"], &primary["role"]), (&Value::Null, &json!("coordinator")));
    assert_eq!((id(&thread).as_str(), &thread["parent_thread_id"]), (child, &primary["id"]));
    assert_eq!((&thread["status"], &thread["agent"]["name"]), (&json!("idle"), &json!("The Reader")));
    assert!(thread["usage"]["output_tokens"].as_u64() > Some(0), "{thread}");
    let total = server.get(&format!("/v1/sessions/{session}")).ok()["usage"]["output_tokens"].as_u64();
    assert!(total > thread["usage"]["output_tokens"].as_u64(), "the session's usage has that of its threads");
    let own = thread_events(&server, &session, child);
    let shown = [
        "session.thread_status_running",
        "agent.thread_message_received",
        "agent.tool_use",
        "agent.tool_result",
        "agent.message",
        "agent.thread_message_sent",
        "session.thread_status_idle",
    ];
    assert_eq!(kinds(&own), shown, "{own:#?}");
    assert_eq!(find(&own, "agent.thread_message_received")["content"][0]["text"], "Read the file.");
    assert!(result_text(find(&own, "agent.tool_result")).contains("hello"));
    assert_eq!(thread_events(&server, &session, &id(&primary)).len(), events.len());
    let path = format!("/v1/sessions/{session}/threads/{child}");
    assert!(server.post(&format!("{path}/archive"), &json!({})).ok()["archived_at"].is_string());
    assert!(server.get(&path).ok()["archived_at"].is_string());
    let refused =
        server.post(&format!("/v1/sessions/{session}/threads/{}/archive", id(&primary)), &json!({}));
    assert_eq!(refused.error(409).0, "conflict_error");
    let unknown = format!("sthr_{}", "0".repeat(32));
    assert_eq!(
        server.get(&format!("/v1/sessions/{session}/threads/{unknown}/events")).error(404).0,
        "not_found_error"
    );
    assert_eq!(
        server.get(&format!("/v1/sessions/{session}/threads?statuses%5B%5D=running")).ok()["data"],
        json!([])
    );
}

#[test]
fn each_agent_sees_its_own_tools() {
    let server = Server::scripted(playing(
        vec![delegate("the-reader", "Read the file."), Reply::text("It says hello.")],
        vec![Reply::text("The file says hello.")],
    ));
    let agent = coordinator(&server, &json!([]), &json!([toolset(&[])]));
    server.ask(&session(&server, &agent), "go");
    // The coordinator sees the tool that starts agents and nothing that only the reader has.
    let requests = server.model.as_ref().unwrap().requests();
    let names = |request: &Value| -> Vec<String> {
        let tools = request["tools"].as_array().cloned().unwrap_or_default();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&requests[0].json()), ["Agent"]);
    let told = requests[0].json()["tools"][0]["description"].to_string();
    assert!(told.contains("the-reader") && !told.contains("Explore"), "{told}");
    let of_reader = names(&requests[1].json());
    assert!(
        of_reader.contains(&"Bash".to_owned()) && !of_reader.contains(&"Agent".to_owned()),
        "{of_reader:?}"
    );
}

#[test]
fn a_threads_calls_wait_in_the_session_and_through_a_crash() {
    let mut server = Server::scripted(playing(
        vec![delegate("the-reader", "Read it."), Reply::text("All is read.")],
        vec![
            Reply::ToolCalls(vec![
                ("Bash".to_owned(), json!({ "command": "echo secret > seen.txt" })),
                ("weather".to_owned(), json!({ "city": "Oslo" })),
            ]),
            bash("cat seen.txt"),
            Reply::text("It rains."),
        ],
    ));
    let tools = json!([toolset(&[("bash", "always_ask")]), custom("weather")]);
    let agent = coordinator(&server, &json!([toolset(&[])]), &tools);
    let session = session(&server, &agent);
    let idle = server.ask(&session, "go");
    let waiting = pending(&idle);
    assert_eq!(waiting.len(), 2, "{idle}");
    let events = server.events(&session);
    let asked = find(&events, "agent.tool_use");
    let child = asked["session_thread_id"].as_str().unwrap().to_owned();
    assert_eq!((asked["evaluated_permission"].as_str(), id(asked)), (Some("ask"), waiting[0].clone()));
    assert_eq!(find(&events, "agent.custom_tool_use")["session_thread_id"], json!(child));
    let of_child = |event: &&Value| {
        kind(event) == "session.thread_status_idle" && event["session_thread_id"] == json!(child)
    };
    let stop = &events.iter().find(of_child).unwrap()["stop_reason"];
    assert_eq!(stop["event_ids"], json!(waiting), "the thread waits for the same");
    assert_eq!(threads(&server, &session)[1]["status"], "idle");
    let path = format!("/v1/sessions/{session}/threads/{child}/archive");
    assert_eq!(server.post(&path, &json!({})).error(409).0, "conflict_error");
    server.kill();
    server.start_again();
    let last = id(events.last().unwrap());
    let mut stream = server.stream(&session, Some(&last));
    let answers = json!([confirm(&waiting[0], "allow"), result(&waiting[1], "rain")]);
    let sent = server.send(&session, &answers).ok();
    assert_eq!(sent["data"][0]["session_thread_id"], json!(child), "the answer went to the thread");
    // The next call asks again.
    let again = pending(&stream.until("session.status_idle"));
    assert_eq!(again.len(), 1);
    server.send(&session, &json!([confirm(&again[0], "allow")])).ok();
    assert_eq!(stream.until("session.status_idle")["stop_reason"]["type"], "end_turn");
    let own = thread_events(&server, &session, &child);
    let texts: Vec<String> =
        own.iter().filter(|event| kind(event) == "agent.tool_result").map(result_text).collect();
    assert!(texts.last().unwrap().contains("secret"), "{texts:?}");
    let uses = own.iter().filter(|event| kind(event) == "agent.tool_use").count();
    assert_eq!(uses, 2, "nothing ran twice: {own:#?}");
    assert_eq!(find(&own, "user.tool_confirmation")["session_thread_id"], json!(child));
    let events = server.events(&session);
    let received = events.iter().rfind(|event| kind(event) == "agent.thread_message_received").unwrap();
    assert_eq!(received["content"][0]["text"], "It rains.");
}

#[test]
fn one_thread_is_stopped_and_the_session_continues() {
    let server = Server::scripted(playing(
        vec![
            delegate("the-reader", "Read."),
            Reply::text("I stop here."),
            delegate("the-reader", "Again."),
            Reply::text("Done."),
            delegate("the-reader", "Once more."),
        ],
        vec![bash("echo begun > begun.txt; sleep 30"), Reply::text("not asked for")],
    ));
    let agent = coordinator(&server, &json!([]), &json!([toolset(&[("bash", "always_ask")])]));
    let session = session(&server, &agent);
    let waiting = pending(&server.ask(&session, "go"));
    let child = id(&threads(&server, &session)[1]);
    let mut stream = server.stream(&session, None);
    let interrupt = json!([{ "type": "user.interrupt", "session_thread_id": child }]);
    server.send(&session, &interrupt).ok();
    assert_eq!(stream.until("session.status_idle")["stop_reason"]["type"], "end_turn");
    assert_eq!(server.send(&session, &json!([confirm(&waiting[0], "allow")])).error(409).0, "conflict_error");
    let own = thread_events(&server, &session, &child);
    assert!(!own.iter().map(result_text_of).any(|text| text.contains("not asked for")), "{own:#?}");
    let events = server.events(&session);
    assert_eq!(find(&events, "agent.message")["content"][0]["text"], "I stop here.");
    let unknown =
        json!([{ "type": "user.interrupt", "session_thread_id": format!("sthr_{}", "0".repeat(32)) }]);
    assert_eq!(server.send(&session, &unknown).error(404).0, "not_found_error");
    // A thread that runs is stopped, too, and the session continues with that.
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([message("continue")])).ok();
    let slow = stream.until("session.thread_created")["session_thread_id"].clone();
    let again = pending(&stream.until("session.status_idle"));
    server.send(&session, &json!([confirm(&again[0], "allow")])).ok();
    let begun = server.workspace(&session).join("begun.txt");
    let until = std::time::Instant::now() + super::support::PATIENCE;
    while !begun.exists() && std::time::Instant::now() < until {
        std::thread::yield_now();
    }
    server.send(&session, &json!([{ "type": "user.interrupt", "session_thread_id": slow }])).ok();
    assert_eq!(stream.until("session.status_idle")["stop_reason"]["type"], "end_turn");
    let events = server.events(&session);
    let said = events.iter().rfind(|event| kind(event) == "agent.message").unwrap();
    assert_eq!(said["content"][0]["text"], "Done.");
    // The whole session is stopped without a thread.
    pending(&server.ask(&session, "and again"));
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([{ "type": "user.interrupt" }])).ok();
    assert_eq!(stream.until("session.status_idle")["stop_reason"]["type"], "end_turn");
    assert!(threads(&server, &session).iter().all(|thread| thread["status"] == "idle"));
}

fn result_text_of(event: &Value) -> String {
    event["content"].as_array().into_iter().flatten().filter_map(|block| block["text"].as_str()).collect()
}

#[test]
fn a_thread_continues_after_a_crash_while_it_runs() {
    let mut server = Server::scripted(playing(
        vec![delegate("the-reader", "Read."), Reply::text("It is done.")],
        vec![bash("echo begun > begun.txt; sleep 30"), bash("echo second"), Reply::text("Continued.")],
    ));
    let agent = coordinator(&server, &json!([]), &json!([toolset(&[])]));
    let session = session(&server, &agent);
    let first = id(&server.send(&session, &json!([message("go")])).ok()["data"][0]);
    let begun = server.workspace(&session).join("begun.txt");
    let until = std::time::Instant::now() + super::support::PATIENCE;
    while !begun.exists() && std::time::Instant::now() < until {
        std::thread::yield_now();
    }
    server.kill();
    server.start_again();
    let mut stream = server.stream(&session, Some(&first));
    assert_eq!(stream.until("session.status_idle")["stop_reason"]["type"], "end_turn");
    let threads = threads(&server, &session);
    assert_eq!(threads.len(), 2, "the agent was not started again: {threads:#?}");
    let own = thread_events(&server, &session, &id(&threads[1]));
    let texts: Vec<String> =
        own.iter().filter(|event| kind(event) == "agent.tool_result").map(result_text).collect();
    assert!(texts[0].contains("unknown") && texts[1].contains("second"), "{texts:?}");
    assert_eq!(own.iter().filter(|event| kind(event) == "agent.thread_message_received").count(), 1);
}

#[test]
fn a_thread_has_a_stream_of_its_own() {
    let server = Server::scripted(playing(
        vec![delegate("the-reader", "Read."), Reply::text("Done.")],
        vec![bash("echo one"), Reply::text("one")],
    ));
    let agent = coordinator(&server, &json!([]), &json!([toolset(&[("bash", "always_ask")])]));
    let session = session(&server, &agent);
    let waiting = pending(&server.ask(&session, "go"));
    let child = id(&threads(&server, &session)[1]);
    let bearer = format!("Bearer {}", server.token);
    let headers = [("authorization", bearer.as_str()), ("last-event-id", waiting[0].as_str())];
    let path = format!("/v1/sessions/{session}/threads/{child}/stream?event_deltas%5B%5D=agent.message");
    let mut stream = server.open_stream(&path, &headers).unwrap();
    server.send(&session, &json!([confirm(&waiting[0], "allow")])).ok();
    let mut seen = Vec::new();
    while seen.last().is_none_or(|kind| kind != "agent.thread_message_sent") {
        seen.push(kind(&stream.next().unwrap()));
    }
    assert!(
        seen.contains(&"agent.tool_result".to_owned()) && seen.contains(&"agent.message".to_owned()),
        "{seen:?}"
    );
    assert!(!seen.iter().any(|kind| kind.starts_with("session.status") || kind == "event_delta"), "{seen:?}");
}

#[test]
fn rosters_are_checked_fixed_and_kept() {
    let server = Server::scripted(playing(
        vec![delegate("advisor", "What now?"), delegate("stranger", "x"), Reply::text("ok")],
        vec![],
    ));
    let reader = id(&server.post("/v1/agents", &json!({ "name": "reader", "model": "auto" })).ok());
    let create = |agents: Value| {
        let roster = json!({ "type": "coordinator", "agents": agents });
        server.post("/v1/agents", &json!({ "name": "lead", "model": "auto", "multiagent": roster }))
    };
    let lead = create(json!([reader, { "type": "self" }, { "type": "advisor", "model": "auto" }])).ok();
    assert_eq!(lead["multiagent"]["agents"][0], json!({ "type": "agent", "id": reader, "version": 1 }));
    server.post(&format!("/v1/agents/{reader}"), &json!({ "description": "newer" })).ok();
    let path = format!("/v1/agents/{}", id(&lead));
    assert_eq!(server.get(&path).ok()["multiagent"]["agents"][0]["version"], 1, "fixed when it was saved");
    let body = json!({ "agent": id(&lead), "environment_id": server.environment() });
    let session = server.post("/v1/sessions", &body).ok();
    let agents = &session["agent"]["multiagent"]["agents"];
    assert_eq!((&agents[0]["description"], &agents[1]["name"]), (&Value::Null, &json!("lead")), "{agents}");
    assert_eq!(agents[2], json!({ "type": "advisor", "model": "auto" }));
    server.ask(&id(&session), "go");
    let events = server.events(&id(&session));
    assert_eq!(find(&events, "session.thread_created")["agent_name"], "advisor");
    assert!(result_text(find(&events, "agent.tool_result")).contains("There is no agent named stranger"));
    let update = json!({ "multiagent": { "type": "coordinator", "agents": [reader] } });
    assert_eq!(server.post(&path, &update).ok()["multiagent"]["agents"][0]["version"], 2);
    assert_eq!(server.post(&path, &json!({ "multiagent": null })).ok()["multiagent"], Value::Null);
    assert_eq!(create(json!([format!("agent_{}", "0".repeat(32))])).error(404).0, "not_found_error");
    assert_eq!(create(json!([])).error(400).0, "invalid_request_error");
    server.post(&format!("/v1/agents/{reader}/archive"), &json!({})).ok();
    assert!(create(json!([reader])).error(400).1.contains("archived"));
    // What agents of one session share must be the same for all.
    let tool = |text: &str| json!([{ "type": "custom", "name": "weather", "description": text, "input_schema": { "type": "object" } }]);
    let one =
        server.post("/v1/agents", &json!({ "name": "one", "model": "auto", "tools": tool("one") })).ok();
    let body = json!({ "name": "lead", "model": "auto", "tools": tool("two"),
        "multiagent": { "type": "coordinator", "agents": [id(&one)] } });
    let lead = id(&server.post("/v1/agents", &body).ok());
    let body = json!({ "agent": lead, "environment_id": server.environment() });
    assert!(server.post("/v1/sessions", &body).error(400).1.contains("weather"));
}
