//! What an output's directory must hold: a bit per directory made and per chunk written.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{chmod, stat, statat, AtFlags, Mode};

use crate::base::directory::open_dir;
use crate::StoreError;

#[derive(Default)]
pub(super) struct ChunkBits(Vec<u64>);

impl ChunkBits {
    pub(super) fn of(count: u64) -> ChunkBits {
        ChunkBits(vec![0; count.div_ceil(64) as usize])
    }

    pub(super) fn has(&self, at: u64) -> bool {
        self.0[(at / 64) as usize] >> (at % 64) & 1 == 1
    }

    pub(super) fn set(&mut self, at: u64) {
        self.0[(at / 64) as usize] |= 1 << (at % 64);
    }
}

/// Chunks are files `c/i/j/k`, in directories made at first use and never again.
pub(super) struct MadeChunks {
    /// Chunks along each axis.
    counts: Vec<u64>,
    /// Per depth below the array's directory.
    directories: Vec<ChunkBits>,
    chunks: ChunkBits,
    /// Bytes of chunks that are encoded: nothing of those that another process wrote. Empty where all chunks have the same.
    lengths: Vec<u64>,
    modes: Modes,
    /// Some of it was made by a process before this one.
    goes_on: bool,
}

/// Permissions of the array that is replaced, where new files and directories get others.
#[derive(Clone, Copy, Default)]
pub(super) struct Modes {
    files: Option<Mode>,
    directories: Option<Mode>,
}

impl Modes {
    /// Those of the array at `old`, if there is one, against the one begun at `new`, whose `file` gets its own.
    pub(super) fn kept(old: &Path, new: &Path, file: &str) -> Modes {
        let differing = |old: &Path, new: &Path| {
            let mode = |path: &Path| stat(path).map(|found| Mode::from_raw_mode(found.st_mode));
            mode(old).ok().filter(|old| mode(new) != Ok(*old))
        };
        let modes = Modes {
            files: differing(&old.join(file), &new.join(file)),
            // What is in them must be made and removed.
            directories: differing(old, new).map(|mode| mode | Mode::RWXU),
        };
        modes.set_of_file(&new.join(file));
        modes
    }

    /// Gives a new file its permissions.
    pub(super) fn set_of_file(&self, path: &Path) {
        apply(self.files, path);
    }

    /// Gives a new directory its permissions.
    pub(super) fn set_of_directory(&self, path: &Path) {
        apply(self.directories, path);
    }
}

/// As far as the file system has permissions.
fn apply(mode: Option<Mode>, path: &Path) {
    if let Some(mode) = mode {
        let _ = chmod(path, mode);
    }
}

impl MadeChunks {
    pub(super) fn new(counts: Vec<u64>, modes: Modes, is_encoded: bool) -> MadeChunks {
        let above = |axes: usize| counts[..axes].iter().product::<u64>();
        let lengths = if is_encoded { above(counts.len()) } else { 0 };
        MadeChunks {
            lengths: vec![0; lengths as usize],
            directories: (0..counts.len()).map(|axes| ChunkBits::of(above(axes))).collect(),
            chunks: ChunkBits::of(above(counts.len())),
            counts,
            modes,
            goes_on: false,
        }
    }

    /// Takes over what another process made: the chunks `done`, and directories as they are found.
    pub(super) fn go_on(&mut self, done: &[u64]) {
        self.goes_on = true;
        done.iter().for_each(|&number| self.chunks.set(number));
    }

    pub(super) fn goes_on(&self) -> bool {
        self.goes_on
    }

    fn number(&self, index: &[u64]) -> u64 {
        let axes = index.iter().zip(&self.counts);
        axes.fold(0, |number, (index, count)| number * count + index)
    }

