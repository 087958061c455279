//! Copies of names, links, and what stands in the way.

use std::fs;
use std::path::Path;

use super::*;
use crate::backend::stamp::Stamp;
use crate::backend::Mode;
use crate::volume::home_of;
use crate::volumes::*;
use crate::{Io, PAGE};

/// Copies the bytes of a stub as programs do that know nothing of volumes.
fn copy_densely(from: &Path, to: &Path) {
    fs::write(to, fs::read(from).unwrap()).unwrap();
}

#[test]
fn a_copied_stub_is_no_second_name_of_the_parts() {
    let dirs = volume(&[1, 1], BlockLayout::Striped, PAGE as u64);
    let io = Io::direct();
    let [a, b, c] = ["a", "b", "c"].map(|name| dirs.home.join(name));
    let data = pages(32, 4);
    write(&io, &a, &data);
    copy_densely(&a, &b);
    for mode in [Mode::Read, Mode::Reopen] {
        let refused = io.open(&b, mode).err().unwrap().to_string();
        assert!(refused.contains("a copy of the name of a file"), "{refused}");
    }
    for repair in [false, true] {
        let found = check(&dirs.home, repair).unwrap();
        assert_eq!((found.files, found.orphans, found.adopted), (1, 0, 0));
        assert_eq!(found.damaged.len(), 1);
        assert_eq!(found.damaged[0].0, b);
    }
    // It is left out when files are laid out anew, as are those with several names.
    fs::hard_link(&a, &c).unwrap();
    add(&dirs.home, &dirs.root.path().join("third"), 1).unwrap();
    let done = rebalance(&dirs.home, &io, &mut || true).unwrap();
    assert_eq!((done.files, done.left), (0, 3));
    fs::remove_file(&c).unwrap();
    let done = rebalance(&dirs.home, &io, &mut || true).unwrap();
    assert_eq!((done.files, done.left), (1, 1));
    // Neither removing nor replacing it takes anything from the original.
    write(&io, &c, &pages(8, 1));
    replace(&c, &b, &io).unwrap();
    assert_eq!(read_all(&io, &a, data.len()), &data[..]);
    copy_densely(&a, &c);
    remove_file(&c).unwrap();
    fs::rename(&a, &c).unwrap();
    assert_eq!(read_all(&io, &c, data.len()), &data[..]);
    assert_eq!(read_all(&io, &b, 8 * PAGE), &pages(8, 1)[..]);
}

#[test]
fn names_that_were_restored_are_adopted() {
    let dirs = volume(&[1, 1], BlockLayout::Striped, PAGE as u64);
    let io = Io::direct();
    let [a, b, c] = ["a", "b", "c"].map(|name| dirs.home.join(name));
    let data = pages(32, 4);
    write(&io, &a, &data);
    copy_densely(&a, &b);
    copy_densely(&a, &c);
    fs::remove_file(&a).unwrap();
    // Which of two it should be is not known.
    let found = check(&dirs.home, true).unwrap();
    assert_eq!((found.adopted, found.damaged.len(), found.orphans), (0, 2, 0));
    fs::remove_file(&c).unwrap();
    let before = Stamp::of(&b).unwrap();
    let found = check(&dirs.home, true).unwrap();
    assert_eq!((found.adopted, found.damaged.len(), found.files), (1, 0, 1));
    assert_eq!(read_all(&io, &b, data.len()), &data[..]);
    assert_eq!(Stamp::of(&b).unwrap().bytes, before.bytes);
}

#[test]
fn dense_copies_outside_of_the_volume_are_refused() {
    let dirs = volume(&[1, 1], BlockLayout::Striped, PAGE as u64);
    let (path, stray) = (dirs.home.join("x"), dirs.root.path().join("stray"));
    write(&Io::direct(), &path, &pages(32, 4));
    copy_densely(&path, &stray);
    for io in [Io::direct(), Io::buffered()] {
        for _ in 0..2 {
            assert!(error_of(&io, &stray).to_string().contains("moved or copied out of it"));
        }
        assert!(io.open(&stray, Mode::Reopen).is_err());
    }
}

#[test]
fn a_file_that_replaces_itself_stays() {
    let dirs = volume(&[1, 1], BlockLayout::Striped, PAGE as u64);
    let io = Io::direct();
    let (path, link) = (dirs.home.join("x"), dirs.root.path().join("link"));
    let data = pages(32, 4);
    write(&io, &path, &data);
    std::os::unix::fs::symlink(&dirs.home, &link).unwrap();
    replace(&path, &path, &io).unwrap();
    replace(&path, &link.join("x"), &io).unwrap();
    assert_eq!(read_all(&io, &path, data.len()), &data[..]);
}

