//! A terminal for the tests: the real program in a pseudo-terminal, an emulator that reads what it writes, and waiting for what
//! is to be shown. A deadline only guards against hanging.

use std::io::{Read, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use qoder_testkit::{Sandbox, ScriptedServer};

pub const BINARY: &str = env!("CARGO_BIN_EXE_qodercli");
const GUARD: Duration = Duration::from_secs(30);

/// Keys by name.
pub const ENTER: &str = "\r";
pub const ESC: &str = "\u{1b}";
pub const UP: &str = "\u{1b}[A";
pub const DOWN: &str = "\u{1b}[B";
pub const RIGHT: &str = "\u{1b}[C";
pub const TAB: &str = "\t";
pub const CTRL_C: &str = "\u{3}";
pub const CTRL_D: &str = "\u{4}";
pub const FOCUS_QUESTION: &str = "\u{1d}";

/// What the terminal has seen.
struct Seen {
    parser: vt100::Parser,
    bytes: Vec<u8>,
    is_over: bool,
}

/// The program in a pseudo-terminal.
pub struct Screen {
    seen: Arc<(Mutex<Seen>, Condvar)>,
    keys: Box<dyn Write + Send>,
    master: Box<dyn MasterPty + Send>,
    child: Box<dyn Child + Send + Sync>,
}

/// How the program is started.
pub struct Start<'a> {
    sandbox: &'a Sandbox,
    server: Option<&'a ScriptedServer>,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    size: (u16, u16),
    shell: Option<String>,
}

impl<'a> Start<'a> {
    pub fn new(sandbox: &'a Sandbox) -> Self {
        let variables = vec![("TERM".to_owned(), "xterm-256color".to_owned())];
        Self { sandbox, server: None, arguments: Vec::new(), variables, size: (80, 24), shell: None }
    }

    pub fn with(mut self, server: &'a ScriptedServer) -> Self {
        self.server = Some(server);
        self
    }

    pub fn arguments(mut self, words: &[&str]) -> Self {
        self.arguments.extend(words.iter().map(|word| (*word).to_owned()));
        self
    }

    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Columns and rows.
    pub fn size(mut self, columns: u16, rows: u16) -> Self {
        self.size = (columns, rows);
        self
    }

    /// Runs a line of sh in place of the program; `$QODER` is the program.
    pub fn shell(mut self, line: &str) -> Self {
        self.shell = Some(line.to_owned());
        self
    }

    pub fn run(self) -> Screen {
        let (columns, rows) = self.size;
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = match &self.shell {
            Some(line) => {
                let mut command = CommandBuilder::new("sh");
                command.args(["-c", line]);
                command
            }
            None => CommandBuilder::new(BINARY),
        };
        command.args(&self.arguments);
        command.env_clear();
        command.cwd(self.sandbox.project());
        let plain = match self.server {
            Some(server) => self.sandbox.command_with(BINARY, server),
            None => self.sandbox.command(BINARY),
        };
        for (name, value) in plain.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command.env("QODER", BINARY);
        command.env("USER", "ana");
        for (name, value) in &self.variables {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let parser = vt100::Parser::new(rows.try_into().unwrap(), columns.try_into().unwrap(), 100_000);
        let seen = Arc::new((Mutex::new(Seen { parser, bytes: Vec::new(), is_over: false }), Condvar::new()));
        let mut reader = pair.master.try_clone_reader().unwrap();
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut buffer = [0; 65_536];
            loop {
                let count = reader.read(&mut buffer).unwrap_or(0);
                let mut seen = shared.0.lock().unwrap();
                if count == 0 {
                    seen.is_over = true;
                } else {
                    seen.parser.process(&buffer[..count]);
                    seen.bytes.extend_from_slice(&buffer[..count]);
                }
                shared.1.notify_all();
                if count == 0 {
                    return;
                }
            }
        });
        let keys = pair.master.take_writer().unwrap();
        Screen { seen, keys, master: pair.master, child }
    }
}

impl Screen {
    /// Types.
    pub fn send(&mut self, keys: &str) -> &mut Self {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
        self
    }

    /// Pastes as a terminal does.
    pub fn paste(&mut self, text: &str) -> &mut Self {
        self.send(&format!("\u{1b}[200~{text}\u{1b}[201~"))
    }

    /// Waits until the rows satisfy this.
    pub fn wait(&mut self, what: &str, mut is_met: impl FnMut(&[String]) -> bool) -> &mut Self {
        let until = Instant::now() + GUARD;
        let shared = Arc::clone(&self.seen);
        let (lock, arrived) = &*shared;
        let mut seen = lock.lock().unwrap();
        loop {
            let rows = rows(&mut seen.parser);
            if is_met(&rows) {
                return self;
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero() && !seen.is_over,
                "waiting for {what}; the screen is\n{}",
                rows.join("\n")
            );
            seen = arrived.wait_timeout(seen, left).unwrap().0;
        }
    }

    /// Lets time pass, where it is the time between two keys that is tested.
    pub fn pause(&mut self, milliseconds: u64) -> &mut Self {
        std::thread::sleep(Duration::from_millis(milliseconds));
        self
    }

    /// Asserts that a text is there, after the end.
    pub fn until_seen(&mut self, text: &str) -> &mut Self {
        assert!(self.text().contains(text), "{text} is not on the screen:\n{}", self.text());
        self
    }

