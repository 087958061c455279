//! Spilled tiles: one file per scratch directory, slots that are reused, a quota, and no trace after a crash.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use rustix::fs::statfs;

use crate::backend::stamp::TMPFS_MAGIC;
use crate::base::directory::size_of;
use crate::base::locked::locked;
use crate::base::page::PAGE;
use crate::durable::locked::{clean_where, Cleaned, LockedDir};
use crate::durable::target::disk_of;
use crate::io::{File, Mode};
use crate::volume::remove_file;
use crate::{Io, StoreError};

const PREFIX: &str = "outcore-scratch-";

/// The scratch space of one session.
#[derive(Clone)]
pub struct Scratch(Arc<ScratchFiles>);

struct ScratchFiles {
    files: Vec<ScratchFile>,
    quota: u64,
    space: Mutex<ScratchSpace>,
    warnings: Vec<String>,
}

/// A locked directory and the file in it; both go away with the session.
struct ScratchFile {
    dir: LockedDir,
    file: File,
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        self.dir.remove();
    }
}

/// What is taken: per file its length, the free extents in it (start to length), and how long it may grow.
struct ScratchSpace {
    next: usize,
    extents: Vec<(u64, BTreeMap<u64, u64>)>,
    room: Vec<u64>,
}

/// Bytes free for scratch in each of `dirs`, there or not yet; those on one file system share what there is.
///
/// # Errors
/// What the file system reports.
pub fn scratch_room(dirs: &[PathBuf]) -> Result<Vec<u64>, StoreError> {
    let disks = dirs.iter().map(|dir| disk_of(dir)).collect::<Result<Vec<_>, _>>()?;
    let share = |&(device, free): &(u64, u64)| free / disks.iter().filter(|disk| disk.0 == device).count() as u64;
    Ok(disks.iter().map(share).collect())
}

/// A place in scratch; free again when dropped.
pub struct Slot {
    scratch: Arc<ScratchFiles>,
    file: usize,
    offset: u64,
    bytes: u64,
}

impl Slot {
    /// What a write or a read of the slot transfers: whole pages.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut space = self.scratch.space();
        let free = &mut space.extents[self.file].1;
        let (mut start, mut end) = (self.offset, self.offset + self.bytes);
        if let Some((&before, &length)) = free.range(..start).next_back() {
            if before + length == start {
                free.remove(&before);
                start = before;
            }
        }
        if let Some(length) = free.remove(&end) {
            end += length;
        }
        free.insert(start, end - start);
    }
}

impl ScratchFiles {
    fn space(&self) -> MutexGuard<'_, ScratchSpace> {
        locked(&self.space)
    }
}

impl Scratch {
    /// Opens scratch space in `dirs`, used in turn, after removing what dead processes left there.
    ///
    /// # Errors
    /// A directory that cannot be written to.
    pub fn new(dirs: &[PathBuf], quota: Option<u64>, io: &Io) -> Result<Scratch, StoreError> {
        if dirs.is_empty() {
            return Err(StoreError::Invalid("scratch needs at least one directory".into()));
        }
        let mut warnings = Vec::new();
        let mut files = Vec::new();
        for dir in dirs {
            fs::create_dir_all(dir).map_err(|cause| StoreError::io(dir, 0, "create", cause))?;
            clean(dir)?;
            if statfs(dir).is_ok_and(|stat| stat.f_type == TMPFS_MAGIC) {
                warnings.push(format!(
                    "scratch directory {} is in memory (tmpfs), beyond the limit",
                    dir.display()
                ));
            }
            files.push(open_in(dir, io)?);
        }
        let extents = files.iter().map(|_| (0, BTreeMap::new())).collect();
        let room = vec![u64::MAX; files.len()];
        let space = Mutex::new(ScratchSpace { next: 0, extents, room });
        Ok(Scratch(Arc::new(ScratchFiles {
            files,
            quota: quota.unwrap_or(u64::MAX),
            space,
            warnings,
        })))
    }

    pub fn warnings(&self) -> &[String] {
        &self.0.warnings
    }

