//! Files of volumes, and what becomes of them when disks, processes and calls fail.

use std::collections::HashMap;
use std::fs;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

mod disks;
mod flights;
mod removal;

use proptest::prelude::*;

use crate::backend::stamp::Stamp;
use crate::backend::{Backend, Blob, Direct, Mode};
use crate::base::locked::locked;
use crate::io::Faults;
use crate::memory::mapping::AlignedBuffer;
use crate::volume::home_of;
use crate::volumes::*;
use crate::{Io, StoreError, PAGE};

pub(crate) struct Dirs {
    pub root: tempfile::TempDir,
    pub home: PathBuf,
    pub disks: Vec<PathBuf>,
}

pub(crate) fn volume(weights: &[u32], layout: Layout, block: u64) -> Dirs {
    let root = tempfile::tempdir().unwrap();
    let home = root.path().join("home");
    let disks: Vec<PathBuf> = (0..weights.len())
        .map(|disk| root.path().join(format!("disk-{disk}")))
        .collect();
    let members: Vec<_> = disks.iter().cloned().zip(weights.iter().copied()).collect();
    create(&home, &members, layout, block).unwrap();
    Dirs { root, home, disks }
}

pub(crate) fn pages(count: usize, seed: usize) -> AlignedBuffer {
    let mut buffer = AlignedBuffer::new(count * PAGE).unwrap();
    for (at, byte) in buffer.iter_mut().enumerate() {
        *byte = (((at + seed) * 2_654_435_761) >> 13) as u8;
    }
    buffer
}

pub(crate) fn read_all(io: &Io, path: &Path, bytes: usize) -> Vec<u8> {
    let file = io.open(path, Mode::Read).unwrap();
    assert_eq!(file.len().unwrap(), bytes as u64);
    let mut buffer = AlignedBuffer::new(bytes.max(1).next_multiple_of(PAGE)).unwrap();
    io.read(&file, &mut buffer, 0, bytes).unwrap();
    buffer[..bytes].to_vec()
}

pub(crate) fn parts(disks: &[PathBuf]) -> usize {
    disks
        .iter()
        .map(|disk| fs::read_dir(disk.join("parts")).unwrap().count())
        .sum()
}

pub(crate) fn write(io: &Io, path: &Path, data: &AlignedBuffer) {
    let file = io.open(path, Mode::Create).unwrap();
    io.write(&file, data, 0).unwrap();
    io.sync(&file).unwrap();
}

