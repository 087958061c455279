//! The arrows of the design, which cargo cannot check inside a crate.
#![allow(clippy::unwrap_used)] // who runs it sees where it fails

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use outcore_architecture::{circles, tokens, Import, Modules};

mod shape;

/// The crates whose files are looked at.
const CRATES: [&str; 10] = [
    "dtype", "coding", "ordering", "blosc", "hdf5", "store", "kernels", "sparse", "engine", "python",
];

/// The rooms of a crate. Each uses only what stands before it; files at the top of the crate are below all of them.
const ROOMS: [(&str, &[&str]); 4] = [
    ("hdf5", &["base", "trees", "heaps", "messages", "objects", "chunks"]),
    (
        "store",
        &[
            "base", "memory", "backend", "volume", "io", "durable", "maintain", "cache", "array", "chunked", "formats",
            "registry", "outputs",
        ],
    ),
    (
        "engine",
        &[
            "task",
            "expr",
            "strips",
            "ops",
            "sort",
            "linalg",
            "sparse",
            "solve",
            "loops",
            "recipes",
            "plan",
            "schedule",
            "place",
            "run/compute",
            "run/session",
            "run/play",
            "run/prepare",
            "run/drive",
            "run",
            "live",
            "ingest",
            "spgemm",
            "analyze",
            "graph/read",
            "graph/program",
            "graph/find",
            "graph",
        ],
    ),
    ("python", &["base", "arrays", "session", "files", "sparse", "graph"]),
];

fn root_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src")
}

fn sources_of(name: &str) -> Modules {
    Modules::of_crate(&root_of(name))
}

/// The place of a file's room in the row: 0 for the ground floor.
fn floor(rooms: &[&str], file: &Path) -> usize {
    if file.components().count() == 1 {
        return 0;
    }
    let room = rooms.iter().position(|room| file.starts_with(room));
    1 + room.unwrap_or_else(|| panic!("{} is in no room of the row", file.display()))
}

#[test]
fn a_room_uses_only_rooms_to_its_left() {
    let mut back = Vec::new();
    for (name, rooms) in ROOMS {
        let arrows = sources_of(name).arrows();
        for room in rooms {
            assert!(
                arrows.keys().any(|file| file.starts_with(room)),
                "{name}/{room} is empty"
            );
        }
        // The root puts the rooms together.
        for (file, used) in arrows.iter().filter(|(file, _)| *file != Path::new("lib.rs")) {
            for other in used.iter().filter(|other| floor(rooms, other) > floor(rooms, file)) {
                back.push(format!("{name}: {} uses {}", file.display(), other.display()));
            }
        }
    }
    assert!(back.is_empty(), "arrows to the right:\n{}", back.join("\n"));
}

#[test]
fn every_room_says_what_it_may_use_and_where_to_start() {
    for (name, rooms) in ROOMS {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
        for room in rooms {
            let text = fs::read_to_string(root.join(room).join("mod.rs")).expect("a room's head");
            let head: Vec<&str> = text.lines().take_while(|line| line.starts_with("//!")).collect();
            let head = head.join(" ").replace(" //! ", " ");
            let says = |word: &str| assert!(head.contains(word), "{name}/{room}: no {word:?} in its head");
            says("Use");
            says("tart with");
        }
    }
}

#[test]
fn formats_use_no_other_format() {
    let format = |file: &Path| file.strip_prefix("formats").ok()?.iter().next().map(PathBuf::from);
    for (file, used) in sources_of("store").arrows() {
        for other in used {
            if let (Some(of), Some(its)) = (format(&file), format(&other)) {
                assert_eq!(of, its, "{} uses {}", file.display(), other.display());
            }
        }
    }
}

#[test]
fn the_fence_of_io_uses_nothing_of_ours() {
    let used = &sources_of("store").arrows()[Path::new("backend/ring.rs")];
    assert!(used.is_empty(), "{used:?}");
}

#[test]
fn the_fence_of_the_kernels_is_their_ground_floor() {
    let arrows = sources_of("kernels").arrows();
    let fence = arrows.iter().filter(|(file, _)| file.starts_with("fence"));
    let mut files = 0;
    for (file, used) in fence {
        files += 1;
        let outside: Vec<&PathBuf> = used.iter().filter(|other| !other.starts_with("fence")).collect();
        assert!(outside.is_empty(), "{} uses {outside:?}", file.display());
    }
    assert!(files > 1, "the fence is gone");
}

