//! Parts of an existing Zarr v3 array: a second folder that shares the files which stay, and takes the place of the first.
//!
//! New chunks are written beside the array. When all are there, the files of the array that stay are linked to their names
//! beside the new ones; then the two folders exchange their names. So a path leads to the array as it was or as it becomes, a
//! process that dies leaves a folder beside, and an update that fails before its end has not touched any file of the array.
//!
//! Invariants:
//! 1. From `create` on, until the sink is dropped, both folders are locked: one update at a time.
//! 2. Nothing is published unless the array is what it was when the work began, by `TreeSum`.
//! 3. No file that is linked is ever written to.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use outcore_dtype::DType;

use super::keys::KeyEncoding;
use super::made::{gone_or, Modes};
use super::metadata::ArrayMetadata;
use super::sink::{check_document, JSON};
use super::tree::{changed, sum_of, walk, TreeSum};
use super::updatable::{check_not_consolidated, read};
use super::written::WrittenFile;
use crate::array::format::ArrayUpdate;
use crate::array::sink::{OutputPlan, Sink, WriteCosts};
use crate::durable::locked::{lock, LockedDir};
use crate::durable::partial::Partial;
use crate::io::{File, Mode};
use crate::{Io, Region, StoreError};

/// The chunks of an array that are written, and the array as it is.
///
/// Its shape is that of the hull: whole chunks around all that changes, as far as the array goes.
#[derive(Clone, Debug)]
pub(crate) struct ZarrUpdatePlan {
    shape: Vec<u64>,
    tile: Vec<u64>,
    dtype: DType,
    keys: KeyEncoding,
    /// A chunk of the array, or a shard of chunks.
    file: WrittenFile,
    /// The first chunk.
    first: Vec<u64>,
    /// Chunks along each axis.
    counts: Vec<u64>,
    old_json: String,
    json: String,
}

impl ZarrUpdatePlan {
    /// Checks an update of the array at `path` by a hull of some shape and type.
    ///
    /// # Errors
    /// Those of `find_updatable`; an array that is not what it was; a hull that is no part of it.
    pub(crate) fn new(
        path: &Path,
        update: &ArrayUpdate,
        shape: &[u64],
        dtype: DType,
    ) -> Result<ZarrUpdatePlan, StoreError> {
        let document = read(path)?;
        if document.metadata.shape != update.shape || document.metadata.dtype != dtype {
            let now = &document.metadata;
            let reason = format!(
                "{} of shape {:?} then, {} of shape {:?} now",
                dtype, update.shape, now.dtype, now.shape
            );
            return Err(changed(path, &reason));
        }
        if update.grown != update.shape {
            check_not_consolidated(path)?;
        }
        let json = document.with_shape(&update.grown);
        let json = json.map_err(|reason| StoreError::format(path, reason))?;
        let ArrayMetadata { chunk, keys, .. } = document.metadata;
        let is_hull = [update.start.len(), update.grown.len(), shape.len()] == [chunk.len(); 3]
            && (0..chunk.len()).all(|axis| {
                let (start, grown) = (update.start[axis], update.grown[axis]);
                let end = start.saturating_add(shape[axis]);
                start % chunk[axis] == 0 && end <= grown && (end == grown || end % chunk[axis] == 0)
            });
        if !is_hull {
            let reason = format!("{shape:?} from {:?} on are no whole chunks {chunk:?}", update.start);
            return Err(StoreError::Invalid(format!("{}: {reason}", path.display())));
        }
        let along = |of: &[u64], by: fn(u64, u64) -> u64| {
            let axes = of.iter().zip(&chunk);
            axes.map(|(length, chunk)| by(*length, *chunk)).collect()
        };
        Ok(ZarrUpdatePlan {
            tile: along(shape, |length, chunk| chunk.min(length.max(1))),
            first: along(&update.start, |start, chunk| start / chunk),
            counts: along(shape, u64::div_ceil),
            shape: shape.to_vec(),
            dtype,
            keys,
            file: document.file,
            old_json: document.text,
            json,
        })
    }

    /// The number of a chunk among those of the hull; nothing for another one.
    fn number(&self, index: &[u64]) -> Option<u64> {
        let mut number = 0;
        for ((at, first), count) in index.iter().zip(&self.first).zip(&self.counts) {
            let within = at.checked_sub(*first).filter(|within| within < count)?;
            number = number * count + within;
        }
        Some(number)
    }

