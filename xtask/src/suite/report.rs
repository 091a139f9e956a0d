//! What a step returns, and how steps are counted. Steps run beside each other, so a step never prints: it returns its
//! lines, and [`Tally::step`] prints them in one piece when the step is over.

use std::fmt::Display;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::counts::Counts;
use xtask::process::Finished;

/// The tests of a step, and what to print about them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) counts: Counts,
    pub(super) text: String,
}

impl Report {
    /// One check with this outcome, and nothing to print.
    pub(super) fn of(passed: bool) -> Self {
        Self { counts: Counts::of(passed), text: String::new() }
    }

    /// The tests that a command ran. Its output is printed when it failed; a failure that no test explains, such as a
    /// broken build, counts as one.
    pub(super) fn of_command(finished: &Finished, mut counts: Counts) -> Self {
        let mut text = String::new();
        if !finished.succeeded() {
            text = format!("{}\n", finished.output.trim_end());
            if counts.failed == 0 {
                counts.failed = 1;
            }
        }
        Self { counts, text }
    }

    /// Adds a line.
    pub(super) fn line(&mut self, line: impl Display) {
        self.text.push_str(&format!("{line}\n"));
    }

    /// Adds the tests and lines of another report.
    pub(super) fn add(&mut self, other: &Self) {
        self.counts.add(other.counts);
        self.text.push_str(&other.text);
    }
}

/// The sum of all steps.
pub(super) struct Tally {
    total: Mutex<Counts>,
    begun: Instant,
}

impl Tally {
    /// No tests yet.
    pub(super) fn new() -> Self {
        Self { total: Mutex::new(Counts::default()), begun: Instant::now() }
    }

    /// Runs one step and prints its report under a heading; returns whether nothing failed. A step that cannot run, and one
    /// that ran nothing, counts as one failure.
    pub(super) fn step(&self, heading: &str, work: impl FnOnce() -> Result<Report>) -> bool {
        let start = Instant::now();
        let report = settled(work());
        let seconds = start.elapsed().as_secs_f64();
        print!("== {heading}\n{}   {}, {seconds:.1} s\n\n", report.text, report.counts);
        self.total.lock().unwrap_or_else(std::sync::PoisonError::into_inner).add(report.counts);
        report.counts.failed == 0
    }

    /// Prints the time taken and, as the last line, the sum.
    pub(super) fn finish(&self) -> Counts {
        let total = *self.total.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (wall, processor) = (self.begun.elapsed().as_secs_f64(), processor_time().as_secs_f64());
        println!("{wall:.0} s, of which the processors worked {processor:.0} s");
        println!("{total}");
        total
    }
}

fn settled(outcome: Result<Report>) -> Report {
    let (mut report, problem) = match outcome {
        Ok(report) if report.counts != Counts::default() => return report,
        Ok(report) => (report, "nothing was run: a step without tests proves nothing".to_owned()),
        Err(error) => (Report::default(), format!("{error:#}")),
    };
    report.line(problem);
    report.counts = Counts::of(false);
    report
}

/// How long all finished children worked, theirs included.
fn processor_time() -> Duration {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call writes a whole `rusage` through a valid pointer; all zeroes are one, too.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    let of = |time: libc::timeval| {
        let whole = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0));
        whole + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
    };
    of(usage.ru_utime) + of(usage.ru_stime)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed_once() -> Counts {
        Counts { passed: 0, failed: 1, skipped: 0 }
    }

    #[test]
    fn a_step_that_runs_nothing_fails() {
        assert_eq!(settled(Ok(Report::default())).counts, failed_once());
    }

    #[test]
    fn a_step_that_is_skipped_is_neither_passed_nor_failed() {
        let skipped = Counts { skipped: 3, ..Counts::default() };
        assert_eq!(settled(Ok(Report { counts: skipped, text: String::new() })).counts, skipped);
    }

    #[test]
    fn a_step_that_cannot_run_fails_and_says_why() {
        let report = settled(Err(anyhow::anyhow!("no such program")));
        assert_eq!(report.counts, failed_once());
        assert_eq!(report.text, "no such program\n");
    }

    #[test]
    fn a_failure_without_a_failed_test_counts() {
        let finished = Finished { code: Some(101), output: "error: could not compile\n".to_owned() };
        let report = Report::of_command(&finished, Counts { passed: 7, failed: 0, skipped: 0 });
        assert_eq!(report.counts, Counts { passed: 7, failed: 1, skipped: 0 });
        assert_eq!(report.text, "error: could not compile\n");
    }

    #[test]
    fn steps_that_run_beside_each_other_are_added_up() {
        let tally = Tally::new();
        std::thread::scope(|scope| {
            scope.spawn(|| tally.step("one", || Ok(Report::of(true))));
            scope.spawn(|| tally.step("two", || Ok(Report::of(false))));
        });
        assert_eq!(tally.finish(), Counts { passed: 1, failed: 1, skipped: 0 });
    }

    #[test]
    fn the_time_of_children_is_counted() {
        let before = processor_time();
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"]);
        assert!(xtask::process::capture(&mut command).unwrap().succeeded());
        assert!(processor_time() > before);
    }
}
