//! Files of volumes, and what becomes of them when disks, processes and calls fail.

mod copies;
mod disks;
mod files;
mod flights;
mod removal;
mod simulated;

use crate::backend::Mode;
use crate::memory::mapping::AlignedBuffer;
use crate::volumes::*;
use crate::{Io, StoreError, PAGE};
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) struct Dirs {
    pub root: tempfile::TempDir,
    pub home: PathBuf,
    pub disks: Vec<PathBuf>,
}

pub(crate) fn volume(weights: &[u32], layout: BlockLayout, block: u64) -> Dirs {
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

pub(crate) fn error_of(io: &Io, path: &Path) -> StoreError {
    let mut buffer = AlignedBuffer::new(32 * PAGE).unwrap();
    let read = io
        .open(path, Mode::Read)
        .and_then(|file| io.read(&file, &mut buffer, 0, 32 * PAGE));
    read.unwrap_err()
}
