//! The volumes that an `Io` has met, and opening files in them.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::assembled::{Volume, PLAIN_BYTES};
use super::blob::VolumeBlob;
use super::description::{Generation, VOLUME_JSON};
use super::disk::DiskCounters;
use super::flights::Meter;
use super::locate::home_of;
use super::striped::StubFile;
use super::stub::{Stub, MAGIC};
use crate::backend::stamp::Stamp;
use crate::backend::{Backend, Blob, Mode};
use crate::base::locked::locked;
use crate::base::page::PAGE;
use crate::StoreError;

/// How long a directory is believed to lie in no volume after a look, and how many are remembered: a look costs as much as
/// opening a file does.
const OUTSIDE_FOR: Duration = Duration::from_secs(1);
const OUTSIDE_MAX: usize = 4096;

#[derive(Default)]
pub(crate) struct Volumes {
    known: Mutex<HashMap<PathBuf, Arc<Volume>>>,
    /// Directories that lay in none, and when.
    outside: Mutex<HashMap<PathBuf, Instant>>,
}

impl Volumes {
    /// Whether the directory of a path lay in no volume a moment ago. A file that is made there is plain then, as small
    /// ones are; a stub that is met there says itself what it is.
    pub(crate) fn was_outside(&self, path: &Path) -> bool {
        let outside = locked(&self.outside);
        let seen = path.parent().and_then(|parent| outside.get(parent));
        seen.is_some_and(|seen| seen.elapsed() < OUTSIDE_FOR)
    }

    fn note_outside(&self, path: &Path) {
        let Some(parent) = path.parent() else { return };
        let mut outside = locked(&self.outside);
        if outside.len() >= OUTSIDE_MAX {
            outside.clear();
        }
        outside.insert(parent.to_path_buf(), Instant::now());
    }

    /// The volume in `home`, as it is described now.
    fn at(&self, home: &Path) -> std::result::Result<Arc<Volume>, StoreError> {
        let mut known = locked(&self.known);
        let there = known.get(home);
        if let Some(volume) = there {
            if Stamp::of(&home.join(VOLUME_JSON)).is_ok_and(|stamp| stamp == volume.stamp) {
                return Ok(volume.clone());
            }
        }
        let disks = there.map_or(&[][..], |volume| &volume.disks);
        let volume = Arc::new(Volume::load(home, disks)?);
        known.insert(home.to_path_buf(), volume.clone());
        Ok(volume)
    }

    /// What all disks have done.
    pub(crate) fn counters(&self) -> Vec<DiskCounters> {
        let known = locked(&self.known);
        let mut counters: Vec<DiskCounters> = known
            .values()
            .flat_map(|volume| volume.disks.iter().map(|disk| disk.counters(&volume.home)))
            .collect();
        counters.sort_by(|a, b| (&a.volume, &a.disk).cmp(&(&b.volume, &b.disk)));
        counters
    }

