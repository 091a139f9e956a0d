//! Opens many sessions in one process, gives each a prompt that the embedded model answers, keeps them all open, and
//! prints what that costs. `cargo run --release -p qoder-runtime --example many_sessions [COUNT]`

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use qoder_runtime::callbacks::Callbacks;
use qoder_runtime::driver::Driver;
use qoder_runtime::events::{Event, Host};
use qoder_runtime::interrupt::Interrupt;
use qoder_runtime::layout::{SessionPaths, project_folder};
use qoder_runtime::session::{Keep, Session, new_id};
use qoder_runtime::setup::{Options, Setup};
use qoder_types::Message;

/// Hears everything and says nothing.
struct Silent;

impl Host for Silent {
    fn wants_partial(&self) -> bool {
        false
    }

    fn wants_tool_output(&self) -> bool {
        false
    }

    fn emit(&self, _event: Event<'_>) -> std::io::Result<()> {
        Ok(())
    }
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

/// Every open session holds its log and its lock.
fn allow_many_files() -> Result<(), rustix::io::Errno> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    allow_many_files()?;
    let count: usize = std::env::args().nth(1).map_or(Ok(1_000), |text| text.parse())?;
    let folder = std::env::temp_dir().join(format!("qodercli-many-{}", std::process::id()));
    let project = folder.join("project");
    std::fs::create_dir_all(&project)?;
    std::fs::write(project.join("a.txt"), "one line\n")?;
    let environment = [("HOME", folder.join("home")), ("QODER_CONFIG_DIR", folder.join("config"))];
    let environment = environment.map(|(name, path)| (name.to_owned(), path.display().to_string()));
    let options =
        Options { cwd: project, environment: environment.into_iter().collect(), ..Options::default() };
    let outcome = open_all(options, count);
    std::fs::remove_dir_all(&folder)?;
    outcome
}

fn open_all(options: Options, count: usize) -> Result<(), Box<dyn std::error::Error>> {
    let setup = Setup::prepare(options)?;
    let engine = setup.engine(Arc::new(Silent), Callbacks::default())?;
    let folder = project_folder(Path::new(&setup.config_root), &setup.cwd);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let before = resident_kib();
    let start = Instant::now();
    let mut sessions = Vec::with_capacity(count);
    for _ in 0..count {
        let id = new_id();
        let keep = Keep::Files { paths: SessionPaths::new(&folder, &id), durability: setup.durability };
        let mut session = Session::open(&id, keep, setup.redactor(), &setup.cwd)?;
        session.prompt(Message::user("show me a.txt"))?;
        runtime.block_on(Driver::new(&engine, &mut session, Interrupt::default()).run())?;
        sessions.push(session);
    }
    let elapsed = start.elapsed();
    let grown = resident_kib().saturating_sub(before);
    let per = |total: f64| total / sessions.len().max(1) as f64;
    println!("sessions open: {}", sessions.len());
    println!(
        "wall per session (open, two model calls, one tool): {:.2} ms",
        per(elapsed.as_secs_f64() * 1e3)
    );
    println!("memory per open session: {:.1} KiB", per(grown as f64));
    Ok(())
}
