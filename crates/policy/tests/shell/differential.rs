//! Generated scripts run under real bash with nothing but recorders on the path: whatever ran must have been reported,
//! with its literal words, whenever the reading has no doubt. The generator mixes what the grammar knows, also badly.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::mutation::Random;
use qoder_policy::shell::{SimpleCommand, read};

/// The programs on the path.
const PROGRAMS: [&str; 8] = ["pa", "pb", "pc", "pd", "pe", "pf", "pg", "ph"];
/// How many scripts one bash run gets; starting bash is what costs.
const SCRIPTS: usize = 700;

/// Writes scripts from a grammar of shell features.
struct Generator {
    random: Random,
    budget: usize,
}

impl Generator {
    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.random.below(from.len())]
    }

    /// A list of commands.
    fn list(&mut self, depth: usize) -> String {
        let mut text = self.command(depth);
        for _ in 0..self.random.below(3) {
            let joint = self.pick(&["; ", " && ", " || ", "\n", " | ", " & ", " |& ", ";", "&&", "|"]);
            let _ = write!(text, "{joint}{}", self.command(depth));
        }
        text
    }

    fn command(&mut self, depth: usize) -> String {
        if depth == 0 || self.budget == 0 {
            return self.simple(0);
        }
        self.budget -= 1;
        let inner = depth - 1;
        match self.random.below(16) {
            0 => format!("({})", self.list(inner)),
            1 => format!("{{ {}; }}", self.list(inner)),
            2 => format!("if {}; then {}; else {}; fi", self.list(inner), self.list(inner), self.list(inner)),
            3 => format!("for i in x {}; do {}; done", self.word(inner), self.list(inner)),
            4 => format!(
                "case {} in x) {};; *) {};; esac",
                self.word(inner),
                self.list(inner),
                self.list(inner)
            ),
            5 => format!("! {}", self.simple(inner)),
            6 => format!("{} <<E\nx {} y\nE\n", self.simple(inner), self.expansion(inner)),
            7 => format!("{} <<'E'\n$(pa) `pb`\nE\n", self.simple(inner)),
            8 => format!("while {}; do {}; break; done", self.list(inner), self.list(inner)),
            9 => format!("f() {{ {}; }}; f", self.list(inner)),
            10 => format!("[[ {} == x* ]] && {}", self.word(inner), self.simple(inner)),
            11 => format!("x=({} {})", self.word(inner), self.word(inner)),
            _ => self.simple(inner),
        }
    }

    fn simple(&mut self, depth: usize) -> String {
        let mut text = String::new();
        if self.random.below(5) == 0 {
            let _ = write!(text, "v={} ", self.word(depth));
        }
        match self.random.below(10) {
            0 => text.push_str("\"\"p'a'"),
            1 => text.push_str("\\pb"),
            2 => text.push_str("time pc"),
            3 => text.push_str("eval pd"),
            4 => text.push_str("command pe"),
            _ => text.push_str(self.pick(&PROGRAMS)),
        }
        for _ in 0..self.random.below(4) {
            let _ = write!(text, "{}{}", self.pick(&[" ", "  ", "\t", " \\\n "]), self.word(depth));
        }
        match self.random.below(12) {
            0 => text.push_str(" >out"),
            1 => text.push_str(" 2>&1"),
            2 => text.push_str(" </dev/null y"),
            3 => text.push_str(" &>/dev/null"),
            4 => {
                let _ = write!(text, " <<< {}", self.word(depth));
            }
            5 => text.push_str(" # pa; pb"),
            _ => {}
        }
        text
    }

    fn word(&mut self, depth: usize) -> String {
        let mut text = String::new();
        for _ in 0..=self.random.below(2) {
            text.push_str(&match self.random.below(14) {
                0 => "'a; pb'".to_owned(),
                1 => "\"a && pc\"".to_owned(),
                2 => "\\;".to_owned(),
                3 => "$'a\\'b'".to_owned(),
                4 => "{a,b}".to_owned(),
                5 => "--x=y".to_owned(),
                6 => "a#b".to_owned(),
                7 | 8 => self.expansion(depth),
                9 => format!("\"q{}q\"", self.expansion(depth)),
                10 => "$((1+2))".to_owned(),
                11 if depth > 0 => format!("<({})", self.list(depth - 1)),
                _ => self.pick(&["a", "b1", "-f", "x.y", "/z", "''"]).to_owned(),
            });
        }
        text
    }

    fn expansion(&mut self, depth: usize) -> String {
        if depth == 0 || self.budget == 0 {
            return self.pick(&["$v", "${v}", "${v:-d}", "${#v}", "$?"]).to_owned();
        }
        self.budget -= 1;
        match self.random.below(6) {
            0 | 1 => format!("$({})", self.list(depth - 1)),
            2 => format!("`{}`", self.simple(0)),
            3 => format!("${{u:-$({})}}", self.list(depth - 1)),
            4 => format!("${{u:-{}}}", self.word(0)),
            _ => format!("$(( $({}) + 1 ))", self.simple(0)),
        }
    }
}

