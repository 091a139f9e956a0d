//! What can be enforced here and now: what the system offers, and what a confined child really was not let do.
//!
//! The self-test runs once per process, before the first confined command. A sandbox that lets something through that it
//! must stop is not used.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::Serialize;

use super::error::SandboxError;
use super::plan::{Sandbox, SandboxPlaces};
use super::settings::SandboxSettings;
use super::wrapper;
use crate::tree::CONTAINMENT;

/// One thing that was tried.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// What was tried.
    pub attempt: String,
    /// Whether it was let.
    pub allowed: bool,
    /// Whether it should be; `None` where this system has no word in it.
    pub expected: Option<bool>,
}

impl Check {
    /// True when it came out as it must.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.expected.is_none_or(|expected| expected == self.allowed)
    }
}

/// What the sandbox is here.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxReport {
    /// The system and its version.
    pub system: String,
    /// The version of Landlock, where there is one.
    pub landlock: Option<i64>,
    /// Whether ordinary programs get namespaces.
    pub namespaces: bool,
    /// Why not.
    pub namespaces_problem: Option<String>,
    /// Whether system calls can be filtered.
    pub seccomp: bool,
    /// bubblewrap, when root alone can have put it there.
    pub bubblewrap: Option<PathBuf>,
    /// What confines commands here.
    pub mechanism: Option<&'static str>,
    /// What keeps protected files as they are.
    pub protected_files: Option<&'static str>,
    /// Why that does not hold at every depth and for absent files.
    pub broker_problem: Option<String>,
    /// What ends every process of a confined command, and keeps the processes of the machine out of its reach.
    pub confined_processes: Option<&'static str>,
    /// Why that is not a PID namespace.
    pub process_namespace_problem: Option<String>,
    /// What ends every process of an ordinary command, a hook or a server.
    pub ordinary_processes: &'static str,
    /// What was tried.
    pub checks: Vec<Check>,
    /// Why the sandbox cannot be used as asked; empty when it can.
    pub problems: Vec<String>,
}

impl SandboxReport {
    /// True when everything that was asked for is enforced.
    #[must_use]
    pub fn is_enforced(&self) -> bool {
        self.problems.is_empty()
    }
}

/// What the system offers.
#[derive(Debug)]
pub(crate) struct Available {
    pub(crate) landlock: Option<i64>,
    pub(crate) namespaces: bool,
    problem: Option<String>,
    /// Why commands get no PID namespace of their own.
    pub(crate) processes_problem: Option<String>,
    /// Why changes of files cannot be judged one by one.
    pub(crate) broker_problem: Option<String>,
}

impl Available {
    /// Whether commands get a PID namespace with a process list of its own.
    pub(crate) fn own_processes(&self) -> bool {
        self.namespaces && self.processes_problem.is_none()
    }

    /// What is missing, for people.
    pub(crate) fn missing(&self) -> String {
        let mut missing = Vec::new();
        if self.landlock.is_none() {
            missing.push("the kernel has no Landlock, or it is switched off".to_owned());
        }
        if let Some(problem) = &self.problem {
            missing.push(format!("user namespaces are not available ({problem})"));
        }
        missing.push("there is no bubblewrap in a system directory".to_owned());
        missing.join("; ")
    }
}

/// What the system offers; looked up once.
pub(crate) fn available() -> &'static Available {
    static AVAILABLE: OnceLock<Available> = OnceLock::new();
    AVAILABLE.get_or_init(look)
}

#[cfg(target_os = "linux")]
fn look() -> Available {
    let (namespaces, processes) = crate::sandbox::linux::trial::namespaces();
    Available {
        landlock: crate::sandbox::linux::rules::version(),
        namespaces: namespaces.is_ok(),
        problem: namespaces.err(),
        processes_problem: processes.err(),
        broker_problem: crate::sandbox::linux::trial::broker().err(),
    }
}

#[cfg(not(target_os = "linux"))]
fn look() -> Available {
    Available {
        landlock: None,
        namespaces: false,
        problem: None,
        processes_problem: None,
        broker_problem: Some("this system has none".to_owned()),
    }
}

/// Tries the sandbox once per process; an error when something got through.
pub(crate) fn self_test(weaker: bool) -> Result<(), SandboxError> {
    static TESTED: [OnceLock<Result<(), String>>; 2] = [const { OnceLock::new() }; 2];
    let tested = TESTED[usize::from(weaker)].get_or_init(|| {
        let checks = try_out(weaker).map_err(|error| error.to_string())?;
        match checks.iter().find(|check| !check.holds()) {
            Some(check) if check.allowed => Err(format!("{} was possible", check.attempt)),
            Some(check) => Err(format!("{} was not possible", check.attempt)),
            None => Ok(()),
        }
    });
    tested.clone().map_err(SandboxError::SelfTest)
}

