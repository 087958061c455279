//! Which disks a volume has, where they are, and whose description is to be believed.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{json, Value};

use super::{error_of, pages, parts, read_all, volume, write};
use crate::backend::Mode;
use crate::volume::description::{MEMBER_JSON, VOLUME_JSON};
use crate::volumes::*;
use crate::{Io, PAGE};

fn edit(home: &Path, change: impl FnOnce(&mut Value)) {
    let path = home.join(VOLUME_JSON);
    let mut value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut value);
    fs::write(path, value.to_string()).unwrap();
}

#[test]
fn a_file_that_another_description_laid_out_is_refused() {
    let dirs = volume(&[1, 2, 3], BlockLayout::Rotated, PAGE as u64);
    let path = dirs.home.join("x");
    let data = pages(40, 3);
    write(&Io::direct(), &path, &data);
    let whole = fs::read(dirs.home.join(VOLUME_JSON)).unwrap();
    let changes: [fn(&mut Value); 4] = [
        |value| value["members"].as_array_mut().unwrap().reverse(),
        |value| value["generations"][0]["weights"] = json!([2, 1, 3]),
        |value| value["generations"][0]["layout"] = json!("hashed"),
        |value| value["generations"][0]["block_bytes"] = json!(2 * PAGE),
    ];
    for change in changes {
        edit(&dirs.home, change);
        let refused = error_of(&Io::direct(), &path).to_string();
        assert!(refused.contains("was laid out otherwise"), "{refused}");
        assert_eq!(check(&dirs.home, false).unwrap().damaged.len(), 1);
        fs::write(dirs.home.join(VOLUME_JSON), &whole).unwrap();
    }
    assert_eq!(read_all(&Io::direct(), &path, data.len()), &data[..]);

    // The same number again, for other weights.
    add(&dirs.home, &dirs.root.path().join("fourth"), 1).unwrap();
    let newer = dirs.home.join("y");
    write(&Io::direct(), &newer, &data);
    fs::write(dirs.home.join(VOLUME_JSON), &whole).unwrap();
    add(&dirs.home, &dirs.root.path().join("fifth"), 1).unwrap();
    let refused = error_of(&Io::direct(), &newer).to_string();
    assert!(refused.contains("was laid out otherwise"), "{refused}");
    let done = rebalance(&dirs.home, &Io::direct(), &mut || true).unwrap();
    assert_eq!((done.files, done.left), (1, 1));
}

fn below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let with_theirs = |path: PathBuf| {
        let theirs = if path.is_dir() { below(&path) } else { vec![] };
        std::iter::once(path).chain(theirs)
    };
    let mut found: Vec<_> = entries.flat_map(with_theirs).collect();
    found.sort();
    found
}

#[test]
fn what_is_refused_leaves_nothing_that_was_not_there() {
    let dirs = volume(&[1, 1], BlockLayout::Striped, PAGE as u64);
    let root = dirs.root.path();
    fs::create_dir(root.join("empty")).unwrap();
    fs::write(root.join("file"), "text").unwrap();
    // The description cannot get its name.
    fs::create_dir_all(root.join("taken/outcore-volume.new/held")).unwrap();
    let before = below(root);
    let make = |home: &str, disks: [&str; 2]| {
        let members = disks.map(|disk| (root.join(disk), 1));
        create(&root.join(home), &members, BlockLayout::Striped, PAGE as u64)
    };
    for (home, disks) in [
        ("new/home", ["a/b/first", "disk-0"]),
        ("new", ["empty", "file"]),
        ("new", ["a/../b/first", "home/second"]),
        ("home", ["a", "b"]),
        ("file/home", ["a", "b"]),
        ("taken", ["a/b", "empty"]),
        ("new", ["empty", "empty"]),
    ] {
        make(home, disks).unwrap_err();
        assert_eq!(below(root), before, "{home} {disks:?}");
    }
    for disk in ["file", "disk-1", "home/a/b"] {
        add(&dirs.home, &root.join(disk), 1).unwrap_err();
        assert_eq!(below(root), before, "{disk}");
    }
    fs::create_dir(dirs.home.join("outcore-volume.new")).unwrap();
    add(&dirs.home, &root.join("a/b"), 1).unwrap_err();
    assert!(!root.join("a").exists());
    make("new/home", ["a/b", "empty"]).unwrap();
}

