//! Routes with their operations: the handler of each, and what the document says about it.

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::handler::Handler;
use axum::routing::MethodRouter;

use crate::api::app::App;

/// What an operation answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gives {
    /// A value of this schema.
    One(&'static str),
    /// A page of such values.
    Page(&'static str),
    /// Bytes of a file.
    Bytes,
    /// A link to a file or its bytes, as the client accepts them.
    LinkOrBytes,
    /// Events of a session, as server-sent events.
    Events,
    /// Text.
    Text,
}

/// What an operation takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// No body, or an empty one.
    Nothing,
    /// A value of this schema.
    Json(&'static str),
    /// A form of this schema.
    Form(&'static str),
}

/// What the document says about a method of a path.
#[derive(Debug, Clone)]
pub(super) struct Operation {
    /// What it does.
    pub(super) summary: &'static str,
    /// Parameters behind `?`, in the notation of schemas.
    pub(super) query: Vec<&'static str>,
    /// The body of the request.
    pub(super) takes: Takes,
    /// The body of the answer.
    pub(super) gives: Gives,
    /// The status of the answer.
    pub(super) statuses: &'static [u16],
    /// True when no token is needed.
    pub(super) is_open: bool,
}

impl Operation {
    pub(super) fn new(summary: &'static str) -> Self {
        let (takes, gives) = (Takes::Nothing, Gives::Text);
        Self { summary, query: Vec::new(), takes, gives, statuses: &[200], is_open: false }
    }

    pub(super) fn query(mut self, notation: &'static str) -> Self {
        self.query.push(notation);
        self
    }

    pub(super) fn takes(self, schema: &'static str) -> Self {
        Self { takes: Takes::Json(schema), ..self }
    }

    pub(super) fn form(self, schema: &'static str) -> Self {
        Self { takes: Takes::Form(schema), ..self }
    }

    pub(super) fn gives(self, schema: &'static str) -> Self {
        Self { gives: Gives::One(schema), ..self }
    }

    pub(super) fn page(self, schema: &'static str) -> Self {
        Self { gives: Gives::Page(schema), ..self }
            .query("limit:integer page:string after_id:string before_id:string")
    }

    pub(super) fn bytes(self) -> Self {
        Self { gives: Gives::Bytes, ..self }
    }

    pub(super) fn link_or_bytes(self) -> Self {
        Self { gives: Gives::LinkOrBytes, ..self }
    }

    pub(super) fn events(self) -> Self {
        Self { gives: Gives::Events, ..self }
    }

    pub(super) fn text(self) -> Self {
        Self { gives: Gives::Text, ..self }
    }

    pub(super) fn statuses(self, statuses: &'static [u16]) -> Self {
        Self { statuses, ..self }
    }

    pub(super) fn open(self) -> Self {
        Self { is_open: true, ..self }
    }
}

/// A path with its methods.
pub(super) struct Route {
    pub(super) path: &'static str,
    pub(super) handler: MethodRouter<Arc<App>>,
    pub(super) operations: Vec<(&'static str, Operation)>,
}

/// A path without methods yet.
pub(super) fn at(path: &'static str) -> Route {
    Route { path, handler: MethodRouter::new(), operations: Vec::new() }
}

impl Route {
    fn with(mut self, method: &'static str, operation: Operation, handler: MethodRouter<Arc<App>>) -> Self {
        self.operations.push((method, operation));
        Self { handler, ..self }
    }

    pub(super) fn get<H: Handler<T, Arc<App>>, T: 'static>(
        mut self,
        handler: H,
        operation: Operation,
    ) -> Self {
        let all = std::mem::take(&mut self.handler).get(handler);
        self.with("get", operation, all)
    }

    pub(super) fn post<H: Handler<T, Arc<App>>, T: 'static>(
        mut self,
        handler: H,
        operation: Operation,
    ) -> Self {
        let all = std::mem::take(&mut self.handler).post(handler);
        self.with("post", operation, all)
    }

    pub(super) fn delete<H: Handler<T, Arc<App>>, T: 'static>(
        mut self,
        handler: H,
        operation: Operation,
    ) -> Self {
        let all = std::mem::take(&mut self.handler).delete(handler);
        self.with("delete", operation, all)
    }

    /// A change, by every method that clients of one generation or another use for it.
    pub(super) fn update<H: Handler<T, Arc<App>>, T: 'static>(
        self,
        handler: H,
        operation: Operation,
    ) -> Self {
        let mut route = self.post(handler.clone(), operation.clone());
        let all = std::mem::take(&mut route.handler).put(handler.clone());
        let mut route = route.with("put", operation.clone(), all);
        let all = std::mem::take(&mut route.handler).patch(handler);
        route.with("patch", operation, all)
    }

    /// Uploads are bounded by the route itself.
    pub(super) fn unbounded(mut self) -> Self {
        self.handler = std::mem::take(&mut self.handler).layer(DefaultBodyLimit::disable());
        self
    }
}
