//! An image model that a front chooses anew before each call, as it chooses every model. Whether it answers for that
//! purpose is asked once, before the first turn; where the settings name an image model the front is not asked.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use qoder_core::images::{ImageFailure, ImageModel, ImageReply, ImageRequest};

use crate::model_policy::PolicyModel;

/// An image model that a front chooses.
pub(crate) struct PolicyImages {
    policy: PolicyModel,
    is_known: Arc<AtomicBool>,
    /// True until the front was asked, when it has to be.
    is_open: Mutex<bool>,
}

impl PolicyImages {
    /// Asks `policy` before each call; and once before the first turn, unless it `is_known` that it has an answer.
    pub(crate) fn new(policy: PolicyModel, is_known: bool) -> Self {
        Self { policy, is_known: Arc::new(AtomicBool::new(is_known)), is_open: Mutex::new(!is_known) }
    }
}

impl ImageModel for PolicyImages {
    fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    fn learn(&self, session_id: &str) -> Option<BoxFuture<'static, ()>> {
        let is_open = std::mem::take(&mut *self.is_open.lock().unwrap_or_else(PoisonError::into_inner));
        if !is_open {
            return None;
        }
        let (policy, is_known) = (self.policy.clone(), Arc::clone(&self.is_known));
        let session_id = session_id.to_owned();
        Some(Box::pin(async move {
            // Who has no answer for this purpose has no image model; that is no failure of the session.
            let answered = policy.image_model(&session_id).await.is_ok();
            is_known.store(answered, Ordering::Relaxed);
        }))
    }

    fn make(&self, mut request: ImageRequest) -> BoxFuture<'static, Result<ImageReply, ImageFailure>> {
        let policy = self.policy.clone();
        Box::pin(async move {
            let chosen = policy.image_model(&request.session_id).await.map_err(ImageFailure::NoModel)?;
            request.parameters = chosen.parameters;
            let mut reply = chosen.model.make(request).await?;
            // What runs on the user's own key costs the platform nothing.
            if chosen.own_key {
                reply.cost_usd = 0.0;
            }
            Ok(reply)
        })
    }
}
