//! The first things a new user tries, without a key or network: the phrases that the offline model understands, with
//! real tools behind them and the real gate before them.

use qoder_testkit::Sandbox;

use crate::sessions::support::{ID, assert_success, run, tool_results};

fn repository() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("README.md", "# Widget\n\nMakes widgets.\n\nMore later.\n");
    sandbox.write("Cargo.toml", "[package]\nname = \"widget\"\n");
    sandbox.write("src/main.rs", "fn main() {\n    // TODO: widgets\n}\n");
    sandbox.write("src/lib.rs", "// nothing\n");
    sandbox
}

#[test]
fn a_file_is_shown() {
    let sandbox = repository();
    let shown = run(&sandbox, &["-p", "show me README.md"]).exits(0);
    assert!(shown.stdout.contains("# Widget\n\nMakes widgets."), "{}", shown.stdout);
    let below = run(&sandbox, &["-p", "show me main.rs"]).exits(0);
    assert!(below.stdout.contains("fn main()"), "a bare name is looked for: {}", below.stdout);
    let missing = run(&sandbox, &["-p", "show me nothing.txt"]).exits(0);
    assert!(missing.stdout.contains("The call of Read failed"), "{}", missing.stdout);
}

#[test]
fn text_is_found() {
    let sandbox = repository();
    let found = run(&sandbox, &["-p", "find every TODO in src"]).exits(0);
    assert!(found.stdout.contains("main.rs") && found.stdout.contains("TODO: widgets"), "{}", found.stdout);
    assert!(!found.stdout.contains("lib.rs"));
    let none = run(&sandbox, &["-p", "find every FIXME in src"]).exits(0);
    assert_eq!(none.stdout, "`FIXME` does not occur in src.\n");
}

#[test]
fn lines_are_counted() {
    let sandbox = repository();
    let counted = run(&sandbox, &["-p", "how many lines does main.rs have?"]).exits(0);
    assert!(counted.stdout.trim_end().ends_with("src/main.rs has 3 lines."), "{}", counted.stdout);
    let none = run(&sandbox, &["-p", "how many lines does other.rs have?"]).exits(0);
    assert_eq!(none.stdout, "There is no file named other.rs here.\n");
}

#[test]
fn text_is_replaced_only_when_edits_are_accepted() {
    let sandbox = repository();
    let prompt = "replace \"widgets\" with \"gadgets\" in src/main.rs";
    let denied =
        run(&sandbox, &["-p", prompt, "--session-id", ID, "--output-format", "json"]).exits(0).json();
    assert!(denied["result"].as_str().unwrap().contains("--permission-mode acceptEdits"), "{denied}");
    let denials = denied["permission_denials"].as_array().unwrap();
    assert_eq!(denials.len(), 1);
    assert_eq!(denials[0]["tool_name"], "Edit");
    assert_eq!(denials[0]["tool_input"]["new_string"], "gadgets");
    assert!(denials[0]["tool_use_id"].is_string());
    let text = || std::fs::read_to_string(sandbox.project().join("src/main.rs")).unwrap();
    assert!(text().contains("TODO: widgets"));
    let outcomes: Vec<String> = tool_results(&sandbox, ID).into_iter().map(|result| result.0).collect();
    assert_eq!(outcomes, ["completed", "denied"]);

    let replaced = run(&sandbox, &["-p", prompt, "--permission-mode", "acceptEdits"]).exits(0);
    assert!(replaced.stdout.starts_with("Replaced `widgets` with `gadgets` in src/main.rs."));
    assert_eq!(text(), "fn main() {\n    // TODO: gadgets\n}\n");
}

#[test]
fn a_command_runs_with_a_rule_that_allows_it() {
    let sandbox = repository();
    let denied = run(&sandbox, &["-p", "run touch made"]).exits(1);
    assert!(denied.stderr.contains("nothing ran: the call of the model was denied"), "{}", denied.stderr);
    assert!(denied.stdout.contains("--allowed-tools 'Bash(touch made)'"), "{}", denied.stdout);
    assert!(!sandbox.project().join("made").exists());
    let allowed = run(&sandbox, &["-p", "run touch made", "--allowed-tools", "Bash(touch made)"]).exits(0);
    assert!(allowed.stdout.contains("succeeded without output"), "{}", allowed.stdout);
    assert!(sandbox.project().join("made").exists());
    let other = run(&sandbox, &["-p", "run touch other", "--allowed-tools", "Bash(touch made)"]).exits(1);
    assert!(other.stdout.contains("was not allowed"), "{}", other.stdout);
    assert!(!sandbox.project().join("other").exists());
    let failed = run(&sandbox, &["-p", "run false", "--allowed-tools", "Bash"]).exits(0);
    assert!(failed.stdout.contains("The call of Bash failed"), "{}", failed.stdout);
}

