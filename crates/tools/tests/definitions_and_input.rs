//! What the tools advertise and how they meet input that is not what they advertised.
//! The schema is what the model sees, so its shape is part of the behaviour; bad input is answered by naming the field,
//! and declaring accesses never fails whatever the input is.

use crate::common::Bench;
use qoder_core::ports::Access;
use qoder_tools::{ToolSettings, built_in};
use serde_json::{Value, json};

#[test]
fn the_tools_come_in_their_order() {
    let tools = built_in(&ToolSettings::default());
    let names: Vec<&str> = tools.iter().map(|tool| tool.definition().name.as_str()).collect();
    let expected = [
        "Bash",
        "Read",
        "Edit",
        "Write",
        "Glob",
        "Grep",
        "TodoWrite",
        "TaskOutput",
        "TaskStop",
        "WebFetch",
        "WebSearch",
        "NotebookEdit",
        "EnterWorktree",
        "ExitWorktree",
        "AskUserQuestion",
        "ExitPlanMode",
        "ListMcpResources",
        "ReadMcpResource",
        "Mcp",
        "ImageGen",
    ];
    assert_eq!(names, expected);
}

#[test]
fn every_schema_is_closed_documented_and_lean() {
    for tool in built_in(&ToolSettings::default()) {
        let definition = tool.definition();
        let schema = &definition.input_schema;
        assert!(definition.description.len() > 80, "{}", definition.name);
        assert_eq!(schema["type"], "object", "{schema}");
        // Hosts add fields of their own to a plan.
        let open = definition.name == "ExitPlanMode";
        assert_eq!(schema["additionalProperties"], open, "{schema}");
        assert!(schema.get("$schema").is_none() && schema.get("title").is_none(), "{schema}");
        let text = schema.to_string();
        assert!(!text.contains("\"null\"") && !text.contains("$ref") && !text.contains("$defs"), "{text}");
        for (field, property) in schema["properties"].as_object().unwrap() {
            let described = property["description"].as_str().is_some_and(|text| text.len() > 5);
            assert!(described, "{}.{field} is not described", definition.name);
            assert!(property.get("type").is_some() || property.get("enum").is_some(), "{field}: {property}");
        }
    }
}

#[test]
fn only_required_fields_are_required() {
    let required = |name: &str| {
        let tools = built_in(&ToolSettings::default());
        let tool = tools.iter().find(|tool| tool.definition().name == name).unwrap();
        tool.definition().input_schema["required"].clone()
    };
    assert_eq!(required("Bash"), json!(["command"]));
    assert_eq!(required("Read"), json!(["file_path"]));
    assert_eq!(required("Edit"), json!(["file_path", "old_string", "new_string"]));
    assert_eq!(required("Write"), json!(["file_path", "content"]));
    assert_eq!(required("Glob"), json!(["pattern"]));
    assert_eq!(required("Grep"), json!(["pattern"]));
    assert_eq!(required("TodoWrite"), json!(["todos"]));
    assert_eq!(required("TaskOutput"), json!(["task_id"]));
    assert_eq!(required("TaskStop"), json!(null));
    assert_eq!(required("WebFetch"), json!(["url", "prompt"]));
    assert_eq!(required("WebSearch"), json!(["query"]));
    assert_eq!(required("NotebookEdit"), json!(["notebook_path", "new_source"]));
    assert_eq!(required("EnterWorktree"), Value::Null);
    assert_eq!(required("ExitWorktree"), json!(["action"]));
    assert_eq!(required("AskUserQuestion"), Value::Null);
    assert_eq!(required("ExitPlanMode"), Value::Null);
    assert_eq!(required("ListMcpResources"), Value::Null);
    assert_eq!(required("ReadMcpResource"), json!(["uri"]));
    assert_eq!(required("Mcp"), Value::Null);
    assert_eq!(required("ImageGen"), json!(["prompt", "file_path"]));
}

