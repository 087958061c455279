//! Disks that only count time and calls.

use std::collections::HashMap;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::*;
use crate::backend::stamp::Stamp;
use crate::backend::{Backend, Blob, Direct, Mode};
use crate::base::locked::locked;
use crate::io::Faults;
use crate::memory::mapping::AlignedBuffer;
use crate::volumes::*;
use crate::{Io, StoreError, PAGE};

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
    let dirs = volume(&vec![1; disks], BlockLayout::Rotated, 1 << 20);
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
        (BlockLayout::Striped, false),
        (BlockLayout::Rotated, true),
        (BlockLayout::Hashed, true),
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
        let dirs = volume(&[1, 1, 1], BlockLayout::Striped, PAGE as u64);
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
        let dirs = volume(&[1, 1, 1], BlockLayout::Hashed, 2 * PAGE as u64);
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

#[test]
fn many_writes_at_once_go_to_the_disks_by_a_ring() {
    use crate::io::Queue;
    for faults in [None, Some("short-write:3"), Some("short-write:40")] {
        let dirs = volume(&[1, 2, 1], BlockLayout::Hashed, 2 * PAGE as u64);
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
