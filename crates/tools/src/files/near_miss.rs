//! Help for an edit whose text was not found: what the file has instead.
//!
//! First the two usual mistakes are distinguished (white space, line numbers copied along), then the most similar line is
//! shown. The search is bounded, so that a large file costs no more than a small one.

use qoder_process::output::first_characters;

use crate::files::difference::likeness;

/// Lines compared by similarity.
const COMPARED_LINES: usize = 3_000;
/// Characters of a line that are compared and shown.
const LINE_CHARACTERS: usize = 200;
/// Below this two lines have nothing to do with each other.
const SIMILAR: f32 = 0.6;

/// Says how `wanted` differs from what `text` has.
pub(crate) fn explain(text: &str, wanted: &str) -> String {
    if has_line_numbers(wanted) {
        return "It contains the line numbers that Read puts in front of each line; leave them out."
            .to_owned();
    }
    if let Some(number) = find_without_blanks(text, wanted) {
        let line = text.lines().nth(number).unwrap_or_default();
        return format!(
            "Line {} differs only in white space (indentation, tabs or line ends). The file has:\n{:>6}\t{}",
            number + 1,
            number + 1,
            first_characters(line, LINE_CHARACTERS).0
        );
    }
    match closest_line(text, wanted) {
        Some((number, line)) => format!(
            "The closest line is:\n{:>6}\t{}\nRead the file again if it may have changed.",
            number + 1,
            first_characters(line, LINE_CHARACTERS).0
        ),
        None => "Nothing like it is in the file; read it again.".to_owned(),
    }
}

fn has_line_numbers(wanted: &str) -> bool {
    let mut lines = wanted.lines().filter(|line| !line.is_empty()).peekable();
    lines.peek().is_some()
        && lines.all(|line| {
            line.split_once('\t').is_some_and(|(number, _)| {
                let number = number.trim();
                !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
            })
        })
}

/// The line at which the wanted lines are when white space is not compared.
fn find_without_blanks(text: &str, wanted: &str) -> Option<usize> {
    let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted: Vec<String> = wanted.lines().map(squeeze).filter(|line| !line.is_empty()).collect();
    let (first, rest) = wanted.split_first()?;
    let lines: Vec<(usize, String)> = text
        .lines()
        .enumerate()
        .take(100_000)
        .map(|(number, line)| (number, squeeze(line)))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    let matches_at = |start: usize| {
        let starts =
            if rest.is_empty() { lines[start].1.contains(first) } else { lines[start].1.ends_with(first) };
        starts
            && lines.len() > start + rest.len()
            && rest.iter().enumerate().all(|(index, line)| {
                let found = &lines[start + 1 + index].1;
                if index + 1 == rest.len() { found.starts_with(line) } else { found == line }
            })
    };
    (0..lines.len()).find(|start| matches_at(*start)).map(|start| lines[start].0)
}

/// The line most like the longest line that is wanted.
fn closest_line<'a>(text: &'a str, wanted: &str) -> Option<(usize, &'a str)> {
    let wanted =
        wanted.lines().map(str::trim).max_by_key(|line| line.len()).filter(|line| !line.is_empty())?;
    let wanted = first_characters(wanted, LINE_CHARACTERS).0;
    let mut best: Option<(f32, usize, &str)> = None;
    for (number, line) in text.lines().enumerate().take(COMPARED_LINES) {
        let candidate = first_characters(line.trim(), LINE_CHARACTERS).0;
        let (short, long) = (candidate.len().min(wanted.len()), candidate.len().max(wanted.len()));
        // Lines of very different length cannot be similar: most lines are skipped here.
        if short * 2 < long {
            continue;
        }
        let ratio = likeness(wanted, candidate);
        if ratio >= SIMILAR && best.is_none_or(|(known, _, _)| ratio > known) {
            best = Some((ratio, number, line));
        }
    }
    best.map(|(_, number, line)| (number, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "fn main() {\n    let value = compute(1);\n    print(value);\n}\n";

    #[test]
    fn the_usual_mistakes_are_named() {
        let blanks = explain(TEXT, "let value = compute(1);\n  print(value);");
        assert!(blanks.contains("Line 2 differs only in white space"), "{blanks}");
        assert!(explain(TEXT, "     2\tlet value = compute(1);").contains("line numbers"));
        let close = explain(TEXT, "let value = compute(2);");
        assert!(close.contains("closest line") && close.contains("compute(1)"), "{close}");
        assert!(explain(TEXT, "zzzzzz").contains("Nothing like it"));
    }
}
