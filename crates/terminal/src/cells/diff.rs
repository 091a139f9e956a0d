//! A change in unified form as numbered lines with signs; in lines that were changed, the words that differ stand out.

use ratatui_core::text::{Line, Span};
use similar::{ChangeTag, TextDiff};

use crate::text::{expand_tabs, prose};
use crate::theme::Ink;
use crate::theme::Look;

/// One line of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    number: usize,
    sign: char,
    /// The text in pieces; true for those that differ.
    pieces: Vec<(bool, String)>,
}

/// A change as lines, at most this many rows.
pub(crate) fn diff_lines(diff: &str, most: usize, look: &Look<'_>) -> Vec<Line<'static>> {
    let rows = rows(diff);
    let hidden = rows.len().saturating_sub(most);
    let digits = rows.iter().flatten().map(|row| row.number).max().unwrap_or(0).to_string().len().max(2);
    let mut lines: Vec<Line<'static>> =
        rows.iter().take(most).map(|row| line(row.as_ref(), digits, look)).collect();
    if hidden > 0 {
        let words = format!("  {} {hidden} more rows (Ctrl+O shows all)", look.signs.more);
        lines.push(Line::from(look.span(Ink::Dim, words)));
    }
    lines
}

fn line(row: Option<&Row>, digits: usize, look: &Look<'_>) -> Line<'static> {
    let Some(row) = row else {
        return Line::from(look.span(Ink::Dim, format!("  {:>digits$} {}", "", look.signs.more)));
    };
    let (sign, ink, word) = match row.sign {
        '+' => ("+", Ink::Added, Ink::AddedWord),
        '-' => (look.signs.minus, Ink::Removed, Ink::RemovedWord),
        _ => (" ", Ink::Dim, Ink::Dim),
    };
    let mut spans: Vec<Span<'static>> =
        vec![look.span(Ink::Dim, format!("  {:>digits$} ", row.number)), look.span(ink, format!("{sign} "))];
    spans.extend(
        row.pieces
            .iter()
            .map(|(differs, text)| look.span(if *differs { word } else { ink }, expand_tabs(&prose(text)))),
    );
    Line::from(spans)
}

/// The rows of a change; `None` between two hunks.
fn rows(diff: &str) -> Vec<Option<Row>> {
    let mut rows: Vec<Option<Row>> = Vec::new();
    let (mut old, mut new) = (0, 0);
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    for line in diff.lines() {
        if line.starts_with("--- ") || line.starts_with("+++ ") || line.starts_with('\\') {
            continue;
        }
        if let Some(head) = line.strip_prefix("@@ -") {
            settle(&mut rows, &mut removed, &mut added);
            if let Some((old_start, new_start)) = starts(head) {
                (old, new) = (old_start, new_start);
            }
            if !rows.is_empty() {
                rows.push(None);
            }
        } else if let Some(text) = line.strip_prefix('-') {
            removed.push((old, text.to_owned()));
            old += 1;
        } else if let Some(text) = line.strip_prefix('+') {
            added.push((new, text.to_owned()));
            new += 1;
        } else {
            settle(&mut rows, &mut removed, &mut added);
            let text = line.strip_prefix(' ').unwrap_or(line).to_owned();
            rows.push(Some(Row { number: new, sign: ' ', pieces: vec![(false, text)] }));
            (old, new) = (old + 1, new + 1);
        }
    }
    settle(&mut rows, &mut removed, &mut added);
    rows
}

/// The first lines of a hunk, before and after.
fn starts(head: &str) -> Option<(usize, usize)> {
    let (old, rest) = head.split_once(" +")?;
    let number = |text: &str| text.split([',', ' ']).next()?.parse().ok();
    Some((number(old)?, number(rest)?))
}

/// Lines that replace others: where as many come as go, the words that differ are found pair by pair.
fn settle(rows: &mut Vec<Option<Row>>, removed: &mut Vec<(usize, String)>, added: &mut Vec<(usize, String)>) {
    let paired = removed.len() == added.len();
    let (removed, added) = (std::mem::take(removed), std::mem::take(added));
    let pairs: Vec<(Pieces, Pieces)> = if paired {
        removed.iter().zip(&added).map(|((_, old), (_, new))| differing(old, new)).collect()
    } else {
        Vec::new()
    };
    for (at, (number, text)) in removed.into_iter().enumerate() {
        let pieces = pairs.get(at).map_or_else(|| vec![(false, text)], |(old, _)| old.clone());
        rows.push(Some(Row { number, sign: '-', pieces }));
    }
    for (at, (number, text)) in added.into_iter().enumerate() {
        let pieces = pairs.get(at).map_or_else(|| vec![(false, text)], |(_, new)| new.clone());
        rows.push(Some(Row { number, sign: '+', pieces }));
    }
}

type Pieces = Vec<(bool, String)>;

/// Lines longer than this are not compared word by word.
const LONGEST_COMPARED: usize = 500;

/// Both lines in pieces, with those that the other does not have marked. Lines with little in common are not marked at all.
fn differing(old: &str, new: &str) -> (Pieces, Pieces) {
    let plain = || (vec![(false, old.to_owned())], vec![(false, new.to_owned())]);
    if old.len().max(new.len()) > LONGEST_COMPARED {
        return plain();
    }
    let diff = TextDiff::from_words(old, new);
    if diff.ratio() < 0.5 {
        return plain();
    }
    let (mut before, mut after): (Pieces, Pieces) = (Vec::new(), Vec::new());
    for change in diff.iter_all_changes() {
        let text = change.value().to_owned();
        match change.tag() {
            ChangeTag::Equal => {
                push(&mut before, false, &text);
                push(&mut after, false, &text);
            }
            ChangeTag::Delete => push(&mut before, true, &text),
            ChangeTag::Insert => push(&mut after, true, &text),
        }
    }
    (before, after)
}

fn push(pieces: &mut Pieces, differs: bool, text: &str) {
    match pieces.last_mut().filter(|(last, _)| *last == differs) {
        Some((_, last)) => last.push_str(text),
        None => pieces.push((differs, text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_and_words_marked() {
        let diff = "--- a\n+++ a\n@@ -10,3 +10,3 @@\n one\n-let a = 1;\n+let a = 22;\n two\n@@ -40 +40,2 @@\n x\n+y\n";
        let rows = rows(diff);
        let brief: Vec<Option<(usize, char)>> =
            rows.iter().map(|row| row.as_ref().map(|row| (row.number, row.sign))).collect();
        assert_eq!(
            brief,
            [
                Some((10, ' ')),
                Some((11, '-')),
                Some((11, '+')),
                Some((12, ' ')),
                None,
                Some((40, ' ')),
                Some((41, '+'))
            ]
        );
        let added = rows[2].as_ref().unwrap();
        assert!(added.pieces.iter().any(|(differs, text)| *differs && text.contains("22")), "{added:?}");
        assert!(added.pieces.iter().any(|(differs, text)| !*differs && text.contains("let")), "{added:?}");
    }

    #[test]
    fn lines_without_likeness_are_not_marked() {
        let (old, new) = differing("completely other words here", "nothing of that is left now");
        assert_eq!((old.len(), new.len(), old[0].0), (1, 1, false));
    }
}
