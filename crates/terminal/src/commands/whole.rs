//! The whole of a session, read from its record again: for a file, and for an overlay.

use std::time::Instant;

use qoder_protocol::{SessionClient, SessionEvent, Wants};

use crate::state::Conversation;

/// Everything that is on record by now.
pub(crate) async fn whole_conversation(client: &dyn SessionClient) -> Conversation {
    let mut conversation = Conversation::holding_all(client.session_id());
    let mut events = client.subscribe(Some(0), Wants::default());
    loop {
        let event = events.next().await;
        let is_last = matches!(event, SessionEvent::CaughtUp | SessionEvent::Ended { .. });
        conversation.fold(&event, Instant::now());
        if is_last {
            return conversation;
        }
    }
}