    /// The chunk of a tile.
    fn index(&self, region: &Region) -> Vec<u64> {
        let axes = region.start.iter().zip(&self.file.shape).zip(&self.first);
        axes.map(|((start, chunk), first)| first + start / chunk).collect()
    }

    /// Whether a file of the array stays as it is.
    fn stays(&self, name: &Path) -> bool {
        let Some(name) = name.to_str() else { return true };
        let index = self.keys.index(name, self.shape.len());
        name != JSON && index.is_none_or(|index| self.number(&index).is_none())
    }
}

impl WriteCosts for ZarrUpdatePlan {
    fn tile(&self) -> &[u64] {
        &self.tile
    }

    fn write_bytes(&self, region: &Region) -> u64 {
        self.file.write_bytes(region)
    }

    fn overhead_bytes(&self) -> u64 {
        self.json.len() as u64
    }

    fn workspace_bytes(&self, region: &Region) -> usize {
        self.file.workspace_bytes(region)
    }
}

impl OutputPlan for ZarrUpdatePlan {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn is_folder(&self) -> bool {
        true
    }

    fn is_exact(&self) -> bool {
        self.file.is_exact()
    }

    fn create(
        &self,
        folder: Option<LockedDir>,
        path: &Path,
        overwrite: bool,
        io: &Io,
    ) -> Result<Arc<dyn Sink>, StoreError> {
        let held = |path: &Path| {
            let held = lock(path).map_err(|cause| StoreError::io(path, 0, "lock", cause))?;
            held.ok_or_else(|| StoreError::disturbed(path, "another update of this array is under way"))
        };
        let old_lock = held(path)?;
        if read(path)?.text != self.old_json {
            return Err(changed(&path.join(JSON), "another content"));
        }
        let before = sum_of(path, |_| true)?;
        let make = |dir: &Path| {
            fs::create_dir(dir).map_err(|cause| StoreError::io(dir, 0, "create", cause))?;
            let file = io.open_plain(&dir.join(JSON), Mode::CreateUnaligned)?;
            io.write(&file, self.json.as_bytes(), 0)?;
            check_links(&dir.join(JSON))
        };
        let (partial, ()) = Partial::new_in(folder, path, overwrite, make)?;
        let locks = [old_lock, held(partial.path())?];
        let count: u64 = self.counts.iter().product();
        Ok(Arc::new(ZarrUpdateSink {
            modes: Modes::kept(path, partial.path(), JSON),
            written: Mutex::new(vec![0; count as usize]),
            kept: Mutex::default(),
            plan: self.clone(),
            partial,
            before,
            _locks: locks,
        }))
    }
}

/// Refuses a file system without hard links before work starts.
fn check_links(file: &Path) -> Result<(), StoreError> {
    let link = file.with_extension("link");
    let linked = fs::hard_link(file, &link).and_then(|()| fs::remove_file(&link));
    linked.map_err(|cause| StoreError::io(file, 0, "make a hard link to", cause))
}

