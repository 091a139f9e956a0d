//! Text on stdout: the answer alone when piped; on a terminal the answer as it is written, with tool lines and a spinner
//! on stderr. Colour only on a terminal, and not when NO_COLOR is set.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use qoder_protocol::messages::{StreamMessage, SystemMessage};
use qoder_runtime::events::{Event, Sink, Wants};
use qoder_types::display::escaped_line;
use qoder_types::{ContentBlock, StopReason};

use super::tell_first_retry;
use crate::screen::{self, Answer, Ink, Paint, print_note};

/// Text on stdout.
pub struct Text {
    streams: bool,
    progress: bool,
    paint: Paint,
    verbose: bool,
    spinner: Option<Arc<Spinner>>,
    state: Mutex<Shown>,
}

struct Shown {
    answer: Answer,
    /// True when the last character on the terminal was not a newline.
    mid_line: bool,
    /// True while the reply that is coming was shown as it came.
    streams_now: bool,
    /// True when the last complete reply was shown as it came, to not print it twice.
    streamed: bool,
}

impl Text {
    /// A sink for text.
    pub fn new(verbose: bool) -> Self {
        let (out, err) = (screen::stdout_is_terminal(), screen::stderr_is_terminal());
        let spinner = (out && err).then(|| Arc::new(Spinner::start()));
        Self {
            streams: out,
            progress: err || verbose,
            verbose,
            paint: Paint::of_stderr(&crate::command_line::environment::environment()),
            spinner,
            state: Mutex::new(Shown {
                answer: Answer::new(),
                mid_line: false,
                streams_now: false,
                streamed: false,
            }),
        }
    }

    /// What shows that the run is not stuck, if anything does.
    pub fn spinner(&self) -> Option<Arc<Spinner>> {
        self.spinner.clone()
    }

    fn progress(&self, text: &str) {
        if !self.progress {
            return;
        }
        self.pause();
        let mut shown = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut shown.mid_line) {
            print_note("");
        }
        screen::print_painted_note(&self.paint.line().ink(Ink::Faint, &escaped_line(text)));
    }

    fn pause(&self) {
        if let Some(spinner) = &self.spinner {
            spinner.pause();
        }
    }

    fn spin(&self) {
        if let Some(spinner) = &self.spinner {
            spinner.resume();
        }
    }

    fn message(&self, message: &StreamMessage) -> std::io::Result<()> {
        match message {
            StreamMessage::System(SystemMessage::Init(_)) => self.spin(),
            // The result says what went wrong.
            StreamMessage::Assistant(reply) if reply.error.is_some() => {}
            StreamMessage::Assistant(reply) => {
                {
                    let mut shown = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                    shown.streamed = std::mem::take(&mut shown.streams_now);
                }
                // A reply that the output limit cut continues in the next one, on the same line.
                if reply.message.stop_reason != Some(StopReason::MaxTokens) {
                    self.end_line()?;
                }
                for block in reply.content() {
                    if let ContentBlock::ToolUse { name, input, .. } = block {
                        self.progress(&format!("• {name} {}", brief(input)));
                    }
                }
                self.spin();
            }
            StreamMessage::User(user) => {
                if let qoder_types::MessageContent::Blocks(blocks) = &user.message.content {
                    for block in blocks {
                        if let ContentBlock::ToolResult { content, is_error: true, .. } = block {
                            self.progress(&format!("  ✗ {}", first_line(&content.to_text())));
                        }
                    }
                }
                self.spin();
            }
            StreamMessage::System(SystemMessage::ApiRetry {
                attempt,
                max_retries,
                retry_delay_ms,
                error,
                ..
            }) => {
                let wait = Duration::from_millis(*retry_delay_ms).as_secs_f32();
                if self.progress {
                    self.progress(&format!(
                        "  retry {attempt}/{max_retries} in {wait:.1} s: {}",
                        first_line(error)
                    ));
                } else {
                    tell_first_retry(message);
                }
                self.spin();
            }
            StreamMessage::System(SystemMessage::Status { status: Some(status), .. }) => {
                self.progress(&format!("  {status} …"));
                self.spin();
            }
            StreamMessage::Result(result) => {
                self.pause();
                self.end_line()?;
                let mut shown = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                let streamed = std::mem::take(&mut shown.streamed);
                // An answer in a shape is the answer, whatever was said besides.
                let shaped = result.structured_output.as_ref().map(ToString::to_string);
                if let Some(text) = shaped.as_deref().or(result.result.as_deref().filter(|_| !streamed)) {
                    shown.answer.write(text)?;
                    shown.answer.finish()?;
                    if !text.ends_with('\n') {
                        shown.answer.write("\n")?;
                    }
                }
                for error in &result.errors {
                    print_note(&format!("error: {error}"));
                }
            }
            StreamMessage::System(_) | StreamMessage::PromptSuggestion(_) => {}
        }
        Ok(())
    }

    fn end_line(&self) -> std::io::Result<()> {
        let mut shown = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut shown.mid_line) {
            self.pause();
            shown.answer.finish()?;
            shown.answer.write("\n")?;
        }
        Ok(())
    }

    fn partial(&self, event: &str) -> std::io::Result<()> {
        let Some(text) = text_piece(event).filter(|text| !text.is_empty()) else { return Ok(()) };
        self.pause();
        let mut shown = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        shown.answer.write(&text)?;
        shown.mid_line = !text.ends_with('\n');
        shown.streams_now = true;
        Ok(())
    }
}