#[test]
fn no_files_go_round_in_circles() {
    let mut found = String::new();
    for name in CRATES {
        for group in circles(&sources_of(name).arrows()) {
            found += &format!("in {name}:\n");
            for (from, to) in group {
                found += &format!("    {} uses {}\n", from.display(), to.display());
            }
        }
    }
    assert!(found.is_empty(), "files that use each other\n{found}");
}

fn is_of_tests(file: &Path) -> bool {
    let name = |part: &std::ffi::OsStr| {
        part.to_str()
            .is_some_and(|part| part == "tests" || part.ends_with("tests.rs"))
    };
    file.iter().any(name)
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the crate") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|suffix| suffix == "rs") {
            files.push(path);
        }
    }
}

/// The texts of a folder of a crate, by their places in it.
fn texts_of(name: &str, folder: &str) -> BTreeMap<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join(folder);
    let mut files = Vec::new();
    if root.is_dir() {
        rust_files(&root, &mut files);
    }
    let text = |file: &PathBuf| fs::read_to_string(file).expect("a text");
    let within = |file: &PathBuf| file.strip_prefix(&root).expect("below").to_path_buf();
    files.iter().map(|file| (within(file), text(file))).collect()
}

#[test]
fn every_file_is_a_module_of_its_crate() {
    for name in CRATES {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
        let mut files = Vec::new();
        rust_files(&root, &mut files);
        let files: BTreeSet<PathBuf> = files
            .iter()
            .map(|file| file.strip_prefix(&root).expect("below").to_path_buf())
            .filter(|file| !is_of_tests(file))
            .collect();
        let seen: BTreeSet<PathBuf> = sources_of(name).arrows().into_keys().collect();
        assert_eq!(files, seen, "{name}");
    }
}

#[test]
fn crates_depend_only_downwards() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let allowed = [
        ("architecture", vec![]),
        ("dtype", vec![]),
        ("coding", vec![]),
        ("ordering", vec![]),
        ("blosc", vec![]),
        ("hdf5", vec![]),
        ("store", vec!["dtype", "coding", "blosc", "hdf5"]),
        ("kernels", vec!["dtype"]),
        ("sparse", vec!["dtype", "coding", "kernels"]),
        (
            "engine",
            vec!["dtype", "coding", "ordering", "store", "kernels", "sparse"],
        ),
        ("python", vec!["dtype", "coding", "store", "kernels", "engine"]),
    ];
    let folders = fs::read_dir(&crates)
        .expect("the crates")
        .map(|entry| entry.expect("readable").file_name());
    let folders: BTreeSet<String> = folders.map(|name| name.into_string().expect("a name")).collect();
    let named: BTreeSet<String> = allowed.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(
        folders, named,
        "the crates that are there, and the crates that are looked at"
    );
    for (name, below) in allowed {
        let manifest = fs::read_to_string(crates.join(name).join("Cargo.toml")).expect("a manifest");
        // Tests may use what they like.
        let of_library = manifest.split("[dev-dependencies]").next().expect("a beginning");
        for other in &named {
            let depends = of_library
                .lines()
                .any(|line| line.starts_with(&format!("outcore-{other}")));
            assert!(!depends || below.contains(&other.as_str()), "{name} depends on {other}");
        }
    }
}

fn words(path: &str) -> Vec<String> {
    path.split("::").map(String::from).collect()
}

fn imports_of(text: &str) -> Vec<(String, String, bool)> {
    let modules = Modules::of_text(text);
    let imports = modules.all[0].imports.iter().cloned();
    let shown = imports.map(|Import { path, name, public }| (path.join("::"), name, public));
    shown.collect()
}

