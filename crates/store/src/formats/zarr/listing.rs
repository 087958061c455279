//! Finding an array's chunks: one pass over its folders, and one `stat` of each file in the order of the disk.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{openat, statat, AtFlags, FileType, Mode, OFlags, RawDir, CWD};
use rustix::io::Errno;

use super::inventory::{ChunkRecord, Inventory, ListedChunk};
use super::keys::{coordinate, KeyEncoding};
use super::remote::list_remote;
use crate::array::region::c_strides;
use crate::array::source::Opening;
use crate::backend::remote::place_of;
use crate::backend::stamp::{unsettled, Stamp, WAITS_MAX};
use crate::StoreError;

/// Bytes of directory entries that the kernel gives at a time.
const ENTRIES_BYTES: usize = 64 << 10;
/// Files between two looks whether the array is still wanted: cold ones take a millisecond each.
const FILES_PER_LOOK: usize = 256;

/// Lists the chunks of the array in `dir`, whose grid is `counts`. Names that are no chunk's are passed over.
pub(super) fn list(
    dir: &Path,
    keys: &KeyEncoding,
    counts: &[u64],
    opening: &mut dyn Opening,
) -> Result<Inventory, StoreError> {
    if let Some(place) = place_of(dir) {
        return list_remote(dir, &place, keys, counts, opening);
    }
    let mut lister = Lister {
        dir,
        keys,
        counts,
        strides: c_strides(counts),
        listed: ListedChunk::default(),
        entries: Vec::with_capacity(ENTRIES_BYTES),
        waits_left: WAITS_MAX,
        opening,
    };
    let first = keys.folders(counts.len());
    let path = first.map_or(dir.to_path_buf(), |folder| dir.join(folder));
    match lister.open(CWD, &path) {
        Ok(folder) => lister.folder(folder, first.map(|_| 0), 0)?,
        // Chunks that were never written are all fill value.
        Err(Errno::NOENT) => {}
        Err(cause) => return Err(StoreError::io(&path, 0, "list", cause)),
    }
    Ok(lister.listed.finish())
}

struct Lister<'a> {
    dir: &'a Path,
    keys: &'a KeyEncoding,
    counts: &'a [u64],
    strides: Vec<u64>,
    listed: ListedChunk,
    entries: Vec<u8>,
    waits_left: usize,
    opening: &'a mut dyn Opening,
}

impl Lister<'_> {
    fn open(&self, within: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(within, path, flags, Mode::empty())
    }

    /// Lists a folder whose names are coordinates along `axis`, of chunks from number `first` on; without an axis the
    /// names hold all coordinates.
    fn folder(&mut self, folder: OwnedFd, axis: Option<usize>, first: u64) -> Result<(), StoreError> {
        let Some(axis) = axis.filter(|axis| axis + 1 < self.counts.len()) else {
            return self.files(folder, axis, first);
        };
        let mut below: Vec<(u64, u64)> = Vec::new();
        self.entries(&folder, |lister, name, inode| {
            let at = coordinate(name, lister.counts[axis]);
            below.extend(at.map(|at| (inode, at)));
            Ok(())
        })?;
        let _granted = self.opening.keep(below.capacity() * size_of::<(u64, u64)>())?;
        below.sort_unstable();
        for (_, at) in below {
            self.opening.look()?;
            match self.open(folder.as_fd(), Path::new(&at.to_string())) {
                Ok(inner) => self.folder(inner, Some(axis + 1), first + at * self.strides[axis])?,
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(cause) => return Err(self.error(first + at * self.strides[axis], "list", cause)),
            }
        }
        Ok(())
    }

    /// Lists and stamps the files of a folder.
    fn files(&mut self, folder: OwnedFd, axis: Option<usize>, first: u64) -> Result<(), StoreError> {
        let from = self.listed.records.len();
        let mut index = Vec::new();
        self.entries(&folder, |lister, name, inode| {
            let number = match axis {
                Some(axis) => coordinate(name, lister.counts[axis]).map(|at| first + at),
                None => lister.keys.parse(name, lister.counts, &mut index).then(|| {
                    let parts = index.iter().zip(&lister.strides);
                    parts.map(|(at, stride)| at * stride).sum()
                }),
            };
            match number {
                Some(number) => lister.listed.add(ChunkRecord::listed(number, inode), lister.opening),
                None => Ok(()),
            }
        })?;
        // Inodes lie in order on disk, names anywhere.
        self.listed.records[from..].sort_unstable_by_key(ChunkRecord::inode);
        let name = |lister: &Self, number: u64| match axis {
            Some(_) => (number - first).to_string(),
            None => lister.keys.name(&lister.index(number)),
        };
        let (mut young, mut wait) = (Vec::new(), Duration::ZERO);
        for at in from..self.listed.records.len() {
            if at.is_multiple_of(FILES_PER_LOOK) {
                self.opening.look()?;
            }
            let left = self.stamp(&folder, at, &name(self, self.listed.records[at].number))?;
            if !left.is_zero() {
                young.push((at, self.listed.records[at].number));
                wait = wait.max(left);
            }
        }
        while !young.is_empty() && self.waits_left > 0 {
            self.waits_left -= 1;
            std::thread::sleep(std::mem::take(&mut wait));
            for (at, number) in std::mem::take(&mut young) {
                let left = self.stamp(&folder, at, &name(self, number))?;
                if !left.is_zero() {
                    young.push((at, number));
                    wait = wait.max(left);
                }
            }
        }
        Ok(())
    }

    /// Sets what a file is. Returns how long it is not settled yet.
    fn stamp(&mut self, folder: &OwnedFd, at: usize, name: &str) -> Result<Duration, StoreError> {
        let number = self.listed.records[at].number;
        match statat(folder, name, AtFlags::empty()) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile => Err(StoreError::format(
                &self.path(number),
                "a chunk that is not a regular file",
            )),
            Ok(stat) => {
                let stamp = Stamp::from(&stat);
                self.listed.stamp(at, Some(stamp));
                Ok(unsettled(stamp.modified_ns))
            }
            Err(Errno::NOENT) => {
                self.listed.stamp(at, None);
                Ok(Duration::ZERO)
            }
            Err(cause) => Err(self.error(number, "stat", cause)),
        }
    }

    /// Calls `each` with the names and inodes of a folder.
    fn entries(
        &mut self,
        folder: &OwnedFd,
        mut each: impl FnMut(&mut Self, &[u8], u64) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut buffer = std::mem::take(&mut self.entries);
        let space: &mut [MaybeUninit<u8>] = buffer.spare_capacity_mut();
        let mut entries = RawDir::new(folder, space);
        let mut seen = 0usize;
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(|cause| StoreError::io(self.dir, 0, "list", cause))?;
            each(self, entry.file_name().to_bytes(), entry.ino())?;
            seen += 1;
            if seen.is_multiple_of(16 * FILES_PER_LOOK) {
                self.opening.look()?;
            }
        }
        self.entries = buffer;
        Ok(())
    }

    fn index(&self, number: u64) -> Vec<u64> {
        let along = self.strides.iter().zip(self.counts);
        along.map(|(stride, count)| number / stride % count).collect()
    }

    fn path(&self, number: u64) -> PathBuf {
        self.dir.join(self.keys.name(&self.index(number)))
    }

    fn error(&self, number: u64, action: &'static str, cause: Errno) -> StoreError {
        StoreError::io(&self.path(number), 0, action, cause)
    }
}
