//! `/skills` and their versions.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::app::App;
use super::environments::rights;
use crate::http::{self as edge, ApiError, ApiRequest, FormPart, PageRequest, Scope};
use crate::model::fields::Fields;
use crate::model::files::FileFields;
use crate::model::ids::{SkillId, SkillVersionId, TenantId};
use crate::model::names::{SkillChoice, VersionName};
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;
use crate::model::skill::{Skill, SkillBody, SkillVersion, SkillVersionBody};
use crate::model::upload::{SkillFile, SkillFiles};
use crate::store::{self, Done, ListQuery, NewSkillVersion, SkillQuery, SkillVersionQuery};

const MOST: u64 = 1_000;
const LONGEST_DISPLAY_NAME: usize = 255;

fn id(request: &ApiRequest) -> Result<SkillId, ApiError> {
    let text = request.parameter(0);
    SkillId::parse(text).ok_or_else(|| Refusal::not_found("skill", text).into())
}

fn version(request: &ApiRequest) -> Result<SkillVersionQuery, ApiError> {
    let text = request.parameter(1);
    let version = VersionName::parse(text).ok_or_else(|| Refusal::not_found("skill version", text))?;
    Ok(SkillVersionQuery { tenant: request.principal.tenant_id(), skill: id(request)?, version })
}

/// The versions that skills have now, by the skills.
pub(super) type Pinned = HashMap<String, String>;

/// Makes sure that these skills can be used, and answers with their versions.
pub(super) async fn pin(app: &App, tenant: TenantId, skills: &[SkillChoice]) -> Result<Pinned, ApiError> {
    let mut pinned = Pinned::new();
    for choice in skills {
        let (skill, version) = choice.named().ok_or_else(|| Refusal::not_found("skill", &choice.skill_id))?;
        let found = app.store.db.skill_version(SkillVersionQuery { tenant, skill, version }).await?;
        pinned.insert(choice.skill_id.clone(), found.id.to_string());
    }
    Ok(pinned)
}

/// The same for the skills that an agent in a body names; nothing when it names none.
pub(super) async fn pin_body(app: &App, tenant: TenantId, agent: &Value) -> Result<Pinned, ApiError> {
    // What cannot be read is refused by those who read the body.
    let skills = Fields::of_body(agent).ok().and_then(|fields| SkillChoice::read(fields).ok());
    pin(app, tenant, &skills.unwrap_or_default()).await
}

/// What a form brings.
#[derive(Default)]
struct Upload {
    files: Vec<SkillFile>,
    fields: FileFields,
    display_name: Option<String>,
    digest: Sha256,
}

/// The bytes of a part; the form as a whole is bounded.
async fn content(mut part: FormPart<'_>) -> Result<Vec<u8>, ApiError> {
    let mut content = Vec::new();
    while let Some(bytes) = part.bytes().await? {
        content.extend_from_slice(&bytes);
    }
    Ok(content)
}

async fn receive(request: Request) -> Result<(ApiRequest, Upload), ApiError> {
    let (request, mut form) = edge::form(request).await?;
    request.needs(Scope::Admin)?;
    let mut upload = Upload::default();
    while let Some(part) = form.next().await? {
        match part.name().as_str() {
            "files" | "files[]" => {
                let path = part.file_name().unwrap_or_default();
                let content = content(part).await?;
                upload.digest.update((path.len() as u64).to_be_bytes());
                upload.digest.update(&path);
                upload.digest.update(Sha256::digest(&content));
                upload.files.push(SkillFile { path, content });
            }
            "display_name" | "display_title" => upload.display_name = Some(part.text().await?),
            name => {
                let name = name.to_owned();
                upload.fields.take(&name, part.text().await?);
            }
        }
    }
    Ok((request, upload))
}

/// The files of a form; one that is an archive stands for the files in it.
fn files(upload: Vec<SkillFile>) -> Result<SkillFiles, Problem> {
    let is_archive = |path: &str| {
        let extension = std::path::Path::new(path).extension();
        extension.is_some_and(|text| text.eq_ignore_ascii_case("zip") || text.eq_ignore_ascii_case("skill"))
    };
    match upload.as_slice() {
        [one] if is_archive(&one.path) => SkillFiles::new(store::unpack(&one.content)?),
        _ => SkillFiles::new(upload),
    }
}

/// Keeps the archive of a version, before a row names it.
async fn archive(app: &App, tenant: TenantId, upload: Vec<SkillFile>) -> Result<NewSkillVersion, ApiError> {
    let packed = tokio::task::spawn_blocking(move || -> Result<_, ApiError> {
        let files = files(upload)?;
        let archive = store::pack(&files).map_err(|_| ApiError::internal())?;
        Ok((files.name, files.description, archive))
    });
    let (name, description, archive) = packed.await.map_err(|_| ApiError::internal())??;
    let id = SkillVersionId::random();
    let body = SkillVersionBody { name, description, size: archive.len() as u64 };
    let mut writer = app.store.blobs.begin(tenant, &SkillVersion::blob_name(id)).await?;
    writer.write(Bytes::from(archive)).await?;
    writer.finish().await?;
    Ok(NewSkillVersion { tenant, id, body, quota: app.storage_quota })
}

