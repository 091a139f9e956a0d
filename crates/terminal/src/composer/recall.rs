//! Earlier prompts: those of this project first, newest last. Up and Down walk through them; a draft that was begun comes back
//! at the end.

use super::draft::Draft;

/// How many are held.
const MOST: usize = 1_000;

/// Earlier prompts.
#[derive(Debug, Default)]
pub(crate) struct Recall {
    /// Newest last.
    entries: Vec<String>,
    at: Option<usize>,
    draft: Draft,
}

impl Recall {
    /// Earlier prompts from before this session, newest last. Those that were added since stay behind them.
    pub(crate) fn load(&mut self, mut earlier: Vec<String>) {
        earlier.append(&mut self.entries);
        self.entries = earlier;
        self.bound();
    }

    /// Adds a prompt. The same again moves to the end.
    pub(crate) fn add(&mut self, text: &str) {
        self.rest();
        if text.trim().is_empty() {
            return;
        }
        if self.entries.last().is_some_and(|last| last == text) {
            return;
        }
        self.entries.push(text.to_owned());
        self.bound();
    }

    /// An earlier prompt in the place of this draft.
    pub(crate) fn older(&mut self, draft: &Draft) -> Option<Draft> {
        let at = match self.at {
            None => self.entries.len().checked_sub(1)?,
            Some(at) => at.checked_sub(1)?,
        };
        if self.at.is_none() {
            self.draft = draft.clone();
        }
        self.at = Some(at);
        self.entries.get(at).cloned().map(Draft::of)
    }

    /// A later prompt, or the draft that was begun.
    pub(crate) fn newer(&mut self) -> Option<Draft> {
        let at = self.at? + 1;
        if at >= self.entries.len() {
            self.at = None;
            return Some(std::mem::take(&mut self.draft));
        }
        self.at = Some(at);
        self.entries.get(at).cloned().map(Draft::of)
    }

    /// Stays with what is shown.
    pub(crate) fn rest(&mut self) {
        self.at = None;
        self.draft = Draft::default();
    }

    /// Prompts that contain a text, newest first, each once.
    pub(crate) fn search(&self, text: &str) -> Vec<&str> {
        let wanted = text.to_lowercase();
        let mut found: Vec<&str> = Vec::new();
        for entry in self.entries.iter().rev() {
            if entry.to_lowercase().contains(&wanted) && !found.contains(&entry.as_str()) {
                found.push(entry);
            }
        }
        found
    }

    fn bound(&mut self) {
        if self.entries.len() > MOST {
            self.entries.drain(..self.entries.len() - MOST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_draft_comes_back_behind_the_newest_prompt() {
        let mut recall = Recall::default();
        recall.add("one");
        recall.add("two");
        recall.load(vec!["zero".to_owned()]);
        let draft = Draft::of("begun");
        let texts: Vec<String> = (0..3).map(|_| recall.older(&draft).unwrap().text().to_owned()).collect();
        assert_eq!(texts, ["two", "one", "zero"]);
        assert_eq!(recall.older(&draft), None);
        assert_eq!(recall.newer().unwrap().text(), "one");
        recall.newer();
        assert_eq!(recall.newer().unwrap().text(), "begun");
        assert_eq!(recall.newer(), None);
    }

    #[test]
    fn a_search_finds_the_newest_first() {
        let mut recall = Recall::default();
        for text in ["fix the test", "run it", "Fix the build", "fix the test"] {
            recall.add(text);
        }
        assert_eq!(recall.search("fix"), ["fix the test", "Fix the build"]);
        assert_eq!(recall.search("nothing"), Vec::<&str>::new());
    }
}
