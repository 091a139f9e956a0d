//! A client of a simulation: it sends a message, follows the session from wherever it was, answers what waits, and now and then stops
//! a turn.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use qoder_server::fanout::{Deltas, Next};
use qoder_server::model::admission;
use qoder_server::model::dialect::Dialect;
use qoder_server::model::event::Event;
use qoder_server::model::ids::SessionId;
use qoder_server::model::inputs;
use qoder_server::model::session::SessionBody;
use qoder_server::store::{CreateSession, DbError, Done, NewSessionRow, SendInputs, Sender};
use serde_json::{Value, json};

use super::world::{TURNS, World};
use crate::support::{keyed, message, plain};

/// How long a stream is followed before it is opened again, at a machine that answers.
const FOLLOWED: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);

/// What a client knows of its session.
pub struct Known {
    pub session: SessionId,
    pub key: i64,
    /// Every event that it saw, in order.
    pub seen: Vec<Event>,
    /// Messages that were accepted.
    pub accepted: usize,
    /// Turns that ended.
    pub ended: usize,
}

pub struct Client {
    world: Arc<World>,
    known: Known,
    requests: usize,
}

impl Client {
    pub async fn begin(world: Arc<World>, number: usize) -> Self {
        let known = loop {
            if let Some((session, key)) = create(&world, number).await {
                break Known { session, key, seen: Vec::new(), accepted: 0, ended: 0 };
            }
            tokio::time::sleep(PAUSE).await;
        };
        let folder: String = known.session.0.iter().map(|byte| format!("{byte:02x}")).collect();
        let workspace = world.config.workspaces.join(folder).join("workspace");
        std::fs::create_dir_all(&workspace).unwrap();
        std::fs::write(workspace.join("out.md"), "delivered").unwrap();
        Self { world, known, requests: 0 }
    }

    /// Works until everything works again and its turn is over.
    pub async fn work(mut self) -> Known {
        while self.known.accepted < TURNS {
            let is_last = self.world.is_calm.load(Ordering::SeqCst);
            if self.send(message("go")).await {
                self.known.accepted += 1;
                let ended = self.known.ended;
                while self.known.ended == ended {
                    self.follow(ended).await;
                }
            }
            if is_last {
                break;
            }
            tokio::time::sleep(Duration::from_millis(self.world.draw(100))).await;
        }
        self.known
    }

    /// Sends until it counts or is refused; true when it counts. A key makes it count once.
    async fn send(&mut self, event: Value) -> bool {
        self.requests += 1;
        let key = format!("{}-{}", self.known.session, self.requests);
        loop {
            let machine = self.world.front();
            let offered = machine.node.offer();
            let read = inputs::read(&json!({ "events": [event] }), &HashMap::new()).unwrap();
            let actions = read.iter().filter_map(|input| input.effect.action()).collect();
            let send = SendInputs {
                tenant: self.world.tenant,
                session: self.known.session,
                admit: Box::new(move |head, actions| {
                    admission::admit(head, actions, (Dialect::Qoder, "t"), read)
                }),
                actions,
                sender: Sender {
                    by: "ana".to_owned(),
                    token: "t".to_owned(),
                    node: offered.is_some().then(|| machine.node.id()),
                },
            };
            let once = keyed(&key, "d", "a");
            // A server does it to its end, also when the client has hung up.
            let done = tokio::spawn(async move {
                match machine.store.db.send_inputs(send, once).await {
                    Ok(Done::Now(sent, _)) => {
                        machine.node.sent(sent, offered);
                        Ok(true)
                    }
                    Ok(Done::Before(_)) => Ok(true),
                    Err(DbError::Refused(_)) => Ok(false),
                    Err(error) => Err(error),
                }
            });
            match tokio::time::timeout(FOLLOWED, done).await {
                Ok(Ok(Ok(counts))) => return counts,
                Ok(_) | Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Follows the session on one machine for a while, or until a turn more has ended.
    async fn follow(&mut self, ended: usize) {
        let machine = self.world.front();
        let until = tokio::time::Instant::now() + FOLLOWED;
        let mut subscription = machine.hub.subscribe(self.known.key, Deltas::default());
        subscription.start_after(self.known.seen.last().map_or(0, |event| event.seq));
        while self.known.ended == ended && tokio::time::Instant::now() < until {
            let events = match subscription.advance() {
                Next::Send(_) | Next::Preview(_) | Next::Deleted => {
                    // What a frame says is read from the store below, like what came before it.
                    Vec::new()
                }
                Next::Read => {
                    let after = self.known.seen.last().map_or(0, |event| event.seq);
                    let read = machine.store.db.events_after(self.known.key, after, 50);
                    let Ok(Ok(Some(events))) = tokio::time::timeout(FOLLOWED, read).await else { return };
                    let last = events.last().map_or(subscription.cursor(), |event| event.seq);
                    subscription.have_read(last, events.len() < 50);
                    events
                }
                Next::Wait => {
                    drop(tokio::time::timeout_at(until, subscription.changed()).await);
                    Vec::new()
                }
            };
            for event in events {
                self.see(event).await;
            }
        }
    }

    async fn see(&mut self, event: Event) {
        let id = event.id.to_string();
        let body: Value = serde_json::from_str(&event.body).unwrap_or_default();
        let kind = event.kind.clone();
        self.known.seen.push(event);
        match kind.as_str() {
            "session.status_idle" => {
                if let Some("end_turn" | "retries_exhausted") = body["stop_reason"]["type"].as_str() {
                    self.known.ended += 1;
                }
            }
            "agent.custom_tool_use" => {
                self.send(json!({ "type": "user.custom_tool_result", "custom_tool_use_id": id, "content": "sunny" })).await;
            }
            "agent.tool_use" if body["evaluated_permission"] == "ask" => {
                if self.world.draw(12) == 0 {
                    self.send(json!({ "type": "user.interrupt" })).await;
                    return;
                }
                let word = if self.world.draw(3) == 0 { "deny" } else { "allow" };
                let answer = json!({ "type": "user.tool_confirmation", "tool_use_id": id, "result": word });
                // Two people answer now and then; the first one counts.
                if self.send(answer.clone()).await && self.world.draw(3) == 0 {
                    assert!(!self.send(answer).await, "a second answer counts");
                }
            }
            _ => {}
        }
    }
}

async fn create(world: &World, number: usize) -> Option<(SessionId, i64)> {
    let id = SessionId::random();
    let create = CreateSession {
        tenant: world.tenant,
        agent: world.agent,
        agent_version: None,
        environment: world.environment,
        make: Box::new(move |agent, _| {
            Ok(NewSessionRow {
                id,
                title: Some(format!("session {number}")),
                metadata: Default::default(),
                body: SessionBody {
                    members: Vec::new(),
                    agent: agent.body.clone(),
                    resources: Vec::new(),
                    budget: None,
                    vault_ids: Vec::new(),
                },
                sealed: None,
            })
        }),
        inputs: None,
        sender: Sender { by: "ana".to_owned(), token: "t".to_owned(), node: None },
        run: None,
    };
    let machine = world.front();
    let created = machine.store.db.create_session(create, plain());
    match tokio::time::timeout(FOLLOWED, created).await {
        Ok(Ok(Done::Now((row, _), _))) => Some((row.session.id, row.session.key)),
        _ => None,
    }
}