#[tokio::test]
async fn bad_input_is_answered_by_naming_the_field() {
    let bench = Bench::new();
    for (tool, input, field) in [
        ("Bash", json!({}), "command"),
        ("Bash", json!({ "command": 5 }), "command"),
        ("Bash", json!({ "command": "true", "timeout": -5 }), "timeout"),
        ("Bash", json!({ "command": "true", "timeout": 1e30 }), "timeout"),
        ("Bash", json!({ "command": "true", "run_in_background": "perhaps" }), "run_in_background"),
        ("Read", json!({ "file_path": "x", "offset": "many" }), "offset"),
        ("Read", json!({ "file_path": ["x"] }), "file_path"),
        ("Edit", json!({ "file_path": "x", "old_string": "a" }), "new_string"),
        ("Write", json!({ "file_path": "x", "content": null }), "content"),
        ("Glob", json!({ "path": "." }), "pattern"),
        ("Grep", json!({ "pattern": "x", "output_mode": "nice" }), "output_mode"),
        ("Grep", json!({ "pattern": "x", "-A": 1.5 }), "-A"),
        ("TodoWrite", json!({ "todos": [{ "content": "x", "status": "later" }] }), "todos[0].status"),
        ("WebFetch", json!({ "url": "https://example.com" }), "prompt"),
        ("WebFetch", json!({ "url": 5, "prompt": "x" }), "url"),
        ("WebFetch", json!({ "url": "https://example.com", "prompt": " " }), "prompt"),
        ("WebSearch", json!({ "query": "x" }), "query"),
        ("WebSearch", json!({ "query": "xx", "allowed_domains": "a" }), "allowed_domains"),
        ("NotebookEdit", json!({ "notebook_path": "x" }), "new_source"),
        ("NotebookEdit", json!({ "notebook_path": "x", "new_source": "", "edit_mode": "move" }), "edit_mode"),
        ("NotebookEdit", json!({ "notebook_path": "x", "new_source": "", "cell_id": {} }), "cell_id"),
        ("EnterWorktree", json!({ "name": 5 }), "name"),
        ("ExitWorktree", json!({ "action": "burn" }), "action"),
        ("ExitWorktree", json!({ "action": "keep", "discard_changes": 3 }), "discard_changes"),
        ("AskUserQuestion", json!({}), "questions"),
        ("AskUserQuestion", json!({ "questions": [{ "question": "x?" }] }), "questions[0]"),
        ("ExitPlanMode", json!({ "plan": 5 }), "plan"),
        ("ReadMcpResource", json!({ "server": "x" }), "uri"),
        ("ReadMcpResource", json!({ "uri": "x" }), "server_name"),
        ("Mcp", json!({ "server_name": "x", "tool_name": "y", "arguments": 5 }), "arguments"),
        ("Mcp", json!({ "server_name": "x" }), "tool_name"),
        ("Mcp", json!({ "tool_name": "y" }), "server_name"),
        ("Mcp", json!({ "action": "guess" }), "action"),
        ("ImageGen", json!({ "prompt": "x" }), "file_path"),
        ("ImageGen", json!({ "prompt": "x", "file_path": "a.png", "count": "many" }), "count"),
        ("ImageGen", json!({ "prompt": " ", "file_path": "a.png" }), "prompt"),
        ("ImageGen", json!({ "prompt": "x", "file_path": "a.bmp" }), "file_path"),
    ] {
        let text = bench.fail(tool, input.clone()).await;
        assert!(text.contains(field), "{tool} {input}: {text}");
    }
    for tool in built_in(&ToolSettings::default()) {
        let tool = tool.definition().name.as_str();
        for input in [json!("{\"broken"), json!(null), json!([1]), json!(7)] {
            assert!(bench.fail(tool, input).await.contains("JSON object"));
        }
    }
}

