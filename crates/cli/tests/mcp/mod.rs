//! MCP servers through the real program: how they are described and approved, what the commands show, and what a turn in
//! print mode makes of their tools, resources and prompts. The servers are real ones; `support` says where they are.

#[cfg(test)]
mod approving;
mod bound_files;
#[cfg(test)]
mod describing;
#[cfg(test)]
mod looking_up;
mod nested_results;
#[cfg(test)]
mod prompts;
#[cfg(test)]
mod resources;
#[cfg(test)]
mod sampling;
#[cfg(test)]
mod sources;
#[cfg(test)]
mod support;
