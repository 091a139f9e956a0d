//! Legacy server-sent events: one long GET that brings the messages of the server, whose first event names the address
//! that ours are posted to. That address must be on the same origin; a token is sent nowhere else.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use http::header::{ACCEPT, CONTENT_TYPE};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use sse_stream::Sse;
use url::Url;

use super::requests::{HttpProblem, Requests, is_of_type, status_problem};
use super::{EVENTS, other_content};
use crate::remote::wire;

/// Events before the one that names the address, and events in a row that are no messages.
const MOST_NOISE: u32 = 1_000;

type Stream = BoxStream<'static, Result<Sse, sse_stream::Error>>;

/// An open stream and the address that answers go to.
pub(in crate::remote) struct EventTransport {
    requests: Requests,
    endpoint: Arc<str>,
    events: Option<Stream>,
    ready: VecDeque<RxJsonRpcMessage<RoleClient>>,
    noise: u32,
}

impl EventTransport {
    /// Opens the stream and waits for the address.
    pub(in crate::remote) async fn open(url: &Url, requests: Requests) -> Result<Self, HttpProblem> {
        let sent = requests.send(|client| client.get(url.as_str()).header(ACCEPT, EVENTS));
        let response = sent.await?;
        if !response.status().is_success() {
            return Err(status_problem(response).await.0);
        }
        if !is_of_type(&response, EVENTS) {
            return Err(other_content(&response));
        }
        // A redirect may have led elsewhere on the same origin.
        let base = response.url().clone();
        let mut events = requests.events(response).boxed();
        for _ in 0..MOST_NOISE {
            let event = match events.next().await {
                Some(Ok(event)) => event,
                Some(Err(error)) => return Err(HttpProblem::Broken(error.to_string())),
                None => break,
            };
            if event.event.as_deref() == Some("endpoint") {
                let endpoint = endpoint(&base, event.data.as_deref().unwrap_or_default())?;
                return Ok(Self {
                    requests,
                    endpoint,
                    events: Some(events),
                    ready: VecDeque::new(),
                    noise: 0,
                });
            }
        }
        Err(HttpProblem::Unreadable("the stream names no address for our messages".to_owned()))
    }

    /// Takes in one event; false when there were too many that are no messages.
    fn take(&mut self, event: &Sse) -> bool {
        let data = event.data.as_deref().unwrap_or_default();
        let is_message = matches!(event.event.as_deref(), None | Some("message")) && !data.trim().is_empty();
        if !is_message {
            return true;
        }
        match wire::read(data.as_bytes()) {
            Ok(messages) => {
                self.noise = 0;
                self.ready.extend(messages);
            }
            Err(_) => self.noise += 1,
        }
        self.noise <= MOST_NOISE
    }
}

/// The address that a server names, resolved against that of its stream.
fn endpoint(base: &Url, named: &str) -> Result<Arc<str>, HttpProblem> {
    let refused =
        |problem: &str| HttpProblem::Unreadable(format!("the stream names {problem} for our messages"));
    let url = base.join(named.trim()).map_err(|_| refused("something that is no address"))?;
    if url.origin() != base.origin() {
        return Err(refused(&format!("another host, {},", url.host_str().unwrap_or("nowhere"))));
    }
    Ok(Arc::from(url.as_str()))
}

impl Transport<RoleClient> for EventTransport {
    type Error = HttpProblem;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let (requests, endpoint) = (self.requests.clone(), Arc::clone(&self.endpoint));
        let body = serde_json::to_vec(&item).map(Bytes::from);
        async move {
            let body = body.map_err(|error| HttpProblem::Unreadable(error.to_string()))?;
            let sent = requests.send(|client| {
                client.post(&*endpoint).header(CONTENT_TYPE, "application/json").body(body.clone())
            });
            let response = sent.await?;
            if response.status().is_success() { Ok(()) } else { Err(status_problem(response).await.0) }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            match self.events.as_mut()?.next().await {
                Some(Ok(event)) if self.take(&event) => {}
                Some(Ok(_)) => {
                    self.requests.fault.fail(format!(
                        "the server sent {MOST_NOISE} events that are no messages of the protocol"
                    ));
                    return None;
                }
                Some(Err(error)) => {
                    self.requests.fault.fail(format!("the server's stream broke: {error}"));
                    return None;
                }
                None => {
                    self.requests.fault.fail("the server ended its stream");
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.events.take();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_stays_on_the_origin_of_the_stream() {
        let base = Url::parse("https://a.test:8443/x/sse?k=1").unwrap();
        let at = |named: &str| {
            endpoint(&base, named).map(|url| url.to_string()).map_err(|error| error.to_string())
        };
        assert_eq!(at("/messages?s=1").unwrap(), "https://a.test:8443/messages?s=1");
        assert_eq!(at("messages").unwrap(), "https://a.test:8443/x/messages");
        assert_eq!(at("https://a.test:8443/m").unwrap(), "https://a.test:8443/m");
        for elsewhere in
            ["https://b.test/m", "//b.test/m", "http://a.test:8443/m", "https://a.test/m", "file:///m"]
        {
            assert!(at(elsewhere).unwrap_err().contains("another host"), "{elsewhere}");
        }
    }
}