#[test]
fn one_damaged_stub_hides_nothing_else() {
    let dirs = volume(&[1, 1], BlockLayout::Striped, PAGE as u64);
    let io = Io::direct();
    let [good, damaged, cut, gone] = ["good", "damaged", "cut", "gone"].map(|name| dirs.home.join(name));
    for path in [&good, &damaged, &cut, &gone] {
        write(&io, path, &pages(8, 4));
    }
    let mut bytes = fs::read(&damaged).unwrap();
    bytes[30] ^= 1;
    fs::write(&damaged, bytes).unwrap();
    fs::OpenOptions::new()
        .write(true)
        .open(&cut)
        .unwrap()
        .set_len(40)
        .unwrap();
    fs::remove_file(&gone).unwrap();
    for repair in [false, true] {
        let found = check(&dirs.home, repair).unwrap();
        let mut listed: Vec<_> = found.damaged.iter().map(|(path, _)| path.clone()).collect();
        listed.sort();
        assert_eq!(listed, [cut.clone(), damaged.clone()]);
        // Parts may be of those, and stay.
        assert_eq!((found.files, found.orphans, found.repaired), (1, 6, false));
        assert_eq!(parts(&dirs.disks), 8);
    }
    add(&dirs.home, &dirs.root.path().join("third"), 1).unwrap();
    let done = rebalance(&dirs.home, &io, &mut || true).unwrap();
    assert_eq!((done.files, done.left), (1, 2));
    fs::remove_file(&damaged).unwrap();
    fs::remove_file(&cut).unwrap();
    let found = check(&dirs.home, true).unwrap();
    assert_eq!((found.orphans, found.repaired), (6, true));
    assert_eq!(read_all(&io, &good, 8 * PAGE), &pages(8, 4)[..]);
}

#[test]
fn files_in_a_disk_or_volume_below_the_home_keep_their_parts() {
    let root = tempfile::tempdir().unwrap();
    let (home, disk) = (root.path().join("home"), root.path().join("home/disk"));
    create(&home, &[(disk.clone(), 1)], BlockLayout::Striped, PAGE as u64).unwrap();
    let io = Io::direct();
    let (in_disk, below) = (disk.join("x"), home.join("below"));
    fs::create_dir(&below).unwrap();
    let data = pages(8, 4);
    write(&io, &in_disk, &data);
    write(&io, &below.join("y"), &data);
    let found = check(&home, true).unwrap();
    assert_eq!((found.files, found.orphans, found.damaged.len()), (2, 0, 0));
    // Neither a disk nor a volume is made there.
    let new = [(root.path().join("new"), 1)];
    for refused in [
        add(&home, &below, 1),
        add(&home, &home.join("not/there"), 1),
        create(&below, &new, BlockLayout::Striped, 4096),
        create(
            &root.path().join("other"),
            &[(below.clone(), 1)],
            BlockLayout::Striped,
            4096,
        ),
    ] {
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("lies in the volume"), "{refused}");
    }
    assert!(!home.join("not").exists());
    // One that was moved there is looked into.
    let inner = root.path().join("inner");
    create(&inner, &new, BlockLayout::Striped, 4096).unwrap();
    fs::rename(&inner, home.join("inner")).unwrap();
    fs::rename(below.join("y"), home.join("inner/y")).unwrap();
    let found = check(&home, true).unwrap();
    assert_eq!((found.files, found.orphans), (1, 0));
    assert_eq!(found.damaged[0].0, home.canonicalize().unwrap().join("inner/y"));
    fs::rename(home.join("inner/y"), below.join("y")).unwrap();
    assert_eq!(read_all(&io, &below.join("y"), data.len()), &data[..]);
    assert_eq!(read_all(&io, &in_disk, data.len()), &data[..]);
}

