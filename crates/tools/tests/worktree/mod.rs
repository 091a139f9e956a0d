//! Worktrees, and the git queries of the tools.

mod git_queries_run_nothing;
mod trees;
