//! `DeliverArtifacts`: the tool by which an agent gives files of its workspace to the client. Each becomes a file of the session,
//! and an event says so.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_core::ports::{Access, Tool, ToolContext, ToolOutcome};
use qoder_runtime::setup::HostTools;
use qoder_runtime::tool_host::{HostFile, ToolHost};
use qoder_types::{ReplayClass, ToolAnnotations, ToolDefinition};
use serde_json::{Value, json};

use crate::drive::given::host::SessionHost;
use crate::drive::node::Node;
use crate::drive::shared::Shared;
use crate::model::event::NewEvent;
use crate::model::files::{self, File, FileBody};
use crate::model::ids::{FileId, SessionId, TenantId};
use crate::model::metadata::Metadata;
use crate::store::{KeptAnswer, NewFile, Once, Store};

/// The most files of one call.
const MOST_FILES: usize = 20;
/// The longest file that is delivered.
const LARGEST: u64 = 512 * 1024 * 1024;
/// Bytes that are read at a time.
const PIECE: usize = 256 * 1024;

/// Where delivered files go.
#[derive(Clone)]
pub(in crate::drive) struct Delivery {
    store: Store,
    tenant: TenantId,
    session: SessionId,
    quota: u64,
    shared: Arc<Shared>,
    /// Reads files, when the tools of the session run in it.
    host: Option<Arc<ToolHost>>,
}

impl Delivery {
    fn new(
        node: &Node,
        (tenant, session): (TenantId, SessionId),
        shared: Arc<Shared>,
        host: Option<&SessionHost>,
    ) -> Self {
        let host = host.map(|host| Arc::clone(&host.tools));
        Self { store: node.store.clone(), tenant, session, quota: node.settings.storage_quota, shared, host }
    }

    /// Keeps a file of the workspace, and reports it.
    async fn deliver(&self, path: &Path) -> Result<File, String> {
        let (file, size) = self.open(path).await?;
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let media_type = files::media_type(None, &name);
        let id = FileId::random();
        let fault = |error: crate::store::DbError| error.to_string();
        let size = self.copy(file, id, size).await?;
        let filename = files::file_name(&name, &media_type);
        let new = NewFile {
            tenant: self.tenant,
            id,
            body: FileBody { filename, media_type, size, metadata: Metadata::default() },
            session: Some(self.session),
            expires_at: None,
            quota: self.quota,
        };
        let render = |_: &File| KeptAnswer { status: 200, body: Vec::new() };
        let once = Once { key: None, render: Box::new(render) };
        match self.store.db.create_file(new, once).await {
            Ok(crate::store::Done::Now(file, _)) => {
                self.shared.report(NewEvent::new(
                    "agent.artifact_delivered",
                    &json!({ "file_id": file.id, "original_filename": file.body.filename, "size": file.body.size,
                        "content_type": file.body.media_type }),
                ));
                Ok(file)
            }
            Ok(crate::store::Done::Before(_)) => {
                Err("internal error: the file was delivered before".to_owned())
            }
            Err(error) => {
                drop(self.store.blobs.remove(self.tenant, &File::blob_name(id)).await);
                Err(fault(error))
            }
        }
    }

    async fn open(&self, path: &Path) -> Result<(Source, u64), String> {
        let (source, size) = match &self.host {
            Some(host) => {
                let file = host.open_file(path).await.map_err(|error| error.to_string())?;
                let size = file.size;
                (Source::Host(file), size)
            }
            None => {
                let (file, size) = open(path).await?;
                (Source::Here(Some(file)), size)
            }
        };
        if size > LARGEST {
            return Err(format!("it has more than {LARGEST} bytes"));
        }
        Ok((source, size))
    }

    async fn copy(&self, mut file: Source, id: FileId, size: u64) -> Result<u64, String> {
        let blobs = &self.store.blobs;
        let begun = blobs.begin(self.tenant, &File::blob_name(id)).await;
        let mut writer = begun.map_err(|error| error.to_string())?;
        let mut copied = 0;
        loop {
            let piece = file.read().await?;
            if piece.is_empty() {
                break;
            }
            copied += piece.len() as u64;
            if copied > LARGEST.max(size) {
                return Err(format!("it grows beyond {LARGEST} bytes while it is read"));
            }
            writer.write(Bytes::from(piece)).await.map_err(|error| error.to_string())?;
        }
        writer.finish().await.map_err(|error| error.to_string())?;
        Ok(copied)
    }
}

