//! A person for an unattended conversation: grants every access, and accepts every form with the values it
//! comes with.

use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Map, Value};
use url::Url;

use super::samples;
use crate::oauth::OAuthHttp;
use crate::questions::{
    Elicitation, ElicitationAction, ElicitationAnswer, OAuthAnswer, OAuthQuestion, ServerQuestions,
};

/// A person who says yes.
#[derive(Clone)]
pub(super) struct Person {
    browser: Arc<OAuthHttp>,
}

impl Person {
    pub(super) fn new(server_url: &str) -> Result<Self, String> {
        let server = Url::parse(server_url).map_err(|error| format!("{server_url} is not a URL: {error}"))?;
        Ok(Self { browser: Arc::new(OAuthHttp::new(&server)) })
    }

    /// Opens the page where access is granted; where it leads to is the callback.
    pub(super) async fn authorize(&self, auth_url: &str) -> Result<String, String> {
        let request = http::Request::get(auth_url).body(Vec::new()).map_err(|error| error.to_string())?;
        let answer = self.browser.ask(request).await.map_err(|error| error.to_string())?;
        let location = answer.headers().get(http::header::LOCATION).and_then(|value| value.to_str().ok());
        location
            .map(str::to_owned)
            .ok_or_else(|| format!("access was not granted (HTTP {})", answer.status()))
    }
}

impl ServerQuestions for Person {
    fn elicit(&self, question: Elicitation) -> BoxFuture<'static, ElicitationAnswer> {
        let content: Map<String, Value> = samples::form(question.requested_schema.as_ref());
        let answer = ElicitationAnswer { action: ElicitationAction::Accept, content: Some(content) };
        std::future::ready(answer).boxed()
    }

    fn roots(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    fn can_authorize(&self) -> bool {
        false
    }

    fn authorize(&self, _: OAuthQuestion) -> BoxFuture<'static, OAuthAnswer> {
        std::future::ready(OAuthAnswer::Rejected).boxed()
    }
}
