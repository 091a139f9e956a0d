//! A link never widens access: with links in the workspace nothing is allowed that is not allowed for the place where
//! the link leads, and a denial of either name holds.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use qoder_policy::{FileSystem, NoLinks, PlaceError, normalise};
use qoder_types::Access;
use qoder_types::{Behavior, PermissionMode};

use crate::gate_properties::{a_mode, decided, rules, some_sets, strictness};

/// One link: its name, and where it leads.
struct OneLink {
    name: PathBuf,
    target: PathBuf,
}

impl FileSystem for OneLink {
    fn real(&self, path: &Path) -> Result<PathBuf, PlaceError> {
        let path = normalise(path);
        Ok(match path.strip_prefix(&self.name) {
            Ok(rest) => normalise(&self.target.join(rest)),
            Err(_) => path,
        })
    }

    fn names(&self, _: &Path, _: usize) -> Option<Vec<OsString>> {
        None
    }

    fn has_other_names(&self, _: &Path) -> bool {
        false
    }

    fn is_folder(&self, _: &Path) -> bool {
        false
    }

    fn is_file(&self, _: &Path) -> bool {
        false
    }

    fn links_named(&self, _: &Path, _: fn(&OsStr) -> bool) -> Vec<PathBuf> {
        Vec::new()
    }
}

const TARGETS: [&str; 8] =
    ["/etc", "/w/p/src", "/w/p/.git", "/home/u", "/w", "/w/p-old", "/w/p/conf", "/proc/self/cwd"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_link_never_widens_access(
        sets in some_sets(), mode in a_mode(), target in prop::sample::select(&TARGETS[..]),
        edits in any::<bool>(), by_command in any::<bool>(), file in prop::sample::select(&["x.txt", ".env", "config"][..]),
    ) {
        // Broad allowances would hide the difference, and bypass has none.
        prop_assume!(mode != PermissionMode::BypassPermissions);
        let set = rules(&sets);
        let link = OneLink { name: "/w/p/link".into(), target: target.into() };
        let decide = |path: &str, files: &dyn FileSystem| match (by_command, edits) {
            (true, true) => decided(&set, mode, "Bash", Access::Command(format!("echo x > {path}")), files),
            (true, false) => decided(&set, mode, "Bash", Access::Command(format!("cat {path}")), files),
            (false, true) => decided(&set, mode, "Write", Access::Edit(path.into()), files),
            (false, false) => decided(&set, mode, "Read", Access::Read(path.into()), files),
        };
        let through = decide(&format!("/w/p/link/{file}"), &link);
        let direct = decide(&format!("{target}/{file}"), &NoLinks);
        prop_assert!(
            strictness(through) >= strictness(direct),
            "{file} through a link to {target}: {through:?}, directly {direct:?}"
        );
        let by_name = decide(&format!("/w/p/link/{file}"), &NoLinks);
        prop_assert!(strictness(through) >= strictness(by_name), "the link has lifted {by_name:?}");
        prop_assert!(direct != Behavior::Deny || through == Behavior::Deny);
    }
}
