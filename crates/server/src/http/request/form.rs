//! Forms with files (`multipart/form-data`). A form is read part by part, so that files go to where they are kept without being
//! held in memory; the whole is bounded in size and time like every body.

use std::time::Duration;

use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{FromRequest, Multipart, Request};
use bytes::Bytes;
use http::StatusCode;
use tokio::time::{Instant, timeout_at};

use super::ApiRequest;
use super::body::LARGEST;
use crate::http::errors::ApiError;
use crate::model::problem::Problem;

/// How long a form may take to arrive.
const PATIENCE: Duration = Duration::from_secs(600);
/// The most parts of a form.
const MOST_PARTS: usize = 2_000;
/// The longest value of a part that is not a file.
const LONGEST_VALUE: usize = 64 * 1024;

/// Begins to read a form.
///
/// # Errors
/// When the request is not a form, or announces more than is accepted.
pub async fn form(request: Request) -> Result<(ApiRequest, FormReader), ApiError> {
    let (begun, request) = ApiRequest::begin(request).await?;
    if begun.announced().is_some_and(|length| length > LARGEST as u64) {
        return Err(too_large());
    }
    let multipart = Multipart::from_request(request, &()).await.map_err(|_| {
        ApiError::invalid("The request must be a form: `multipart/form-data` with a boundary.")
    })?;
    let reader = FormReader {
        multipart,
        budget: Budget { left: LARGEST, until: Instant::now() + PATIENCE },
        parts: 0,
    };
    Ok((begun, reader))
}

fn too_large() -> ApiError {
    ApiError::invalid(format!("The request body is larger than {} MiB.", LARGEST / 1024 / 1024))
}

fn broken(_: MultipartError) -> ApiError {
    ApiError::invalid("The form is not valid, or ended before it was complete.")
}

/// What is left of the bounds of a form.
#[derive(Debug, Clone, Copy)]
struct Budget {
    left: usize,
    until: Instant,
}

impl Budget {
    async fn within<T>(&self, work: impl Future<Output = Result<T, MultipartError>>) -> Result<T, ApiError> {
        match timeout_at(self.until, work).await {
            Ok(done) => done.map_err(broken),
            Err(_) => Err(ApiError::new(
                StatusCode::REQUEST_TIMEOUT,
                "invalid_request_error",
                format!("The form did not arrive within {} s.", PATIENCE.as_secs()),
            )),
        }
    }
}

/// Reads the parts of a form, in order.
#[derive(Debug)]
pub struct FormReader {
    multipart: Multipart,
    budget: Budget,
    parts: usize,
}

impl FormReader {
    /// The next part; `None` at the end.
    ///
    /// # Errors
    /// When the form is broken, too long or too late.
    pub async fn next(&mut self) -> Result<Option<FormPart<'_>>, ApiError> {
        self.parts += 1;
        if self.parts > MOST_PARTS {
            return Err(ApiError::invalid(format!("The form has more than {MOST_PARTS} parts.")));
        }
        let budget = self.budget;
        let field = budget.within(self.multipart.next_field()).await?;
        Ok(field.map(|field| FormPart { field, budget: &mut self.budget }))
    }
}

/// A part of a form.
#[derive(Debug)]
pub struct FormPart<'a> {
    field: Field<'a>,
    budget: &'a mut Budget,
}

impl FormPart<'_> {
    /// The name of its field.
    #[must_use]
    pub fn name(&self) -> String {
        self.field.name().unwrap_or_default().to_owned()
    }

    /// The name of its file, when it is one.
    #[must_use]
    pub fn file_name(&self) -> Option<String> {
        self.field.file_name().map(str::to_owned)
    }

    /// The media type that it came with.
    #[must_use]
    pub fn media_type(&self) -> Option<String> {
        self.field.content_type().map(str::to_owned)
    }

    /// The next bytes; `None` at its end.
    ///
    /// # Errors
    /// When the form is broken, too long or too late.
    pub async fn bytes(&mut self) -> Result<Option<Bytes>, ApiError> {
        let budget = *self.budget;
        let Some(bytes) = budget.within(self.field.chunk()).await? else { return Ok(None) };
        self.budget.left = self.budget.left.checked_sub(bytes.len()).ok_or_else(too_large)?;
        Ok(Some(bytes))
    }

    /// All of it as text.
    ///
    /// # Errors
    /// When it is too long for a value, or not UTF-8.
    pub async fn text(mut self) -> Result<String, ApiError> {
        let name = self.name();
        let mut value = Vec::new();
        while let Some(bytes) = self.bytes().await? {
            value.extend_from_slice(&bytes);
            if value.len() > LONGEST_VALUE {
                let problem = format!("has more than {LONGEST_VALUE} bytes");
                return Err(Problem::field(name, problem).into());
            }
        }
        String::from_utf8(value).map_err(|_| Problem::field(name, "is not UTF-8").into())
    }
}
