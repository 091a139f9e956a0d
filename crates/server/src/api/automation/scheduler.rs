//! Carries out runs that are due: creates their sessions as a client would.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

use crate::api::app::App;
use crate::api::sessions::{self, Creator};
use crate::http::{self as edge, ApiError};
use crate::model::deployment::Template;
use crate::model::dialect::Dialect;
use crate::model::run::{Run, RunError};
use crate::model::time::Time;
use crate::secrets::{DataKey, SealError};
use crate::store::{DbError, DeploymentRow, Done, DueRun, Once, Sent, SessionRow};

/// How often runs are looked for.
const PAUSE: Duration = Duration::from_secs(1);
/// Runs that are taken at a time.
const MOST: usize = 16;

/// Carries out what is due, for as long as it is polled. A run that is under way when it is dropped is finished by the next node.
pub async fn run_schedules(app: Arc<App>) {
    let mut released = false;
    loop {
        match claim(&app, &mut released).await {
            Ok(due) if due.is_empty() => tokio::time::sleep(PAUSE).await,
            Ok(due) => {
                for due in due {
                    carry_out(&app, due).await;
                }
            }
            Err(error) => {
                app.edge.log.warn("schedules_failed", &[("error", &error.to_string())]);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn claim(app: &App, released: &mut bool) -> Result<Vec<DueRun>, DbError> {
    if !*released {
        app.store.db.void_runs(app.node.id()).await?;
        *released = true;
    }
    // A read that most often spares a write.
    if app.store.db.next_run().await?.is_none_or(|next| next > Time::now()) {
        return Ok(Vec::new());
    }
    app.store.db.claim_runs(app.node.id(), MOST).await
}

/// Carries out one run. While the database does not work it is tried again.
async fn carry_out(app: &App, due: DueRun) {
    let DueRun { run, row, data_key } = due;
    loop {
        let outcome = match app.keys.data_key(run.tenant, &data_key) {
            Ok(key) => attempt(app, &key, &row, &run, render()).await,
            Err(error) => fail(app, &run, &sealing(&error), render()).await,
        };
        match outcome {
            Ok(_) => return,
            Err(error) if error.status == StatusCode::CONFLICT => return,
            Err(error) => {
                app.edge.log.warn("run_failed", &[("run", &run.id.to_string()), ("error", &error.message)]);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

fn render() -> Once<Run> {
    Once { key: None, render: Box::new(|run: &Run| edge::kept(&run.view())) }
}

fn sealing(error: &SealError) -> ApiError {
    ApiError::new(StatusCode::CONFLICT, "api_error", error.to_string())
}

/// The template of a deployment's sessions.
pub(super) fn template(key: &DataKey, row: &DeploymentRow) -> Result<Template, SealError> {
    let opened = key.open("deployments", &row.deployment.id.to_string(), &row.sealed)?;
    serde_json::from_slice(&opened).map_err(|_| SealError::Unreadable)
}

/// Creates the session of a run, or ends the run with what that was refused with.
pub(super) async fn attempt(
    app: &App,
    key: &DataKey,
    row: &DeploymentRow,
    run: &Run,
    once: Once<Run>,
) -> Result<Done<Run>, ApiError> {
    let body = &row.deployment.body;
    let creator = Creator {
        tenant: run.tenant,
        key: key.clone(),
        user: body.user.clone(),
        token: body.token.clone(),
        // Several messages wait for each other.
        dialect: Dialect::Claude,
    };
    let mut template = match template(key, row) {
        Ok(template) => template,
        Err(error) => return fail(app, run, &sealing(&error), once).await,
    };
    // The version was fixed when the deployment was saved.
    template.insert("agent".to_owned(), row.deployment.body.shown.get("agent").cloned().unwrap_or_default());
    let prepared = sessions::prepare(app, &creator, &Value::Object(template)).await;
    let (mut create, offered) = match prepared {
        Ok(prepared) => prepared,
        Err(error) if error.status.is_server_error() => return Err(error),
        Err(error) => return fail(app, run, &error, once).await,
    };
    create.run = Some(run.clone());
    let (key, rendered, begun) = (once.key.clone(), once.render, run.clone());
    let render =
        move |(row, _): &(SessionRow, Sent)| rendered(&Run { session: Some(row.session.id), ..begun });
    match app.store.db.create_session(create, Once { key: key.clone(), render: Box::new(render) }).await {
        Ok(Done::Now((created, sent), answer)) => {
            app.node.sent(sent, offered);
            Ok(Done::Now(Run { session: Some(created.session.id), ..run.clone() }, answer))
        }
        Ok(Done::Before(answer)) => Ok(Done::Before(answer)),
        Err(DbError::Refused(refusal)) => {
            let render = Box::new(|run: &Run| edge::kept(&run.view()));
            fail(app, run, &refusal.into(), Once { key, render }).await
        }
        Err(error) => Err(error.into()),
    }
}

/// Ends a run with an error.
async fn fail(app: &App, run: &Run, error: &ApiError, once: Once<Run>) -> Result<Done<Run>, ApiError> {
    let is_missing = error.status == StatusCode::NOT_FOUND;
    let error = Some(RunError::new(error.code, is_missing, &error.message));
    Ok(app.store.db.fail_run(Run { error, ..run.clone() }, once).await?)
}