struct ZarrUpdateSink {
    plan: ZarrUpdatePlan,
    modes: Modes,
    /// Bytes of the chunks of the hull; nothing of those that are not written.
    written: Mutex<Vec<u64>>,
    /// The files that are linked.
    kept: Mutex<TreeSum>,
    partial: Partial,
    /// The files of the array when the work began.
    before: TreeSum,
    _locks: [fs::File; 2],
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl ZarrUpdateSink {
    /// A chunk's new file, in directories made on the way.
    fn create_chunk(&self, name: &str, io: &Io) -> Result<File, StoreError> {
        let path = self.partial.path().join(name);
        let file = match io.open(&path, Mode::Create) {
            Err(StoreError::Io { cause, .. }) if cause.kind() == ErrorKind::NotFound => {
                self.make_directories(Path::new(name))?;
                io.open(&path, Mode::Create)?
            }
            opened => opened?,
        };
        self.modes.set_of_file(&path);
        Ok(file.named(self.partial.target().join(name)))
    }

    fn make_directories(&self, name: &Path) -> Result<(), StoreError> {
        let folders: Vec<&Path> = name.ancestors().skip(1).collect();
        for folder in folders.iter().rev().filter(|folder| !folder.as_os_str().is_empty()) {
            let path = self.partial.path().join(folder);
            match fs::create_dir(&path) {
                Ok(()) => self.modes.set_of_directory(&path),
                Err(cause) if cause.kind() == ErrorKind::AlreadyExists => {}
                Err(cause) => return Err(gone_or(&path, "create", cause)),
            }
        }
        Ok(())
    }

    fn is_changed(&self) -> StoreError {
        changed(
            self.partial.target(),
            "files of the array were written, added or removed",
        )
    }

    /// Links the files of the array that stay, and makes the directories that it has.
    fn link(&self) -> Result<(), StoreError> {
        let (mut all, mut kept) = (TreeSum::default(), TreeSum::default());
        walk(self.partial.target(), &mut |entry| {
            let path = self.partial.path().join(entry.name);
            if entry.is_directory {
                return copy_directory(&path, entry.mode);
            }
            all.add(entry.name, entry.stamp);
            if !self.plan.stays(entry.name) {
                return Ok(());
            }
            kept.add(entry.name, entry.stamp);
            fs::hard_link(entry.path, &path).map_err(|cause| match cause.kind() {
                ErrorKind::NotFound => self.is_changed(),
                _ => StoreError::io(entry.path, 0, "make a hard link to", cause),
            })
        })?;
        if all != self.before {
            return Err(self.is_changed());
        }
        *locked(&self.kept) = kept;
        Ok(())
    }

    fn check_written(&self) -> Result<(), StoreError> {
        let (plan, written) = (&self.plan, locked(&self.written));
        let mut index = plan.first.clone();
        for (number, &bytes) in (0u64..).zip(written.iter()) {
            let mut remaining = number;
            for axis in (0..index.len()).rev() {
                index[axis] = plan.first[axis] + remaining % plan.counts[axis];
                remaining /= plan.counts[axis];
            }
            let path = self.partial.path().join(plan.keys.name(&index));
            let length = || path.symlink_metadata().map(|metadata| metadata.len());
            if bytes > 0 && length().map_err(|cause| gone_or(&path, "stat", cause))? != bytes {
                return Err(StoreError::disturbed(
                    &path,
                    format!("it has not the {bytes} bytes that were written"),
                ));
            }
        }
        Ok(())
    }

    fn check_content(&self) -> Result<(), StoreError> {
        let path = self.partial.path();
        let folder = self.partial.directory();
        let folder = folder.ok_or_else(|| StoreError::disturbed(path, "it is no directory"))?;
        check_document(folder, path, &self.plan.json)?;
        self.check_written()?;
        if sum_of(path, |name| self.plan.stays(name))? != *locked(&self.kept) {
            return Err(StoreError::disturbed(
                path,
                "files that were linked there are others now",
            ));
        }
        if sum_of(self.partial.target(), |_| true)? != self.before {
            return Err(self.is_changed());
        }
        Ok(())
    }
}

/// A directory with the permissions of another; its owner may make and remove files in it.
fn copy_directory(path: &PathBuf, mode: u32) -> Result<(), StoreError> {
    let mode = mode & 0o7777 | 0o700;
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(cause) if cause.kind() != ErrorKind::AlreadyExists => Err(gone_or(path, "create", cause)),
        _ => {
            // As far as the file system has permissions.
            let _ = fs::set_permissions(path, fs::Permissions::from_mode(mode));
            Ok(())
        }
    }
}

impl Sink for ZarrUpdateSink {
    fn name(&self) -> String {
        self.partial.target().display().to_string()
    }

    fn costs(&self) -> &dyn WriteCosts {
        &self.plan
    }

    fn write(&self, region: &Region, data: &[u8], io: &Io) -> Result<(), StoreError> {
        region.check_in(&self.plan.shape, &self.name())?;
        if region.is_empty() {
            return Ok(());
        }
        let index = self.plan.index(region);
        let file = self.create_chunk(&self.plan.keys.name(&index), io);
        let bytes = file
            .and_then(|file| self.plan.file.write(&file, region, data, io))
            .map_err(|error| error.at_output(self.partial.target()))?;
        if let Some(number) = self.plan.number(&index) {
            locked(&self.written)[number as usize] = bytes;
        }
        Ok(())
    }

    fn flush(&self, io: &Io) -> Result<(), StoreError> {
        io.sync_file_system(self.partial.path())
    }

    fn seal(&self, io: &Io) -> Result<(), StoreError> {
        self.partial.check()?;
        self.link().map_err(|error| error.at_output(self.partial.target()))?;
        io.sync_file_system(self.partial.path())
    }

    fn check(&self) -> Result<(), StoreError> {
        self.partial.check()?;
        self.check_content()
            .map_err(|error| error.at_output(self.partial.target()))
    }

    fn partial(&self) -> Option<&Partial> {
        Some(&self.partial)
    }
}
