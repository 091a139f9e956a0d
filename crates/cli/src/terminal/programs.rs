//! Programs that the terminal needs: the clipboard, a browser, the editor, the status line. They run in a process tree of their
//! own, without the terminal; only the editor gets it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use qoder_process::{Captured, CapturedProgram, CapturedRun};
use qoder_terminal::MachineError;
use qoder_types::CommandEnvironment;
use serde_json::Value;

/// How long the clipboard, a browser and the status line may take.
const CLIPBOARD: Duration = Duration::from_secs(5);
const BROWSER: Duration = Duration::from_secs(10);
const STATUS_LINE: Duration = Duration::from_secs(2);

/// Ways to read and write text, and to read an image into `$IMAGE`, in the order in which they are tried.
const READ_TEXT: &[&str] =
    &["wl-paste --no-newline", "xclip -selection clipboard -o", "xsel -b -o", "pbpaste"];
const WRITE_TEXT: &[&str] = &["wl-copy", "xclip -selection clipboard", "xsel -b -i", "pbcopy"];
const READ_IMAGE: &[&str] = &[
    "wl-paste -t image/png > \"$IMAGE\"",
    "xclip -selection clipboard -t image/png -o > \"$IMAGE\"",
    "osascript -e 'set f to open for access POSIX file (system attribute \"IMAGE\") with write permission' -e 'write (the clipboard as «class PNGf») to f' -e 'close access f'",
];

/// Runs a line of bash.
async fn bash(
    line: &str,
    folder: &Path,
    input: Vec<u8>,
    added: Vec<(String, String)>,
    time: Duration,
) -> Option<Captured> {
    let run = CapturedRun {
        program: CapturedProgram::Bash(line.to_owned()),
        directory: folder.to_path_buf(),
        environment: Arc::new(CommandEnvironment::default()),
        added,
        input,
        listener: None,
    };
    let captured = tokio::time::timeout(time, run.run()).await.ok()?.ok()?;
    (captured.exit_code == 0).then_some(captured)
}

/// The text of the clipboard.
pub async fn clipboard_text() -> Result<String, MachineError> {
    for line in READ_TEXT {
        if let Some(captured) = bash(line, Path::new("/"), Vec::new(), Vec::new(), CLIPBOARD).await {
            return Ok(captured.stdout);
        }
    }
    Err(MachineError::new("the clipboard cannot be read; install wl-clipboard, xclip or xsel"))
}

/// Puts text into the clipboard.
pub async fn copy(text: String) -> Result<(), MachineError> {
    for line in WRITE_TEXT {
        let input = text.clone().into_bytes();
        if bash(line, Path::new("/"), input, Vec::new(), CLIPBOARD).await.is_some() {
            return Ok(());
        }
    }
    Err(MachineError::new("the clipboard cannot be written; install wl-clipboard, xclip or xsel"))
}

/// The image of the clipboard, in a file of a private folder.
pub async fn clipboard_image(folder: &Path) -> Result<PathBuf, MachineError> {
    let path = folder.join("clipboard.png");
    for line in READ_IMAGE {
        let added = vec![("IMAGE".to_owned(), path.display().to_string())];
        let done = bash(line, folder, Vec::new(), added, CLIPBOARD).await;
        if done.is_some() && std::fs::metadata(&path).is_ok_and(|facts| facts.len() > 8) {
            return Ok(path);
        }
    }
    Err(MachineError::new("there is no image in the clipboard"))
}

/// Opens an address in a browser, without a shell.
pub async fn open_address(address: String) -> Result<(), MachineError> {
    if !(address.starts_with("https://") || address.starts_with("http://")) {
        return Err(MachineError::new("only http and https addresses are opened"));
    }
    for program in ["xdg-open", "open", "wslview"] {
        let run = CapturedRun {
            program: CapturedProgram::Direct(program.to_owned(), vec![address.clone()]),
            directory: PathBuf::from("/"),
            environment: Arc::new(CommandEnvironment::default()),
            added: Vec::new(),
            input: Vec::new(),
            listener: None,
        };
        let ran = tokio::time::timeout(BROWSER, run.run()).await;
        if matches!(ran, Ok(Ok(captured)) if captured.exit_code == 0) {
            return Ok(());
        }
    }
    Err(MachineError::new("no program opens addresses here; copy it"))
}

/// The first line that the status line command prints; nothing when it fails.
pub async fn status_line(command: &str, folder: &Path, facts: &Value) -> Option<String> {
    let captured = bash(command, folder, facts.to_string().into_bytes(), Vec::new(), STATUS_LINE).await?;
    captured.stdout.lines().next().map(str::to_owned)
}

/// Lets the person edit a file; the editor has the terminal. Blocks.
pub fn edit(editor: &str, path: &Path) -> Result<(), MachineError> {
    // The editor is a line of the user's own, as git takes it.
    let status = std::process::Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("qodercli")
        .arg(path)
        .status()
        .map_err(|error| MachineError(format!("the editor `{editor}` cannot be started: {error}")))?;
    if status.success() {
        return Ok(());
    }
    Err(MachineError(format!("the editor `{editor}` failed ({status})")))
}
