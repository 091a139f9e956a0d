//! The folders in which the cases are judged: a workspace with links both ways, a home directory, and a folder outside
//! both. Nothing in them is ever run or written by a case.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use tempfile::TempDir;

/// The folders of one test.
pub struct Place {
    folder: TempDir,
}

const FILES: &[&str] = &[
    "home/notes.txt",
    "home/.bashrc",
    "home/.qoder/settings.json",
    "outside/data.txt",
    "outside/deep/more.txt",
    "outside/extra/e.txt",
    "app-old/x.txt",
    "app/a.txt",
    "app/b.txt",
    "app/a b.txt",
    "app/Makefile",
    "app/package.json",
    "app/script.sh",
    "app/.env",
    "app/.envrc",
    "app/.gitignore",
    "app/src/main.rs",
    "app/src/lib.rs",
    "app/src/deep/mod.rs",
    "app/sub/inner.txt",
    "app/sub/.env",
    "app/docs/notes.md",
    "app/secrets/key.pem",
    "app/conf/app.toml",
    "app/build/out.o",
    "app/nb.ipynb",
    "app/.git/config",
    "app/.git/HEAD",
    "app/.git/hooks/pre-commit.sample",
    "app/.vscode/tasks.json",
    "app/flags/-rf",
    "app/flags/--pre=x",
    "app/flags/x.txt",
];

impl Place {
    /// Makes the folders.
    pub fn new() -> Self {
        let place = Self { folder: TempDir::new().unwrap() };
        let root = place.root();
        for file in FILES {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x\n").unwrap();
        }
        let app = place.workspace();
        let links = [
            (root.join("outside/data.txt"), "link-out"),
            (root.join("outside"), "folder-out"),
            (root.join("outside/none.txt"), "dangling"),
            (PathBuf::from("a.txt"), "link-in"),
            (PathBuf::from("sub"), "folder-in"),
            (PathBuf::from(".env"), "link-env"),
            (PathBuf::from(".git/hooks"), "hooks"),
            (PathBuf::from("/etc"), "etc"),
            (PathBuf::from("/proc/self/cwd"), "cwd-link"),
            (PathBuf::from("loop-b"), "loop-a"),
            (PathBuf::from("loop-a"), "loop-b"),
        ];
        for (target, name) in links {
            symlink(target, app.join(name)).unwrap();
        }
        fs::hard_link(app.join(".git/config"), app.join("hard-config")).unwrap();
        symlink(&app, root.join("outside/into-app")).unwrap();
        place
    }

    fn root(&self) -> PathBuf {
        fs::canonicalize(self.folder.path()).unwrap()
    }

    /// The workspace.
    pub fn workspace(&self) -> PathBuf {
        self.root().join("app")
    }

    /// The home directory.
    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    /// Puts the folders in place of their signs.
    pub fn put(&self, text: &str) -> String {
        let root = self.root();
        let mut text = text.to_owned();
        for (sign, folder) in [("{W}", "app"), ("{H}", "home"), ("{O}", "outside"), ("{R}", "")] {
            let path = root.join(folder).to_string_lossy().trim_end_matches('/').to_owned();
            text = text.replace(sign, &path);
        }
        text
    }
}
