//! How far two words are apart, so that an error can name the word that was meant.

/// How many characters have to be added, removed or replaced to make one word of the other (Levenshtein).
#[must_use]
pub fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, x) in one.chars().enumerate() {
        let mut previous = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in other.iter().enumerate() {
            let replaced = previous + usize::from(x != *y);
            previous = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(previous + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_removed_and_replaced_characters_count() {
        for (one, other, expected) in [
            ("", "", 0),
            ("", "ab", 2),
            ("vlm", "vllm", 1),
            ("mistrel", "mistral", 1),
            ("é", "e", 1),
            ("ab", "ba", 2),
        ] {
            assert_eq!((distance(one, other), distance(other, one)), (expected, expected), "{one} {other}");
        }
    }
}
