//! The one connection of a node that listens. It needs the server itself: a pooler in transaction mode gives notifications to no one.

use std::time::Duration;

use futures::StreamExt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_postgres::config::SslMode;
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls, Notification, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::hints::{self, EVENTS, WAKE};
use crate::model::ids::NodeId;
use crate::store::error::DbError;
use crate::store::port::{Hint, Hints};
use crate::store::postgres::connections::{DatabaseUrl, fault, tls};

/// Hints that wait; more are dropped, because polling finds what they say.
const WAITING: usize = 4_096;
/// How often it is tried whether the connection is there, and how long that may take.
const TRIED: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(5);

type Notifications = mpsc::Receiver<Notification>;

/// Listens until the connection is lost or the hints are dropped.
pub(super) async fn listen(url: &DatabaseUrl, node: NodeId) -> Result<Hints, DbError> {
    let (client, mut notifications) = connect(url).await?;
    let sql = format!("LISTEN {EVENTS}; LISTEN {WAKE}; LISTEN {}", hints::channel(node));
    timely(client.batch_execute(&sql)).await?;
    let (sender, receiver) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                notification = notifications.recv() => {
                    let Some(notification) = notification else { return };
                    for hint in hints::read(node, notification.channel(), notification.payload()) {
                        if matches!(sender.try_send(hint), Err(mpsc::error::TrySendError::Closed(_))) {
                            return;
                        }
                    }
                }
                () = sender.closed() => return,
                () = tokio::time::sleep(TRIED) => {
                    if timely(client.batch_execute("")).await.is_err() {
                        return;
                    }
                }
            }
        }
    });
    Ok(receiver)
}

/// Whether notifications arrive, for an operator.
pub(in crate::store::postgres) async fn try_listener(url: &DatabaseUrl) -> Result<bool, DbError> {
    let node = NodeId::random();
    let mut hints = listen(url, node).await?;
    let (client, _notifications) = connect(url).await?;
    let sql = format!("NOTIFY {}, '1'", hints::channel(node));
    timely(client.batch_execute(&sql)).await?;
    let heard = tokio::time::timeout(PATIENCE, hints.recv()).await;
    Ok(matches!(heard, Ok(Some(Hint::Inbox { key: 1, .. }))))
}

async fn timely(work: impl Future<Output = Result<(), tokio_postgres::Error>>) -> Result<(), DbError> {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(DbError::Unavailable(format!("no answer within {} s", PATIENCE.as_secs()))),
    }
}

async fn connect(url: &DatabaseUrl) -> Result<(Client, Notifications), DbError> {
    let config = url.config();
    if config.get_ssl_mode() == SslMode::Disable {
        let (client, connection) = config.connect(NoTls).await.map_err(|error| fault(&error))?;
        return Ok((client, pump(connection)));
    }
    let tls = MakeRustlsConnect::new(tls(url)?);
    let (client, connection) = config.connect(tls).await.map_err(|error| fault(&error))?;
    Ok((client, pump(connection)))
}

/// Moves a connection on, and passes what it hears.
fn pump<S>(mut connection: Connection<Socket, S>) -> Notifications
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        let mut messages = futures::stream::poll_fn(move |context| connection.poll_message(context));
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(notification) = message {
                // What finds no room is found by polling.
                let _ = sender.try_send(notification);
            }
        }
    });
    receiver
}
