//! In which mode a session starts, and to which one it returns when a plan is approved. A person's choice for this very
//! run outranks the settings; the settings count in a trusted folder.

use qoder_types::{PermissionMode, RuleSource};

use crate::setup::{Options, SetupError};
use qoder_config::settings::Settings;
use qoder_config::sources::Origin;
use qoder_config::trust::Trust;

/// The setting that names a mode.
const KEY: &str = "general.defaultPermissionMode";

/// The mode and whether a person chose it for this very run. An explicit choice counts in an untrusted folder too: it
/// comes from the person, not from the folder, and trusts none of the folder's files.
pub(in crate::setup) fn choose(
    options: &Options,
    settings: &Settings,
) -> Result<(PermissionMode, bool), SetupError> {
    // Loading has refused any other word.
    let configured = settings.text(KEY).and_then(PermissionMode::parse);
    let (mode, explicit) = match (options.permission_mode, of_agent(options), configured) {
        (Some(mode), _, _) => (mode, true),
        (None, Some(chosen), _) => chosen,
        (None, None, None) => (PermissionMode::Default, false),
        (None, None, Some(mode)) => {
            let layer = settings.origin(KEY).map(|layer| layer.source);
            (mode, layer == Some(RuleSource::FlagSettings))
        }
    };
    if mode == PermissionMode::BypassPermissions && settings.flag("security.disableYoloMode", false) {
        return Err(SetupError::Option {
            option: "--permission-mode",
            problem: "bypassPermissions is forbidden by the setting security.disableYoloMode".to_owned(),
        });
    }
    Ok((mode, explicit))
}

/// What the agent of the main conversation chooses. Files of a project loosen no more than its settings could.
fn of_agent(options: &Options) -> Option<(PermissionMode, bool)> {
    let agent = options.main_agent.as_ref()?;
    let mode = agent.permission_mode?;
    let loose = matches!(mode, PermissionMode::BypassPermissions | PermissionMode::Auto);
    match agent.origin {
        Origin::Flag => Some((mode, true)),
        Origin::BuiltIn | Origin::User => Some((mode, false)),
        Origin::Project | Origin::Plugin(_) => (!loose).then_some((mode, false)),
    }
}

/// The mode to return to when a session that was started for planning has its plan approved: the one it would have had
/// without planning. In a folder that is not trusted this is `default`, because wanting a plan there vouches for
/// nothing.
pub(in crate::setup) fn after_plan(settings: &Settings, trust: Trust) -> PermissionMode {
    let by_flag = settings.origin(KEY).is_some_and(|layer| layer.source == RuleSource::FlagSettings);
    settings
        .text(KEY)
        .and_then(PermissionMode::parse)
        .filter(|mode| *mode != PermissionMode::Plan && (by_flag || trust.is_trusted()))
        .filter(|mode| {
            *mode != PermissionMode::BypassPermissions || !settings.flag("security.disableYoloMode", false)
        })
        .unwrap_or(PermissionMode::Default)
}
