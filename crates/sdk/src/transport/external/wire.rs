//! The way to the program: lines go out in order through one task, control requests are numbered and find their
//! answers. Closing it closes the program's stdin.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

type Answer = Result<Value, String>;

/// The way to the program.
#[derive(Clone)]
pub(super) struct Wire(Arc<Inner>);

struct Inner {
    /// `None` once it is closed.
    lines: Mutex<Option<mpsc::UnboundedSender<String>>>,
    waiting: Mutex<HashMap<String, oneshot::Sender<Answer>>>,
    number: AtomicU64,
}

impl Wire {
    /// Writes on a task of its own, because a program that does not read must not stop what it writes from being read.
    pub(super) fn new(mut stdin: ChildStdin) -> (Self, JoinHandle<()>) {
        let (sender, mut lines) = mpsc::unbounded_channel::<String>();
        let writing = tokio::spawn(async move {
            while let Some(line) = lines.recv().await {
                if stdin.write_all(line.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
                    return;
                }
            }
        });
        let inner =
            Inner { lines: Mutex::new(Some(sender)), waiting: Mutex::default(), number: AtomicU64::new(1) };
        (Self(Arc::new(inner)), writing)
    }

    /// Sends a line. Without effect once it is closed.
    pub(super) fn send(&self, message: &Value) {
        if let Some(lines) = &*self.0.lines.lock().unwrap_or_else(PoisonError::into_inner) {
            // The program is gone; the reader reports it.
            let _ = lines.send(format!("{message}\n"));
        }
    }

    /// Sends a control request.
    pub(super) fn request(&self, request: &Value) -> (String, oneshot::Receiver<Answer>) {
        let id = format!("req_{}", self.0.number.fetch_add(1, Ordering::Relaxed));
        let (sender, answer) = oneshot::channel();
        self.waiting().insert(id.clone(), sender);
        if self.is_open() {
            self.send(&json!({ "type": "control_request", "request_id": id, "request": request }));
        } else {
            self.waiting().remove(&id);
        }
        (id, answer)
    }

    /// Takes a control request back.
    pub(super) fn cancel(&self, id: &str) {
        self.waiting().remove(id);
        self.send(&json!({ "type": "control_cancel_request", "request_id": id }));
    }

    /// Answers a control request of the program.
    pub(super) fn answer(&self, id: &str, answer: Answer) {
        let response = match answer {
            Ok(response) => json!({ "subtype": "success", "request_id": id, "response": response }),
            Err(error) => json!({ "subtype": "error", "request_id": id, "error": error }),
        };
        self.send(&json!({ "type": "control_response", "response": response }));
    }

    /// An answer has come.
    pub(super) fn answered(&self, mut message: Value) {
        let mut response = message.get_mut("response").map(Value::take).unwrap_or_default();
        let id = response["request_id"].as_str().unwrap_or_default();
        let Some(sender) = self.waiting().remove(id) else { return };
        let answer = if response["subtype"] == "success" {
            Ok(response.get_mut("response").map(Value::take).unwrap_or_default())
        } else {
            Err(response["error"].as_str().unwrap_or("it failed without a reason").to_owned())
        };
        // The caller may have given up waiting.
        let _ = sender.send(answer);
    }

    /// Closes the program's stdin once everything is written. Requests that wait are given up.
    pub(super) fn close(&self) {
        self.0.lines.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// True until it is closed.
    pub(super) fn is_open(&self) -> bool {
        self.0.lines.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, HashMap<String, oneshot::Sender<Answer>>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
