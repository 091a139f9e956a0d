//! `docs/models.md` lists exactly the profiles and fields that the program has. `UPDATE_DOCS=1` writes the tables anew.

use std::path::Path;

use qoder_models::{Profile, profiles};
use serde_json::{Value, json};

const NONE: &str = "–";

/// A value for people: words without quotes, and a dash for nothing.
fn cell(value: &Value) -> String {
    match value {
        Value::Array(items) if items.is_empty() => NONE.to_owned(),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<String>>().join(" "),
        Value::String(text) => format!("`{text}`"),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Null => NONE.to_owned(),
        other => other.to_string(),
    }
}

/// The fields that the table has a column for.
const COLUMNS: [(&str, &str); 9] = [
    ("neverSent", "never sent"),
    ("outputLimit", "output limit"),
    ("callIds", "ids of calls"),
    ("images", "images"),
    ("rolesAlternate", "roles alternate"),
    ("userAfterTool", "user after tool"),
    ("reasoning", "reasoning back"),
    ("thinkTags", "`<think>`"),
    ("modelsList", "list of models"),
];

fn profile_table() -> String {
    let mut table = String::from("| profile | server |");
    for (_, title) in COLUMNS {
        table.push_str(&format!(" {title} |"));
    }
    table.push_str(&format!("\n|{}\n", " --- |".repeat(COLUMNS.len() + 2)));
    for profile in profiles() {
        let row = serde_json::to_value(profile).unwrap();
        table.push_str(&format!("| `{}` | {} |", profile.name, profile.title));
        for (field, _) in COLUMNS {
            let text = match field {
                "callIds" => {
                    let ids = profile.call_ids;
                    let further = if ids.further.is_empty() {
                        String::new()
                    } else {
                        format!(" `{}`", ids.further.replace('|', "\\|"))
                    };
                    format!("{}–{}{further}", ids.shortest, ids.longest)
                }
                field => cell(&row[field]),
            };
            table.push_str(&format!(" {text} |"));
        }
        table.push('\n');
    }
    table
}

/// What each field means, from the documentation of the type.
fn field_table() -> String {
    let source =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/profile/mod.rs")).unwrap();
    let body = source.split("pub struct Profile {").nth(1).unwrap().split("\n}\n").next().unwrap();
    let (mut table, mut meaning) = (String::new(), String::new());
    for line in body.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("/// ") {
            meaning = if meaning.is_empty() { text.to_owned() } else { format!("{meaning} {text}") };
        } else if let Some(name) = line.strip_prefix("pub ").and_then(|rest| rest.split(':').next()) {
            if !["name", "title"].contains(&name) {
                table.push_str(&format!("| `{}` | {meaning} |\n", camel(name)));
            }
            meaning.clear();
        }
    }
    table
}

fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |all, part| format!("{all}{}{}", part[..1].to_uppercase(), &part[1..]))
}

#[test]
fn the_page_lists_the_profiles_and_fields_the_program_has() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/models.md");
    let mut page = std::fs::read_to_string(&path).unwrap();
    for (name, table) in [("profiles", profile_table()), ("fields", field_table())] {
        let (start, end) = (format!("<!-- {name}: start -->\n"), format!("<!-- {name}: end -->"));
        let from = page.find(&start).unwrap() + start.len();
        let to = page.find(&end).unwrap();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            page = format!("{}{table}{}", &page[..from], &page[to..]);
        } else {
            assert_eq!(&page[from..to], table, "run the test again with UPDATE_DOCS=1");
        }
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, page).unwrap();
    }
}

#[test]
fn every_provider_of_the_issue_has_a_row_and_every_field_is_documented() {
    let names: Vec<&str> = profiles().iter().map(|profile| profile.name).collect();
    for name in [
        "anthropic",
        "bedrock",
        "vertex",
        "openai",
        "azure",
        "openrouter",
        "mistral",
        "deepseek",
        "kimi",
        "groq",
        "cerebras",
        "xai",
        "together",
        "gemini",
        "litellm",
        "vllm",
        "sglang",
        "llamacpp",
        "ollama",
        "lmstudio",
        "unknown-messages",
        "unknown-chat",
        "unknown-responses",
    ] {
        assert!(names.contains(&name), "{name}");
    }
    let fields = serde_json::to_value::<Profile>(profiles()[0]).unwrap();
    let table = field_table();
    for field in fields.as_object().unwrap().keys().filter(|name| !["name", "title"].contains(&name.as_str()))
    {
        assert!(table.contains(&format!("| `{field}` | ")), "{field} of {}", json!(fields));
    }
}
