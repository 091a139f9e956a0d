//! Conditional skills activate only when a path pattern matches: the model hears of one once it has worked on such a
//! file, and only once.

use qoder_testkit::Reply;
use serde_json::json;

use crate::commands::support::{asked, bodies, call, model, skill, trusted, turn};

#[test]
fn a_conditional_skill_is_told_when_a_path_matches() {
    let sandbox = trusted();
    skill(&sandbox, "sql", "paths:\n  - \"*.sql\"\n", "THE TEXT");
    skill(&sandbox, "pdf", "", "x");
    sandbox.write("notes.txt", "n");
    sandbox.write("db/a.sql", "select 1");
    let read = |id: &str, file: &str| call(id, "Read", json!({ "file_path": file }));
    let server = model(vec![
        read("toolu_1", "notes.txt"),
        read("toolu_2", "db/a.sql"),
        read("toolu_3", "db/a.sql"),
        Reply::text("done"),
    ]);
    assert_eq!(turn(&sandbox, &server, &["go"]).result()["result"], "done");
    let requests = bodies(&server);
    for request in &requests[..2] {
        assert!(!request.to_string().contains("Knows sql"), "{request:#}");
    }
    assert!(asked(&requests[2]).contains("- `sql`: Knows sql."), "{:#}", requests[2]);
    assert_eq!(requests[3].to_string().matches("Knows sql").count(), 1);
}
