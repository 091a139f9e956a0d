//! The hooks of a session: those of the front, those of settings and plugins, which are replaced when their files change,
//! and those that an agent brought for itself. Owns which of them an event concerns, and what they work with.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use qoder_core::ports::CommandEnvironment;
use serde_json::{Map, Value};
use tokio::task::JoinHandle;

use crate::firing::background::BackgroundAnswer;
use crate::firing::judge::Judge;
use crate::firing::matcher::Matcher;
use crate::firing::run::Occasion;
use qoder_config::extensions::Loaded;
use qoder_config::hooks;
use qoder_config::hooks::SettingsHooks;
use qoder_config::hooks::{Action, CommandHook};
use qoder_config::hooks::{Hook, HookEvent, OnFailure};
use qoder_config::sources::{Origin, Problem};
use qoder_models::{ModelByName, SwitchedModel};

/// The most hooks that run in the background at one time.
const MOST_IN_BACKGROUND: usize = 64;
/// How much of a matcher is reported.
const TOLD_CHARACTERS: usize = 100;

/// Posts a body to an address with these headers; answers with the status and the text of the answer. Dropping the future
/// gives the request up.
pub type PostJson = Arc<
    dyn Fn(String, Vec<(String, String)>, Vec<u8>) -> BoxFuture<'static, Result<(u16, String), String>>
        + Send
        + Sync,
>;

/// What hooks of files work with.
pub struct HookServices {
    /// `QODER_PROJECT_DIR`.
    pub project_dir: PathBuf,
    /// The environment of commands.
    pub environment: Arc<CommandEnvironment>,
    /// The variables of this process, for headers that name one.
    pub variables: BTreeMap<String, String>,
    /// Those of them that hooks of the project may name.
    pub project_variables: BTreeMap<String, String>,
    /// The session's model.
    pub model: Arc<SwitchedModel>,
    /// Finds others.
    pub models: ModelByName,
    /// Posts events to hooks that are requests.
    pub post: PostJson,
    /// How long a session waits for a prompt before hooks are told.
    pub idle_after: Duration,
    /// Runs agents; set once there is one who can. It holds the hooks itself, so they do not hold it.
    pub judge: OnceLock<Weak<dyn Judge>>,
}

impl HookServices {
    /// The variables that headers of a hook may hold, by who wrote it.
    pub(crate) fn variables_for(&self, hook: &Hook) -> &BTreeMap<String, String> {
        let of_project = hook.traits.place.as_ref().is_some_and(|place| place.origin == Origin::Project);
        if of_project { &self.project_variables } else { &self.variables }
    }
}

/// The hooks of a session.
#[derive(Clone, Default)]
pub struct Hooks {
    own: Vec<Arc<Registered>>,
    extra: Vec<Arc<Registered>>,
    without_agents: bool,
    shared: Arc<Shared>,
}

/// What a session and its agents share.
#[derive(Default)]
struct Shared {
    files: RwLock<Files>,
    settings: Mutex<Option<SettingsHooks>>,
    /// When the plugins were read that hooks are of.
    loaded: Mutex<Option<Arc<()>>>,
    problems: Mutex<Vec<Problem>>,
    services: Option<HookServices>,
    /// Told when something came late.
    session: OnceLock<Arc<dyn Fn() + Send + Sync>>,
    ran_once: Mutex<BTreeSet<String>>,
    /// What runs beside the session, and whether its end is worth a little time.
    running: Mutex<Vec<(bool, JoinHandle<()>)>>,
    late: Mutex<Vec<BackgroundAnswer>>,
}

#[derive(Default)]
struct Files {
    settings: Vec<Arc<Registered>>,
    plugins: Vec<Arc<Registered>>,
}

/// A hook with its matcher, which is read when an event first needs it.
pub(crate) struct Registered {
    pub(crate) hook: Hook,
    matcher: OnceLock<Matcher>,
}

fn register(hooks: Vec<Hook>) -> Vec<Arc<Registered>> {
    let registered = |hook| Arc::new(Registered { hook, matcher: OnceLock::new() });
    hooks.into_iter().map(registered).collect()
}

impl Hooks {
    /// These hooks, in the order in which they were registered.
    #[must_use]
    pub fn new(hooks: Vec<Hook>) -> Self {
        Self { own: register(hooks), ..Self::default() }
    }

    /// The same with what hooks of files need, and those of settings. For a fresh set.
    #[must_use]
    pub fn with_settings(self, services: HookServices, settings: SettingsHooks) -> Self {
        let names = self.own.iter().map(|one| one.hook.event.as_str());
        let unknown: BTreeSet<&str> = names.filter(|name| HookEvent::parse(name).is_none()).collect();
        let problem = |name: &str| Problem {
            path: format!("hooks.{name}").into(),
            line: None,
            text: hooks::unknown_event(name),
            origin: Origin::Flag,
        };
        let problems = Mutex::new(unknown.into_iter().map(problem).collect());
        let shared = Shared { services: Some(services), problems, ..Shared::default() };
        let hooks = Self { shared: Arc::new(shared), ..self };
        hooks.take_settings(settings);
        hooks
    }