/// Looks at the system, tries the sandbox, and makes a plan from the settings for `cwd`.
#[must_use]
pub fn report(settings: &SandboxSettings, places: &SandboxPlaces, cwd: &Path) -> SandboxReport {
    let available = available();
    let weaker = settings.enable_weaker_nested_sandbox;
    let mut problems = Vec::new();
    let checks = match try_out(weaker) {
        Ok(checks) => checks,
        Err(error) => {
            problems.push(error.to_string());
            Vec::new()
        }
    };
    for check in checks.iter().filter(|check| !check.holds()) {
        let how = if check.allowed { "is possible" } else { "is not possible" };
        problems.push(format!("{} {how}", check.attempt));
    }
    let sandbox = Sandbox::new(settings.clone(), places.clone());
    let roots = [cwd.to_path_buf()];
    let prepared = sandbox.plan(cwd, &roots).and_then(|plan| super::Confinement::prepare(&plan));
    if let Err(error) = prepared {
        let problem = error.to_string();
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    SandboxReport {
        system: system(),
        landlock: available.landlock,
        namespaces: available.namespaces,
        namespaces_problem: available.problem.clone(),
        seccomp: filters_calls(),
        bubblewrap: wrapper::find().map(Path::to_path_buf),
        mechanism: mechanism(available, weaker),
        protected_files: protected_files(available, weaker),
        broker_problem: available.broker_problem.clone(),
        confined_processes: confined_processes(available, weaker),
        process_namespace_problem: available.processes_problem.clone(),
        ordinary_processes: CONTAINMENT,
        checks,
        problems,
    }
}

fn mechanism(available: &Available, weaker: bool) -> Option<&'static str> {
    if cfg!(target_os = "macos") {
        return Some("seatbelt");
    }
    match (available.landlock.is_some(), available.namespaces) {
        (true, true) => Some("namespaces, landlock and seccomp"),
        (true, false) if weaker => Some("landlock and seccomp"),
        (_, _) => wrapper::find().map(|_| "bubblewrap and seccomp"),
    }
}

fn protected_files(available: &Available, weaker: bool) -> Option<&'static str> {
    let mechanism = mechanism(available, weaker)?;
    let bubblewrap = mechanism.starts_with("bubblewrap");
    Some(match (available.broker_problem.is_none() && !bubblewrap, available.namespaces || bubblewrap) {
        _ if cfg!(target_os = "macos") => "profile (every depth)",
        (true, _) => "broker (every depth, absent ones too)",
        (false, true) => "mounts (existing ones six levels deep, absent ones at the top)",
        (false, false) => "nothing but the gate",
    })
}

fn confined_processes(available: &Available, weaker: bool) -> Option<&'static str> {
    let mechanism = mechanism(available, weaker)?;
    let namespace = available.own_processes() || mechanism.starts_with("bubblewrap");
    Some(if namespace { "PID namespace" } else { CONTAINMENT })
}

fn system() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{} {}", std::env::consts::OS, release.trim()).trim_end().to_owned()
}

#[cfg(target_os = "linux")]
fn filters_calls() -> bool {
    // SAFETY: asks whether filters exist; no memory is passed.
    let answer = unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) };
    answer >= 0
}

#[cfg(not(target_os = "linux"))]
fn filters_calls() -> bool {
    false
}

/// A folder for the trial, outside of what commands see as their own; removed afterwards.
struct Field(PathBuf);

impl Field {
    fn new() -> Result<Self, SandboxError> {
        let name = format!("qoder-sandbox-test-{}", uuid::Uuid::new_v4().simple());
        let mut last = None;
        for base in [PathBuf::from("/var/tmp"), std::env::temp_dir()] {
            let path = base.join(&name);
            match std::fs::create_dir(&path).and_then(|()| path.canonicalize()) {
                Ok(path) => return Ok(Self(path)),
                Err(source) => last = Some(SandboxError::Place { path, source }),
            }
        }
        Err(last.unwrap_or_else(|| SandboxError::Unavailable("there is no temporary folder".to_owned())))
    }
}

