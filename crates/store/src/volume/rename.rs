//! Moving files to other names, into volumes and out of them.

use std::path::Path;

use super::locate::home_of;
use super::rebalance::copy;
use super::remove::{remove_file, rename_over};
use crate::io::Mode;
use crate::partial::Partial;
use crate::publish::place_all;
use crate::{Io, StoreError};

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

/// Copies a file to a name that nothing has, durably.
pub(crate) fn copy_to(from: &Path, to: &Path, io: &Io) -> Result<(), StoreError> {
    let file = io.open(from, Mode::Read)?;
    let bytes = file.len()?;
    copy(&file, bytes, to, io, &mut || true).map(drop)
}
