//! Grading work against a rubric: a side call for a front that has a session work until it is satisfied.

use std::sync::{Arc, PoisonError};

use qoder_core::ports::{SideQuestion, Spent};
use qoder_protocol::RequestError;
use qoder_types::{Purpose, Usage};

use super::{Grade, RequestContext};

/// The longest answer, in tokens.
const LONGEST: u32 = 4_000;

impl RequestContext {
    /// Asks the session's model beside the conversation. What it costs is on record.
    ///
    /// # Errors
    /// When nothing may be spent, the model fails, or the session has ended.
    pub(super) async fn grade_work(&self, system: String, prompt: String) -> Result<Grade, RequestError> {
        let refused = |problem: String| RequestError::Refused(format!("grade_work: {problem}"));
        let spent = Spent::default();
        let account = Arc::clone(&spent);
        let ask = self.session.run(move |driver| Ok(driver.side_call(&account))).await?.map_err(refused)?;
        let question = SideQuestion { purpose: Purpose::Grading, system, prompt, max_output_tokens: LONGEST };
        let answer = ask(question).await;
        let mut usage = Usage::default();
        for call in spent.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            usage.add(&call.usage);
        }
        self.session.run(move |driver| driver.record_spent(&spent)).await?;
        Ok(Grade { text: answer.map_err(refused)?, usage })
    }
}
