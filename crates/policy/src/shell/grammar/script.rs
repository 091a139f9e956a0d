//! Lists, pipelines and compound commands: the shell's grammar above simple commands. Text that does not fit is a doubt,
//! and reading continues behind it, so that deny rules still see every command that can be found.

use super::nested;
use super::places::{Flow, Places};
use super::reader::{Reader, is_meta, is_name, is_name_start};
use crate::shell::Word;
use crate::shell::reading::{Assignment, Directory, DoubtKind};
use crate::shell::variables::is_skippable_variable;

/// What ends a list; the longer operators first.
const CLOSERS: [&str; 12] = [";;&", ";;", ";&", ")", "}", "then", "else", "elif", "fi", "done", "do", "esac"];

impl Reader<'_, '_> {
    /// The closer at the position, if there is one.
    pub fn closer(&self) -> Option<&'static str> {
        match self.peek(0)? {
            b';' | b')' => CLOSERS.iter().copied().take(4).find(|closer| self.looking_at(closer)),
            b'}' | b't' | b'e' | b'f' | b'd' => {
                let word = self.raw_word();
                CLOSERS.iter().copied().skip(4).find(|closer| *closer == word)
            }
            _ => None,
        }
    }

    /// Reads commands up to one of the expected closers, which stays unread.
    pub fn list(&mut self, expected: &[&str]) -> Flow {
        let mut last = Flow::staying(&self.here);
        loop {
            self.skip_lines();
            if self.at >= self.end {
                return last;
            }
            let start = self.at;
            if let Some(closer) = self.closer() {
                if expected.contains(&closer) {
                    return last;
                }
                self.at += closer.len();
                self.doubt(DoubtKind::SyntaxError, start);
                continue;
            }
            let before = self.here.clone();
            last = self.and_or();
            self.here = last.clone().either();
            self.skip_to_token();
            match self.peek(0) {
                Some(b'&') => {
                    self.operator(1);
                    self.here = before;
                    last = Flow::staying(&self.here);
                }
                Some(b';') if self.closer().is_none() => self.operator(1),
                _ => {}
            }
            if self.at == start {
                // Nothing of the grammar starts with this character.
                self.skip_character();
                self.doubt(DoubtKind::SyntaxError, start);
            }
        }
    }

    /// Pipelines joined by `&&` and `||`.
    fn and_or(&mut self) -> Flow {
        let mut flow = self.pipeline();
        loop {
            self.skip_to_token();
            let and = self.looking_at("&&");
            if !and && !self.looking_at("||") {
                return flow;
            }
            self.operator(2);
            self.skip_lines();
            self.here = if and { flow.success.clone() } else { flow.failure.clone() };
            let next = self.pipeline();
            flow = if and {
                Flow { success: next.success, failure: flow.failure.or(next.failure) }
            } else {
                Flow { success: flow.success.or(next.success), failure: next.failure }
            };
        }
    }

    /// Commands joined by pipes, each in a shell of its own.
    fn pipeline(&mut self) -> Flow {
        let mut negated = false;
        self.skip_to_token();
        while self.raw_word() == "!" {
            self.at += 1;
            negated = !negated;
            self.skip_to_token();
        }
        let start = self.here.clone();
        let mut flow = self.command();
        let mut piped = 1;
        self.skip_to_token();
        while self.peek(0) == Some(b'|') && self.peek(1) != Some(b'|') {
            let both = self.peek(1) == Some(b'&');
            self.operator(if both { 2 } else { 1 });
            self.skip_lines();
            self.here = start.clone();
            let first = self.out.reading.commands.len();
            self.command();
            nested::feed(self.out, first);
            flow = Flow::staying(&start);
            piped += 1;
            self.skip_to_token();
        }
        self.longest_pipeline = self.longest_pipeline.max(piped);
        self.here = start;
        if negated { Flow { success: flow.failure, failure: flow.success } } else { flow }
    }

    /// One command of a pipeline, with the redirections of a compound one.
    fn command(&mut self) -> Flow {
        let start = self.at;
        if self.closer().is_some()
            || matches!(self.peek(0), None | Some(b'|' | b'&' | b';' | b'\n')) && !self.looking_at("&>")
        {
            self.doubt(DoubtKind::SyntaxError, start);
            return Flow::staying(&self.here);
        }
        if !self.enter() {
            return Flow::staying(&self.here);
        }
        let first = self.out.reading.commands.len();
        let flow = match self.compound(start) {
            Some(flow) => {
                self.trailing_redirections(first);
                flow
            }
            None => self.simple_command(),
        };
        self.leave();
        flow
    }

    /// A compound command, if one starts here.
    fn compound(&mut self, start: usize) -> Option<Flow> {
        if self.peek(0) == Some(b'(') {
            return Some(self.parenthesised(start));
        }
        let word = self.raw_word();
        match word {
            "{" => {
                self.at += 1;
                let flow = self.list(&["}"]);
                self.expect_word("}", start);
                Some(flow)
            }
            "if" => Some(self.conditional(start)),
            "while" | "until" => {
                self.at += word.len();
                Some(self.looped(start))
            }
            "for" | "select" => {
                self.at += word.len();
                Some(self.counted(start))
            }
            "case" => Some(self.cases(start)),
            "[[" => Some(self.condition(start)),
            "function" => {
                self.at += word.len();
                self.skip_blanks();
                self.word();
                Some(self.function(start))
            }
            "coproc" => {
                self.at += word.len();
                self.doubt(DoubtKind::UnknownConstruct, start);
                self.skip_to_token();
                let here = self.here.clone();
                self.command();
                Some(Flow::staying(&here))
            }
            "time" => self.timed(start),
            _ => None,
        }
    }

    /// `time` before a compound command; before a simple one it is read as a wrapper.
    fn timed(&mut self, start: usize) -> Option<Flow> {
        self.at += "time".len();
        loop {
            self.skip_blanks();
            let word = self.raw_word();
            if !matches!(word, "-p" | "--") {
                break;
            }
            self.at += word.len();
        }
        let (word, rest) = (self.raw_word(), self.rest());
        let compound = matches!(self.peek(0), Some(b'('))
            || matches!(
                word,
                "{" | "!" | "if" | "while" | "until" | "for" | "select" | "case" | "[[" | "time" | "coproc"
            );
        // The shell makes the assignment itself, also without a command behind it.
        let (name, behind) = rest.split_at(rest.bytes().take_while(|byte| is_name(*byte)).count());
        let sets = !name.is_empty() && ["=", "+=", "["].iter().any(|sign| behind.starts_with(sign));
        if compound || (sets && !is_skippable_variable(name)) {
            self.doubt(DoubtKind::UnknownConstruct, start);
        }
        if !compound {
            self.at = start;
            return None;
        }
        Some(self.pipeline())
    }

    /// `(…)` or `((…))`.
    fn parenthesised(&mut self, start: usize) -> Flow {
        let here = self.here.clone();
        if self.peek(1) == Some(b'(') {
            if let Some(close) = self.arithmetic_end(start + 2) {
                self.at += 2;
                self.arithmetic(close, start);
                self.at = (close + 2).min(self.end);
                return Flow::staying(&here);
            }
            self.doubt(DoubtKind::UnknownConstruct, start);
        }
        self.operator(1);
        self.list(&[")"]);
        self.expect(b')', start);
        self.here = here;
        Flow::staying(&self.here)
    }

    /// Moves over an expected reserved word, or doubts.
    pub fn expect_word(&mut self, word: &str, from: usize) -> bool {
        if self.raw_word() == word {
            self.at += word.len();
            return true;
        }
        self.doubt(DoubtKind::SyntaxError, from);
        false
    }

    /// `if` with its branches.
    fn conditional(&mut self, start: usize) -> Flow {
        let mut leaving: Option<Places> = None;
        self.at += "if".len();
        loop {
            let asked = self.list(&["then"]);
            self.expect_word("then", start);
            self.here = asked.success;
            let branch = self.list(&["elif", "else", "fi"]).either();
            leaving = Some(match leaving {
                Some(places) => places.or(branch),
                None => branch,
            });
            self.here = asked.failure;
            if self.raw_word() == "elif" {
                self.at += "elif".len();
                continue;
            }
            if self.raw_word() == "else" {
                self.at += "else".len();
                self.here = self.list(&["fi"]).either();
            }
            break;
        }
        self.expect_word("fi", start);
        let places = leaving.unwrap_or_else(Places::unknown).or(self.here.clone());
        Flow::staying(&places)
    }

    /// The condition and body of `while` and `until`.
    fn looped(&mut self, start: usize) -> Flow {
        let before = self.here.clone();
        let first = self.out.reading.commands.len();
        let asked = self.list(&["do"]);
        self.here = asked.either();
        self.body(start);
        self.repeated(&before, first)
    }

    /// `do … done`.
    fn body(&mut self, start: usize) {
        self.skip_lines();
        if self.expect_word("do", start) {
            self.here = self.list(&["done"]).either();
            self.expect_word("done", start);
        }
    }

    /// What repeating means: once a body moves, neither its commands nor what follows have a known place.
    fn repeated(&mut self, before: &Places, first: usize) -> Flow {
        if self.here == *before {
            return Flow::staying(before);
        }
        for command in self.out.reading.commands.iter_mut().skip(first) {
            if !command.directories.contains(&Directory::Unknown) {
                command.directories.push(Directory::Unknown);
            }
        }
        Flow::staying(&Places::unknown())
    }

    /// `for` and `select`.
    fn counted(&mut self, start: usize) -> Flow {
        let before = self.here.clone();
        self.skip_blanks();
        if self.looking_at("((")
            && let Some(close) = self.arithmetic_end(self.at + 2)
        {
            self.at += 2;
            self.arithmetic(close, start);
            self.at = (close + 2).min(self.end);
        } else {
            self.loop_variable(start);
        }
        self.skip_lines();
        if self.peek(0) == Some(b';') {
            self.operator(1);
        }
        let first = self.out.reading.commands.len();
        self.body(start);
        self.repeated(&before, first)
    }

    /// The variable of a loop and the words it goes through.
    fn loop_variable(&mut self, start: usize) {
        let from = self.at;
        while self.peek(0).is_some_and(is_name) {
            self.at += 1;
        }
        let name = self.slice(from, self.at);
        if !name.bytes().next().is_some_and(is_name_start) || self.peek(0).is_some_and(|byte| !is_meta(byte))
        {
            self.doubt(DoubtKind::SyntaxError, start);
        }
        let mut command = self.blank_command();
        let value = Word::unknown(format!("${name}"));
        command.assignments.push(Assignment { name: name.to_owned(), value, subscript: false });
        self.skip_lines();
        if self.raw_word() == "in" {
            self.at += "in".len();
            loop {
                self.skip_to_token();
                if self.word().is_none() {
                    break;
                }
            }
        }
        command.text = self.slice(start, self.at).to_owned();
        self.finish(command, self.pending.len());
    }

    /// The body of a function whose name has been read. It may run anywhere.
    pub fn function(&mut self, start: usize) -> Flow {
        self.doubt(DoubtKind::DefinesName, start);
        self.skip_blanks();
        if self.peek(0) == Some(b'(') {
            self.at += 1;
            self.skip_blanks();
            self.expect(b')', start);
        }
        self.skip_lines();
        let here = std::mem::replace(&mut self.here, Places::unknown());
        if self.enter() {
            let first = self.out.reading.commands.len();
            if self.compound(self.at).is_some() {
                self.trailing_redirections(first);
            } else {
                self.doubt(DoubtKind::SyntaxError, start);
            }
            self.leave();
        }
        self.here = here;
        Flow::staying(&self.here)
    }

    /// Redirections behind a compound command whose own commands begin at `first`, reported as a command of their own.
    fn trailing_redirections(&mut self, first: usize) {
        let start = self.at;
        let first_pending = self.pending.len();
        let mut command = self.blank_command();
        loop {
            self.skip_to_token();
            if !self.redirection(&mut command.redirections) {
                break;
            }
        }
        if command.redirections.iter().any(|it| it.kind.feeds()) {
            nested::feed(self.out, first);
        }
        if !command.redirections.is_empty() {
            command.text = self.slice(start, self.at).trim().to_owned();
            self.finish(command, first_pending);
        }
        if self.peek(0).is_some_and(|byte| !is_meta(byte)) && self.closer().is_none() {
            self.doubt(DoubtKind::SyntaxError, start);
        }
    }
}