/// A directory with recorders only; each appends its name and arguments, one per line.
fn recorders(root: &Path) -> PathBuf {
    let folder = root.join("bin");
    std::fs::create_dir_all(&folder).unwrap();
    // One write per run: recorders of a pipeline run at the same time.
    let script = "#!/bin/sh\nprintf '%s\\n' \"RUN ${0##*/}\" \"$@\" END >> \"$RECORD\"\n";
    for name in PROGRAMS {
        let path = folder.join(name);
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

/// What ran: names and arguments.
fn run(script: &str, seed: usize, root: &Path, path: &Path) -> Vec<(String, Vec<String>)> {
    // A process substitution may outlive its script; it must not write into the record of the next one.
    let record = root.join(format!("record-{seed}"));
    let work = root.join("work");
    std::fs::create_dir_all(&work).unwrap();
    let status = Command::new("/bin/bash")
        .args(["--noprofile", "--norc", "-c", script])
        .env_clear()
        .env("PATH", path)
        .env("RECORD", &record)
        .current_dir(&work)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.is_ok(), "bash did not start");
    let mut ran: Vec<(String, Vec<String>)> = Vec::new();
    for line in std::fs::read_to_string(&record).unwrap_or_default().lines() {
        if let Some(name) = line.strip_prefix("RUN ") {
            ran.push((name.to_owned(), Vec::new()));
        } else if line != "END"
            && let Some(last) = ran.last_mut()
        {
            last.1.push(line.to_owned());
        }
    }
    ran
}

/// True when the command could have run with these arguments: the same name, and every word the same when all are known.
fn explains(command: &SimpleCommand, name: &str, arguments: &[String]) -> bool {
    if command.base_name() != Some(name) {
        return false;
    }
    let words: Option<Vec<&str>> = command.words.iter().skip(1).map(|it| it.as_literal()).collect();
    words.is_none_or(|words| words == arguments)
}

#[test]
fn whatever_ran_was_reported() {
    if !Path::new("/bin/bash").exists() {
        eprintln!("skipped: no /bin/bash to compare with");
        return;
    }
    let root = std::env::temp_dir().join(format!("shell-differential-{}", std::process::id()));
    let path = recorders(&root);
    let mut seen = HashSet::new();
    let mut proven = 0;
    let mut compared = 0;
    for seed in 0..SCRIPTS {
        let random = Random(
            0x9e37_79b9_7f4a_7c15 ^ (u64::try_from(seed).unwrap() + 1).wrapping_mul(0x2545_f491_4f6c_dd1d),
        );
        let script = Generator { random, budget: 6 }.list(3);
        let reading = read(&script);
        if !reading.is_proven() || !seen.insert(script.clone()) {
            continue;
        }
        proven += 1;
        // Processes in the background write at the same time; waiting for them keeps the record whole.
        for (name, arguments) in run(&format!("{script}\nwait"), seed, &root, &path) {
            compared += 1;
            let explained = reading.commands.iter().any(|command| explains(command, &name, &arguments));
            assert!(
                explained,
                "seed {seed}: {name} {arguments:?} ran in\n{script}\nbut the reading is {reading:#?}"
            );
        }
    }
    let _ = std::fs::remove_dir_all(&root);
    assert!(proven > SCRIPTS / 8 && compared > SCRIPTS / 8, "{proven} proven, {compared} compared");
}