#[tokio::test]
async fn numbers_and_flags_may_be_sloppy() {
    let bench = Bench::new();
    bench.write("f", "one\ntwo\nthree\n");
    let input = json!({ "file_path": bench.text_path("f"), "offset": "2", "limit": 1.0 });
    let text = bench.succeed("Read", input).await;
    assert!(text.starts_with("     2\ttwo\n"), "{text}");
    let input = json!({ "pattern": "TWO", "-i": "true", "output_mode": "content", "path": null });
    assert_eq!(bench.succeed("Grep", input).await, "f:2:two");
}

#[test]
fn accesses_are_total_and_name_what_is_touched() {
    let tools = built_in(&ToolSettings::default());
    for tool in &tools {
        for input in [json!(null), json!("x"), json!([]), json!({}), json!({ "file_path": 5, "command": {} })]
        {
            assert!(!tool.accesses(&input).is_empty(), "{}", tool.definition().name);
        }
    }
    let accesses = |name: &str, input: Value| {
        tools.iter().find(|tool| tool.definition().name == name).unwrap().accesses(&input)
    };
    assert_eq!(accesses("Bash", json!({ "command": "ls" })), [Access::Command("ls".into())]);
    assert_eq!(accesses("Read", json!({ "file_path": "a" })), [Access::Read("a".into())]);
    let both = [Access::Read("a".into()), Access::Edit("a".into())];
    assert_eq!(accesses("Edit", json!({ "file_path": "a" })), both);
    assert_eq!(accesses("Write", json!({ "file_path": "a" })), [Access::Edit("a".into())]);
    assert_eq!(accesses("Glob", json!({ "pattern": "/etc/*.d/x" })), [Access::Read("/etc".into())]);
    assert_eq!(accesses("Grep", json!({ "pattern": "x" })), [Access::Read(".".into())]);
    assert_eq!(accesses("TodoWrite", json!({})), [Access::Internal]);
    assert_eq!(accesses("TaskOutput", json!({ "task_id": "x" })), [Access::Internal]);
    assert_eq!(accesses("TaskOutput", json!({ "task_id": "x", "output": null })), [Access::Internal]);
    assert_eq!(accesses("TaskOutput", json!({ "task_id": "x", "output": "rm\n" })), [Access::Other]);
    assert_eq!(accesses("TaskStop", json!([])), [Access::Internal]);
    let fetched = [Access::Fetch("https://a.example".into())];
    assert_eq!(accesses("WebFetch", json!({ "url": "https://a.example" })), fetched);
    assert_eq!(accesses("WebSearch", json!({ "query": "x" })), [Access::Other]);
    assert_eq!(accesses("NotebookEdit", json!({ "notebook_path": "a" })), both);
    assert_eq!(accesses("EnterWorktree", json!({})), [Access::Other]);
    assert_eq!(accesses("ExitWorktree", json!({ "action": "keep" })), [Access::Internal]);
    assert_eq!(accesses("ExitWorktree", json!({ "action": "remove" })), [Access::Other]);
    assert_eq!(accesses("AskUserQuestion", json!({})), [Access::Person]);
    assert_eq!(accesses("ExitPlanMode", json!({})), [Access::Person]);
    assert_eq!(accesses("ListMcpResources", json!({})), [Access::Resource { server: None, lists: true }]);
    let read = Access::Resource { server: Some("x".to_owned()), lists: false };
    assert_eq!(accesses("ReadMcpResource", json!({ "server": "x", "uri": "y" })), [read]);
    assert_eq!(accesses("Mcp", json!({})), [Access::Other]);
    let files =
        [Access::Edit("d/a-1.png".into()), Access::Edit("d/a-2.png".into()), Access::Read("b.png".into())];
    let input = json!({ "file_path": "d/a.png", "count": "2", "image_path": "b.png" });
    assert_eq!(accesses("ImageGen", input), files);
    assert_eq!(accesses("ImageGen", json!({ "file_path": "a.png", "count": 1e9 })).len(), 10);
}
