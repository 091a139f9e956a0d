//! Endpoints and the outbox of notices in the database. A notice is queued in the transaction of what it is about; it is sent at
//! least once.

use crate::model::delivery::{Attempt, Delivery, DeliveryState, RetrySchedule};
use crate::model::endpoint::{Endpoint, EndpointBody};
use crate::model::happening::Happening;
use crate::model::ids::{DeliveryId, NodeId, TenantId, WebhookEndpointId, WebhookEventId};
use crate::model::refusal::Refusal;
use crate::model::time::Time;

use super::resources::{ListQuery, ListedPage};
use super::{DbFuture, Done, Once};

/// Makes the next body of an endpoint from the present one, and says whether it is to be active when that changes.
pub type EndpointChange = Box<dyn FnOnce(&Endpoint) -> Result<(EndpointBody, Option<bool>), Refusal> + Send>;

/// An endpoint that is about to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEndpoint {
    /// Whose.
    pub tenant: TenantId,
    /// The endpoint.
    pub id: WebhookEndpointId,
    /// What is kept of it.
    pub body: EndpointBody,
    /// Its signing secret, sealed.
    pub sealed: Vec<u8>,
}

/// Which deliveries are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryQuery {
    /// What every list can be asked for.
    pub list: ListQuery,
    /// To which endpoint.
    pub endpoint: WebhookEndpointId,
    /// In this state.
    pub state: Option<DeliveryState>,
}

/// A notice that a node sends now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueDelivery {
    /// The delivery.
    pub id: DeliveryId,
    /// Whose.
    pub tenant: TenantId,
    /// The tenant's key, sealed.
    pub data_key: Vec<u8>,
    /// Where it goes.
    pub endpoint: WebhookEndpointId,
    /// The address.
    pub url: String,
    /// The signing secret, sealed.
    pub sealed: Vec<u8>,
    /// What it is about.
    pub event: WebhookEventId,
    /// The type of what happened.
    pub kind: String,
    /// The notice.
    pub body: String,
}

/// Which notices a node takes to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimDeliveries {
    /// The node.
    pub node: NodeId,
    /// The most notices.
    pub most: usize,
    /// The most to one endpoint.
    pub most_of_one: usize,
    /// Endpoints that have enough to do.
    pub except: Vec<WebhookEndpointId>,
    /// When the notices are due again unless the node reports.
    pub until: Time,
}

/// Endpoints and the outbox.
pub trait WebhooksDb {
    /// Creates an endpoint.
    fn create_endpoint(&self, new: NewEndpoint, once: Once<Endpoint>) -> DbFuture<'_, Done<Endpoint>>;
    /// An endpoint.
    fn endpoint(&self, tenant: TenantId, id: WebhookEndpointId) -> DbFuture<'_, Endpoint>;
    /// Changes an endpoint. One that becomes active gets what waited for it; one that ceases to be keeps it waiting.
    fn update_endpoint(
        &self,
        tenant: TenantId,
        id: WebhookEndpointId,
        change: EndpointChange,
        once: Once<Endpoint>,
    ) -> DbFuture<'_, Done<Endpoint>>;
    /// Deletes an endpoint with everything that waits for it.
    fn delete_endpoint(
        &self,
        tenant: TenantId,
        id: WebhookEndpointId,
        once: Once<()>,
    ) -> DbFuture<'_, Done<()>>;
    /// Endpoints of a tenant.
    fn list_endpoints(&self, query: ListQuery) -> DbFuture<'_, ListedPage<Endpoint>>;
    /// Queues a notice for one endpoint to try it out.
    fn test_endpoint(
        &self,
        tenant: TenantId,
        id: WebhookEndpointId,
        once: Once<WebhookEventId>,
    ) -> DbFuture<'_, Done<WebhookEventId>>;
    /// Deliveries to an endpoint, the newest first.
    fn list_deliveries(&self, query: DeliveryQuery) -> DbFuture<'_, ListedPage<Delivery>>;
    /// Queues notices about something that happens outside of any other transaction.
    fn notify(&self, tenant: TenantId, happening: Happening) -> DbFuture<'_, ()>;
    /// When the next notice is due.
    fn next_delivery(&self) -> DbFuture<'_, Option<Time>>;
    /// Takes notices that are due.
    fn claim_deliveries(&self, claim: ClaimDeliveries) -> DbFuture<'_, Vec<DueDelivery>>;
    /// Reports what sending a notice came to. False when it is no longer the node's.
    fn finish_delivery(
        &self,
        id: DeliveryId,
        node: NodeId,
        attempt: Attempt,
        schedule: RetrySchedule,
    ) -> DbFuture<'_, bool>;
    /// Notices that nodes took which are gone are due again.
    fn void_deliveries(&self, node: NodeId) -> DbFuture<'_, ()>;
}
