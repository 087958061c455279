//! Transfers of many callers on one disk, under way together.

use std::fs;
use std::io::{ErrorKind, PipeReader, PipeWriter, Result, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{pages, volume};
use crate::backend::stamp::Stamp;
use crate::backend::{Backend, Blob, Direct, Mode, Ring};
use crate::volume::description::Member;
use crate::volume::disk::Disk;
use crate::volume::flights::{Flights, Meter, Transfer, TransferOutcome};
use crate::volume::scatter::{scatter, Borrowing, Lent};
use crate::volumes::*;
use crate::{Io, PAGE};

/// A file that the kernel alone reads and writes.
struct Handed<F>(F);

impl<F: AsFd + Send + Sync> Blob for Handed<F> {
    fn read_at(&self, _buffer: &mut [u8], _offset: u64) -> Result<usize> {
        Err(ErrorKind::Unsupported.into())
    }
    fn write_at(&self, _data: &[u8], _offset: u64) -> Result<usize> {
        Err(ErrorKind::Unsupported.into())
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }
    fn sync(&self) -> Result<()> {
        Ok(())
    }
    fn len(&self) -> Result<u64> {
        Ok(0)
    }
    fn stamp(&self) -> Result<Stamp> {
        Ok(Stamp::of_bytes(0))
    }
    fn set_len(&self, _bytes: u64) -> Result<()> {
        Ok(())
    }
    fn alignment(&self) -> usize {
        PAGE
    }
}

fn disk() -> Arc<Disk> {
    let path = PathBuf::from("/nowhere/at/all");
    Arc::new(Disk::new([1; 16], Member { id: [2; 16], path }))
}

/// Reads a page from a pipe by the disk's thread, and waits for it.
fn read_page(disk: &Arc<Disk>, pipe: PipeReader) -> Result<Vec<u8>> {
    let mut page = vec![0; PAGE];
    let outcome = TransferOutcome::of(1);
    let transfer = Transfer {
        disk: disk.clone(),
        part: Arc::new(Handed(pipe)),
        write: false,
        offset: 0,
        bytes: PAGE,
        expected: PAGE,
        outcome: outcome.clone(),
    };
    let buffer = &mut page[..];
    let task: Borrowing<'_, Flights> =
        Box::new(move |flights, ticket| flights.start(transfer, vec![ticket.lend_mut(buffer)]));
    scatter(vec![((), task)], |(), task| disk.give(task));
    outcome.take().map(|()| page)
}

#[test]
fn a_disk_that_waits_takes_what_others_ask_for() {
    if Ring::<Lent>::take().is_none() {
        return;
    }
    let disk = disk();
    let pipes: Vec<(PipeReader, PipeWriter)> = (0..5).map(|_| std::io::pipe().unwrap()).collect();
    let (readers, mut writers): (Vec<_>, Vec<_>) = pipes.into_iter().unzip();
    let (sender, arrived) = channel();
    let mut order = Vec::new();
    std::thread::scope(|scope| {
        for (number, pipe) in readers.into_iter().enumerate() {
            let (disk, sender) = (&disk, sender.clone());
            scope.spawn(move || sender.send((number, read_page(disk, pipe))).unwrap());
            // Long enough for the thread to wait for it.
            std::thread::sleep(Duration::from_millis(10));
        }
        for number in (0..5).rev() {
            writers[number].write_all(&[number as u8 + 1; PAGE]).unwrap();
            order.push(
                arrived
                    .recv_timeout(Duration::from_secs(5))
                    .map(|(number, page)| (number, page.unwrap())),
            );
        }
        // What still waits, where it does, is let go.
        writers.clear();
    });
    let order: Vec<(usize, Vec<u8>)> = order
        .into_iter()
        .map(|arrived| arrived.expect("it does not wait"))
        .collect();
    for (place, (number, page)) in order.into_iter().enumerate() {
        assert_eq!((number, page), (4 - place, vec![5 - place as u8; PAGE]));
    }
    let counters = disk.counters(Path::new(""));
    assert_eq!(
        (counters.requests, counters.bytes_read, counters.errors),
        (5, 5 * PAGE as u64, 0)
    );
}

#[test]
fn a_part_that_ends_early_is_an_error_of_its_disk_alone() {
    if Ring::<Lent>::take().is_none() {
        return;
    }
    let disk = disk();
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&[1; 100]).unwrap();
    let refused = read_page(&disk, reader).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::UnexpectedEof);
    assert_eq!(
        refused.to_string(),
        format!("/nowhere/at/all: its part of the file ends {} bytes early", PAGE - 100)
    );
    assert_eq!(disk.counters(Path::new("")).errors, 1);
}

#[test]
fn a_disk_is_at_work_once_for_what_is_under_way_together() {
    let disk = disk();
    let begun = Instant::now();
    std::thread::sleep(Duration::from_millis(50));
    for _ in 0..10 {
        disk.count(false, begun, Ok(PAGE)).unwrap();
    }
    let (elapsed, counters) = (begun.elapsed().as_secs_f64(), disk.counters(Path::new("")));
    assert_eq!(counters.requests, 10);
    assert!(
        (0.05..=elapsed).contains(&counters.busy_seconds),
        "{counters:?} in {elapsed}"
    );
}

/// Parts on one of the disks take no bytes.
struct OneIsFull(PathBuf);

impl Backend for OneIsFull {
    fn open(&self, path: &Path, mode: Mode) -> Result<Arc<dyn Blob>> {
        match path.starts_with(&self.0) && path.parent().is_some_and(|parent| parent.ends_with("parts")) {
            true => Ok(Arc::new(Handed(fs::OpenOptions::new().write(true).open("/dev/full")?))),
            false => Direct.open(path, mode),
        }
    }
    fn volume_alignment(&self) -> Option<usize> {
        Some(PAGE)
    }
}

#[test]
fn what_the_ring_says_of_a_disk_is_named() {
    if Ring::<Lent>::take().is_none() {
        return;
    }
    let dirs = volume(&[1, 1, 1], BlockLayout::Striped, PAGE as u64);
    let io = Io::new(Box::new(OneIsFull(dirs.disks[1].clone())));
    let file = io.open(&dirs.home.join("x"), Mode::Create).unwrap();
    let error = io.write(&file, &pages(32, 1), 0).unwrap_err();
    assert_eq!(error.code(), "space");
    assert!(
        error.to_string().contains(&dirs.disks[1].display().to_string()),
        "{error}"
    );
    let errors: Vec<u64> = io.disks().iter().map(|disk| disk.errors).collect();
    assert!(errors[1] > 0 && errors[0] + errors[2] == 0, "{errors:?}");
    // The others have what is theirs.
    assert!(io
        .disks()
        .iter()
        .map(|disk| disk.bytes_written > 0)
        .eq([true, false, true]));
}
