//! Deployments and their runs in the database. A run that comes due is written together with the next time of its schedule; its
//! session is created together with the run's end.

use crate::model::deployment::{Deployment, DeploymentBody, Paused};
use crate::model::ids::{AgentId, DeploymentId, DeploymentRunId, NodeId, TenantId};
use crate::model::refusal::Refusal;
use crate::model::run::Run;
use crate::model::time::Time;

use super::resources::{ListQuery, ListedPage};
use super::{DbFuture, Done, Once};

/// A deployment with what is sealed of it.
#[derive(Debug, Clone, PartialEq)]
pub struct DeploymentRow {
    /// The deployment.
    pub deployment: Deployment,
    /// The template of its sessions, sealed.
    pub sealed: Vec<u8>,
}

/// A deployment that is about to be created.
#[derive(Debug, Clone, PartialEq)]
pub struct NewDeployment {
    /// Whose.
    pub tenant: TenantId,
    /// The deployment.
    pub id: DeploymentId,
    /// The agent.
    pub agent: AgentId,
    /// What is kept of it.
    pub body: DeploymentBody,
    /// The template of its sessions, sealed.
    pub sealed: Vec<u8>,
}

/// What a deployment becomes.
#[derive(Debug, Clone, PartialEq)]
pub struct NextDeployment {
    /// The agent.
    pub agent: AgentId,
    /// What is kept of it.
    pub body: DeploymentBody,
    /// The template of its sessions, sealed.
    pub sealed: Vec<u8>,
    /// Why its schedule does not count.
    pub paused: Option<Paused>,
    /// True when it is archived.
    pub is_archived: bool,
    /// What happened to it, as notices name it.
    pub kind: &'static str,
}

/// Makes the next state of a deployment from the present one; none when nothing changes.
pub type DeploymentChange = Box<dyn FnOnce(&DeploymentRow) -> Result<Option<NextDeployment>, Refusal> + Send>;

/// Which deployments are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeploymentQuery {
    /// What every list can be asked for.
    pub list: ListQuery,
    /// Of this agent.
    pub agent: Option<AgentId>,
    /// Paused ones, or those that are not.
    pub is_paused: Option<bool>,
}

/// Which runs are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunQuery {
    /// What every list can be asked for.
    pub list: ListQuery,
    /// Of this deployment.
    pub deployment: Option<DeploymentId>,
    /// Those with an error, or those without.
    pub has_error: Option<bool>,
    /// Those that a schedule began, or those that a client asked for.
    pub is_scheduled: Option<bool>,
}

/// A run that a node carries out now.
#[derive(Debug, Clone, PartialEq)]
pub struct DueRun {
    /// The run.
    pub run: Run,
    /// Its deployment.
    pub row: DeploymentRow,
    /// The tenant's key, sealed.
    pub data_key: Vec<u8>,
}

/// Deployments and runs.
pub trait DeploymentsDb {
    /// Creates a deployment.
    fn create_deployment(
        &self,
        new: NewDeployment,
        once: Once<DeploymentRow>,
    ) -> DbFuture<'_, Done<DeploymentRow>>;
    /// A deployment.
    fn deployment(&self, tenant: TenantId, id: DeploymentId) -> DbFuture<'_, DeploymentRow>;
    /// Changes a deployment.
    fn update_deployment(
        &self,
        tenant: TenantId,
        id: DeploymentId,
        change: DeploymentChange,
        once: Once<DeploymentRow>,
    ) -> DbFuture<'_, Done<DeploymentRow>>;
    /// Deployments of a tenant.
    fn list_deployments(&self, query: DeploymentQuery) -> DbFuture<'_, ListedPage<Deployment>>;
    /// A run.
    fn run(&self, tenant: TenantId, id: DeploymentRunId) -> DbFuture<'_, Run>;
    /// Runs of a tenant.
    fn list_runs(&self, query: RunQuery) -> DbFuture<'_, ListedPage<Run>>;
    /// When the next run is due; a run that no node carries out is due at once.
    fn next_run(&self) -> DbFuture<'_, Option<Time>>;
    /// Takes up to `most` runs that are due.
    fn claim_runs(&self, node: NodeId, most: usize) -> DbFuture<'_, Vec<DueRun>>;
    /// Ends a run with its error. A schedule whose next run would fail in the same way is paused.
    fn fail_run(&self, run: Run, once: Once<Run>) -> DbFuture<'_, Done<Run>>;
    /// Runs that nodes took which are gone are due again.
    fn void_runs(&self, node: NodeId) -> DbFuture<'_, ()>;
}
