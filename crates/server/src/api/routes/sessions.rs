//! Agents, environments, sessions and their threads.

use super::operation::{Operation, Route, at};
use crate::api::{agents, environments, events, session_resources, sessions as handlers};

/// What many lists can be asked for.
const LISTED: &str = "include_archived:boolean created_at[gte]:time created_at[lte]:time";
const EVENTS: &str = "order:'asc|desc' type:string types[]:[string] created_at[gt]:time created_at[gte]:time
    created_at[lt]:time created_at[lte]:time";

fn to(summary: &'static str) -> Operation {
    Operation::new(summary)
}

pub(super) fn agents() -> Vec<Route> {
    vec![
        at("/agents")
            .get(agents::list, to("List agents").query(LISTED).page("Agent"))
            .post(agents::create, to("Create an agent").takes("NewAgent").gives("Agent")),
        at("/agents/{id}")
            .get(agents::read, to("Read an agent").query("version:integer").gives("Agent"))
            .update(agents::update, to("Change an agent").takes("AgentUpdate").gives("Agent")),
        at("/agents/{id}/versions").get(agents::versions, to("List versions of an agent").page("Agent")),
        at("/agents/{id}/archive").post(agents::archive, to("Archive an agent").gives("Agent")),
        at("/environments")
            .get(environments::list, to("List environments").query(LISTED).page("Environment"))
            .post(
                environments::create,
                to("Create an environment").takes("NewEnvironment").gives("Environment"),
            ),
        at("/environments/{id}")
            .get(environments::read, to("Read an environment").gives("Environment"))
            .update(
                environments::update,
                to("Change an environment").takes("EnvironmentUpdate").gives("Environment"),
            )
            .delete(environments::delete, to("Delete an environment").gives("Deleted")),
        at("/environments/{id}/archive")
            .post(environments::archive, to("Archive an environment").gives("Environment")),
    ]
}

/// The queue that workers of a self-hosted environment serve.
pub(super) fn work() -> Vec<Route> {
    use environments::work_items;
    const BEAT: &str = "desired_ttl_seconds:integer expected_last_heartbeat:string";
    vec![
        at("/environments/{id}/work").get(work_items::list, to("List work items").page("Work")),
        at("/environments/{id}/work/poll").get(
            work_items::poll,
            to("Poll for a work item; null without one")
                .query("block_ms:integer reclaim_older_than_ms:integer")
                .gives("PolledWork"),
        ),
        at("/environments/{id}/work/stats")
            .get(work_items::stats, to("Read numbers of the queue").gives("WorkStats")),
        at("/environments/{id}/work/{work}")
            .get(work_items::read, to("Read a work item").gives("Work"))
            .post(
                work_items::update,
                to("Change the metadata of a work item").takes("WorkUpdate").gives("Work"),
            ),
        at("/environments/{id}/work/{work}/ack")
            .post(work_items::acknowledge, to("Take a work item").gives("Work")),
        at("/environments/{id}/work/{work}/heartbeat")
            .post(work_items::beat, to("Keep a work item").query(BEAT).gives("WorkHeartbeat")),
        at("/environments/{id}/work/{work}/stop")
            .post(work_items::stop, to("Stop a work item").takes("WorkStop").gives("Work")),
    ]
}

pub(super) fn sessions() -> Vec<Route> {
    let listed = to("List sessions")
        .query("agent_id:string agent_version:integer deployment_id:string memory_store_id:string statuses[]:[string] order:'asc|desc'")
        .query("include_archived:boolean created_at[gt]:time created_at[gte]:time created_at[lt]:time created_at[lte]:time");
    let follow = || {
        to("Follow events of a session; `Last-Event-ID` resumes").query("event_deltas[]:[string]").events()
    };
    vec![
        at("/sessions")
            .get(handlers::list, listed.page("Session"))
            .post(handlers::create, to("Create a session").takes("NewSession").gives("Session")),
        at("/sessions/{id}")
            .get(handlers::read, to("Read a session").gives("Session"))
            .update(handlers::update, to("Change a session").takes("SessionUpdate").gives("Session"))
            .delete(handlers::delete, to("Delete a session").gives("Deleted")),
        at("/sessions/{id}/cancel")
            .post(handlers::cancel, to("Stop the turn of a session").gives("Canceled").statuses(&[200, 202])),
        at("/sessions/{id}/archive").post(handlers::archive, to("Archive a session").gives("Session")),
        at("/sessions/{id}/resources")
            .get(session_resources::list, to("List resources of a session").page("SessionResource"))
            .post(
                session_resources::add,
                to("Add a resource to a session").takes("NewResource").gives("SessionResource"),
            ),
        at("/sessions/{id}/resources/{resource}")
            .get(session_resources::read, to("Read a resource of a session").gives("SessionResource"))
            .post(
                session_resources::update,
                to("Replace the credential of a repository").takes("ResourceUpdate").gives("SessionResource"),
            )
            .delete(session_resources::delete, to("Remove a resource from a session").gives("Deleted")),
        at("/sessions/{id}/events")
            .get(events::list, to("List events of a session").query(EVENTS).page("Event"))
            .post(events::send, to("Send events to a session").takes("NewEvents").gives("SentEvents")),
        at("/sessions/{id}/events/stream").get(events::stream::open, follow()),
        at("/sessions/{id}/stream").get(events::stream::open, follow()),
    ]
}

pub(super) fn threads() -> Vec<Route> {
    use events::threads;
    let follow = || to("Follow events of a thread").events();
    vec![
        at("/sessions/{id}/threads")
            .get(threads::list, to("List threads of a session").query("statuses[]:[string]").page("Thread")),
        at("/sessions/{id}/threads/{thread}").get(threads::read, to("Read a thread").gives("Thread")),
        at("/sessions/{id}/threads/{thread}/archive")
            .post(threads::archive, to("Archive a thread").gives("Thread")),
        at("/sessions/{id}/threads/{thread}/events")
            .get(threads::events, to("List events of a thread").query(EVENTS).page("Event")),
        at("/sessions/{id}/threads/{thread}/stream").get(threads::stream, follow()),
        at("/sessions/{id}/threads/{thread}/events/stream").get(threads::stream, follow()),
    ]
}
