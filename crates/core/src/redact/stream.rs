//! Secrets in text that comes in pieces: what may be the beginning of one is held back until it is clear, so that no cut
//! hides one. What is held is bounded; a secret that is longer is taken out while it comes.

use super::{Redactor, Secrets, replaced, shapes};

/// A token that is longer than this is taken out while it comes.
const LONGEST_TOKEN: usize = 4 * 1024;
/// The same for a private key.
const LONGEST_KEY: usize = 64 * 1024;

/// What still belongs to a secret that was longer than what is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Token,
    Key,
}

/// Takes secrets out of text that comes in pieces.
#[derive(Clone, Debug)]
pub struct RedactedStream {
    redactor: Redactor,
    secrets: Secrets,
    /// The last byte that was let through, if any, and what is held back.
    held: Vec<u8>,
    /// How much in front of what is held was let through.
    before: usize,
    rest: Option<Rest>,
    /// True while what is held begins a private key whose end has not come.
    in_key: bool,
}

impl RedactedStream {
    pub(super) fn new(redactor: Redactor, secrets: Secrets) -> Self {
        Self { redactor, secrets, held: Vec::new(), before: 0, rest: None, in_key: false }
    }

    /// Takes a piece in; answers with what is clear by now.
    #[must_use]
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        let piece = self.without_rest(piece);
        if piece.is_empty() {
            return Vec::new();
        }
        let known = self.held.len();
        self.held.extend_from_slice(piece);
        if self.in_key && self.held.len() <= LONGEST_KEY {
            // Looked at once its end is there: a key in small pieces must not cost its square.
            if !shapes::ends_key(&self.held[known.saturating_sub(shapes::LONGEST_END)..]) {
                return Vec::new();
            }
        }
        let fresh = self.held.len() - self.before;
        let mut keep = self.redactor.begun_value(&self.held[self.before..]);
        let mut rest = None;
        if self.secrets == Secrets::All {
            let token = shapes::begun_token(&self.held, LONGEST_TOKEN).map(|token| token.min(fresh));
            let key = shapes::begun_key(&self.held).min(fresh);
            rest = match token {
                _ if key > LONGEST_KEY => Some(Rest::Key),
                None => Some(Rest::Token),
                Some(_) => None,
            };
            if rest.is_none() {
                keep = keep.max(token.unwrap_or(0)).max(key);
            }
            self.in_key = rest.is_none() && key > shapes::LONGEST_END;
        }
        let (clean, ends_in_secret) = self.release(keep);
        self.rest = rest.filter(|_| ends_in_secret);
        clean
    }

    /// What was held back, when no more comes.
    #[must_use]
    pub fn finish(&mut self) -> Vec<u8> {
        self.rest = None;
        self.in_key = false;
        self.release(0).0
    }

    /// As [`RedactedStream::push`], for text.
    #[must_use]
    pub fn push_text(&mut self, piece: &str) -> String {
        // Only whole ASCII sequences are held or taken out, so no character is split.
        String::from_utf8_lossy(&self.push(piece.as_bytes())).into_owned()
    }

    /// As [`RedactedStream::finish`], for text.
    #[must_use]
    pub fn finish_text(&mut self) -> String {
        String::from_utf8_lossy(&self.finish()).into_owned()
    }

    /// The piece without what belongs to a secret whose beginning was taken out.
    fn without_rest<'a>(&mut self, piece: &'a [u8]) -> &'a [u8] {
        let belongs: fn(u8) -> bool = match self.rest {
            None => return piece,
            Some(Rest::Token) => shapes::is_of_token,
            Some(Rest::Key) => shapes::is_of_key,
        };
        let over = piece.iter().position(|byte| !belongs(*byte));
        if over.is_some() {
            self.rest = None;
        }
        over.map_or(&[], |over| &piece[over..])
    }

    /// Lets everything through but the last `keep` bytes. Also answers whether a secret was at the very end of it.
    fn release(&mut self, keep: usize) -> (Vec<u8>, bool) {
        let places = self.redactor.places(&self.held, self.before, self.secrets);
        let mut end = self.held.len() - keep;
        // A whole secret that reaches into what may be the beginning of another one is a secret.
        if let Some((_, over)) = places.iter().find(|(start, over)| *start < end && *over > end) {
            end = *over;
        }
        let clean = replaced(&self.held, self.before, end, &places);
        // Only what has the shape of a token can be longer than it is by now; a value is whole.
        let shaped = || shapes::places(&self.held, self.before).last().is_some_and(|(_, over)| *over == end);
        let ends_in_secret =
            end == self.held.len() && places.last().is_some_and(|(_, over)| *over == end) && shaped();
        // One byte stays, to tell whether a token begins behind it.
        let last = end.saturating_sub(1);
        self.held.drain(..last);
        self.before = end - last;
        (clean, ends_in_secret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::redact::PLACEHOLDER;

    const KEY: &str = "my-own-secret-value";

    fn in_pieces(redactor: &Redactor, pieces: &[&[u8]]) -> String {
        let mut stream = redactor.stream(Secrets::All);
        let mut clean: Vec<u8> = pieces.iter().flat_map(|piece| stream.push(piece)).collect();
        clean.extend(stream.finish());
        String::from_utf8(clean).unwrap()
    }

    fn texts() -> Vec<String> {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        let jwt = format!("eyJ{0}.eyJ{0}.{0}", "aB3_".repeat(5));
        vec![
            format!("the key is {KEY}, {KEY}{KEY}; once more: {KEY}"),
            format!("push with {token}\nor task-{token} but not x{token}"),
            format!("sk-ant-api03-{} and sk-learn, as sk", "x".repeat(40)),
            format!("a {jwt} b"),
            "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIabc+/=\n-----END RSA PRIVATE KEY-----\nb -----"
                .to_owned(),
            "-----BEGIN CERTIFICATE-----\nMIIabc\n-----END CERTIFICATE----- and -----BEGIN nothing"
                .to_owned(),
            "-----BEGIN PRIVATE KEY-----\nMIIabc+/=\n".to_owned(),
            "grüße 世界 🎉 my-own-secret-valu my-own-secret-valua".to_owned(),
        ]
    }

    #[test]
    fn no_cut_hides_a_secret() {
        let redactor = Redactor::new([KEY.to_owned(), "secret-value-and-more".to_owned()]);
        for text in texts() {
            let whole = redactor.text(&text).into_owned();
            assert!(!whole.contains(KEY) && !whole.contains("MIIabc+"), "{whole}");
            for at in 0..=text.len() {
                let (left, right) = text.as_bytes().split_at(at);
                assert_eq!(in_pieces(&redactor, &[left, right]), whole, "{text:?} cut at {at}");
            }
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(in_pieces(&redactor, &bytes), whole, "{text:?} byte by byte");
            for size in [2, 3, 5, 7] {
                let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
                assert_eq!(in_pieces(&redactor, &pieces), whole, "{text:?} by {size}");
            }
        }
    }

    #[test]
    fn a_secret_of_any_length_is_taken_out_in_bounded_memory() {
        let redactor = Redactor::default();
        for (begin, body, after) in
            [("sk-ant-", "aB3_", " after"), ("-----BEGIN PRIVATE KEY-----\n", "aB3+\n", "# after")]
        {
            let mut stream = redactor.stream(Secrets::All);
            let mut clean = stream.push(begin.as_bytes());
            for _ in 0..100_000 {
                clean.extend(stream.push(body.as_bytes()));
                assert!(stream.held.len() < 80 * 1024);
            }
            clean.extend(stream.push(after.as_bytes()));
            clean.extend(stream.finish());
            assert_eq!(String::from_utf8(clean).unwrap(), format!("{PLACEHOLDER}{after}"));
        }
    }

    #[test]
    fn a_key_inside_a_long_word_is_found_wherever_it_is_cut() {
        let redactor = Redactor::new([KEY.to_owned()]);
        let (before, after) = ("w".repeat(6_000), "v".repeat(6_000));
        for at in 0..=KEY.len() {
            let (left, right) = KEY.split_at(at);
            let pieces = [format!("{before}{left}"), format!("{right}{after}")];
            let clean = in_pieces(&redactor, &[pieces[0].as_bytes(), pieces[1].as_bytes()]);
            assert_eq!(clean, format!("{before}{PLACEHOLDER}{after}"), "cut at {at}");
        }
    }

    #[test]
    fn ordinary_text_is_not_held_back() {
        let mut stream = Redactor::new([KEY.to_owned()]).stream(Secrets::All);
        for piece in ["hello world\n", "a/b/c.txt: 12\n", "done."] {
            assert_eq!(stream.push_text(piece), piece);
        }
        assert_eq!(stream.finish_text(), "");
    }
}
