//! `/memory_stores/{id}/memories`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};

use super::{change, is_full, stores};
use crate::api::app::App;
use crate::http::{self as edge, ApiError, ApiRequest, Cursor, PageRequest, Scope};
use crate::model::ids::{MemoryId, hex};
use crate::model::memories::{Memory, MemoryUpdate, NewMemory};
use crate::model::memory_path::{read_prefix, rolled_up};
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;
use crate::store::Once;

const MOST: u64 = 100;
/// The most memories of a page with their content.
const MOST_FULL: u64 = 20;

fn id(request: &ApiRequest) -> Result<MemoryId, ApiError> {
    let text = request.parameter(1);
    MemoryId::parse(text).ok_or_else(|| Refusal::not_found("memory", text).into())
}

fn answered(request: &ApiRequest) -> Result<Once<Memory>, Problem> {
    let is_full = is_full(request, false)?;
    Ok(edge::once(request, move |memory: &Memory| edge::kept(&memory.view(is_full))))
}

pub(in crate::api) async fn create(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Run)?;
    let new = NewMemory::read(&request.json()?)?;
    let done = app.store.db.create_memory(change(&app, &request)?, new, answered(&request)?).await?;
    Ok(edge::rendered(done.answer()))
}

pub(in crate::api) async fn read(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let (tenant, store) = (request.principal.tenant_id(), stores::id(&request)?);
    let memory = app.store.db.memory(tenant, store, id(&request)?).await?;
    edge::json(&memory.view(is_full(&request, true)?))
}

pub(in crate::api) async fn update(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Run)?;
    let update = MemoryUpdate::read(&request.json()?)?;
    let (change, once) = (change(&app, &request)?, answered(&request)?);
    let done = app.store.db.update_memory(change, id(&request)?, update, once).await?;
    Ok(edge::rendered(done.answer()))
}

pub(in crate::api) async fn delete(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Run)?;
    let id = id(&request)?;
    let expected = request.query.one("expected_content_sha256")?.map(str::to_owned);
    let render = move |(): &()| edge::kept(&json!({ "id": id, "type": "memory_deleted" }));
    let once = edge::once(&request, render);
    let done = app.store.db.delete_memory(change(&app, &request)?, id, expected, once).await?;
    Ok(edge::rendered(done.answer()))
}

/// An item of a list: a memory, or a folder that stands for those below it.
enum Item {
    Memory(Memory),
    Folder(String),
}

impl Item {
    fn path(&self) -> &str {
        match self {
            Self::Memory(memory) => &memory.path,
            Self::Folder(path) => path,
        }
    }

    fn view(&self, is_full: bool) -> Value {
        match self {
            Self::Memory(memory) => memory.view(is_full),
            Self::Folder(path) => json!({ "type": "memory_prefix", "path": path }),
        }
    }
}

/// The items of a store, by their paths.
fn items(memories: Vec<Memory>, prefix: &str, depth: u64) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for memory in memories {
        let shown = rolled_up(&memory.path, prefix, depth);
        if shown.len() == memory.path.len() {
            items.push(Item::Memory(memory));
        } else if items.last().is_none_or(|last| last.path() != shown) {
            items.push(Item::Folder(shown.to_owned()));
        }
    }
    items.sort_by(|one, other| one.path().cmp(other.path()));
    items.dedup_by(|one, other| one.path() == other.path());
    items
}

/// Cuts a page out of items; its cursors are paths.
fn cut(items: Vec<Item>, page: &PageRequest) -> Result<(Vec<Item>, bool, bool), Problem> {
    let decode = |text: &str| {
        let path = (0..text.len())
            .step_by(2)
            .map(|at| text.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()));
        let path = path.collect::<Option<Vec<u8>>>().and_then(|bytes| String::from_utf8(bytes).ok());
        path.ok_or_else(|| Problem::field("page", "is not a cursor of this list"))
    };
    let (from, to) = match &page.cursor {
        Cursor::Start => (0, items.len().min(page.limit)),
        Cursor::After(text) => {
            let path = decode(text)?;
            let from = items.partition_point(|item| item.path() <= path.as_str());
            (from, items.len().min(from + page.limit))
        }
        Cursor::Before(text) => {
            let path = decode(text)?;
            let to = items.partition_point(|item| item.path() < path.as_str());
            (to.saturating_sub(page.limit), to)
        }
    };
    let (has_before, has_more) = (from > 0, to < items.len());
    Ok((items.into_iter().take(to).skip(from).collect(), has_more, has_before))
}

pub(in crate::api) async fn list(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let is_full = is_full(&request, false)?;
    let mut page = PageRequest::read(&request.query, MOST)?;
    if is_full {
        page.limit = page.limit.min(usize::try_from(MOST_FULL).unwrap_or(usize::MAX));
    }
    let depth = request.query.number("depth", 0..=20)?.unwrap_or(0);
    let prefix = request.query.one("path_prefix")?.map_or(Ok("/".to_owned()), read_prefix)?;
    let (tenant, store) = (request.principal.tenant_id(), stores::id(&request)?);
    let memories = app.store.db.memories(tenant, store, prefix.clone(), false).await?;
    let (mut items, has_more, has_before) = cut(items(memories, &prefix, depth), &page)?;
    for item in items.iter_mut().filter(|_| is_full) {
        if let Item::Memory(memory) = item {
            *memory = app.store.db.memory(tenant, store, memory.id).await?;
        }
    }
    let cursors: Vec<String> = items.iter().map(|item| hex(item.path().as_bytes())).collect();
    let data: Vec<Value> = items.iter().map(|item| item.view(is_full)).collect();
    edge::json(&edge::page_of_ids(&cursors, has_more, has_before, &data))
}
