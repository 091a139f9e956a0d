//! `/files`, and the links to them.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::{StatusCode, header};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::app::App;
use crate::http::{self as edge, ApiError, ApiRequest, FormPart, PageRequest, Scope};
use crate::model::content;
use crate::model::dialect::Dialect;
use crate::model::files::{self, File, FileBody, FileFields, GivenFile, GivenFiles};
use crate::model::ids::{FileId, SessionId, TenantId};
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;
use crate::model::time::Time;
use crate::store::{Done, FileQuery, FoundFile, ListQuery, ListedPage, NewFile};

const MOST: u64 = 1_000;
/// The most files that a list may be asked for by their ids.
const MOST_IDS: usize = 100;
/// The most bytes of all files that one message names.
const MOST_GIVEN: u64 = 32 * 1024 * 1024;

fn id(request: &ApiRequest) -> Result<FileId, ApiError> {
    let text = request.parameter(0);
    FileId::parse(text).ok_or_else(|| Refusal::not_found("file", text).into())
}

/// A file that is there, or the error for one that is not.
async fn find(app: &App, tenant: TenantId, id: FileId) -> Result<File, ApiError> {
    match app.store.db.file(tenant, id).await? {
        FoundFile::There(file) => Ok(file),
        FoundFile::Expired => {
            let mut error = ApiError::not_found(format!("The file `{id}` has expired."));
            error.code = Some("file_expired");
            Err(error)
        }
        FoundFile::Deleted | FoundFile::Unknown => Err(Refusal::not_found("file", id).into()),
    }
}

/// Makes sure that a session can have these files.
pub(super) async fn check(
    app: &App,
    tenant: TenantId,
    ids: impl Iterator<Item = FileId>,
) -> Result<(), ApiError> {
    for id in ids {
        find(app, tenant, id).await?;
    }
    Ok(())
}

/// The files that the messages in a body name. What is not there is left out, so that reading the body names its place.
pub(super) async fn given(app: &App, tenant: TenantId, body: &Value) -> Result<GivenFiles, ApiError> {
    let mut given = GivenFiles::new();
    let mut left = MOST_GIVEN;
    for text in content::named_files(body) {
        let Some(id) = FileId::parse(&text).filter(|_| !given.contains_key(&text)) else { continue };
        let FoundFile::There(file) = app.store.db.file(tenant, id).await? else { continue };
        left = left.checked_sub(file.body.size).ok_or_else(|| {
            ApiError::invalid(format!("The files of a request have more than {MOST_GIVEN} bytes together."))
        })?;
        let content = app.store.read_file(tenant, &file.blob).await?;
        let (filename, media_type) = (file.body.filename, file.body.media_type);
        given.insert(text, GivenFile { filename, media_type, content });
    }
    Ok(given)
}

/// A file of a form whose content is kept.
struct Received {
    id: FileId,
    filename: String,
    media_type: String,
    size: u64,
    digest: Vec<u8>,
}

async fn receive(app: &App, tenant: TenantId, mut part: FormPart<'_>) -> Result<Received, ApiError> {
    let id = FileId::random();
    let sent = part.file_name().unwrap_or_default();
    let media_type = files::media_type(part.media_type().as_deref(), &sent);
    let mut writer = app.store.blobs.begin(tenant, &File::blob_name(id)).await?;
    let (mut size, mut digest) = (0, Sha256::new());
    while let Some(bytes) = part.bytes().await? {
        size += bytes.len() as u64;
        digest.update(&bytes);
        writer.write(bytes).await?;
    }
    writer.finish().await?;
    let filename = files::file_name(&sent, &media_type);
    Ok(Received { id, filename, media_type, size, digest: digest.finalize().to_vec() })
}

pub(super) async fn create(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let (mut request, mut form) = edge::form(request).await?;
    request.needs(Scope::Run)?;
    let tenant = request.principal.tenant_id();
    let (mut fields, mut file) = (FileFields::default(), None);
    let mut read = async || -> Result<(), ApiError> {
        while let Some(part) = form.next().await? {
            match part.name().as_str() {
                "file" if file.is_some() => {
                    return Err(Problem::field("file", "is given more than once").into());
                }
                "file" => file = Some(receive(&app, tenant, part).await?),
                name => {
                    let name = name.to_owned();
                    // Fields that no one knows are ignored, as in JSON.
                    fields.take(&name, part.text().await?);
                }
            }
        }
        Ok(())
    };
    let done = read().await;
    let Some(received) = file else {
        return Err(done.err().unwrap_or_else(|| Problem::field("file", "is required").into()));
    };
    let blob = File::blob_name(received.id);
    let kept = match done {
        Ok(()) => keep(&app, &mut request, &fields, received).await,
        Err(error) => Err(error),
    };
    match kept {
        Ok(Done::Now(_, answer)) => Ok(edge::rendered(answer)),
        other => {
            // No row names the content: an error, or a repeat that is answered with the first file.
            drop(app.store.blobs.remove(tenant, &blob).await);
            other.map(|done| edge::rendered(done.answer()))
        }
    }
}

