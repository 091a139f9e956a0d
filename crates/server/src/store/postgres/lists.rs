//! Pages of lists: by time of creation, then by id, in either direction.

use deadpool_postgres::Object;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::columns::uuid;
use crate::model::ids::RawId;
use crate::model::problem::Problem;
use crate::store::error::DbError;
use crate::store::port::{ListQuery, ListedPage, Place};

/// A value of a condition.
pub(super) type Value = Box<dyn ToSql + Sync + Send>;

/// Conditions of a query, with their values.
#[derive(Default)]
pub(super) struct Conditions {
    texts: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    /// A condition without a value.
    pub(super) fn plain(&mut self, text: impl Into<String>) {
        self.texts.push(text.into());
    }

    /// A condition whose `?` are these values, in order.
    pub(super) fn with(&mut self, text: &str, values: Vec<Value>) {
        let mut numbered = String::with_capacity(text.len() + 4);
        let mut number = self.values.len();
        for letter in text.chars() {
            if letter == '?' {
                number += 1;
                numbered.push_str(&format!("${number}"));
            } else {
                numbered.push(letter);
            }
        }
        self.texts.push(numbered);
        self.values.extend(values);
    }

    /// All of them have to be met.
    pub(super) fn text(&self) -> String {
        self.texts.join(" AND ")
    }

    pub(super) async fn query(&self, connection: &Object, sql: &str) -> Result<Vec<Row>, DbError> {
        let values: Vec<&(dyn ToSql + Sync)> =
            self.values.iter().map(|value| -> &(dyn ToSql + Sync) { value.as_ref() }).collect();
        let statement = connection.prepare_cached(sql).await?;
        Ok(connection.query(&statement, &values).await?)
    }
}

/// A list in the database.
pub(super) struct List<'a> {
    /// What is selected, with `FROM`; its rows have `created_at` and the column of the order.
    pub(super) select: &'a str,
    /// The table whose rows are listed, by its alias.
    pub(super) alias: &'a str,
    /// The column that orders things of the same time: `id`, or `key`.
    pub(super) order: &'a str,
    /// The table, in which the place of a page is looked up.
    pub(super) table: &'a str,
    /// Further conditions.
    pub(super) conditions: Conditions,
}

/// Reads a page. One more thing than asked for shows whether things follow.
pub(super) async fn page<T>(
    connection: &Object,
    list: List<'_>,
    query: &ListQuery,
    read: impl Fn(&Row) -> Result<T, DbError>,
) -> Result<ListedPage<T>, DbError> {
    let List { select, alias, order, table, mut conditions } = list;
    conditions.with(&format!("{alias}.tenant_id = ?"), vec![Box::new(uuid(query.tenant.0))]);
    if !query.include_archived {
        conditions.plain(format!("{alias}.archived_at IS NULL"));
    }
    for (time, comparison) in [(query.created_from, ">="), (query.created_to, "<=")] {
        if let Some(time) = time {
            conditions.with(&format!("{alias}.created_at {comparison} ?"), vec![Box::new(time.0)]);
        }
    }
    let backwards = matches!(query.place, Place::Before(_));
    if let Place::After(id) | Place::Before(id) = query.place {
        let values = position(connection, (table, order), query, id).await?;
        let comparison = if query.ascending == backwards { "<" } else { ">" };
        conditions.with(&format!("({alias}.created_at, {alias}.{order}) {comparison} (?, ?)"), values);
    }
    let direction = if query.ascending == backwards { "DESC" } else { "ASC" };
    let sql = format!(
        "{select} WHERE {} ORDER BY {alias}.created_at {direction}, {alias}.{order} {direction} LIMIT {}",
        conditions.text(),
        query.limit + 1
    );
    let rows = conditions.query(connection, &sql).await?;
    let mut items = rows.iter().map(read).collect::<Result<Vec<T>, _>>()?;
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
async fn position(
    connection: &Object,
    (table, order): (&str, &str),
    query: &ListQuery,
    id: RawId,
) -> Result<Vec<Value>, DbError> {
    let sql = format!("SELECT created_at, {order} FROM {table} WHERE tenant_id = $1 AND id = $2");
    let statement = connection.prepare_cached(&sql).await?;
    let row = connection.query_opt(&statement, &[&uuid(query.tenant.0), &uuid(id)]).await?;
    let row = row.ok_or_else(|| Problem::field("page", "is not a cursor of this list"))?;
    let position: Value = if order == "id" {
        Box::new(row.try_get::<_, uuid::Uuid>(1)?)
    } else {
        Box::new(row.try_get::<_, i64>(1)?)
    };
    Ok(vec![Box::new(row.try_get::<_, i64>(0)?), position])
}
