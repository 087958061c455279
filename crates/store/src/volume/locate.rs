//! Finding volumes above paths, and disks whose mount points got other names.

use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::description::{member_at, Member, MEMBER_JSON, VOLUME_JSON};
use super::stub::Id;
use crate::StoreError;

/// Entries of one directory, and directories above a lost one, that are looked at.
const ENTRIES_MAX: usize = 512;
const LEVELS_MAX: usize = 4;

/// The volume that a path lies in: the directory nearest above it that is one. The path itself need not be there.
pub(crate) fn home_of(path: &Path) -> Option<PathBuf> {
    let real = path.canonicalize().or_else(|_| {
        let parent = crate::base::directory::parent_of(path).canonicalize()?;
        Ok::<_, std::io::Error>(parent.join(path.file_name().unwrap_or_default()))
    });
    home_above(&real.ok()?)
}

/// As `home_of`, for a path without links.
pub(crate) fn home_above(path: &Path) -> Option<PathBuf> {
    let mut above = path.ancestors();
    let found =
        above.find(|directory| fs::symlink_metadata(directory.join(VOLUME_JSON)).is_ok_and(|json| is_ours(&json)));
    found.map(Path::to_path_buf)
}

/// The real path of the volume that a caller names.
///
/// # Errors
/// It is not there, or is no volume.
pub(crate) fn home_named(home: &Path) -> std::result::Result<PathBuf, StoreError> {
    let real = home
        .canonicalize()
        .map_err(|cause| StoreError::io(home, 0, "open", cause))?;
    if fs::symlink_metadata(real.join(VOLUME_JSON)).is_ok() {
        return Ok(real);
    }
    let advice = match home_above(&real) {
        Some(above) => format!("name {}, in which it lies", above.display()),
        None => "`outcore volume create` makes one".to_string(),
    };
    Err(StoreError::Invalid(format!(
        "{}: is no volume, for it holds no {VOLUME_JSON}; {advice}",
        home.display()
    )))
}

/// Whether a description is one to follow: another user's in a shared directory would say where our bytes go.
fn is_ours(json: &fs::Metadata) -> bool {
    json.is_file() && (json.uid() == 0 || json.uid() == rustix::process::geteuid().as_raw())
}

/// Where a disk is: where it was, or beside that, or below another mount point, or in one of the directories to look in.
///
/// # Errors
/// `NotFound` where it is nowhere; what hinders a look at where it was; two directories say that they are it.
pub(crate) fn find(volume: &Id, member: &Member, further: &[PathBuf]) -> Result<PathBuf> {
    let wanted = Some((*volume, member.id));
    let hindered = match member_at(&member.path) {
        Ok(found) if found == wanted => return Ok(member.path.clone()),
        Ok(_) => None,
        // Elsewhere, too, nothing could be looked at.
        Err(cause) if is_exhausted(&cause) => return Err(cause),
        Err(cause) => Some(cause),
    };
    let told = further.iter().flat_map(|directory| {
        let below = entries(directory).into_iter();
        std::iter::once(directory.clone()).chain(below)
    });
    let mut places: Vec<(PathBuf, (u64, u64))> = Vec::new();
    for path in told.chain(renamed(&member.path)).chain(mounted(&member.path)) {
        let json = fs::symlink_metadata(path.join(MEMBER_JSON));
        if json.is_ok_and(|json| is_ours(&json)) && member_at(&path).is_ok_and(|found| found == wanted) {
            let there = fs::metadata(&path)?;
            let identity = (there.dev(), there.ino());
            if places.iter().all(|(_, other)| *other != identity) {
                places.push((std::path::absolute(&path).unwrap_or(path), identity));
            }
        }
    }
    match &places[..] {
        [] => Err(hindered.unwrap_or_else(gone)),
        [(path, _)] => Ok(path.clone()),
        [(one, _), (other, _), ..] => Err(Error::new(
            ErrorKind::InvalidData,
            format!(
                "{} and {} say both that they are this disk; take {MEMBER_JSON} out of the one that is a copy",
                one.display(),
                other.display()
            ),
        )),
    }
}

/// Whether a call failed for want of descriptors or memory, whatever it was about.
fn is_exhausted(cause: &Error) -> bool {
    matches!(
        Errno::from_io_error(cause),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM)
    )
}

fn gone() -> Error {
    Error::new(
        ErrorKind::NotFound,
        "this directory of the volume is gone, or is no part of it any more",
    )
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.take(ENTRIES_MAX).map(|entry| entry.path()).collect()
}

/// The path with one of its last directories called otherwise.
fn renamed(path: &Path) -> impl Iterator<Item = PathBuf> + '_ {
    path.ancestors().take(LEVELS_MAX).flat_map(move |above| {
        let tail = path.strip_prefix(above).unwrap_or(Path::new(""));
        let beside = above.parent().map(entries).unwrap_or_default();
        beside.into_iter().map(move |entry| join(&entry, tail))
    })
}

/// The ends of the path below each mount point.
fn mounted(path: &Path) -> impl Iterator<Item = PathBuf> + '_ {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let points: Vec<PathBuf> = table.lines().take(ENTRIES_MAX).filter_map(mount_point).collect();
    points.into_iter().flat_map(move |point| {
        path.ancestors().take(LEVELS_MAX).map(move |above| {
            let tail = path.strip_prefix(above).unwrap_or(Path::new(""));
            join(&point, tail)
        })
    })
}

/// An empty tail adds no slash.
fn join(path: &Path, tail: &Path) -> PathBuf {
    if tail.as_os_str().is_empty() {
        path.to_path_buf()
    } else {
        path.join(tail)
    }
}

/// The fifth field of a line of the table, in which spaces and the like are octal numbers.
fn mount_point(line: &str) -> Option<PathBuf> {
    let field = line.split(' ').nth(4)?;
    let codes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    let plain = codes
        .iter()
        .fold(field.to_string(), |text, (code, letter)| text.replace(code, letter));
    Some(PathBuf::from(plain))
}
