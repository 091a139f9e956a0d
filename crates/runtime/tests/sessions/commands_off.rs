//! A session without commands: text that begins with `/` reaches the model as it is, and no command is announced.

use qoder_runtime::sessions::FirstPrompt;
use serde_json::json;

use crate::hooks::support::{Stage, text};
use crate::sessions::support::to_the_end;

#[tokio::test]
async fn text_that_begins_with_a_slash_reaches_the_model() {
    for prompt in ["/help", "/compact now", "/no-such-command"] {
        let mut stage = Stage::new(json!([text("read it")]));
        stage.options.no_commands = true;
        let ran = to_the_end(&stage, FirstPrompt::Text(prompt.to_owned())).await;
        assert_eq!(ran.end.as_ref().unwrap().result.as_deref(), Some("read it"), "{prompt}");
        assert!(ran.said(prompt), "{:?}", ran.conversation);
        assert_eq!(ran.system("init")[0]["slash_commands"], json!([]));
    }
}

#[tokio::test]
async fn otherwise_it_is_a_command() {
    let stage = Stage::new(json!([text("read it")]));
    let ran = to_the_end(&stage, FirstPrompt::Text("/no-such-command".to_owned())).await;
    assert!(ran.end.unwrap().errors[0].contains("no command /no-such-command"));
}
