//! How many tests passed and failed, read from what the test runners print. The forms are those
//! of `cargo nextest` (one summary line) and of `cargo test` (one result line for each test
//! program).

use std::fmt;

/// A number of tests that passed, that failed, and that could not run on this machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Counts {
    /// One test with this outcome.
    pub(crate) fn of(passed: bool) -> Self {
        Self { passed: u64::from(passed), failed: u64::from(!passed), skipped: 0 }
    }

    /// Adds other tests.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Counts {
    /// Skipped tests are only spoken of where there are some.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(formatter, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

/// Reads `Summary [ 1.234s] 12 tests run: 10 passed (1 slow), 1 failed, 1 timed out, 0 skipped`.
pub(super) fn from_nextest(output: &str) -> Counts {
    let mut counts = Counts::default();
    let Some(summary) = output.lines().rfind(|line| line.trim_start().starts_with("Summary [")) else {
        return counts;
    };
    let Some((_, parts)) = summary.split_once("run:") else { return counts };
    for part in without_parentheses(parts).split(',') {
        let mut words = part.split_whitespace();
        let number: u64 = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        match words.next() {
            Some("passed") => counts.passed += number,
            // Skipped tests were not run; whatever else is neither passed nor skipped went wrong.
            Some("skipped") | None => {}
            Some(_) => counts.failed += number,
        }
    }
    counts
}

/// Remarks such as `(1 slow, 2 leaky)` describe tests that are already counted.
fn without_parentheses(text: &str) -> String {
    let mut depth = 0_u32;
    let mut kept = String::new();
    for character in text.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            other if depth == 0 => kept.push(other),
            _ => {}
        }
    }
    kept
}

/// Adds up the lines `test result: ok. 3 passed; 0 failed; 0 ignored; …`.
pub(super) fn from_cargo(output: &str) -> Counts {
    let mut counts = Counts::default();
    for line in output.lines() {
        let Some(result) = line.trim_start().strip_prefix("test result: ") else { continue };
        let Some((_, parts)) = result.split_once(". ") else { continue };
        for part in parts.split(';') {
            let mut words = part.split_whitespace();
            let number: u64 = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
            match words.next() {
                Some("passed") => counts.passed += number,
                Some("failed") => counts.failed += number,
                Some(_) | None => {}
            }
        }
    }
    counts
}

/// Reads the last line of pytest, `2 failed, 10 passed, 1 warning in 3.21s`. A skipped test counts as failed: everything
/// that the tests need is installed by the run itself.
pub(super) fn from_pytest(output: &str) -> Counts {
    let counts = from_pytest_with_skipped(output);
    Counts { failed: counts.failed + counts.skipped, skipped: 0, ..counts }
}

/// The same for tests that may not be able to run on every machine.
pub(super) fn from_pytest_with_skipped(output: &str) -> Counts {
    let words = ["passed", "failed", "skipped", "error"];
    let is_summary = |line: &&str| line.contains(" in ") && words.iter().any(|word| line.contains(word));
    let Some(summary) = output.lines().rev().find(is_summary) else { return Counts::default() };
    let mut counts = Counts::default();
    let parts = summary.trim_matches(|character| character == '=' || character == ' ');
    for part in parts.split(" in ").next().unwrap_or_default().split(',') {
        let mut words = part.split_whitespace();
        let number: u64 = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        match words.next() {
            Some("passed") => counts.passed += number,
            Some("failed" | "error" | "errors" | "xfailed" | "xpassed") => counts.failed += number,
            Some("skipped") => counts.skipped += number,
            Some(_) | None => {}
        }
    }
    counts
}

/// Adds up node's closing lines, `# pass 12` or `ℹ pass 12`. As in [`from_pytest`], nothing may be skipped.
pub(super) fn from_node(output: &str) -> Counts {
    let mut counts = Counts::default();
    for line in output.lines() {
        let mut words = line.split_whitespace();
        if !matches!(words.next(), Some("#" | "ℹ")) {
            continue;
        }
        let (word, number) =
            (words.next(), words.next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0));
        match word {
            Some("pass") => counts.passed += number,
            Some("fail" | "cancelled" | "skipped" | "todo") => counts.failed += number,
            Some(_) | None => {}
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(passed: u64, failed: u64) -> Counts {
        Counts { passed, failed, skipped: 0 }
    }

    #[test]
    fn nextest_summaries_are_read() {
        let all = "noise\n     Summary [   0.004s] 12 tests run: 12 passed, 0 skipped\n";
        assert_eq!(from_nextest(all), of(12, 0));
        let one = "     Summary [   0.004s] 1 test run: 1 passed (1 leaky), 3 skipped\n";
        assert_eq!(from_nextest(one), of(1, 0));
        let bad =
            "Summary [ 9.1s] 8/12 tests run: 5 passed (2 slow, 1 leaky), 2 failed, 1 timed out, 0 skipped\n";
        assert_eq!(from_nextest(bad), of(5, 3));
        assert_eq!(from_nextest("error: could not compile"), Counts::default());
    }

    #[test]
    fn a_timeout_is_a_failure() {
        let output = "Summary [ 9.1s] 8 tests run: 5 passed, 2 failed, 1 timed out, 4 skipped";
        assert_eq!(from_nextest(output), of(5, 3));
    }

    #[test]
    fn pytest_summaries_are_read() {
        let output =
            "...F\n== short test summary info ==\n2 failed, 10 passed, 1 skipped, 3 warnings in 3.21s\n";
        assert_eq!(from_pytest(output), of(10, 3));
        assert_eq!(from_pytest("==== 7 passed in 0.10s ====\n"), of(7, 0));
        assert_eq!(from_pytest("no tests ran in 0.01s"), Counts::default());
        assert_eq!(from_pytest("15 skipped in 0.10s"), of(0, 15));
        let some = from_pytest_with_skipped("15 passed, 15 skipped in 9.10s");
        assert_eq!(some, Counts { passed: 15, failed: 0, skipped: 15 });
        assert_eq!(some.to_string(), "15 passed, 0 failed, 15 skipped");
        assert_eq!(of(2, 1).to_string(), "2 passed, 1 failed");
    }

    #[test]
    fn node_summaries_are_read() {
        let output = "# tests 5\n# pass 3\n# fail 1\n# cancelled 0\n# skipped 1\n# todo 0\n";
        assert_eq!(from_node(output), of(3, 2));
        assert_eq!(from_node("ℹ pass 4\nℹ fail 0\n"), of(4, 0));
    }

    #[test]
    fn cargo_results_are_added_up() {
        let output = "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
                      test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(from_cargo(output), of(4, 2));
        assert_eq!(from_cargo("error: no such package"), Counts::default());
    }
}
