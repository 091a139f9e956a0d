//! What sessions are given beside their agents and environments, and what happens without a client that waits.

use super::operation::{Operation, Route, at};
use crate::api::{
    automation, credentials, files, memory as handlers, models as catalog, skills, vaults as safes,
};

const LISTED: &str = "name:string include_archived:boolean created_at[gte]:time created_at[lte]:time";

fn to(summary: &'static str) -> Operation {
    Operation::new(summary)
}

/// Files and skills.
pub(super) fn given() -> Vec<Route> {
    vec![
        at("/files")
            .get(
                files::list,
                to("List files").query("name:string scope_id:string ids[]:[string]").page("File"),
            )
            .post(files::create, to("Upload a file").form("NewFile").gives("File"))
            .unbounded(),
        at("/files/{id}")
            .get(files::read, to("Read what is known of a file").gives("File"))
            .delete(files::delete, to("Delete a file").gives("Deleted")),
        at("/files/{id}/content").get(
            files::content,
            to("Download a file; `Accept: application/json` gets a link to it").link_or_bytes(),
        ),
        at("/skills")
            .get(
                skills::list,
                to("List skills").query("source:string name:string display_title:string").page("Skill"),
            )
            .post(skills::create, to("Upload a skill").form("NewSkill").gives("Skill"))
            .unbounded(),
        at("/skills/{id}")
            .get(skills::read, to("Read a skill").gives("Skill"))
            .delete(skills::delete, to("Delete a skill").gives("Deleted")),
        at("/skills/{id}/versions")
            .get(skills::list_versions, to("List versions of a skill").page("SkillVersion"))
            .post(
                skills::create_version,
                to("Upload a version of a skill").form("NewSkill").gives("SkillVersion"),
            )
            .unbounded(),
        at("/skills/{id}/versions/{version}")
            .get(
                skills::read_version,
                to("Read a version of a skill; `latest` names the newest").gives("SkillVersion"),
            )
            .delete(skills::delete_version, to("Delete a version of a skill").gives("Deleted")),
        at("/skills/{id}/versions/{version}/content")
            .get(skills::download, to("Download a version of a skill as a zip file").bytes()),
    ]
}

/// Memory stores and what is in them.
pub(super) fn memory() -> Vec<Route> {
    use handlers::{memories, stores, versions};
    const VIEW: &str = "view:'basic|full'";
    const VERSIONS: &str =
        "memory_id:string session_id:string api_key_id:string operation:'created|modified|deleted'
        created_at[gte]:time created_at[lte]:time";
    let items = to("List memories").query("path_prefix:string depth:integer").query(VIEW);
    vec![
        at("/memory_stores")
            .get(stores::list, to("List memory stores").query(LISTED).page("MemoryStore"))
            .post(stores::create, to("Create a memory store").takes("NewMemoryStore").gives("MemoryStore")),
        at("/memory_stores/{id}")
            .get(stores::read, to("Read a memory store").gives("MemoryStore"))
            .post(stores::update, to("Change a memory store").takes("MemoryStoreUpdate").gives("MemoryStore"))
            .delete(stores::delete, to("Delete a memory store").gives("Deleted")),
        at("/memory_stores/{id}/archive")
            .post(stores::archive, to("Archive a memory store").gives("MemoryStore")),
        at("/memory_stores/{id}/memories")
            .get(memories::list, items.page("MemoryItem"))
            .post(memories::create, to("Create a memory").query(VIEW).takes("NewMemory").gives("Memory")),
        at("/memory_stores/{id}/memories/{memory}")
            .get(memories::read, to("Read a memory").query(VIEW).gives("Memory"))
            .post(memories::update, to("Change a memory").query(VIEW).takes("MemoryUpdate").gives("Memory"))
            .delete(
                memories::delete,
                to("Delete a memory").query("expected_content_sha256:string").gives("Deleted"),
            ),
        at("/memory_stores/{id}/memory_versions").get(
            versions::list,
            to("List versions of memories").query(VERSIONS).query(VIEW).page("MemoryVersion"),
        ),
        at("/memory_stores/{id}/memory_versions/{version}")
            .get(versions::read, to("Read a version of a memory").query(VIEW).gives("MemoryVersion")),
        at("/memory_stores/{id}/memory_versions/{version}/redact")
            .post(versions::redact, to("Remove the content of a version").gives("MemoryVersion")),
    ]
}

