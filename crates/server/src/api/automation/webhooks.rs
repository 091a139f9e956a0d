//! `/webhook/endpoints`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde_json::json;

use crate::api::app::App;
use crate::http::{self as edge, ApiError, ApiRequest, PageRequest, Scope};
use crate::model::delivery::{Delivery, DeliveryState};
use crate::model::endpoint::{Endpoint, EndpointBody, new_secret};
use crate::model::ids::{DeliveryId, WebhookEndpointId, WebhookEventId};
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;
use crate::outgoing::PrivateAddresses;
use crate::store::{DeliveryQuery, KeptAnswer, NewEndpoint, Once};

const MOST: u64 = 100;

/// The endpoint that a request names.
fn id(request: &ApiRequest) -> Result<WebhookEndpointId, ApiError> {
    let text = request.parameter(0);
    WebhookEndpointId::parse(text).ok_or_else(|| Refusal::not_found("webhook endpoint", text).into())
}

fn answered(request: &ApiRequest) -> Once<Endpoint> {
    edge::once(request, |endpoint: &Endpoint| edge::kept(&endpoint.view()))
}

/// Notices leave the operator's network over TLS, and enter it only where the operator says so.
fn check(allowed: &PrivateAddresses, url: &str) -> Result<(), Problem> {
    if allowed.refuses(url) {
        let problem = "is an address in a private network; the operator can list its host in `private_hosts`";
        return Err(Problem::field("url", problem));
    }
    let is_inside = PrivateAddresses::default().refuses(url);
    if url.starts_with("http:") && !is_inside {
        return Err(Problem::field("url", "must be an `https` URL"));
    }
    Ok(())
}

pub(in crate::api) async fn create(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Admin)?;
    let body = EndpointBody::create(&request.json()?)?;
    check(&app.private_addresses, &body.url)?;
    let (id, secret) = (WebhookEndpointId::random(), new_secret());
    let sealed = app.data_key(&request)?.seal("webhook_endpoints", &id.to_string(), secret.as_bytes());
    let sealed = sealed.map_err(|error| {
        app.edge.log.error("sealed_data", &[("error", &error.to_string())]);
        ApiError::internal()
    })?;
    let new = NewEndpoint { tenant: request.principal.tenant_id(), id, body, sealed };
    let render = move |endpoint: &Endpoint| edge::kept(&endpoint.view_with_secret(&secret));
    let done = app.store.db.create_endpoint(new, edge::once(&request, render)).await?;
    Ok(edge::rendered(done.answer()))
}

pub(in crate::api) async fn read(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    edge::json(&app.store.db.endpoint(request.principal.tenant_id(), id(&request)?).await?.view())
}

pub(in crate::api) async fn update(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Admin)?;
    let (body, allowed) = (request.json()?, app.private_addresses.clone());
    let change = move |before: &Endpoint| {
        let (after, active) = before.body.updated(&body)?;
        check(&allowed, &after.url)?;
        Ok((after, active))
    };
    let (tenant, id) = (request.principal.tenant_id(), id(&request)?);
    let done = app.store.db.update_endpoint(tenant, id, Box::new(change), answered(&request)).await?;
    Ok(edge::rendered(done.answer()))
}

async fn set_active(app: &App, request: &ApiRequest, active: bool) -> Result<Response, ApiError> {
    request.needs(Scope::Admin)?;
    let change = Box::new(move |before: &Endpoint| Ok((before.body.clone(), Some(active))));
    let (tenant, id) = (request.principal.tenant_id(), id(request)?);
    let done = app.store.db.update_endpoint(tenant, id, change, answered(request)).await?;
    Ok(edge::rendered(done.answer()))
}

pub(in crate::api) async fn enable(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    set_active(&app, &request, true).await
}

pub(in crate::api) async fn disable(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    set_active(&app, &request, false).await
}

pub(in crate::api) async fn delete(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Admin)?;
    let (tenant, id) = (request.principal.tenant_id(), id(&request)?);
    let render = move |(): &()| edge::kept(&json!({ "id": id, "type": "webhook_endpoint_deleted" }));
    let done = app.store.db.delete_endpoint(tenant, id, edge::once(&request, render)).await?;
    Ok(edge::rendered(done.answer()))
}

pub(in crate::api) async fn list(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let page = PageRequest::read(&request.query, MOST)?;
    let parse = |text: &str| WebhookEndpointId::parse(text).map(|id| id.0);
    let query = page.list(request.principal.tenant_id(), &request.query, parse)?;
    let listed = app.store.db.list_endpoints(query).await?;
    edge::json(&edge::page(&listed, |endpoint| endpoint.id.to_string(), Endpoint::view))
}

pub(in crate::api) async fn test(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Admin)?;
    let (tenant, id) = (request.principal.tenant_id(), id(&request)?);
    let render = |event: &WebhookEventId| KeptAnswer {
        status: StatusCode::ACCEPTED.as_u16(),
        ..edge::kept(&json!({ "event_id": event, "delivery_rows": 1 }))
    };
    let done = app.store.db.test_endpoint(tenant, id, edge::once(&request, render)).await?;
    Ok(edge::rendered(done.answer()))
}

pub(in crate::api) async fn deliveries(
    State(app): State<Arc<App>>,
    request: ApiRequest,
) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let page = PageRequest::read(&request.query, MOST)?;
    let parse = |text: &str| DeliveryId::parse(text).map(|id| id.0);
    let list = page.list(request.principal.tenant_id(), &request.query, parse)?;
    let state = request.query.one("status")?.map(|word| {
        let problem = || Problem::field("status", "must be `pending`, `delivered` or `failed`");
        DeliveryState::parse(word).ok_or_else(problem)
    });
    let query = DeliveryQuery { list, endpoint: id(&request)?, state: state.transpose()? };
    let listed = app.store.db.list_deliveries(query).await?;
    edge::json(&edge::page(&listed, |delivery| delivery.id.to_string(), Delivery::view))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_inside_needs_the_operator_and_one_outside_needs_tls() {
        let nothing = PrivateAddresses::default();
        let listed = PrivateAddresses { all: false, hosts: vec!["hooks.internal".to_owned()] };
        for (allowed, url, is_accepted) in [
            (&nothing, "https://example.com/hook", true),
            (&nothing, "http://example.com/hook", false),
            (&nothing, "https://10.0.0.7/hook", false),
            (&nothing, "http://127.0.0.1:9/hook", false),
            (&nothing, "http://hooks.internal/", false),
            (&listed, "http://hooks.internal/", true),
            (&listed, "http://10.0.0.7/", false),
            (&PrivateAddresses { all: true, hosts: Vec::new() }, "http://127.0.0.1:9/hook", true),
            (&PrivateAddresses { all: true, hosts: Vec::new() }, "http://example.com/hook", false),
        ] {
            assert_eq!(check(allowed, url).is_ok(), is_accepted, "{url}");
        }
    }
}