/// Answers, or removes an archive that no row names: of an error, or of a repeat that is answered with the first skill.
async fn settled<T>(
    app: &App,
    (tenant, id): (TenantId, SkillVersionId),
    done: Result<Done<T>, store::DbError>,
) -> Result<Response, ApiError> {
    match done {
        Ok(Done::Now(_, answer)) => Ok(edge::rendered(answer)),
        other => {
            drop(app.store.blobs.remove(tenant, &SkillVersion::blob_name(id)).await);
            Ok(edge::rendered(other?.answer()))
        }
    }
}

/// What a repeat is recognised by; the boundary of a form is another one each time.
fn summarize(request: &mut ApiRequest, upload: &Upload) {
    let digest = upload.digest.clone().finalize().to_vec();
    request.body = json!([digest, upload.display_name, upload.fields.metadata]).to_string().into();
}

fn display_name(upload: &Upload, name: &str) -> Result<String, Problem> {
    let given = upload.display_name.as_deref().map(str::trim).filter(|given| !given.is_empty());
    let given = given.unwrap_or(name);
    if given.chars().count() > LONGEST_DISPLAY_NAME || given.contains(char::is_control) {
        let problem = format!("must be one line of at most {LONGEST_DISPLAY_NAME} characters");
        return Err(Problem::field("display_name", problem));
    }
    Ok(given.to_owned())
}

pub(super) async fn create(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let (mut request, mut upload) = receive(request).await?;
    summarize(&mut request, &upload);
    let tenant = request.principal.tenant_id();
    let metadata = upload.fields.metadata()?;
    let version = archive(&app, tenant, std::mem::take(&mut upload.files)).await?;
    let id = version.id;
    let body = display_name(&upload, &version.body.name);
    let done = match body {
        Ok(display_name) => {
            let once = edge::once(&request, |skill: &Skill| edge::kept(&skill.view()));
            app.store.db.create_skill(SkillBody { display_name, metadata }, version, once).await
        }
        Err(problem) => Err(problem.into()),
    };
    settled(&app, (tenant, id), done).await
}

pub(super) async fn create_version(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, ApiError> {
    let (mut request, mut upload) = receive(request).await?;
    summarize(&mut request, &upload);
    let (tenant, skill) = (request.principal.tenant_id(), id(&request)?);
    app.store.db.skill(tenant, skill).await?;
    let version = archive(&app, tenant, std::mem::take(&mut upload.files)).await?;
    let id = version.id;
    let once = edge::once(&request, |version: &SkillVersion| edge::kept(&version.view()));
    let done = app.store.db.create_skill_version(skill, version, once).await;
    settled(&app, (tenant, id), done).await
}

pub(super) async fn read(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    rights::needs_skill(&app, &request, Scope::Read, id(&request)?).await?;
    edge::json(&app.store.db.skill(request.principal.tenant_id(), id(&request)?).await?.view())
}

pub(super) async fn list(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let query = &request.query;
    let page = PageRequest::read(query, MOST)?;
    let parse = |text: &str| SkillId::parse(text).map(|id| id.0);
    let list = page.list(request.principal.tenant_id(), query, parse)?;
    if query.one("source")?.is_some_and(|source| source != "custom") {
        // There are no skills but those that were uploaded.
        return edge::json(&edge::page_of_ids(&[], false, false, &[]));
    }
    let wanted = SkillQuery {
        list: ListQuery { include_archived: true, ..list },
        name: query.one("name")?.map(str::to_owned),
        display_name: query.one("display_title")?.or(query.one("display_name")?).map(str::to_owned),
    };
    let listed = app.store.db.list_skills(wanted).await?;
    edge::json(&edge::page(&listed, |skill| skill.id.to_string(), Skill::view))
}

pub(super) async fn delete(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Admin)?;
    let (tenant, id) = (request.principal.tenant_id(), id(&request)?);
    let render = move |(): &()| edge::kept(&json!({ "id": id, "type": "skill_deleted" }));
    let done = app.store.db.delete_skill(tenant, id, edge::once(&request, render)).await?;
    app.store.clean_archives().await?;
    Ok(edge::rendered(done.answer()))
}

pub(super) async fn read_version(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    rights::needs_skill(&app, &request, Scope::Read, id(&request)?).await?;
    edge::json(&app.store.db.skill_version(version(&request)?).await?.view())
}

pub(super) async fn list_versions(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let page = PageRequest::read(&request.query, MOST)?;
    let parse = |text: &str| SkillVersionId::parse(text).map(|id| id.0);
    let list = page.list(request.principal.tenant_id(), &request.query, parse)?;
    let list = ListQuery { include_archived: true, ..list };
    let listed = app.store.db.list_skill_versions(id(&request)?, list).await?;
    edge::json(&edge::page(&listed, |version| version.id.to_string(), SkillVersion::view))
}

pub(super) async fn delete_version(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Admin)?;
    let render = |id: &SkillVersionId| edge::kept(&json!({ "id": id, "type": "skill_version_deleted" }));
    let once = edge::once(&request, render);
    let done = app.store.db.delete_skill_version(version(&request)?, once).await?;
    app.store.clean_archives().await?;
    Ok(edge::rendered(done.answer()))
}

/// The archive of a version: a zip file with one folder.
pub(super) async fn download(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    rights::needs_skill(&app, &request, Scope::Read, id(&request)?).await?;
    let query = version(&request)?;
    let version = app.store.db.skill_version(query).await?;
    let content = app.store.blobs.open(query.tenant, &version.blob).await?;
    let content = content.ok_or_else(|| Refusal::not_found("skill version", version.id))?;
    let name = format!("{}.zip", version.body.name);
    Ok(edge::bytes(content, version.body.size, "application/zip", &name))
}