    /// Makes what the disks of the volume that holds `path` have durable, if one does: also of disks that get nothing new
    /// any more, as weights may have changed since bytes were written.
    ///
    /// # Errors
    /// A disk is gone, or reports what went wrong.
    pub(crate) fn sync(&self, path: &Path) -> std::result::Result<(), StoreError> {
        let Some(home) = home_of(path) else {
            return Ok(());
        };
        let volume = self.at(&home)?;
        let description = &volume.description;
        for (number, disk) in volume.disks.iter().enumerate() {
            let weighs = |one: &Generation| one.weights.get(number).is_some_and(|&weight| weight > 0);
            let sync = || {
                let directory = disk.check()?;
                let sync = || Ok(rustix::fs::syncfs(fs::File::open(&directory)?)?);
                sync().map_err(|cause| disk.error(cause))
            };
            let needed = weighs(description.current()) || disk.has_written();
            match description.generations.iter().any(weighs).then(sync) {
                // One that was emptied and taken away.
                Some(Err(cause)) if !needed && cause.kind() == ErrorKind::NotFound => {}
                Some(Err(cause)) => return Err(StoreError::io(path, 0, "sync", cause)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Which disks were found elsewhere than written down; each is told once.
    pub(crate) fn notes(&self) -> Vec<String> {
        let known: Vec<Arc<Volume>> = locked(&self.known).values().cloned().collect();
        let disks = known.iter().flat_map(|volume| {
            let disks = volume.description.members.iter().zip(&volume.disks);
            disks.filter_map(move |(member, disk)| {
                let (now, home) = (disk.moved_from(&member.path)?, volume.home.display());
                Some(format!(
                    "{}: this disk of the volume {home} was found at {}; `outcore volume info {home} --write` writes \
                     that down",
                    member.path.display(),
                    now.display(),
                ))
            })
        });
        disks.collect()
    }

    /// Opens a file that lies in a volume and is not plain; nothing where the path leads elsewhere.
    pub(crate) fn open(
        &self,
        path: &Path,
        mode: Mode,
        backend: &Arc<dyn Backend>,
    ) -> std::result::Result<Option<Arc<dyn Blob>>, StoreError> {
        let Some(home) = home_of(path) else {
            self.note_outside(path);
            return Ok(None);
        };
        let volume = self.at(&home)?;
        let opened = open_in(&volume, path, mode, backend);
        opened.map_err(|cause| StoreError::io(path, 0, action(mode), cause))
    }
}

fn action(mode: Mode) -> &'static str {
    match mode {
        Mode::Create | Mode::CreateUnaligned => "create",
        _ => "open",
    }
}

fn open_in(volume: &Arc<Volume>, path: &Path, mode: Mode, backend: &Arc<dyn Backend>) -> Result<Option<Arc<dyn Blob>>> {
    let create = matches!(mode, Mode::Create | Mode::CreateUnaligned);
    let file = OpenOptions::new()
        .read(true)
        .write(mode != Mode::Read)
        .create_new(create)
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(Error::other("it is no regular file"));
    }
    let stub = Stub::of(&file)?;
    if stub.is_some_and(|stub| stub.volume == volume.description.id && !stub.is_in(&metadata)) {
        return Err(Error::new(ErrorKind::InvalidData, COPIED));
    }
    // What stays plain, or is too long to be moved, is as any other file.
    if stub.is_none() && !create && (mode == Mode::Read || metadata.len() > PLAIN_BYTES) {
        return Ok(None);
    }
    let file = StubFile::new(file, &metadata);
    let blob = VolumeBlob::new(volume.clone(), file, path, mode, backend.clone(), stub)?;
    Ok(Some(Arc::new(blob)))
}

/// Of a stub that does not stand where it was written.
pub(crate) const COPIED: &str = "this is a copy of the name of a file of the volume, and its content belongs to the \
     original; `outcore convert` copies content, `outcore volume check --repair` adopts names that were restored";

#[repr(align(4096))]
struct AlignedPage([u8; PAGE]);

/// Refuses a stub that stands where no volume is: its zeros are not what the file holds. Costs a read of a page.
pub(crate) fn refuse_stray(blob: &dyn Blob) -> Result<()> {
    // No stub is as short.
    if blob.len()? <= PLAIN_BYTES {
        return Ok(());
    }
    let mut page = AlignedPage([0; PAGE]);
    loop {
        match blob.read_at(&mut page.0, 0) {
            Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
            Ok(_) if page.0.starts_with(&MAGIC) => return Err(Error::new(ErrorKind::InvalidData, Stray)),
            done => return done.map(drop),
        }
    }
}

#[derive(Debug)]
struct Stray;

impl std::fmt::Display for Stray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("this is the name of a file of a volume, moved or copied out of it; its content is not here")
    }
}

impl std::error::Error for Stray {}

/// Whether it is `refuse_stray` that refused.
pub(crate) fn is_stray(cause: &Error) -> bool {
    cause.get_ref().is_some_and(|inner| inner.is::<Stray>())
}

/// Bytes that fit into the volume that holds `path`, if one does, and a number for it in place of a device's.
pub(crate) fn free_bytes(path: &Path) -> std::result::Result<Option<(u64, u64)>, StoreError> {
    let Some(home) = home_of(path) else {
        return Ok(None);
    };
    let volume = Volume::load(&home, &[])?;
    let weights = &volume.description.current().weights;
    let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
    // Disks on one device share what is free there.
    let mut devices: HashMap<u64, (u64, u64)> = HashMap::new();
    for (disk, &weight) in volume.disks.iter().zip(weights) {
        if weight > 0 {
            let at = disk
                .check()
                .map_err(|cause| StoreError::io(path, 0, "find the disks of", cause))?;
            let (device, free) = crate::base::directory::device_of(&at)?;
            let entry = devices.entry(device).or_insert((free, 0));
            entry.1 += u64::from(weight);
        }
    }
    let room = devices.values().map(|&(free, weight)| {
        let room = u128::from(free) * u128::from(total) / u128::from(weight.max(1));
        u64::try_from(room).unwrap_or(u64::MAX)
    });
    let number = u64::from_le_bytes(volume.description.id[..8].try_into().unwrap_or_default());
    Ok(Some((number, room.min().unwrap_or(0))))
}
