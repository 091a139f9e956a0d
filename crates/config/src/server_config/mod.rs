//! How the description of an MCP server is read: from options, the command line, settings and files. A description that
//! cannot be used is an error that names the server and the field.

mod error;
mod expand;
mod fields;
mod read;
mod shown;

pub use error::{ConfigError, check_name};
pub use read::{expand_server, parse_server, read_server, unknown_fields};
pub use shown::{HIDDEN, shown, without_credentials};