#[test]
fn what_replaced_a_file_while_it_was_laid_out_anew_stays() {
    let dirs = volume(&[1, 1], BlockLayout::Striped, PAGE as u64);
    let io = Io::direct();
    let (path, new) = (dirs.home.join("x"), dirs.home.join("new"));
    write(&io, &path, &pages(8, 1));
    let before = Stamp::of(&path).unwrap();
    let copied = |path: &Path| {
        let file = io.open(path, Mode::Read).unwrap();
        let copy = |new: &Path| crate::durable::rename::copy(&file, 8 * PAGE as u64, new, &io, &mut || true);
        crate::durable::partial::Partial::new(path, true, copy).unwrap().0
    };
    // At the last moment, behind the last look at what has the name.
    let partial = copied(&path);
    write(&io, &new, &pages(8, 2));
    replace(&new, &path, &io).unwrap();
    assert!(!crate::maintain::rebalance::place_instead(&partial, &before, &io).unwrap());
    drop(partial);
    assert_eq!(read_all(&io, &path, 8 * PAGE), &pages(8, 2)[..]);
    assert_eq!(parts(&dirs.disks), 2);
    let before = Stamp::of(&path).unwrap();
    let partial = copied(&path);
    assert!(crate::maintain::rebalance::place_instead(&partial, &before, &io).unwrap());
    drop(partial);
    assert_eq!(parts(&dirs.disks), 2);

    // Or while it is copied: the others are laid out anew.
    write(&io, &new, &pages(8, 3));
    write(&io, &dirs.home.join("y"), &pages(8, 4));
    add(&dirs.home, &dirs.root.path().join("third"), 1).unwrap();
    let done = rebalance(&dirs.home, &io, &mut || {
        if new.exists() {
            replace(&new, &path, &Io::direct()).unwrap();
        }
        true
    });
    let done = done.unwrap();
    assert_eq!(done.files + done.left, 3);
    assert!(done.left >= 1);
    assert_eq!(read_all(&io, &path, 8 * PAGE), &pages(8, 3)[..]);
    assert_eq!(read_all(&io, &dirs.home.join("y"), 8 * PAGE), &pages(8, 4)[..]);
    assert_eq!(check(&dirs.home, false).unwrap().orphans, 0);
}

/// In a directory that others may write to, a description of theirs, or what is no file, says nothing.
#[test]
fn volumes_of_others_and_what_is_no_file_are_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join(crate::volume::description::VOLUME_JSON);
    rustix::fs::mkfifoat(rustix::fs::CWD, &json, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    assert_eq!(home_of(&dir.path().join("x.npy")), None);
    fs::remove_file(&json).unwrap();
    fs::write(&json, "{}").unwrap();
    assert_eq!(
        home_of(&dir.path().join("x.npy")),
        Some(dir.path().canonicalize().unwrap())
    );
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&json, Some(65534), None).unwrap();
        assert_eq!(home_of(&dir.path().join("x.npy")), None);
    }
}

#[test]
fn stubs_outside_of_their_volume_are_refused() {
    let dirs = volume(&[1, 1], BlockLayout::Striped, PAGE as u64);
    let others = volume(&[1], BlockLayout::Striped, PAGE as u64);
    let path = dirs.home.join("x");
    write(&Io::direct(), &path, &pages(32, 4));
    let stray = dirs.root.path().join("stray");
    fs::rename(&path, &stray).unwrap();
    assert!(error_of(&Io::direct(), &stray)
        .to_string()
        .contains("moved or copied out of it"));
    let alien = others.home.join("alien");
    fs::rename(&stray, &alien).unwrap();
    assert!(error_of(&Io::direct(), &alien)
        .to_string()
        .contains("belongs to the volume"));
    // Whoever removes it there removes nothing of the other volume's.
    remove_file(&alien).unwrap();
    assert_eq!(parts(&dirs.disks), 2);
    // Without a name they are found.
    let found = check(&dirs.home, true).unwrap();
    assert_eq!((found.orphans, found.orphan_bytes), (2, 32 * PAGE as u64));
    assert_eq!(parts(&dirs.disks), 0);
}

#[test]
fn links_into_a_volume_are_followed() {
    let dirs = volume(&[1, 1], BlockLayout::Striped, PAGE as u64);
    let io = Io::direct();
    let data = pages(32, 4);
    fs::create_dir(dirs.home.join("below")).unwrap();
    write(&io, &dirs.home.join("below/x"), &data);
    let (file, folder) = (dirs.root.path().join("link"), dirs.root.path().join("folder"));
    std::os::unix::fs::symlink(dirs.home.join("below/x"), &file).unwrap();
    std::os::unix::fs::symlink(dirs.home.join("below"), &folder).unwrap();
    for _ in 0..2 {
        assert_eq!(read_all(&io, &file, data.len()), &data[..]);
        assert_eq!(read_all(&io, &folder.join("x"), data.len()), &data[..]);
        // Where no volume is, that is remembered for a while.
        fs::write(dirs.root.path().join("plain"), "plain").unwrap();
        io.open(&dirs.root.path().join("plain"), Mode::Read).unwrap();
    }
    write(&io, &folder.join("y"), &data);
    assert_eq!(parts(&dirs.disks), 4);
    remove_file(&folder.join("y")).unwrap();
    assert_eq!(parts(&dirs.disks), 2);
}
