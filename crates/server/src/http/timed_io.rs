//! A connection with time limits: for the head of a request, once its first byte has come, and for a write that the client does not
//! read. hyper has one limit for both waiting for a request and reading its head; here they differ.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// The time limits of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeLimits {
    /// How long the head of a request may take.
    pub(super) head: Duration,
    /// How long a write may wait for the client.
    pub(super) write: Duration,
}

impl TimeLimits {
    /// Those of every connection.
    pub(super) const SERVED: Self = Self { head: Duration::from_secs(10), write: Duration::from_secs(30) };
}

/// Whether a request is being served on a connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Serving(Arc<AtomicBool>);

/// A request is served until it is dropped.
#[derive(Debug)]
pub(super) struct ServingRequest(Arc<AtomicBool>);

impl Serving {
    /// A request has arrived.
    pub(super) fn begin(&self) -> ServingRequest {
        self.0.store(true, Ordering::Relaxed);
        ServingRequest(Arc::clone(&self.0))
    }

    fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for ServingRequest {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// A connection with time limits.
pub(super) struct TimedIo<S> {
    inner: S,
    serving: Serving,
    limits: TimeLimits,
    head: Option<Pin<Box<Sleep>>>,
    write: Option<Pin<Box<Sleep>>>,
}

impl<S> TimedIo<S> {
    pub(super) fn new(inner: S, serving: Serving, limits: TimeLimits) -> Self {
        Self { inner, serving, limits, head: None, write: None }
    }
}

fn late(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, what)
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedIo<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.inner).poll_read(context, buffer);
        if this.serving.is_on() {
            this.head = None;
            return read;
        }
        if read.is_ready() && buffer.filled().len() > before {
            let limit = this.limits.head;
            this.head.get_or_insert_with(|| Box::pin(sleep(limit)));
        }
        if read.is_pending()
            && let Some(head) = &mut this.head
            && head.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Err(late("the head of the request did not arrive in time")));
        }
        read
    }
}

impl<S> TimedIo<S> {
    /// Starts the limit of a write that waits, and ends it with one that does not.
    fn bounded<T>(&mut self, context: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.write = None;
            return done;
        }
        let limit = self.limits.write;
        let write = self.write.get_or_insert_with(|| Box::pin(sleep(limit)));
        if write.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(late("the client does not read")));
        }
        Poll::Pending
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedIo<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let done = Pin::new(&mut this.inner).poll_write(context, bytes);
        this.bounded(context, done)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let done = Pin::new(&mut this.inner).poll_write_vectored(context, pieces);
        this.bounded(context, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let done = Pin::new(&mut this.inner).poll_flush(context);
        this.bounded(context, done)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let done = Pin::new(&mut this.inner).poll_shutdown(context);
        this.bounded(context, done)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);
    const NEVER: Duration = Duration::from_secs(60 * 60);

    #[tokio::test]
    async fn a_head_that_does_not_come_to_its_end_is_late() {
        let (mut client, server) = tokio::io::duplex(64);
        let mut server = TimedIo::new(server, Serving::default(), TimeLimits { head: SHORT, write: NEVER });
        client.write_all(b"GET / HT").await.unwrap();
        let mut buffer = [0; 64];
        assert_eq!(server.read(&mut buffer).await.unwrap(), 8);
        let error = server.read(&mut buffer).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().contains("head of the request"), "{error}");
    }

    #[tokio::test]
    async fn a_request_that_is_served_may_take_its_time() {
        let (mut client, server) = tokio::io::duplex(64);
        let serving = Serving::default();
        let mut server = TimedIo::new(server, serving.clone(), TimeLimits { head: SHORT, write: NEVER });
        client.write_all(b"x").await.unwrap();
        let mut buffer = [0; 64];
        server.read_exact(&mut buffer[..1]).await.unwrap();
        let served = serving.begin();
        let slow = tokio::time::timeout(SHORT * 3, server.read(&mut buffer)).await;
        assert!(slow.is_err(), "it still waits");
        drop(served);
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_is_given_up() {
        let (_client, server) = tokio::io::duplex(16);
        let mut server = TimedIo::new(server, Serving::default(), TimeLimits { head: NEVER, write: SHORT });
        let error = server.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().contains("does not read"), "{error}");
    }
}