#[test]
fn a_repository_is_described() {
    let sandbox = repository();
    let arguments = ["-p", "what does this repository do", "--session-id", ID, "--output-format", "json"];
    let described = run(&sandbox, &arguments).exits(0).json();
    let text = described["result"].as_str().unwrap().to_owned();
    assert_success(&described, ID, &text);
    for expected in ["> # Widget", "> Makes widgets.", "name = \"widget\"", "- src/", "- README.md"] {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
}

#[test]
fn any_tool_is_called_with_json() {
    let sandbox = repository();
    let called =
        run(&sandbox, &["-p", "call Read with {\"file_path\": \"Cargo.toml\", \"limit\": 1}"]).exits(0);
    assert!(called.stdout.starts_with("Read returned:") && called.stdout.contains("[package]"));
    assert!(!called.stdout.contains("name ="), "{}", called.stdout);
    let wrong = run(&sandbox, &["-p", "call Read with {\"path\": 1}"]).exits(0);
    assert!(wrong.stdout.contains("file_path"), "the result names what is missing: {}", wrong.stdout);
    let unknown = run(&sandbox, &["-p", "call Nothing with {}"]).exits(0);
    assert!(unknown.stdout.contains("no tool `Nothing`"), "{}", unknown.stdout);
}

#[test]
fn what_is_not_understood_is_answered_with_what_is() {
    let sandbox = repository();
    let answer = run(&sandbox, &["-p", "compose a sonnet about the sea"]).exits(0);
    for expected in ["I did not understand", "not a language model", "`help`", "ANTHROPIC_API_KEY"] {
        assert!(answer.stdout.contains(expected), "{expected} is not in {}", answer.stdout);
    }
    assert_eq!(answer.stdout.lines().count(), 2, "{}", answer.stdout);
    let told: Vec<&str> =
        answer.stderr.lines().filter(|line| !line.starts_with("note: the built-in")).collect();
    assert!(told.is_empty(), "nothing is wrong: {told:?}");
    let help = run(&sandbox, &["-p", "help"]).exits(0);
    assert!(
        help.stdout.contains("show me README.md") && help.stdout.contains("Tools on offer"),
        "{}",
        help.stdout
    );
}

#[test]
fn the_questions_of_the_first_hour_are_answered_from_files_and_git() {
    let sandbox = repository();
    let answer = |prompt: &str, flags: &[&str]| {
        let mut arguments = vec!["-p", prompt];
        arguments.extend(flags);
        run(&sandbox, &arguments).exits(0).stdout
    };
    let hello = answer("hello", &[]);
    assert!(hello.starts_with("Hello.") && hello.lines().count() == 2, "{hello}");
    let summary = answer("summarize README.md", &[]);
    assert!(summary.contains("README.md has") && summary.contains("Makes widgets."), "{summary}");
    assert!(summary.contains("- Widget"), "{summary}");
    let functions = answer("list the functions in src/main.rs", &[]);
    assert!(
        functions.contains("1 function in src/main.rs") && functions.contains("line 1: fn main()"),
        "{functions}"
    );
    let tests = answer("how do I run the tests", &[]);
    assert!(tests.contains("`cargo test` (Cargo.toml)"), "{tests}");
    // Git is not asked in a folder that is not trusted; the newest files are named.
    let changes = answer("what changed recently", &[]);
    assert!(changes.contains("README.md"), "{changes}");
    let git = |arguments: &[&str]| {
        let mut command = sandbox.command("git");
        command.args(["-c", "user.name=n", "-c", "user.email=e@example.com"]).args(arguments);
        assert!(Sandbox::finish(command).status.success(), "{arguments:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "Make the first widget"]);
    sandbox.write("new.txt", "x");
    let changes = answer("what changed recently", &["--trust"]);
    assert!(changes.contains("Make the first widget") && changes.contains("?? new.txt"), "{changes}");
}
