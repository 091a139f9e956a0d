//! `docs/tools.md` lists exactly the tools that a session has, with their inputs, what they are and what the gate
//! judges, as the tools themselves say it. `UPDATE_DOCS=1` writes both tables anew. What the gate judges is found by
//! asking each tool about inputs made from its schema, in which every text is the name of its field.

use std::collections::BTreeMap;
use std::path::Path;

use qoder_core::ports::{Access, Tool};
use qoder_types::ReplayClass;
use serde_json::{Map, Value, json};

use super::{Options, Setup};
use crate::callbacks::Callbacks;
use crate::engine::Engine;

/// What a session in an empty folder is driven with.
fn engine() -> Engine {
    let folder = tempfile::tempdir().unwrap();
    let environment = BTreeMap::from([("HOME".to_owned(), folder.path().display().to_string())]);
    let options = Options {
        cwd: folder.path().to_path_buf(),
        environment,
        model: Some("offline".to_owned()),
        // ImageGen exists where there is an image model.
        settings: Some(json!({ "model": { "image": "offline" } }).to_string()),
        ..Options::default()
    };
    Setup::prepare(options).unwrap().engine(Callbacks::default()).unwrap()
}

fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn overview(engine: &Engine) -> String {
    let mut table = String::from(
        "| tool | what it does | hints | after a crash | the gate judges |\n| --- | --- | --- | --- | --- |\n",
    );
    for name in engine.toolbox.names() {
        let tool = engine.toolbox.get(&name).unwrap();
        let description = &tool.definition().description;
        let first = description.split("\n\n").next().unwrap();
        let judged = judged(&*tool);
        let (hints, replay) = (hints(&*tool), replay(&*tool));
        table.push_str(&format!("| `{name}` | {} | {hints} | {replay} | {judged} |\n", cell(first)));
    }
    table
}

fn inputs(engine: &Engine) -> String {
    let mut table =
        String::from("| tool | field | type | needed | meaning |\n| --- | --- | --- | --- | --- |\n");
    for name in engine.toolbox.names() {
        let tool = engine.toolbox.get(&name).unwrap();
        let schema = &tool.definition().input_schema;
        for (field, shape) in schema["properties"].as_object().unwrap() {
            let needed = if required(schema).contains(&field.as_str()) { "yes" } else { "" };
            let meaning = shape["description"].as_str().unwrap_or("–");
            table.push_str(&format!(
                "| `{name}` | `{field}` | {} | {needed} | {} |\n",
                kind(shape),
                cell(meaning)
            ));
        }
    }
    table
}

fn required(schema: &Value) -> Vec<&str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// A field's type in words: the values of an enumeration, else the JSON type.
fn kind(shape: &Value) -> String {
    if let Some(values) = shape["enum"].as_array() {
        return values
            .iter()
            .map(|value| format!("`{}`", value.as_str().unwrap()))
            .collect::<Vec<_>>()
            .join(", ");
    }
    match shape["type"].as_str() {
        Some("array") => format!("list of {}", kind(&shape["items"])),
        Some("object") => {
            let fields =
                shape["properties"].as_object().map(|fields| fields.keys().cloned().collect::<Vec<_>>());
            fields.map_or_else(|| "object".to_owned(), |fields| format!("object: `{}`", fields.join("`, `")))
        }
        Some(word) => word.to_owned(),
        None => match shape["type"].as_array() {
            Some(words) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
            None => "any".to_owned(),
        },
    }
}

fn hints(tool: &dyn Tool) -> String {
    let hints = tool.annotations();
    let named = [
        (hints.read_only_hint, "read-only"),
        (hints.destructive_hint, "destructive"),
        (hints.open_world_hint, "open-world"),
    ];
    let words: Vec<&str> = named.into_iter().filter_map(|(is, word)| is.then_some(word)).collect();
    if words.is_empty() { "–".to_owned() } else { words.join(", ") }
}

