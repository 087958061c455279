//! Going through all files of a volume.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::description::{MEMBER_JSON, PARTS, VOLUME_JSON};
use super::disk::part_path;
use super::open::Volume;
use super::stub::{from_hex, Id, Stub};
use crate::StoreError;

/// What `check` found.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// Files whose bytes are on the disks, and how many bytes.
    pub files: u64,
    pub bytes: u64,
    /// Of them, those that lie as they did before disks were added or weights changed.
    pub older: u64,
    /// Files that cannot be read, and why.
    pub damaged: Vec<(PathBuf, String)>,
    /// Parts that belong to no file, and how many bytes they have.
    pub orphans: u64,
    pub orphan_bytes: u64,
    /// They are removed.
    pub repaired: bool,
}

/// Gives `each` the stubs below a volume's directory.
pub(super) fn stubs(
    home: &Path,
    each: &mut dyn FnMut(&Path, Stub) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut due = vec![home.to_path_buf()];
    while let Some(directory) = due.pop() {
        // What goes away while it is looked at belongs to whoever takes it away.
        let entries = match fs::read_dir(&directory) {
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound && directory != home => continue,
            entries => entries.map_err(|cause| StoreError::io(&directory, 0, "list", cause))?,
        };
        for entry in entries {
            let entry = entry.map_err(|cause| StoreError::io(&directory, 0, "list", cause))?;
            let path = entry.path();
            let error = |cause| StoreError::io(&path, 0, "look at", cause);
            let kind = entry.file_type().map_err(error)?;
            if kind.is_dir() {
                let other = path.join(MEMBER_JSON).exists() || path.join(VOLUME_JSON).exists();
                if !other {
                    due.push(path);
                }
            } else if kind.is_file() {
                let found = match fs::File::open(&path) {
                    Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => continue,
                    file => file.and_then(|file| Stub::of(&file)).map_err(error)?,
                };
                if let Some(stub) = found {
                    each(&path, stub)?;
                }
            }
        }
    }
    Ok(())
}

/// Looks whether every file of a volume has its parts, and every part its file. With `repair`, parts that have none are
/// removed. Costs a `stat` for each file and each part of it; no bytes of them are read.
///
/// # Errors
/// The directory is no volume, or cannot be listed; with `repair`, a disk is missing.
pub fn check(home: &Path, repair: bool) -> Result<Checked, StoreError> {
    let home = home
        .canonicalize()
        .map_err(|cause| StoreError::io(home, 0, "open", cause))?;
    let volume = Volume::load(&home, &[])?;
    let mut found = Checked::default();
    // Parts first: a file that is begun meanwhile has its stub before its parts.
    let mut parts: HashMap<Id, Vec<(PathBuf, u64)>> = HashMap::new();
    for disk in &volume.disks {
        match disk.check() {
            Ok(directory) => list_parts(&directory, &mut parts)?,
            Err(cause) if repair => return Err(StoreError::io(&home, 0, "repair", cause)),
            Err(_) => {}
        }
    }
    let mut owned = HashSet::new();
    stubs(&home, &mut |path, stub| {
        owned.insert(stub.file);
        found.files += 1;
        found.older += u64::from(stub.generation != volume.description.current().number);
        match state_of(&volume, path, &stub) {
            Ok(bytes) => found.bytes += bytes,
            Err(reason) => found.damaged.push((path.to_path_buf(), reason)),
        }
        Ok(())
    })?;
    parts.retain(|file, _| !owned.contains(file));
    if !parts.is_empty() {
        // A name may have moved from where it was not looked for yet to where it had been.
        stubs(&home, &mut |_, stub| {
            parts.remove(&stub.file);
            Ok(())
        })?;
    }
    for (path, bytes) in parts.into_values().flatten() {
        found.orphans += 1;
        found.orphan_bytes += bytes;
        if repair {
            fs::remove_file(&path).map_err(|cause| StoreError::io(&path, 0, "remove", cause))?;
        }
    }
    found.repaired = repair;
    Ok(found)
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
