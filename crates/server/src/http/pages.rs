//! Pages of lists: cursors in requests, and the envelope of answers that satisfies clients of both dialects.

use serde_json::{Value, json};

use super::request::Query;
use crate::model::ids::TenantId;
use crate::model::problem::Problem;
use crate::store::{ListQuery, ListedPage, Place};

/// What a cursor that leads back begins with.
const BACK: &str = "before.";
const DEFAULT_LIMIT: u64 = 20;

/// Where a page begins, by the ids of clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cursor {
    /// At the beginning.
    Start,
    /// Behind this thing.
    After(String),
    /// So that this thing comes next.
    Before(String),
}

/// What a request says about the page that it wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// Where the page begins.
    pub cursor: Cursor,
    /// The most things.
    pub limit: usize,
}

impl PageRequest {
    /// Reads the parameters of a page; a list has at most `most` things a page.
    ///
    /// # Errors
    /// When the limit cannot be used, or there are several cursors.
    pub fn read(query: &Query, most: u64) -> Result<Self, Problem> {
        let limit = query.number("limit", 1..=most)?.unwrap_or(DEFAULT_LIMIT.min(most));
        let mut given = Vec::new();
        for key in ["page", "after_id", "before_id", "after", "before"] {
            if let Some(value) = query.one(key)? {
                given.push((key, value));
            }
        }
        let cursor = match given.as_slice() {
            [] => Cursor::Start,
            [("page", page)] => match page.strip_prefix(BACK) {
                Some(id) => Cursor::Before(id.to_owned()),
                None => Cursor::After((*page).to_owned()),
            },
            [("after_id" | "after", id)] => Cursor::After((*id).to_owned()),
            [(_, id)] => Cursor::Before((*id).to_owned()),
            [_, (second, _), ..] => {
                return Err(Problem::field(*second, "cannot be combined with another cursor"));
            }
        };
        Ok(Self { cursor, limit: usize::try_from(limit).unwrap_or(usize::MAX) })
    }

    /// The place of the cursor, by ids of one kind.
    ///
    /// # Errors
    /// When it is not such an id.
    pub fn place(&self, parse: impl Fn(&str) -> Option<[u8; 16]>) -> Result<Place, Problem> {
        let id = |text: &str| {
            parse(text).ok_or_else(|| {
                Problem::field("page", format!("is `{text}`, which is not a cursor of this list"))
            })
        };
        Ok(match &self.cursor {
            Cursor::Start => Place::Start,
            Cursor::After(text) => Place::After(id(text)?),
            Cursor::Before(text) => Place::Before(id(text)?),
        })
    }

    /// The parameters that most lists have.
    ///
    /// # Errors
    /// When one cannot be used.
    pub fn list(
        &self,
        tenant: TenantId,
        query: &Query,
        parse: impl Fn(&str) -> Option<[u8; 16]>,
    ) -> Result<ListQuery, Problem> {
        let (created_from, created_to) = query.times("created_at")?;
        Ok(ListQuery {
            tenant,
            place: self.place(parse)?,
            limit: self.limit,
            include_archived: query.flag("include_archived")?,
            created_from,
            created_to,
            ascending: false,
        })
    }
}

/// A page as clients read it.
pub fn page<T>(listed: &ListedPage<T>, id: impl Fn(&T) -> String, view: impl Fn(&T) -> Value) -> Value {
    let ids: Vec<String> = listed.items.iter().map(&id).collect();
    page_of_ids(&ids, listed.has_more, listed.has_before, &listed.items.iter().map(view).collect::<Vec<_>>())
}

/// A page as clients read it, of things with these ids.
#[must_use]
pub fn page_of_ids(ids: &[String], has_more: bool, has_before: bool, data: &[Value]) -> Value {
    let next = ids.last().filter(|_| has_more);
    let previous = ids.first().filter(|_| has_before).map(|id| format!("{BACK}{id}"));
    json!({
        "data": data, "next_page": next, "prev_page": previous, "first_id": ids.first(), "last_id": ids.last(),
        "has_more": has_more,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<PageRequest, Problem> {
        PageRequest::read(&Query::parse(text).unwrap(), 100)
    }

    #[test]
    fn there_is_one_cursor_at_most() {
        assert_eq!(read("").unwrap(), PageRequest { cursor: Cursor::Start, limit: 20 });
        assert_eq!(read("page=a&limit=5").unwrap().cursor, Cursor::After("a".to_owned()));
        assert_eq!(read("after_id=a").unwrap().cursor, Cursor::After("a".to_owned()));
        assert_eq!(read("before=a").unwrap().cursor, Cursor::Before("a".to_owned()));
        assert_eq!(read("page=before.a").unwrap().cursor, Cursor::Before("a".to_owned()));
        assert_eq!(read("page=a&after_id=b").unwrap_err().field.as_deref(), Some("after_id"));
        assert!(read("limit=101").is_err() && read("limit=0").is_err() && read("limit=x").is_err());
    }

    #[test]
    fn an_empty_page_is_whole() {
        let empty = ListedPage::<u8> { items: Vec::new(), has_more: false, has_before: false };
        let expected = json!({ "data": [], "next_page": null, "prev_page": null, "first_id": null, "last_id": null,
            "has_more": false });
        assert_eq!(page(&empty, |_| String::new(), |_| Value::Null), expected);
    }
}
