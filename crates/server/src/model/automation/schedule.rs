//! Schedules: five fields of cron in a time zone. A time that a clock change skips is made up for right after it, and one that occurs
//! twice counts once, as the cron library does it.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::fields::Fields;
use crate::model::problem::Problem;
use crate::model::time::Time;

const LONGEST: usize = 256;
/// Upcoming times that are shown.
const SHOWN: usize = 5;

/// When a deployment runs by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// Five fields.
    pub expression: String,
    /// A name of the time zone database.
    pub timezone: String,
}

fn parsed(expression: &str) -> Result<Cron, String> {
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    parser.parse(expression).map_err(|error| error.to_string())
}

impl Schedule {
    /// Reads a schedule.
    ///
    /// # Errors
    /// When a field is missing or cannot be used, or the schedule never comes due.
    pub fn read(value: &Value) -> Result<Self, Problem> {
        let fields = Fields::of(value, "schedule")?;
        let inside = |problem: Problem| problem.inside("schedule");
        fields.word("type", &["cron"]).map_err(inside)?;
        let expression = fields.text("expression", 1..=LONGEST).map_err(inside)?;
        parsed(expression).map_err(|error| {
            let problem =
                format!("is `{expression}`, which is not a cron expression of five fields: {error}");
            Problem::field("schedule.expression", problem)
        })?;
        let timezone = fields.optional_text("timezone", 1..=LONGEST).map_err(inside)?.unwrap_or("UTC");
        if TimeZone::get(timezone).is_err() {
            let problem = format!("is `{timezone}`, which is not an IANA time zone such as `Europe/Berlin`");
            return Err(Problem::field("schedule.timezone", problem));
        }
        let schedule = Self { expression: expression.to_owned(), timezone: timezone.to_owned() };
        if schedule.next(Time::now()).is_none() {
            return Err(Problem::field(
                "schedule.expression",
                format!("is `{expression}`, which never comes due"),
            ));
        }
        Ok(schedule)
    }

    /// The first time after this one.
    #[must_use]
    pub fn next(&self, after: Time) -> Option<Time> {
        let zone = TimeZone::get(&self.timezone).ok()?;
        let from = Timestamp::from_microsecond(after.0).ok()?.to_zoned(zone);
        let next = parsed(&self.expression).ok()?.find_next_occurrence(&from, false).ok()?;
        Some(Time(next.timestamp().as_microsecond())).filter(|next| *next > after)
    }

    /// As clients read it.
    #[must_use]
    pub fn view(&self, last: Option<Time>, next: Option<Time>) -> Value {
        let upcoming: Vec<Time> = std::iter::successors(next, |time| self.next(*time)).take(SHOWN).collect();
        json!({
            "type": "cron", "expression": self.expression, "timezone": self.timezone, "last_run_at": last,
            "upcoming_runs_at": upcoming,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(expression: &str, timezone: &str, from: &str, count: usize) -> Vec<String> {
        let schedule = Schedule { expression: expression.to_owned(), timezone: timezone.to_owned() };
        let first = Time::parse(from).unwrap();
        let times = std::iter::successors(schedule.next(first), |time| schedule.next(*time));
        times.take(count).map(|time| time.to_string()[..16].to_owned()).collect()
    }

    #[test]
    fn the_hour_is_that_of_the_time_zone_also_over_a_change_of_clocks() {
        let days = times("0 9 * * 1-5", "Europe/Berlin", "2026-03-26T00:00:00Z", 4);
        assert_eq!(days, ["2026-03-26T08:00", "2026-03-27T08:00", "2026-03-30T07:00", "2026-03-31T07:00"]);
        assert_eq!(
            times("*/15 * * * *", "UTC", "2026-01-01T00:07:00Z", 2),
            ["2026-01-01T00:15", "2026-01-01T00:30"]
        );
    }

    #[test]
    fn a_time_that_a_clock_change_skips_or_repeats_is_one_run() {
        // On 2026-03-29 Berlin has no 02:30; on 2026-10-25 it has two.
        let spring = times("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2);
        assert_eq!(spring.len(), 2);
        assert!(spring[0].starts_with("2026-03-29") && spring[1] == "2026-03-30T00:30", "{spring:?}");
        let autumn = times("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2);
        assert_eq!(autumn, ["2026-10-25T00:30", "2026-10-26T01:30"]);
    }

    #[test]
    fn what_is_not_a_schedule_is_refused() {
        for (expression, timezone) in [
            ("* * * *", "UTC"),
            ("0 * * * * *", "UTC"),
            ("61 * * * *", "UTC"),
            ("0 0 30 2 *", "UTC"),
            ("0 9 * * *", "Mars/Olympus"),
        ] {
            let value = json!({ "type": "cron", "expression": expression, "timezone": timezone });
            assert!(Schedule::read(&value).is_err(), "{expression} {timezone}");
        }
        assert!(Schedule::read(&json!({ "type": "interval", "expression": "0 9 * * *" })).is_err());
    }
}
