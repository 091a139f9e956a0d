//! What is said at a front: messages, control requests, and questions with their answers. Plain data and pure functions;
//! every front reads and writes these types, whether bytes cross a pipe or not.

pub mod control;
pub mod messages;
mod project;
mod question;

pub use project::{Projector, denial_text};
pub use question::{ActionId, Answer, Question, Resolution, decision_reason_type};
