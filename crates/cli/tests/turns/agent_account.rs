//! The account of each agent is exact: what the parent's result, the result message and the log say of it are the same,
//! and the figures of the tree add up to those of the session. Budgets hold over the whole tree.

use qoder_testkit::{Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::turns::agents::{TASK, child_logs, lines};
use crate::turns::support::{MODEL, calls, counted, stream};

fn priced(sandbox: &Sandbox) {
    let price = json!({ "input": 2.0, "output": 10.0, "cacheRead": 1.0, "cacheWrite": 4.0 });
    let settings = json!({ "model": { "prices": { MODEL: price } }, "agents": { "maxDepth": 2 } });
    sandbox.write(sandbox.config().join("settings.json"), settings.to_string());
    let lead = "---\nname: lead\ndescription: d\ntools: [Glob, Agent]\n---\nYou lead.\n";
    sandbox.write(sandbox.config().join("agents/lead.md"), lead);
}

fn start(id: &'static str, agent: &str, who: &str) -> (&'static str, &'static str, Value) {
    (id, "Agent", json!({ "prompt": format!("{TASK} {who}"), "agent": agent }))
}

/// Two children, one of which starts one of its own; each reply has its own number of tokens.
fn tree() -> ScriptedServer {
    ScriptedServer::start(Script::by(|request, _| {
        let first = request["messages"][0].to_string();
        let replied = qoder_testkit::assistant_count(request);
        let tokens = |input: u64, output: u64| json!({ "input_tokens": input, "output_tokens": output });
        let who = ["ALONE", "LEAD", "NESTED"].into_iter().find(|who| first.contains(who));
        match (who, replied) {
            (None, 0) => calls(&[
                start("toolu_alone", "general-purpose", "ALONE"),
                start("toolu_lead", "lead", "LEAD"),
            ]),
            (Some("LEAD"), 0) => calls(&[start("toolu_nested", "general-purpose", "NESTED")]),
            (Some("NESTED"), 0) => calls(&[("toolu_glob", "Glob", json!({ "pattern": "*" }))]),
            (Some("ALONE"), _) => counted("alone", tokens(1_000, 100)),
            (Some("NESTED"), _) => counted("nested", tokens(2_000, 200)),
            (Some(_), _) => counted("led", tokens(4_000, 400)),
            (None, _) => counted("done", tokens(8_000, 800)),
        }
    }))
}

/// Input and output tokens of the replies in a log.
fn own(entries: &[Value]) -> (u64, u64) {
    let replies = entries.iter().filter(|line| line["type"] == "assistant");
    replies.fold((0, 0), |(input, output), line| {
        let usage = &line["message"]["usage"];
        (input + usage["input_tokens"].as_u64().unwrap(), output + usage["output_tokens"].as_u64().unwrap())
    })
}

fn tokens(usage: &Value) -> (u64, u64) {
    (usage["input_tokens"].as_u64().unwrap(), usage["output_tokens"].as_u64().unwrap())
}

#[test]
fn the_figures_of_the_tree_add_up_to_those_of_the_session() {
    let sandbox = Sandbox::new();
    priced(&sandbox);
    let server = tree();
    let finished = stream(&sandbox, &server, &["go", "--allowed-tools", "Agent"]);
    let result = finished.success();
    let children = result["subagents"].as_array().unwrap();
    assert_eq!(children.len(), 2, "{result:#}");
    let parent = own(&sandbox.transcript_lines());
    let sum = children.iter().fold(parent, |sum, child| {
        let used = tokens(&child["usage"]);
        (sum.0 + used.0, sum.1 + used.1)
    });
    assert_eq!(sum, tokens(&result["usage"]));
    assert_eq!(result["modelUsage"][MODEL]["inputTokens"], sum.0);
    assert_eq!(result["modelUsage"][MODEL]["outputTokens"], sum.1);
    let cost = |(input, output): (u64, u64)| (input as f64 * 2.0 + output as f64 * 10.0) / 1_000_000.0;
    let close = |value: &Value, wanted: f64| (value.as_f64().unwrap() - wanted).abs() < 1e-9;
    assert!(close(&result["total_cost_usd"], cost(sum)), "{result:#}");
    for child in children {
        assert!(close(&child["total_cost_usd"], cost(tokens(&child["usage"]))), "{child:#}");
        assert_eq!(child["model_usage"][MODEL]["inputTokens"], child["usage"]["input_tokens"]);
        let told = finished.of("user").into_iter().find(|line| {
            line["tool_use_result"]["agentId"] == child["agent_id"] && line["parent_tool_use_id"].is_null()
        });
        let told = &told.unwrap()["tool_use_result"];
        assert_eq!((&told["usage"], &told["numTurns"]), (&child["usage"], &child["num_turns"]));
        assert_eq!(told["totalToolUseCount"], child["tool_uses"]);
        let (input, output) = tokens(&child["usage"]);
        assert_eq!(told["totalTokens"], input + output);
        assert_eq!(told["content"], json!([{ "type": "text", "text": told["result"] }]));
    }
    let lead = children.iter().find(|child| child["agent_type"] == "lead").unwrap();
    assert_eq!((&lead["tool_use_id"], &lead["status"]), (&json!("toolu_lead"), &json!("completed")));
    let nested = &lead["subagents"][0];
    let log = child_logs(&sandbox)
        .into_iter()
        .find(|log| log.to_string_lossy().contains(lead["agent_id"].as_str().unwrap()));
    let alone = own(&lines(&log.unwrap()));
    let inner = tokens(&nested["usage"]);
    assert_eq!((alone.0 + inner.0, alone.1 + inner.1), tokens(&lead["usage"]));
}

#[test]
fn max_budget_usd_holds_over_the_whole_tree() {
    let sandbox = Sandbox::new();
    priced(&sandbox);
    let server = tree();
    // The nested agent alone spends more than this.
    let flags = ["go", "--allowed-tools", "Agent", "--max-budget-usd", "0.005"];
    let finished = stream(&sandbox, &server, &flags);
    let result = finished.result();
    assert_eq!(result["subtype"], "error_max_budget_usd", "{result:#}");
    let children = result["subagents"].as_array().unwrap();
    assert!(children.iter().any(|child| child["status"] == "failed"), "{children:#?}");
}

#[test]
fn the_log_lines_of_an_agent_name_session_and_agent() {
    let sandbox = Sandbox::new();
    priced(&sandbox);
    let finished = stream(&sandbox, &tree(), &["go", "--allowed-tools", "Agent"]);
    let result = finished.success();
    for log in child_logs(&sandbox) {
        let stem = log.file_stem().unwrap().to_str().unwrap().strip_prefix("agent-").unwrap().to_owned();
        for line in lines(&log) {
            assert_eq!(
                (&line["sessionId"], &line["agentId"]),
                (&result["session_id"], &json!(stem)),
                "{line}"
            );
        }
        let sidecar = std::fs::read_to_string(log.with_extension("meta.json")).unwrap();
        let sidecar: Value = serde_json::from_str(&sidecar).unwrap();
        let child =
            result["subagents"].as_array().unwrap().iter().find(|child| child["agent_id"] == stem).unwrap();
        assert_eq!(sidecar["agentType"], child["agent_type"]);
        assert_eq!(sidecar["toolUseId"], child["tool_use_id"]);
    }
}
