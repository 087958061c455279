//! Making volumes, changing what they are made of, and saying what that is.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustix::fs::{flock, FlockOperation};

use super::scan::stubs;
use crate::volume::description::{
    member_text, write_whole, Description, Generation, Member, MEMBERS_MAX, MEMBER_JSON, PARTS, VOLUME_JSON, WEIGHT_MAX,
};
use crate::volume::layout::BlockLayout;
use crate::volume::locate::{find, home_above, home_named};
use crate::volume::stub::{hex, new_id, Id};
use crate::StoreError;

/// A disk as `info` tells of it.
#[derive(Clone, Debug)]
pub struct MemberInfo {
    pub id: String,
    /// Where it is, or was last.
    pub path: PathBuf,
    /// Where the description says that it is, if that is elsewhere.
    pub recorded: Option<PathBuf>,
    pub found: bool,
    /// Why it was not found, where it is not just gone.
    pub reason: Option<String>,
    pub weight: u32,
    /// Bytes of its parts, as long as they are, and bytes free beside them.
    pub bytes: u64,
    pub free_bytes: u64,
}

#[derive(Clone, Debug)]
pub struct VolumeInfo {
    pub home: PathBuf,
    pub id: String,
    pub layout: BlockLayout,
    pub block_bytes: u64,
    pub generation: u32,
    pub members: Vec<MemberInfo>,
}

fn invalid(reason: impl Into<String>) -> StoreError {
    StoreError::Invalid(reason.into())
}

fn absolute(path: &Path) -> Result<PathBuf, StoreError> {
    let absolute = path.canonicalize();
    let absolute = absolute.map_err(|cause| StoreError::io(path, 0, "find", cause))?;
    match absolute.to_str() {
        Some(_) => Ok(absolute),
        None => Err(invalid(format!("{}: the path is no Unicode text", path.display()))),
    }
}

/// Refuses a directory, there or not yet, that lies in a volume: its files would be in two.
fn refuse_within(directory: &Path) -> Result<(), StoreError> {
    let absolute = std::path::absolute(directory).map_err(|cause| StoreError::io(directory, 0, "find", cause))?;
    let home = absolute.ancestors().find_map(|above| above.canonicalize().ok());
    match home.and_then(|there| home_above(&there)) {
        Some(home) => {
            let (directory, home) = (directory.display(), home.display());
            Err(invalid(format!("{directory}: lies in the volume {home}")))
        }
        None => Ok(()),
    }
}

/// What has been made of a volume so far.
#[derive(Default)]
struct MadeMembers {
    /// Directories that were not there, those above before those in them.
    directories: Vec<PathBuf>,
    members: Vec<Member>,
}

impl MadeMembers {
    /// Makes a directory and those above it, where they are not there.
    fn directory(&mut self, directory: &Path) -> Result<(), StoreError> {
        let error = |cause| StoreError::io(directory, 0, "create", cause);
        let absolute = std::path::absolute(directory).map_err(error)?;
        let missing: Vec<_> = absolute.ancestors().take_while(|above| !above.exists()).collect();
        for above in missing.into_iter().rev() {
            if fs::create_dir(above).is_ok() {
                self.directories.push(above.to_path_buf());
            }
        }
        fs::create_dir_all(directory).map_err(error)
    }

    /// Makes a directory, there or not yet, a disk of a volume.
    fn disk(&mut self, volume: &Id, directory: &Path) -> Result<(), StoreError> {
        refuse_within(directory)?;
        self.directory(directory)?;
        let path = absolute(directory)?;
        let parts = path.join(PARTS);
        if path.join(MEMBER_JSON).exists() || parts.exists() {
            return Err(invalid(format!("{}: is a disk of a volume already", path.display())));
        }
        fs::create_dir(&parts).map_err(|cause| StoreError::io(&parts, 0, "create", cause))?;
        let id = new_id();
        let json = path.join(MEMBER_JSON);
        self.members.push(Member { id, path });
        write_whole(&json, &member_text(volume, &id)).map_err(|cause| StoreError::io(&json, 0, "write", cause))
    }

    /// Whether the description in `home` names these disks: it may even where its writing failed at the end.
    fn is_named(&self, home: &Path) -> bool {
        let ours = |member: &Member| self.members.iter().any(|made| made.id == member.id);
        Description::read(home).is_ok_and(|found| found.members.iter().any(ours))
    }

    /// Removes it: what is in the directories otherwise stays.
    fn undo(&self) {
        dismiss(&self.members);
        for directory in self.directories.iter().rev() {
            let _ = fs::remove_dir(directory);
        }
    }
}

/// Makes directories disks no more: what is in them otherwise stays.
fn dismiss(members: &[Member]) {
    for member in members {
        let _ = fs::remove_file(member.path.join(MEMBER_JSON));
        let _ = fs::remove_dir(member.path.join(PARTS));
    }
}

