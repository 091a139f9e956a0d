//! When the tools of servers would fill too much of the context, the model is not offered each of them: it looks them up by
//! name through the tool `Mcp`. Once that is so it stays so, and the beginning of the prompt stays the same.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use qoder_core::ports::Tool;

/// The tool through which others are looked up.
pub const LOOK_UP: &str = "Mcp";
/// The share of the context that definitions may fill: one of so many parts.
const SHARE: u64 = 10;
/// Bytes that count as a token, as everywhere where nothing better is known.
const BYTES_PER_TOKEN: u64 = 4;
/// The most names of servers in the prompt.
const MOST_NAMES: usize = 100;

/// Whether tools are looked up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LazyLoad {
    /// Always.
    Always,
    /// Never.
    Never,
    /// When the definitions would fill more than a tenth of the context.
    #[default]
    Auto,
}

/// Returns how many tokens the model's context has.
pub type Window = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Decides whether tools are looked up.
pub struct Lazy {
    mode: LazyLoad,
    window: Window,
    active: AtomicBool,
    /// What was measured last, and its size in bytes.
    measured: Mutex<(Vec<usize>, u64)>,
}

impl Lazy {
    /// Decides by `mode` and the size of the context.
    #[must_use]
    pub fn new(mode: LazyLoad, window: Window) -> Self {
        Self { mode, window, active: AtomicBool::new(false), measured: Mutex::default() }
    }

    /// True when these tools are not offered one by one.
    #[must_use]
    pub fn hides(&self, tools: &[Arc<dyn Tool>]) -> bool {
        let hides = match self.mode {
            LazyLoad::Never => false,
            LazyLoad::Always => true,
            LazyLoad::Auto => {
                self.active.load(Ordering::Relaxed)
                    || self.size(tools) / BYTES_PER_TOKEN > (self.window)() / SHARE
            }
        };
        if hides && !tools.is_empty() {
            self.active.store(true, Ordering::Relaxed);
        }
        hides && !tools.is_empty()
    }

    fn size(&self, tools: &[Arc<dyn Tool>]) -> u64 {
        let places: Vec<usize> = tools.iter().map(|tool| Arc::as_ptr(tool).cast::<()>() as usize).collect();
        let mut measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        if measured.0 != places {
            let bytes = |tool: &Arc<dyn Tool>| {
                let definition = tool.definition();
                definition.name.len()
                    + definition.description.len()
                    + definition.input_schema.to_string().len()
            };
            *measured = (places, tools.iter().map(bytes).sum::<usize>() as u64);
        }
        measured.1
    }
}

/// What the description of the tool that looks others up says besides: whose tools there are.
#[must_use]
pub fn note(tools: &[Arc<dyn Tool>]) -> String {
    let server = |tool: &Arc<dyn Tool>| {
        let rest = tool.definition().name.strip_prefix("mcp__")?.to_owned();
        rest.split_once("__").map(|(server, _)| server.to_owned())
    };
    let mut named: Vec<String> = tools.iter().filter_map(server).collect();
    named.dedup();
    named.truncate(MOST_NAMES);
    format!(
        "\n\nThe tools of these servers are not in your list, because there are too many; find them with action list: {}.",
        named.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::BoxFuture;
    use qoder_core::ports::{Access, ToolContext, ToolOutcome};
    use qoder_types::{ReplayClass, ToolAnnotations, ToolDefinition};
    use serde_json::{Value, json};

    use super::*;

    struct Described(ToolDefinition);

    impl Tool for Described {
        fn definition(&self) -> &ToolDefinition {
            &self.0
        }

        fn annotations(&self) -> ToolAnnotations {
            ToolAnnotations { read_only_hint: false, destructive_hint: true, open_world_hint: true }
        }

        fn replay(&self) -> ReplayClass {
            ReplayClass::Effectful
        }

        fn is_read_only(&self, _: &Value) -> bool {
            false
        }

        fn accesses(&self, _: &Value) -> Vec<Access> {
            vec![Access::Other]
        }

        fn run(&self, _: Value, _: ToolContext) -> BoxFuture<'static, ToolOutcome> {
            std::future::ready(ToolOutcome::failed("not to be run")).boxed()
        }
    }

    fn tool(bytes: usize) -> Arc<dyn Tool> {
        Arc::new(Described(ToolDefinition {
            name: "mcp__a__b".to_owned(),
            description: "x".repeat(bytes).into(),
            input_schema: json!({}).into(),
        }))
    }

    #[test]
    fn a_tenth_of_the_context_is_the_limit_and_it_stays_so() {
        let lazy = Lazy::new(LazyLoad::Auto, Arc::new(|| 1_000));
        let (small, large) = (tool(300), tool(500));
        assert!(!lazy.hides(&[]));
        assert!(!lazy.hides(&[Arc::clone(&small)]));
        assert!(lazy.hides(&[large]));
        assert!(lazy.hides(&[small]));
        assert!(!lazy.hides(&[]));
    }

    #[test]
    fn it_can_be_chosen() {
        let window: Window = Arc::new(|| 1_000);
        assert!(Lazy::new(LazyLoad::Always, Arc::clone(&window)).hides(&[tool(1)]));
        assert!(!Lazy::new(LazyLoad::Never, window).hides(&[tool(100_000)]));
    }
}
