//! Bodies that a server or a proxy compressed although no request asked for it. They are unpacked piece by piece, so that a
//! stream stays one; what cannot be unpacked is a failure that names the encoding.

use std::io::Write;

use brotli_decompressor::DecompressorWriter;
use bytes::Bytes;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use futures::stream::{self, StreamExt};
use qoder_types::ModelFailure;

use super::body::Body;
use crate::failure::malformed;

/// The first bytes of everything that gzip made.
const GZIP: [u8; 2] = [0x1f, 0x8b];
const BUFFER: usize = 16 << 10;

enum Unpacker {
    /// Too little came so far: the encoding that the head names, and what came.
    Undecided(String, Vec<u8>),
    Plain,
    Gzip(MultiGzDecoder<Vec<u8>>),
    Zlib(ZlibDecoder<Vec<u8>>),
    Deflate(DeflateDecoder<Vec<u8>>),
    Brotli(Box<DecompressorWriter<Vec<u8>>>),
}

impl Unpacker {
    /// The unpacker for a body that starts so. A head may be wrong, the first bytes of gzip hardly.
    fn choose(encoding: &str, first: &[u8]) -> Result<Self, ModelFailure> {
        Ok(match encoding {
            _ if first.starts_with(&GZIP) => Self::Gzip(MultiGzDecoder::new(Vec::new())),
            "" | "identity" => Self::Plain,
            // Proxies that unpack leave the header where it was.
            "gzip" | "x-gzip" => Self::Plain,
            "deflate" if first.first().is_some_and(|byte| byte & 0x0f == 8) => {
                Self::Zlib(ZlibDecoder::new(Vec::new()))
            }
            "deflate" => Self::Deflate(DeflateDecoder::new(Vec::new())),
            "br" => Self::Brotli(Box::new(DecompressorWriter::new(Vec::new(), BUFFER))),
            other => {
                return Err(malformed(format!(
                    "the response is encoded as `{other}`, which was not asked for. Check the proxy or gateway in between"
                )));
            }
        })
    }

    fn push(&mut self, mut piece: Bytes) -> Result<Bytes, ModelFailure> {
        if let Self::Undecided(encoding, held) = self {
            held.extend_from_slice(&piece);
            if held.len() < GZIP.len() {
                return Ok(Bytes::new());
            }
            piece = std::mem::take(held).into();
            *self = Self::choose(encoding, &piece)?;
        }
        let damaged =
            |error: std::io::Error| malformed(format!("the compressed response is damaged: {error}"));
        let unpacked = match self {
            Self::Undecided(..) | Self::Plain => return Ok(piece),
            Self::Gzip(decoder) => {
                decoder.write_all(&piece).and_then(|()| decoder.flush()).map_err(damaged)?;
                std::mem::take(decoder.get_mut())
            }
            Self::Zlib(decoder) => {
                decoder.write_all(&piece).and_then(|()| decoder.flush()).map_err(damaged)?;
                std::mem::take(decoder.get_mut())
            }
            Self::Deflate(decoder) => {
                decoder.write_all(&piece).and_then(|()| decoder.flush()).map_err(damaged)?;
                std::mem::take(decoder.get_mut())
            }
            Self::Brotli(decoder) => {
                decoder.write_all(&piece).and_then(|()| decoder.flush()).map_err(damaged)?;
                std::mem::take(decoder.get_mut())
            }
        };
        Ok(unpacked.into())
    }

    /// What was held back of a body that ended before it could be told what it is.
    fn finish(self) -> Option<Bytes> {
        match self {
            Self::Undecided(_, held) if !held.is_empty() => Some(held.into()),
            Self::Undecided(..)
            | Self::Plain
            | Self::Gzip(_)
            | Self::Zlib(_)
            | Self::Deflate(_)
            | Self::Brotli(_) => None,
        }
    }
}

/// The body without the encoding that the head names.
pub(crate) fn unpacked(body: Body, encoding: &str) -> Body {
    let start = Unpacker::Undecided(encoding.trim().to_ascii_lowercase(), Vec::new());
    stream::unfold(Some((body, start)), |state| async move {
        let (mut body, mut unpacker) = state?;
        let Some(next) = body.next().await else {
            return unpacker.finish().map(|rest| (Ok(rest), None));
        };
        match next {
            Ok(piece) => match unpacker.push(piece) {
                Ok(piece) => Some((Ok(piece), Some((body, unpacker)))),
                Err(failure) => Some((Err(failure), None)),
            },
            Err(failure) => Some((Err(failure), None)),
        }
    })
    .fuse()
    .boxed()
}
