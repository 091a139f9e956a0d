//! Reads the events of a session on a server: first those on record, then those that follow. A connection that is cut is opened
//! again behind the last event, so that nothing is missed and nothing is read twice.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use eventsource_stream::Eventsource;
use futures::{FutureExt, StreamExt};
use qoder_protocol::{BoxFuture, EventStream, SessionEvent};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use url::Url;

use super::deliveries::Deliveries;
use super::http::{ServerClient, ServerError};
use super::translate::Translator;

/// Events that wait to be read by the front; then the server is read no further.
const BACKLOG: usize = 256;
/// Events of one page.
const PAGE: &str = "1000";
/// The pauses before a connection is opened again.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// A stream that says nothing for so long is taken for dead: the server writes a comment every 15 seconds.
const SILENCE: Duration = Duration::from_secs(60);

/// What is read: the session itself, or one of its threads.
pub struct Source {
    /// The server.
    pub server: Arc<ServerClient>,
    /// What this front sent.
    pub deliveries: Arc<Deliveries>,
    /// The path below that of the session; empty for the session.
    pub thread: Option<String>,
}

impl Source {
    fn events(&self) -> Url {
        match &self.thread {
            None => self.server.address.below(&["events"]),
            Some(thread) => self.server.address.below(&["threads", thread, "events"]),
        }
    }

    fn stream(&self) -> Url {
        let mut url = match &self.thread {
            None => self.server.address.below(&["events", "stream"]),
            Some(thread) => self.server.address.below(&["threads", thread, "stream"]),
        };
        let deltas = [("event_deltas[]", "agent.message"), ("event_deltas[]", "agent.thinking")];
        url.query_pairs_mut().extend_pairs(deltas);
        url
    }
}

/// The events, as the front reads them. They are read on the thread of sessions until this is dropped.
pub struct RemoteEvents {
    arriving: mpsc::Receiver<SessionEvent>,
    task: AbortHandle,
    is_over: bool,
}

impl RemoteEvents {
    /// Begins to read.
    pub fn start(source: Source, translator: Translator, runtime: &Handle) -> Self {
        let (sender, arriving) = mpsc::channel(BACKLOG);
        let reader = Reader { source, translator, sender, last: None };
        let task = runtime.spawn(reader.run()).abort_handle();
        Self { arriving, task, is_over: false }
    }
}

impl Drop for RemoteEvents {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl EventStream for RemoteEvents {
    fn next(&mut self) -> BoxFuture<'_, SessionEvent> {
        async move {
            if self.is_over {
                return std::future::pending().await;
            }
            let event = self.arriving.recv().await.unwrap_or(SessionEvent::Ended { problem: None });
            self.is_over = matches!(event, SessionEvent::Ended { .. });
            event
        }
        .boxed()
    }

    fn try_next(&mut self) -> Option<SessionEvent> {
        let event = self.arriving.try_recv().ok()?;
        self.is_over = matches!(event, SessionEvent::Ended { .. });
        Some(event)
    }
}

struct Reader {
    source: Source,
    translator: Translator,
    sender: mpsc::Sender<SessionEvent>,
    /// The last event on record that was read.
    last: Option<String>,
}

/// Why reading stops for good.
enum Stop {
    /// The front is gone, or was told that nothing follows.
    Over,
    /// This went wrong.
    Failed(ServerError),
}

impl From<ServerError> for Stop {
    fn from(error: ServerError) -> Self {
        Self::Failed(error)
    }
}

impl Reader {
    async fn run(mut self) {
        let stop = match self.replay().await {
            Ok(()) => self.follow().await,
            Err(stop) => stop,
        };
        if let Stop::Failed(error) = stop {
            // The front may be gone.
            let _ = self.sender.send(SessionEvent::Ended { problem: Some(error.to_string()) }).await;
        }
    }

    /// Everything on record.
    async fn replay(&mut self) -> Result<(), Stop> {
        self.list(&HashSet::new()).await?;
        self.send(SessionEvent::CaughtUp).await
    }

    /// Reads the pages behind the last event. Answers with what it read.
    async fn list(&mut self, known: &HashSet<String>) -> Result<HashSet<String>, Stop> {
        let mut read = HashSet::new();
        let mut page: Option<String> = None;
        loop {
            let mut url = self.source.events();
            url.query_pairs_mut().append_pair("limit", PAGE).append_pair("order", "asc");
            if let Some(page) = &page {
                url.query_pairs_mut().append_pair("page", page);
            }
            let answer = self.source.server.get(url).await?;
            for event in answer["data"].as_array().into_iter().flatten() {
                if !event["id"].as_str().is_some_and(|id| known.contains(id)) {
                    self.take(event).await?;
                }
                read.extend(event["id"].as_str().map(str::to_owned));
            }
            page = answer["next_page"].as_str().map(str::to_owned);
            if page.is_none() {
                return Ok(read);
            }
        }
    }

    /// Everything that follows, over as many connections as it takes.
    async fn follow(&mut self) -> Stop {
        let (mut pause, mut is_lost) = (FIRST_PAUSE, false);
        loop {
            let problem = match self.connection(&mut is_lost, &mut pause).await {
                Ok(()) => ServerError::Unreachable("the connection was closed".to_owned()),
                Err(Stop::Failed(error)) if error.is_passing() => error,
                Err(stop) => return stop,
            };
            if !is_lost {
                is_lost = true;
                let notice = self.translator.notice(&format!("{problem}; trying again."));
                if let Err(stop) = self.send(notice).await {
                    return stop;
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// One connection, to its end.
    async fn connection(&mut self, is_lost: &mut bool, pause: &mut Duration) -> Result<(), Stop> {
        let response = self.source.server.stream(self.source.stream(), self.last.as_deref()).await?;
        if std::mem::take(is_lost) {
            let notice = self.translator.notice("The server is reached again.");
            self.send(notice).await?;
        }
        *pause = FIRST_PAUSE;
        // Without a place to begin behind, what was stored before the stream began is listed once more.
        let listed = if self.last.is_none() { self.list(&HashSet::new()).await? } else { HashSet::new() };
        let mut events = response.bytes_stream().eventsource();
        loop {
            let frame = tokio::time::timeout(SILENCE, events.next()).await;
            let silent = || ServerError::Unreachable("it has been silent for a minute".to_owned());
            let Some(frame) = frame.map_err(|_| silent())? else { return Ok(()) };
            let frame = frame.map_err(|error| ServerError::Unreachable(error.to_string()))?;
            let Ok(event) = serde_json::from_str::<Value>(&frame.data) else { continue };
            if frame.event == "error" {
                let message = event["error"]["message"].as_str().unwrap_or("the stream failed").to_owned();
                return Err(ServerError::Unreachable(message).into());
            }
            if !event["id"].as_str().is_some_and(|id| listed.contains(id)) {
                self.take(&event).await?;
            }
        }
    }

    async fn take(&mut self, event: &Value) -> Result<(), Stop> {
        let sender = self.source.deliveries.sender_of(event).await;
        for event in self.translator.translate(event, sender) {
            self.send(event).await?;
        }
        // Pieces have no place on record.
        if let Some(id) = event["id"].as_str() {
            self.last = Some(id.to_owned());
        }
        Ok(())
    }

    async fn send(&self, event: SessionEvent) -> Result<(), Stop> {
        let is_end = matches!(event, SessionEvent::Ended { .. });
        match self.sender.send(event).await {
            Ok(()) if !is_end => Ok(()),
            Ok(()) | Err(_) => Err(Stop::Over),
        }
    }
}
