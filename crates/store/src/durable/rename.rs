//! Moving files to other names, into volumes and out of them.

use std::fs;
use std::path::Path;

use rustix::fs::{renameat_with, RenameFlags, CWD};
use rustix::io::Errno;

use crate::durable::partial::Partial;
use crate::durable::publish::place_all;
use crate::io::{File, Mode};
use crate::memory::mapping::AlignedBuffer;
use crate::volume::{home_of, remove_file, rename_over};
use crate::{Io, StoreError};

/// Bytes that are moved at a time.
const STEP_BYTES: usize = 8 << 20;

/// Whether a path lies in a volume.
pub fn is_within(path: &Path) -> bool {
    home_of(path).is_some()
}

/// Gives a file another name, and replaces what has it. Within a volume, and where there is none, the
/// name is all that changes; else the bytes are copied, and the old name goes when the new one stands.
///
/// # Errors
/// What the file system reports; the file has its old name then.
pub fn replace(from: &Path, to: &Path, io: &Io) -> Result<(), StoreError> {
    let error = |cause| StoreError::io(to, 0, "rename", cause);
    let home = home_of(to);
    if home == home_of(from) {
        match rename_over(from, to) {
            Err(cause) if cause.kind() == std::io::ErrorKind::CrossesDevices => {}
            renamed => return renamed.map_err(error),
        }
    }
    let file = io.open(from, Mode::Read)?;
    let bytes = file.len()?;
    let (partial, _) = Partial::new(to, true, |new| copy(&file, bytes, new, io, &mut || true))?;
    place_all(&[&partial], io)?;
    remove_file(from).map(drop).map_err(error)
}

/// Two files or folders of one file system exchange their names, in one step; false where the file system has no such.
///
/// # Errors
/// What the file system reports; both have their old names then.
pub fn exchange(first: &Path, second: &Path) -> Result<bool, StoreError> {
    match renameat_with(CWD, first, CWD, second, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL | Errno::NOSYS) => Ok(false),
        Err(cause) => Err(StoreError::io(second, 0, "rename", cause)),
    }
}

/// Copies a file to a name that nothing has, durably.
pub(crate) fn copy_to(from: &Path, to: &Path, io: &Io) -> Result<(), StoreError> {
    let file = io.open(from, Mode::Read)?;
    let bytes = file.len()?;
    copy(&file, bytes, to, io, &mut || true).map(drop)
}

/// Copies a file to another that is not there yet; false when it was told to stop.
pub(crate) fn copy(
    file: &File,
    bytes: u64,
    new: &Path,
    io: &Io,
    on: &mut dyn FnMut() -> bool,
) -> Result<bool, StoreError> {
    let made = io.open(new, Mode::Create)?;
    made.allocate(bytes)?;
    let map = |cause| StoreError::io(new, 0, "map memory", cause);
    let mut step = AlignedBuffer::new(STEP_BYTES).map_err(map)?;
    for offset in (0..bytes).step_by(STEP_BYTES) {
        if !on() {
            return Ok(false);
        }
        let expected = (bytes - offset).min(STEP_BYTES as u64) as usize;
        let whole = expected.next_multiple_of(crate::PAGE);
        io.read(file, &mut step[..whole], offset, expected)?;
        step[expected..whole].fill(0);
        io.write(&made, &step[..whole], offset)?;
    }
    made.set_len(bytes)?;
    keep_times(file.path(), new)?;
    io.sync(&made)?;
    Ok(true)
}

/// The new file was written to when the old one was.
fn keep_times(old: &Path, new: &Path) -> Result<(), StoreError> {
    let keep = || {
        let found = fs::metadata(old)?;
        let times = fs::FileTimes::new()
            .set_accessed(found.accessed()?)
            .set_modified(found.modified()?);
        fs::OpenOptions::new().write(true).open(new)?.set_times(times)
    };
    keep().map_err(|cause| StoreError::io(new, 0, "set the times of", cause))
}
