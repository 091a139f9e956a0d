//! The one door to the terminal: every byte on stdout and stderr passes through here, and nothing that others wrote
//! passes unescaped. Names, lists and errors are escaped wherever they go; a model's answer is data when it is piped and
//! is escaped on a terminal. `cargo xtask check` rejects other ways out.

mod keyboard;
mod paint;

use std::borrow::Cow;
use std::io::{BufWriter, IsTerminal, StdoutLock, Write};
use std::sync::OnceLock;

use qoder_core::redact::{Redactor, Secrets};
use qoder_runtime::setup::Setup;
use qoder_types::display::{Prose, escape_json, escaped_for_display, escaped_line};
use serde_json::Value;

use crate::exit::Fault;

pub use keyboard::Keyboard;
pub use paint::{Ink, Paint, Painted};

static REDACTOR: OnceLock<Redactor> = OnceLock::new();

/// Redacts the keys of this setup from everything printed from now on.
pub fn hide_secrets(setup: &Setup) {
    // A run has one setup; of several, as for plugins alone, the first has the user's keys.
    let _ = REDACTOR.set(setup.redactor());
}

fn clean(text: &str) -> Cow<'_, str> {
    REDACTOR.get().map_or(Cow::Borrowed(text), |redactor| redactor.text(text))
}

/// Prints lines on stdout, escaped.
pub fn print_line(text: &str) -> Result<(), Fault> {
    print(&format!("{}\n", escaped_for_display(&clean(text))))
}

/// Prints a row of a list on stdout, escaped: a newline in it does not begin another row.
pub fn print_row(text: &str) -> Result<(), Fault> {
    print(&format!("{}\n", escaped_line(&clean(text))))
}

/// Prints a line in colours on stdout.
pub fn print_painted(line: &Painted) -> Result<(), Fault> {
    print(&format!("{}\n", line.as_str()))
}

/// Prints JSON on stdout, indented for people.
pub fn print_json(value: &Value) -> Result<(), Fault> {
    let mut value = value.clone();
    if let Some(redactor) = REDACTOR.get() {
        redactor.json(&mut value, Secrets::All);
    }
    print_json_line(format!("{value:#}"))
}

/// Stdout as a pipe to a program that started this one and reads JSON lines.
pub fn pipe() -> tokio::io::Stdout {
    tokio::io::stdout()
}

/// Prints JSON text as a line on stdout.
pub fn print_json_line(json: String) -> Result<(), Fault> {
    let mut line = json.into_bytes();
    escape_json(&mut line);
    line.push(b'\n');
    write_all(&line).map_err(|error| Fault::output(&error))
}

/// Prints lines on stderr, escaped. When stderr is closed no one is left to read them, and the work continues.
pub fn print_note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", escaped_for_display(&clean(text)));
}

/// Prints a fault on stderr, if that is still open.
pub fn report(fault: &Fault) {
    print_note(&format!("error: {}", fault.message));
    if !fault.hint.is_empty() {
        print_note(&format!("  hint: {}", fault.hint));
    }
}

/// Prints a line in colours on stderr.
pub fn print_painted_note(line: &Painted) {
    let _ = writeln!(std::io::stderr(), "{}", line.as_str());
}

/// Prints a question on stderr, escaped, and leaves the cursor behind it.
pub fn prompt(text: &str) {
    let mut out = std::io::stderr();
    let _ = write!(out, "{}", escaped_for_display(&clean(text)));
    let _ = out.flush();
}

/// A line that is typed without being shown.
pub fn typed_secret(label: &str) -> Result<String, Fault> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    let wrong =
        |error: std::io::Error| Fault::input(format!("the terminal cannot be read: {error}"), "pipe it in");
    prompt(label);
    let before = tcgetattr(std::io::stdin()).map_err(|error| wrong(error.into()))?;
    let mut quiet = before.clone();
    quiet.local_modes.remove(LocalModes::ECHO);
    tcsetattr(std::io::stdin(), OptionalActions::Now, &quiet).map_err(|error| wrong(error.into()))?;
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    // The terminal shows what is typed again, whatever was read.
    let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &before);
    print_note("");
    read.map_err(wrong)?;
    Ok(line)
}

/// True when stdin is a terminal.
pub fn stdin_is_terminal() -> bool {
    std::io::stdin().is_terminal()
}