#[test]
fn what_is_no_volume_is_told_with_what_to_do() {
    let dirs = volume(&[1], BlockLayout::Striped, PAGE as u64);
    let (root, within) = (dirs.root.path(), dirs.home.join("within"));
    fs::create_dir(&within).unwrap();
    let asked = |home: &Path| {
        [
            info(home, &[]).map(|_| ()),
            check(home, false).map(|_| ()),
            rebalance(home, &Io::direct(), &mut || true).map(|_| ()),
            set_weights(home, &[]),
        ]
        .map(Result::unwrap_err)
    };
    for error in asked(root) {
        assert_eq!(error.code(), "invalid");
        let told = format!("{}: is no volume", root.display());
        assert!(
            error.to_string().starts_with(&told) && error.to_string().contains("volume create"),
            "{error}"
        );
    }
    for error in asked(&within) {
        let told = format!("name {}", dirs.home.canonicalize().unwrap().display());
        assert!(error.to_string().contains(&told), "{error}");
    }
    for error in asked(&root.join("nothing")) {
        assert_eq!(error.code(), "missing");
        assert!(
            error.to_string().contains("nothing: no such file or directory"),
            "{error}"
        );
    }
}

#[test]
fn stubs_that_do_not_say_how_they_were_laid_out_are_read() {
    use std::os::unix::fs::FileExt;
    let dirs = volume(&[1, 1], BlockLayout::Striped, PAGE as u64);
    let path = dirs.home.join("x");
    write(&Io::direct(), &path, &pages(8, 3));
    let file = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let stub = Stub::of(&file).unwrap().unwrap();
    assert_ne!(stub.layout_sum, 0);
    file.write_all_at(&Stub { layout_sum: 0, ..stub }.bytes(), 0).unwrap();
    assert_eq!(read_all(&Io::direct(), &path, 8 * PAGE), &pages(8, 3)[..]);
}

#[test]
fn bytes_are_durable_also_on_disks_that_get_nothing_new() {
    let dirs = volume(&[1, 1, 1], BlockLayout::Striped, PAGE as u64);
    let io = Io::direct();
    let path = dirs.home.join("x");
    let file = io.open(&path, Mode::Create).unwrap();
    io.write(&file, &pages(9, 1), 0).unwrap();
    set_weights(&dirs.home, &[(dirs.disks[1].display().to_string(), 0)]).unwrap();
    io.sync_file_system(&dirs.home).unwrap();
    fs::rename(dirs.disks[1].join(MEMBER_JSON), dirs.disks[1].join("aside")).unwrap();
    let refused = io.sync_file_system(&dirs.home).unwrap_err().to_string();
    assert!(refused.contains(&dirs.disks[1].display().to_string()), "{refused}");
    // Who wrote nothing there does without it.
    Io::direct().sync_file_system(&dirs.home).unwrap();
}

#[test]
fn a_disk_found_elsewhere_is_told_once() {
    let dirs = volume(&[1, 1], BlockLayout::Striped, PAGE as u64);
    let path = dirs.home.join("x");
    write(&Io::direct(), &path, &pages(8, 1));
    let io = Io::direct();
    read_all(&io, &path, 8 * PAGE);
    assert!(io.notes().is_empty());
    fs::rename(&dirs.disks[0], dirs.root.path().join("moved")).unwrap();
    let io = Io::direct();
    read_all(&io, &path, 8 * PAGE);
    let notes = io.notes();
    assert_eq!(notes.len(), 1);
    assert!(
        notes[0].contains("disk-0") && notes[0].contains("moved") && notes[0].contains("info"),
        "{notes:?}"
    );
    read_all(&io, &path, 8 * PAGE);
    assert!(io.notes().is_empty());
    record_places(&dirs.home, &[]).unwrap();
    let io = Io::direct();
    read_all(&io, &path, 8 * PAGE);
    assert!(io.notes().is_empty());
}

