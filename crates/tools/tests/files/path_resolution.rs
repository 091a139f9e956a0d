//! Both forms of a path: by spelling and by where the kernel arrives.
//!
//! Links, dangling links, loops, missing tails and `..` behind links are what rules are attacked with.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::common::Bench;
use qoder_tools::paths::{PathError, real, resolve};

#[test]
fn spelling_and_reality_differ_behind_a_link() {
    let bench = Bench::new();
    bench.write("far/deep/file", "x");
    symlink(bench.path("far/deep"), bench.path("near")).unwrap();
    let path = resolve(&bench.cwd, "near/../file").unwrap();
    assert_eq!(path.lexical, bench.path("file"));
    assert_eq!(path.real, bench.path("far/file"));
    let path = resolve(&bench.cwd, "./near//file").unwrap();
    assert_eq!(path.lexical, bench.path("near/file"));
    assert_eq!(path.real, bench.path("far/deep/file"));
}

#[test]
fn missing_tails_and_dangling_links_are_followed_to_the_end() {
    let bench = Bench::new();
    symlink("elsewhere/target", bench.path("dangling")).unwrap();
    assert_eq!(resolve(&bench.cwd, "dangling").unwrap().real, bench.path("elsewhere/target"));
    assert_eq!(resolve(&bench.cwd, "no/such/../file").unwrap().real, bench.path("no/file"));
    symlink("/etc", bench.path("away")).unwrap();
    let real = resolve(&bench.cwd, "missing/../away/hosts").unwrap().real;
    assert!(real.starts_with("/etc"), "a link behind a missing name is still followed: {}", real.display());
}

#[test]
fn loops_and_nul_are_errors_with_codes() {
    let bench = Bench::new();
    symlink("b", bench.path("a")).unwrap();
    symlink("a", bench.path("b")).unwrap();
    let error = resolve(&bench.cwd, "a").unwrap_err();
    assert!(matches!(error, PathError::TooManyLinks(_)));
    assert_eq!(error.code(), "path_link_loop");
    assert_eq!(resolve(&bench.cwd, "a\0b").unwrap_err().code(), "path_nul");
}

#[test]
fn the_root_and_the_home_are_reached() {
    let cwd = Path::new("/");
    assert_eq!(resolve(cwd, "../../..").unwrap().real, PathBuf::from("/"));
    if let Some(home) = std::env::var_os("HOME") {
        assert_eq!(resolve(cwd, "~/x").unwrap().lexical, PathBuf::from(&home).join("x"));
        assert_eq!(resolve(cwd, "~").unwrap().lexical, PathBuf::from(&home));
    }
    assert_eq!(resolve(cwd, "~other/x").unwrap().lexical, PathBuf::from("/~other/x"));
}

/// The kernel is asked once for a whole path, and only a path with a link is walked. A parent behind the root does not
/// change where a path leads, but it makes the walk necessary, so both ways must arrive at the same place.
#[test]
fn one_question_and_the_walk_arrive_at_the_same_place() {
    let bench = Bench::new();
    bench.write("far/deep/file", "x");
    symlink(bench.path("far"), bench.path("near")).unwrap();
    symlink("near/deep", bench.path("nearer")).unwrap();
    symlink("none/at/all", bench.path("dangling")).unwrap();
    let names = [
        "",
        "far/deep/file",
        "far/deep/",
        "far//deep/./file",
        "far/deep/file/below",
        "far/none",
        "none/near",
        "near",
        "near/deep/file",
        "nearer/file",
        "nearer/none",
        "dangling",
        "dangling/below",
    ];
    for name in names {
        let path = bench.path(name);
        let walked = Path::new("/..").join(path.strip_prefix("/").unwrap());
        assert_eq!(real(&path).unwrap(), real(&walked).unwrap(), "{name}");
    }
    assert_eq!(real(&bench.path("nearer/file")).unwrap(), bench.path("far/deep/file"));
    assert_eq!(real(&bench.path("far/none")).unwrap(), bench.path("far/none"));
    assert_eq!(real(&bench.path("far\0none")).unwrap_err().code(), "path_nul");
}
