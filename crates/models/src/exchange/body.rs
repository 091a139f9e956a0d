//! The bytes of a response: limits on silence and on size, and cutting at the ends of events.
//!
//! The event parser moves what follows a line to the front of its buffer, line by line. Fed one event at a time it has
//! nothing to move, and the cost of an event does not depend on how many came in one packet.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures::stream::{self, BoxStream, StreamExt};
use qoder_types::{ModelFailure, ModelFailureClass};

use crate::failure::{failure, malformed};
use crate::routes::Route;

/// The most that is kept of an answer that is not a stream.
const WHOLE_LIMIT: usize = 32 << 20;
/// The most that one event may be long.
const EVENT_LIMIT: usize = 64 << 20;

/// The byte order mark.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// The body of a response.
pub(crate) type Body = BoxStream<'static, Result<Bytes, ModelFailure>>;

/// The failure that a long silence means.
pub(crate) fn silence(route: &Route, idle: Duration) -> ModelFailure {
    failure(
        ModelFailureClass::Timeout,
        format!("nothing arrived from {} for {} ms", route.place(), idle.as_millis()),
    )
}

/// Adds the limit on silence.
pub(crate) fn limit_silence(body: Body, route: Arc<Route>, idle: Duration) -> Body {
    stream::unfold(Some(body), move |state| {
        let route = Arc::clone(&route);
        async move {
            let mut body = state?;
            match tokio::time::timeout(idle, body.next()).await {
                Ok(Some(Ok(bytes))) => Some((Ok(bytes), Some(body))),
                Ok(Some(Err(error))) => Some((Err(error), None)),
                Ok(None) => None,
                Err(_) => Some((Err(silence(&route, idle)), None)),
            }
        }
    })
    // `unfold` panics when it is polled behind its end, and readers that look ahead do so at an empty body.
    .fuse()
    .boxed()
}

/// Waits for the first byte that matters, which is given back to tell a stream from a document. Byte order marks and
/// blank space in front of it are dropped: the event parser panics at the former.
pub(crate) async fn open(mut body: Body) -> Result<(Option<u8>, Body), ModelFailure> {
    let mut held = Bytes::new();
    while let Some(piece) = body.next().await {
        let piece = piece?;
        held = if held.is_empty() { piece } else { Bytes::from([held, piece].concat()) };
        skip_front(&mut held);
        if !held.is_empty() && !MARK.starts_with(&held) {
            break;
        }
    }
    let first = held.first().copied();
    if held.is_empty() {
        return Ok((first, body));
    }
    Ok((first, stream::iter([Ok(held)]).chain(body).boxed()))
}

fn skip_front(bytes: &mut Bytes) {
    loop {
        if bytes.starts_with(MARK) {
            bytes.advance(MARK.len());
        } else if bytes.first().is_some_and(u8::is_ascii_whitespace) {
            bytes.advance(1);
        } else {
            return;
        }
    }
}

/// Cuts pieces behind every event and adds the limit on the length of one. A last event whose blank line is missing is
/// closed.
pub(crate) fn by_event(body: Body) -> Body {
    let mut length = 0_usize;
    let closing = stream::iter([Ok(Bytes::from_static(b"\n\n"))]);
    body.chain(closing)
        .flat_map(move |piece| {
            let pieces = match piece {
                Ok(bytes) => cut(bytes),
                Err(error) => return stream::iter(vec![Err(error)]),
            };
            let mut checked = Vec::with_capacity(pieces.len());
            for piece in pieces {
                length = length.saturating_add(piece.len());
                if length > EVENT_LIMIT {
                    checked.push(Err(malformed("one event of the stream is too long")));
                    break;
                }
                if ends_event(&piece) {
                    length = 0;
                }
                checked.push(Ok(piece));
            }
            stream::iter(checked)
        })
        .boxed()
}

/// A piece that is nothing but a line end closes the event whose last line came before it.
fn ends_event(piece: &[u8]) -> bool {
    piece.ends_with(b"\n\n") || piece.ends_with(b"\n\r\n") || piece == b"\n" || piece == b"\r\n"
}

/// Cuts behind every blank line. A blank line that is itself spread over two packets is not seen here, which only means
/// that two events stay together.
fn cut(mut bytes: Bytes) -> Vec<Bytes> {
    let mut pieces = Vec::new();
    let mut searched = 0;
    while let Some(found) = bytes.get(searched..).and_then(|rest| rest.iter().position(|byte| *byte == b'\n'))
    {
        let end = searched + found + 1;
        searched = end;
        if end < bytes.len() && bytes.get(..end).is_some_and(ends_event) {
            pieces.push(bytes.split_to(end));
            searched = 0;
        }
    }
    if !bytes.is_empty() {
        pieces.push(bytes);
    }
    pieces
}

/// Everything, up to a limit.
pub(crate) async fn collect(mut body: Body) -> Result<Vec<u8>, ModelFailure> {
    let mut all = Vec::new();
    while let Some(piece) = body.next().await {
        let piece = piece?;
        let room = WHOLE_LIMIT.saturating_sub(all.len());
        all.extend_from_slice(piece.get(..room).unwrap_or(&piece));
        if all.len() >= WHOLE_LIMIT {
            break;
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_lie_behind_blank_lines_and_nothing_is_lost() {
        let text = b"data: a\n\ndata: b\ndata: c\r\n\r\ndata: rest";
        let pieces = cut(Bytes::from_static(text));
        assert_eq!(pieces.concat(), text);
        assert_eq!(pieces[0], "data: a\n\n");
        assert_eq!(pieces[1], "data: b\ndata: c\r\n\r\n");
        assert_eq!(pieces.last().unwrap(), "data: rest");
        assert!(cut(Bytes::new()).is_empty());
    }

    #[tokio::test]
    async fn marks_and_blanks_in_front_are_dropped_however_they_are_cut() {
        let text = b" \r\n\xEF\xBB\xBF\xEF\xBB\xBF\ndata: a\xEF\xBB\xBF";
        for size in 1..=text.len() {
            let pieces: Vec<Result<Bytes, ModelFailure>> =
                text.chunks(size).map(|piece| Ok(Bytes::from_static(piece))).collect();
            let (first, body) = open(stream::iter(pieces).boxed()).await.unwrap();
            assert_eq!(first, Some(b'd'), "{size}");
            assert_eq!(collect(body).await.unwrap(), b"data: a\xEF\xBB\xBF", "{size}");
        }
        for short in [&b""[..], b" \n", b"\xEF\xBB"] {
            let (first, body) = open(stream::iter([Ok(Bytes::from_static(short))]).boxed()).await.unwrap();
            assert_eq!(first.is_some(), short.starts_with(b"\xEF"));
            assert_eq!(collect(body).await.unwrap().is_empty(), first.is_none());
        }
    }
}
