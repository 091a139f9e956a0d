//! The server on PostgreSQL: one node, several nodes, and faults between them and their database.

mod chaos;
mod faults;
mod nodes;
mod one_node;
mod pieces;
mod proxy;
mod workspaces;