    /// What a slot for `bytes` transfers each way.
    pub fn slot_bytes(bytes: usize) -> u64 {
        (bytes.max(1) as u64).next_multiple_of(PAGE as u64)
    }

    /// The size of the scratch files, which is what the quota bounds.
    pub fn used(&self) -> u64 {
        self.0.space().extents.iter().map(|(length, _)| length).sum()
    }

    /// A place for `bytes`: the first free extent that is large enough in any file, else new space in turn.
    ///
    /// # Errors
    /// `quota` or `space`, where there is no room for the slot.
    pub fn slot(&self, bytes: usize) -> Result<Slot, StoreError> {
        let bytes = Scratch::slot_bytes(bytes);
        let mut space = self.0.space();
        let count = space.extents.len();
        let next = space.next;
        space.next = (next + 1) % count;
        let slot = |file, offset| Slot {
            scratch: self.0.clone(),
            file,
            offset,
            bytes,
        };
        for file in (0..count).map(|step| (next + step) % count) {
            let free = &mut space.extents[file].1;
            let found = free
                .iter()
                .find(|(_, length)| **length >= bytes)
                .map(|(start, length)| (*start, *length));
            if let Some((start, length)) = found {
                free.remove(&start);
                if length > bytes {
                    free.insert(start + bytes, length - bytes);
                }
                return Ok(slot(file, start));
            }
        }
        let used: u64 = space.extents.iter().map(|(length, _)| length).sum();
        if used.checked_add(bytes).is_none_or(|total| total > self.0.quota) {
            return Err(StoreError::Quota {
                need: bytes,
                used,
                quota: self.0.quota,
            });
        }
        // The next in turn that has room; where none has, the file system says so.
        let roomy = |file: &usize| space.room[*file].saturating_sub(space.extents[*file].0) >= bytes;
        let file = (0..count).map(|step| (next + step) % count).find(roomy).unwrap_or(next);
        let offset = space.extents[file].0;
        space.extents[file].0 += bytes;
        Ok(slot(file, offset))
    }

    /// Looks how far the files may grow, before a program.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn measure(&self) -> Result<(), StoreError> {
        let dirs: Vec<PathBuf> = self.0.files.iter().map(|file| file.dir.path().to_path_buf()).collect();
        let free = scratch_room(&dirs)?;
        let mut space = self.0.space();
        space.room = free
            .iter()
            .zip(&space.extents)
            .map(|(free, (length, _))| free.saturating_add(*length))
            .collect();
        Ok(())
    }

    /// Gives the disks back what no slot takes, after a program: files without slots are emptied.
    pub fn shrink(&self) {
        let mut space = self.0.space();
        for (file, (length, free)) in self.0.files.iter().zip(&mut space.extents) {
            if *length > 0 && free.get(&0) == Some(length) && file.file.set_len(0).is_ok() {
                (*length, *free) = (0, BTreeMap::new());
            }
        }
    }

    /// Writes a slot. `data` starts on a page and covers the slot's whole pages.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, slot: &Slot, data: &[u8], io: &Io) -> Result<(), StoreError> {
        let short = || StoreError::Invalid(format!("scratch: {} bytes for a slot of {}", data.len(), slot.bytes));
        let data = data.get(..slot.bytes as usize).ok_or_else(short)?;
        io.write(&self.0.files[slot.file].file, data, slot.offset)
    }

    /// Reads a slot into the front of a frame, which covers the slot's whole pages.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self, slot: &Slot, frame: &mut [u8], io: &Io) -> Result<(), StoreError> {
        let length = frame.len();
        let short = || {
            StoreError::Invalid(format!(
                "scratch: a frame of {length} bytes for a slot of {}",
                slot.bytes
            ))
        };
        let frame = frame.get_mut(..slot.bytes as usize).ok_or_else(short)?;
        io.read(&self.0.files[slot.file].file, frame, slot.offset, slot.bytes as usize)
    }
}

fn open_in(dir: &Path, io: &Io) -> Result<ScratchFile, StoreError> {
    let dir = LockedDir::make(dir, PREFIX)?;
    let file = io.open(&dir.path().join("tiles"), Mode::Create);
    let file = file.inspect_err(|_| dir.remove())?;
    Ok(ScratchFile { dir, file })
}

