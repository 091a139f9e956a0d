//! Recordings: what was recorded plays back to the same
//! replies, without keys; a recording that does not fit, or
//! cannot be written, says so.

use qoder_models::{ModelOptions, resolve};
use qoder_types::{ContentBlock, ModelFailureClass, Role};

use crate::support::{Server, anthropic_text, ask, events, message, request, status, user};

#[tokio::test]
async fn a_recording_plays_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tape.jsonl");
    let server = Server::start(vec![
        status(529, &[("retry-after-ms", "1")], "busy"),
        events(&anthropic_text("first é")),
        events(&anthropic_text("second")),
    ])
    .await;
    let mut options = server.options();
    options.record = Some(path.clone());
    let model = resolve(&options).unwrap();
    let later =
        || request(vec![user("a"), message(Role::Assistant, vec![ContentBlock::text("first é")]), user("b")]);
    let recorded_first = ask(&model, request(vec![user("a")])).await;
    let recorded_second = ask(&model, later()).await;
    drop(model);

    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 3);
    assert!(!text.contains("sk-ant-secret-1"), "a key was recorded");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    let replayed =
        ModelOptions { model: Some(format!("replay:{}", path.display())), ..ModelOptions::default() };
    let model = resolve(&replayed).unwrap();
    assert_eq!(model.facts().name, "claude-sonnet-4-5");
    let first = ask(&model, request(vec![user("a")])).await;
    assert_eq!(first.reply().content, recorded_first.reply().content);
    assert_eq!(first.reply().usage, recorded_first.reply().usage);
    assert_eq!(first.partials, recorded_first.partials);
    assert_eq!(first.retries.len(), 1, "the failed attempt plays back as well");
    let second = ask(&model, later()).await;
    assert_eq!(second.reply().content, recorded_second.reply().content);

    let third = ask(&model, later()).await;
    assert_eq!(third.failure().class, ModelFailureClass::Configuration);
    assert!(third.failure().message.contains("3 responses"), "{}", third.failure().message);
}

#[tokio::test]
async fn a_recording_that_does_not_fit_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tape.jsonl");
    let server = Server::start(vec![events(&anthropic_text("x"))]).await;
    let mut options = server.options();
    options.record = Some(path.clone());
    ask(&resolve(&options).unwrap(), request(vec![user("a")])).await.reply();
    options.model = Some(format!("replay:{}", path.display()));
    let told = ask(&resolve(&options).unwrap(), request(vec![user("a"), user("b")])).await;
    assert!(told.failure().message.contains("2 messages"), "{}", told.failure().message);

    std::fs::write(&path, "{}\nnot json\n").unwrap();
    let error = resolve(&options).err().unwrap();
    assert_eq!(error.code(), "model_unreadable_file");
    assert!(error.to_string().contains("line 1"), "{error}");
}

#[tokio::test]
async fn a_path_that_cannot_be_written_is_an_error_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(vec![events(&anthropic_text("x"))]).await;
    let mut options = server.options();
    for path in [folder.path().to_owned(), folder.path().join("missing").join("tape.jsonl")] {
        options.record = Some(path.clone());
        let error = resolve(&options).err().unwrap();
        assert_eq!(error.code(), "model_unwritable_file");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        assert!(error.hint().contains("--record"), "{}", error.hint());
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_recording_behind_a_byte_order_mark_plays_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tape.jsonl");
    let server = Server::start(vec![events(&anthropic_text("x"))]).await;
    let mut options = server.options();
    options.record = Some(path.clone());
    ask(&resolve(&options).unwrap(), request(vec![user("a")])).await.reply();
    let tape = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("\u{feff}{tape}")).unwrap();
    let replayed =
        ModelOptions { model: Some(format!("replay:{}", path.display())), ..ModelOptions::default() };
    let told = ask(&resolve(&replayed).unwrap(), request(vec![user("a")])).await;
    assert_eq!(told.reply().content, [ContentBlock::text("x")]);
}
