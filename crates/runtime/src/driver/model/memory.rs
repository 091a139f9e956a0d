//! Memory on its way to the model: files and rules for what tools have worked on, files that changed since the model
//! read them, and reporting to hooks which ones it has.

use std::path::{Path, PathBuf};

use qoder_types::Message;
use qoder_types::record::{RecordBody, UserOrigin};
use serde_json::json;

use crate::driver::Driver;
use crate::error::DriveError;
use qoder_config::hooks::HookEvent;
use qoder_config::memory::{MemoryPiece, Owner};
use qoder_hooks::Occasion;

/// The reason of files that come back with the summary of a conversation.
const COMPACT: &str = "compact";

impl Driver<'_> {
    /// This process begins: what the model has of memory is known from now on.
    pub(in crate::driver) fn begin_memory(&mut self) {
        if self.engine.agent.is_some() {
            return;
        }
        let memory = &self.engine.common.memory;
        let mut files = memory.at_start().clone();
        // Those of skills only stand among them.
        let earlier = self.session.state.memory.iter().map(Path::new).filter(|path| path.is_absolute());
        earlier.for_each(|path| files.add(&memory.adopted(path)));
        self.session.remembered.memory = files;
    }

    /// A turn that another process began continues: what its files bring may not have been brought.
    pub(in crate::driver) fn take_up_turn(&mut self) {
        if self.session.state.turn.is_some() {
            self.begin_turn_of_hooks(false);
            self.begin_clock();
            self.read_files = self.session.state.observations.keys().map(PathBuf::from).collect();
            self.read_files.sort();
        }
    }

    /// Brings what counts for the files that tools have worked on since the last reply, and what has changed. False when
    /// there is nothing.
    pub(in crate::driver) fn bring_memory(&mut self) -> Result<bool, DriveError> {
        let changed = self.bring_changed_memory()?;
        let files = std::mem::take(&mut self.read_files);
        let told = self.bring_skills(&files)?;
        let mut known = self.session.state.memory.clone();
        let mut pieces = Vec::new();
        for file in &files {
            for piece in self.engine.common.memory.about(file, &known) {
                if known.insert(piece.path.to_string_lossy().into_owned()) {
                    pieces.push(piece);
                }
            }
        }
        for problem in self.engine.common.memory.take_problems() {
            self.warn(&problem.to_string())?;
        }
        if pieces.is_empty() {
            return Ok(told || changed);
        }
        let texts: Vec<String> = pieces.iter().map(|piece| under_path(&piece.path, &piece.text)).collect();
        let text = format!("Instructions for the files you are working on:\n\n{}", texts.join("\n\n"));
        self.give_memory(text, &pieces)?;
        Ok(true)
    }

    /// Brings what the model has of memory and what has changed since. Looked at once in a turn.
    fn bring_changed_memory(&mut self) -> Result<bool, DriveError> {
        if !std::mem::take(&mut self.session.remembered.memory_due) || self.engine.agent.is_some() {
            return Ok(false);
        }
        let memory = &self.engine.common.memory;
        memory.look_again();
        let (mut texts, mut pieces) = (Vec::new(), Vec::new());
        for (path, file) in self.session.remembered.memory.changed() {
            // What was summarised away is read again with the next file that it is about.
            let is_known = self.session.state.memory.contains(path.to_string_lossy().as_ref());
            if !is_known && !memory.at_start().has(&path) {
                continue;
            }
            match memory.again(&path, file.owner) {
                Some(piece) => {
                    texts.push(under_path(&path, &piece.text));
                    pieces.push(MemoryPiece { reason: file.reason, globs: file.globs, ..piece });
                }
                None => {
                    texts.push(under_path(&path, "This file is empty or gone: it does not count any more."))
                }
            }
        }
        if texts.is_empty() {
            return Ok(false);
        }
        let text = format!(
            "Instructions that you have were changed. In place of what you have read, this counts:\n\n{}",
            texts.join("\n\n")
        );
        self.give_memory(text, &pieces)?;
        Ok(true)
    }

    /// Puts pieces in front of the model, on record first, and lets hooks know.
    fn give_memory(&mut self, text: String, pieces: &[MemoryPiece]) -> Result<(), DriveError> {
        let mut entry = self.session.user_entry(UserOrigin::Notice, Message::user(text));
        let is_later = |piece: &&MemoryPiece| !self.engine.common.memory.at_start().has(&piece.path);
        let later = pieces.iter().filter(is_later);
        entry.memory = later.map(|piece| piece.path.to_string_lossy().into_owned()).collect();
        self.session.append(RecordBody::User(Box::new(entry)))?;
        for piece in pieces {
            self.session.remembered.memory.add(piece);
            let reason = piece.reason.as_str();
            let told = self.loaded(reason, &piece.path, piece.owner, &piece.globs);
            self.noticed.extend(told);
            for included in &piece.included {
                let told = self.loaded("include", included, piece.owner, &[]);
                self.noticed.extend(told);
            }
        }
        Ok(())
    }

    fn loaded(&self, reason: &str, path: &Path, owner: Owner, globs: &[String]) -> Option<Occasion> {
        self.occasion(HookEvent::InstructionsLoaded, reason, || {
            let mut fields = json!({
                "load_reason": reason, "file_path": path.to_string_lossy(), "memory_type": owner.as_str(),
            });
            if !globs.is_empty() {
                fields["globs"] = json!(globs);
            }
            fields
        })
    }

    /// Calls the hooks about the memory files that the model has from the start.
    pub(in crate::driver) async fn report_instructions(
        &mut self,
        reason: &'static str,
    ) -> Result<(), DriveError> {
        if self.engine.agent.is_some() || !self.engine.hooks.listens(HookEvent::InstructionsLoaded.as_str()) {
            return Ok(());
        }
        let mut occasions = Vec::new();
        for (path, file) in self.engine.common.memory.at_start().iter() {
            occasions.extend(self.loaded(reason, path, file.owner, &[]));
            let include = if reason == COMPACT { reason } else { "include" };
            let included = file.included.iter();
            occasions.extend(included.filter_map(|path| self.loaded(include, path, file.owner, &[])));
        }
        for occasion in occasions {
            self.observe(Some(occasion)).await?;
        }
        Ok(())
    }
}

fn under_path(path: &Path, text: &str) -> String {
    format!("## {}\n{}", path.display(), text.trim_end())
}
