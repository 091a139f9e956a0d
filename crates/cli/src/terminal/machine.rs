//! The machine that the terminal runs on, as the front sees it: sessions, settings, files, programs. What takes a while runs on
//! the thread of sessions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use qoder_config::settings::{Change, change};
use qoder_protocol::{BoxFuture, EventStream};
use qoder_runtime::session::git_branch;
use qoder_runtime::session::redact::Redactor;
use qoder_runtime::sessions::{LogEvents, SessionChoice};
use qoder_runtime::setup::{Options, Setup};
use qoder_store::catalog;
use qoder_terminal::{
    ImageContent, Machine, MachineError, Open, OpenFailure, Opened, SessionRow, SettingsFiles, StoredKey,
    TrustFacts, UiSettings,
};
use qoder_types::{Actor, PermissionMode, Place};
use serde_json::Value;

use super::driven::SessionThread;
use super::{folder_trust, local_files, programs, remote};
use crate::command_line::arguments::Arguments;
use crate::exit::Fault;
use crate::first_steps::init;
use crate::keys;
use crate::listings::config;
use crate::mcp::{approve_marked, waiting_server};
use crate::sessions::{Status, locate};

/// The machine around a terminal of this process.
pub struct LocalMachine {
    pub(super) arguments: Arguments,
    pub(super) given: SessionChoice,
    options: Options,
    /// What was prepared for the first session.
    pub(super) first: Mutex<Option<Setup>>,
    pub(super) thread: SessionThread,
    folder: Mutex<FolderFacts>,
    person: Actor,
    trust: Option<TrustFacts>,
    config_root: PathBuf,
    cwd: PathBuf,
    project_root: PathBuf,
    redactor: Redactor,
    allows_bypass: bool,
}

/// What the settings of the folder say; they count differently once it is trusted.
#[derive(Debug, Clone)]
struct FolderFacts {
    files: SettingsFiles,
    editor: Option<String>,
    status_command: Option<String>,
    has_judge: bool,
}

impl FolderFacts {
    fn of(setup: &Setup) -> Self {
        let updates = setup.updates();
        let shown = |path: &Path| path.display().to_string();
        let files = SettingsFiles {
            user: shown(&updates.user),
            project: shown(&updates.project),
            local: shown(&updates.local),
            trusted: updates.trusted,
        };
        let text =
            |key: &str| setup.config.settings.text(key).filter(|text| !text.is_empty()).map(str::to_owned);
        Self {
            files,
            editor: text("general.preferredEditor"),
            status_command: text("statusLine.command"),
            has_judge: text("autoMode.classifier").is_some(),
        }
    }
}

impl LocalMachine {
    /// The machine for these arguments; the setup is that of the first session.
    pub fn start(arguments: Arguments, given: SessionChoice, setup: Setup) -> Result<Self, Fault> {
        let options = setup.options.clone();
        let name = options.environment.get("USER").or_else(|| options.environment.get("LOGNAME"));
        let name = name.cloned().unwrap_or_else(|| "the user".to_owned());
        Ok(Self {
            person: Actor::Person { name, place: Place::Terminal },
            trust: folder_trust::question(&setup),
            config_root: setup.config.config_root.clone(),
            cwd: setup.cwd.clone(),
            project_root: setup.config.project_root.clone(),
            redactor: setup.redactor(),
            folder: Mutex::new(FolderFacts::of(&setup)),
            allows_bypass: setup.mode() == PermissionMode::BypassPermissions
                || arguments.protocol.allow_dangerously_skip_permissions,
            thread: SessionThread::start()?,
            first: Mutex::new(Some(setup)),
            arguments,
            given,
            options,
        })
    }

    /// What another session begins with.
    pub(super) fn prepare(&self) -> Result<Setup, Fault> {
        Ok(Setup::prepare(self.current_options())?)
    }

    /// The options, with the keys that are stored by now.
    fn current_options(&self) -> Options {
        let mut options = self.options.clone();
        keys::add_to(&mut options.environment);
        options
    }

