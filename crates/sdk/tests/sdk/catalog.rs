//! Sessions on disk: found, read, named, copied and deleted without being started.

use qoder_agent_sdk::{
    Message, SessionPlace, delete_session, fork_session, get_session_info, get_session_messages,
    get_subagent_messages, list_sessions, list_subagents, query, rename_session, tag_session,
};
use serde_json::json;

use crate::support::{Place, all, result};

async fn session(place: &Place, prompt: &str) -> String {
    let options = place.playing(&json!([{ "text": "one", "repeat": true }]));
    result(&all(query(prompt, options).unwrap()).await).session_id.clone()
}

#[tokio::test]
async fn a_session_is_listed_with_what_it_was_about() {
    let place = Place::new();
    let id = session(&place, "What is this?").await;
    let listed = list_sessions(&place.sessions()).unwrap();
    assert_eq!(listed.len(), 1);
    let info = &listed[0];
    assert_eq!((info.session_id.as_str(), info.summary.as_str()), (id.as_str(), "What is this?"));
    assert_eq!(info.cwd.as_deref(), place.0.project().to_str());
    assert!(info.created_at.is_some() && info.last_modified > 0 && info.file_size > Some(0));
    assert_eq!(get_session_info(&id, &place.sessions()).unwrap().as_ref(), Some(info));
    let everywhere = SessionPlace::default().in_config_dir(place.0.config());
    assert_eq!(list_sessions(&everywhere).unwrap().len(), 1);
    let other = SessionPlace::of(place.0.home()).in_config_dir(place.0.config());
    assert!(list_sessions(&other).unwrap().is_empty());
    assert_eq!(get_session_info("nonsense", &other).unwrap_err().code(), "session_bad_id");
}

#[tokio::test]
async fn messages_come_back_in_order() {
    let place = Place::new();
    let id = session(&place, "Hello?").await;
    let messages = get_session_messages(&id, &place.sessions()).unwrap();
    let kinds: Vec<&str> = messages.iter().map(|message| message.kind.as_str()).collect();
    assert_eq!(kinds, ["user", "assistant"]);
    assert_eq!(messages[0].message["content"], "Hello?");
    assert_eq!(messages[1].message["content"][0]["text"], "one");
    assert!(messages[1].timestamp.is_some());
}