    /// The same with more, for an agent that brings its own. Everything else is shared.
    #[must_use]
    pub fn with(&self, extra: Vec<Hook>) -> Self {
        let mut hooks = self.clone();
        hooks.extra.extend(register(extra));
        hooks
    }

    /// Those that hold for the agents which an agent starts: of its own ones the hooks about calls, so that it cannot have
    /// done by another what they deny.
    #[must_use]
    pub fn below(&self) -> Self {
        let about_calls = [HookEvent::PreToolUse, HookEvent::PostToolUse, HookEvent::PostToolUseFailure];
        let holds = |one: &Arc<Registered>| about_calls.iter().any(|event| event.as_str() == one.hook.event);
        let mut hooks = self.clone();
        hooks.extra.retain(holds);
        hooks
    }

    /// The same without those that are agents, for such an agent.
    #[must_use]
    pub fn without_agents(&self) -> Self {
        Self { without_agents: true, ..self.clone() }
    }

    /// Takes the hooks of these plugins over, unless they are those that it has.
    pub fn follow(&self, loaded: &Arc<Loaded>) {
        let mut known = self.shared.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_some_and(|known| Arc::ptr_eq(known, &loaded.reading)) {
            return;
        }
        // What is wrong with them is among the problems of what was loaded.
        let hooks = loaded.plugins.iter().flat_map(|plugin| hooks::of_plugin(plugin).0).collect();
        self.shared.files.write().unwrap_or_else(PoisonError::into_inner).plugins = register(hooks);
        *known = Some(Arc::clone(&loaded.reading));
    }

    /// Puts what was read in the place of the hooks of settings.
    pub fn take_settings(&self, settings: SettingsHooks) {
        let (hooks, problems) = settings.list();
        self.shared.files.write().unwrap_or_else(PoisonError::into_inner).settings = register(hooks);
        self.shared.problems.lock().unwrap_or_else(PoisonError::into_inner).extend(problems);
        *self.shared.settings.lock().unwrap_or_else(PoisonError::into_inner) = Some(settings);
    }

