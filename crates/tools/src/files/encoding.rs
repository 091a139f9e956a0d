//! Text encodings of files: finding out which one it is, and going there and back without loss.
//!
//! A byte order mark decides; otherwise valid UTF-8 is UTF-8; otherwise bytes without control characters are taken for
//! windows-1252. Everything else is binary. An edit writes the encoding that it found, byte order mark included.

use std::borrow::Cow;

/// How the text of a file is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// UTF-8 without a mark.
    Utf8,
    /// UTF-8 with a byte order mark.
    Utf8Marked,
    /// UTF-16, little endian, with a byte order mark.
    Utf16Little,
    /// UTF-16, big endian, with a byte order mark.
    Utf16Big,
    /// One byte per character.
    Windows1252,
}

const UTF8_MARK: &[u8] = &[0xEF, 0xBB, 0xBF];
const LITTLE_MARK: &[u8] = &[0xFF, 0xFE];
const BIG_MARK: &[u8] = &[0xFE, 0xFF];

/// The encoding that a byte order mark names, and the length of the mark.
pub(crate) fn marked(bytes: &[u8]) -> Option<(Encoding, usize)> {
    if bytes.starts_with(UTF8_MARK) {
        Some((Encoding::Utf8Marked, UTF8_MARK.len()))
    } else if bytes.starts_with(LITTLE_MARK) {
        Some((Encoding::Utf16Little, LITTLE_MARK.len()))
    } else if bytes.starts_with(BIG_MARK) {
        Some((Encoding::Utf16Big, BIG_MARK.len()))
    } else {
        None
    }
}

/// Whether a byte says that this is no text: a control character other than tab, line ends, form feed and escape.
pub(crate) fn is_control(byte: u8) -> bool {
    byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0C | 0x1B)
}

/// The text of a file without its byte order mark; `None` when it is binary.
pub(crate) fn decode(bytes: &[u8]) -> Option<(Encoding, Cow<'_, str>)> {
    match marked(bytes) {
        Some((encoding @ Encoding::Utf8Marked, length)) => {
            std::str::from_utf8(&bytes[length..]).ok().map(|text| (encoding, Cow::Borrowed(text)))
        }
        Some((encoding, length)) => {
            let rules =
                if encoding == Encoding::Utf16Big { encoding_rs::UTF_16BE } else { encoding_rs::UTF_16LE };
            rules
                .decode_without_bom_handling_and_without_replacement(&bytes[length..])
                .map(|text| (encoding, text))
        }
        None => {
            if memchr::memchr(0, bytes).is_some() {
                return None;
            }
            if let Ok(text) = std::str::from_utf8(bytes) {
                return Some((Encoding::Utf8, Cow::Borrowed(text)));
            }
            if bytes.iter().copied().any(is_control) {
                return None;
            }
            Some((Encoding::Windows1252, windows_1252(bytes)))
        }
    }
}

/// Reads every byte as one character.
pub(crate) fn windows_1252(bytes: &[u8]) -> Cow<'_, str> {
    encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes).0
}

/// The bytes of `text` in `encoding`; `None` when it has characters that the encoding lacks.
pub(crate) fn encode(text: &str, encoding: Encoding) -> Option<Vec<u8>> {
    match encoding {
        Encoding::Utf8 => Some(text.as_bytes().to_vec()),
        Encoding::Utf8Marked => Some([UTF8_MARK, text.as_bytes()].concat()),
        Encoding::Utf16Little => {
            let mut bytes = LITTLE_MARK.to_vec();
            bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
            Some(bytes)
        }
        Encoding::Utf16Big => {
            let mut bytes = BIG_MARK.to_vec();
            bytes.extend(text.encode_utf16().flat_map(u16::to_be_bytes));
            Some(bytes)
        }
        Encoding::Windows1252 => {
            let (bytes, _, lossy) = encoding_rs::WINDOWS_1252.encode(text);
            (!lossy).then(|| bytes.into_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_encoding_goes_there_and_back() {
        for bytes in [
            "plain\n".as_bytes().to_vec(),
            [UTF8_MARK, "märk\r\n".as_bytes()].concat(),
            vec![0xFF, 0xFE, b'h', 0, 0xE4, 0],
            vec![0xFE, 0xFF, 0, b'h', 0, 0xE4],
            b"caf\xE9 \x80".to_vec(),
        ] {
            let (encoding, text) = decode(&bytes).unwrap();
            assert_eq!(encode(&text, encoding).unwrap(), bytes);
        }
    }

    #[test]
    fn what_is_no_text_is_not_decoded() {
        assert!(decode(b"a\0b").is_none());
        assert!(decode(b"\x01\xFF\xE9").is_none());
        assert!(decode(&[0xFF, 0xFE, 0x00, 0xD8]).is_none());
        assert!(encode("日本", Encoding::Windows1252).is_none());
    }
}