/// A folder for files that live from one stage of a computation to the next. It goes away with its owner; what a dead
/// process left is removed with its scratch.
pub struct ScratchFolder {
    dir: LockedDir,
    /// Files of it that are being removed.
    removals: Mutex<Vec<JoinHandle<()>>>,
    /// The process that made it: a forked child has neither the right to remove what is in it nor the threads that do.
    owner: u32,
}

/// Bytes of a file whose removal is not waited for: some disks take their time to be told what is free again.
const LARGE_BYTES: u64 = 64 << 20;

impl ScratchFolder {
    /// Makes one in the directory with the most room.
    ///
    /// # Errors
    /// No directory given, or none can be made in it.
    pub fn make(dirs: &[PathBuf]) -> Result<ScratchFolder, StoreError> {
        let room = scratch_room(dirs)?;
        let roomiest = dirs.iter().zip(room).max_by_key(|&(_, room)| room);
        let Some((dir, _)) = roomiest else {
            return Err(StoreError::Invalid("scratch needs at least one directory".into()));
        };
        fs::create_dir_all(dir).map_err(|cause| StoreError::io(dir, 0, "create", cause))?;
        Ok(ScratchFolder {
            dir: LockedDir::make(dir, PREFIX)?,
            removals: Mutex::default(),
            owner: std::process::id(),
        })
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A name that no other file in it has had.
    pub fn unused(&self) -> PathBuf {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        self.path().join(format!("array-{number}.npy"))
    }

    /// Removes a file of it; of a large one the disk may become free only later, at the latest by [`Self::wait_for_removals`].
    pub(crate) fn remove_file(&self, path: &Path) {
        if self.owner != std::process::id() {
            return;
        }
        // Its name goes at once. What takes long is to free its blocks, when the last descriptor is closed.
        let large = size_of(path) >= LARGE_BYTES;
        // What cannot be removed now goes with the folder.
        let held = remove_file(path).ok().filter(|_| large);
        let Some(files) = held else { return };
        let mut removals = locked(&self.removals);
        removals.retain(|removal| !removal.is_finished());
        let thread = std::thread::Builder::new().name("outcore-remove".into());
        if let Ok(removal) = thread.spawn(move || drop(files)) {
            removals.push(removal);
        }
    }

    /// Waits for the disk to be free of what was removed; whether anything had to be waited for.
    pub fn wait_for_removals(&self) -> bool {
        if self.owner != std::process::id() {
            return false;
        }
        let removals = std::mem::take(&mut *locked(&self.removals));
        let any = !removals.is_empty();
        for removal in removals {
            let _ = removal.join();
        }
        any
    }
}

impl std::fmt::Debug for ScratchFolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ScratchFolder({})", self.path().display())
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        if self.owner == std::process::id() {
            self.wait_for_removals();
            self.dir.remove();
        }
    }
}

