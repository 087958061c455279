//! What the tiles of an output are known by when it has its name: a file of checksums beside it, for who goes on with it.
//!
//! **Invariant.** An output in a folder of stages has its sums, durable, before it has its name. So what is there without
//! them, or with others, is not what was written, and is made again.
//!
//! Of an output `<name>` they are `<name>.sums`: mark, number of axes, length and tile of each, the checksum of its first
//! page (8 bytes), tiles, the checksum of each in their order, and that of all before it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crc32c::{crc32c, crc32c_append};

use crate::array::region::region_of;
use crate::base::page::PAGE;
use crate::base::words::{u32_at, u64_at};
use crate::durable::stages::is_of_stages;
use crate::formats::npy::first_page;
use crate::memory::mapping::AlignedBuffer;
use crate::registry::open::open;
use crate::{Io, StoreError};

const MARK: &[u8; 8] = b"OCSUMS01";
/// Sums that say more are none of ours.
const BYTES_MAX: u64 = 1 << 30;
const AXES_MAX: u64 = 64;

fn sums_of(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_os_string();
    name.push(".sums");
    name.into()
}

/// Whether sums are kept of an output: it is one of a folder of stages, where nobody else looks.
pub(crate) fn has_sums(target: &Path) -> bool {
    let folder = target.parent().and_then(Path::file_name).unwrap_or(OsStr::new(""));
    is_of_stages(folder.as_bytes())
}

