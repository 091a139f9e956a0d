//! A PostgreSQL server of the test's own, from the programs that are installed. It listens on a socket in a temporary folder and on no
//! port. PostgreSQL refuses to run as root; then it runs as the user who owns nothing.

use std::fs::File;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Runs a server until its input ends, also because the tests were killed.
const UNTIL_INPUT_ENDS: &str = r#""$@" & read -r line; kill "-${line:-INT}" $!; wait $!"#;
/// The user and the group of the account without rights.
const UNPRIVILEGED: u32 = 65_534;
/// A guard against a server that hangs; no test depends on how long it is.
const HANG_LIMIT: Duration = Duration::from_secs(60);
const PLACES: [&str; 4] =
    ["/usr/local/bin", "/usr/bin", "/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql/bin"];

/// A PostgreSQL server that ends with the value.
pub struct PostgresServer {
    folder: TempDir,
    programs: PathBuf,
    shell: Option<Child>,
    /// True when what is committed survives a loss of power, which takes its time.
    is_durable: bool,
}

#[expect(clippy::expect_used, reason = "a test whose database does not start cannot continue")]
impl PostgresServer {
    /// Makes an empty database and serves it.
    ///
    /// # Panics
    /// When PostgreSQL is not installed or does not start.
    #[must_use]
    pub fn start() -> Self {
        Self::make(false)
    }

    /// The same with every commit synced to the disk, to measure with.
    ///
    /// # Panics
    /// When PostgreSQL is not installed or does not start.
    #[must_use]
    pub fn start_durable() -> Self {
        Self::make(true)
    }

    fn make(is_durable: bool) -> Self {
        // A short path: that of a socket may have no more than about a hundred bytes.
        let folder = tempfile::Builder::new().prefix("qoder-pg-").tempdir().expect("a temporary folder");
        let mut server = Self { folder, programs: programs(), shell: None, is_durable };
        if server.is_root() {
            chown(server.folder.path(), Some(UNPRIVILEGED), Some(UNPRIVILEGED)).expect("the folder's owner");
        }
        let mut initialise = server.command("initdb");
        initialise.args([
            "--no-sync",
            "--auth=trust",
            "--username=tester",
            "--encoding=UTF8",
            "--locale=C",
            "-D",
        ]);
        let made = initialise.arg(server.data()).output().expect("initdb runs");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        server.serve();
        server
    }

    /// The address of its database, for programs that speak its protocol over a socket.
    #[must_use]
    pub fn url(&self) -> String {
        self.address("postgres")
    }

    fn address(&self, database: &str) -> String {
        let folder = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://tester@{folder}/{database}")
    }

    /// Makes an empty database; answers with its address.
    ///
    /// # Panics
    /// When a database has the name already.
    #[must_use]
    pub fn database(&self, name: &str) -> String {
        let _ = self.query(&format!("CREATE DATABASE {name}"));
        self.address(name)
    }

    /// The socket that it listens on.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join(".s.PGSQL.5432")
    }

    /// Runs SQL with `psql`; answers with the rows, without decoration.
    ///
    /// # Panics
    /// When the SQL is wrong.
    #[must_use]
    pub fn query(&self, sql: &str) -> String {
        let mut psql = self.command("psql");
        psql.args(["-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-U", "tester", "-d", "postgres", "-h"]);
        let output = psql.arg(self.folder.path()).args(["-c", sql]).output().expect("psql runs");
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Ends every connection at once and serves nothing until [`Self::serve`].
    ///
    /// # Panics
    /// When the server does not end.
    pub fn stop(&mut self) {
        let Some(mut shell) = self.shell.take() else { return };
        drop(shell.stdin.take());
        shell.wait().expect("the server ends");
    }

    /// Serves after a stop, with what was committed.
    ///
    /// # Panics
    /// When the server does not start.
    pub fn serve(&mut self) {
        let log = self.folder.path().join("log");
        let output = File::options().create(true).append(true).open(&log).expect("a log");
        let mut command = self.command("sh");
        command
            .args(["-c", UNTIL_INPUT_ENDS, "postgres"])
            .arg(self.programs.join("postgres"))
            .arg("-D")
            .arg(self.data());
        command.arg(format!("--unix_socket_directories={}", self.folder.path().display()));
        let fsync = if self.is_durable { "--fsync=on" } else { "--fsync=off" };
        command.args(["--listen_addresses=", fsync, "--max_connections=100", "--shared_buffers=16MB"]);
        command.stdin(Stdio::piped()).stdout(output.try_clone().expect("a log")).stderr(output);
        let mut shell = command.spawn().expect("a shell");
        let until = Instant::now() + HANG_LIMIT;
        let state = self.data().join("postmaster.pid");
        // The server writes its state into a file.
        while !std::fs::read_to_string(&state).is_ok_and(|text| text.trim_end().ends_with("ready")) {
            let ended = shell.try_wait().expect("a state").is_some();
            let said = || std::fs::read_to_string(&log).unwrap_or_default();
            assert!(!ended && Instant::now() < until, "PostgreSQL does not start: {}", said());
            std::thread::sleep(Duration::from_millis(5));
        }
        self.shell = Some(shell);
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn is_root(&self) -> bool {
        std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
    }

    fn command(&self, program: &str) -> Command {
        let installed = self.programs.join(program);
        let mut command = Command::new(if installed.exists() { installed } else { PathBuf::from(program) });
        command.current_dir(self.folder.path()).env("TZ", "UTC");
        if self.is_root() {
            command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
        }
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The folder of the newest installed programs.
fn programs() -> PathBuf {
    let packaged = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = packaged.map(|entry| entry.path().join("bin")).collect();
    folders.sort_by_key(|folder| {
        let version = folder.parent().and_then(Path::file_name).and_then(|name| name.to_str()?.parse().ok());
        std::cmp::Reverse(version.unwrap_or(0_u32))
    });
    let known = folders.into_iter().chain(PLACES.map(PathBuf::from));
    let found = known.into_iter().find(|folder| folder.join("postgres").exists());
    found.unwrap_or_else(|| {
        panic!("PostgreSQL is not installed. Run `apt-get install postgresql`, or `cargo xtask test`.")
    })
}
