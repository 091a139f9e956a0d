//! Opens many sessions in one process, gives each a prompt that the embedded model answers, keeps them all open, and
//! prints what that costs. `cargo run --release -p qoder-runtime --example many_sessions [COUNT]`

use std::sync::Arc;
use std::time::Instant;

use qoder_config::servers::Flags;
use qoder_protocol::messages::StreamMessage;
use qoder_runtime::callbacks::Callbacks;
use qoder_runtime::events::{Event, Sink};
use qoder_runtime::sessions::SessionChoice;
use qoder_runtime::sessions::{FirstPrompt, OpenRequest, Sessions};
use qoder_runtime::setup::{Options, Setup};
use tokio::sync::Notify;

/// Notices the result and nothing else.
#[derive(Default)]
struct ResultSeen(Notify);

impl Sink for ResultSeen {
    fn take(&self, event: Event<'_>) -> std::io::Result<()> {
        if let Event::Message(StreamMessage::Result(_)) = event {
            self.0.notify_one();
        }
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
    let outcome = open_all(&options, count);
    std::fs::remove_dir_all(&folder)?;
    outcome
}

fn open_all(options: &Options, count: usize) -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let all = Sessions::default();
    let before = resident_kib();
    let start = Instant::now();
    let mut sessions = Vec::with_capacity(count);
    runtime.block_on(async {
        for _ in 0..count {
            let sink = Arc::new(ResultSeen::default());
            sessions.push(all.open(OpenRequest {
                setup: Setup::prepare(options.clone())?,
                callbacks: Callbacks::default(),
                agent: None,
                servers: Flags::default(),
                answers_own_servers: false,
                choice: SessionChoice::default(),
                kept: None,
                first: FirstPrompt::Text("show me a.txt".to_owned()),
                sink: Arc::clone(&sink) as Arc<dyn Sink>,
                mirror: None,
                report: Arc::new(|_| ()),
            })?);
            sink.0.notified().await;
        }
        Ok::<(), Box<dyn std::error::Error>>(())
    })?;
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