/// Prints what the argument parser has to say: help and version on stdout, errors on stderr.
pub fn print_usage(error: &clap::Error) {
    let text = error.render().to_string();
    let text = text.trim_end_matches('\n');
    if error.use_stderr() {
        print_note(text);
    } else {
        // When stdout is closed no one is left to read it.
        let _ = print_line(text);
    }
}

/// Reports a panic without obeying what is in its message.
pub fn escape_panics() {
    std::panic::set_hook(Box::new(|panic| {
        print_note(&format!("internal error: {panic}\nThis is a bug; please report it."));
    }));
}

/// Writes one complete JSON line, in one write where the reader has room: readers see it at once.
pub fn write_json_line(line: &mut Vec<u8>) -> std::io::Result<()> {
    escape_json(line);
    line.push(b'\n');
    let mut rest = line.as_slice();
    while !rest.is_empty() {
        match rustix::io::write(std::io::stdout(), rest) {
            Ok(written) => rest = &rest[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => std::thread::sleep(std::time::Duration::from_millis(1)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Stdout and stderr for the front of programs.
pub struct Streams;

impl qoder_stdio::Console for Streams {
    fn write_line(&self, line: &mut Vec<u8>) -> std::io::Result<()> {
        write_json_line(line)
    }

    fn print_note(&self, text: &str) {
        print_note(text);
    }
}

/// The answer of a model on stdout: as it is when it is piped, escaped on a terminal.
#[derive(Debug)]
pub struct Answer {
    prose: Option<Prose>,
}

impl Answer {
    /// For the stdout that there is.
    pub fn new() -> Self {
        Self { prose: stdout_is_terminal().then(Prose::default) }
    }

    /// Writes a piece.
    pub fn write(&mut self, piece: &str) -> std::io::Result<()> {
        match &mut self.prose {
            Some(prose) => write_all(prose.escaped(piece).as_bytes()),
            None => write_all(piece.as_bytes()),
        }
    }

    /// Writes what was held back of a text that is complete.
    pub fn finish(&mut self) -> std::io::Result<()> {
        match &mut self.prose {
            Some(prose) => write_all(prose.finish().as_bytes()),
            None => Ok(()),
        }
    }
}

/// A document on stdout, in parts: as it is when it is piped, escaped on a terminal.
pub struct Document {
    out: BufWriter<StdoutLock<'static>>,
    terminal: bool,
}

impl Document {
    /// For the stdout that there is.
    pub fn new() -> Self {
        Self { out: BufWriter::new(std::io::stdout().lock()), terminal: stdout_is_terminal() }
    }

    /// Writes text that is data when it is piped.
    pub fn write_data(&mut self, text: &str) -> std::io::Result<()> {
        if self.terminal {
            return self.out.write_all(escaped_for_display(text).as_bytes());
        }
        self.out.write_all(text.as_bytes())
    }

    /// Writes a line of a log: byte for byte when it is piped.
    pub fn write_log(&mut self, line: &[u8]) -> std::io::Result<()> {
        if self.terminal {
            return self.write_json(&String::from_utf8_lossy(line));
        }
        self.out.write_all(line)
    }

    /// Writes JSON text, which reads back equal.
    pub fn write_json(&mut self, json: &str) -> std::io::Result<()> {
        let mut json = json.as_bytes().to_vec();
        escape_json(&mut json);
        self.out.write_all(&json)
    }

    /// Writes a line in colours.
    pub fn write_line(&mut self, line: &Painted) -> std::io::Result<()> {
        writeln!(self.out, "{}", line.as_str())
    }

    /// Writes a row for people, escaped.
    pub fn write_row(&mut self, text: &str) -> std::io::Result<()> {
        writeln!(self.out, "{}", escaped_line(text))
    }

    /// Hands everything over.
    pub fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

/// True when stdout is a terminal.
pub fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// True when stderr is a terminal.
pub fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Columns of the terminal that stdout is.
pub fn columns() -> Option<usize> {
    let size = stdout_is_terminal().then(|| rustix::termios::tcgetwinsize(std::io::stdout()).ok()).flatten();
    size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Draws a frame of the sign of life on stderr.
pub fn draw_spinner(frame: &'static str) {
    let _ = write!(std::io::stderr(), "\r{frame}");
}

/// Clears the sign of life.
pub fn clear_spinner() {
    let _ = write!(std::io::stderr(), "\r\x1b[K");
}

fn print(text: &str) -> Result<(), Fault> {
    write_all(text.as_bytes()).map_err(|error| Fault::output(&error))
}

/// The reader may have closed the pipe; that must not panic.
fn write_all(bytes: &[u8]) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}