#[tokio::test]
async fn limit_and_offset_take_a_part() {
    let place = Place::new();
    let mut ids = Vec::new();
    for prompt in ["one", "two", "three"] {
        ids.push(session(&place, prompt).await);
        // Clocks of file systems count in milliseconds.
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let list = |place: SessionPlace| -> Vec<String> {
        list_sessions(&place).unwrap().into_iter().map(|info| info.session_id).collect()
    };
    let newest: Vec<String> = ids.iter().rev().cloned().collect();
    assert_eq!(list(place.sessions()), newest);
    assert_eq!(list(place.sessions().offset(1).limit(1)), newest[1..2]);
    let everywhere = SessionPlace::default().in_config_dir(place.0.config());
    assert_eq!(list(everywhere.limit(2)), newest[..2]);
    let messages = get_session_messages(&ids[0], &place.sessions().offset(1).limit(1)).unwrap();
    assert_eq!((messages.len(), messages[0].kind.as_str()), (1, "assistant"));
}

#[tokio::test]
async fn sessions_of_other_worktrees_are_listed_unless_they_are_not_wanted() {
    let place = Place::new();
    let tree = place.0.home().join("tree");
    let git = |arguments: &[&str]| {
        let done =
            std::process::Command::new("git").arg("-C").arg(place.0.project()).args(arguments).output();
        assert!(done.unwrap().status.success(), "{arguments:?}");
    };
    git(&["init", "-q"]);
    git(&["-c", "user.name=n", "-c", "user.email=e@example.com", "commit", "-q", "--allow-empty", "-m", "x"]);
    git(&["worktree", "add", "-q", tree.to_str().unwrap()]);
    let here = session(&place, "Here.").await;
    let options = place.playing(&json!([{ "text": "one", "repeat": true }])).cwd(&tree);
    let there = result(&all(query("There.", options).unwrap()).await).session_id.clone();
    let list = |place: SessionPlace| -> std::collections::BTreeSet<String> {
        list_sessions(&place).unwrap().into_iter().map(|info| info.session_id).collect()
    };
    assert_eq!(list(place.sessions()), [here.clone(), there].into());
    assert_eq!(list(place.sessions().include_worktrees(false)), [here].into());
}

#[tokio::test]
async fn messages_of_the_runtime_are_shown_when_they_are_asked_for() {
    let place = Place::new();
    let id = session(&place, "Hello?").await;
    let last = get_session_messages(&id, &place.sessions()).unwrap().pop().unwrap();
    let boundary = json!({
        "type": "system", "subtype": "compact_boundary", "uuid": "s1", "parentUuid": last.uuid,
        "content": "Conversation compacted", "compactMetadata": { "trigger": "manual", "preTokens": 10 },
    });
    let summary = json!({
        "type": "user", "uuid": "u2", "parentUuid": "s1", "isCompactSummary": true,
        "message": { "role": "user", "content": "Summary." },
    });
    let log = place.0.session_files().remove(0);
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, format!("{text}{boundary}\n{summary}\n")).unwrap();
    let kinds = |place: SessionPlace| -> Vec<String> {
        get_session_messages(&id, &place).unwrap().into_iter().map(|message| message.kind).collect()
    };
    assert!(!kinds(place.sessions()).contains(&"system".to_owned()));
    let with = place.sessions().include_system_messages(true);
    assert!(kinds(with.clone()).contains(&"system".to_owned()), "{:?}", kinds(with.clone()));
    let messages = get_session_messages(&id, &with).unwrap();
    let boundary = messages.iter().find(|message| message.kind == "system").unwrap();
    assert_eq!(boundary.subtype.as_deref(), Some("compact_boundary"));
    assert_eq!(boundary.compact_metadata.as_ref().unwrap()["trigger"], "manual");
}

#[tokio::test]
async fn titles_and_tags_are_kept_and_the_last_one_counts() {
    let place = Place::new();
    let id = session(&place, "Hello?").await;
    let at = place.sessions();
    rename_session(&id, "First", &at).unwrap();
    rename_session(&id, " Second ", &at).unwrap();
    tag_session(&id, Some("exp-1"), &at).unwrap();
    let info = get_session_info(&id, &at).unwrap().unwrap();
    assert_eq!((info.custom_title.as_deref(), info.tag.as_deref()), (Some("Second"), Some("exp-1")));
    assert_eq!(info.summary, "Second");
    tag_session(&id, None, &at).unwrap();
    assert_eq!(get_session_info(&id, &at).unwrap().unwrap().tag, None);
    assert_eq!(rename_session(&id, " ", &at).unwrap_err().code(), "invalid_option");
    let options = place.playing(&json!([{ "text": "one" }, { "text": "two" }])).resume("Second");
    assert_eq!(result(&all(query("Again.", options).unwrap()).await).session_id, id);
}

#[tokio::test]
async fn titles_and_tags_that_no_list_would_find_are_refused() {
    let place = Place::new();
    let id = session(&place, "Hello?").await;
    let (sessions, long) = (place.sessions(), "x".repeat(1001));
    assert_eq!(rename_session(&id, &long, &sessions).unwrap_err().code(), "invalid_option");
    assert_eq!(tag_session(&id, Some(&long), &sessions).unwrap_err().code(), "invalid_option");
    assert_eq!(fork_session(&id, None, Some(&long), &sessions).unwrap_err().code(), "invalid_option");
    assert_eq!(list_sessions(&sessions).unwrap().len(), 1, "a copy that cannot have its title is not made");
    let odd = "\u{1b}".repeat(1000);
    rename_session(&id, &odd, &sessions).unwrap();
    assert_eq!(get_session_info(&id, &sessions).unwrap().unwrap().custom_title, Some(odd));
}

