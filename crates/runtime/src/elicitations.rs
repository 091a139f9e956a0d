//! Questions of MCP servers that the fronts of a session answer: any subscriber sees one, and the first answer counts. For a
//! program that answers them with a callback of its own there is [`Callbacks::elicitation`](crate::callbacks::Callbacks).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_protocol::{Elicitation, ElicitationAction, ElicitationAnswer, RequestError, SessionEvent};
use tokio::sync::oneshot;

use qoder_mcp::questions as mcp;

/// Takes events about questions of servers.
pub(crate) trait Listener: Send + Sync {
    /// Takes one.
    fn hear(&self, event: SessionEvent);
}

/// Puts a question of a server to a person; an error counts as no answer.
type Ask =
    dyn Fn(mcp::Elicitation) -> BoxFuture<'static, Result<mcp::ElicitationAnswer, String>> + Send + Sync;

/// The questions of servers that are open in a session. Clones share them.
#[derive(Clone, Default)]
pub struct Elicitations(Arc<Mutex<Board>>);

#[derive(Default)]
struct Board {
    open: BTreeMap<String, (Arc<Elicitation>, oneshot::Sender<ElicitationAnswer>)>,
    listeners: Vec<Weak<dyn Listener>>,
}

impl Elicitations {
    /// What puts a server's question to the subscribers.
    #[must_use]
    pub fn callback(&self) -> Arc<Ask> {
        let board = self.clone();
        Arc::new(move |question| board.ask(question))
    }

    /// Answers a question.
    ///
    /// # Errors
    /// When it is not open.
    pub fn answer(&self, elicitation_id: &str, answer: ElicitationAnswer) -> Result<(), RequestError> {
        let Some((_, reply)) = self.lock().open.remove(elicitation_id) else {
            return Err(RequestError::refused("the server no longer waits for an answer to this question"));
        };
        self.announce(&SessionEvent::ElicitationClosed { elicitation_id: elicitation_id.to_owned() });
        // The server may have given up at this very moment.
        let _ = reply.send(answer);
        Ok(())
    }

    /// Reports open questions and those to come to a listener.
    pub(crate) fn listen(&self, listener: &Arc<impl Listener + 'static>) {
        let mut board = self.lock();
        let weak: Weak<dyn Listener> = Arc::downgrade(&(Arc::clone(listener) as Arc<dyn Listener>));
        board.listeners.push(weak);
        let open: Vec<_> = board.open.values().map(|(question, _)| Arc::clone(question)).collect();
        drop(board);
        open.into_iter().for_each(|question| listener.hear(SessionEvent::Elicited(question)));
    }

    fn ask(&self, asked: mcp::Elicitation) -> BoxFuture<'static, Result<mcp::ElicitationAnswer, String>> {
        let id = asked.elicitation_id.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        let question = Arc::new(Elicitation {
            elicitation_id: id.clone(),
            server_name: asked.server_name,
            message: asked.message,
            requested_schema: asked.requested_schema,
            title: asked.title,
        });
        let (reply, answered) = oneshot::channel();
        self.lock().open.insert(id.clone(), (Arc::clone(&question), reply));
        self.announce(&SessionEvent::Elicited(question));
        let open = Open { board: self.clone(), id };
        async move {
            let answer = answered.await.map_err(|_| "the question was withdrawn".to_owned());
            drop(open);
            answer.map(for_server)
        }
        .boxed()
    }

    fn announce(&self, event: &SessionEvent) {
        let mut board = self.lock();
        board.listeners.retain(|listener| listener.strong_count() > 0);
        let listeners: Vec<_> = board.listeners.iter().filter_map(Weak::upgrade).collect();
        drop(board);
        listeners.iter().for_each(|listener| listener.hear(event.clone()));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Board> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question that waits; the server may give it up, which drops this.
struct Open {
    board: Elicitations,
    id: String,
}

impl Drop for Open {
    fn drop(&mut self) {
        let was_open = self.board.lock().open.remove(&self.id).is_some();
        if was_open {
            self.board.announce(&SessionEvent::ElicitationClosed { elicitation_id: self.id.clone() });
        }
    }
}

fn for_server(answer: ElicitationAnswer) -> mcp::ElicitationAnswer {
    let action = match answer.action {
        ElicitationAction::Accept => mcp::ElicitationAction::Accept,
        ElicitationAction::Decline => mcp::ElicitationAction::Decline,
        ElicitationAction::Cancel => mcp::ElicitationAction::Cancel,
    };
    mcp::ElicitationAnswer { action, content: answer.content }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Listener for Heard {
        fn hear(&self, event: SessionEvent) {
            let text = match event {
                SessionEvent::Elicited(question) => format!("open {}", question.elicitation_id),
                SessionEvent::ElicitationClosed { elicitation_id } => format!("closed {elicitation_id}"),
                other => panic!("{other:?}"),
            };
            self.0.lock().unwrap().push(text);
        }
    }

    fn asked(id: &str) -> mcp::Elicitation {
        mcp::Elicitation {
            server_name: "s".to_owned(),
            message: "name?".to_owned(),
            mode: "form".to_owned(),
            elicitation_id: Some(id.to_owned()),
            requested_schema: None,
            title: None,
            display_name: None,
        }
    }

    #[tokio::test]
    async fn the_first_answer_counts_and_everyone_hears_of_it() {
        let board = Elicitations::default();
        let (one, other) = (Arc::new(Heard::default()), Arc::new(Heard::default()));
        board.listen(&one);
        let waiting = (board.callback())(asked("e1"));
        board.listen(&other);
        let accept = ElicitationAnswer { action: ElicitationAction::Accept, content: None };
        board.answer("e1", accept.clone()).unwrap();
        assert!(board.answer("e1", accept).is_err());
        assert_eq!(waiting.await.unwrap().action, mcp::ElicitationAction::Accept);
        for heard in [&one, &other] {
            assert_eq!(*heard.0.lock().unwrap(), ["open e1", "closed e1"]);
        }
    }

    #[tokio::test]
    async fn a_question_that_the_server_gives_up_is_closed() {
        let board = Elicitations::default();
        let heard = Arc::new(Heard::default());
        board.listen(&heard);
        drop((board.callback())(asked("e2")));
        assert_eq!(*heard.0.lock().unwrap(), ["open e2", "closed e2"]);
    }
}