/// Keeps the row of a file whose content is there.
async fn keep(
    app: &App,
    request: &mut ApiRequest,
    fields: &FileFields,
    received: Received,
) -> Result<Done<File>, ApiError> {
    let filename = match &fields.name {
        Some(name) if !name.trim().is_empty() => files::file_name(name, &received.media_type),
        _ => received.filename,
    };
    // What a repeat is recognised by; the boundary of a form is another one each time.
    let summary =
        json!([filename, received.media_type, received.digest, fields.metadata, fields.expires_in_seconds]);
    request.body = summary.to_string().into();
    let new = NewFile {
        tenant: request.principal.tenant_id(),
        id: received.id,
        body: FileBody {
            filename,
            media_type: received.media_type,
            size: received.size,
            metadata: fields.metadata()?,
        },
        session: None,
        expires_at: fields.expires_at(Time::now())?,
        quota: app.storage_quota,
    };
    let once = edge::once(request, |file: &File| edge::kept(&file.view()));
    Ok(app.store.db.create_file(new, once).await?)
}

pub(super) async fn list(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let (tenant, query) = (request.principal.tenant_id(), &request.query);
    let ids = query.all("ids");
    if !ids.is_empty() {
        return by_ids(&app, &request, ids).await;
    }
    let page = PageRequest::read(query, MOST)?;
    let list = page.list(tenant, query, |text| FileId::parse(text).map(|id| id.0))?;
    let session = query.one("scope_id")?.map(SessionId::parse);
    if session == Some(None) {
        // What names no session lists nothing.
        return edge::json(&edge::page_of_ids(&[], false, false, &[]));
    }
    let wanted = FileQuery {
        list: ListQuery { include_archived: true, ..list },
        name: query.one("name")?.map(str::to_owned),
        session: session.flatten(),
        now: Time::now(),
    };
    let listed = app.store.db.list_files(wanted).await?;
    edge::json(&edge::page(&listed, |file| file.id.to_string(), File::view))
}

/// Files by their ids, in one page; those that are not there are left out.
async fn by_ids(app: &App, request: &ApiRequest, mut ids: Vec<String>) -> Result<Response, ApiError> {
    for other in ["page", "limit"] {
        if request.query.one(other)?.is_some() {
            return Err(Problem::field(other, "cannot be combined with `ids`").into());
        }
    }
    let mut seen = std::collections::HashSet::new();
    ids.retain(|id| seen.insert(id.clone()));
    if ids.len() > MOST_IDS {
        return Err(Problem::field("ids", format!("has more than {MOST_IDS} items")).into());
    }
    let mut items = Vec::new();
    for id in ids.iter().filter_map(|id| FileId::parse(id)) {
        if let FoundFile::There(file) = app.store.db.file(request.principal.tenant_id(), id).await? {
            items.push(file);
        }
    }
    let listed = ListedPage { items, has_more: false, has_before: false };
    edge::json(&edge::page(&listed, |file| file.id.to_string(), File::view))
}

pub(super) async fn read(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    edge::json(&find(&app, request.principal.tenant_id(), id(&request)?).await?.view())
}

/// The bytes of a file, or a link to them for a client that asks for JSON.
pub(super) async fn content(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let (tenant, id) = (request.principal.tenant_id(), id(&request)?);
    if request.dialect == Dialect::Qoder && app.store.db.file(tenant, id).await? == FoundFile::Deleted {
        let message = format!("The file `{id}` was deleted.");
        return Err(ApiError::new(StatusCode::GONE, "not_found_error", message));
    }
    let file = find(&app, tenant, id).await?;
    let accepts =
        request.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accepts
        .split(',')
        .any(|kind| kind.split(';').next().is_some_and(|kind| kind.trim() == "application/json"))
    {
        let (url, expires_at) = app.links.make(id, &request.headers);
        return edge::json(&json!({ "url": url, "expires_at": expires_at }));
    }
    bytes(&app, tenant, &file).await
}

/// A file by its link.
pub(super) async fn linked(
    State(app): State<Arc<App>>,
    Path((id, ticket)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let unknown = || ApiError::not_found("The link is not valid, or has expired. Ask for another one.");
    let id = FileId::parse(&id).filter(|id| app.links.opens(*id, &ticket)).ok_or_else(unknown)?;
    let (tenant, file) = app.store.db.linked_file(id).await?.ok_or_else(unknown)?;
    bytes(&app, tenant, &file).await
}

async fn bytes(app: &App, tenant: TenantId, file: &File) -> Result<Response, ApiError> {
    let content = app.store.blobs.open(tenant, &file.blob).await?;
    let content = content.ok_or_else(|| Refusal::not_found("file", file.id))?;
    Ok(edge::bytes(content, file.body.size, &file.body.media_type, &file.body.filename))
}

pub(super) async fn delete(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Run)?;
    let (tenant, id) = (request.principal.tenant_id(), id(&request)?);
    let render = move |(): &()| edge::kept(&json!({ "id": id, "type": "file_deleted" }));
    let done = app.store.db.delete_file(tenant, id, edge::once(&request, render)).await?;
    // What cannot be removed now is removed by the server's care later.
    if app.store.blobs.remove(tenant, &File::blob_name(id)).await.is_ok() {
        app.store.db.forget_content(id).await?;
    }
    Ok(edge::rendered(done.answer()))
}
