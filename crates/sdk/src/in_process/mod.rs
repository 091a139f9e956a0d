//! The engine in this process: opens the session, drives it turn by turn, and ends it cleanly, also when nobody reads
//! any more. Everything happens on the session's own thread.

mod host;
mod obey;
mod servers;
mod setup;

use std::path::Path;
use std::sync::Arc;

use qoder_runtime::driver::Driver;
use qoder_runtime::interrupt::Interrupt;
use qoder_runtime::live::{Desk, Handle, Live};
use qoder_runtime::notice::Notice;
use qoder_runtime::retention::Retention;
use qoder_runtime::session::new_id;
use qoder_runtime::setup::Setup;
use qoder_types::record::InputAdmitted;
use tokio::sync::mpsc;

pub(crate) use setup::settings;

use crate::options::OnStderr;
use crate::prompt::Prompt;
use crate::session::{Order, Start, next_prompt};
use crate::{Result, UserMessage};

/// Runs a session to its end.
pub(crate) async fn run(start: &mut Start) -> Result<()> {
    let options = Arc::clone(&start.options);
    let mut setup = Setup::prepare(setup::engine_options(&options)?)?;
    if let Some(hear) = &options.stderr {
        for warning in &setup.warnings {
            hear(&format!("warning: {warning}"));
        }
    }
    let host = Arc::new(host::SdkHost::new(&options, start.messages.clone())?);
    let own = servers::OwnInstances::new(&options);
    let mut callbacks = setup::callbacks(&options, &start.messages, &own);
    callbacks.agents = setup::agents(&options)?;
    let told = setup.warnings.len();
    let initial = setup.become_main(options.agent.as_deref(), &callbacks.agents)?;
    let mut warnings = setup.warnings.split_off(told);
    let of_servers = setup.bring_servers(&servers::flags(&options)?, &mut callbacks)?;
    warnings.extend(of_servers.into_iter().map(Notice::from));
    if let Some(hear) = &options.stderr {
        warnings.iter().for_each(|warning| hear(&format!("warning: {warning}")));
    }
    setup.warnings.extend(warnings);
    let setup = Arc::new(setup);
    let telemetry = setup.telemetry().cloned();
    let retention = Retention::asked(&setup.settings).filter(|_| options.persist_session);
    let config_root = setup.config_root.clone();
    let engine = Arc::new(setup.engine(Arc::clone(&host) as _, callbacks.clone())?);
    if let Some(hear) = &options.stderr {
        let loaded = engine.extensions.current();
        loaded.problems.iter().for_each(|problem| hear(&format!("warning: {problem}")));
    }
    let mut session = options.session_choice().open(&setup)?;
    host.belongs_to(&session.id);
    if let Some(copier) = start.copier.clone() {
        session.mirror_to(Arc::new(move |log, lines| copier.take(log, lines)));
    }
    if start.prompt.is_some() && session.state.turn.is_some() {
        Driver::new(&engine, &mut session, Interrupt::default()).close_unfinished_turn()?;
    }
    let outputs = (!options.persist_session).then(|| session.outputs().to_path_buf());
    let (mut live, handle) = Live::new(engine, session);
    if let Some(prompt) = initial {
        live.begin_with(&prompt)?;
    }
    let desk = Desk::new(handle.clone(), setup, callbacks);
    start.ready.ready(desk.greeting());
    let prompt = start.prompt.take();
    if start.one_shot {
        // Nobody asks for anything, and the session ends when the last handle is gone.
        drop(desk);
        tokio::spawn(ask_all(prompt, handle));
    } else {
        drop(handle);
        let (_, nobody) = mpsc::unbounded_channel();
        let orders = std::mem::replace(&mut start.orders, nobody);
        let obeying = obey::Obeying::new(desk, own);
        tokio::spawn(take_orders(prompt, orders, obeying));
    }
    let driven = drive(&mut live, &start.closing).await;
    let ended = live.end().await;
    drop(live);
    if let Some(telemetry) = telemetry {
        // Nobody waits for it; a program that ends gives it the moment that it takes.
        drop(tokio::task::spawn_blocking(move || telemetry.flush()));
    }
    tidy(&config_root, retention, options.stderr.clone());
    if let Some(outputs) = outputs {
        // Often there is none; one that cannot be removed is in the system's temporary folder.
        let _ = std::fs::remove_dir_all(outputs);
    }
    driven?;
    Ok(ended?)
}

/// Deletes old sessions when the settings speak of it. Nobody waits for that either.
fn tidy(config_root: &Path, retention: Option<Retention>, hear: Option<OnStderr>) {
    let Some(retention) = retention else { return };
    let root = config_root.to_path_buf();
    drop(tokio::task::spawn_blocking(move || {
        if let (Some(text), Some(hear)) = (retention.after_run(&root), hear) {
            hear(&text);
        }
    }));
}

/// Drives turn after turn until nothing can come any more or somebody closes the session.
async fn drive(live: &mut Live, closing: &Interrupt) -> Result<()> {
    let closed = closing.cancelled();
    loop {
        let more = tokio::select! {
            biased;
            () = closed.clone() => false,
            more = live.ready() => more?,
        };
        if !more {
            return Ok(());
        }
        let interrupt = Interrupt::default();
        let turn = live.turn(interrupt.clone());
        let stop = async {
            closed.clone().await;
            interrupt.trigger();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            ended = turn => {
                ended?;
            }
            () = stop => {}
        }
    }
}

/// Sends every prompt of a query. The session ends after the last, because nobody can send any more.
async fn ask_all(mut prompt: Option<Prompt>, handle: Handle) {
    while prompt.is_some() {
        if let Some(message) = next_prompt(&mut prompt).await
            && handle.submit(admitted(message)).is_err()
        {
            return;
        }
    }
}

/// Takes orders until whoever gives them is gone.
async fn take_orders(
    mut prompt: Option<Prompt>,
    mut orders: mpsc::UnboundedReceiver<Order>,
    obeying: obey::Obeying,
) {
    let obeying = Arc::new(obeying);
    loop {
        let message = tokio::select! {
            Some(message) = next_prompt(&mut prompt), if prompt.is_some() => message,
            order = orders.recv() => match order {
                None => return,
                Some(Order::Input(message)) => message,
                Some(Order::Control(control, answer)) => {
                    let obeying = Arc::clone(&obeying);
                    tokio::spawn(async move {
                        // Whoever asked may have given up waiting.
                        let _ = answer.send(obeying.obey(control).await);
                    });
                    continue;
                }
            },
        };
        if obeying.handle().submit(admitted(message)).is_err() {
            return;
        }
    }
}

fn admitted(message: UserMessage) -> InputAdmitted {
    InputAdmitted {
        input_id: message.uuid.filter(|id| !id.trim().is_empty()).unwrap_or_else(new_id),
        message: qoder_types::Message { role: message.message.role, content: message.message.content },
    }
}
