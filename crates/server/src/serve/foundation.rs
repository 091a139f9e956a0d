//! What a server and the commands beside it stand on: the data folder, the keys and the store.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, fcntl_lock};
use sha2::{Digest, Sha256};

use crate::config::{Config, ConfigError};
use crate::http::TlsError;
use crate::model::ids::NodeId;
use crate::secrets::{ClusterKey, Keys, MasterKey, SealError, SecretsError};
use crate::store::postgres::PostgresDb;
use crate::store::sqlite::SqliteDb;
use crate::store::{DbError, FolderBlobs, Health, Objects, ObjectsError, Store};

const CLUSTER_KEY: &str = "cluster_key";
const MASTER_KEY: &str = "master_key";
/// The name by which an object store knows the database, and whether content was ever kept in one.
const OWNER: &str = "object_store_owner";
const USED: &str = "object_store_used";

/// A server, or a command beside it, that cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The data folder cannot be used.
    #[error("cannot use the data directory {}: {problem}", path.display())]
    DataDir {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// Another server has the data folder.
    #[error("another server uses the data directory {}", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {problem}")]
    Listen {
        /// The address.
        address: String,
        /// What the system said.
        problem: String,
    },
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] DbError),
    /// The object store cannot be used.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
    /// The master key cannot be had.
    #[error(transparent)]
    Secrets(#[from] SecretsError),
    /// What the database keeps was sealed by another key.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A database that its own tools copy.
    #[error("`serve backup` copies SQLite databases, and this server uses PostgreSQL")]
    Backup,
    /// A backup would replace a file.
    #[error("cannot write the backup {}: the file exists already", path.display())]
    BackupExists {
        /// The file.
        path: PathBuf,
    },
    /// The settings of the runtime cannot be used.
    #[error("`settings` of the configuration: {0}")]
    Settings(String),
}

impl ServeError {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Config(error) => error.code(),
            Self::DataDir { .. } => "data_dir",
            Self::InUse { .. } => "data_dir_in_use",
            Self::Listen { .. } => "listen",
            Self::Store(error) => error.code(),
            Self::Objects(error) => error.code(),
            Self::Secrets(error) => error.code(),
            Self::Seal(error) => error.code(),
            Self::Tls(error) => error.code(),
            Self::Backup => "backup_of_postgres",
            Self::BackupExists { .. } => "backup_exists",
            Self::Settings(_) => "config_settings",
        }
    }

    /// What to do.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Config(error) => error.hint().to_owned(),
            Self::DataDir { .. } => "choose a folder that you may write with `--data-dir`".to_owned(),
            Self::InUse { .. } => "stop that server, or choose another folder with `--data-dir`".to_owned(),
            Self::Listen { .. } => {
                "choose another address with `--listen`; port 0 picks a free one".to_owned()
            }
            Self::Store(error) => error.hint().to_owned(),
            Self::Objects(error) => error.hint().to_owned(),
            Self::Secrets(error) => error.hint(),
            Self::Seal(error) => error.hint().to_owned(),
            Self::Tls(error) => error.hint().to_owned(),
            Self::Backup => {
                "use PostgreSQL's own tools, such as pg_dump or pg_basebackup, then copy the master key"
                    .to_owned()
            }
            Self::BackupExists { .. } => "give the name of a new file".to_owned(),
            Self::Settings(_) => "docs/settings.md lists the settings".to_owned(),
        }
    }
}

/// What the data folder is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// To serve: one process at a time.
    Serve,
    /// For a command beside a server.
    Command,
}

/// What a server stands on.
pub struct Foundation {
    /// Rows and blobs.
    pub store: Store,
    /// Opens what is sealed.
    pub keys: Keys,
    /// Recognises tokens.
    pub cluster: ClusterKey,
    /// How the database is doing.
    pub health: Arc<Health>,
    /// The database, when it is PostgreSQL.
    pub postgres: Option<Arc<PostgresDb>>,
    /// Names the data directory among those of all nodes.
    pub home: NodeId,
    /// Held while the folder is used.
    _lock: Option<File>,
}

impl Foundation {
    /// Opens the data folder, which is made if it is not there.
    ///
    /// # Errors
    /// When the folder, the keys or the database cannot be used, or another server has them.
    pub async fn lay(config: &Config, purpose: Use) -> Result<Self, ServeError> {
        for folder in [&config.data_dir, &config.workspaces, &config.runtime_root()] {
            make(folder)?;
        }
        let lock = match purpose {
            Use::Serve => Some(lock(config)?),
            Use::Command => None,
        };
        let (store, health, postgres) = open(config).await?;
        let store = with_objects(config, store, purpose).await?;
        let keys = Keys::new(master_key(config, &store).await?);
        let sealed = store.db.meta_or(CLUSTER_KEY, keys.new_cluster_key()?).await?;
        let cluster = keys.cluster_key(&sealed)?;
        Ok(Self { store, keys, cluster, health, postgres, home: home(config)?, _lock: lock })
    }

