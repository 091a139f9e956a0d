//! `qodercli models`: list what the configured providers offer, and try one of them for real.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use qoder_models::{Check, CheckReport, CheckedProfile, Finding, Probe, Progress, Verdict};
use qoder_runtime::setup::{Options, Setup};
use qoder_types::{ModelFailure, ModelFailureClass};
use serde_json::{Value, json};

use crate::command_line::place::PlaceArguments;
use crate::exit::{Exit, Fault};
use crate::screen;
use crate::screen::{Ink, Paint, Painted};

/// Examples for `qodercli models --help`.
pub const HELP: &str = "\
Examples:
  qodercli models list
  qodercli models check
  qodercli models check local/qwen3-30b
  qodercli models check --base-url http://localhost:8080/v1 --api-style openai-chat

docs/models.md explains providers and compatibility profiles.";

const CHECK_HELP: &str = "\
Each row is a small request: text, streaming, token counts, a tool call and its result, two calls at once, a picture,
reasoning, and a prompt of some thousand tokens. `partly` means that the server accepted the request and the model did
less than asked. A request that could cost more than is left of --max-cost is not sent.

Exit code 0 when text and tool calls are accepted, 41 for a rejected key, 52 for a configuration error, else 1.";

/// What to do about models.
#[derive(Debug, Subcommand)]
pub enum ModelsAction {
    /// List the models of every configured provider.
    List {
        #[command(flatten)]
        place: PlaceArguments,
        #[command(flatten)]
        endpoint: EndpointArguments,
    },
    /// Send small requests to a model and print what works.
    #[command(after_help = CHECK_HELP)]
    Check {
        /// A model, or a provider to check its default model. Without it, the model that a session would use.
        name: Option<String>,
        /// Maximum cost in dollars.
        #[arg(long, value_name = "USD", default_value_t = 0.01, value_parser = dollars)]
        max_cost: f64,
        #[command(flatten)]
        place: PlaceArguments,
        #[command(flatten)]
        endpoint: EndpointArguments,
    },
}

/// An endpoint that is not in the settings.
#[derive(Debug, Args)]
pub struct EndpointArguments {
    /// Address of a model endpoint.
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// Protocol of the endpoint: anthropic, openai-chat or openai-responses.
    #[arg(long, value_name = "STYLE", requires = "base_url")]
    pub api_style: Option<String>,
    /// Environment variable that holds the key.
    #[arg(long, value_name = "NAME", requires = "base_url")]
    pub api_key_env: Option<String>,
}

fn dollars(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount >= 0.0 => Ok(amount),
        Ok(_) | Err(_) => Err("expected an amount of dollars such as 0.05".to_owned()),
    }
}

/// Runs the subcommand.
pub fn run(action: ModelsAction, environment: BTreeMap<String, String>) -> Result<Exit, Fault> {
    match action {
        ModelsAction::List { place, endpoint } => {
            let as_json = place.json;
            let setup = prepare(place, endpoint, environment)?;
            list(&setup, as_json)
        }
        ModelsAction::Check { name, max_cost, place, endpoint } => {
            let as_json = place.json;
            let paint = Paint::of_stdout(&environment);
            let setup = prepare(place, endpoint, environment)?;
            check(&setup, name.as_deref(), max_cost, as_json, paint)
        }
    }
}

fn prepare(
    place: PlaceArguments,
    endpoint: EndpointArguments,
    environment: BTreeMap<String, String>,
) -> Result<Setup, Fault> {
    let EndpointArguments { base_url, api_style, api_key_env } = endpoint;
    place.prepare_with(Options { base_url, api_style, api_key_env, environment, ..Options::default() })
}

/// Asks the providers for their models and prints them.
pub fn list(setup: &Setup, as_json: bool) -> Result<Exit, Fault> {
    let listed = runtime()?.block_on(qoder_models::list_models(setup.model_options()));
    let models = listed.map_err(|failure| endpoint_fault(&failure))?;
    if as_json {
        let list: Vec<Value> = models
            .iter()
            .map(|model| json!({"id": model.id, "displayName": model.display_name, "provider": model.provider}))
            .collect();
        screen::print_json_line(Value::Array(list).to_string())?;
        return Ok(Exit::Success);
    }
    for model in models {
        match model.display_name {
            Some(name) => screen::print_row(&format!("{}  {name}  [{}]", model.id, model.provider))?,
            None => screen::print_row(&format!("{}  [{}]", model.id, model.provider))?,
        }
    }
    Ok(Exit::Success)
}

