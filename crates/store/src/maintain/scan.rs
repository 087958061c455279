//! Going through all files of a volume.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::volume::assembled::Volume;
use crate::volume::description::{MEMBER_JSON, PARTS, VOLUME_JSON};
use crate::volume::disk::part_path;
use crate::volume::locate::home_named;
use crate::volume::open::COPIED;
use crate::volume::stub::{from_hex, Id, Stub};
use crate::StoreError;

/// What `check` found.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// Files whose bytes are on the disks, and how many bytes.
    pub files: u64,
    pub bytes: u64,
    /// Of them, those that lie as they did before disks were added or weights changed.
    pub older: u64,
    /// Files that cannot be read, or looked at, and disks that are missing, and why.
    pub damaged: Vec<(PathBuf, String)>,
    /// Parts that belong to no file, and how many bytes they have.
    pub orphans: u64,
    pub orphan_bytes: u64,
    /// Stubs that were copied, and are the names of their files now.
    pub adopted: u64,
    /// What could be repaired is: parts stay while there are files that cannot be looked at.
    pub repaired: bool,
}

/// A file that is a stub, or may be one.
pub(super) struct FoundStub<'a> {
    pub path: &'a Path,
    /// With what the system says of it; or why that is not known.
    pub stub: Result<(Stub, fs::Metadata), String>,
    /// It lies in another volume that is below this one.
    pub nested: bool,
}