#[test]
fn comments_literals_and_lifetimes_are_no_words() {
    let text = r####"
        // use crate::a;
        /* use crate::b; /* and */ still */
        fn f<'a>(x: &'a str) -> char { let _ = ("use crate::c;", r#"use "crate"::d"#, b'"', '\'', '"', 1.5e3); '{' }
    "####;
    let found = tokens(text);
    assert!(!found.iter().any(|word| word == "use" || word == "crate"), "{found:?}");
    assert_eq!(found.iter().filter(|word| *word == "{").count(), 1);
    assert_eq!(tokens("a::b"), ["a", "::", "b"]);
}

#[test]
fn every_form_of_use_is_read() {
    let text = "
        use crate::a::b;
        pub use super::c as d;
        pub(in crate::run) use self::e::{self, f::{g, h as i}, j::*};
        use {k, crate::l::M as _,};
        fn inside() { use crate::n::o; }
    ";
    let expected = [
        ("crate::a::b", "b", false),
        ("super::c", "d", true),
        ("self::e", "e", true),
        ("self::e::f::g", "g", true),
        ("self::e::f::h", "i", true),
        ("self::e::j::*", "*", true),
        ("k", "k", false),
        ("crate::l::M", "_", false),
        ("crate::n::o", "o", false),
    ];
    assert_eq!(
        imports_of(text),
        expected.map(|(path, name, public)| (path.into(), name.into(), public))
    );
}

#[test]
fn paths_in_the_midst_of_code_are_read() {
    let text = "impl super::A for B { fn f() -> crate::c::D { $crate::e::f::<G>(self::h::I, j.k()) } }";
    let modules = Modules::of_text(text);
    let expected = ["super::A", "crate::c::D", "crate::e::f", "self::h::I"].map(words);
    assert_eq!(modules.all[0].paths, expected);
}

#[test]
fn what_is_there_for_tests_only_is_passed_over() {
    let text = "
        #[cfg(test)]
        mod tests { use crate::a; mod deep { use crate::b; } }
        #[cfg(test)]
        use crate::c;
        #[cfg(test)]
        #[allow(unused)]
        fn helper(x: [u8; 3]) -> crate::d::E { x }
        #[cfg(not(test))]
        use crate::f;
        use crate::g;
    ";
    let names: Vec<String> = imports_of(text).into_iter().map(|(path, ..)| path).collect();
    assert_eq!(names, ["crate::f", "crate::g"]);
    assert!(Modules::of_text(text).all[0].paths.is_empty());
}

/// A crate of a few files, in a folder of its own.
fn arrows_of(label: &str, files: &[(&str, &str)]) -> BTreeMap<PathBuf, BTreeSet<PathBuf>> {
    let folder = std::env::temp_dir().join(format!("outcore-arrows-{label}-{}", std::process::id()));
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        fs::write(path, text).expect("writable");
    }
    let arrows = Modules::of_crate(&folder).arrows();
    fs::remove_dir_all(&folder).expect("ours");
    arrows
}

fn used(arrows: &BTreeMap<PathBuf, BTreeSet<PathBuf>>, file: &str) -> Vec<String> {
    let used = arrows[Path::new(file)].iter();
    used.map(|file| file.display().to_string()).collect()
}

#[test]
fn re_exports_are_followed_to_the_file_that_they_are_of() {
    let arrows = arrows_of(
        "re-exports",
        &[
            ("lib.rs", "mod a; mod b; pub use a::Thing;"),
            (
                "a/mod.rs",
                "mod deep; pub use deep::{make, Thing}; pub use deep as below;",
            ),
            ("a/deep.rs", "pub struct Thing; pub fn make() {}"),
            (
                "b.rs",
                "use crate::Thing; use crate::a; fn f() { std::mem::drop(a::make()) }",
            ),
        ],
    );
    assert_eq!(used(&arrows, "b.rs"), ["a/deep.rs", "a/mod.rs"]);
    assert!(used(&arrows, "a/mod.rs").is_empty() && used(&arrows, "lib.rs").is_empty());
    assert!(circles(&arrows).is_empty());
}

#[test]
fn a_module_that_uses_what_it_hands_on_and_is_used_by_it_is_a_circle() {
    let arrows = arrows_of(
        "circle",
        &[
            ("lib.rs", "mod a;"),
            (
                "a/mod.rs",
                "mod deep; pub use deep::make; pub struct Thing; fn f() { make() }",
            ),
            (
                "a/deep.rs",
                "mod inner { pub fn make() -> super::super::Thing { todo!() } } pub use inner::make;",
            ),
        ],
    );
    let circle = [("a/deep.rs", "a/mod.rs"), ("a/mod.rs", "a/deep.rs")];
    assert_eq!(circles(&arrows), [circle.map(|(from, to)| (from.into(), to.into()))]);
}

#[test]
fn all_that_a_star_brings_counts() {
    let arrows = arrows_of(
        "star",
        &[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "pub use crate::b::*;"),
            ("b.rs", "pub struct Thing;"),
            ("c.rs", "use crate::a::Thing;"),
        ],
    );
    assert_eq!(used(&arrows, "c.rs"), ["b.rs"]);
}
