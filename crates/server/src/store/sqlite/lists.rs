//! Pages of lists: by time of creation, then by id, in either direction.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};

use crate::model::ids::RawId;
use crate::model::problem::Problem;
use crate::store::error::DbError;
use crate::store::port::{ListQuery, ListedPage, Place};

/// A list in the database.
pub(super) struct List<'a> {
    /// What is selected, with `FROM`; its rows have `created_at` and the column of the order.
    pub(super) select: &'a str,
    /// The table whose rows are listed, by its alias.
    pub(super) alias: &'a str,
    /// The column that orders things of the same time.
    pub(super) order: &'a str,
    /// Finds the time and order of a thing by its id.
    pub(super) find: &'a str,
    /// Further conditions, and their values.
    pub(super) conditions: Vec<(String, Vec<Value>)>,
}

/// Reads a page. One more thing than asked for shows whether things follow.
pub(super) fn page<T>(
    connection: &Connection,
    list: List<'_>,
    query: &ListQuery,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<ListedPage<T>, DbError> {
    let List { select, alias, order, find, conditions } = list;
    let mut wanted = vec![(format!("{alias}.tenant_id = ?"), vec![Value::Blob(query.tenant.0.to_vec())])];
    if !query.include_archived {
        wanted.push((format!("{alias}.archived_at IS NULL"), Vec::new()));
    }
    for (time, comparison) in [(query.created_from, ">="), (query.created_to, "<=")] {
        if let Some(time) = time {
            wanted.push((format!("{alias}.created_at {comparison} ?"), vec![Value::Integer(time.0)]));
        }
    }
    wanted.extend(conditions);
    let backwards = matches!(query.place, Place::Before(_));
    if let Place::After(id) | Place::Before(id) = query.place {
        let (at, position) = position(connection, find, query, id)?;
        let comparison = if query.ascending == backwards { "<" } else { ">" };
        let condition = format!("({alias}.created_at, {alias}.{order}) {comparison} (?, ?)");
        wanted.push((condition, vec![Value::Integer(at), position]));
    }
    let direction = if query.ascending == backwards { "DESC" } else { "ASC" };
    let texts: Vec<&str> = wanted.iter().map(|(text, _)| text.as_str()).collect();
    let sql = format!(
        "{select} WHERE {} ORDER BY {alias}.created_at {direction}, {alias}.{order} {direction} LIMIT {}",
        texts.join(" AND "),
        query.limit + 1
    );
    let values = wanted.into_iter().flat_map(|(_, values)| values);
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params_from_iter(values), |row| read(row))?;
    let mut items = rows.collect::<Result<Vec<T>, _>>()?;
    let more = items.len() > query.limit;
    items.truncate(query.limit);
    if backwards {
        items.reverse();
    }
    let (has_more, has_before) = match query.place {
        Place::Start => (more, false),
        Place::After(_) => (more, true),
        Place::Before(_) => (true, more),
    };
    Ok(ListedPage { items, has_more, has_before })
}

/// The place of a thing in its list.
fn position(
    connection: &Connection,
    find: &str,
    query: &ListQuery,
    id: RawId,
) -> Result<(i64, Value), DbError> {
    let found = connection
        .prepare_cached(find)?
        .query_row((query.tenant.0, id), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    found.ok_or_else(|| Problem::field("page", "is not a cursor of this list").into())
}
