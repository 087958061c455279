//! Files of volumes, and what becomes of them when disks and calls fail.

use std::fs;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::backend::stamp::Stamp;
use crate::backend::Mode;
use crate::io::Faults;
use crate::volumes::*;
use crate::{Io, PAGE};

#[test]
fn a_file_is_spread_over_the_disks_and_read_back() {
    for layout in BlockLayout::ALL {
        for io in [Io::direct(), Io::buffered()] {
            let dirs = volume(&[1, 2, 1], layout, 2 * PAGE as u64);
            let path = dirs.home.join("x");
            let data = pages(33, 1);
            write(&io, &path, &data);
            assert_eq!(read_all(&io, &path, data.len()), &data[..]);
            assert_eq!(parts(&dirs.disks), 3);
            // The system's word on it is true.
            assert_eq!(fs::metadata(&path).unwrap().len(), data.len() as u64);
            let on_disks: u64 = info(&dirs.home, &[])
                .unwrap()
                .members
                .iter()
                .map(|member| member.bytes)
                .sum();
            assert_eq!(on_disks, data.len() as u64);
            // The counters of the disks add up to those of calls.
            let counters = io.disks();
            assert_eq!(
                counters.iter().map(|disk| disk.bytes_written).sum::<u64>(),
                io.counters().bytes_written
            );
            assert_eq!(
                counters.iter().map(|disk| disk.bytes_read).sum::<u64>(),
                io.counters().bytes_read
            );
            assert!(check(&dirs.home, false).unwrap().damaged.is_empty());
        }
    }
}

#[test]
fn neighbouring_blocks_of_a_disk_are_one_call() {
    let dirs = volume(&[1, 1], BlockLayout::Striped, PAGE as u64);
    let io = Io::direct();
    let path = dirs.home.join("x");
    write(&io, &path, &pages(64, 1));
    let written: u64 = io.disks().iter().map(|disk| disk.requests).sum();
    read_all(&io, &path, 64 * PAGE);
    let read = io.disks().iter().map(|disk| disk.requests).sum::<u64>() - written;
    assert_eq!((written, read), (2, 2));
}

#[test]
fn short_files_are_plain_and_move_to_the_disks_when_they_grow() {
    let dirs = volume(&[1, 1], BlockLayout::Hashed, PAGE as u64);
    let io = Io::buffered();
    let path = dirs.home.join("x");
    let file = io.open(&path, Mode::CreateUnaligned).unwrap();
    io.write(&file, b"a beginning", 0).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"a beginning");
    assert_eq!(parts(&dirs.disks), 0);
    io.write(&file, &[7; 3 * PAGE], 11).unwrap();
    io.sync(&file).unwrap();
    let mut expected = b"a beginning".to_vec();
    expected.extend([7; 3 * PAGE]);
    assert_eq!(read_all(&io, &path, expected.len()), expected);
    assert_eq!(parts(&dirs.disks), 2);
    // And back, when they are cut.
    file.set_len(5).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"a beg");
    assert_eq!(parts(&dirs.disks), 0);
}

#[test]
fn a_file_of_one_block_lies_on_one_disk() {
    let dirs = volume(&[1; 4], BlockLayout::Striped, 16 * PAGE as u64);
    let io = Io::direct();
    for number in 0..64 {
        write(&io, &dirs.home.join(number.to_string()), &pages(3, number));
    }
    assert_eq!(parts(&dirs.disks), 64);
    assert!(dirs.disks.iter().all(|disk| parts(std::slice::from_ref(disk)) > 4));
}

