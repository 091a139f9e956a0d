//! Text objects: a word, what is in quotes, what is in brackets; with `around` also what surrounds it.

use std::ops::Range;

/// The object of a kind at a place.
pub(super) fn find(text: &str, cursor: usize, kind: char, around: bool) -> Option<Range<usize>> {
    match kind {
        'w' | 'W' => word(text, cursor, kind == 'W', around),
        '"' | '\'' | '`' => quoted(text, cursor, kind, around),
        '(' | ')' | 'b' => bracketed(text, cursor, ('(', ')'), around),
        '[' | ']' => bracketed(text, cursor, ('[', ']'), around),
        '{' | '}' | 'B' => bracketed(text, cursor, ('{', '}'), around),
        '<' | '>' => bracketed(text, cursor, ('<', '>'), around),
        _ => None,
    }
}

fn word(text: &str, cursor: usize, big: bool, around: bool) -> Option<Range<usize>> {
    let kind = |sign: char| match sign {
        sign if sign.is_whitespace() => 0,
        sign if big || sign.is_alphanumeric() || sign == '_' => 1,
        _ => 2,
    };
    let own = kind(text[cursor..].chars().next()?);
    let after = |from: usize, wanted: u8| {
        let rest = text[from..].char_indices().find(|(_, sign)| kind(*sign) != wanted || *sign == '\n');
        rest.map_or(text.len(), |(at, _)| from + at)
    };
    let before = |to: usize, wanted: u8| {
        let rest = text[..to].char_indices().rev().find(|(_, sign)| kind(*sign) != wanted || *sign == '\n');
        rest.map_or(0, |(at, sign)| at + sign.len_utf8())
    };
    let (start, end) = (before(cursor, own), after(cursor, own));
    if !around {
        return Some(start..end);
    }
    let behind = after(end, 0);
    Some(if behind > end { start..behind } else { before(start, 0)..end })
}

fn quoted(text: &str, cursor: usize, quote: char, around: bool) -> Option<Range<usize>> {
    let start = text[..cursor].rfind('\n').map_or(0, |at| at + 1);
    let end = text[cursor..].find('\n').map_or(text.len(), |at| cursor + at);
    let marks: Vec<usize> = text[start..end].match_indices(quote).map(|(at, _)| start + at).collect();
    let pair = marks.chunks_exact(2).find(|pair| pair[1] >= cursor)?;
    Some(if around { pair[0]..pair[1] + quote.len_utf8() } else { pair[0] + quote.len_utf8()..pair[1] })
}

fn bracketed(text: &str, cursor: usize, (open, close): (char, char), around: bool) -> Option<Range<usize>> {
    let mut depth = 0;
    let mut start = None;
    let at_close = text[cursor..].starts_with(close);
    let upto =
        if at_close { cursor } else { cursor + text[cursor..].chars().next().map_or(0, char::len_utf8) };
    for (at, sign) in text[..upto].char_indices().rev() {
        if sign == close && at != cursor {
            depth += 1;
        } else if sign == open {
            if depth == 0 {
                start = Some(at);
                break;
            }
            depth -= 1;
        }
    }
    let start = start?;
    let mut depth = 0;
    for (at, sign) in text[start + open.len_utf8()..].char_indices() {
        let at = start + open.len_utf8() + at;
        if sign == open {
            depth += 1;
        } else if sign == close {
            if depth == 0 {
                return Some(if around { start..at + close.len_utf8() } else { start + open.len_utf8()..at });
            }
            depth -= 1;
        }
    }
    None
}
