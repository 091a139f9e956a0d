//! Isolated sessions: the workspace is the session's alone, so the cautions that protect a person's machine are off; whatever
//! leaves the environment is denied, and no rule, mode or answer lifts that.

use std::path::Path;

use qoder_types::workspace::Isolation;

use super::judge::{AllowedBy, Judge};
use crate::accesses::find::{Place, ResolvedAccess};
use crate::places::leads_anywhere;

impl<'a> Judge<'a> {
    pub(crate) fn isolation(&self) -> Option<&'a Isolation> {
        self.policy().workspace.isolation.as_ref()
    }

    /// Why the call would leave the environment of an isolated session.
    pub(crate) fn leaves_environment(&self) -> Option<String> {
        let isolation = self.isolation()?;
        let left = self.found.iter().find_map(|found| match found {
            ResolvedAccess::Read(place) => outside(place, |path| isolation.is_shown(path)),
            ResolvedAccess::Edit(place) => outside(place, |path| isolation.contains(path)),
            ResolvedAccess::Line(line) => line.known.iter().find_map(|known| {
                let mut reads = known.reads.iter().chain(&known.inputs).chain(&known.mentions);
                let mut changed = known.edits.iter().chain(&known.outputs);
                let left = |place: &Place, is_inside: &dyn Fn(&Path) -> bool| {
                    let own = is_of_command(place) && !isolation.contains(&place.lexical);
                    outside(place, is_inside).filter(|_| !own)
                };
                let changed = changed.find_map(|place| left(place, &|path| isolation.contains(path)));
                changed.or_else(|| reads.find_map(|place| left(place, &|path| isolation.is_readable(path))))
            }),
            ResolvedAccess::Fetch(_)
            | ResolvedAccess::Agent(_)
            | ResolvedAccess::Skill { .. }
            | ResolvedAccess::Resource { .. }
            | ResolvedAccess::As(_)
            | ResolvedAccess::Person
            | ResolvedAccess::Internal
            | ResolvedAccess::Other => None,
        });
        left.map(|path| format!("{path} is outside the environment of the session"))
    }

    /// In an isolated session a rule for the whole tool covers everything that stays inside.
    pub(crate) fn granted_inside(&self) -> Option<AllowedBy<'a>> {
        self.isolation()?;
        self.whole_rule(self.tool(), self.terms()).map(AllowedBy::rule)
    }
}

/// The place, when it is outside by its spelling or by where its links lead.
fn outside(place: &Place, is_inside: impl Fn(&Path) -> bool) -> Option<String> {
    let inside = !leads_elsewhere(place) && is_inside(&place.lexical) && is_inside(&place.real);
    (!inside).then(|| place.real.display().to_string())
}

fn leads_elsewhere(place: &Place) -> bool {
    leads_anywhere(&place.lexical) || leads_anywhere(&place.real)
}

/// True for what a confined command has for itself: devices, temporary files and what the kernel says of its own processes.
/// A link that leads there from anywhere else leaves the environment.
fn is_of_command(place: &Place) -> bool {
    let own = |folder: &&str| place.lexical.starts_with(folder) && place.real.starts_with(folder);
    ["/dev", "/proc", "/tmp"].iter().any(own) && !leads_elsewhere(place)
}
