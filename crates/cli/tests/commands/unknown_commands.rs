//! Prompts that begin with a slash but name no known command: a name without a definition is refused and no model is asked; a path stays
//! a prompt.

use qoder_testkit::Reply;

use crate::commands::support::{asked, bodies, model, trusted, turn};

#[test]
fn an_unknown_command_is_refused() {
    let server = model(vec![Reply::text("never")]);
    let error = turn(&trusted(), &server, &["/reveiw src"]).error();
    assert_eq!(error, "There is no command /reveiw. /help lists the commands.");
    assert!(bodies(&server).is_empty());
}

#[test]
fn a_path_stays_a_prompt() {
    for prompt in ["/etc/hosts is broken", "/tmp is full", "/ what is this", "// a comment"] {
        let server = model(vec![Reply::text("done")]);
        assert_eq!(turn(&trusted(), &server, &[prompt]).result()["result"], "done", "{prompt}");
        assert_eq!(asked(&bodies(&server)[0]), prompt);
    }
}
