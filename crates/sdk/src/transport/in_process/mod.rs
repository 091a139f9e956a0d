//! The engine in this process: opens the session, drives it turn by turn, and ends it cleanly, also when its messages
//! are no longer read. Everything happens on the session's own thread.

mod obey;
mod servers;
mod setup;
mod sink;

use std::path::Path;
use std::sync::Arc;

use qoder_protocol::InputAdmitted;
use qoder_runtime::sessions::requests::Greeting;
use qoder_runtime::sessions::retention::{self, Retention};
use qoder_runtime::sessions::{
    FirstPrompt, OpenRequest, OpenedSession, RequestError, SessionHandle, Sessions,
};
use qoder_runtime::sessions::{Mirror, new_id};
use qoder_runtime::setup::Setup;
use tokio::sync::mpsc;

pub(crate) use setup::settings;

use crate::error::{Error, Result};
use crate::messages::{Prompt, UserMessage, refused};
use crate::options::{OnStderr, QoderAgentOptions};
use crate::session::{MessageSender, Order, Start};
use crate::transport::next_prompt;

/// Runs a session to its end.
pub(crate) async fn run(start: &mut Start) -> Result<()> {
    let options = Arc::clone(&start.options);
    let setup = Setup::prepare(setup::engine_options(&options)?)?;
    let report = reporter(&options);
    setup.warnings.iter().for_each(|warning| report(&format!("warning: {warning}")));
    let own = servers::OwnInstances::new(&options);
    let mut callbacks = setup::callbacks(&options, &start.messages, &own);
    callbacks.agents = setup::agents(&options)?;
    let telemetry = setup.telemetry().cloned();
    let retention = retention::asked(&setup.config.settings).filter(|_| options.persist_session);
    let config_root = setup.config.config_root.clone();
    let sink = Arc::new(sink::SdkSink::new(&options, start.messages.clone())?);
    let opened = Sessions::default().open(OpenRequest {
        setup,
        callbacks,
        agent: options.agent.clone(),
        servers: servers::flags(&options)?,
        answers_own_servers: true,
        choice: options.session_choice(),
        kept: None,
        first: FirstPrompt::FromHost,
        sink: Arc::clone(&sink) as _,
        mirror: start
            .copier
            .clone()
            .map(|copier| -> Mirror { Arc::new(move |log, lines| copier.take(log, lines)) }),
        report,
    })?;
    let OpenedSession { handle, attachment: _attached } = opened;
    sink.belongs_to(handle.session_id());
    start.ready.ready(handle.request(Greeting {}).await.unwrap_or_default());
    let (finished, stop) = (handle.finished(), handle.stopper());
    let prompt = start.prompt.take();
    if start.one_shot {
        // A query has no controls, and its session ends when the last handle is gone.
        tokio::spawn(ask_all(prompt, handle, start.messages.clone()));
    } else {
        let (_, nobody) = mpsc::unbounded_channel();
        let orders = std::mem::replace(&mut start.orders, nobody);
        let obeying = obey::Obeying::new(handle, own);
        tokio::spawn(take_orders(prompt, orders, obeying, start.messages.clone()));
    }
    let finished = tokio::select! {
        biased;
        () = start.closing.cancelled() => {
            stop.close();
            finished.await
        }
        finished = finished.clone() => finished,
    };
    if let Some(telemetry) = telemetry {
        // Not awaited; a program that ends gives it the moment that it takes.
        drop(tokio::task::spawn_blocking(move || telemetry.flush()));
    }
    tidy(&config_root, retention, options.stderr.clone());
    match finished.take_error() {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

/// Prints what a person should know where the options say.
fn reporter(options: &QoderAgentOptions) -> Arc<dyn Fn(&str) + Send + Sync> {
    let stderr = options.stderr.clone();
    Arc::new(move |text| {
        if let Some(hear) = &stderr {
            hear(text);
        }
    })
}

/// Deletes old sessions when the settings ask for it. Not awaited either.
fn tidy(config_root: &Path, retention: Option<Retention>, hear: Option<OnStderr>) {
    let Some(retention) = retention else { return };
    let root = config_root.to_path_buf();
    drop(tokio::task::spawn_blocking(move || {
        if let (Some(text), Some(hear)) = (retention.after_run(&root), hear) {
            hear(&text);
        }
    }));
}

/// Sends every prompt of a query. The session ends after the last, because it cannot get another one.
async fn ask_all(mut prompt: Option<Prompt>, handle: SessionHandle, messages: MessageSender) {
    while prompt.is_some() {
        if let Some(message) = next_prompt(&mut prompt).await
            && !is_open_after(&handle, message, &messages)
        {
            return;
        }
    }
}

/// Submits a message. What no model would take is an error on the stream, and the session continues without it. False when
/// the session has ended.
fn is_open_after(handle: &SessionHandle, message: UserMessage, messages: &MessageSender) -> bool {
    match handle.submit(admitted(message)) {
        Ok(()) => true,
        Err(RequestError::Ended) => false,
        Err(RequestError::Input(problem)) => {
            messages.send(Err(refused(&problem)));
            true
        }
        Err(RequestError::Refused(problem)) => {
            messages.send(Err(Error::option("prompt", problem, "send it again, or something else")));
            true
        }
    }
}

/// Takes orders until their sender is gone.
async fn take_orders(
    mut prompt: Option<Prompt>,
    mut orders: mpsc::UnboundedReceiver<Order>,
    obeying: obey::Obeying,
    messages: MessageSender,
) {
    let obeying = Arc::new(obeying);
    loop {
        let message = tokio::select! {
            Some(message) = next_prompt(&mut prompt), if prompt.is_some() => message,
            order = orders.recv() => match order {
                None => return,
                Some(Order::Input(message)) => *message,
                Some(Order::Control(control, answer)) => {
                    let obeying = Arc::clone(&obeying);
                    tokio::spawn(async move {
                        // The caller may have given up waiting.
                        let _ = answer.send(obeying.obey(control).await);
                    });
                    continue;
                }
            },
        };
        if !is_open_after(obeying.handle(), message, &messages) {
            return;
        }
    }
}

fn admitted(message: UserMessage) -> InputAdmitted {
    let input_id = message.uuid.filter(|id| !id.trim().is_empty()).unwrap_or_else(new_id);
    InputAdmitted::user(input_id, message.message.into())
}