/// Removes the scratch that dead processes left in `dir`.
///
/// # Errors
/// The directory cannot be listed.
pub fn clean(dir: &Path) -> Result<Cleaned, StoreError> {
    clean_where(dir, |name| name.starts_with(PREFIX), |_| Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::mapping::AlignedBuffer;

    #[test]
    fn slots_are_reused_merged_and_bounded_by_the_quota() {
        let dir = tempfile::tempdir().unwrap();
        let page = PAGE as u64;
        let scratch = Scratch::new(&[dir.path().to_path_buf()], Some(4 * page), &Io::direct()).unwrap();
        let slots: Vec<Slot> = (0..4).map(|_| scratch.slot(PAGE).unwrap()).collect();
        let error = scratch.slot(1).err().unwrap();
        assert_eq!(error.code(), "quota");
        let mut slots = slots.into_iter();
        let (first, second) = (slots.next(), slots.next());
        drop(first);
        drop(second);
        let merged = scratch.slot(2 * PAGE).unwrap();
        assert_eq!((merged.offset, scratch.used()), (0, 4 * page));
        assert!(dir.path().read_dir().unwrap().next().is_some());
        drop((merged, slots, scratch));
        assert!(dir.path().read_dir().unwrap().next().is_none());
    }

    #[test]
    fn what_no_slot_takes_goes_back_to_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let io = Io::direct();
        let scratch = Scratch::new(&[dir.path().to_path_buf()], None, &io).unwrap();
        let mut data = AlignedBuffer::new(2 * PAGE).unwrap();
        data.fill(7);
        let slots = [scratch.slot(PAGE).unwrap(), scratch.slot(PAGE).unwrap()];
        for slot in &slots {
            scratch.write(slot, &data, &io).unwrap();
        }
        let [first, second] = slots;
        drop(first);
        scratch.shrink();
        assert_eq!(scratch.used(), 2 * PAGE as u64, "a slot is in use");
        scratch.read(&second, &mut data, &io).unwrap();
        drop(second);
        scratch.shrink();
        assert_eq!((scratch.used(), scratch.0.files[0].file.len().unwrap()), (0, 0));
    }

    #[test]
    fn a_directory_without_room_is_passed_over() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let paths: Vec<PathBuf> = dirs.iter().map(|dir| dir.path().to_path_buf()).collect();
        let scratch = Scratch::new(&paths, None, &Io::direct()).unwrap();
        scratch.measure().unwrap();
        scratch.0.space().room[0] = PAGE as u64;
        let files: Vec<usize> = (0..5)
            .map(|_| scratch.slot(PAGE).unwrap())
            .map(|slot| slot.file)
            .collect();
        let kept: Vec<Slot> = (0..4).map(|_| scratch.slot(PAGE).unwrap()).collect();
        assert!(files.len() == 5 && kept.iter().filter(|slot| slot.file == 0).count() <= 1);
    }

    #[test]
    fn what_is_spilled_comes_back_and_is_counted_in_pages() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let paths: Vec<PathBuf> = dirs.iter().map(|dir| dir.path().to_path_buf()).collect();
        let io = Io::direct();
        let scratch = Scratch::new(&paths, None, &io).unwrap();
        let slots = [scratch.slot(5000).unwrap(), scratch.slot(5000).unwrap()];
        assert_ne!(slots[0].file, slots[1].file);
        let mut data = AlignedBuffer::new(8192).unwrap();
        for (value, slot) in slots.iter().enumerate() {
            data.fill(value as u8 + 1);
            scratch.write(slot, &data, &io).unwrap();
        }
        for (value, slot) in slots.iter().enumerate() {
            data.fill(0);
            scratch.read(slot, &mut data, &io).unwrap();
            assert!(data.iter().all(|byte| *byte == value as u8 + 1));
        }
        let counters = io.counters();
        assert_eq!((counters.bytes_written, counters.bytes_read), (16384, 16384));
    }

    #[test]
    fn a_file_of_a_folder_is_gone_when_its_removal_is_settled() {
        let dir = tempfile::tempdir().unwrap();
        let folder = ScratchFolder::make(&[dir.path().to_path_buf()]).unwrap();
        for bytes in [10, LARGE_BYTES] {
            let path = folder.unused();
            fs::File::create(&path).unwrap().set_len(bytes).unwrap();
            folder.remove_file(&path);
            assert!(!path.exists());
            assert_eq!(folder.wait_for_removals(), bytes == LARGE_BYTES);
        }
        assert!(!folder.wait_for_removals());
        let path = folder.unused();
        fs::File::create(&path).unwrap().set_len(LARGE_BYTES).unwrap();
        folder.remove_file(&path);
        drop(folder);
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn scratch_of_the_dead_is_removed_and_of_the_living_kept() {
        let dir = tempfile::tempdir().unwrap();
        let dead = dir.path().join("outcore-scratch-1-dead");
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join("tiles"), [0; 10]).unwrap();
        let living = Scratch::new(&[dir.path().to_path_buf()], None, &Io::direct()).unwrap();
        assert!(!dead.exists());
        assert_eq!(clean(dir.path()).unwrap(), Cleaned::default());
        assert_eq!(dir.path().read_dir().unwrap().count(), 1);
        drop(living);
    }
}
