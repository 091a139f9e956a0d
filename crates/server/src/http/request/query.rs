//! Query strings. Arrays arrive as `key[]=a&key[]=b`, repeated keys or a comma list; times as `created_at[gte]`.

use std::ops::RangeInclusive;

use crate::http::errors::ApiError;
use crate::model::problem::Problem;
use crate::model::time::Time;

/// The most parameters.
const MOST: usize = 1_000;

/// The parameters of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads the text behind `?`.
    ///
    /// # Errors
    /// When there are too many parameters.
    pub fn parse(text: &str) -> Result<Self, ApiError> {
        let pairs: Vec<(String, String)> = url::form_urlencoded::parse(text.as_bytes())
            .take(MOST + 1)
            .map(|(key, value)| (key.into_owned(), value.into_owned()))
            .collect();
        if pairs.len() > MOST {
            return Err(ApiError::invalid(format!("The query has more than {MOST} parameters.")));
        }
        Ok(Self(pairs))
    }

    /// The value of a parameter that may be given once; an empty one counts as missing.
    ///
    /// # Errors
    /// When it is given more than once.
    pub fn one(&self, key: &str) -> Result<Option<&str>, Problem> {
        let mut values = self.0.iter().filter(|(name, _)| name == key).map(|(_, value)| value.as_str());
        let value = values.next();
        if values.next().is_some() {
            return Err(Problem::field(key, "is given more than once"));
        }
        Ok(value.filter(|value| !value.is_empty()))
    }

    /// The values of an array.
    #[must_use]
    pub fn all(&self, key: &str) -> Vec<String> {
        let is_it = |name: &str| {
            let rest = name.strip_prefix(key);
            rest.is_some_and(|rest| rest.is_empty() || (rest.starts_with('[') && rest.ends_with(']')))
        };
        let values = self.0.iter().filter(|(name, _)| is_it(name)).flat_map(|(_, value)| value.split(','));
        values.map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned).collect()
    }

    /// A whole number in these bounds.
    ///
    /// # Errors
    /// When it is something else.
    pub fn number(&self, key: &str, bounds: RangeInclusive<u64>) -> Result<Option<u64>, Problem> {
        let Some(text) = self.one(key)? else { return Ok(None) };
        let number = text.parse().ok().filter(|number| bounds.contains(number));
        number.map(Some).ok_or_else(|| {
            let (least, most) = bounds.into_inner();
            Problem::field(key, format!("must be a whole number, {least} to {most}"))
        })
    }

    /// True or false.
    ///
    /// # Errors
    /// When it is something else.
    pub fn flag(&self, key: &str) -> Result<bool, Problem> {
        match self.one(key)? {
            None | Some("false" | "0") => Ok(false),
            Some("true" | "1") => Ok(true),
            Some(other) => Err(Problem::field(key, format!("is `{other}`; accepted are true and false"))),
        }
    }

    /// The bounds of a time: from and to, both included.
    ///
    /// # Errors
    /// When a bound is not a time.
    pub fn times(&self, key: &str) -> Result<(Option<Time>, Option<Time>), Problem> {
        let bound = |word: &str, shift: i64| -> Result<Option<Time>, Problem> {
            let name = format!("{key}[{word}]");
            let Some(text) = self.one(&name)? else { return Ok(None) };
            let time = Time::parse(text)
                .ok_or_else(|| Problem::field(name, format!("is `{text}`, which is not a time")))?;
            Ok(Some(Time(time.0.saturating_add(shift))))
        };
        let from = bound("gte", 0)?.max(bound("gt", 1)?);
        let to = match (bound("lte", 0)?, bound("lt", -1)?) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        Ok((from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_arrive_in_any_of_their_forms() {
        for text in
            ["s%5B%5D=idle&s%5B%5D=running", "s[]=idle&s[]=running", "s=idle&s=running", "s=idle,running"]
        {
            assert_eq!(Query::parse(text).unwrap().all("s"), ["idle", "running"], "{text}");
        }
        assert_eq!(Query::parse("types=a&t=b").unwrap().all("t"), ["b"]);
    }

    #[test]
    fn times_have_bounds() {
        let query = Query::parse(
            "created_at%5Bgt%5D=1970-01-01T00:00:01%2B00:00&created_at[lt]=1970-01-01T00:00:02Z",
        )
        .unwrap();
        assert_eq!(query.times("created_at").unwrap(), (Some(Time(1_000_001)), Some(Time(1_999_999))));
        let wrong = Query::parse("created_at[gte]=yesterday").unwrap();
        assert_eq!(wrong.times("created_at").unwrap_err().field.as_deref(), Some("created_at[gte]"));
    }

    #[test]
    fn nonsense_is_named_and_too_much_is_refused() {
        let query = Query::parse("limit=0&flag=maybe&twice=1&twice=2&empty=").unwrap();
        assert!(query.number("limit", 1..=100).is_err() && query.flag("flag").is_err());
        assert!(query.one("twice").is_err());
        assert_eq!(query.one("empty").unwrap(), None);
        assert!(Query::parse(&"a=1&".repeat(100_000)).is_err());
        assert_eq!(Query::parse("%ff%fe=%00").unwrap().0.len(), 1, "any bytes");
    }
}