    /// The path of a chunk in `dir`, after making the directories that it is the first to need.
    ///
    /// # Errors
    /// One that was made before is gone: making it again would hide what it held.
    pub(super) fn chunk_path(&mut self, dir: &Path, index: &[u64]) -> Result<PathBuf, StoreError> {
        let mut path = dir.join("c");
        for axes in 0..index.len() {
            let number = self.number(&index[..axes]);
            if !self.directories[axes].has(number) {
                match fs::create_dir(&path) {
                    Err(cause) if self.goes_on && cause.kind() == std::io::ErrorKind::AlreadyExists => {}
                    made => made.map_err(|cause| gone_or(&path, "create", cause))?,
                }
                self.modes.set_of_directory(&path);
                self.directories[axes].set(number);
            }
            path.push(index[axes].to_string());
        }
        Ok(path)
    }

    /// Gives a chunk's new file its permissions.
    pub(super) fn set_mode(&self, chunk: &Path) {
        self.modes.set_of_file(chunk);
    }

    /// Says that a chunk was written, and the bytes that it has.
    pub(super) fn set_written(&mut self, index: &[u64], bytes: u64) {
        let number = self.number(index);
        self.chunks.set(number);
        if let Some(length) = self.lengths.get_mut(number as usize) {
            *length = bytes;
        }
    }

    /// The bytes of a chunk, where all that are not encoded have the same; nothing where they are not known.
    fn bytes_of(&self, number: u64, same: u64) -> Option<u64> {
        let bytes = self.lengths.get(number as usize).copied().unwrap_or(same);
        (bytes > 0).then_some(bytes)
    }

    /// Looks whether every chunk that was written is there with its bytes, the `same` for all that are not encoded: one `stat` each, in the order of their names.
    pub(super) fn check(&self, array: BorrowedFd<'_>, path: &Path, same: u64) -> Result<(), StoreError> {
        let mut path = path.join("c");
        if self.counts.is_empty() {
            return match self.chunks.has(0) {
                true => check_chunk(array, "c", || path.clone(), self.bytes_of(0, same)),
                false => Ok(()),
            };
        }
        if !self.directories[0].has(0) {
            return Ok(());
        }
        self.check_below(array, "c", (0, 0), &mut path, same)
    }

    /// The directory `name` of `dir`, the `number`-th of those `axes` deep.
    fn check_below(
        &self,
        dir: BorrowedFd<'_>,
        name: &str,
        (axes, number): (usize, u64),
        path: &mut PathBuf,
        same: u64,
    ) -> Result<(), StoreError> {
        let open = open_dir(dir, name).map_err(|cause| gone_or(path, "open", cause.into()))?;
        let count = self.counts[axes];
        for (index, number) in (number * count..(number + 1) * count).enumerate() {
            let name = index.to_string();
            if axes + 1 == self.counts.len() {
                if self.chunks.has(number) {
                    check_chunk(open.as_fd(), &name, || path.join(&name), self.bytes_of(number, same))?;
                }
            } else if self.directories[axes + 1].has(number) {
                path.push(&name);
                self.check_below(open.as_fd(), &name, (axes + 1, number), path, same)?;
                path.pop();
            }
        }
        Ok(())
    }
}

fn check_chunk(
    dir: BorrowedFd<'_>,
    name: &str,
    path: impl Fn() -> PathBuf,
    bytes: Option<u64>,
) -> Result<(), StoreError> {
    let found = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    let found = found.map_err(|cause| gone_or(&path(), "stat", cause.into()))?;
    if let Some(bytes) = bytes.filter(|&bytes| found.st_size as u64 != bytes) {
        let reason = format!("{} bytes where {bytes} were written", found.st_size);
        return Err(StoreError::disturbed(&path(), reason));
    }
    Ok(())
}

/// A missing directory or file of ours is another's doing.
pub(super) fn gone_or(path: &Path, action: &'static str, cause: std::io::Error) -> StoreError {
    match cause.kind() {
        std::io::ErrorKind::NotFound => StoreError::disturbed(path, "what was made there is gone"),
        _ => StoreError::io(path, 0, action, cause),
    }
}
