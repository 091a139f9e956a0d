//! A model that can be replaced by another while a session runs. A call that has begun ends with the model it began
//! with; the next one asks the new model.

use std::sync::{Arc, PoisonError, RwLock};

use futures::stream::BoxStream;
use qoder_core::ports::{Model, ModelEvent, ModelFacts, ModelRequest};
use qoder_types::ModelFailure;

/// A model that can be replaced.
pub struct SwitchedModel {
    current: RwLock<Arc<dyn Model>>,
}

impl SwitchedModel {
    /// Begins with `model`.
    #[must_use]
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self { current: RwLock::new(model) }
    }

    /// The model that the next call asks.
    #[must_use]
    pub fn current(&self) -> Arc<dyn Model> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks `model` from the next call on.
    pub fn switch(&self, model: Arc<dyn Model>) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = model;
    }
}

impl Model for SwitchedModel {
    fn facts(&self) -> ModelFacts {
        self.current().facts()
    }

    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelFailure>> {
        self.current().stream(request)
    }
}
