//! The parts of one open file of a volume, which are opened when they are first needed.

use std::fs;
use std::io::{Error, ErrorKind, IoSlice, Result};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustix::fs::{futimens, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};

use super::assembled::Volume;
use super::disk::{part_path, Disk};
use super::flights::{Flights, Meter, Transfer, TransferOutcome};
use super::layout::Map;
use super::scatter::{scatter, Borrowing, Lent, Ticket};
use super::stub::{hex, Id};
use crate::backend::{Backend, Blob, CallWatch, Mode};
use crate::base::interval::Interval;
use crate::base::locked::locked;

/// What stands under the file's name.
pub(crate) struct StubFile {
    pub(crate) file: fs::File,
    pub(crate) identity: (u64, u64),
}

impl StubFile {
    pub(crate) fn new(file: fs::File, metadata: &fs::Metadata) -> StubFile {
        StubFile {
            file,
            identity: (metadata.dev(), metadata.ino()),
        }
    }

    pub(crate) fn len(&self) -> Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Says that the file was written to.
    pub(crate) fn touch(&self) -> Result<()> {
        let time = |nanoseconds| Timespec {
            tv_sec: 0,
            tv_nsec: nanoseconds,
        };
        let times = Timestamps {
            last_access: time(UTIME_OMIT),
            last_modification: time(UTIME_NOW),
        };
        Ok(futimens(&self.file, &times)?)
    }
}

/// Who is told of writes that go to a part past `VolumeBlob::write`.
pub(crate) struct Written {
    pub(crate) disk: Arc<Disk>,
    pub(crate) stub: Arc<StubFile>,
}

impl CallWatch for Written {
    fn over(&self, begun: Instant, outcome: Result<usize>) -> Result<usize> {
        let written = self.disk.count(true, begun, outcome)?;
        self.stub.touch()?;
        Ok(written)
    }
}

/// How its files are opened.
pub(crate) struct OpenedBy {
    pub(crate) volume: Arc<Volume>,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) mode: Mode,
}

pub(crate) struct Striped {
    pub(crate) file: Id,
    pub(crate) map: Map,
    /// By disk.
    pub(crate) parts: Vec<DiskPart>,
}

pub(crate) struct DiskPart {
    pub(crate) open: Mutex<Option<Arc<dyn Blob>>>,
    /// Bytes that it had when the file was opened: then it must be there.
    pub(crate) least: u64,
}

/// A stretch of one part, in a caller's buffers.
pub(crate) struct PartRun<B> {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    /// Of these bytes, those that must be transferred: a direct read may ask for more than there is.
    pub(crate) expected: u64,
    pub(crate) buffers: Vec<B>,
}

impl Striped {
    pub(crate) fn new(volume: &Volume, map: Map, file: Id, bytes: u64) -> Striped {
        let mut least = map.part_lengths(bytes);
        least.resize(volume.disks.len(), 0);
        let part = |least| DiskPart {
            open: Mutex::default(),
            least,
        };
        Striped {
            file,
            map,
            parts: least.into_iter().map(part).collect(),
        }
    }

    /// The part on a disk, opened; one that is new is made.
    pub(crate) fn part(&self, way: &OpenedBy, number: usize) -> Result<Arc<dyn Blob>> {
        let (disk, part) = (&way.volume.disks[number], &self.parts[number]);
        let mut open = locked(&part.open);
        if let Some(blob) = &*open {
            return Ok(blob.clone());
        }
        let (again, anew) = match way.mode {
            Mode::Read => (Mode::Read, None),
            Mode::Create | Mode::Reopen => (Mode::Reopen, Some(Mode::Create)),
            Mode::CreateUnaligned | Mode::ReopenUnaligned => (Mode::ReopenUnaligned, Some(Mode::CreateUnaligned)),
        };
        let open_at = |path: &Path| match (way.backend.open(path, again), anew) {
            (Err(cause), Some(anew)) if cause.kind() == ErrorKind::NotFound && part.least == 0 => {
                way.backend.open(path, anew)
            }
            (opened, _) => opened,
        };
        let blob = where_it_is(disk, &self.file, open_at)?;
        let bytes = blob.len().map_err(|cause| disk.error(cause))?;
        if bytes < part.least {
            let reason = format!(
                "its part of the file has {bytes} bytes where {} belong to it",
                part.least
            );
            return Err(disk.error(Error::new(ErrorKind::InvalidData, reason)));
        }
        Ok(open.insert(blob).clone())
    }

    /// Cuts buffers at the start of an interval of bytes into what each disk has of them. Bytes behind its end are not
    /// expected.
    pub(crate) fn runs<B>(
        &self,
        buffers: impl Iterator<Item = B>,
        expected: Interval,
        length: impl Fn(&B) -> usize,
        split: impl Fn(B, usize) -> (B, B),
    ) -> Vec<(usize, Vec<PartRun<B>>)> {
        let mut runs: Vec<Vec<PartRun<B>>> = self.parts.iter().map(|_| vec![]).collect();
        let mut at = expected.start;
        for buffer in buffers {
            let bytes = length(&buffer) as u64;
            let mut rest = Some(buffer);
            self.map.pieces(at, bytes, |piece| {
                let Some(buffer) = rest.take() else { return };
                let (mine, others) = split(buffer, piece.bytes as usize);
                rest = Some(others);
                let expected = piece.bytes.min(expected.end().saturating_sub(at));
                at += piece.bytes;
                let runs = &mut runs[piece.disk];
                match runs.last_mut().filter(|last| last.offset + last.bytes == piece.offset) {
                    Some(last) => {
                        last.bytes += piece.bytes;
                        last.expected += expected;
                        last.buffers.push(mine);
                    }
                    None => runs.push(PartRun {
                        offset: piece.offset,
                        bytes: piece.bytes,
                        expected,
                        buffers: vec![mine],
                    }),
                }
            });
        }
        let runs = runs.into_iter().enumerate();
        runs.filter(|(_, runs)| !runs.is_empty()).collect()
    }