/// The text that a stream event adds to the answer.
fn text_piece(event: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Event {
        delta: Option<Part>,
        content_block: Option<Part>,
    }
    #[derive(serde::Deserialize)]
    struct Part {
        #[serde(rename = "type")]
        kind: Option<String>,
        text: Option<String>,
    }
    let event: Event = serde_json::from_str(event).ok()?;
    let part = event.delta.or(event.content_block)?;
    matches!(part.kind.as_deref(), Some("text_delta" | "text")).then_some(part.text).flatten()
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(200).collect()
}

/// What a call is about, in one line: its most telling argument.
fn brief(input: &serde_json::Value) -> String {
    let telling = ["command", "file_path", "pattern", "path", "url", "query", "prompt"];
    let text = telling.iter().find_map(|key| input.get(key)?.as_str());
    text.map(first_line).unwrap_or_default()
}

impl Sink for Text {
    fn wants(&self) -> Wants {
        Wants { partial: self.streams, tool_output: self.verbose, ..Wants::default() }
    }

    fn take(&self, event: Event<'_>) -> std::io::Result<()> {
        match event {
            Event::Asked(_) | Event::Resolved { .. } => Ok(()),
            Event::Message(message) => self.message(message),
            Event::Partial { event, parent_tool_use_id: None } => self.partial(event),
            // What agents say is not the answer.
            Event::Partial { parent_tool_use_id: Some(_), .. } => Ok(()),
            Event::ToolOutput { text, .. } => {
                text.lines().for_each(|line| self.progress(&format!("  | {line}")));
                Ok(())
            }
            Event::Warning(text) => {
                self.pause();
                print_note(&format!("warning: {text}"));
                Ok(())
            }
        }
    }
}

/// A sign of life on stderr while nothing else is shown. Drawing and clearing take turns, so that nothing is drawn behind
/// what follows it.
pub struct Spinner {
    shown: Arc<Mutex<Shows>>,
}

/// What the sign of life does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shows {
    /// It is drawn.
    Frames,
    /// It is not.
    Nothing,
    /// It is not, and must not be: a question is open.
    Question,
}

/// Keeps the sign of life away until it is dropped.
pub struct Hush(Arc<Spinner>);

impl Drop for Hush {
    fn drop(&mut self) {
        *self.0.state() = Shows::Nothing;
    }
}

impl Spinner {
    fn start() -> Self {
        let shown = Arc::new(Mutex::new(Shows::Nothing));
        let seen = Arc::clone(&shown);
        std::thread::spawn(move || {
            let frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
            for frame in frames.iter().cycle() {
                let shows = seen.lock().unwrap_or_else(PoisonError::into_inner);
                if *shows == Shows::Frames {
                    screen::draw_spinner(frame);
                }
                drop(shows);
                std::thread::sleep(Duration::from_millis(90));
            }
        });
        Self { shown }
    }

    fn state(&self) -> MutexGuard<'_, Shows> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints nothing while a question is open.
    pub fn hush(self: &Arc<Self>) -> Hush {
        self.pause();
        *self.state() = Shows::Question;
        Hush(Arc::clone(self))
    }

    fn pause(&self) {
        let mut shows = self.state();
        if *shows == Shows::Frames {
            *shows = Shows::Nothing;
            screen::clear_spinner();
        }
    }

    fn resume(&self) {
        let mut shows = self.state();
        if *shows == Shows::Nothing {
            *shows = Shows::Frames;
        }
    }
}
