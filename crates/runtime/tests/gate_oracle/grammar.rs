//! Scripts as an adversary writes them: readers and writers on paths that wander through links, patterns that stand for
//! denied files, text in places that bash evaluates twice, programs handed to other programs, and the same with quotes,
//! groups and wrappers around it. Equal seeds give equal scripts.

use std::collections::HashMap;
use std::fmt::Write as _;

/// Random numbers without a library: equal on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit.max(1) as u64).unwrap_or_default()
    }
}

pub struct Generator {
    random: Random,
    words: HashMap<&'static str, Vec<String>>,
}

/// The words of the grammar by their sections.
fn words() -> HashMap<&'static str, Vec<String>> {
    let mut words: HashMap<&'static str, Vec<String>> = HashMap::new();
    let mut section = "";
    for line in include_str!("grammar.txt").lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(name) if name.bytes().all(|byte| byte.is_ascii_lowercase()) => section = name,
            _ => words.entry(section).or_default().push(line.replace("\\n", "\n")),
        }
    }
    words
}

impl Generator {
    pub fn new(seed: u64) -> Self {
        Self { random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1), words: words() }
    }

    /// A script of the grammar, or a seed with a change.
    pub fn script(&mut self, seeds: &[&str]) -> String {
        let text = match self.random.below(10) {
            0..=2 => {
                let seed = self.pick(seeds).replace("\\n", "\n");
                self.mutated(&seed)
            }
            3 => {
                let text = self.list(2);
                self.mutated(&text)
            }
            _ => self.list(2),
        };
        text.chars().take(2_000).collect()
    }

    /// A word of a section.
    fn word(&mut self, section: &str) -> String {
        let words = &self.words[section];
        words[self.random.below(words.len())].clone()
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.random.below(from.len())]
    }

    fn list(&mut self, depth: usize) -> String {
        let mut text = String::new();
        if self.random.below(3) == 0 {
            let _ = write!(text, "{}{}", self.word("moves"), self.pick(&["; ", " && ", "\n", " || "]));
        }
        text.push_str(&self.command(depth));
        for _ in 0..self.random.below(3) {
            let joint = self.pick(&["; ", " && ", " || ", " | ", "\n", " & ", " |& "]);
            let _ = write!(text, "{joint}{}", self.command(depth));
        }
        text
    }

    fn command(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.simple();
        }
        let inner = depth - 1;
        match self.random.below(24) {
            0 => format!("({})", self.list(inner)),
            1 => format!("{{ {}; }}", self.list(inner)),
            2 => format!("if {}; then {}; fi", self.simple(), self.list(inner)),
            3 => format!("for f in {}; do {}; done", self.operand(), self.list(inner)),
            4 => format!("! {}", self.command(inner)),
            5 => format!("echo $({})", self.list(inner)),
            6 => format!("cat <({})", self.list(inner)),
            7 => format!("while {}; do {}; break; done", self.simple(), self.list(inner)),
            8 => format!(
                "{} \"{}\"",
                self.pick(&["sh -c", "bash -c", "eval"]),
                self.simple().replace(['"', '$', '`'], "")
            ),
            9 => format!("{} {}", self.word("wrappers"), self.simple()),
            10 => self.word("moves"),
            _ => self.simple(),
        }
    }

    fn simple(&mut self) -> String {
        let mut text = match self.random.below(20) {
            0..=7 => {
                let mut text = self.word("readers");
                for _ in 0..=self.random.below(2) {
                    let _ = write!(text, " {}", self.operand());
                }
                text
            }
            8 | 9 => format!("{} {}", self.word("writers"), self.operand()),
            10 | 11 => {
                let payload = if self.random.below(4) == 0 { self.operand() } else { self.word("payloads") };
                self.word("evaluated").replace('P', &payload)
            }
            12 => self.word("named"),
            13 => self.word("environment"),
            14 => format!("{} {}", self.word("wrappers"), self.word("payloads")),
            15 => format!("{} {} {}", self.word("wrappers"), self.word("readers"), self.operand()),
            16 => format!("echo {} {}", self.operand(), self.word("payloads")),
            17 => format!("foo {} {}", self.operand(), self.operand()),
            _ => format!("echo {}", self.operand()),
        };
        if self.random.below(5) == 0 {
            let operator = self.pick(&[
                ">", ">>", ">|", "<", "<>", "&>", ">&", "<&", "2>", "2>>", "&>>", "<<<", "1>&", "3<",
            ]);
            let target = if self.random.below(4) == 0 { self.word("payloads") } else { self.operand() };
            let _ = write!(text, " {operator}{}{target}", self.pick(&[" ", ""]));
        }
        if self.random.below(12) == 0 {
            let name = self.pick(&[
                "x",
                "LANG",
                "TZ",
                "NO_COLOR",
                "LC_ALL",
                "HOME",
                "PS4",
                "IFS",
                "RANDOM",
                "GIT_PAGER",
                "CI",
            ]);
            text = format!("{name}={} {text}", self.word("payloads"));
        }
        text
    }

    fn operand(&mut self) -> String {
        match self.random.below(8) {
            0..=3 => self.word("paths"),
            4 | 5 => self.word("patterns"),
            6 => format!("\"{}\"", self.word("paths")),
            _ => format!("{}/{}", self.word("paths"), self.word("patterns")),
        }
    }

    /// One or two small changes: a word for another, quotes inside, something around it or behind it.
    fn mutated(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for _ in 0..=self.random.below(2) {
            let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            let at = self.random.below(words.len());
            match self.random.below(12) {
                0 => words[at] = self.operand(),
                1 => words[at] = self.word("payloads"),
                2 => words.insert(at, self.word("wrappers")),
                3 => words.insert(at, self.word("paths")),
                4 => words[at] = quoted(&words[at]),
                5 => words.insert(0, format!("{};", self.word("moves"))),
                6 => words.push(format!("; {}", self.simple())),
                7 => words.push(format!("| {}", self.simple())),
                8 => words = vec![format!("({})", words.join(" "))],
                9 => words.insert(0, "LANG=C".to_owned()),
                10 => {
                    let payload = self.word("payloads");
                    words[at] = words[at].replace("canary", &payload);
                }
                _ => words.push(self.operand()),
            }
            text = words.join(" ");
        }
        text
    }
}

/// The word with quotes or escapes that change nothing.
fn quoted(word: &str) -> String {
    match word.char_indices().nth(1) {
        Some((at, _)) if word.is_ascii() => format!("{}''{}", &word[..at], &word[at..]),
        _ => word.to_owned(),
    }
}
