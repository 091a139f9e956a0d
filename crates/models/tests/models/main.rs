//! Behaviour of the models crate, against a hand-made HTTP server that controls every byte, and
//! against playbooks. One module per behaviour; `support` holds the server and the short ways to ask
//! a model.

#[cfg(test)]
mod anthropic_messages;
#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod body_prefix;
#[cfg(test)]
mod broken_streams;
#[cfg(test)]
mod compressed_bodies;
#[cfg(test)]
mod connection_reuse;
#[cfg(test)]
mod error_classes;
#[cfg(test)]
mod errors_in_replies;
#[cfg(test)]
mod event_cuts;
#[cfg(test)]
mod fallback;
#[cfg(test)]
mod garbage;
#[cfg(test)]
mod https;
#[cfg(test)]
mod learned_refusals;
#[cfg(test)]
mod listing;
#[cfg(test)]
mod models_page;
#[cfg(test)]
mod moved_sessions;
#[cfg(test)]
mod odd_endpoints;
#[cfg(test)]
mod offline_first_hour;
#[cfg(test)]
mod offline_phrases;
#[cfg(test)]
mod openai_chat;
#[cfg(test)]
mod openai_responses;
#[cfg(test)]
mod profile_choice;
#[cfg(test)]
mod profile_quirks;
#[cfg(test)]
mod profile_replies;
#[cfg(test)]
mod reasoning_kept;
#[cfg(test)]
mod record_replay;
#[cfg(test)]
mod resolution;
#[cfg(test)]
mod scripted_playbooks;
#[cfg(test)]
mod support;
#[cfg(test)]
mod timeouts;
#[cfg(test)]
mod truncated_responses;
#[cfg(test)]
mod unclean_ends;