/// Gives `each` the stubs below a volume's directory, and what cannot be looked at.
pub(super) fn stubs(home: &Path, each: &mut dyn FnMut(FoundStub<'_>)) -> Result<(), StoreError> {
    let mut due = vec![(home.to_path_buf(), false)];
    while let Some((directory, nested)) = due.pop() {
        let is_disk = directory.join(MEMBER_JSON).exists();
        let nested = nested || directory != home && directory.join(VOLUME_JSON).exists();
        // What goes away while it is looked at belongs to whoever takes it away.
        let entries = match fs::read_dir(&directory) {
            Err(cause) if directory == home => return Err(StoreError::io(&directory, 0, "list", cause)),
            Err(cause) => {
                give(&directory, nested, Err(cause), each);
                continue;
            }
            Ok(entries) => entries,
        };
        for entry in entries {
            let entry = entry.map_err(|cause| StoreError::io(&directory, 0, "list", cause))?;
            let path = entry.path();
            match entry.file_type() {
                Err(cause) => give(&path, nested, Err(cause), each),
                Ok(kind) if kind.is_dir() && !(is_disk && entry.file_name() == PARTS) => due.push((path, nested)),
                Ok(kind) if kind.is_file() => give(&path, nested, look(&path), each),
                Ok(_) => {}
            }
        }
    }
    Ok(())
}

fn look(path: &Path) -> std::io::Result<Option<(Stub, fs::Metadata)>> {
    let file = fs::File::open(path)?;
    let stub = Stub::of(&file)?;
    stub.map(|stub| Ok((stub, file.metadata()?))).transpose()
}

fn give(
    path: &Path,
    nested: bool,
    looked: std::io::Result<Option<(Stub, fs::Metadata)>>,
    each: &mut dyn FnMut(FoundStub<'_>),
) {
    let stub = match looked {
        Ok(None) => return,
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return,
        Ok(Some(found)) => Ok(found),
        Err(cause) => Err(format!("cannot be looked at: {cause}")),
    };
    each(FoundStub { path, stub, nested });
}

/// Looks whether every file of a volume has its parts, and every part its file. With `repair`, parts that have none are
/// removed, and stubs whose originals are gone become the names of their files: those of a home that was restored. Costs a
/// `stat` for each file and each part of it; no bytes of them are read.
///
/// # Errors
/// The directory is no volume, or cannot be listed; with `repair`, a disk is missing.
pub fn check(home: &Path, repair: bool) -> Result<Checked, StoreError> {
    let home = home_named(home)?;
    let volume = Volume::load(&home, &[])?;
    let mut found = Checked::default();
    // Parts first: a file that is begun meanwhile has its stub before its parts.
    let mut parts: HashMap<Id, Vec<(PathBuf, u64)>> = HashMap::new();
    for disk in &volume.disks {
        match disk.check() {
            Ok(directory) => list_parts(&directory, &mut parts)?,
            Err(cause) if repair => return Err(StoreError::io(&home, 0, "repair", cause)),
            Err(cause) => found.damaged.push((disk.path(), cause.to_string())),
        }
    }
    let mut seen = SeenParts::default();
    stubs(&home, &mut |file| seen.take(&volume, file, &mut found))?;
    seen.copies(&volume, repair, &mut found);
    parts.retain(|file, _| !seen.named.contains(file));
    if !parts.is_empty() {
        // A name may have moved from where it was not looked for yet to where it had been.
        stubs(&home, &mut |file| match file.stub {
            Ok((stub, _)) => drop(parts.remove(&stub.file)),
            Err(_) => seen.unknown = true,
        })?;
    }
    // What cannot be looked at may be the file of any part.
    found.repaired = repair && !seen.unknown;
    for (path, bytes) in parts.into_values().flatten() {
        found.orphans += 1;
        found.orphan_bytes += bytes;
        if found.repaired {
            fs::remove_file(&path).map_err(|cause| StoreError::io(&path, 0, "remove", cause))?;
        }
    }
    Ok(found)
}

/// What `check` met on its way.
#[derive(Default)]
pub(super) struct SeenParts {
    /// Files that any stub names, and those whose stub stands where it was written.
    named: HashSet<Id>,
    owned: HashSet<Id>,
    /// Stubs that stand elsewhere.
    copies: Vec<(PathBuf, Stub, fs::Metadata)>,
    /// There are files of which it is not known whether they are stubs, or whose.
    unknown: bool,
}

impl SeenParts {
    pub(super) fn take(&mut self, volume: &Volume, file: FoundStub<'_>, found: &mut Checked) {
        let (stub, metadata) = match file.stub {
            Ok(stub) => stub,
            Err(reason) => {
                self.unknown = true;
                return found.damaged.push((file.path.to_path_buf(), reason));
            }
        };
        let ours = stub.volume == volume.description.id;
        self.named.insert(stub.file);
        if file.nested {
            if ours {
                let reason = "lies in another volume below this one, and cannot be read there";
                found.damaged.push((file.path.to_path_buf(), reason.into()));
            }
        } else if ours && !stub.is_in(&metadata) {
            self.copies.push((file.path.to_path_buf(), stub, metadata));
        } else {
            self.owned.insert(stub.file);
            count(volume, file.path, &stub, found);
        }
    }

    /// Copied stubs are damaged; with `repair`, one that is the only name of its file is adopted.
    fn copies(&self, volume: &Volume, repair: bool, found: &mut Checked) {
        let mut inodes: HashMap<Id, HashSet<u64>> = HashMap::new();
        for (_, stub, metadata) in &self.copies {
            inodes.entry(stub.file).or_default().insert(metadata.ino());
        }
        for (path, stub, metadata) in &self.copies {
            let alone = !self.owned.contains(&stub.file) && inodes[&stub.file].len() == 1;
            let adopted = match (repair && alone && !self.unknown).then(|| adopt(path, stub, metadata)) {
                None => Err(COPIED.to_string()),
                Some(adopted) => adopted.map_err(|cause| cause.to_string()),
            };
            match adopted {
                Ok(()) => {
                    found.adopted += 1;
                    count(volume, path, stub, found);
                }
                Err(reason) => found.damaged.push((path.clone(), reason)),
            }
        }
    }
}

fn count(volume: &Volume, path: &Path, stub: &Stub, found: &mut Checked) {
    match state_of(volume, path, stub) {
        Ok(bytes) => found.bytes += bytes,
        Err(reason) => {
            let stands = look(path).is_ok_and(|now| now.is_some_and(|(now, _)| now == *stub));
            if !stands {
                // Removed or replaced meanwhile: names go before parts.
                return;
            }
            found.damaged.push((path.to_path_buf(), reason));
        }
    }
    found.files += 1;
    found.older += u64::from(stub.generation != volume.description.current().number);
}

/// Makes a copied stub the name of its file. It was written to when it was.
fn adopt(path: &Path, stub: &Stub, metadata: &fs::Metadata) -> std::io::Result<()> {
    let file = fs::OpenOptions::new().write(true).open(path)?;
    let inode = metadata.ino();
    file.write_all_at(&Stub { inode, ..*stub }.bytes(), 0)?;
    file.set_times(fs::FileTimes::new().set_modified(metadata.modified()?))?;
    file.sync_all()
}

fn list_parts(directory: &Path, parts: &mut HashMap<Id, Vec<(PathBuf, u64)>>) -> Result<(), StoreError> {
    let directory = directory.join(PARTS);
    let error = |cause| StoreError::io(&directory, 0, "list", cause);
    for entry in fs::read_dir(&directory).map_err(error)? {
        let entry = entry.map_err(error)?;
        if let Some(file) = entry.file_name().to_str().and_then(from_hex) {
            let bytes = entry.metadata().map_or(0, |found| found.len());
            parts.entry(file).or_default().push((entry.path(), bytes));
        }
    }
    Ok(())
}

/// The length of a file whose parts are all there.
fn state_of(volume: &Volume, path: &Path, stub: &Stub) -> Result<u64, String> {
    let map = volume.map(stub).map_err(|cause| cause.to_string())?;
    let bytes = fs::metadata(path).map_err(|cause| cause.to_string())?.len();
    for (disk, length) in volume.disks.iter().zip(map.part_lengths(bytes)) {
        if length > 0 {
            let directory = disk.check().map_err(|cause| cause.to_string())?;
            let part = part_path(&directory, &stub.file);
            let there = fs::metadata(&part).map_err(|cause| format!("{}: {cause}", part.display()))?;
            if there.len() < length {
                let there = there.len();
                return Err(format!("{}: {there} bytes where {length} belong to it", part.display()));
            }
        }
    }
    Ok(bytes)
}