/// Opens a regular file. The gate has judged where the path leads; a link in its last part is not followed all the same.
async fn open(path: &Path) -> Result<(std::fs::File, u64), String> {
    let path = path.to_path_buf();
    let opened = tokio::task::spawn_blocking(move || -> std::io::Result<_> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = std::fs::File::from(rustix::fs::open(&path, flags, Mode::empty())?);
        let facts = file.metadata()?;
        Ok((file, facts))
    });
    let opened = opened.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    let (file, facts) = opened.map_err(|error| error.to_string())?;
    if !facts.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    Ok((file, facts.len()))
}

/// A file that is delivered.
enum Source {
    /// In this process; gone when it could not be read.
    Here(Option<std::fs::File>),
    /// In the tool host.
    Host(HostFile),
}

impl Source {
    /// The next piece; an empty one at the end.
    async fn read(&mut self) -> Result<Vec<u8>, String> {
        match self {
            Self::Host(file) => file.read().await.map_err(|error| error.to_string()),
            Self::Here(place) => {
                let mut file = place.take().ok_or("it cannot be read any further")?;
                let read = tokio::task::spawn_blocking(move || -> std::io::Result<_> {
                    let mut piece = vec![0; PIECE];
                    let length = std::io::Read::read(&mut file, &mut piece)?;
                    piece.truncate(length);
                    Ok((piece, file))
                });
                let read = read.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
                let (piece, file) = read.map_err(|error| error.to_string())?;
                *place = Some(file);
                Ok(piece)
            }
        }
    }
}

/// The tools of the server that a session has.
pub(in crate::drive) fn tools(
    node: &Node,
    of: (TenantId, SessionId),
    shared: &Arc<Shared>,
    host: Option<&SessionHost>,
) -> HostTools {
    let delivery = Delivery::new(node, of, Arc::clone(shared), host);
    HostTools(vec![Arc::new(DeliverArtifacts::new(delivery))])
}

/// The tool.
pub(in crate::drive) struct DeliverArtifacts {
    definition: ToolDefinition,
    delivery: Delivery,
}

impl DeliverArtifacts {
    fn new(delivery: Delivery) -> Self {
        let definition = ToolDefinition {
            name: "DeliverArtifacts".to_owned(),
            description: "Delivers files to the user, who can download them. Use it for finished results such as reports, \
                          tables, pictures and archives; files of the workspace that are not delivered stay there."
                .into(),
            input_schema: json!({ "type": "object", "required": ["paths"], "additionalProperties": false, "properties": {
                "paths": { "type": "array", "minItems": 1, "maxItems": MOST_FILES, "items": { "type": "string" },
                    "description": "The files, by absolute paths or paths relative to the working directory." } } })
            .into(),
        };
        Self { definition, delivery }
    }
}

fn paths(input: &Value) -> Vec<PathBuf> {
    let paths = input["paths"].as_array().into_iter().flatten();
    paths.filter_map(Value::as_str).map(PathBuf::from).collect()
}

impl Tool for DeliverArtifacts {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations { read_only_hint: false, destructive_hint: false, open_world_hint: true }
    }

    fn replay(&self) -> ReplayClass {
        ReplayClass::Effectful
    }

    fn is_read_only(&self, _: &Value) -> bool {
        false
    }

    fn accesses(&self, input: &Value) -> Vec<Access> {
        paths(input).into_iter().map(Access::Read).collect()
    }

    fn run(&self, input: Value, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let delivery = self.delivery.clone();
        async move {
            let (mut delivered, mut failed) = (Vec::new(), Vec::new());
            for path in paths(&input) {
                match delivery.deliver(&context.cwd.join(&path)).await {
                    Ok(file) => delivered.push(file),
                    Err(problem) => failed.push(format!("{}: {problem}", path.display())),
                }
            }
            let names: Vec<String> =
                delivered.iter().map(|file| format!("{} ({})", file.body.filename, file.id)).collect();
            if delivered.is_empty() {
                return ToolOutcome::failed(format!("No file was delivered. {}", failed.join("; ")));
            }
            let mut text = format!("Delivered: {}.", names.join(", "));
            if !failed.is_empty() {
                text.push_str(&format!(" Not delivered: {}.", failed.join("; ")));
            }
            ToolOutcome::completed(
                text,
                json!({ "files": delivered.iter().map(|file| file.id).collect::<Vec<_>>() }),
            )
        }
        .boxed()
    }
}
