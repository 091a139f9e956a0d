//! A program that runs containers, for tests: podman with an image of the machine's own files where a trial works, else a script
//! that starts tool hosts as ordinary processes and keeps images as names.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::PROGRAM;

const IMAGE: &str = "localhost/qoder-test:1";
/// What is in the image beside the libraries that it needs.
const PROGRAMS: [&str; 16] = [
    "bash", "sh", "cat", "ls", "env", "id", "sleep", "mkdir", "ln", "mv", "rm", "head", "tail", "touch",
    "kill", "tr",
];

/// A program that runs containers.
pub struct Containers {
    folder: tempfile::TempDir,
    /// True for podman; false for the stand-in.
    pub are_real: bool,
}

impl Containers {
    /// Podman where it works.
    pub fn real() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let made = Self { folder, are_real: true };
        made.write_program(&podman(made.folder.path()));
        match made.make_image() {
            Ok(()) => Some(made),
            Err(problem) => {
                eprintln!("SKIPPED: no container can be run here: {}", problem.trim());
                None
            }
        }
    }

    /// The stand-in.
    pub fn stand_in() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("containers")).unwrap();
        let made = Self { folder, are_real: false };
        made.write_program(&stand_in(made.folder.path()));
        made
    }

    fn write_program(&self, script: &str) {
        std::fs::write(self.program(), script).unwrap();
        std::fs::set_permissions(self.program(), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Where the stand-in runs.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    pub fn program(&self) -> PathBuf {
        self.folder.path().join("podman")
    }

    /// Where the stand-in writes what it was asked for.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The configuration file of a server.
    pub fn config(&self) -> PathBuf {
        let path = self.folder.path().join("serve.yaml");
        let arguments = if self.are_real {
            "[--cgroups=disabled, --ulimit=nofile=1024:1024, --ulimit=nproc=4096:4096]"
        } else {
            "[]"
        };
        let program = self.program();
        let text = format!(
            "container:\n  program: {}\n  image: {IMAGE}\n  pids: 0\n  arguments: {arguments}\n",
            program.display()
        );
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Runs the program.
    pub fn run(&self, arguments: &[&str]) -> Output {
        Command::new(self.program()).args(arguments).output().unwrap()
    }

    /// The containers that there are.
    pub fn names(&self) -> Vec<String> {
        let output = self.run(&["ps", "--all", "--format", "{{.Names}}"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    /// Makes the image, and tries it.
    fn make_image(&self) -> Result<(), String> {
        let root = self.folder.path().join("root");
        for folder in ["tmp", "proc", "sys", "dev", "etc", "run", "opt", "mnt", "workspace", "usr/bin"] {
            std::fs::create_dir_all(root.join(folder)).map_err(|error| error.to_string())?;
        }
        for name in PROGRAMS {
            let found = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(name));
            let found = found.iter().find(|path| path.exists()).ok_or_else(|| format!("no {name}"))?;
            copy(found, &root.join("usr/bin").join(name))?;
            copy_libraries(found, &root)?;
        }
        copy_libraries(Path::new(PROGRAM), &root)?;
        for folder in ["bin", "sbin"] {
            let _ = std::os::unix::fs::symlink("usr/bin", root.join(folder));
        }
        std::fs::write(root.join("etc/passwd"), "root:x:0:0:root:/:/bin/bash\n").unwrap();
        let archive = self.folder.path().join("root.tar");
        let packed = Command::new("tar").arg("-C").arg(&root).arg("-cf").arg(&archive).arg(".").output();
        succeeded(&packed.map_err(|error| error.to_string())?)?;
        succeeded(&self.run(&["import", "--quiet", &archive.display().to_string(), IMAGE]))?;
        let limits = ["--cgroups=disabled", "--ulimit=nofile=1024:1024", "--ulimit=nproc=4096:4096"];
        let trial = [&["run", "--rm", "--network=none"], &limits[..], &[IMAGE, "/usr/bin/id"]].concat();
        succeeded(&self.run(&trial))
    }
}

fn succeeded(output: &Output) -> Result<(), String> {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(said) }
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    if to.exists() {
        return Ok(());
    }
    std::fs::create_dir_all(to.parent().unwrap()).map_err(|error| error.to_string())?;
    std::fs::copy(from, to).map(drop).map_err(|error| format!("{}: {error}", from.display()))
}

/// The libraries of a program, at their places.
fn copy_libraries(program: &Path, root: &Path) -> Result<(), String> {
    let output = Command::new("ldd").arg(program).output().map_err(|error| error.to_string())?;
    for word in
        String::from_utf8_lossy(&output.stdout).split_whitespace().filter(|word| word.starts_with('/'))
    {
        copy(Path::new(word), &root.join(word.trim_start_matches('/')))?;
    }
    Ok(())
}

/// Podman with storage of its own. A machine that mixes both generations of control groups hides the newer one from it.
fn podman(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "#!/bin/sh\nexec unshare --mount sh -c 'umount /sys/fs/cgroup/unified 2>/dev/null; exec podman --root {folder}/store \
         --runroot {folder}/run --storage-driver vfs --cgroup-manager cgroupfs --runtime crun \"$@\"' podman \"$@\"\n"
    )
}

/// Containers are files, and those that run are processes of this machine.
fn stand_in(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        r#"#!/bin/bash
cd {folder}
echo "$*" >> log
last="${{@: -1}}"
case "$1" in
--version) echo "stand-in 1" ;;
image) [ "$last" = {IMAGE} ] || [ -e "images-${{last//\//_}}" ] || exit 1; echo "id-of-$last" ;;
pull) echo "no such image: $last" >&2; exit 1 ;;
ps) ls containers ;;
wait) echo 0 ;;
commit) touch "images-${{3//\//_}}" ;;
rm) shift 2; cd containers && rm -f -- "$@" ;;
run)
  for word in "$@"; do case "$word" in --name=*) name="${{word#--name=}}" ;; --rm) removes=yes ;; esac; done
  touch "containers/$name"
  {PROGRAM} tool-host; code=$?
  [ "$removes" ] && rm -f "containers/$name"
  exit $code ;;
*) echo "unknown: $*" >&2; exit 2 ;;
esac
"#
    )
}
