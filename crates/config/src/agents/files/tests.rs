//! The head of an agent's file: every field with what it takes and what it does not, and what is reported with which line.

use std::path::Path;
use std::time::Duration;

use qoder_types::PermissionMode;
use serde_json::json;

use super::*;
use crate::agents::{Isolation, MemoryScope, ServerReference};

fn read(head: &str, origin: &Origin) -> Result<(String, AgentDefinition), Problem> {
    let text = format!("---\nname: a\ndescription: d\n{head}\n---\n\nThe prompt.\n");
    read_document(&Document::parse(&text, Path::new("a.md"), origin).unwrap())
}

fn agent(head: &str) -> AgentDefinition {
    read(head, &Origin::User).unwrap_or_else(|problem| panic!("{head}: {problem}")).1
}

fn texts(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn name_and_description_are_required_and_the_body_is_the_prompt() {
    let (name, agent) = read("", &Origin::Project).unwrap();
    assert_eq!((name.as_str(), agent.description.as_str(), agent.prompt.as_str()), ("a", "d", "The prompt."));
    assert_eq!((agent.origin, agent.path.as_deref()), (Origin::Project, Some(Path::new("a.md"))));
    for (text, told) in [
        ("just text", "a.md: `name` is missing"),
        ("---\nname: a\n---\nP", "a.md: `description` is missing"),
        ("---\nname: a\ndescription: \"\"\n---\nP", "a.md:3: `description` is empty"),
        ("---\nname: 7\ndescription: d\n---\nP", "a.md:2: `name` has to be a text"),
        ("---\nname: a/b\ndescription: d\n---\nP", "a.md:2: the name has the character '/'"),
        ("---\nname: a\ndescription: d\n---\n \n", "a.md: there is no text below the head"),
    ] {
        let document = Document::parse(text, Path::new("a.md"), &Origin::User).unwrap();
        let problem = read_document(&document).unwrap_err().to_string();
        assert!(problem.starts_with(told), "{problem}");
    }
}

#[test]
fn tools_are_a_list_or_a_comma_string_and_a_star_is_all() {
    for head in ["tools: Read, Grep", "tools: [Read, Grep]", "tools:\n  - Read\n  - Grep"] {
        assert_eq!(agent(head).tools, Some(texts(&["Read", "Grep"])), "{head}");
    }
    assert!(agent("tools: '*'").has("Bash"));
    assert!(agent("").has("Bash") && agent("").tools.is_none());
    assert_eq!(agent("tools: []").tools, Some(Vec::new()));
    assert_eq!(
        agent("tools: Read, Agent(Explore, Plan)").tools,
        Some(texts(&["Read", "Agent(Explore, Plan)"]))
    );
    assert_eq!(agent("disallowedTools: Bash, Write").disallowed_tools, texts(&["Bash", "Write"]));
    assert!(!agent("disallowedTools: [Bash]").has("Bash"));
}

#[test]
fn every_field_is_read() {
    assert_eq!(agent("model: inherit").other_model(), None);
    assert_eq!(agent("model: lite").other_model(), Some("lite"));
    for word in ["low", "medium", "high", "xhigh", "max"] {
        assert_eq!(agent(&format!("effort: {word}")).effort.as_deref(), Some(word));
    }
    assert_eq!(agent("effort: 2048").thinking_tokens, Some(2048));
    assert_eq!(agent("permissionMode: plan").permission_mode, Some(PermissionMode::Plan));
    assert_eq!(agent("maxTurns: 6").max_turns, Some(6));
    assert_eq!(agent("timeoutMins: 1.5").timeout, Some(Duration::from_secs(90)));
    assert_eq!(agent("temperature: 0.2").temperature, Some(0.2));
    assert_eq!(agent("skills: review, kit:echo").skills, texts(&["review", "kit:echo"]));
    assert!(agent("background: true").background && !agent("").background);
    assert_eq!(agent("isolation: worktree").isolation, Some(Isolation::Worktree));
    assert_eq!(agent("initialPrompt: go").initial_prompt.as_deref(), Some("go"));
    for word in ["red", "blue", "green", "yellow", "purple", "orange", "pink", "cyan"] {
        assert_eq!(agent(&format!("color: {word}")).color.as_deref(), Some(word));
    }
    let hooks =
        agent("hooks:\n  Stop:\n    - hooks:\n        - {type: command, command: 'true'}").hooks.unwrap();
    assert_eq!(hooks["Stop"][0]["hooks"][0]["command"], "true");
    assert!(agent("kind: local").notes.is_empty());
}

#[test]
fn mcp_servers_are_names_and_inline_objects() {
    let name = |name: &str| ServerReference::Name(name.to_owned());
    assert_eq!(agent("mcpServers: kb, orders").mcp_servers, Some(vec![name("kb"), name("orders")]));
    let inline = ServerReference::Inline { name: "own".to_owned(), config: json!({ "command": "run" }) };
    assert_eq!(
        agent("mcpServers:\n  - kb\n  - own: {command: run}").mcp_servers,
        Some(vec![name("kb"), inline.clone()])
    );
    assert_eq!(agent("mcpServers:\n  own: {command: run}").mcp_servers, Some(vec![inline]));
}

#[test]
fn a_wrong_value_is_named_with_its_line() {
    for (head, told) in [
        ("tools: 3", "`tools` is 3; accepted is a list"),
        ("tools: [3]", "`tools` has 3 in it"),
        ("tools:", "`tools` is empty; write []"),
        ("tools: Bash(ls:*)", "`Bash(ls:*)` is no tool"),
        ("model: [a]", "`model` is a list; accepted is a text"),
        ("effort: heroic", "`effort` is \"heroic\"; accepted are low"),
        ("effort: 0", "`effort` is 0"),
        ("effort: -3", "`effort` is -3"),
        ("permissionMode: free", "`permissionMode` is \"free\""),
        ("maxTurns: 0", "`maxTurns` is 0"),
        ("maxTurns: many", "`maxTurns` is \"many\""),
        ("timeoutMins: 0", "`timeoutMins` is 0"),
        ("timeoutMins: 1e300", "`timeoutMins` is 1e"),
        ("temperature: 3", "`temperature` is 3"),
        ("skills: ../../etc", "is no name of a skill"),
        ("skills: [a/b]", "is no name of a skill"),
        ("mcpServers: 3", "`mcpServers` is 3"),
        ("mcpServers: [{own: {}}]", "`mcpServers`"),
        ("mcpServers: [{own: {type: sdk, name: x}}]", "a file cannot bring one"),
        ("hooks: [a]", "`hooks` is a list"),
        ("hooks: {Never: []}", "`Never` is no event of an agent"),
        ("hooks: {Stop: {}}", "`Stop` has to be a list"),
        ("memory: all", "`memory` is \"all\"; accepted is user, project, local"),
        ("background: yes please", "`background` is \"yes please\""),
        ("isolation: container", "`isolation` is \"container\"; accepted is worktree"),
        ("initialPrompt: {a: b}", "`initialPrompt` is an object"),
        ("color: mauve", "`color` is \"mauve\""),
        ("kind: remote", "remote agents are not supported"),
        ("kind: other", "`kind` is \"other\""),
    ] {
        let problem = read(head, &Origin::User).unwrap_err();
        assert_eq!(problem.line, Some(4), "{head}: {problem}");
        assert!(problem.text.contains(told), "{head}: {problem}");
    }
}

#[test]
fn unknown_keys_and_unknown_tools_are_ignored_with_a_note() {
    let agent = agent("shape: round\ntools: [Read, Raed]\nmemory: user");
    let notes = agent.notes.join("\n");
    assert_eq!((agent.notes.len(), agent.memory), (2, Some(MemoryScope::User)));
    for told in ["`shape` is not known", "`Raed` of `tools` is no known tool"] {
        assert!(notes.contains(told), "{notes}");
    }
}

#[test]
fn agents_of_plugins_lose_hooks_servers_and_mode_and_keep_isolation() {
    let head = "hooks: {Stop: []}\nmcpServers: [kb]\npermissionMode: acceptEdits\nisolation: worktree";
    let (_, agent) = read(head, &Origin::Plugin("kit".to_owned())).unwrap();
    assert_eq!((&agent.hooks, &agent.mcp_servers, agent.permission_mode), (&None, &None, None));
    assert_eq!(agent.isolation, Some(Isolation::Worktree));
    assert_eq!(agent.notes.len(), 3, "{:?}", agent.notes);
}

#[test]
fn what_the_flag_holds_has_only_the_listed_keys() {
    let base = json!({ "description": "d", "prompt": "p" });
    let flag = |more: Value| {
        let mut value = base.clone();
        for (key, field) in more.as_object().unwrap() {
            value[key] = field.clone();
        }
        AgentDefinition::from_flag(&json!({ "r": value }).to_string())
    };
    let all = json!({ "tools": ["Read"], "disallowedTools": ["Bash"], "mcpServers": ["kb"], "model": "lite",
        "effort": "low", "color": "red", "maxTurns": 3, "initialPrompt": "go", "skills": ["s"],
        "permissionMode": "plan" });
    assert_eq!(flag(all).unwrap()[0].0, "r");
    for (more, told) in [
        (
            json!({ "background": true }),
            "agents.r.background: there is no such key here; accepted are description",
        ),
        (json!({ "name": "x" }), "agents.r.name: "),
        (json!({ "tools": "Read" }), "agents.r.tools: is \"Read\""),
        (json!({ "prompt": " " }), "agents.r.prompt: is empty"),
        (json!({ "maxTurns": 0 }), "agents.r.maxTurns: is 0"),
    ] {
        let problem = flag(more).unwrap_err();
        assert!(problem.to_string().starts_with(told), "{problem}");
    }
    for text in ["[]", "no", "{\"a\": 3}", "{\"a/b\": {}}", "{\"a\": {}}"] {
        assert!(AgentDefinition::from_flag(text).is_err(), "{text}");
    }
}

#[test]
fn a_place_is_a_folder_or_a_single_file_and_need_not_exist() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap().trim_start_matches('.');
        std::fs::write(&path, format!("---\nname: {name}\ndescription: d\n---\nP\n")).unwrap();
        path
    };
    let single = write("s.md");
    write("kit/b.md");
    write("kit/a.md");
    write("kit/deeper/d.md");
    write("kit/.h.md");
    let names = |path: PathBuf, inside: Option<&Path>| -> (Vec<String>, usize) {
        let mut problems = Vec::new();
        let place = Place { origin: Origin::Plugin("kit".to_owned()), path };
        let found = read_place(&place, inside, &mut problems);
        (found.into_iter().map(|(name, _)| name).collect(), problems.len())
    };
    let kit = folder.path().join("kit");
    assert_eq!(names(kit.clone(), Some(&kit)), (texts(&["a", "b"]), 0));
    assert_eq!(names(single.clone(), None), (texts(&["s"]), 0));
    assert_eq!(names(single, Some(&kit)), (Vec::new(), 1));
    assert_eq!(names(folder.path().join("nothing"), None), (Vec::new(), 0));
}
