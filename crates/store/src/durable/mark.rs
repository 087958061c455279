//! Which computation made an output, said by the output itself: an extended attribute that stays when it has its name.
//!
//! The journal of an output goes when all is published, so a process that is killed after that leaves nothing else to be
//! known by. The mark holds the key of the computation and the times, sizes and number of all files; whoever writes to one of
//! them, adds or removes one moves these, and then the output counts as another's. There is none where times tell nothing
//! (`tmpfs`), where files have parts elsewhere (volumes) and on file systems without such attributes.

use std::fs;
use std::path::Path;

use crc32c::crc32c;
use rustix::fs::{getxattr, setxattr, XattrFlags};

use super::rename::is_within;
use crate::backend::stamp::{in_memory, Stamp};
use crate::durable::journal::JournalKey;

const NAME: &str = "user.outcore.made";
const VERSION: u8 = 1;

/// What is there, by the metadata of every file.
#[derive(Default)]
struct Content {
    files: u64,
    bytes: u64,
    modified_ns: i128,
}

impl Content {
    fn add(&mut self, path: &Path) -> std::io::Result<()> {
        let found = fs::symlink_metadata(path)?;
        let stamp = Stamp::from(&found);
        self.modified_ns = self.modified_ns.max(stamp.modified_ns);
        if !found.is_dir() {
            self.files += 1;
            self.bytes += stamp.bytes;
            return Ok(());
        }
        for entry in fs::read_dir(path)? {
            self.add(&entry?.path())?;
        }
        Ok(())
    }
}

/// The mark of what is at `path`, made by the computation `key`.
fn mark_of(path: &Path, key: &JournalKey) -> Option<Vec<u8>> {
    if in_memory(path) || is_within(path) {
        return None;
    }
    let mut content = Content::default();
    content.add(path).ok()?;
    let mut mark = vec![VERSION];
    mark.extend(key);
    mark.extend(content.files.to_le_bytes());
    mark.extend(content.bytes.to_le_bytes());
    mark.extend(content.modified_ns.to_le_bytes());
    mark.extend(crc32c(&mark).to_le_bytes());
    Some(mark)
}

/// Marks a complete output, where that can be.
pub(crate) fn put(path: &Path, key: &JournalKey) {
    if let Some(mark) = mark_of(path, key) {
        let _ = setxattr(path, NAME, &mark, XattrFlags::empty());
    }
}

/// Whether this computation made what is at `path`, and nobody has written to it since.
pub fn is_made_by(path: &Path, key: &JournalKey) -> bool {
    let mut found = Vec::with_capacity(128);
    let is_read = getxattr(path, NAME, rustix::buffer::spare_capacity(&mut found)).is_ok();
    is_read && mark_of(path, key).is_some_and(|mark| mark == found)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const KEY: JournalKey = [7; 16];

    #[test]
    fn an_output_is_known_until_it_is_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.npy");
        let array = dir.path().join("x.zarr");
        fs::write(&file, "abc").unwrap();
        fs::create_dir_all(array.join("c/0")).unwrap();
        fs::write(array.join("c/0/0"), "abc").unwrap();
        for path in [&file, &array] {
            assert!(!is_made_by(path, &KEY));
            put(path, &KEY);
            if getxattr(path, NAME, &mut [0u8; 128][..]).is_err() {
                continue; // a file system without attributes
            }
            assert!(is_made_by(path, &KEY) && !is_made_by(path, &[8; 16]));
            let moved = path.with_extension(if path.is_dir() { "array" } else { "file" });
            fs::rename(path, &moved).unwrap();
            assert!(is_made_by(&moved, &KEY));
            let part = if moved.is_dir() {
                moved.join("c/0/0")
            } else {
                moved.clone()
            };
            let mut opened = fs::OpenOptions::new().append(true).open(part).unwrap();
            opened.write_all(b"d").unwrap();
            assert!(!is_made_by(&moved, &KEY));
        }
    }
}
