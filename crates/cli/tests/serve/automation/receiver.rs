//! A receiver of webhooks: it answers with the statuses that it is given, the last one for ever, and keeps what it got.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::Value;

use crate::serve::support::PATIENCE;

/// A notice that arrived.
#[derive(Debug, Clone)]
pub struct Notice {
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl Notice {
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// The type of what happened.
    pub fn kind(&self) -> String {
        self.body["data"]["type"].as_str().unwrap_or_default().to_owned()
    }
}

#[derive(Default)]
struct State {
    notices: Mutex<Vec<Notice>>,
    arrived: Condvar,
}

pub struct Receiver {
    pub url: String,
    state: Arc<State>,
}

impl Receiver {
    pub fn answering(statuses: &[u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let (state, statuses) = (Arc::new(State::default()), statuses.to_vec());
        let kept = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                receive(stream, &kept, &statuses);
            }
        });
        Self { url, state }
    }

    /// Waits until what arrived is as it should be.
    pub fn wait(&self, is_enough: impl Fn(&[Notice]) -> bool) -> Vec<Notice> {
        let notices = self.state.notices.lock().unwrap();
        let (notices, waited) =
            self.state.arrived.wait_timeout_while(notices, PATIENCE, |notices| !is_enough(notices)).unwrap();
        assert!(!waited.timed_out(), "{notices:?}");
        notices.clone()
    }

    pub fn count(&self) -> usize {
        self.state.notices.lock().unwrap().len()
    }
}

fn receive(stream: TcpStream, state: &State, statuses: &[u16]) {
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    let (mut headers, mut length, mut line) = (Vec::new(), 0, String::new());
    reader.read_line(&mut line).unwrap();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim().split_once(':') else { break };
        let (name, value) = (name.to_ascii_lowercase(), value.trim().to_owned());
        if name == "content-length" {
            length = value.parse().unwrap();
        }
        headers.push((name, value));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let mut notices = state.notices.lock().unwrap();
    let status = statuses.get(notices.len()).or(statuses.last()).copied().unwrap_or(200);
    notices.push(Notice { headers, body: serde_json::from_slice(&body).unwrap() });
    state.arrived.notify_all();
    drop(notices);
    // The sender may be gone: a test kills it.
    let _ = write!(writer, "HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
}