fn replay(tool: &dyn Tool) -> &'static str {
    match tool.replay() {
        ReplayClass::Pure => "runs again",
        ReplayClass::Effectful => "outcome unknown",
        ReplayClass::Resumable => "continues",
    }
}

/// What the gate judges, for every kind of call that the tool itself distinguishes.
fn judged(tool: &dyn Tool) -> String {
    let schema = &tool.definition().input_schema;
    let mut said: Vec<String> = Vec::new();
    for input in samples(schema) {
        let accesses: Vec<String> = tool.accesses(&input).iter().map(in_words).collect();
        let words = accesses.join(" and ");
        if !said.contains(&words) {
            said.push(words);
        }
    }
    said.join("; or ")
}

/// The needed fields alone, all fields, and the needed fields with each value of each enumeration.
fn samples(schema: &Value) -> Vec<Value> {
    let fields = schema["properties"].as_object().unwrap();
    let needed = required(schema);
    let with = |wanted: &dyn Fn(&str) -> bool| -> Map<String, Value> {
        let chosen = fields.iter().filter(|(name, _)| wanted(name));
        chosen.map(|(name, shape)| (name.clone(), sample(name, shape))).collect()
    };
    let least = with(&|name| needed.contains(&name));
    let mut samples = vec![Value::Object(least.clone()), Value::Object(with(&|_| true))];
    for (name, shape) in fields {
        for value in shape["enum"].as_array().into_iter().flatten() {
            let mut input = least.clone();
            input.insert(name.clone(), value.clone());
            samples.push(Value::Object(input));
        }
    }
    samples
}

fn sample(name: &str, shape: &Value) -> Value {
    if let Some(first) = shape["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    match shape["type"].as_str() {
        Some("boolean") => json!(true),
        Some("integer" | "number") => json!(1),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!(name),
    }
}

fn in_words(access: &Access) -> String {
    let shown = |path: &Path| match path.to_str() {
        Some("") | Some(".") => "the working directory".to_owned(),
        _ => format!("`{}`", path.display()),
    };
    match access {
        Access::Read(path) => format!("reading {}", shown(path)),
        Access::Edit(path) => format!("editing {}", shown(path)),
        Access::Command(field) => format!("the command `{field}`"),
        Access::Fetch(field) => format!("the host of `{field}`"),
        Access::Agent(field) => format!("the agent `{field}`"),
        Access::Skill { name, .. } => format!("the skill `{name}`"),
        Access::Resource { lists: true, .. } => "nothing, unless a rule speaks of the server".to_owned(),
        Access::Resource { lists: false, .. } => "the server".to_owned(),
        Access::As(name) => format!("the tool `{name}`"),
        Access::Person => "nothing: a person is asked each time".to_owned(),
        Access::Internal => "nothing: it touches only the session".to_owned(),
        Access::Other => "the tool's name".to_owned(),
    }
}

/// Compares the part of the page between two marks with `table`, or writes it anew.
fn check(mark: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tools.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (start, end) = (format!("<!-- {mark}: start -->\n"), format!("<!-- {mark}: end -->"));
    let (from, to) = (page.find(&start).unwrap() + start.len(), page.find(&end).unwrap());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{}{table}{}", &page[..from], &page[to..])).unwrap();
        return;
    }
    assert_eq!(&page[from..to], table, "run the test again with UPDATE_DOCS=1");
}

#[test]
fn the_page_lists_the_tools_of_a_session_and_their_inputs() {
    let engine = engine();
    check("tools", &overview(&engine));
    check("inputs", &inputs(&engine));
    let readme = include_str!("../../../../README.md");
    assert!(readme.contains(&format!("- {} tools:", engine.toolbox.names().len())), "README.md counts them");
}

#[test]
fn every_tool_has_a_section_of_its_own_or_in_common() {
    let page = include_str!("../../../../docs/tools.md");
    let headings: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    for name in engine().toolbox.names() {
        let named = headings.iter().any(|heading| heading.split([',', ' ']).any(|word| word == name));
        assert!(named, "docs/tools.md has no section about {name}: {headings:?}");
    }
}
