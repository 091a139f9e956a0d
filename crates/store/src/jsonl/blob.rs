//! Content that is too large for a record. When a line would pass the cap, its longest strings move to files named by
//! their SHA-256; the line keeps a readable placeholder and a map from the place in the JSON to the file.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::folders;

/// The most bytes one line may have.
pub const RECORD_CAP: usize = 4 * 1024 * 1024;
/// Strings shorter than this always stay in the line.
const KEPT: usize = 64 * 1024;

/// Moves long strings of the JSON object in `line` to files in `folder` until it fits. Returns the new object's text.
pub fn shrink(line: &[u8], folder: &Path) -> std::io::Result<Vec<u8>> {
    let mut value: Value = serde_json::from_slice(line).map_err(std::io::Error::other)?;
    let mut places = Map::new();
    let mut pointer = String::new();
    move_strings(&mut value, &mut pointer, folder, &mut places)?;
    if let Value::Object(object) = &mut value {
        object.insert("blobs".to_owned(), Value::Object(places));
    }
    serde_json::to_vec(&value).map_err(std::io::Error::other)
}

fn move_strings(
    value: &mut Value,
    pointer: &mut String,
    folder: &Path,
    places: &mut Map<String, Value>,
) -> std::io::Result<()> {
    let length = pointer.len();
    match value {
        Value::String(text) if text.len() > KEPT => {
            let name = put(folder, text.as_bytes())?;
            *text = format!("[{} bytes kept in blob {name}]", text.len());
            places.insert(pointer.clone(), Value::String(name));
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                pointer.push_str(&format!("/{index}"));
                move_strings(item, pointer, folder, places)?;
                pointer.truncate(length);
            }
        }
        Value::Object(map) => {
            for (key, item) in map.iter_mut() {
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                move_strings(item, pointer, folder, places)?;
                pointer.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Ok(())
}

/// The name of content: its hash.
#[must_use]
pub fn name(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Keeps `content` in `folder` under its hash; writing it twice is harmless.
pub fn put(folder: &Path, content: &[u8]) -> std::io::Result<String> {
    let name = name(content);
    let path = folder.join(&name);
    if path.exists() {
        return Ok(name);
    }
    folders::create(folder)?;
    let temporary = folder.join(format!("{name}.{}", std::process::id()));
    let written = write(&temporary, content)
        .and_then(|()| std::fs::rename(&temporary, &path))
        .and_then(|()| folders::sync(folder));
    if let Err(error) = written {
        // Half a blob on a full disk would be in the way of everything else. The first error is the one to tell.
        let _ = std::fs::remove_file(&temporary);
        return Err(error);
    }
    Ok(name)
}

fn write(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    // The record that names the blob may be synced before the blob would be; a name without content is a loss.
    file.sync_data()
}

/// Removes what processes left in `folder` that died while they wrote a blob. No process may write there meanwhile.
pub fn sweep(folder: &Path) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    for entry in entries.filter(|entry| entry.path().extension().is_some()) {
        // One that stays takes room and harms nothing.
        let _ = std::fs::remove_file(entry.path());
    }
}

/// True when a line has content in blobs.
#[must_use]
pub fn has_blobs(line: &[u8]) -> bool {
    // `blobs` is the last key before the checksum, so a look at the end is enough.
    let tail = &line[line.len().saturating_sub(64 * 1024)..];
    memchr::memmem::rfind(tail, b",\"blobs\":{\"").is_some()
}

/// Puts the content of blobs back into a line.
pub fn restore(line: &[u8], folder: &Path) -> std::io::Result<Vec<u8>> {
    let mut value: Value = serde_json::from_slice(line).map_err(std::io::Error::other)?;
    let Some(Value::Object(places)) = value.as_object_mut().and_then(|object| object.remove("blobs")) else {
        return Ok(line.to_vec());
    };
    for (pointer, name) in places {
        let name = name.as_str().filter(|name| name.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let name = name.ok_or_else(|| std::io::Error::other("a blob name is not a hash"))?;
        let content = std::fs::read_to_string(folder.join(name))
            .map_err(|error| std::io::Error::new(error.kind(), format!("blob {name}: {error}")))?;
        if let Some(place) = value.pointer_mut(&pointer) {
            *place = Value::String(content);
        }
    }
    serde_json::to_vec(&value).map_err(std::io::Error::other)
}