fn check(
    setup: &Setup,
    name: Option<&str>,
    max_cost: f64,
    as_json: bool,
    paint: Paint,
) -> Result<Exit, Fault> {
    let check = Check::new(setup.model_options(), name, max_cost).map_err(|error| Fault {
        exit: Exit::Configuration,
        message: error.to_string(),
        hint: error.hint(),
    })?;
    let (model, provider) = check.subject();
    let base_url = setup.model_options().base_url.as_deref();
    if !as_json {
        screen::print_painted(&paint.line().ink(Ink::Bold, &model).plain(&format!(" at {provider}")))?;
    }
    let mut printed = Ok(());
    let report = runtime()?.block_on(check.run(|progress| match progress {
        Progress::Found(finding) if !as_json && printed.is_ok() => {
            printed = screen::print_painted(&row(paint, finding));
        }
        Progress::Found(_) => {}
        Progress::Waiting { probe, elapsed } => {
            screen::print_note(&format!("{}: no answer yet after {} s", probe.name(), elapsed.as_secs()));
        }
    }));
    printed?;
    if as_json {
        screen::print_json(&as_value(&model, &provider, &report))?;
    } else {
        print_summary(&report, base_url, paint)?;
    }
    Ok(exit_of(&report))
}

fn print_summary(report: &CheckReport, base_url: Option<&str>, paint: Paint) -> Result<(), Fault> {
    if let Some(profile) = &report.profile {
        let CheckedProfile { provider, protocol, name, reason, compat } = profile;
        screen::print_painted(
            &paint.line().plain("profile: ").ink(Ink::Bold, name).plain(&format!(" ({reason})")),
        )?;
        // A session reads neither the list of models nor this report.
        if !compat.is_empty() {
            let settings = match base_url {
                Some(url) => json!({"protocol": protocol, "baseUrl": url, "compat": compat}),
                None => json!({"compat": compat}),
            };
            let name = if base_url.is_some() { "NAME" } else { provider };
            let line = json!({"providers": {name: settings}});
            screen::print_row(&format!("to keep what was found out, add to your settings: {line}"))?;
        }
    }
    if let Some(cost) = report.cost_usd {
        screen::print_painted(&paint.line().ink(Ink::Faint, &format!("cost: ${cost:.4}")))?;
    }
    Ok(())
}

fn row(paint: Paint, finding: &Finding) -> Painted {
    let ink = match finding.verdict {
        Verdict::Works => Ink::Good,
        Verdict::Partly => Ink::Warning,
        Verdict::Fails => Ink::Bad,
        Verdict::Skipped => Ink::Faint,
    };
    let longest = Probe::ALL.iter().map(|probe| probe.name().len()).max().unwrap_or_default();
    let time = match finding.verdict {
        Verdict::Skipped => String::new(),
        Verdict::Works | Verdict::Partly | Verdict::Fails => format!("{} ms", finding.duration_ms),
    };
    paint
        .line()
        .plain(&format!("  {:longest$}  ", finding.probe.name()))
        .ink(ink, &format!("{:7}", finding.verdict.name()))
        .ink(Ink::Faint, &format!("  {time:>9}  "))
        .plain(&finding.detail)
}

fn as_value(model: &str, provider: &str, report: &CheckReport) -> Value {
    let findings: Vec<Value> = report
        .findings
        .iter()
        .map(|finding| {
            json!({
                "probe": finding.probe.name(),
                "verdict": finding.verdict.name(),
                "detail": finding.detail,
                "durationMs": finding.duration_ms,
            })
        })
        .collect();
    json!({
        "model": model,
        "provider": provider,
        "usable": report.is_usable(),
        "findings": findings,
        "costUsd": report.cost_usd,
        "profile": report.profile.as_ref().map(|profile| {
            json!({"name": profile.name, "reason": profile.reason, "compat": profile.compat})
        }),
    })
}

fn exit_of(report: &CheckReport) -> Exit {
    match (report.is_usable(), report.first_failure()) {
        (true, _) => Exit::Success,
        (false, Some(ModelFailureClass::Authentication)) => Exit::Authentication,
        (false, Some(ModelFailureClass::Configuration)) => Exit::Configuration,
        (
            false,
            None
            | Some(
                ModelFailureClass::Permission
                | ModelFailureClass::Quota
                | ModelFailureClass::NotFound
                | ModelFailureClass::RateLimit
                | ModelFailureClass::Overloaded
                | ModelFailureClass::ContextTooLong
                | ModelFailureClass::InvalidRequest
                | ModelFailureClass::Server
                | ModelFailureClass::Network
                | ModelFailureClass::Timeout
                | ModelFailureClass::MalformedStream,
            ),
        ) => Exit::General,
    }
}

fn endpoint_fault(failure: &ModelFailure) -> Fault {
    Fault {
        exit: if failure.class == ModelFailureClass::Authentication {
            Exit::Authentication
        } else {
            Exit::General
        },
        message: failure.message.clone(),
        hint: "see docs/models.md for how to configure a provider".to_owned(),
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, Fault> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| Fault {
        exit: Exit::General,
        message: error.to_string(),
        hint: String::new(),
    })
}