/// Vaults and the credentials in them.
pub(super) fn vaults() -> Vec<Route> {
    vec![
        at("/vaults")
            .get(safes::list, to("List vaults").query(LISTED).page("Vault"))
            .post(safes::create, to("Create a vault").takes("NewVault").gives("Vault")),
        at("/vaults/{id}")
            .get(safes::read, to("Read a vault").gives("Vault"))
            .post(safes::update, to("Change a vault").takes("VaultUpdate").gives("Vault"))
            .delete(safes::delete, to("Delete a vault").gives("Deleted")),
        at("/vaults/{id}/archive").post(safes::archive, to("Archive a vault").gives("Vault")),
        at("/vaults/{id}/credentials")
            .get(credentials::list, to("List credentials of a vault").query(LISTED).page("Credential"))
            .post(credentials::create, to("Create a credential").takes("NewCredential").gives("Credential")),
        at("/vaults/{id}/credentials/{credential}")
            .get(credentials::read, to("Read a credential without its secrets").gives("Credential"))
            .post(
                credentials::update,
                to("Change a credential").takes("CredentialUpdate").gives("Credential"),
            )
            .delete(credentials::delete, to("Delete a credential").gives("Deleted")),
        at("/vaults/{id}/credentials/{credential}/archive")
            .post(credentials::archive, to("Archive a credential").gives("Credential")),
        at("/vaults/{id}/credentials/{credential}/mcp_oauth_validate")
            .post(credentials::validate, to("Try a credential at its server").gives("CredentialValidation")),
    ]
}

/// Deployments and their runs.
pub(super) fn deployments() -> Vec<Route> {
    use automation::deployments;
    const RUNS: &str =
        "has_error:boolean trigger_type:'manual|schedule' triggered_after:time triggered_before:time
        created_at[gte]:time created_at[lte]:time";
    let listed =
        to("List deployments").query("agent_id:string status:'active|paused' include_archived:boolean");
    vec![
        at("/deployments")
            .get(
                deployments::list,
                listed.query("created_at[gte]:time created_at[lte]:time").page("Deployment"),
            )
            .post(deployments::create, to("Create a deployment").takes("NewDeployment").gives("Deployment")),
        at("/deployments/{id}").get(deployments::read, to("Read a deployment").gives("Deployment")).update(
            deployments::update,
            to("Change a deployment").takes("DeploymentUpdate").gives("Deployment"),
        ),
        at("/deployments/{id}/pause").post(deployments::pause, to("Pause the schedule").gives("Deployment")),
        at("/deployments/{id}/unpause")
            .post(deployments::unpause, to("Resume the schedule").gives("Deployment")),
        at("/deployments/{id}/archive")
            .post(deployments::archive, to("Archive a deployment").gives("Deployment")),
        at("/deployments/{id}/run").post(deployments::run, to("Run a deployment now").gives("DeploymentRun")),
        at("/deployments/{id}/runs")
            .get(deployments::runs_of, to("List runs of a deployment").query(RUNS).page("DeploymentRun")),
        at("/deployments/{id}/runs/{run}")
            .get(deployments::read_run_of, to("Read a run of a deployment").gives("DeploymentRun")),
        at("/deployment_runs").get(
            deployments::runs,
            to("List runs").query("deployment_id:string").query(RUNS).page("DeploymentRun"),
        ),
        at("/deployment_runs/{id}").get(deployments::read_run, to("Read a run").gives("DeploymentRun")),
    ]
}

/// Endpoints that get notices.
pub(super) fn webhooks() -> Vec<Route> {
    use automation::webhooks;
    vec![
        at("/webhook/endpoints")
            .get(webhooks::list, to("List webhook endpoints").page("WebhookEndpoint"))
            .post(
                webhooks::create,
                to("Create a webhook endpoint; the answer has its secret")
                    .takes("NewWebhookEndpoint")
                    .gives("WebhookEndpoint"),
            ),
        at("/webhook/endpoints/{id}")
            .get(webhooks::read, to("Read a webhook endpoint").gives("WebhookEndpoint"))
            .update(
                webhooks::update,
                to("Change a webhook endpoint").takes("WebhookEndpointUpdate").gives("WebhookEndpoint"),
            )
            .delete(webhooks::delete, to("Delete a webhook endpoint").gives("Deleted")),
        at("/webhook/endpoints/{id}/enable")
            .post(webhooks::enable, to("Start sending to a webhook endpoint").gives("WebhookEndpoint")),
        at("/webhook/endpoints/{id}/disable")
            .post(webhooks::disable, to("Stop sending to a webhook endpoint").gives("WebhookEndpoint")),
        at("/webhook/endpoints/{id}/test").post(
            webhooks::test,
            to("Send a notice to try an endpoint").gives("WebhookTest").statuses(&[202]),
        ),
        at("/webhook/endpoints/{id}/deliveries").get(
            webhooks::deliveries,
            to("List deliveries to an endpoint")
                .query("status:'pending|delivered|failed'")
                .page("WebhookDelivery"),
        ),
    ]
}

/// Models that agents can have.
pub(super) fn models() -> Vec<Route> {
    vec![
        at("/models").get(catalog::list, to("List models").page("Model")),
        at("/models/{*id}").get(catalog::read, to("Read a model").gives("Model")),
    ]
}