fn check_weight(weight: u32) -> Result<(), StoreError> {
    match weight {
        0..=WEIGHT_MAX => Ok(()),
        _ => Err(invalid(format!("a weight of {weight}; weights go up to {WEIGHT_MAX}"))),
    }
}

/// Makes `home` a volume over these directories, each with its weight. All are made where they are not there.
///
/// # Errors
/// A directory belongs to a volume already, or lies in one; what is wrong with the layout; what the file system reports. Nothing is a
/// volume then, and directories that were not there before are not there.
pub fn create(
    home: &Path,
    members: &[(PathBuf, u32)],
    layout: BlockLayout,
    block_bytes: u64,
) -> Result<(), StoreError> {
    if !(1..=MEMBERS_MAX).contains(&members.len()) {
        return Err(invalid(format!(
            "a volume over {} directories; 1 to {MEMBERS_MAX} are possible",
            members.len()
        )));
    }
    let weights: Vec<u32> = members.iter().map(|(_, weight)| *weight).collect();
    let generation = Generation::new(1, layout, block_bytes, weights).map_err(invalid)?;
    if !home.join(VOLUME_JSON).exists() {
        refuse_within(home)?;
    }
    let mut made = MadeMembers::default();
    let outcome = create_in(home, members, generation, &mut made);
    outcome.inspect_err(|_| {
        if made.is_named(home) {
            let _ = fs::remove_file(home.join(VOLUME_JSON));
        }
        made.undo();
    })
}

fn create_in(
    home: &Path,
    members: &[(PathBuf, u32)],
    generation: Generation,
    made: &mut MadeMembers,
) -> Result<(), StoreError> {
    made.directory(home)?;
    let home = absolute(home)?;
    if home.join(VOLUME_JSON).exists() {
        return Err(invalid(format!("{}: is a volume already", home.display())));
    }
    let id = new_id();
    for (directory, _) in members {
        made.disk(&id, directory)?;
    }
    let description = Description {
        id,
        members: made.members.clone(),
        generations: vec![generation],
    };
    description.write(&home)
}

/// Reads, changes and replaces the description of a volume, one process after the other.
fn change<T>(home: &Path, change: impl FnOnce(&mut Description) -> Result<T, StoreError>) -> Result<T, StoreError> {
    let error = |cause| StoreError::io(home, 0, "lock", cause);
    let home = &home_named(home)?;
    let lock = fs::File::open(home).map_err(error)?;
    flock(&lock, FlockOperation::LockExclusive).map_err(|cause| error(cause.into()))?;
    let mut description = Description::read(home)?;
    let outcome = change(&mut description)?;
    description.write(home)?;
    Ok(outcome)
}

/// Adds a directory to a volume. New files use it; `rebalance` moves the others.
///
/// # Errors
/// As for `create`.
pub fn add(home: &Path, directory: &Path, weight: u32) -> Result<(), StoreError> {
    check_weight(weight)?;
    let mut made = MadeMembers::default();
    let outcome = change(home, |description| {
        if description.members.len() >= MEMBERS_MAX {
            return Err(invalid(format!("a volume is over {MEMBERS_MAX} directories at most")));
        }
        let Generation {
            layout,
            block_bytes,
            ref weights,
            ..
        } = *description.current();
        let mut weights = weights.clone();
        weights.resize(description.members.len(), 0);
        weights.push(weight);
        made.disk(&description.id, directory)?;
        description.members.extend_from_slice(&made.members);
        description.begin(layout, block_bytes, weights).map_err(invalid)
    });
    outcome.inspect_err(|_| {
        if !made.is_named(home) {
            made.undo();
        }
    })
}

/// Gives disks, named by their directories or identifiers, other weights. One of weight 0 gets nothing new.
///
/// # Errors
/// There is no such disk; what is wrong with the weights.
pub fn set_weights(home: &Path, weights: &[(String, u32)]) -> Result<(), StoreError> {
    change(home, |description| {
        let current = description.current();
        let (layout, block_bytes) = (current.layout, current.block_bytes);
        let mut new = current.weights.clone();
        new.resize(description.members.len(), 0);
        for (name, weight) in weights {
            check_weight(*weight)?;
            new[number_of(home, description, name)?] = *weight;
        }
        description.begin(layout, block_bytes, new).map_err(invalid)
    })
}

/// The disk of this directory, which may be gone, or of this identifier.
fn number_of(home: &Path, description: &Description, name: &str) -> Result<usize, StoreError> {
    let path = Path::new(name);
    let there = path.canonicalize().or_else(|_| std::path::absolute(path));
    let there = there.unwrap_or_else(|_| path.to_path_buf());
    let is_it = |member: &Member| hex(&member.id) == name || member.path == there;
    let number = description.members.iter().position(is_it);
    number.ok_or_else(|| invalid(format!("{name}: is no disk of the volume {}", home.display())))
}

