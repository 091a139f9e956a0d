//! From a model's name, settings and the environment to a model that can be asked. Opens no file except a playbook or a
//! recording, and no connection.

mod list;
mod providers;
mod secrets;

use std::path::Path;
use std::sync::Arc;

use qoder_core::ports::Model;

use self::providers::{all_routes, compat_setting};
use crate::calls::{Endpoint, RetryPolicy, RoutedModel};
use crate::error::ModelConfigError;
use crate::exchange::cassette::{Recorder, Replay};
use crate::exchange::{HttpEndpoint, Timeouts};
use crate::offline::Offline;
use crate::profile::{ProfileInForce, UNKNOWN_CHAT, overrides};
use crate::routes::Route;
use crate::scripted::Scripted;
use crate::settings::{ModelOptions, catalog};

pub(crate) use list::ask as list_of;
pub use list::{ListedModel, list_models};
pub use providers::is_tier;
pub(crate) use providers::{find_route, named, provider_model, with_options};
pub use secrets::{SECRET_ENVIRONMENT, configured_secrets};

/// The model that the options describe. No connection is opened; a playbook or recording is read, and a file to
/// record to is created.
///
/// # Errors
/// When the options name something that does not exist or cannot be used, or a file to record to that cannot be written.
pub fn resolve(options: &ModelOptions) -> Result<Arc<dyn Model>, ModelConfigError> {
    check_compat(options)?;
    let recorder = options.record.clone().map(Recorder::new).transpose()?.map(Arc::new);
    let main = endpoint(options, options.model.as_deref(), recorder.as_ref())?;
    let fallback = match options.fallback_model.as_deref() {
        Some(name) => Some(endpoint(options, Some(name), recorder.as_ref())?),
        None => None,
    };
    Ok(Arc::new(RoutedModel { main, fallback, policy: RetryPolicy::new(options) }))
}

/// Checks the `compat` of every provider, so that a mistake shows before the provider is needed.
///
/// # Errors
/// When one names a profile or a field that does not exist, or has a value that its field does not take.
pub fn check_compat(options: &ModelOptions) -> Result<(), ModelConfigError> {
    for (name, provider) in &options.settings.providers {
        overrides::apply(UNKNOWN_CHAT, &provider.compat, &compat_setting(name))?;
    }
    Ok(())
}

/// The route of the model that the options name; none for models that need no server.
pub(crate) fn named_route(options: &ModelOptions) -> Result<Option<Route>, ModelConfigError> {
    check_compat(options)?;
    let (name, tier) = named(options, options.model.as_deref());
    if is_local(name) { Ok(None) } else { find_route(options, name, tier) }
}

/// The profile of the model that the options name; none for models that need no server.
///
/// # Errors
/// When the options do not describe a model, or `compat` is wrong.
pub fn profile_in_force(options: &ModelOptions) -> Result<Option<ProfileInForce>, ModelConfigError> {
    Ok(named_route(options)?.map(|route| route.profile_in_force()))
}

/// The profiles of all providers that are configured.
///
/// # Errors
/// When a provider or its `compat` is wrong.
pub fn provider_profiles(options: &ModelOptions) -> Result<Vec<ProfileInForce>, ModelConfigError> {
    let routes = all_routes(options)?;
    Ok(routes.into_iter().map(|(route, _)| route.profile_in_force()).collect())
}

/// True for models that need no server.
fn is_local(name: &str) -> bool {
    name == "offline" || name.starts_with("scripted:") || name.starts_with("replay:")
}

/// The model that the options name, when it is asked over a network and has no known price.
#[must_use]
pub fn unpriced_model(options: &ModelOptions) -> Option<String> {
    let route = named_route(options).ok().flatten()?;
    catalog::lookup(options, &route.model).price.is_none().then_some(route.model)
}

/// The model that was named, by this name or by a variable of a provider that is not there; `None` when any may answer.
fn model_named<'a>(options: &'a ModelOptions, name: &'a str) -> Option<&'a str> {
    if name != "auto" {
        return Some(name);
    }
    ["ANTHROPIC_MODEL", "OPENAI_MODEL"].into_iter().find_map(|variable| options.variable(variable))
}

fn endpoint(
    options: &ModelOptions,
    name: Option<&str>,
    recorder: Option<&Arc<Recorder>>,
) -> Result<Arc<dyn Endpoint>, ModelConfigError> {
    let (name, tier) = named(options, name);
    if name == "offline" {
        return Ok(Arc::new(Offline::new(catalog::lookup(options, "offline"))));
    }
    if let Some(path) = name.strip_prefix("scripted:") {
        return Ok(Arc::new(Scripted::open(Path::new(path), catalog::lookup(options, "scripted"))?));
    }
    if let Some(path) = name.strip_prefix("replay:") {
        let timeouts = Timeouts::new(options);
        let replay = Replay::open(Path::new(path), timeouts, |model| catalog::lookup(options, model))?;
        return Ok(Arc::new(replay));
    }
    match find_route(options, name, tier)? {
        Some(route) => {
            let route = with_options(route, options)?;
            let entry = catalog::lookup(options, &route.model);
            Ok(Arc::new(HttpEndpoint::new(route, entry, options, recorder.cloned())))
        }
        // A model that was named is never another one.
        None => match model_named(options, name) {
            None => Ok(Arc::new(Offline::new(catalog::lookup(options, "offline")))),
            Some(model) => Err(ModelConfigError::NoProvider { model: model.to_owned() }),
        },
    }
}
