//! Plugins of a session in process: the option, what each brings, and reading them anew.

use std::path::Path;

use qoder_agent_sdk::{Message, QoderSdkClient, SdkPluginConfig, query};
use serde_json::json;

use crate::support::{Place, all, within};

fn agent(place: &Place, folder: &Path, name: &str) {
    let text = format!("---\nname: {name}\ndescription: Does {name}.\n---\nDo it.\n");
    place.0.write(folder.join("agents").join(format!("{name}.md")), text);
}

#[tokio::test]
async fn plugins_load_local_plugins_in_order() {
    let place = Place::new();
    agent(&place, &place.0.project().join("one"), "first");
    agent(&place, &place.0.home().join("two"), "second");
    let plugins =
        vec![SdkPluginConfig::Local("one".into()), SdkPluginConfig::Local(place.0.home().join("two"))];
    let options = place.playing(&json!([{ "text": "done" }])).plugins(plugins);
    let messages = all(query("Hi.", options).unwrap()).await;
    let init = messages.iter().find_map(|message| match message {
        Message::System(message) => message.init(),
        _ => None,
    });
    let init = serde_json::to_value(init.unwrap()).unwrap();
    assert_eq!((&init["plugins"][0]["name"], &init["plugins"][1]["name"]), (&json!("one"), &json!("two")));
    let agents = init["agents"].as_array().unwrap();
    assert!(agents.contains(&json!("first")) && agents.contains(&json!("second")), "{init}");
}

#[tokio::test]
async fn list_plugins_and_reload_plugins() {
    let place = Place::new();
    let (demo, late) = (place.0.project().join("demo"), place.0.project().join("late"));
    agent(&place, &demo, "first");
    let plugins = vec![SdkPluginConfig::Local(demo.clone()), SdkPluginConfig::Local(late.clone())];
    let mut client = QoderSdkClient::new(place.playing(&json!([{ "text": "done" }])).plugins(plugins));
    within(client.connect(None)).await.unwrap();
    let rows = within(client.list_plugins()).await.unwrap();
    assert_eq!((rows.len(), &rows[0]["path"], &rows[0]["parts"]["agents"]), (1, &json!(demo), &json!(1)));
    assert_eq!(within(client.reload_plugins()).await.unwrap()["error_count"], 1);
    agent(&place, &late, "second");
    let told = within(client.reload_plugins()).await.unwrap();
    assert_eq!((&told["error_count"], &told["plugins"][1]["name"]), (&json!(0), &json!("late")));
    assert!(client.supported_agents().iter().any(|agent| agent.name == "second"), "the list is fresh");
    within(client.disconnect()).await.unwrap();
}