    /// Has each disk do its share of some work, and waits.
    pub(crate) fn at_once<W: Send>(
        &self,
        way: &OpenedBy,
        work: Vec<(usize, W)>,
        each: impl Fn(&Disk, usize, W) -> Result<()> + Sync,
    ) -> Result<()> {
        let mut outcomes: Vec<Option<Result<()>>> = work.iter().map(|_| None).collect();
        let (disks, each) = (&way.volume.disks, &each);
        let tasks = work.into_iter().zip(&mut outcomes).map(|((number, work), outcome)| {
            let task: Borrowing<'_, Flights> =
                Box::new(move |_, _| *outcome = Some(each(&disks[number], number, work)));
            (number, task)
        });
        scatter(tasks.collect(), |number, task| disks[number].give(task));
        let failed = || Error::other("the thread of a disk failed");
        outcomes
            .into_iter()
            .try_for_each(|outcome| outcome.unwrap_or_else(|| Err(failed())))
    }

    /// As `at_once`, on the disks that have some of a file of `bytes` bytes, each with its length there.
    pub(crate) fn at_parts(
        &self,
        way: &OpenedBy,
        bytes: u64,
        each: impl Fn(&Disk, &Arc<dyn Blob>, u64) -> Result<()> + Sync,
    ) -> Result<()> {
        let lengths = self.map.part_lengths(bytes).into_iter().enumerate();
        self.at_once(
            way,
            lengths.filter(|&(_, length)| length > 0).collect(),
            |disk, number, length| {
                let part = self.part(way, number)?;
                each(disk, &part, length)
            },
        )
    }

    /// Has each disk transfer its runs, and waits.
    pub(crate) fn transfer<'a, B: Send + 'a>(
        &'a self,
        way: &'a OpenedBy,
        write: bool,
        runs: Vec<(usize, Vec<PartRun<B>>)>,
        lend: fn(&Ticket<'a>, B) -> Lent,
    ) -> Result<()> {
        let disks = &way.volume.disks;
        let outcomes: Vec<TransferOutcome> = runs.iter().map(|(_, runs)| TransferOutcome::of(runs.len())).collect();
        let tasks = runs.into_iter().zip(outcomes.iter().cloned());
        let tasks = tasks.map(|((number, runs), outcome)| {
            let task: Borrowing<'a, Flights> = Box::new(move |flights, ticket| {
                let part = match self.part(way, number) {
                    Ok(part) => part,
                    Err(cause) => return outcome.over(Err(cause)),
                };
                for run in runs {
                    let transfer = Transfer {
                        disk: disks[number].clone(),
                        part: part.clone(),
                        write,
                        offset: run.offset,
                        bytes: run.bytes as usize,
                        expected: run.expected as usize,
                        outcome: outcome.clone(),
                    };
                    let buffers = run.buffers.into_iter().map(|buffer| lend(ticket, buffer));
                    flights.start(transfer, buffers.collect());
                }
            });
            (number, task)
        });
        scatter(tasks.collect(), |number, task| disks[number].give(task));
        outcomes.into_iter().try_for_each(|outcome| outcome.take())
    }

    pub(crate) fn read<'a>(
        &'a self,
        way: &'a OpenedBy,
        buffers: Vec<&'a mut [u8]>,
        offset: u64,
        end: u64,
        span: u64,
    ) -> Result<()> {
        let mut left = span;
        let buffers = buffers.into_iter().map(|buffer| {
            let taken = (buffer.len() as u64).min(left);
            left -= taken;
            &mut buffer[..taken as usize]
        });
        let runs = self.runs(
            buffers,
            Interval::between(offset, end),
            |buffer| buffer.len(),
            |buffer, at| buffer.split_at_mut(at),
        );
        self.transfer(way, false, runs, Ticket::lend_mut)
    }

    pub(crate) fn write<'a>(&'a self, way: &'a OpenedBy, buffers: &'a [IoSlice<'a>], offset: u64) -> Result<u64> {
        let slices = buffers.iter().map(|buffer| &buffer[..]);
        let runs = self.runs(
            slices,
            Interval::between(offset, u64::MAX),
            |buffer| buffer.len(),
            |buffer, at| buffer.split_at(at),
        );
        self.transfer(way, true, runs, Ticket::lend)?;
        Ok(buffers.iter().map(|buffer| buffer.len() as u64).sum())
    }
}

/// Does something with a file's part by its path; once more where the disk's directory is another by now.
pub(crate) fn where_it_is<T>(disk: &Disk, file: &Id, with: impl Fn(&Path) -> Result<T>) -> Result<T> {
    let path = disk.part(file)?;
    let cause = match with(&path) {
        Err(cause) if cause.kind() == ErrorKind::NotFound => cause,
        outcome => return outcome.map_err(|cause| disk.error(cause)),
    };
    let now = part_path(&disk.check()?, file);
    if now != path {
        return with(&now).map_err(|cause| disk.error(cause));
    }
    let reason = format!("the part {} of the file is gone", hex(file));
    Err(disk.error(Error::new(cause.kind(), reason)))
}