    /// Waits until a text is anywhere in the scrollback or on the screen.
    pub fn until(&mut self, text: &str) -> &mut Self {
        self.wait(text, |rows| rows.iter().any(|row| row.contains(text)))
    }

    /// Waits until a text is nowhere on the screen.
    pub fn until_gone(&mut self, text: &str) -> &mut Self {
        self.wait(&format!("no {text}"), |rows| !rows.iter().any(|row| row.contains(text)))
    }

    /// Waits until the composer holds exactly this.
    pub fn until_prompt(&mut self, text: &str) -> &mut Self {
        let wanted = format!("> {text}");
        self.wait(&wanted, |rows| {
            rows.iter().rev().find(|row| row.starts_with('>')).is_some_and(|row| row == wanted.trim_end())
        })
    }

    /// Waits until the cursor is in this column.
    pub fn until_caret(&mut self, column: u16) -> &mut Self {
        let shared = Arc::clone(&self.seen);
        let until = Instant::now() + GUARD;
        let (lock, arrived) = &*shared;
        let mut seen = lock.lock().unwrap();
        while seen.parser.screen().cursor_position().1 != column {
            let left = until.saturating_duration_since(Instant::now());
            let found = seen.parser.screen().cursor_position();
            assert!(!left.is_zero() && !seen.is_over, "the cursor is at {found:?}, not in column {column}");
            seen = arrived.wait_timeout(seen, left).unwrap().0;
        }
        self
    }

    /// Waits until the composer is there and nothing runs.
    pub fn until_idle(&mut self) -> &mut Self {
        self.wait("the composer", |rows| {
            rows.iter().any(|row| row.starts_with('>')) && !rows.iter().any(|row| row.contains("Esc stops"))
        })
    }

    /// All rows, those that scrolled off first.
    pub fn rows(&self) -> Vec<String> {
        rows(&mut self.seen.0.lock().unwrap().parser)
    }

    /// All rows as one text.
    pub fn text(&self) -> String {
        self.rows().join("\n")
    }

    /// How many rows there are of a text.
    pub fn count(&self, text: &str) -> usize {
        self.rows().iter().filter(|row| row.contains(text)).count()
    }

    /// Everything that was written so far.
    pub fn bytes(&self) -> Vec<u8> {
        self.seen.0.lock().unwrap().bytes.clone()
    }

    /// Waits until a sequence was written behind the first `from` bytes.
    pub fn until_written(&mut self, from: usize, sequence: &str) -> &mut Self {
        let until = Instant::now() + GUARD;
        let shared = Arc::clone(&self.seen);
        let (lock, arrived) = &*shared;
        let mut seen = lock.lock().unwrap();
        while !contains(&seen.bytes[from..], sequence) {
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero() && !seen.is_over, "{sequence:?} was not written");
            seen = arrived.wait_timeout(seen, left).unwrap().0;
        }
        self
    }

    /// Row and column of the cursor on the screen.
    pub fn cursor(&self) -> (u16, u16) {
        self.seen.0.lock().unwrap().parser.screen().cursor_position()
    }

    /// Another size.
    pub fn resize(&mut self, columns: u16, rows: u16) -> &mut Self {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        let mut seen = self.seen.0.lock().unwrap();
        seen.parser.screen_mut().set_size(rows.try_into().unwrap(), columns.try_into().unwrap());
        drop(seen);
        self.master.resize(size).unwrap();
        self
    }

    /// The process.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.process_id().unwrap()).unwrap()
    }

    /// Sends a signal to the process.
    pub fn signal(&mut self, name: &str) -> &mut Self {
        let status =
            std::process::Command::new("kill").args([format!("-{name}"), self.pid().to_string()]).status();
        assert!(status.unwrap().success());
        self
    }

    /// Waits for the end; answers with its exit code, or what it was killed by.
    pub fn end(&mut self) -> portable_pty::ExitStatus {
        let until = Instant::now() + GUARD;
        let shared = Arc::clone(&self.seen);
        let (lock, arrived) = &*shared;
        let mut seen = lock.lock().unwrap();
        while !seen.is_over {
            let left = until.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "the program did not end; the screen is\n{}",
                rows(&mut seen.parser).join("\n")
            );
            seen = arrived.wait_timeout(seen, left).unwrap().0;
        }
        drop(seen);
        self.child.wait().unwrap()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // One that has ended is what was wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// True when these bytes have a sequence in them.
pub fn contains(bytes: &[u8], sequence: &str) -> bool {
    bytes.windows(sequence.len()).any(|window| window == sequence.as_bytes())
}

/// The rows of an emulator, those that scrolled off first.
pub fn rows(parser: &mut vt100::Parser) -> Vec<String> {
    let screen = parser.screen_mut();
    screen.set_scrollback(usize::MAX);
    let history = screen.scrollback();
    let mut rows = Vec::new();
    let (height, width) = screen.size();
    let (height, width) = (usize::from(height.get()), width.get());
    let mut back = history;
    while back > 0 {
        screen.set_scrollback(back);
        let count = back.min(height);
        rows.extend(screen.rows(0, width).take(count));
        back -= count;
    }
    screen.set_scrollback(0);
    rows.extend(screen.rows(0, width));
    let mut rows: Vec<String> = rows.iter().map(|row| row.trim_end().to_owned()).collect();
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    rows
}

/// The session of a sandbox that has one.
pub fn session_id(sandbox: &Sandbox) -> String {
    let files = sandbox.session_files();
    files[0].file_stem().unwrap().to_str().unwrap().to_owned()
}
