//! Answers that cannot be read: whose they are, found by one look at each byte, so that the request that waits for one
//! fails, however deep the answer is nested or wherever it breaks.

use rmcp::model::RequestId;

/// The id of an answer; `None` for requests and for what has no id that can be read.
pub(super) fn id_of_answer(bytes: &[u8]) -> Option<RequestId> {
    let (mut id, mut answers) = (None, false);
    let mut scan = Scan { bytes, at: 0, depth: 0 };
    while let Some(key) = scan.next_key() {
        match key {
            b"method" => return None,
            b"id" => id = scan.scalar().and_then(|text| serde_json::from_slice(text).ok()).or(id),
            b"result" | b"error" => answers = true,
            _ => {}
        }
    }
    id.filter(|_| answers)
}

/// Walks over the fields of the outermost object.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
}

impl<'a> Scan<'a> {
    /// The next name of a field of the outermost object; `at` is then behind its colon.
    fn next_key(&mut self) -> Option<&'a [u8]> {
        loop {
            match *self.bytes.get(self.at)? {
                b'"' => {
                    let text = self.string()?;
                    if self.depth == 1 && self.skip_blanks() == Some(b':') {
                        self.at += 1;
                        return Some(text);
                    }
                }
                b'{' | b'[' => {
                    self.depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.at += 1;
                }
                _ => self.at += 1,
            }
        }
    }

    /// A string whose beginning is here; `at` is then behind it.
    fn string(&mut self) -> Option<&'a [u8]> {
        let start = self.at + 1;
        let mut end = start;
        loop {
            match *self.bytes.get(end)? {
                b'\\' => end += 2,
                b'"' => break,
                _ => end += 1,
            }
        }
        self.at = end + 1;
        self.bytes.get(start..end)
    }

    fn skip_blanks(&mut self) -> Option<u8> {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    /// A number or a string, as it is written.
    fn scalar(&mut self) -> Option<&'a [u8]> {
        let first = self.skip_blanks()?;
        let start = self.at;
        if first == b'"' {
            self.string()?;
            return self.bytes.get(start..self.at);
        }
        let rest = &self.bytes[start..];
        let length =
            rest.iter().position(|byte| !(byte.is_ascii_digit() || *byte == b'-')).unwrap_or(rest.len());
        self.at += length;
        self.bytes.get(start..self.at)
    }
}
