//! Configuration: descriptions of servers, and the page about settings.
//! One program for the whole crate, one module per subject: each further program would be linked with everything again.

mod descriptions;
mod settings_page;