#[test]
fn of_two_directories_that_say_they_are_one_disk_none_is_taken() {
    let dirs = volume(&[1, 1], BlockLayout::Striped, PAGE as u64);
    let path = dirs.home.join("x");
    write(&Io::direct(), &path, &pages(8, 1));
    let [copy, moved] = ["copy", "moved"].map(|name| dirs.root.path().join(name));
    fs::create_dir_all(copy.join("parts")).unwrap();
    fs::copy(dirs.disks[0].join(MEMBER_JSON), copy.join(MEMBER_JSON)).unwrap();
    // While the disk is where it was, nobody looks further.
    assert_eq!(read_all(&Io::direct(), &path, 8 * PAGE), &pages(8, 1)[..]);
    fs::rename(&dirs.disks[0], &moved).unwrap();
    let refused = error_of(&Io::direct(), &path).to_string();
    for named in ["disk-0", "copy", "moved", MEMBER_JSON] {
        assert!(refused.contains(named), "{refused}");
    }
    assert!(record_places(&dirs.home, &[]).is_err());
    assert!(remove_file(&path).is_err());
    let member = &info(&dirs.home, &[]).unwrap().members[0];
    assert!(!member.found && member.reason.as_ref().unwrap().contains("copy"));
    fs::remove_file(copy.join(MEMBER_JSON)).unwrap();
    assert_eq!(read_all(&Io::direct(), &path, 8 * PAGE), &pages(8, 1)[..]);
}

#[test]
fn an_emptied_disk_is_taken_out() {
    for is_there in [true, false] {
        let dirs = volume(&[1, 2, 1], BlockLayout::Rotated, PAGE as u64);
        let io = Io::direct();
        let path = dirs.home.join("x");
        let data = pages(40, 4);
        write(&io, &path, &data);
        let name = dirs.disks[0].display().to_string();
        let refused = |reason: &str| {
            let refused = remove(&dirs.home, &name).unwrap_err().to_string();
            assert!(refused.contains(reason), "{refused}");
        };
        refused("new files are laid out on it");
        set_weights(&dirs.home, &[(name.clone(), 0)]).unwrap();
        refused("x is laid out on it");
        rebalance(&dirs.home, &io, &mut || true).unwrap();
        let late = dirs.home.join("late");
        write(&io, &late, &data);
        fs::write(dirs.disks[0].join("parts/0123456789abcdef0123456789abcdef"), "orphan").unwrap();
        refused("it has parts");
        check(&dirs.home, true).unwrap();
        if !is_there {
            fs::remove_dir_all(&dirs.disks[0]).unwrap();
            assert!(check(&dirs.home, true).is_err());
        }
        remove(&dirs.home, &name).unwrap();
        assert_eq!(info(&dirs.home, &[]).unwrap().members.len(), 2);
        assert!(remove(&dirs.home, &name).is_err());
        for io in [io, Io::direct()] {
            assert_eq!(read_all(&io, &path, data.len()), &data[..]);
            assert_eq!(read_all(&io, &late, data.len()), &data[..]);
        }
        let found = check(&dirs.home, true).unwrap();
        assert_eq!((found.files, found.older, found.damaged.len()), (2, 0, 0));
        write(&Io::direct(), &dirs.home.join("y"), &data);
        assert_eq!(parts(&dirs.disks[1..]), 6);
        // It may serve again.
        add(&dirs.home, &dirs.disks[0], 1).unwrap();
        rebalance(&dirs.home, &Io::direct(), &mut || true).unwrap();
        assert_eq!(read_all(&Io::direct(), &path, data.len()), &data[..]);
        assert_eq!(parts(&dirs.disks), 9);
    }
}
