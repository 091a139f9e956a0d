//! A bench whose commands run in the sandbox.
//!
//! The workspace lies outside the temporary folder, so that what is outside of it is really there and not only hidden.
#![allow(dead_code, reason = "each test file uses a part of the bench")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use qoder_core::ports::ToolOutcome;
use qoder_process::sandbox::{Resolver, Sandbox, SandboxPlaces, SandboxSettings, report};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Bench, text};

/// A bench with a sandbox, a workspace and a place outside of it.
pub struct Sandboxed {
    _directory: TempDir,
    pub bench: Bench,
    pub outside: PathBuf,
    settings: SandboxSettings,
    resolver: Option<Resolver>,
}

impl Sandboxed {
    /// `None`, told loudly, where this system cannot confine commands at all.
    pub fn new() -> Option<Self> {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut SandboxSettings)) -> Option<Self> {
        let mut settings = SandboxSettings { enabled: true, ..SandboxSettings::default() };
        change(&mut settings);
        let base =
            if Path::new("/var/tmp").is_dir() { PathBuf::from("/var/tmp") } else { std::env::temp_dir() };
        let directory = tempfile::tempdir_in(base).unwrap();
        let real = directory.path().canonicalize().unwrap();
        let found = report(&SandboxSettings::default(), &SandboxPlaces::default(), &real);
        if !found.is_enforced() {
            eprintln!("SKIPPED: this system cannot confine commands: {:?}", found.problems);
            return None;
        }
        let mut bench = Bench::new();
        bench.cwd = real.join("work");
        let outside = real.join("outside");
        for folder in [&bench.cwd, &outside] {
            std::fs::create_dir(folder).unwrap();
        }
        let mut sandboxed = Self { _directory: directory, bench, outside, settings, resolver: None };
        sandboxed.renew();
        Some(sandboxed)
    }

    /// Changes the settings.
    pub fn change(&mut self, change: impl FnOnce(&mut SandboxSettings, &Path)) {
        change(&mut self.settings, &self.outside);
        self.renew();
    }

    pub fn resolve(&mut self, resolver: Resolver) {
        self.resolver = Some(resolver);
        self.renew();
    }

    fn renew(&mut self) {
        let places = SandboxPlaces {
            home: self.outside.clone(),
            config_dir: self.outside.join(".qoder"),
            ..SandboxPlaces::default()
        };
        let mut sandbox = Sandbox::new(self.settings.clone(), places);
        if let Some(resolver) = &self.resolver {
            sandbox = sandbox.with_resolver(Arc::clone(resolver));
        }
        self.bench.settings.sandbox = Some(Arc::new(sandbox));
    }

    pub async fn run(&self, command: &str) -> ToolOutcome {
        self.bench.run("Bash", json!({ "command": command })).await
    }

    pub async fn run_input(&self, input: Value) -> ToolOutcome {
        self.bench.run("Bash", input).await
    }

    /// Runs a command that must succeed; returns its output.
    pub async fn succeed(&self, command: &str) -> String {
        let outcome = self.run(command).await;
        assert_eq!(outcome.structured["exitCode"], 0, "{command}: {}", text(&outcome));
        outcome.structured["stdout"].as_str().unwrap().to_owned()
    }

    /// Runs a command that must fail; returns what the model reads.
    pub async fn fail(&self, command: &str) -> String {
        let outcome = self.run(command).await;
        assert_ne!(outcome.structured["exitCode"], 0, "{command}: {}", text(&outcome));
        assert!(outcome.structured["exitCode"].is_number(), "{command} did not start: {}", text(&outcome));
        text(&outcome)
    }

    /// Builds a small C program inside the workspace; `None`, told loudly, without a compiler.
    pub fn build(&self, name: &str, source: &str) -> Option<String> {
        let file = self.bench.write(&format!("{name}.c"), source);
        let program = self.bench.path(name);
        match std::process::Command::new("cc").arg("-o").arg(&program).arg(&file).status() {
            Ok(status) if status.success() => Some(program.to_str().unwrap().to_owned()),
            other => {
                eprintln!("SKIPPED: no C compiler: {other:?}");
                None
            }
        }
    }
}
