//! Archives of skills: zip files with one folder, made from files in order, so that the same files make the same archive. Those
//! that clients send are read with bounds: nothing that is in them is trusted.

use std::io::{Cursor, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::model::problem::Problem;
use crate::model::upload::{SkillFile, SkillFiles};

/// The most bytes of all files of an archive.
const LARGEST: u64 = 32 * 1024 * 1024;
/// The most entries of an archive.
const MOST_ENTRIES: usize = 4_000;

/// Packs the files of a skill below a folder with its name.
///
/// # Errors
/// When the archive cannot be written.
pub fn pack(skill: &SkillFiles) -> std::io::Result<Vec<u8>> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for file in &skill.files {
        let is_program = file.content.starts_with(b"#!");
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .unix_permissions(if is_program { 0o755 } else { 0o644 });
        writer.start_file(format!("{}/{}", skill.name, file.path), options).map_err(std::io::Error::other)?;
        writer.write_all(&file.content)?;
    }
    Ok(writer.finish().map_err(std::io::Error::other)?.into_inner())
}

/// The files of an archive. Folders are left out, and what some systems add to archives.
///
/// # Errors
/// When it is not an archive, or has links or too much in it.
pub fn unpack(archive: &[u8]) -> Result<Vec<SkillFile>, Problem> {
    let wrong = |problem: &str| Problem::field("files", format!("has an archive {problem}"));
    let mut archive = ZipArchive::new(Cursor::new(archive)).map_err(|_| wrong("that is not a zip file"))?;
    if archive.len() > MOST_ENTRIES {
        return Err(wrong(&format!("with more than {MOST_ENTRIES} entries")));
    }
    let (mut files, mut left) = (Vec::new(), LARGEST);
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|_| wrong("that cannot be read"))?;
        let path = entry.name().map_err(|_| wrong("with a name that is not text"))?.into_owned();
        if entry.is_symlink() {
            return Err(wrong(&format!("with the link {path:?}; only files are accepted")));
        }
        let is_added = path.starts_with("__MACOSX/") || path.ends_with(".DS_Store");
        if entry.is_dir() || is_added {
            continue;
        }
        let mut content = Vec::new();
        entry.take(left + 1).read_to_end(&mut content).map_err(|_| wrong("that cannot be read"))?;
        let remaining = left.checked_sub(content.len() as u64);
        left = remaining.ok_or_else(|| wrong(&format!("with more than {LARGEST} bytes of files")))?;
        files.push(SkillFile { path, content });
    }
    Ok(files)
}

/// Writes files into a new folder. They can be read and not changed.
///
/// # Errors
/// When one of them cannot be written.
pub fn write_files(folder: &Path, files: &[SkillFile]) -> std::io::Result<()> {
    for file in files {
        let path = folder.join(&file.path);
        if let Some(parent) = path.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        let mode = if file.content.starts_with(b"#!") { 0o555 } else { 0o444 };
        let mut target = std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        target.write_all(&file.content)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill() -> SkillFiles {
        let file = |path: &str, content: &str| SkillFile { path: path.into(), content: content.into() };
        let files = vec![
            file("SKILL.md", "---\nname: a\ndescription: d\n---\n"),
            file("bin/run", "#!/bin/sh\necho hi\n"),
        ];
        SkillFiles { name: "a".into(), description: "d".into(), files }
    }

    #[test]
    fn what_is_packed_is_unpacked_and_the_same_files_make_the_same_archive() {
        let packed = pack(&skill()).unwrap();
        assert_eq!(packed, pack(&skill()).unwrap());
        let files = unpack(&packed).unwrap();
        assert_eq!(files[1].path, "a/bin/run");
        assert_eq!(SkillFiles::new(files).unwrap(), skill());
        let folder = tempfile::tempdir().unwrap();
        write_files(folder.path(), &unpack(&packed).unwrap()).unwrap();
        let written = std::fs::read(folder.path().join("a/bin/run")).unwrap();
        assert_eq!(written, skill().files[1].content);
    }

    #[test]
    fn links_bombs_and_other_files_are_refused() {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        writer.add_symlink("a/link", "/etc/passwd", SimpleFileOptions::default()).unwrap();
        let linked = writer.finish().unwrap().into_inner();
        assert!(unpack(&linked).unwrap_err().message.contains("link"));
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        writer.start_file("a/zeros", SimpleFileOptions::default()).unwrap();
        for _ in 0..33 {
            writer.write_all(&vec![0; 1024 * 1024]).unwrap();
        }
        let bomb = writer.finish().unwrap().into_inner();
        assert!(bomb.len() < 100_000 && unpack(&bomb).unwrap_err().message.contains("bytes of files"));
        assert!(unpack(b"not an archive").unwrap_err().message.contains("zip"));
    }
}
