//! In tmux, which breaks rows anew when the window gets narrower: every finished line is in its history once, whatever the size,
//! and what the shell printed before is still there. tmux has a server of its own here, without configuration.

use std::time::{Duration, Instant};

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};

use super::support::BINARY;

const GUARD: Duration = Duration::from_secs(60);
/// How often a pane is looked at while something is waited for.
const LOOK: Duration = Duration::from_millis(20);
/// Wider, narrower, lower, higher, and both at once.
const SIZES: [(u16, u16); 8] =
    [(140, 30), (60, 30), (60, 12), (100, 40), (80, 24), (40, 10), (120, 35), (100, 30)];

/// A server of tmux with one window.
struct Tmux<'a> {
    sandbox: &'a Sandbox,
}

impl<'a> Tmux<'a> {
    /// Starts a shell that prints 40 lines and then the program, in 100 columns and 30 rows.
    fn start(sandbox: &'a Sandbox, server: &ScriptedServer) -> Self {
        let line = format!("seq -f 'before %g.' 1 40; '{BINARY}'; echo \"code $?.\"; read line");
        Self::run(sandbox, server, &line)
    }

    /// Runs a line of sh in 100 columns and 30 rows.
    fn run(sandbox: &'a Sandbox, server: &ScriptedServer, line: &str) -> Self {
        let configuration = sandbox.write("tmux.conf", "set -g history-limit 50000\nset -g status off\n");
        let mut command = sandbox.command_with("tmux", server);
        command.env("TMUX_TMPDIR", sandbox.home()).env("TERM", "xterm-256color").arg("-f").arg(configuration);
        let output = Sandbox::finish({
            command.args(["new-session", "-d", "-x", "100", "-y", "30", "sh", "-c", line]);
            command
        });
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self { sandbox }
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = self.sandbox.command("tmux");
        command.env("TMUX_TMPDIR", self.sandbox.home()).args(arguments);
        String::from_utf8_lossy(&Sandbox::finish(command).stdout).into_owned()
    }

    fn type_line(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
        self.tmux(&["send-keys", "Enter"]);
    }

    fn resize(&self, (columns, rows): (u16, u16)) {
        self.tmux(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
    }

    /// The history and the screen.
    fn rows(&self) -> Vec<String> {
        let text = self.tmux(&["capture-pane", "-p", "-S", "-", "-E", "-"]);
        text.lines().map(|row| row.trim_end().to_owned()).collect()
    }

    fn until(&self, what: &str, is_met: impl Fn(&[String]) -> bool) {
        let until = Instant::now() + GUARD;
        loop {
            let rows = self.rows();
            if is_met(&rows) {
                return;
            }
            assert!(Instant::now() < until, "waiting for {what} in\n{}", rows.join("\n"));
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until the prompt is empty and every line is there, each once.
    fn until_each_once(&self, lines: &[(&str, usize)]) {
        self.until(&format!("each of {lines:?} once"), |rows| {
            let is_idle = rows.iter().any(|row| row == ">");
            is_idle && lines.iter().all(|(word, count)| each_once(rows, word, *count))
        });
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

fn each_once(rows: &[String], word: &str, count: usize) -> bool {
    (1..=count).all(|number| {
        let line = format!("{word} {number}.");
        rows.iter().filter(|row| row.trim() == line).count() == 1
    })
}

fn numbered(word: &str, count: usize) -> String {
    (1..=count).map(|number| format!("{word} {number}.")).collect::<Vec<_>>().join("\n\n")
}

#[test]
fn a_screen_that_was_empty_leaves_no_copies_in_the_history() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::list(vec![Reply::text("one."), Reply::text("two.")]));
    let tmux = Tmux::run(&sandbox, &server, &format!("'{BINARY}'; read line"));
    let is_idle = |rows: &[String]| rows.iter().any(|row| row == ">");
    tmux.until("the prompt", is_idle);
    for (prompt, reply) in [("first", "one."), ("second", "two.")] {
        tmux.type_line(prompt);
        tmux.until(reply, |rows| is_idle(rows) && rows.iter().any(|row| row == reply));
    }
    let rows = tmux.rows();
    for row in ["> first", "one.", "> second", "two.", ">"] {
        assert_eq!(rows.iter().filter(|found| *found == row).count(), 1, "{row} in\n{}", rows.join("\n"));
    }
}

#[test]
fn every_line_is_there_once_at_every_size() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::list(vec![
        Reply::text(numbered("line", 300)),
        Reply::StalledStream {
            after_events: 40,
            ms: 800,
            reply: Box::new(Reply::text(numbered("more", 80))),
        },
    ]));
    let tmux = Tmux::start(&sandbox, &server);
    tmux.until_each_once(&[("before", 40)]);
    tmux.type_line("count");
    tmux.until_each_once(&[("before", 40), ("line", 300)]);
    for size in SIZES {
        tmux.resize(size);
        tmux.until_each_once(&[("before", 40), ("line", 300)]);
    }
    // While a reply is written.
    tmux.type_line("again");
    for size in SIZES {
        tmux.resize(size);
        tmux.rows();
    }
    let all = [("before", 40), ("line", 300), ("more", 80)];
    tmux.until_each_once(&all);
    tmux.tmux(&["send-keys", "C-d"]);
    tmux.until("the end", |rows| {
        rows.iter().any(|row| row == "code 0.")
            && all.iter().all(|(word, count)| each_once(rows, word, *count))
    });
}