#[test]
fn a_file_is_spread_over_the_disks_and_read_back() {
    for layout in Layout::ALL {
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
    let dirs = volume(&[1, 1], Layout::Striped, PAGE as u64);
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
    let dirs = volume(&[1, 1], Layout::Hashed, PAGE as u64);
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
    let dirs = volume(&[1; 4], Layout::Striped, 16 * PAGE as u64);
    let io = Io::direct();
    for number in 0..64 {
        write(&io, &dirs.home.join(number.to_string()), &pages(3, number));
    }
    assert_eq!(parts(&dirs.disks), 64);
    assert!(dirs.disks.iter().all(|disk| parts(std::slice::from_ref(disk)) > 4));
}

#[test]
fn a_written_file_has_another_stamp() {
    let dirs = volume(&[1, 1], Layout::Striped, PAGE as u64);
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
        let dirs = volume(&weights, Layout::ALL[layout], PAGE as u64);
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
    let dirs = volume(&[1, 1], Layout::Striped, PAGE as u64);
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
    let dirs = volume(&[1, 1], Layout::Striped, PAGE as u64);
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
    let dirs = volume(&[1, 1, 1], Layout::Rotated, PAGE as u64);
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

pub(crate) fn error_of(io: &Io, path: &Path) -> StoreError {
    let mut buffer = AlignedBuffer::new(32 * PAGE).unwrap();
    let read = io
        .open(path, Mode::Read)
        .and_then(|file| io.read(&file, &mut buffer, 0, 32 * PAGE));
    read.unwrap_err()
}

#[test]
fn a_disk_that_is_gone_is_named() {
    let dirs = volume(&[1, 1, 1], Layout::Striped, PAGE as u64);
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
    let dirs = volume(&[1, 1], Layout::Striped, PAGE as u64);
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
fn stubs_outside_of_their_volume_are_refused() {
    let dirs = volume(&[1, 1], Layout::Striped, PAGE as u64);
    let others = volume(&[1], Layout::Striped, PAGE as u64);
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
    let dirs = volume(&[1, 1], Layout::Striped, PAGE as u64);
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

#[test]
fn files_are_laid_out_anew_when_a_disk_is_added() {
    let dirs = volume(&[1, 1], Layout::Rotated, PAGE as u64);
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
fn a_file_whose_copy_fails_stays_as_it_was() {
    let dirs = volume(&[1, 1], Layout::Striped, PAGE as u64);
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
    let dirs = volume(&[1, 1], Layout::Striped, PAGE as u64);
    let again = [(dirs.root.path().join("new"), 1), (dirs.disks[0].clone(), 1)];
    let home = dirs.root.path().join("again");
    assert_eq!(
        create(&home, &again, Layout::Striped, 4096).unwrap_err().code(),
        "invalid"
    );
    // The first is free again.
    create(&home, &again[..1], Layout::Striped, 4096).unwrap();
    assert!(create(&dirs.home, &[(dirs.root.path().join("z"), 1)], Layout::Striped, 4096).is_err());
    assert!(add(&dirs.home, &dirs.disks[1], 1).is_err());
    assert!(set_weights(&dirs.home, &[("nobody".into(), 1)]).is_err());
    assert!(create(&dirs.root.path().join("n"), &[], Layout::Striped, 4096).is_err());
}

/// A backend whose files are only as long as they should be, on disks that take their time: one request after the other,
/// each as long as its bytes at the disk's rate.
struct Simulated {
    bytes_per_second: f64,
    disks: Mutex<HashMap<PathBuf, Arc<SimulatedDisk>>>,
    /// Disk on which every call fails, and with what.
    fails: Option<(PathBuf, i32)>,
}

#[derive(Default)]
struct SimulatedDisk {
    free_at: Mutex<Option<Instant>>,
    files: Mutex<HashMap<PathBuf, Arc<Mutex<u64>>>>,
}

struct SimulatedFile {
    disk: Arc<SimulatedDisk>,
    length: Arc<Mutex<u64>>,
    bytes_per_second: f64,
    fails: Option<i32>,
}

impl SimulatedFile {
    fn transfer(&self, bytes: usize) -> Result<usize> {
        if let Some(number) = self.fails {
            return Err(Error::from_raw_os_error(number));
        }
        let now = Instant::now();
        let until = {
            let mut free_at = locked(&self.disk.free_at);
            // A moment without work is not made up for, but waking up takes one.
            let begun = free_at.map_or(now, |free| free.max(now - Duration::from_millis(5)));
            let until = begun + Duration::from_secs_f64(bytes as f64 / self.bytes_per_second);
            *free_at = Some(until);
            until
        };
        std::thread::sleep(until.saturating_duration_since(now));
        Ok(bytes)
    }
}

impl Backend for Simulated {
    fn open(&self, path: &Path, mode: Mode) -> Result<Arc<dyn Blob>> {
        let at = path.parent().unwrap().parent().unwrap().to_path_buf();
        if !at.join("outcore-member.json").exists() {
            return Direct.open(path, mode);
        }
        let disk = locked(&self.disks).entry(at.clone()).or_default().clone();
        let mut files = locked(&disk.files);
        if !files.contains_key(path) && !matches!(mode, Mode::Create | Mode::CreateUnaligned) {
            return Err(std::io::ErrorKind::NotFound.into());
        }
        let length = files.entry(path.to_path_buf()).or_default().clone();
        drop(files);
        let fails = self
            .fails
            .as_ref()
            .filter(|(disk, _)| *disk == at)
            .map(|(_, number)| *number);
        let bytes_per_second = self.bytes_per_second;
        Ok(Arc::new(SimulatedFile {
            disk,
            length,
            bytes_per_second,
            fails,
        }))
    }

    fn volume_alignment(&self) -> Option<usize> {
        Some(PAGE)
    }
}

impl Blob for SimulatedFile {
    fn read_at(&self, buffer: &mut [u8], _offset: u64) -> Result<usize> {
        self.transfer(buffer.len())
    }
    fn write_at(&self, data: &[u8], offset: u64) -> Result<usize> {
        let mut length = locked(&self.length);
        *length = (*length).max(offset + data.len() as u64);
        drop(length);
        self.transfer(data.len())
    }
    fn read_vectored_at(&self, buffers: &mut [std::io::IoSliceMut<'_>], _offset: u64) -> Result<usize> {
        self.transfer(buffers.iter().map(|buffer| buffer.len()).sum())
    }
    fn write_vectored_at(&self, buffers: &[std::io::IoSlice<'_>], offset: u64) -> Result<usize> {
        let bytes: usize = buffers.iter().map(|buffer| buffer.len()).sum();
        let mut length = locked(&self.length);
        *length = (*length).max(offset + bytes as u64);
        drop(length);
        self.transfer(bytes)
    }
    fn sync(&self) -> Result<()> {
        Ok(())
    }
    fn len(&self) -> Result<u64> {
        Ok(*locked(&self.length))
    }
    fn stamp(&self) -> Result<Stamp> {
        Ok(Stamp::of_bytes(self.len()?))
    }
    fn set_len(&self, bytes: u64) -> Result<()> {
        *locked(&self.length) = bytes;
        Ok(())
    }
    fn alignment(&self) -> usize {
        PAGE
    }
}

fn simulated(fails: Option<(PathBuf, i32)>) -> Io {
    Io::new(Box::new(Simulated {
        bytes_per_second: 200e6,
        disks: Mutex::default(),
        fails,
    }))
}

/// Seconds that reading `bytes` takes, by two threads in turn.
fn seconds(disks: usize, bytes: u64) -> f64 {
    const STEP: u64 = 16 << 20;
    let dirs = volume(&vec![1; disks], Layout::Rotated, 1 << 20);
    let io = simulated(None);
    let path = dirs.home.join("x");
    let file = io.open(&path, Mode::Create).unwrap();
    file.set_len(bytes).unwrap();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for first in 0..2 {
            let (io, file) = (&io, &file);
            scope.spawn(move || {
                let mut buffer = AlignedBuffer::new(STEP as usize).unwrap();
                for offset in (first * STEP..bytes).step_by(2 * STEP as usize) {
                    io.read(file, &mut buffer, offset, STEP as usize).unwrap();
                }
            });
        }
    });
    begun.elapsed().as_secs_f64()
}

#[test]
fn eight_disks_are_nearly_eight_times_as_fast_as_one() {
    let one = (96u64 << 20) as f64 / seconds(1, 96 << 20);
    let eight = (768u64 << 20) as f64 / seconds(8, 768 << 20);
    println!(
        "one {:.0} MB/s, eight {:.0} MB/s: {:.2} times",
        one / 1e6,
        eight / 1e6,
        eight / one
    );
    assert!(eight >= 7.6 * one, "{eight} of {one}");
}

#[test]
fn strided_reads_load_the_disks_evenly() {
    for (layout, even) in [
        (Layout::Striped, false),
        (Layout::Rotated, true),
        (Layout::Hashed, true),
    ] {
        let dirs = volume(&[1; 8], layout, PAGE as u64);
        let io = Io::new(Box::new(Simulated {
            bytes_per_second: 1e12,
            disks: Mutex::default(),
            fails: None,
        }));
        let file = io.open(&dirs.home.join("x"), Mode::Create).unwrap();
        let blocks = 32_000;
        file.set_len(blocks * 8 * PAGE as u64).unwrap();
        let mut buffer = AlignedBuffer::new(PAGE).unwrap();
        for block in 0..blocks {
            io.read(&file, &mut buffer, block * 8 * PAGE as u64, PAGE).unwrap();
        }
        let read: Vec<f64> = io.disks().iter().map(|disk| disk.bytes_read as f64).collect();
        let mean = read.iter().sum::<f64>() / 8.0;
        let skew = read.iter().map(|bytes| (bytes / mean - 1.0).abs()).fold(0.0, f64::max);
        assert_eq!(skew <= 0.1, even, "{layout:?}: {read:?}");
    }
}

#[test]
fn a_disk_that_fails_or_is_full_is_named_with_its_cause() {
    for (number, code) in [(5, "io"), (28, "space")] {
        let dirs = volume(&[1, 1, 1], Layout::Striped, PAGE as u64);
        let io = simulated(Some((dirs.disks[2].clone(), number)));
        let file = io.open(&dirs.home.join("x"), Mode::Create).unwrap();
        let error = io.write(&file, &pages(32, 1), 0).unwrap_err();
        assert_eq!(error.code(), code);
        assert!(
            error.to_string().contains(&dirs.disks[2].display().to_string()),
            "{error}"
        );
        let StoreError::Io { cause, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!(errno(cause), Some(number));
        assert_eq!(io.disks().iter().map(|disk| disk.errors).collect::<Vec<_>>(), [0, 0, 1]);
    }
}

#[test]
fn many_reads_at_once_go_to_the_disks_by_a_ring() {
    use crate::io::Queue;
    for faults in [None, Some("short-read:3"), Some("short-read:40")] {
        let dirs = volume(&[1, 1, 1], Layout::Hashed, 2 * PAGE as u64);
        let io = Io::direct();
        let path = dirs.home.join("x");
        let data = pages(101, 3);
        write(&io, &path, &data);
        let file = io.open(&path, Mode::Read).unwrap();
        let before = (
            io.counters(),
            io.disks().iter().map(|disk| disk.bytes_read).sum::<u64>(),
        );
        io.set_faults(faults.map(|faults| Faults::parse(faults).unwrap()));
        let mut queue = Queue::new(&io);
        for first in (0..96).rev() {
            // Of one page to five: some lie in one block, others in several.
            let buffers = (0..first % 5 + 1).map(|_| AlignedBuffer::new(PAGE).unwrap()).collect();
            queue.read(
                &file,
                buffers,
                (first * PAGE) as u64,
                (first % 5 + 1) * PAGE,
                first as u64,
            );
        }
        let mut count = 0;
        while let Some(done) = queue.next_read(true) {
            done.outcome.unwrap();
            let at = done.token as usize * PAGE;
            let read: Vec<u8> = done.buffers.iter().flat_map(|buffer| buffer.to_vec()).collect();
            assert_eq!(read, data[at..at + read.len()]);
            count += 1;
        }
        assert_eq!(count, 96);
        if faults.is_none() {
            let bytes = io.counters().since(&before.0).bytes_read;
            assert_eq!(
                io.disks().iter().map(|disk| disk.bytes_read).sum::<u64>() - before.1,
                bytes
            );
        }
    }
}

/// Copies the bytes of a stub as programs do that know nothing of volumes.
fn copy_densely(from: &Path, to: &Path) {
    fs::write(to, fs::read(from).unwrap()).unwrap();
}

#[test]
fn a_copied_stub_is_no_second_name_of_the_parts() {
    let dirs = volume(&[1, 1], Layout::Striped, PAGE as u64);
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
    let dirs = volume(&[1, 1], Layout::Striped, PAGE as u64);
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
    let dirs = volume(&[1, 1], Layout::Striped, PAGE as u64);
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
    let dirs = volume(&[1, 1], Layout::Striped, PAGE as u64);
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
    let dirs = volume(&[1, 1], Layout::Striped, PAGE as u64);
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
    create(&home, &[(disk.clone(), 1)], Layout::Striped, PAGE as u64).unwrap();
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
        create(&below, &new, Layout::Striped, 4096),
        create(&root.path().join("other"), &[(below.clone(), 1)], Layout::Striped, 4096),
    ] {
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("lies in the volume"), "{refused}");
    }
    assert!(!home.join("not").exists());
    // One that was moved there is looked into.
    let inner = root.path().join("inner");
    create(&inner, &new, Layout::Striped, 4096).unwrap();
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
    let dirs = volume(&[1, 1], Layout::Striped, PAGE as u64);
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
fn many_writes_at_once_go_to_the_disks_by_a_ring() {
    use crate::io::Queue;
    for faults in [None, Some("short-write:3"), Some("short-write:40")] {
        let dirs = volume(&[1, 2, 1], Layout::Hashed, 2 * PAGE as u64);
        let io = Io::direct();
        let path = dirs.home.join("x");
        write(&io, &path, &pages(96, 1));
        let file = io.open(&path, Mode::Reopen).unwrap();
        let sums = || {
            let disks = io.disks();
            let requests: u64 = disks.iter().map(|disk| disk.requests).sum();
            (requests, disks.iter().map(|disk| disk.bytes_written).sum::<u64>())
        };
        let (before, counted) = (Stamp::of(&path).unwrap(), (io.counters(), sums()));
        std::thread::sleep(Duration::from_millis(20));
        io.set_faults(faults.map(|faults| Faults::parse(faults).unwrap()));
        let data = pages(100, 9);
        let mut queue = Queue::new(&io);
        // Of three pages each, in two blocks; the last makes the file longer.
        for first in (0..99).step_by(3).rev() {
            let buffers = (first..first + 3).map(|page| {
                let mut buffer = AlignedBuffer::new(PAGE).unwrap();
                buffer.copy_from_slice(&data[page * PAGE..][..PAGE]);
                buffer
            });
            queue.write(&file, buffers.collect(), (first * PAGE) as u64, 3 * PAGE, first as u64);
        }
        let mut count = 0;
        while let Some(done) = queue.next_write(true) {
            done.outcome.unwrap();
            count += 1;
        }
        assert_eq!(count, 33);
        assert_ne!(Stamp::of(&path).unwrap(), before);
        let (requests, bytes) = sums();
        assert_eq!(bytes - counted.1 .1, io.counters().since(&counted.0).bytes_written);
        // Cut by blocks, and not into pages.
        assert!((33..=80).contains(&(requests - counted.1 .0)), "{requests}");
        io.set_faults(None);
        io.sync(&file).unwrap();
        assert_eq!(read_all(&io, &path, 99 * PAGE), &data[..99 * PAGE]);
    }
}
