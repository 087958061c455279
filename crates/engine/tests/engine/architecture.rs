//! The arrows of the design, which cargo cannot check inside a crate.

use std::fs;
use std::path::{Path, PathBuf};

const ROOMS: [&str; 6] = ["expr", "ops", "plan", "schedule", "place", "run"];

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the crate") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|suffix| suffix == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn a_room_uses_only_rooms_to_its_left() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (place, room) in ROOMS.iter().enumerate() {
        let mut files = Vec::new();
        rust_files(&root.join(room), &mut files);
        assert!(!files.is_empty(), "{room} is empty");
        for file in files {
            let text = fs::read_to_string(&file).expect("readable");
            for right in &ROOMS[place + 1..] {
                let arrow = format!("crate::{right}::");
                assert!(
                    !text.contains(&arrow),
                    "{} uses {right}, which stands to its right",
                    file.display()
                );
            }
        }
    }
}

#[test]
fn crates_depend_only_downwards() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let allowed = [
        ("dtype", vec![]),
        ("store", vec!["dtype"]),
        ("kernels", vec!["dtype"]),
        ("engine", vec!["dtype", "store", "kernels"]),
    ];
    for (name, below) in allowed {
        let manifest = fs::read_to_string(crates.join(name).join("Cargo.toml")).expect("a manifest");
        for other in ["dtype", "store", "kernels", "engine", "python"] {
            let depends = manifest
                .lines()
                .any(|line| line.starts_with(&format!("outcore-{other}")));
            assert!(!depends || below.contains(&other), "{name} depends on {other}");
        }
    }
}