/// Takes a disk out of a volume that has no bytes of any file: after its weight became 0 and `rebalance`. It may be gone.
/// Costs a look at the stub of every file. Files that are open, and were made before its weight became 0, must not be
/// written to for the first time after this.
///
/// # Errors
/// There is no such disk; new files are laid out on it, a file is, or something cannot be looked at; parts are on it.
pub fn remove(home: &Path, disk: &str) -> Result<(), StoreError> {
    let gone = change(home, |description| {
        let number = number_of(home, description, disk)?;
        let weighs = |one: &Generation| one.weights.get(number).is_some_and(|&weight| weight > 0);
        let refused = |reason: String| Err(invalid(format!("{disk}: cannot be removed: {reason}")));
        if weighs(description.current()) {
            return refused("new files are laid out on it; `outcore volume rebalance` gives it the weight 0".into());
        }
        let mut used = None;
        stubs(home, &mut |file| {
            let held = match &file.stub {
                Ok((stub, _)) if stub.volume != description.id => None,
                Ok((stub, _)) => match description.generation(stub.generation) {
                    Some(one) if !weighs(one) => None,
                    _ => Some("is laid out on it; `outcore volume rebalance` moves it".to_string()),
                },
                Err(reason) => Some(reason.clone()),
            };
            used = used
                .take()
                .or(held.map(|held| format!("{} {held}", file.path.display())));
        })?;
        if let Some(used) = used {
            return refused(used);
        }
        let member = &description.members[number];
        let place = match find(&description.id, member, &[]) {
            Ok(path) if has_parts(&path)? => {
                return refused("it has parts; `outcore volume check --repair` removes those without a file".into());
            }
            Ok(path) => Some(path),
            Err(cause) if cause.kind() == ErrorKind::NotFound => None,
            Err(cause) => return Err(StoreError::io(&member.path, 0, "find", cause)),
        };
        let gone = description.members.remove(number);
        // Layouts that no file has.
        description.generations.retain(|one| !weighs(one));
        for one in &mut description.generations {
            let mut weights = one.weights.clone();
            if number < weights.len() {
                weights.remove(number);
            }
            *one = Generation::new(one.number, one.layout, one.block_bytes, weights).map_err(invalid)?;
        }
        Ok(place.map(|path| Member { path, ..gone }))
    })?;
    dismiss(gone.as_slice());
    Ok(())
}

/// Writes down where the disks are now, looked for in `further` directories, too.
///
/// # Errors
/// What the file system reports.
pub fn record_places(home: &Path, further: &[PathBuf]) -> Result<(), StoreError> {
    change(home, |description| {
        let id = description.id;
        for member in &mut description.members {
            match find(&id, member, further) {
                Ok(path) => member.path = absolute(&path)?,
                Err(cause) if cause.kind() == ErrorKind::NotFound => {}
                Err(cause) => return Err(StoreError::io(&member.path, 0, "find", cause)),
            }
        }
        Ok(())
    })
}

/// What a volume is made of. Disks are looked for in `further` directories, too.
///
/// # Errors
/// The directory is no volume; what the file system reports.
pub fn info(home: &Path, further: &[PathBuf]) -> Result<VolumeInfo, StoreError> {
    let description = Description::read(&home_named(home)?)?;
    let current = description.current();
    let mut members = Vec::new();
    for (number, member) in description.members.iter().enumerate() {
        let looked = find(&description.id, member, further);
        let reason = match &looked {
            Err(cause) if cause.kind() != ErrorKind::NotFound => Some(cause.to_string()),
            _ => None,
        };
        let place = looked.ok();
        let (bytes, free_bytes) = match &place {
            Some(path) => (parts_bytes(path)?, crate::base::directory::device_of(path)?.1),
            None => (0, 0),
        };
        members.push(MemberInfo {
            id: hex(&member.id),
            found: place.is_some(),
            reason,
            recorded: place
                .as_ref()
                .filter(|place| **place != member.path)
                .map(|_| member.path.clone()),
            path: place.unwrap_or_else(|| member.path.clone()),
            weight: current.weights.get(number).copied().unwrap_or(0),
            bytes,
            free_bytes,
        });
    }
    Ok(VolumeInfo {
        home: home.to_path_buf(),
        id: hex(&description.id),
        layout: current.layout,
        block_bytes: current.block_bytes,
        generation: current.number,
        members,
    })
}

fn has_parts(directory: &Path) -> Result<bool, StoreError> {
    let parts = directory.join(PARTS);
    let mut entries = fs::read_dir(&parts).map_err(|cause| StoreError::io(&parts, 0, "list", cause))?;
    Ok(entries.next().is_some())
}

fn parts_bytes(directory: &Path) -> Result<u64, StoreError> {
    let parts = directory.join(PARTS);
    let error = |cause| StoreError::io(&parts, 0, "list", cause);
    let mut bytes = 0;
    for entry in fs::read_dir(&parts).map_err(error)? {
        // One that is removed meanwhile counts no more.
        bytes += entry.map_err(error)?.metadata().map_or(0, |found| found.len());
    }
    Ok(bytes)
}