    /// The settings that the hooks came from, and whether their files changed since.
    #[must_use]
    pub fn settings(&self) -> Option<SettingsHooks> {
        self.shared.settings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What keeps a program of the folder's hooks from running: a script of it that no person vouched for as it is.
    pub(crate) fn unvouched(&self, hook: &Hook, command: &CommandHook, directory: &Path) -> Option<String> {
        if hook.traits.place.as_ref().is_none_or(|place| place.origin != Origin::Project) {
            return None;
        }
        let settings = self.shared.settings.lock().unwrap_or_else(PoisonError::into_inner);
        settings.as_ref()?.unvouched(command, directory)
    }

    /// Remembers settings of which nothing new counts.
    pub fn keep_settings(&self, settings: SettingsHooks) {
        *self.shared.settings.lock().unwrap_or_else(PoisonError::into_inner) = Some(settings);
    }

    /// What is wrong with files, once.
    #[must_use]
    pub fn take_problems(&self) -> Vec<Problem> {
        std::mem::take(&mut *self.shared.problems.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Agents that judge for hooks are run by this one.
    pub fn judged_by(&self, judge: Weak<dyn Judge>) {
        if let Some(services) = &self.shared.services {
            // There is one session for one engine.
            let _ = services.judge.set(judge);
        }
    }

    /// `arrived` is called when a late answer waits to be taken.
    pub fn belong_to(&self, arrived: Arc<dyn Fn() + Send + Sync>) {
        // There is one session for one engine.
        let _ = self.shared.session.set(arrived);
    }

    /// What hooks of files work with, when there are such.
    #[must_use]
    pub fn services(&self) -> Option<&HookServices> {
        self.shared.services.as_ref()
    }

    fn all(&self) -> Vec<Arc<Registered>> {
        let files = self.shared.files.read().unwrap_or_else(PoisonError::into_inner);
        let all = files.settings.iter().chain(&files.plugins).chain(&self.extra).chain(&self.own);
        let left_out = |one: &Registered| self.without_agents && matches!(one.hook.action, Action::Agent(_));
        all.filter(|one| !left_out(one)).cloned().collect()
    }

    /// Every hook, in the order in which they count.
    #[must_use]
    pub fn list(&self) -> Vec<Hook> {
        self.all().iter().map(|one| one.hook.clone()).collect()
    }

    /// True when some hook listens to the event.
    #[must_use]
    pub fn listens(&self, event: &str) -> bool {
        let files = self.shared.files.read().unwrap_or_else(PoisonError::into_inner);
        let mut all = files.settings.iter().chain(&files.plugins).chain(&self.extra).chain(&self.own);
        all.any(|one| one.hook.event == event)
    }

    /// True when an agent listens to the event.
    #[must_use]
    pub fn has_agents(&self, event: HookEvent) -> bool {
        let is_agent = |one: &Arc<Registered>| {
            one.hook.event == event.as_str() && matches!(one.hook.action, Action::Agent(_))
        };
        self.all().iter().any(is_agent)
    }

    /// The hooks that an occasion concerns, in the order in which they count. Matchers that cannot be used are added to
    /// `warnings`, each once.
    pub(crate) fn about(&self, occasion: &Occasion, warnings: &mut Vec<String>) -> Vec<Arc<Registered>> {
        let mut concerned = Vec::new();
        for one in self.all().into_iter().filter(|one| one.hook.event == occasion.event.as_str()) {
            if one.is_for(&occasion.subject, occasion.event, warnings)
                && one.is_meant(&occasion.input)
                && self.may_run(&one.hook)
            {
                concerned.push(one);
            }
        }
        concerned
    }

    /// A hook that runs once has not run yet. It is the same hook when its file is read again.
    fn may_run(&self, hook: &Hook) -> bool {
        if !hook.traits.once {
            return true;
        }
        let place = hook.traits.place.as_ref().map(|place| place.file.display().to_string());
        let key = format!("{}|{}|{}", hook.event, place.unwrap_or_default(), hook.action.display_text());
        self.shared.ran_once.lock().unwrap_or_else(PoisonError::into_inner).insert(key)
    }

    /// Lets something run beside the session, at most until its end. False when too much runs already.
    pub(crate) fn run_beside(
        &self,
        is_awaited: bool,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> bool {
        let mut running = self.shared.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|(_, task)| !task.is_finished());
        if running.len() >= MOST_IN_BACKGROUND {
            return false;
        }
        running.push((is_awaited, tokio::spawn(work)));
        true
    }

    /// Takes what came after the caller had continued.
    pub(crate) fn arrived(&self, late: BackgroundAnswer) {
        self.shared.late.lock().unwrap_or_else(PoisonError::into_inner).push(late);
        if let Some(arrived) = self.shared.session.get() {
            arrived();
        }
    }

    /// What came meanwhile, once.
    #[must_use]
    pub fn take_late(&self) -> Vec<BackgroundAnswer> {
        std::mem::take(&mut *self.shared.late.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends what runs beside the session. Hooks that only report something get this much time.
    pub async fn end(&self, patience: Duration) {
        let running =
            std::mem::take(&mut *self.shared.running.lock().unwrap_or_else(PoisonError::into_inner));
        let last = tokio::time::Instant::now() + patience;
        for (is_awaited, mut task) in running {
            if is_awaited && tokio::time::timeout_at(last, &mut task).await.is_ok() {
                continue;
            }
            task.abort();
            // It was asked to end; how it did does not matter.
            let _ = task.await;
        }
    }
}

impl Registered {
    fn is_for(&self, subject: &str, event: HookEvent, warnings: &mut Vec<String>) -> bool {
        let hook = &self.hook;
        // A hook that decides about calls must not be lost by a mistake in its matcher.
        let closed = hook.on_failure.unwrap_or_else(|| event.on_failure()) != OnFailure::Continue;
        let matcher = self.matcher.get_or_init(|| {
            let matcher = Matcher::new(hook.matcher.as_deref());
            if let Matcher::Nothing(problem) = &matcher {
                let text = hook.matcher.as_deref().unwrap_or_default();
                let text: String = text.chars().take(TOLD_CHARACTERS).collect();
                let effect = if closed { "fails for everything" } else { "is never called" };
                let name = &hook.name;
                warnings.push(format!(
                    "the hook {name} {effect}: its matcher `{text}` is no regular expression ({problem})"
                ));
            }
            matcher
        });
        // Of some events there is nothing that a matcher could look at.
        subject.is_empty() || matcher.matches(subject) || (closed && matches!(matcher, Matcher::Nothing(_)))
    }

    /// Why the matcher cannot be used.
    pub(crate) fn matcher_problem(&self) -> Option<String> {
        match self.matcher.get() {
            Some(Matcher::Nothing(problem)) => Some(format!("its matcher cannot be used: {problem}")),
            Some(Matcher::All | Matcher::Names(_) | Matcher::Expression(_)) | None => None,
        }
    }

    fn is_meant(&self, input: &Map<String, Value>) -> bool {
        let Some(condition) = &self.hook.traits.condition else { return true };
        let tool = input.get("tool_name").and_then(Value::as_str).unwrap_or_default();
        hooks::holds(condition, tool, input.get("tool_input").unwrap_or(&Value::Null))
    }
}