/// Writes the sums of an output: lengths and tile, the checksum of its first page, and those of all tiles in their order.
pub(crate) fn keep_sums(
    target: &Path,
    (shape, tile): (&[u64], &[u64]),
    head: u32,
    checksums: &[u32],
) -> Result<(), StoreError> {
    let mut bytes = MARK.to_vec();
    bytes.extend((shape.len() as u64).to_le_bytes());
    for word in shape.iter().chain(tile) {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(u64::from(head).to_le_bytes());
    bytes.extend((checksums.len() as u64).to_le_bytes());
    bytes.extend(checksums.iter().flat_map(|checksum| checksum.to_le_bytes()));
    bytes.extend(crc32c(&bytes).to_le_bytes());
    let path = sums_of(target);
    let write = || {
        fs::write(&path, &bytes)?;
        fs::File::open(&path)?.sync_all()
    };
    write().map_err(|cause| StoreError::io(&path, 0, "write", cause))
}

/// What sums say.
struct Said {
    shape: Vec<u64>,
    tile: Vec<u64>,
    head: u64,
    checksums: Vec<u32>,
}

/// Sums as they lie in a file, read without trust.
fn parse(bytes: &[u8]) -> Option<Said> {
    let (said, own) = bytes.split_at_checked(bytes.len().checked_sub(4)?)?;
    let axes =
        (said.len() >= 16 && said.starts_with(MARK) && crc32c(said) == u32_at(own, 0)).then(|| u64_at(said, 8))?;
    let counted_at = 16 * (1 + usize::try_from(axes).ok().filter(|axes| *axes as u64 <= AXES_MAX)?);
    let rest = said.get(counted_at + 16..)?;
    let words = |begin: usize| (0..axes as usize).map(move |at| u64_at(said, begin + 8 * at)).collect();
    let checksums: Vec<u32> = rest.chunks_exact(4).map(|word| u32_at(word, 0)).collect();
    let is_whole = u64_at(said, counted_at + 8) == checksums.len() as u64 && rest.len() == 4 * checksums.len();
    is_whole.then(|| Said {
        shape: words(16),
        tile: words(16 + 8 * axes as usize),
        head: u64_at(said, counted_at),
        checksums,
    })
}

/// Whether the array at `path` is what was written there: all of its tiles are read and held against its sums.
pub fn agrees_with_sums(path: &Path, io: &Io) -> bool {
    let sums = sums_of(path);
    let is_small = fs::metadata(&sums).is_ok_and(|found| found.is_file() && found.len() <= BYTES_MAX);
    let said = is_small.then(|| fs::read(&sums).ok()).flatten();
    said.and_then(|bytes| parse(&bytes))
        .is_some_and(|said| agrees(path, said, io).unwrap_or(false))
}

fn agrees(path: &Path, said: Said, io: &Io) -> Result<bool, StoreError> {
    let Said {
        shape,
        tile,
        checksums,
        head,
    } = said;
    if u64::from(crc32c(&first_page(path, io)?)) != head {
        return Ok(false);
    }
    let array = open(path, io)?.source;
    let tiles = shape.iter().zip(&tile).try_fold(1u64, |tiles, (length, tile)| {
        tiles.checked_mul(length.checked_div(*tile)? + u64::from(length % tile > 0))
    });
    if array.shape() != shape || tiles != Some(checksums.len() as u64) {
        return Ok(false);
    }
    for (index, checksum) in checksums.iter().enumerate() {
        let Some(region) = region_of(&shape, &tile, index as u64) else {
            return Ok(false);
        };
        let cost = array.cost(&region, io)?;
        let memory = AlignedBuffer::new(cost.frame_bytes.max(1).next_multiple_of(PAGE));
        let mut frame = memory.map_err(|cause| StoreError::io(path, 0, "map memory", cause))?;
        let offset = array.read(&region, &mut frame, io)?;
        let bytes = region.elements() as usize * array.dtype().size();
        if crc32c(&frame[offset..offset + bytes]) != *checksum {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The checksum of bytes behind others, whose checksum is `before`: 0 where there are none.
pub fn checksum_behind(before: u32, bytes: &[u8]) -> u32 {
    crc32c_append(before, bytes)
}

/// Removes an output of a folder of stages with its sums.
pub fn remove_with_sums(path: &Path) {
    // Who cannot remove it cannot replace it either, and says so.
    let _ = fs::remove_file(path);
    let _ = fs::remove_file(sums_of(path));
}

#[cfg(test)]
mod tests {
    use outcore_dtype::DType;

    use super::*;
    use crate::formats::npy::header_page;

    fn written(dir: &Path) -> PathBuf {
        let folder = dir.join("outcore-resume-x");
        fs::create_dir(&folder).unwrap();
        let path = folder.join("a.npy");
        let mut bytes = header_page(&[10], DType::U32);
        let values: Vec<u8> = (0..10u32).flat_map(|value| (value * 7).to_le_bytes()).collect();
        bytes.extend(&values);
        fs::write(&path, &bytes).unwrap();
        let sums: Vec<u32> = values.chunks(16).map(crc32c).collect();
        keep_sums(&path, (&[10], &[4]), crc32c(&bytes[..PAGE]), &sums).unwrap();
        path
    }

    #[test]
    fn what_was_written_agrees_and_every_flipped_bit_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, io) = (written(dir.path()), Io::buffered());
        assert!(agrees_with_sums(&path, &io));
        for (file, begin) in [(path.clone(), PAGE - 8), (path.clone(), 0), (sums_of(&path), 0)] {
            let whole = fs::read(&file).unwrap();
            for bit in 8 * begin..8 * whole.len().min(begin + 128) {
                let mut bytes = whole.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                fs::write(&file, &bytes).unwrap();
                assert!(!agrees_with_sums(&path, &io), "bit {bit} of {}", file.display());
            }
            for length in (0..whole.len()).rev().take(100) {
                fs::write(&file, &whole[..length]).unwrap();
                assert!(!agrees_with_sums(&path, &io), "{length} bytes of {}", file.display());
            }
            fs::write(&file, &whole).unwrap();
        }
        assert!(agrees_with_sums(&path, &io));
        remove_with_sums(&path);
        assert!(!path.exists() && !sums_of(&path).exists());
    }

    #[test]
    fn files_beside_others_of_the_user_have_none() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!has_sums(&dir.path().join("a.npy")));
        assert!(has_sums(&dir.path().join("outcore-resume-x").join("a.npy")));
    }
}
