//! Agents and environments in the database.

use crate::model::agent::AgentBody;
use crate::model::agent_view::AgentVersion;
use crate::model::environment::{Environment, EnvironmentBody};
use crate::model::ids::{AgentId, EnvironmentId, RawId, TenantId};
use crate::model::refusal::Refusal;
use crate::model::time::Time;

use super::{DbFuture, Done, Once};

/// Where a page begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Place {
    /// At the beginning.
    #[default]
    Start,
    /// Behind this thing.
    After(RawId),
    /// So that this thing comes next.
    Before(RawId),
}

/// What every list can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListQuery {
    /// Whose things.
    pub tenant: TenantId,
    /// Where the page begins.
    pub place: Place,
    /// The most things.
    pub limit: usize,
    /// Archived ones too.
    pub include_archived: bool,
    /// Created at this time or later.
    pub created_from: Option<Time>,
    /// Created at this time or earlier.
    pub created_to: Option<Time>,
    /// The oldest first.
    pub ascending: bool,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedPage<T> {
    /// The things, in the order of the list.
    pub items: Vec<T>,
    /// True when things follow.
    pub has_more: bool,
    /// True when things come before.
    pub has_before: bool,
}

/// Which version of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentQuery {
    /// Whose.
    pub tenant: TenantId,
    /// Which.
    pub id: AgentId,
    /// The version; the latest without it.
    pub version: Option<u64>,
}

/// Makes the next body of an agent from the present one. An equal body is no new version.
pub type AgentChange = Box<dyn FnOnce(&AgentVersion) -> Result<AgentBody, Refusal> + Send>;

/// Makes the next body of an environment from the present one.
pub type EnvironmentChange = Box<dyn FnOnce(&Environment) -> Result<EnvironmentBody, Refusal> + Send>;

/// Agents and environments.
pub trait ResourcesDb {
    /// Creates an agent.
    fn create_agent(
        &self,
        tenant: TenantId,
        body: AgentBody,
        once: Once<AgentVersion>,
    ) -> DbFuture<'_, Done<AgentVersion>>;
    /// A version of an agent.
    fn agent(&self, query: AgentQuery) -> DbFuture<'_, AgentVersion>;
    /// Changes an agent. `expected` is the version that the caller has seen.
    fn update_agent(
        &self,
        tenant: TenantId,
        id: AgentId,
        expected: Option<u64>,
        change: AgentChange,
        once: Once<AgentVersion>,
    ) -> DbFuture<'_, Done<AgentVersion>>;
    /// Archives an agent for good.
    fn archive_agent(
        &self,
        tenant: TenantId,
        id: AgentId,
        once: Once<AgentVersion>,
    ) -> DbFuture<'_, Done<AgentVersion>>;
    /// The latest versions of agents.
    fn list_agents(&self, query: ListQuery) -> DbFuture<'_, ListedPage<AgentVersion>>;
    /// The versions of an agent, the newest first, behind this one.
    fn list_agent_versions(
        &self,
        tenant: TenantId,
        id: AgentId,
        after: Option<u64>,
        limit: usize,
    ) -> DbFuture<'_, ListedPage<AgentVersion>>;
    /// Creates an environment.
    fn create_environment(
        &self,
        tenant: TenantId,
        body: EnvironmentBody,
        once: Once<Environment>,
    ) -> DbFuture<'_, Done<Environment>>;
    /// An environment.
    fn environment(&self, tenant: TenantId, id: EnvironmentId) -> DbFuture<'_, Environment>;
    /// Changes an environment.
    fn update_environment(
        &self,
        tenant: TenantId,
        id: EnvironmentId,
        change: EnvironmentChange,
        once: Once<Environment>,
    ) -> DbFuture<'_, Done<Environment>>;
    /// Archives an environment.
    fn archive_environment(
        &self,
        tenant: TenantId,
        id: EnvironmentId,
        once: Once<Environment>,
    ) -> DbFuture<'_, Done<Environment>>;
    /// Deletes an environment. Sessions in it must have ended.
    fn delete_environment(
        &self,
        tenant: TenantId,
        id: EnvironmentId,
        once: Once<()>,
    ) -> DbFuture<'_, Done<()>>;
    /// Environments.
    fn list_environments(&self, query: ListQuery) -> DbFuture<'_, ListedPage<Environment>>;
}
