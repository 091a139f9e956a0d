//! What callbacks return: the answer itself or a `Result` of it, whatever suits the closure. An error and a panic are
//! both texts from here on, because that is all that the session makes of them.

mod cancellation;

use std::fmt::Display;
use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;

pub(crate) use cancellation::CancelOnDrop;
pub use cancellation::CancellationToken;

/// An answer, or a `Result` with one.
pub trait CallbackAnswer<T> {
    /// The answer, or the text of the error.
    ///
    /// # Errors
    /// When the callback failed.
    fn into_answer(self) -> Result<T, CallbackError>;
}

impl<T> CallbackAnswer<T> for T {
    fn into_answer(self) -> Result<T, CallbackError> {
        Ok(self)
    }
}

impl<T, E: Display> CallbackAnswer<T> for Result<T, E> {
    fn into_answer(self) -> Result<T, CallbackError> {
        self.map_err(|error| CallbackError(error.to_string()))
    }
}

/// What a callback failed with, as a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CallbackError(String);

impl CallbackError {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "callback_failed"
    }

    /// What to do next.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        "look at what the callback returned"
    }
}

impl From<String> for CallbackError {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for CallbackError {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// Runs foreign code; a panic in it becomes the text of an error.
pub(crate) async fn guarded<T, E: Display>(
    what: &str,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, String> {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(panic) => Err(format!("{what} panicked: {}", panic_text(&*panic))),
    }
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}