    /// Replaces the master key by one with a new generation.
    ///
    /// # Errors
    /// When the key is not the server's to replace, or cannot be kept.
    pub async fn rotate_master_key(&self, config: &Config) -> Result<Keys, ServeError> {
        if let Some(source) = &config.master_key {
            return Ok(Keys::new(MasterKey::rotate(source)?));
        }
        let next = master_key(config, &self.store).await?.next()?;
        self.store.db.set_meta(MASTER_KEY, next.text().into_bytes()).await?;
        Ok(Keys::new(next))
    }

    /// Seals everything that the master key seals with its newest generation. Answers with how many keys there are.
    ///
    /// # Errors
    /// When a key cannot be opened, or the database cannot be written.
    pub async fn reseal(&self, keys: &Keys) -> Result<usize, ServeError> {
        let sealed = self.store.db.meta_or(CLUSTER_KEY, Vec::new()).await?;
        if let Some(sealed) = keys.reseal_cluster_key(&sealed)? {
            self.store.db.set_meta(CLUSTER_KEY, sealed).await?;
        }
        let tenants = self.store.db.list_tenants().await?;
        let mut resealed = Vec::new();
        for tenant in &tenants {
            if let Some(key) = keys.reseal_data_key(tenant.id, &tenant.data_key)? {
                resealed.push((tenant.id, key));
            }
        }
        self.store.db.set_data_keys(resealed).await?;
        Ok(tenants.len() + 1)
    }
}

/// The database with its blobs.
async fn open(config: &Config) -> Result<(Store, Arc<Health>, Option<Arc<PostgresDb>>), DbError> {
    let Some(url) = &config.database_url else {
        let db = SqliteDb::open(&config.database())?;
        let health = db.health();
        let blobs = Arc::new(FolderBlobs::new(&config.blobs()));
        return Ok((Store { db: Arc::new(db), blobs, objects: None }, health, None));
    };
    let db = Arc::new(PostgresDb::open(url, config.listen_url.as_ref()).await?);
    let store = Store { db: Arc::<PostgresDb>::clone(&db), blobs: Arc::new(db.blobs()), objects: None };
    Ok((store, db.health(), Some(db)))
}

/// The store with its objects. A server is sure that they are its own and can be written; what is kept there stays there.
async fn with_objects(config: &Config, store: Store, purpose: Use) -> Result<Store, ServeError> {
    let Some(url) = &config.object_store else {
        // A command that meets such content says that it is missing.
        if purpose == Use::Serve && !store.db.meta_or(USED, Vec::new()).await?.is_empty() {
            return Err(ObjectsError::Missing.into());
        }
        return Ok(store);
    };
    let objects = Objects::connect(url, &config.environment)?;
    if purpose == Use::Serve {
        objects.try_out().await?;
        let owner = store.db.meta_or(OWNER, crate::model::ids::random().to_vec()).await?;
        objects.belong_to(&owner).await?;
        store.db.set_meta(USED, vec![1]).await?;
    }
    Ok(store.with_objects(objects))
}

/// The master key, from where the configuration says; without that, from the database, so that all nodes have the same.
async fn master_key(config: &Config, store: &Store) -> Result<MasterKey, ServeError> {
    if let Some(source) = &config.master_key {
        return Ok(MasterKey::load(source)?);
    }
    let kept = store.db.meta_or(MASTER_KEY, MasterKey::random()?.text().into_bytes()).await?;
    Ok(MasterKey::read(&kept, "the database")?)
}

/// Names the data directory. A copy of it on another host gets another name.
fn home(config: &Config) -> Result<NodeId, ServeError> {
    let path = config.home_file();
    let fault =
        |error: std::io::Error| ServeError::DataDir { path: path.clone(), problem: error.to_string() };
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    if let Ok(mut file) = made {
        file.write_all(NodeId::random().to_string().as_bytes()).map_err(fault)?;
    }
    let mut content = std::fs::read(&path).map_err(fault)?;
    content.extend_from_slice(rustix::system::uname().nodename().to_bytes());
    let mut name = [0; 16];
    name.copy_from_slice(&Sha256::digest(&content)[..16]);
    Ok(NodeId(name))
}

fn make(folder: &Path) -> Result<(), ServeError> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| ServeError::DataDir { path: folder.to_path_buf(), problem: error.to_string() })
}

/// Takes the folder for this process. The kernel gives it back when the process ends, however it does: the lock belongs to the process
/// and not to the open file, which a child that is about to execute a program has, too.
fn lock(config: &Config) -> Result<File, ServeError> {
    let path = config.lock_file();
    let fault = |error: String| ServeError::DataDir { path: path.clone(), problem: error };
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(|error| fault(error.to_string()))?;
    match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::ACCESS) => {
            Err(ServeError::InUse { path: config.data_dir.clone() })
        }
        Err(error) => Err(fault(error.to_string())),
    }
}
