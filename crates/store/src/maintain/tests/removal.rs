//! Parts go with the last name of their file, and with nothing else.

use std::fs;
use std::os::fd::AsFd;
use std::path::Path;

use super::{error_of, pages, parts, read_all, volume, write};
use crate::volume::Removing;
use crate::volumes::*;
use crate::{Io, PAGE};

#[test]
fn a_name_that_is_given_while_another_goes_keeps_the_bytes() {
    let dirs = volume(&[1, 1], BlockLayout::Striped, PAGE as u64);
    let io = Io::direct();
    let [x, y] = ["x", "y"].map(|name| dirs.home.join(name));
    let data = pages(8, 1);
    write(&io, &x, &data);
    let within = Removing::at(&dirs.home).unwrap().unwrap();
    let home = fs::File::open(&dirs.home).unwrap();
    let held = within.hold(home.as_fd(), "x").unwrap().unwrap();
    fs::hard_link(&x, &y).unwrap();
    fs::remove_file(&x).unwrap();
    held.let_go().unwrap();
    assert_eq!(read_all(&io, &y, data.len()), &data[..]);

    // Two that remove the last two names at once: one of them takes the parts.
    fs::hard_link(&y, &x).unwrap();
    let held = ["x", "y"].map(|name| within.hold(home.as_fd(), name).unwrap().unwrap());
    fs::remove_file(&x).unwrap();
    fs::remove_file(&y).unwrap();
    for held in held {
        held.let_go().unwrap();
    }
    assert_eq!(parts(&dirs.disks), 0);
}

#[test]
fn names_come_and_go_at_once() {
    let dirs = volume(&[1, 1], BlockLayout::Striped, PAGE as u64);
    let io = Io::direct();
    let [x, y] = ["x", "y"].map(|name| dirs.home.join(name));
    let data = pages(2, 1);
    for _ in 0..200 {
        write(&io, &x, &data);
        let linked = std::thread::scope(|scope| {
            scope.spawn(|| remove_file(&x).unwrap());
            fs::hard_link(&x, &y).is_ok()
        });
        if linked {
            assert_eq!(read_all(&io, &y, data.len()), &data[..]);
            remove_file(&y).unwrap();
        }
        assert_eq!(parts(&dirs.disks), 0);
    }
}

#[test]
fn what_cannot_be_looked_at_is_not_removed() {
    let dirs = volume(&[1, 1], BlockLayout::Striped, PAGE as u64);
    let io = Io::direct();
    let [x, new] = ["x", "new"].map(|name| dirs.home.join(name));
    write(&io, &x, &pages(8, 1));
    write(&io, &new, &pages(8, 2));
    // It is neither there nor gone.
    let (json, aside) = (dirs.disks[1].join("outcore-member.json"), dirs.disks[1].join("aside"));
    fs::rename(&json, &aside).unwrap();
    fs::create_dir(&json).unwrap();
    let named = dirs.disks[1].display().to_string();
    for refused in [
        remove_file(&x).unwrap_err().to_string(),
        remove_tree(&x).unwrap_err().to_string(),
        replace(&new, &x, &io).unwrap_err().to_string(),
        error_of(&Io::direct(), &x).to_string(),
    ] {
        assert!(
            refused.contains(&named) && refused.contains("no regular file"),
            "{refused}"
        );
    }
    fs::remove_dir(&json).unwrap();
    fs::rename(&aside, &json).unwrap();
    assert_eq!(read_all(&io, &x, 8 * PAGE), &pages(8, 1)[..]);
    replace(&new, &x, &io).unwrap();
    assert_eq!(parts(&dirs.disks), 2);
    remove_tree(&x).unwrap();
    assert_eq!(parts(&dirs.disks), 0);
}

#[test]
fn a_part_that_stays_is_told() {
    let dirs = volume(&[1, 1], BlockLayout::Striped, PAGE as u64);
    let x = dirs.home.join("x");
    write(&Io::direct(), &x, &pages(8, 1));
    let part = |disk: &Path| {
        fs::read_dir(disk.join("parts"))
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path()
    };
    let stays = part(&dirs.disks[0]);
    fs::remove_file(&stays).unwrap();
    fs::create_dir(&stays).unwrap();
    let told = remove_file(&x).unwrap_err().to_string();
    assert!(told.contains(&dirs.disks[0].display().to_string()), "{told}");
    assert!(!x.exists());
    assert_eq!(parts(&dirs.disks[1..]), 0);
}

#[test]
fn a_file_that_goes_while_all_are_checked_is_not_damaged() {
    let dirs = volume(&[1, 1], BlockLayout::Striped, PAGE as u64);
    let io = Io::direct();
    let home = dirs.home.canonicalize().unwrap();
    for name in ["gone", "replaced", "damaged"] {
        write(&io, &home.join(name), &pages(8, 1));
    }
    write(&io, &home.join("new"), &pages(8, 1));
    let loaded = crate::volume::assembled::Volume::load(&home, &[]).unwrap();
    let (mut seen, mut found) = (crate::maintain::scan::SeenParts::default(), Checked::default());
    crate::maintain::scan::stubs(&home, &mut |file| {
        match file.path.file_name().and_then(|name| name.to_str()) {
            Some("gone") => drop(remove_file(file.path).unwrap()),
            Some("replaced") => replace(&home.join("new"), file.path, &io).unwrap(),
            Some("damaged") => {
                let (stub, _) = file.stub.as_ref().unwrap();
                fs::remove_file(crate::volume::disk::part_path(&dirs.disks[0], &stub.file)).unwrap();
            }
            _ => {}
        }
        seen.take(&loaded, file, &mut found);
    })
    .unwrap();
    let damaged: Vec<_> = found.damaged.iter().map(|(path, _)| path.clone()).collect();
    assert_eq!(damaged, [home.join("damaged")]);
}