#[tokio::test]
async fn a_copy_has_its_own_id_and_can_be_gone_on_with() {
    let place = Place::new();
    let id = session(&place, "Hello?").await;
    let at = place.sessions();
    let copy = fork_session(&id, None, Some("The copy"), &at).unwrap();
    assert_ne!(copy, id);
    assert_eq!(get_session_info(&copy, &at).unwrap().unwrap().custom_title.as_deref(), Some("The copy"));
    let texts = |id: &str| -> Vec<String> {
        let messages = get_session_messages(id, &at).unwrap();
        messages.iter().map(|message| message.message["content"].to_string()).collect()
    };
    assert_eq!(texts(&copy), texts(&id));
    let options = place.playing(&json!([{ "text": "one" }, { "text": "two" }])).resume(&copy);
    let messages = all(query("Again.", options).unwrap()).await;
    assert_eq!(result(&messages).text(), "two");
    assert_eq!(texts(&id).len(), 2, "the original is as it was");
}

#[tokio::test]
async fn a_copy_may_end_at_a_message() {
    let place = Place::new();
    let id = session(&place, "Hello?").await;
    let at = place.sessions();
    let first = get_session_messages(&id, &at).unwrap().remove(0);
    let copy = fork_session(&id, Some(&first.uuid), None, &at).unwrap();
    let messages = get_session_messages(&copy, &at).unwrap();
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].message, first.message);
    let error = fork_session(&id, Some("nowhere"), None, &at).unwrap_err();
    assert!(error.to_string().starts_with("up_to_message_id: "), "{error}");
}

#[tokio::test]
async fn a_deleted_session_is_gone() {
    let place = Place::new();
    let id = session(&place, "Hello?").await;
    delete_session(&id, &place.sessions()).unwrap();
    assert!(list_sessions(&place.sessions()).unwrap().is_empty());
    assert_eq!(delete_session(&id, &place.sessions()).unwrap_err().code(), "session_not_found");
}

#[tokio::test]
async fn sessions_are_continued_forked_and_forgotten_by_options() {
    let place = Place::new();
    let id = session(&place, "Hello?").await;
    let replies = json!([{ "text": "one" }, { "text": "two" }]);
    let run = |options| async { result(&all(query("Continue.", options).unwrap()).await).clone() };
    let continued = run(place.playing(&replies).continue_conversation(true)).await;
    assert_eq!((continued.session_id.as_str(), continued.text()), (id.as_str(), "two"));
    let wanted = "123e4567-e89b-42d3-a456-426614174000";
    let forked = run(place
        .playing(&json!([{ "text": "x", "repeat": true }]))
        .resume(&id)
        .fork_session(true)
        .session_id(wanted))
    .await;
    assert_eq!(forked.session_id, wanted);
    assert_eq!(list_sessions(&place.sessions()).unwrap().len(), 2);
    run(place.playing(&json!([{ "text": "x" }])).persist_session(false)).await;
    assert_eq!(list_sessions(&place.sessions()).unwrap().len(), 2);
}

#[tokio::test]
async fn a_subagent_has_messages_of_its_own() {
    let place = Place::new();
    let call = json!({ "name": "Agent", "input": { "description": "look", "prompt": "Look around.", "subagent_type": "general-purpose" } });
    let replies = json!([
        { "when": { "turn": 1 }, "toolCalls": [call] },
        { "when": { "purpose": "subagent" }, "text": "I looked." },
        { "text": "done", "repeat": true },
    ]);
    let messages = all(query("Go.", place.playing(&replies).allowed_tools(["Agent"])).unwrap()).await;
    let id = result(&messages).session_id.clone();
    let agents = list_subagents(&id, &place.sessions()).unwrap();
    assert_eq!(agents.len(), 1, "{messages:#?}");
    let messages = get_subagent_messages(&id, &agents[0], &place.sessions()).unwrap();
    assert_eq!(messages.last().unwrap().message["content"][0]["text"], "I looked.");
    let error = get_subagent_messages(&id, "absent", &place.sessions()).unwrap_err();
    assert!(error.to_string().starts_with("agent_id: "), "{error}");
    assert!(Message::from_value(serde_json::to_value(&messages[0]).unwrap()).session_id().is_some());
}
