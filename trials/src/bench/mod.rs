//! `cargo xtask bench`: what the program costs, measured in one run beside floors and peers so that the figures can be
//! compared on any machine. Only the loopback address is used, and every loop has a bound. This file reads the options,
//! builds what is measured and runs the benchmarks one after another.

mod mcp;
mod measure;
mod resume;
mod sdks;
mod search;
mod server;
mod startup;
mod stream;
mod table;
mod terminal;
mod turns;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use table::Row;
use xtask::process;

/// What every benchmark is given.
struct Bench {
    root: PathBuf,
    /// The program in its release build.
    binary: PathBuf,
    /// A folder for generated files, kept between runs.
    work: PathBuf,
    quick: bool,
}

impl Bench {
    /// How often to repeat something cheap.
    fn many(&self) -> usize {
        if self.quick { 10 } else { 60 }
    }

    /// How often to repeat something expensive.
    fn few(&self) -> usize {
        if self.quick { 3 } else { 7 }
    }
}

/// What a benchmark measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// A program: another one can be measured beside ours.
    Program,
    /// Libraries or packages of this checkout.
    Checkout,
}

/// A benchmark: its name, what it measures, and how.
type Benchmark = (&'static str, Subject, fn(&Bench) -> Result<Vec<Row>>);

const BENCHMARKS: &[Benchmark] = &[
    ("size", Subject::Program, startup::size),
    ("startup", Subject::Program, startup::version),
    ("oneshot", Subject::Program, startup::one_shot),
    ("turns", Subject::Program, turns::run),
    ("stream", Subject::Program, stream::run),
    ("resume", Subject::Program, resume::run),
    ("search", Subject::Program, search::run),
    ("sessions", Subject::Checkout, sessions),
    ("decisions", Subject::Checkout, decisions),
    ("sdks", Subject::Checkout, sdks::run),
    ("mcp", Subject::Program, mcp::run),
    ("server", Subject::Program, server::run),
    ("terminal", Subject::Program, terminal::run),
];

#[derive(Default)]
struct Options {
    only: Option<String>,
    quick: bool,
    write: bool,
    /// Another program to measure in the same run: an earlier release.
    against: Option<PathBuf>,
    /// A program that is there already, instead of the release build of this checkout.
    program: Option<PathBuf>,
}

/// The program that an option names.
fn program(option: &str, path: Option<&&str>) -> Result<PathBuf> {
    let program =
        std::path::absolute(path.with_context(|| format!("{option} needs the path of a program"))?)?;
    if !program.is_file() {
        bail!("{option}: {} is not a program", program.display());
    }
    Ok(program)
}

fn read_options(words: &[&str]) -> Result<Options> {
    let mut options = Options::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--quick" => options.quick = true,
            "--write" => options.write = true,
            "--only" => {
                let name = words.next().context("--only needs the name of a benchmark")?;
                if !BENCHMARKS.iter().any(|(known, ..)| known == name) {
                    let names: Vec<&str> = BENCHMARKS.iter().map(|(known, ..)| *known).collect();
                    bail!("no benchmark {name:?}; there are {}", names.join(", "));
                }
                options.only = Some((*name).to_owned());
            }
            "--against" => options.against = Some(program("--against", words.next())?),
            "--program" => options.program = Some(program("--program", words.next())?),
            other => bail!(
                "unknown option {other:?}; there are --only NAME, --quick, --program PATH, --against PROGRAM and --write"
            ),
        }
    }
    if options.write && (options.against.is_some() || options.program.is_some()) {
        bail!("--write writes the figures of this checkout; leave out --against and --program");
    }
    Ok(options)
}

/// Runs the benchmarks that the options choose.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<ExitCode> {
    let options = read_options(words)?;
    let target = process::target_directory(root);
    let work = target.join("bench");
    std::fs::create_dir_all(&work)?;
    let binary = match &options.program {
        Some(program) => program.clone(),
        None => {
            process::insist(&mut process::cargo(
                root,
                &["build", "--release", "--locked", "-p", "qodercli"],
            ))?;
            target.join("release").join("qodercli")
        }
    };
    let bench = Bench { root: root.to_path_buf(), binary, work: work.clone(), quick: options.quick };
    let other = options.against.as_ref().map(|program| Bench {
        root: root.to_path_buf(),
        binary: program.clone(),
        work,
        quick: options.quick,
    });
    let mut rows = Vec::new();
    let mut failed = false;
    for (name, subject, benchmark) in BENCHMARKS {
        if options.only.as_deref().is_some_and(|only| only != *name) {
            continue;
        }
        eprintln!("… {name}");
        let mut measured = benchmark(&bench);
        if let (Ok(ours), Some(other), Subject::Program) = (&mut measured, &other, subject) {
            match benchmark(other) {
                Ok(theirs) => table::beside(ours, theirs),
                Err(error) => {
                    ours.push(Row::note(format!("{name}, the other program"), format!("failed: {error:#}")))
                }
            }
        }
        match measured {
            Ok(measured) => rows.extend(measured),
            Err(error) => {
                failed = true;
                rows.push(Row::note(*name, format!("failed: {error:#}")));
            }
        }
    }
    let page = table::page(root, &rows)?;
    println!("{page}");
    if options.write {
        std::fs::write(root.join("docs/benchmarks.md"), page)?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Many sessions open in one process: measured by an example program of the runtime, which prints what it found.
fn sessions(bench: &Bench) -> Result<Vec<Row>> {
    let text = example(bench, "qoder-runtime", "many_sessions")?;
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    Ok(vec![Row::note("1,000 sessions in one process", lines.join("; "))])
}

/// Decisions of the gate, and what reading a command costs as it grows: measured by an example program of the runtime.
fn decisions(bench: &Bench) -> Result<Vec<Row>> {
    let text = example(bench, "qoder-runtime", "decisions")?;
    let found: Value = serde_json::from_str(text.trim()).context("the example's answer is not JSON")?;
    let number = |pointer: &str| {
        let number = found.pointer(pointer).and_then(Value::as_f64);
        number.with_context(|| format!("the example says nothing of {pointer}"))
    };
    let second = number("/decisionsPerSecond")?;
    let short = number("/nanosecondsPerByteByKibibytes/1")?;
    let long = number("/nanosecondsPerByteByKibibytes/64")?;
    Ok(vec![
        Row::new("decisions a second, 200 rules, one core", format!("{second:.0}"), "at least 100,000"),
        Row::note(
            "the same for lines of several commands, loops and substitutions",
            format!("{:.0}", number("/linesPerSecond")?),
        ),
        Row::new("reading a command of 64 KiB, per byte", format!("{long:.0} ns"), "at most 2 × of 1 KiB")
            .against(long, short, "of 1 KiB"),
    ])
}

/// What an example program of one of our packages prints.
fn example(bench: &Bench, package: &str, name: &str) -> Result<String> {
    let arguments = ["run", "--release", "--quiet", "--locked", "-p", package, "--example", name];
    let output = process::cargo(&bench.root, &arguments).output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let options = read_options(&["--only", "turns", "--quick"]).unwrap();
        assert_eq!(options.only.as_deref(), Some("turns"));
        assert!(options.quick && !options.write);
    }

    #[test]
    fn a_wrong_option_is_refused_by_name() {
        for words in [
            &["--only"][..],
            &["--only", "nothing"],
            &["--fast"],
            &["--against"],
            &["--against", "no/such/program"],
            &["--write", "--against", file!()],
        ] {
            assert!(read_options(words).is_err(), "{words:?}");
        }
    }
}