impl Drop for Field {
    fn drop(&mut self) {
        // What stays is empty files in a temporary folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Tries what must fail, and what must not.
fn try_out(weaker: bool) -> Result<Vec<Check>, SandboxError> {
    let field = Field::new()?;
    let root = field.0.join("root");
    let place = |path: &Path, source| SandboxError::Place { path: path.to_path_buf(), source };
    for folder in [root.clone(), root.join(".git"), root.join("deep")] {
        std::fs::create_dir(&folder).map_err(|error| place(&folder, error))?;
    }
    let (outside, denied) = (field.0.join("outside"), field.0.join("denied"));
    for file in [outside.clone(), denied.clone(), root.join(".git/config")] {
        std::fs::write(&file, "").map_err(|error| place(&file, error))?;
    }
    let listener =
        TcpListener::bind(("127.0.0.1", 0)).map_err(|error| place(Path::new("loopback"), error))?;
    let port = listener.local_addr().map_err(|error| place(Path::new("loopback"), error))?.port();
    let settings = SandboxSettings { enable_weaker_nested_sandbox: weaker, ..SandboxSettings::default() };
    let full = available().namespaces;
    let places = SandboxPlaces {
        deny_read: if full || !weaker { vec![denied.clone()] } else { Vec::new() },
        ..SandboxPlaces::default()
    };
    let plan = Sandbox::new(settings, places).plan(&root, std::slice::from_ref(&root))?;
    attempt(&plan, &root, (&outside, &denied), port)
}

#[cfg(target_os = "linux")]
fn attempt(
    plan: &super::SandboxPlan,
    root: &Path,
    (outside, denied): (&Path, &Path),
    port: u16,
) -> Result<Vec<Check>, SandboxError> {
    use crate::sandbox::linux::trial::{ATTEMPTS, Ground, attempt};
    let mut confinement = super::Confinement::prepare(plan)?;
    let Some(child) = confinement.take_child() else {
        return attempt_wrapped(&confinement, root, (outside, denied), port);
    };
    let ground = Ground::new(root, outside, denied, port)
        .ok_or_else(|| SandboxError::Unavailable("the temporary folder has an impossible name".to_owned()))?;
    let setup = |source| SandboxError::Setup { step: "starting a child".to_owned(), source };
    let answers = attempt(child, &ground, || confinement.start_broker()).map_err(setup)?;
    if answers.len() != ATTEMPTS.len() {
        let error = confinement.explain(std::io::Error::other("the confined child ended early"));
        return Err(match error.downcast::<SandboxError>() {
            Ok(error) => error,
            Err(error) => setup(error),
        });
    }
    let available = available();
    let checks = ATTEMPTS.iter().zip(answers).map(|(attempt, allowed)| Check {
        attempt: (*attempt).to_owned(),
        allowed,
        expected: expected(attempt, available),
    });
    Ok(checks.collect())
}

/// What must come out of an attempt here.
#[cfg(target_os = "linux")]
fn expected(attempt: &str, available: &Available) -> Option<bool> {
    let needs_namespaces =
        attempt.contains("protected") || attempt.contains("denied") || attempt.contains("mode");
    let broker = available.broker_problem.is_none();
    match attempt {
        "writing in the workspace" => Some(true),
        "creating a protected file deep down" => broker.then_some(false),
        _ if attempt.contains("protected") && broker => Some(false),
        "signalling another process"
            if !available.own_processes() && available.landlock.is_none_or(|version| version < 6) =>
        {
            None
        }
        _ if needs_namespaces && !available.namespaces => None,
        _ => Some(false),
    }
}

/// The same by a script, for a program that confines in our place.
#[cfg(target_os = "linux")]
pub(crate) fn attempt_wrapped(
    confinement: &super::Confinement,
    root: &Path,
    (outside, denied): (&Path, &Path),
    port: u16,
) -> Result<Vec<Check>, SandboxError> {
    const SCRIPT: &str = r#"
        root=$0 outside=$1 denied=$2 port=$3
        try() { if (eval "$2") >/dev/null 2>&1; then echo "+$1"; else echo "-$1"; fi; }
        try 'writing in the workspace' 'echo x > "$root/inside"'
        try 'writing outside' 'echo x >> "$outside"'
        try 'writing a protected file' 'echo x >> "$root/.git/config"'
        try 'creating a protected file' 'echo x > "$root/.vscode/x"'
        try 'reading a denied file' ': < "$denied"'
        try 'connecting to the machine' 'exec 3<>"/dev/tcp/127.0.0.1/$port"'"#;
    let setup = |source| SandboxError::Setup { step: "starting bubblewrap".to_owned(), source };
    let words: Vec<std::ffi::OsString> = vec![
        "--norc".into(),
        "-c".into(),
        SCRIPT.into(),
        root.into(),
        outside.into(),
        denied.into(),
        port.to_string().into(),
    ];
    let output = super::start::confined_output(confinement, &words).map_err(setup)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let checks: Vec<Check> = text
        .lines()
        .filter_map(|line| {
            let allowed = line.starts_with('+');
            let attempt = line.get(1..)?.to_owned();
            let expected = Some(attempt == "writing in the workspace");
            Some(Check { attempt, allowed, expected })
        })
        .collect();
    if checks.len() < 6 {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(setup(std::io::Error::other(said)));
    }
    Ok(checks)
}

#[cfg(not(target_os = "linux"))]
fn attempt(
    plan: &super::SandboxPlan,
    _: &Path,
    _: (&Path, &Path),
    _: u16,
) -> Result<Vec<Check>, SandboxError> {
    // The system's own mechanism takes a profile or refuses it; the text of the profile is what we are answerable for.
    super::Confinement::prepare(plan).map(|_| Vec::new())
}