#[test]
fn a_written_file_has_another_stamp() {
    let dirs = volume(&[1, 1], BlockLayout::Striped, PAGE as u64);
    let io = Io::direct();
    let path = dirs.home.join("x");
    write(&io, &path, &pages(8, 1));
    let file = io.open(&path, Mode::Reopen).unwrap();
    let before = Stamp::of(&path).unwrap();
    assert_eq!(file.stamp().unwrap(), before);
    std::thread::sleep(Duration::from_millis(20));
    io.write(&file, &pages(1, 9), 4 * PAGE as u64).unwrap();
    assert_ne!(Stamp::of(&path).unwrap(), before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Against a vector of bytes: writes, lengths and reads in any order, at any place.
    #[test]
    fn a_file_is_what_was_written_to_it(
        layout in 0..3usize,
        weights in prop::collection::vec(1..4u32, 1..4),
        steps in prop::collection::vec((0..3u8, 0..60_000u64, 1..20_000usize), 1..12),
    ) {
        let dirs = volume(&weights, BlockLayout::ALL[layout], PAGE as u64);
        let io = Io::buffered();
        let path = dirs.home.join("x");
        let file = io.open(&path, Mode::CreateUnaligned).unwrap();
        let mut model: Vec<u8> = vec![];
        for (number, &(kind, offset, bytes)) in steps.iter().enumerate() {
            match kind {
                0 => {
                    let at = offset as usize;
                    model.resize(model.len().max(at + bytes), 0);
                    model[at..at + bytes].fill(number as u8 + 1);
                    io.write(&file, &vec![number as u8 + 1; bytes], offset).unwrap();
                }
                1 => {
                    model.resize(offset as usize, 0);
                    file.set_len(offset).unwrap();
                }
                _ => {
                    model.resize(model.len().max(offset as usize), 0);
                    file.allocate(offset).unwrap();
                }
            }
            prop_assert_eq!(file.len().unwrap(), model.len() as u64);
        }
        io.sync(&file).unwrap();
        prop_assert_eq!(read_all(&io, &path, model.len()), model);
        let found = check(&dirs.home, false).unwrap();
        prop_assert!(found.damaged.is_empty(), "{:?}", found.damaged);
        prop_assert_eq!(found.orphans, 0);
    }
}

#[test]
fn a_file_with_a_gap_can_be_cut_before_it() {
    let dirs = volume(&[1, 1], BlockLayout::Striped, PAGE as u64);
    let io = Io::buffered();
    let path = dirs.home.join("x");
    let file = io.open(&path, Mode::CreateUnaligned).unwrap();
    io.write(&file, &[1], PAGE as u64).unwrap();
    file.set_len(1).unwrap();
    io.sync(&file).unwrap();
    assert_eq!(read_all(&io, &path, 1), [0]);
}

#[test]
fn what_a_file_had_is_gone_from_the_disks_with_its_name() {
    let dirs = volume(&[1, 1], BlockLayout::Striped, PAGE as u64);
    let io = Io::direct();
    let (one, two) = (dirs.home.join("one"), dirs.home.join("below/two"));
    fs::create_dir(dirs.home.join("below")).unwrap();
    write(&io, &one, &pages(8, 1));
    write(&io, &two, &pages(8, 1));
    // A second name keeps it.
    fs::hard_link(&one, dirs.home.join("other")).unwrap();
    remove_file(&one).unwrap();
    assert_eq!(read_all(&io, &dirs.home.join("other"), 8 * PAGE), &pages(8, 1)[..]);
    remove_file(&dirs.home.join("other")).unwrap();
    assert_eq!(parts(&dirs.disks), 2);
    remove_tree(&dirs.home.join("below")).unwrap();
    assert_eq!(parts(&dirs.disks), 0);
}

#[test]
fn renamed_mount_points_are_found() {
    let dirs = volume(&[1, 1, 1], BlockLayout::Rotated, PAGE as u64);
    let path = dirs.home.join("x");
    let data = pages(20, 4);
    write(&Io::direct(), &path, &data);
    let moved = dirs.root.path().join("renamed");
    let io = Io::direct();
    read_all(&io, &path, data.len());
    fs::rename(&dirs.disks[1], &moved).unwrap();
    // Also by who knew it where it was.
    assert_eq!(read_all(&io, &path, data.len()), &data[..]);
    assert_eq!(read_all(&Io::direct(), &path, data.len()), &data[..]);
    let members = info(&dirs.home, &[]).unwrap().members;
    assert_eq!(
        (&members[1].path, members[1].recorded.as_ref()),
        (&moved, Some(&dirs.disks[1]))
    );
    // Far away it is found where one is told to look, and written down.
    let far = tempfile::tempdir().unwrap();
    fs::create_dir(far.path().join("sub")).unwrap();
    fs::rename(&moved, far.path().join("sub/d")).unwrap();
    assert!(!info(&dirs.home, &[]).unwrap().members[1].found);
    record_places(&dirs.home, &[far.path().join("sub")]).unwrap();
    assert_eq!(read_all(&Io::direct(), &path, data.len()), &data[..]);
}

#[test]
fn a_disk_that_is_gone_is_named() {
    let dirs = volume(&[1, 1, 1], BlockLayout::Striped, PAGE as u64);
    let io = Io::direct();
    let path = dirs.home.join("x");
    write(&io, &path, &pages(32, 4));
    let begun = io.open(&dirs.home.join("y"), Mode::Create).unwrap();
    io.write(&begun, &pages(32, 4), 0).unwrap();
    fs::remove_dir_all(&dirs.disks[1]).unwrap();
    let named = dirs.disks[1].display().to_string();
    for error in [
        error_of(&io, &path),
        error_of(&Io::direct(), &path),
        // What was written to it is not durable.
        io.sync(&begun).unwrap_err(),
        io.sync_file_system(&dirs.home).unwrap_err(),
    ] {
        assert_eq!(error.code(), "io");
        assert!(error.to_string().contains(&named), "{error}");
    }
    // Two files, and the disk.
    assert_eq!(check(&dirs.home, false).unwrap().damaged.len(), 3);
    assert!(check(&dirs.home, true).unwrap_err().to_string().contains(&named));
    assert!(io.disks()[1].errors > 0);
}

#[test]
fn parts_that_are_too_short_or_gone_are_errors_and_never_zeros() {
    let dirs = volume(&[1, 1], BlockLayout::Striped, PAGE as u64);
    let path = dirs.home.join("x");
    write(&Io::direct(), &path, &pages(32, 4));
    let part = fs::read_dir(dirs.disks[0].join("parts"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    fs::OpenOptions::new()
        .write(true)
        .open(&part)
        .unwrap()
        .set_len(5 * PAGE as u64)
        .unwrap();
    let error = error_of(&Io::direct(), &path);
    assert!(
        error.to_string().contains("20480 bytes where 65536 belong to it"),
        "{error}"
    );
    assert_eq!(check(&dirs.home, false).unwrap().damaged.len(), 1);
    fs::remove_file(&part).unwrap();
    assert!(error_of(&Io::direct(), &path).to_string().contains("is gone"));
}

#[test]
fn files_are_laid_out_anew_when_a_disk_is_added() {
    let dirs = volume(&[1, 1], BlockLayout::Rotated, PAGE as u64);
    let io = Io::direct();
    let path = dirs.home.join("x");
    let data = pages(40, 4);
    write(&io, &path, &data);
    let third = dirs.root.path().join("third");
    add(&dirs.home, &third, 2).unwrap();
    assert_eq!(read_all(&io, &path, data.len()), &data[..]);
    assert_eq!(parts(std::slice::from_ref(&third)), 0);
    assert_eq!(check(&dirs.home, false).unwrap().older, 1);

    let stopped = rebalance(&dirs.home, &io, &mut || false).unwrap();
    assert_eq!((stopped.files, stopped.stopped), (0, true));
    let done = rebalance(&dirs.home, &io, &mut || true).unwrap();
    assert_eq!((done.files, done.bytes, done.left), (1, data.len() as u64, 0));
    assert_eq!(read_all(&io, &path, data.len()), &data[..]);
    let bytes: Vec<u64> = info(&dirs.home, &[])
        .unwrap()
        .members
        .iter()
        .map(|member| member.bytes)
        .collect();
    let page = PAGE as u64;
    assert_eq!(bytes, [10 * page, 10 * page, 20 * page]);
    assert_eq!(rebalance(&dirs.home, &io, &mut || true).unwrap(), Rebalanced::default());

    // One of weight 0 is emptied.
    set_weights(&dirs.home, &[(dirs.disks[0].display().to_string(), 0)]).unwrap();
    rebalance(&dirs.home, &io, &mut || true).unwrap();
    assert_eq!(read_all(&io, &path, data.len()), &data[..]);
    assert_eq!(parts(&dirs.disks[..1]), 0);
    assert_eq!(check(&dirs.home, false).unwrap().orphans, 0);
}

#[test]
fn what_the_last_file_replaced_goes_with_the_next_rebalance() {
    let dirs = volume(&[1, 1], BlockLayout::Striped, PAGE as u64);
    let io = Io::direct();
    let path = dirs.home.join("below/x");
    fs::create_dir(path.parent().unwrap()).unwrap();
    write(&io, &path, &pages(40, 4));
    add(&dirs.home, &dirs.root.path().join("third"), 1).unwrap();
    // As after a kill between the exchange of the names and the removal.
    let folder = dirs.home.join("below/.outcore-partial-0");
    fs::create_dir(&folder).unwrap();
    fs::rename(&path, folder.join("new")).unwrap();
    let data = pages(40, 5);
    write(&io, &path, &data);
    assert_eq!(check(&dirs.home, false).unwrap().older, 1);
    assert_eq!(rebalance(&dirs.home, &io, &mut || true).unwrap(), Rebalanced::default());
    let found = check(&dirs.home, false).unwrap();
    assert_eq!((found.files, found.older, found.orphans), (1, 0, 0));
    assert!(!folder.exists());
    assert_eq!(read_all(&io, &path, data.len()), &data[..]);
}

#[test]
fn a_file_whose_copy_fails_stays_as_it_was() {
    let dirs = volume(&[1, 1], BlockLayout::Striped, PAGE as u64);
    let path = dirs.home.join("x");
    let data = pages(40, 4);
    write(&Io::direct(), &path, &data);
    add(&dirs.home, &dirs.root.path().join("third"), 1).unwrap();
    let io = Io::direct();
    io.set_faults(Some(Faults::parse("write:1:enospc").unwrap()));
    assert_eq!(rebalance(&dirs.home, &io, &mut || true).unwrap_err().code(), "space");
    assert_eq!(read_all(&Io::direct(), &path, data.len()), &data[..]);
    assert_eq!(check(&dirs.home, false).unwrap().orphans, 0);
}

#[test]
fn directories_serve_one_volume() {
    let dirs = volume(&[1, 1], BlockLayout::Striped, PAGE as u64);
    let again = [(dirs.root.path().join("new"), 1), (dirs.disks[0].clone(), 1)];
    let home = dirs.root.path().join("again");
    assert_eq!(
        create(&home, &again, BlockLayout::Striped, 4096).unwrap_err().code(),
        "invalid"
    );
    // The first is free again.
    create(&home, &again[..1], BlockLayout::Striped, 4096).unwrap();
    assert!(create(
        &dirs.home,
        &[(dirs.root.path().join("z"), 1)],
        BlockLayout::Striped,
        4096
    )
    .is_err());
    assert!(add(&dirs.home, &dirs.disks[1], 1).is_err());
    assert!(set_weights(&dirs.home, &[("nobody".into(), 1)]).is_err());
    assert!(create(&dirs.root.path().join("n"), &[], BlockLayout::Striped, 4096).is_err());
}
