//! The wish to stop the turn that a driver runs: who has it, and whether it is on record.

use qoder_core::ports::Cancelled;
use qoder_types::Actor;

use crate::engine::interrupt::Interrupt;

/// The wish to stop the turn.
pub(super) struct Stopping {
    interrupt: Interrupt,
    /// Who wants it, when it is not a signal.
    by: Option<Actor>,
    /// True once it is on record that the process ends.
    end_is_recorded: bool,
}

impl Stopping {
    /// Nothing is wanted until `interrupt` is triggered.
    pub(super) fn new(interrupt: Interrupt) -> Self {
        Self { interrupt, by: None, end_is_recorded: false }
    }

    /// What triggers it.
    pub(super) fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// True once it is wanted.
    pub(super) fn is_wanted(&self) -> bool {
        self.interrupt.is_triggered()
    }

    /// Completes when it is wanted.
    pub(super) fn wanted(&self) -> Cancelled {
        self.interrupt.cancelled()
    }

    /// It is wanted by this actor; the first one counts.
    pub(super) fn want(&mut self, by: Actor) {
        self.by.get_or_insert(by);
        self.interrupt.trigger();
    }

    /// Who the record names: the signal by which the process ends, else the first who wanted it. `None` when the end of the
    /// process is on record already.
    pub(super) fn take_record(&mut self, ended_by: Option<&'static str>) -> Option<Actor> {
        if std::mem::replace(&mut self.end_is_recorded, ended_by.is_some()) {
            return None;
        }
        Some(match ended_by {
            Some(signal) => Actor::Ending(signal.to_owned()),
            None => self.by.take().unwrap_or(Actor::Signal),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_who_wants_it_is_named_once() {
        let mut stopping = Stopping::new(Interrupt::default());
        assert!(!stopping.is_wanted());
        stopping.want(Actor::Host);
        stopping.want(Actor::Resume);
        assert!(stopping.is_wanted());
        assert_eq!(stopping.take_record(None), Some(Actor::Host));
        assert_eq!(stopping.take_record(None), Some(Actor::Signal), "a later wish is a signal's");
    }

    #[test]
    fn the_end_of_the_process_is_recorded_once() {
        let mut stopping = Stopping::new(Interrupt::default());
        stopping.want(Actor::Host);
        assert_eq!(stopping.take_record(Some("SIGTERM")), Some(Actor::Ending("SIGTERM".to_owned())));
        assert_eq!(stopping.take_record(Some("SIGTERM")), None);
    }
}
