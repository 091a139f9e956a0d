//! How two texts differ: the unified form of it, the number of lines, and how much they have in common.
//!
//! Everything is compared as rows of numbers, one for each distinct line or character, so that the program holds one
//! copy of the algorithm and not one for each kind of text.

use std::collections::HashMap;
use std::fmt::Write;
use std::hash::Hash;
use std::time::{Duration, Instant};

use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::udiff::UnifiedHunkHeader;
use similar::{DiffOp, diff_ratio, group_diff_ops};

/// How long the shortest difference is looked for; a longer one will do after that.
const LONGEST_SEARCH: Duration = Duration::from_millis(200);
/// Lines shown around each change.
const CONTEXT: usize = 3;

/// The difference of two texts in unified form.
pub(crate) fn unified(before: &str, after: &str, name: &str) -> String {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let mut numbers = HashMap::new();
    let old_numbers = numbered(&old, &mut numbers);
    let new_numbers = numbered(&new, &mut numbers);
    let operations = operations(&old_numbers, &new_numbers, Some(Instant::now() + LONGEST_SEARCH));
    let mut text = String::new();
    for hunk in group_diff_ops(operations, CONTEXT).iter().filter(|hunk| !hunk.is_empty()) {
        if text.is_empty() {
            text = format!("--- {name}\n+++ {name}\n");
        }
        // Writing into a text cannot fail.
        let _ = writeln!(text, "{}", UnifiedHunkHeader::new(hunk));
        for operation in hunk {
            if let DiffOp::Equal { .. } = operation {
                add_lines(&mut text, ' ', &old[operation.old_range()]);
            } else {
                add_lines(&mut text, '-', &old[operation.old_range()]);
                add_lines(&mut text, '+', &new[operation.new_range()]);
            }
        }
    }
    text
}

/// How many lines a change adds and takes away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineChanges {
    /// Lines that come.
    pub added: u64,
    /// Lines that go.
    pub removed: u64,
}

/// Counts the lines by which two contents differ. After `deadline` a difference that is not the shortest will do.
#[must_use]
pub fn line_changes(before: &[u8], after: &[u8], deadline: Instant) -> LineChanges {
    let lines = |content| <[u8]>::split_inclusive(content, |byte| *byte == b'\n').collect::<Vec<&[u8]>>();
    let mut numbers = HashMap::new();
    let old = numbered(&lines(before), &mut numbers);
    let new = numbered(&lines(after), &mut numbers);
    let mut changes = LineChanges::default();
    for operation in operations(&old, &new, Some(deadline)) {
        if !matches!(operation, DiffOp::Equal { .. }) {
            changes.added += operation.new_range().len() as u64;
            changes.removed += operation.old_range().len() as u64;
        }
    }
    changes
}

/// A number for each line; equal lines have equal numbers.
fn numbered<'a, T: Eq + Hash + ?Sized>(lines: &[&'a T], numbers: &mut HashMap<&'a T, u32>) -> Vec<u32> {
    let number = |line: &&'a T| {
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        *numbers.entry(*line).or_insert(next)
    };
    lines.iter().map(number).collect()
}

fn add_lines(text: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        text.push(sign);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// How much two short texts have in common: one for equal texts, zero for texts without a common character.
pub(crate) fn likeness(one: &str, other: &str) -> f32 {
    let one: Vec<u32> = one.chars().map(u32::from).collect();
    let other: Vec<u32> = other.chars().map(u32::from).collect();
    diff_ratio(&operations(&one, &other, None), one.len(), other.len())
}

fn operations(old: &[u32], new: &[u32], deadline: Option<Instant>) -> Vec<DiffOp> {
    let mut changes = Compact::new(Replace::new(Capture::new()), old, new);
    let Ok(()) = myers::diff_deadline(&mut changes, old, 0..old.len(), new, 0..new.len(), deadline);
    changes.into_inner().into_inner().into_ops()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_stand_among_their_neighbours() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15";
        let after = "1\n2\nthree\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\nnew\n14\n15";
        let expected = "--- f\n+++ f\n@@ -1,6 +1,6 @@\n 1\n 2\n-3\n+three\n 4\n 5\n 6\n\
                        @@ -11,5 +11,6 @@\n 11\n 12\n 13\n+new\n 14\n 15\n\\ No newline at end of file\n";
        assert_eq!(unified(before, after, "f"), expected);
        assert_eq!(unified(before, before, "f"), "");
        assert_eq!(unified("", "a\n", "f"), "--- f\n+++ f\n@@ -0,0 +1 @@\n+a\n");
        assert_eq!(unified("a\n", "", "f"), "--- f\n+++ f\n@@ -1 +0,0 @@\n-a\n");
    }

    #[test]
    fn lines_that_come_and_go_are_counted() {
        let soon = || Instant::now() + LONGEST_SEARCH;
        let count = |before: &[u8], after: &[u8]| {
            let changes = line_changes(before, after, soon());
            (changes.added, changes.removed)
        };
        assert_eq!(count(b"a\nb\nc\n", b"a\nB\nc\nd\n"), (2, 1));
        assert_eq!(count(b"", b"one\ntwo"), (2, 0));
        assert_eq!(count(b"\x00\xff\n\xfe", b""), (0, 2));
        assert_eq!(count(b"same", b"same"), (0, 0));
    }

    #[test]
    fn likeness_is_the_common_part() {
        assert!((likeness("same", "same") - 1.0).abs() < f32::EPSILON);
        assert!(likeness("abc", "xyz").abs() < f32::EPSILON);
        assert!((likeness("abcd", "abxd") - 0.75).abs() < f32::EPSILON);
    }
}
