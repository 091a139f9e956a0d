//! A model that can be replaced by another while a session runs, for good or for one turn. A call that has begun ends with
//! the model it began with; the next one asks the new model.

use std::sync::{Arc, PoisonError, RwLock};

use futures::stream::BoxStream;
use qoder_core::ports::{Model, ModelEvent, ModelFacts, ModelRequest};
use qoder_types::ModelFailure;

/// A model that can be replaced.
pub struct SwitchedModel {
    current: RwLock<Arc<dyn Model>>,
    /// The model of the turn that is open, under the name that its command gave.
    for_turn: RwLock<Option<(String, Arc<dyn Model>)>>,
}

impl SwitchedModel {
    /// Begins with `model`.
    #[must_use]
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self { current: RwLock::new(model), for_turn: RwLock::new(None) }
    }

    /// The model that the next call asks.
    #[must_use]
    pub fn current(&self) -> Arc<dyn Model> {
        if let Some((_, model)) = &*self.for_turn.read().unwrap_or_else(PoisonError::into_inner) {
            return Arc::clone(model);
        }
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks `model` from the next call on; while a turn has a model of its own, from its end on.
    pub fn switch(&self, model: Arc<dyn Model>) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = model;
    }

    /// Asks the model of a turn in place of the session's, or that again.
    pub fn switch_for_turn(&self, model: Option<(String, Arc<dyn Model>)>) {
        *self.for_turn.write().unwrap_or_else(PoisonError::into_inner) = model;
    }

    /// The name of the turn's own model.
    #[must_use]
    pub fn name_for_turn(&self) -> Option<String> {
        let for_turn = self.for_turn.read().unwrap_or_else(PoisonError::into_inner);
        for_turn.as_ref().map(|(name, _)| name.clone())
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
