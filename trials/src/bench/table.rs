//! The page of results: a head with date, machine and compiler, and a table with a row for each figure.
//! Targets are stated beside the figures; the ratio column compares with a floor or a peer measured in the
//! same run.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;

/// One line of the table.
#[derive(Debug)]
pub(super) struct Row {
    what: String,
    measured: String,
    target: String,
    ratio: String,
}

impl Row {
    /// A figure with the target it should meet.
    pub(super) fn new(what: impl Into<String>, measured: impl Into<String>, target: &str) -> Self {
        Self { what: what.into(), measured: measured.into(), target: target.to_owned(), ratio: String::new() }
    }

    /// A remark without a target.
    pub(super) fn note(what: impl Into<String>, remark: impl Into<String>) -> Self {
        Self::new(what, remark, "")
    }

    /// Adds how many times `floor` the measured value is.
    pub(super) fn against(mut self, value: f64, floor: f64, name: &str) -> Self {
        self.ratio = if floor > 0.0 { format!("{:.2} × {name}", value / floor) } else { "–".to_owned() };
        self
    }
}

/// Adds what another program measured to the rows of ours. Rows belong together by what they say.
pub(super) fn beside(ours: &mut [Row], theirs: Vec<Row>) {
    for other in theirs {
        if let Some(row) = ours.iter_mut().find(|row| row.what == other.what) {
            row.measured = format!("{} (other: {})", row.measured, other.measured);
        }
    }
}

/// The page as Markdown.
pub(super) fn page(root: &Path, rows: &[Row]) -> Result<String> {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = match memory_bytes() {
        Some(bytes) => format!("{:.0} GiB of memory", bytes as f64 / f64::from(1 << 30)),
        None => "an unknown amount of memory".to_owned(),
    };
    let rustc = Command::new("rustc").arg("--version").current_dir(root).output()?;
    let rustc = String::from_utf8_lossy(&rustc.stdout).trim().to_owned();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut page = format!(
        "# Benchmarks\n\nMade by `cargo xtask bench --write` on {} (UTC) with {cores} cores, {memory}, {rustc}. Medians of \
         repeated runs;\ncompare the ratios, not the times, between machines.\n\n| what | measured | target | ratio |\n\
         | --- | --- | --- | --- |\n",
        date(since.as_secs() / 86_400)
    );
    for Row { what, measured, target, ratio } in rows {
        let measured = measured.replace('|', "\\|").replace('\n', " ");
        page.push_str(&format!("| {what} | {measured} | {target} | {ratio} |\n"));
    }
    Ok(page)
}

/// The calendar date of a day counted from 1970-01-01.
fn date(mut day: u64) -> String {
    let mut year = 1970;
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days_of = |year: u64| if leap(year) { 366 } else { 365 };
    while day >= days_of(year) {
        day -= days_of(year);
        year += 1;
    }
    let february = if leap(year) { 29 } else { 28 };
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", day + 1)
}

fn memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// A time in the unit that suits it.
pub(super) fn time(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds >= 1.0 {
        format!("{seconds:.2} s")
    } else if seconds >= 1e-3 {
        format!("{:.2} ms", seconds * 1e3)
    } else {
        format!("{:.1} µs", seconds * 1e6)
    }
}

/// An amount of memory.
pub(super) fn size(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        for (day, text) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (20_453, "2025-12-31"),
            (20_772, "2026-11-15"),
        ] {
            assert_eq!(date(day), text);
        }
    }

    #[test]
    fn a_page_has_a_row_for_each_figure() {
        let rows =
            [Row::new("a", "2 ms", "at most 3 ms").against(2.0, 1.0, "floor"), Row::note("b", "x | y")];
        let page = page(Path::new("."), &rows).unwrap();
        assert!(page.contains("| a | 2 ms | at most 3 ms | 2.00 × floor |"));
        assert!(page.contains("| b | x \\| y |  |  |"));
    }

    #[test]
    fn figures_of_another_program_stand_beside_ours() {
        let mut rows = [Row::note("a", "2 ms"), Row::note("b", "3 ms")];
        beside(&mut rows, vec![Row::note("b", "4 ms"), Row::note("c", "5 ms")]);
        assert_eq!(rows[0].measured, "2 ms");
        assert_eq!(rows[1].measured, "3 ms (other: 4 ms)");
    }

    #[test]
    fn figures_have_suitable_units() {
        assert_eq!(time(Duration::from_micros(12)), "12.0 µs");
        assert_eq!(time(Duration::from_millis(12)), "12.00 ms");
        assert_eq!(time(Duration::from_millis(1500)), "1.50 s");
        assert_eq!(size(3 << 20), "3.0 MiB");
    }
}
