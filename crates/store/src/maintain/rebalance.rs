//! Laying files out anew after disks were added or weights changed.
//!
//! A file is copied block by block to new parts under a new stub, which then takes its name as an output does. What a
//! process that was killed leaves is an unfinished output; files that are done are known by their generation.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::scan::stubs;
use crate::backend::stamp::Stamp;
use crate::base::directory::parent_of;
use crate::base::error::StandingOutput;
use crate::durable::partial::{clean_partials, Partial};
use crate::durable::rename::copy;
use crate::volume::assembled::Volume;
use crate::volume::locate::home_named;
use crate::{Io, StoreError};

/// Folders in which work is under way, or can be gone on with.
const UNFINISHED: [&str; 4] = [
    ".outcore-partial-",
    "outcore-scratch-",
    ".outcore-resume-",
    "outcore-resume-",
];

/// What `rebalance` did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rebalanced {
    pub files: u64,
    pub bytes: u64,
    /// Files that were written to meanwhile, are unfinished, have several hard links or cannot be read by their stubs: they
    /// stay as they lie.
    pub left: u64,
    /// It was told to stop.
    pub stopped: bool,
}

/// Lays out all files of a volume that lie as they did before its disks or weights changed. `on` is asked now and then
/// whether to go on. Arrays that are open meanwhile are changed files for those who have them open.
///
/// # Errors
/// A disk is full or fails; the file at which it does stays as it was.
pub fn rebalance(home: &Path, io: &Io, on: &mut dyn FnMut() -> bool) -> Result<Rebalanced, StoreError> {
    let home = home_named(home)?;
    let volume = Volume::load(&home, &[])?;
    let begun = older(&home, &volume)?;
    // A process that was killed may have left the last file of its folder placed, and what it replaced beside it.
    let parents: BTreeSet<PathBuf> = begun.due.iter().map(|path| finished_parent(&home, path)).collect();
    for parent in &parents {
        clean_partials(parent)?;
    }
    let Older { due, left } = older(&home, &volume)?;
    let mut done = Rebalanced {
        left,
        ..Rebalanced::default()
    };
    for path in due {
        if unfinished(&home, &path).is_some() {
            done.left += 1;
            continue;
        }
        match renew(&path, io, on)? {
            Renewed::Moved(bytes) => {
                done.files += 1;
                done.bytes += bytes;
            }
            Renewed::Changed => done.left += 1,
            Renewed::Stopped => {
                done.stopped = true;
                break;
            }
        }
    }
    Ok(done)
}

/// Files that lie as they did before the volume changed: those that can be moved, and how many cannot.
struct Older {
    due: Vec<PathBuf>,
    left: u64,
}

fn older(home: &Path, volume: &Volume) -> Result<Older, StoreError> {
    let current = volume.description.current().number;
    let (mut due, mut left) = (vec![], 0);
    stubs(home, &mut |file| match file.stub {
        _ if file.nested => {}
        Ok((stub, metadata)) if volume.map(&stub).is_ok() && stub.is_in(&metadata) => {
            match (stub.generation == current, metadata.nlink()) {
                (true, _) => {}
                (false, 1) => due.push(file.path.to_path_buf()),
                (false, _) => left += 1,
            }
        }
        _ => left += 1,
    })?;
    Ok(Older { due, left })
}

/// The folder of unfinished work that a file below `home` lies in.
fn unfinished(home: &Path, path: &Path) -> Option<PathBuf> {
    let below = path.strip_prefix(home).ok()?;
    let depth = below.components().position(|part| {
        let name = part.as_os_str().to_string_lossy();
        UNFINISHED.iter().any(|mark| name.starts_with(mark))
    })?;
    Some(home.join(below.components().take(depth + 1).collect::<PathBuf>()))
}

/// The folder in which a file lies or, unfinished, will lie.
fn finished_parent(home: &Path, path: &Path) -> PathBuf {
    parent_of(&unfinished(home, path).unwrap_or_else(|| path.to_path_buf()))
}

enum Renewed {
    Moved(u64),
    Changed,
    Stopped,
}

fn renew(path: &Path, io: &Io, on: &mut dyn FnMut() -> bool) -> Result<Renewed, StoreError> {
    let Ok(before) = Stamp::of(path) else {
        return Ok(Renewed::Changed);
    };
    let made = before
        .open(path, io)
        .and_then(|file| Partial::new(path, true, |new| copy(&file, before.bytes, new, io, on)));
    if before.check(path, |stamp| stamp).is_err() {
        return Ok(Renewed::Changed);
    }
    let (partial, whole) = made?;
    if !whole {
        return Ok(Renewed::Stopped);
    }
    match place_instead(&partial, &before, io)? {
        true => Ok(Renewed::Moved(before.bytes)),
        false => Ok(Renewed::Changed),
    }
}

/// Gives a copy the name of its original; false where another file had it by then, or the original was written to: the
/// name is that file's again.
pub(super) fn place_instead(partial: &Partial, before: &Stamp, io: &Io) -> Result<bool, StoreError> {
    partial.place(io)?;
    let original = |old: PathBuf| Stamp::of(&old).is_ok_and(|stamp| before.is_renamed(&stamp));
    let placed = match partial.replaced().is_some_and(original) {
        true => partial.sync_name(io).map(|()| true),
        false => Ok(false),
    };
    if let Ok(true) = placed {
        partial.discard_replaced();
        return placed;
    }
    if let Err(cause) = partial.take_back(io) {
        if let StoreError::Disturbed { .. } = cause {
            // The copy was replaced, too: who did that replaced all that was there before.
            partial.discard_replaced();
            return Ok(false);
        }
        let (path, old) = partial.leave();
        let standing = StandingOutput {
            path,
            old,
            cause: cause.to_string(),
        };
        return Err(StoreError::HalfPublished {
            cause: Arc::new(cause),
            standing: vec![standing],
        });
    }
    partial.discard();
    placed
}
