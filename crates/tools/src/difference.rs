//! How two texts differ: the unified form of it, and how much they have in common.
//!
//! Everything is compared as rows of numbers, one for each distinct line or character, so that the program holds one
//! copy of the algorithm and not one for each kind of text.

use std::collections::HashMap;
use std::fmt::Write;
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
    let mut number = |line| {
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        *numbers.entry(line).or_insert(next)
    };
    let old_numbers: Vec<u32> = old.iter().map(|line| number(*line)).collect();
    let new_numbers: Vec<u32> = new.iter().map(|line| number(*line)).collect();
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
    fn likeness_is_the_common_part() {
        assert!((likeness("same", "same") - 1.0).abs() < f32::EPSILON);
        assert!(likeness("abc", "xyz").abs() < f32::EPSILON);
        assert!((likeness("abcd", "abxd") - 0.75).abs() < f32::EPSILON);
    }
}
