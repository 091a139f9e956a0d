//! The arguments of `qodercli permissions`.

use crate::command_line::place::PlaceArguments;
use clap::Subcommand;

/// Shown below the help.
pub const PERMISSIONS_HELP: &str = "\
Examples:
  qodercli permissions list
  echo '{\"tool\": \"Bash\", \"input\": {\"command\": \"git push\"}}' | qodercli permissions check
  qodercli permissions explain
  qodercli permissions pending SESSION
  qodercli permissions answer SESSION CALL allow --always && qodercli -p --resume SESSION

Calls wait for an answer when the setting permissions.unattended is \"park\"; otherwise what would ask is denied.";

const CHECK_HELP: &str = "\
A case:
  {\"tool\": \"Bash\", \"input\": {\"command\": \"npm test\"},
   \"rules\": {\"allow\": [\"Bash(npm test:*)\"], \"ask\": [], \"deny\": [\"Read(.env)\"]},
   \"mode\": \"default\", \"trusted\": true, \"cwd\": \"/p\", \"project_root\": \"/p\", \"home\": \"/home/u\",
   \"additional_directories\": []}

Its answer:
  {\"decision\": \"allow\", \"reason\": {\"type\": \"rule\", \"rule\": \"Bash(npm test:*)\", \"message\": \"…\", …}}

Exit code 42 when the case cannot be read; the decision is then deny.";

/// What to do about permissions.
#[derive(Debug, Subcommand)]
pub enum PermissionsAction {
    /// Decide a case from stdin without running anything: one JSON object in, one line with `decision` and `reason` out.
    ///
    /// No settings are read: the case says everything, and all but `tool` may be left out.
    #[command(after_help = CHECK_HELP)]
    Check {
        /// Read one case a line and answer one line each.
        #[arg(long)]
        batch: bool,
        /// Accepted for scripts; the answer is always JSON.
        #[arg(long)]
        json: bool,
    },
    /// Explain why a past call ran or did not: the rule with file and line, and who answered.
    ///
    /// Without IDs: the last denied call of the newest session here.
    Explain {
        /// The session's ID, or its first characters; the newest of this directory without it.
        session: Option<String>,
        /// The call's ID, or its first characters, as `sessions show` prints it; the last denial without it.
        #[arg(value_name = "CALL")]
        tool_use_id: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List the rules in force here, with file and line.
    List(PlaceArguments),
    /// List pending calls of a session (after exit code 54), and the rules that `answer --always` would add.
    Pending {
        /// The session.
        session: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Answer a pending call; the first answer counts. Then resume with `qodercli -p --resume SESSION`.
    Answer(AnswerArguments),
}

/// An answer to a call that waits.
#[derive(Debug, clap::Args)]
pub struct AnswerArguments {
    /// The session's ID, or its first characters.
    pub session: String,
    /// The call's ID, or its first characters, as `pending` prints it.
    #[arg(value_name = "CALL")]
    pub tool_use_id: String,
    /// allow or deny; result for a call that runs outside the runtime.
    #[arg(value_parser = ["allow", "deny", "result"])]
    pub answer: String,
    /// Agent that made the call: its ID or the first characters. Needed when the call ID is ambiguous.
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// With allow: also add the rules that `pending` suggests.
    #[arg(long)]
    pub always: bool,
    /// With deny: what the model reads.
    #[arg(long)]
    pub message: Option<String>,
    /// With allow: JSON input that replaces the model's. It is checked again.
    #[arg(long, value_name = "JSON")]
    pub input: Option<String>,
    /// With result: what the model reads.
    #[arg(long, value_name = "TEXT")]
    pub content: Option<String>,
    /// With result: the call failed.
    #[arg(long, requires = "content")]
    pub is_error: bool,
    /// Name of the person who answers. Default: the user's name.
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
}