    fn folder(&self) -> FolderFacts {
        self.folder.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn environment(&self) -> &BTreeMap<String, String> {
        &self.options.environment
    }

    pub(super) fn config_root(&self) -> &Path {
        &self.config_root
    }

    /// Runs something on the thread of sessions.
    fn there<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
        lost: impl FnOnce() -> T + Send + 'static,
    ) -> BoxFuture<'static, T> {
        let task = self.thread.runtime().spawn(work);
        Box::pin(async move { task.await.unwrap_or_else(|_| lost()) })
    }

    /// Runs something that blocks beside the thread of sessions.
    fn beside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
        lost: impl FnOnce() -> T + Send + 'static,
    ) -> BoxFuture<'static, T> {
        let task = self.thread.runtime().spawn_blocking(work);
        Box::pin(async move { task.await.unwrap_or_else(|_| lost()) })
    }

    /// A path that a command names, from the working directory; `agents/…` is in the user's configuration.
    fn place(&self, path: &str) -> PathBuf {
        if path.starts_with("agents/") {
            return self.config_root.join(path);
        }
        self.cwd.join(qoder_config::home::expand_home(path, &self.options.environment))
    }

    fn editor(&self) -> String {
        let variable =
            |name: &str| self.options.environment.get(name).filter(|text| !text.is_empty()).cloned();
        self.folder()
            .editor
            .or_else(|| variable("VISUAL"))
            .or_else(|| variable("EDITOR"))
            .unwrap_or_else(|| "vi".to_owned())
    }
}

fn problem(fault: Fault) -> MachineError {
    MachineError(if fault.hint.is_empty() {
        fault.message
    } else {
        format!("{}; {}", fault.message, fault.hint)
    })
}

fn stopped() -> MachineError {
    MachineError::new("the program is ending")
}

impl Machine for LocalMachine {
    fn open(&self, what: Open) -> BoxFuture<'_, Result<Opened, OpenFailure>> {
        match &what {
            Open::Attach(address) if remote::is_address(address) => self.attach_to_server(address),
            Open::Attach(id) => self.attach(id),
            Open::New | Open::Given | Open::Resume(_) | Open::Fork(_) | Open::Choose => self.drive(&what),
        }
    }

    fn person(&self) -> Actor {
        self.person.clone()
    }

    fn settings_files(&self) -> SettingsFiles {
        self.folder().files
    }

    fn trust_question(&self) -> Option<TrustFacts> {
        self.trust.clone()
    }

    fn trust(&self) -> BoxFuture<'_, Result<UiSettings, MachineError>> {
        Box::pin(std::future::ready(self.trust_folder()))
    }

    fn refuse_trust(&self) {
        if let Some(facts) = &self.trust {
            folder_trust::refuse(&self.config_root, facts);
        }
    }

    fn allows_bypass(&self) -> bool {
        self.allows_bypass
    }

    fn has_judge(&self) -> bool {
        self.folder().has_judge
    }

    fn sessions(&self) -> BoxFuture<'_, Vec<SessionRow>> {
        let (root, cwd) = (self.config_root.clone(), self.cwd.clone());
        let list = move || {
            let row = |info: catalog::SessionInfo| {
                let status = Status::of(&info.paths, info.modified);
                SessionRow {
                    title: info.title.clone(),
                    first_prompt: info.first_prompt.clone().unwrap_or_default(),
                    branch: info.branch.clone(),
                    folder: info.cwd.clone().unwrap_or_default(),
                    age: SystemTime::now().duration_since(info.modified).unwrap_or_default(),
                    doing: Some(status.doing.as_str().to_owned())
                        .filter(|word| !matches!(word.as_str(), "idle" | "ended")),
                    id: info.id,
                }
            };
            catalog::list(&root, Some(&cwd)).into_iter().map(row).collect()
        };
        self.beside(list, Vec::new)
    }

    fn transcript(&self, session_id: &str) -> Option<Box<dyn EventStream>> {
        let (id, paths) = locate(&self.options.environment, session_id).ok()?;
        Some(Box::new(LogEvents::open(&paths, &id).ok()?))
    }

    fn paths(&self, folder: String) -> BoxFuture<'_, Vec<String>> {
        let folder = if folder.is_empty() { self.cwd.clone() } else { PathBuf::from(folder) };
        self.beside(move || local_files::paths(&folder), Vec::new)
    }

    fn history(&self) -> BoxFuture<'_, Vec<String>> {
        let (root, project) = (self.config_root.clone(), self.cwd.display().to_string());
        self.beside(move || local_files::history(&root, &project), Vec::new)
    }

    fn keep_history(&self, text: String) -> BoxFuture<'_, ()> {
        // A prompt with a secret in it is not kept.
        if self.redactor.text(&text) != text.as_str() {
            return Box::pin(std::future::ready(()));
        }
        let (root, project) = (self.config_root.clone(), self.cwd.display().to_string());
        // What cannot be kept is not worth a word.
        self.beside(move || drop(local_files::keep_prompt(&root, &project, &text)), || ())
    }

    fn key_bindings(&self) -> Option<String> {
        std::fs::read_to_string(self.config_root.join("keybindings.json")).ok()
    }

    fn change_setting(&self, key: String, value: Value) -> BoxFuture<'_, Result<String, MachineError>> {
        let file = PathBuf::from(self.folder().files.user);
        let work = move || {
            change(&file, &key, &Change::Set(value)).map_err(MachineError::new)?;
            Ok(file.display().to_string())
        };
        self.beside(work, || Err(stopped()))
    }

    fn settings_text(&self) -> BoxFuture<'_, String> {
        let options = self.current_options();
        let work = move || {
            let text = Setup::prepare(options).map_err(Fault::from).and_then(|setup| config::as_text(&setup));
            text.unwrap_or_else(|fault| fault.message)
        };
        self.beside(work, String::new)
    }

    fn waiting_server(&self, name: String) -> BoxFuture<'_, Result<(Vec<String>, String), MachineError>> {
        let options = self.current_options();
        let work = move || {
            let setup = Setup::prepare(options).map_err(Fault::from).map_err(problem)?;
            waiting_server(&setup, &name).map_err(problem)
        };
        self.beside(work, || Err(stopped()))
    }

    fn approve_server(&self, name: String, mark: String) -> BoxFuture<'_, Result<(), MachineError>> {
        let options = self.current_options();
        let work = move || {
            let setup = Setup::prepare(options).map_err(Fault::from).map_err(problem)?;
            approve_marked(&setup, &name, &mark).map_err(problem)
        };
        self.beside(work, || Err(stopped()))
    }

    fn write_new(&self, path: String, text: String) -> BoxFuture<'_, Result<String, MachineError>> {
        let path = self.place(&path);
        self.beside(move || local_files::write_new(&path, &text), || Err(stopped()))
    }

    fn remove_file(&self, path: String) -> BoxFuture<'_, Result<(), MachineError>> {
        let path = PathBuf::from(path);
        let work = move || {
            std::fs::remove_file(&path)
                .map_err(|error| MachineError(format!("{} cannot be removed: {error}", path.display())))
        };
        self.beside(work, || Err(stopped()))
    }

    fn init_memory_file(&self) -> BoxFuture<'_, Result<String, MachineError>> {
        let folder = self.project_root.clone();
        let work = move || {
            let written = init::write_draft(&folder).map_err(|fault| MachineError(fault.message))?;
            Ok(written.display().to_string())
        };
        self.beside(work, || Err(stopped()))
    }

    fn clipboard_image(&self) -> BoxFuture<'_, Result<ImageContent, MachineError>> {
        let work = async {
            let folder = local_files::private_folder()?;
            let image = match programs::clipboard_image(&folder).await {
                Ok(path) => local_files::image(&path),
                Err(error) => Err(error),
            };
            // What is left of it is in a private folder.
            let _ = std::fs::remove_dir_all(&folder);
            image
        };
        self.there(work, || Err(stopped()))
    }

    fn clipboard_text(&self) -> BoxFuture<'_, Result<String, MachineError>> {
        self.there(programs::clipboard_text(), || Err(stopped()))
    }

    fn copy(&self, text: String) -> BoxFuture<'_, Result<(), MachineError>> {
        self.there(programs::copy(text), || Err(stopped()))
    }

    fn image_file(&self, path: String) -> BoxFuture<'_, Result<ImageContent, MachineError>> {
        let path = self.place(&path);
        self.beside(move || local_files::image(&path), || Err(stopped()))
    }

    fn open_address(&self, address: String) -> BoxFuture<'_, Result<(), MachineError>> {
        self.there(programs::open_address(address), || Err(stopped()))
    }

    fn edit_text(&self, text: &str, name: &str) -> Result<String, MachineError> {
        let folder = local_files::private_folder()?;
        let path = folder.join(name);
        let edited = std::fs::write(&path, text)
            .map_err(MachineError::new)
            .and_then(|()| programs::edit(&self.editor(), &path))
            .and_then(|()| std::fs::read_to_string(&path).map_err(MachineError::new));
        // What is left of it is in a private folder.
        let _ = std::fs::remove_dir_all(&folder);
        edited
    }

    fn edit_file(&self, path: &str) -> Result<(), MachineError> {
        programs::edit(&self.editor(), &self.place(path))
    }

    fn branch(&self, folder: String) -> BoxFuture<'_, Option<String>> {
        self.beside(move || git_branch(Path::new(&folder)), || None)
    }

    fn status_line(&self, mut facts: Value) -> BoxFuture<'_, Option<String>> {
        let (command, folder) = (self.folder().status_command, self.cwd.clone());
        facts["workspace"]["project_dir"] = Value::from(self.project_root.display().to_string());
        let work = async move { programs::status_line(&command?, &folder, &facts).await };
        self.there(work, || None)
    }

    fn login(&self, provider: String, key: String) -> BoxFuture<'_, Result<StoredKey, MachineError>> {
        let root = self.config_root.clone();
        let named = self.named_variables();
        let work = move || {
            let name = keys::variable(&provider, |one| named.get(one).cloned()).map_err(MachineError::new)?;
            let place = keys::store(&root, &name, &key).map_err(MachineError::new)?;
            Ok(StoredKey { provider, place })
        };
        self.beside(work, || Err(stopped()))
    }

    fn logout(&self) -> BoxFuture<'_, Result<usize, MachineError>> {
        let root = self.config_root.clone();
        self.beside(move || keys::remove_all(&root).map_err(MachineError::new), || Err(stopped()))
    }

    fn hold_terminal(&self, restore: &[u8]) {
        // Without it the terminal is still given back by every end but a kill.
        let _ = qoder_process::hold_terminal(restore);
    }

    fn set_terminal_taken(&self, is_taken: bool) {
        qoder_process::set_terminal_taken(is_taken);
    }

    fn set_terminal_overlay(&self, is_shown: bool) {
        qoder_process::set_terminal_overlay(is_shown);
    }
}

impl LocalMachine {
    /// Trusts the folder. What was prepared before knew nothing of it, and is prepared again.
    fn trust_folder(&self) -> Result<UiSettings, MachineError> {
        let home = qoder_config::home::home(&self.options.environment);
        qoder_config::trust::add(&self.project_root, &self.config_root, &home).map_err(MachineError::new)?;
        let setup = self.prepare().map_err(|fault| MachineError::new(fault.message))?;
        *self.folder.lock().unwrap_or_else(PoisonError::into_inner) = FolderFacts::of(&setup);
        let settings = UiSettings::read(|key| setup.config.settings.get(key).cloned());
        *self.first.lock().unwrap_or_else(PoisonError::into_inner) = Some(setup);
        Ok(settings)
    }

    /// The variables that hold the keys of providers in the settings.
    fn named_variables(&self) -> BTreeMap<String, String> {
        let setup = Setup::prepare(self.options.clone()).ok();
        let providers = setup.as_ref().map(|setup| &setup.model_options().settings.providers);
        let named = providers
            .into_iter()
            .flatten()
            .filter_map(|(name, provider)| Some((name.clone(), provider.api_key_env.clone()?)));
        named.collect()
    }
}
