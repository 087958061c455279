//! Which chunks of an array there were when it was opened, and what their files were then.

use std::collections::hash_map::DefaultHasher;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use crate::array::source::Opening;
use crate::backend::stamp::Stamp;
use crate::{Reservation, StoreError};

/// A chunk's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ChunkRecord {
    /// The chunk's, in C order of the grid.
    pub number: u64,
    /// The two hashes of the file's stamp.
    written: u64,
    changed: u32,
    /// `LARGE` where the size is kept apart.
    bytes: u32,
}

const LARGE: u32 = u32::MAX;

/// The files of an array: one record for each that exists, so that a grid of any size costs nothing of itself.
///
/// Invariant: records ascend by number.
#[derive(Default)]
pub(super) struct Inventory {
    records: Vec<ChunkRecord>,
    large: BTreeMap<u64, u64>,
    /// Over all records.
    pub hash: u64,
    _granted: Vec<Reservation>,
}

/// Records in the making: listed with their inodes first, stamped then.
#[derive(Default)]
pub(super) struct ListedChunk {
    pub records: Vec<ChunkRecord>,
    large: BTreeMap<u64, u64>,
    granted: Vec<Reservation>,
}

/// Records that memory is asked for at a time.
const STEP: usize = (1 << 20) / size_of::<ChunkRecord>();
/// The number of a file that went away while it was listed.
const GONE: u64 = u64::MAX;

impl ChunkRecord {
    pub fn listed(number: u64, inode: u64) -> ChunkRecord {
        ChunkRecord {
            number,
            written: inode,
            changed: 0,
            bytes: 0,
        }
    }

    /// Of a record that is not stamped yet.
    pub fn inode(&self) -> u64 {
        self.written
    }

    /// What is different about a file; changes of status alone do not count from `since_ns` on.
    pub fn difference(&self, bytes: u64, now: Stamp, since_ns: i128) -> Option<String> {
        if now.bytes != bytes {
            return Some(format!("{bytes} bytes then, {} now", now.bytes));
        }
        let (written, changed) = now.hashes();
        let same = written == self.written && (changed == self.changed || now.changed_ns > since_ns);
        (!same).then(|| "modified or replaced".into())
    }
}

impl ListedChunk {
    pub fn add(&mut self, record: ChunkRecord, opening: &mut dyn Opening) -> Result<(), StoreError> {
        if self.records.len() == self.records.capacity() {
            // An array of a few chunks takes a few records.
            let more = self.records.len().clamp(4, STEP);
            let grant = opening.keep(more * size_of::<ChunkRecord>())?;
            self.granted.extend(grant);
            self.records.reserve_exact(more);
        }
        self.records.push(record);
        Ok(())
    }

    /// Sets what the file of record `at` is; nothing when it is gone.
    pub fn stamp(&mut self, at: usize, stamp: Option<Stamp>) {
        let record = &mut self.records[at];
        let Some(stamp) = stamp else {
            record.number = GONE;
            return;
        };
        (record.written, record.changed) = stamp.hashes();
        record.bytes = u32::try_from(stamp.bytes).unwrap_or(LARGE);
        if record.bytes == LARGE {
            self.large.insert(record.number, stamp.bytes);
        }
    }

    pub fn finish(self) -> Inventory {
        let ListedChunk {
            mut records,
            large,
            granted,
        } = self;
        records.retain(|record| record.number != GONE);
        records.sort_unstable_by_key(|record| record.number);
        records.shrink_to_fit();
        let mut hasher = DefaultHasher::new();
        records.hash(&mut hasher);
        large.hash(&mut hasher);
        Inventory {
            records,
            large,
            hash: hasher.finish(),
            _granted: granted,
        }
    }
}

impl Inventory {
    pub fn find(&self, number: u64) -> Option<&ChunkRecord> {
        let as_position = usize::try_from(number).ok().and_then(|at| self.records.get(at));
        if let Some(record) = as_position.filter(|record| record.number == number) {
            return Some(record);
        }
        let found = self.records.binary_search_by_key(&number, |record| record.number);
        found.ok().map(|at| &self.records[at])
    }

    /// Whether making it may have taken memory worth giving back.
    pub fn is_large(&self) -> bool {
        self.records.len() > 1 << 16
    }

    pub fn bytes(&self, record: &ChunkRecord) -> u64 {
        match record.bytes {
            LARGE => self.large.get(&record.number).copied().unwrap_or(u64::from(LARGE)),
            bytes => u64::from(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inventory(files: &[(u64, u64)]) -> Inventory {
        let mut listed = ListedChunk::default();
        for (at, &(number, bytes)) in files.iter().enumerate() {
            listed.records.push(ChunkRecord::listed(number, 1));
            listed.stamp(at, Some(Stamp::of_bytes(bytes)));
        }
        listed.finish()
    }

    #[test]
    fn chunks_are_found_by_number_in_dense_and_in_sparse_grids() {
        for numbers in [vec![0, 1, 2, 3], vec![1, 2], vec![7, 0, 1 << 60]] {
            let files: Vec<_> = numbers.iter().map(|&number| (number, number + 5)).collect();
            let made = inventory(&files);
            for number in 0..10 {
                let found = made.find(number).map(|record| made.bytes(record));
                assert_eq!(found, numbers.contains(&number).then_some(number + 5));
            }
        }
    }

    #[test]
    fn sizes_beyond_four_gigabytes_are_kept() {
        let sizes = [0, u64::from(LARGE) - 1, u64::from(LARGE), 1 << 40];
        let made = inventory(&[(0, sizes[0]), (1, sizes[1]), (2, sizes[2]), (3, sizes[3])]);
        assert_eq!([0, 1, 2, 3].map(|number| made.bytes(made.find(number).unwrap())), sizes);
    }

    #[test]
    fn a_file_that_is_gone_again_is_not_there() {
        let mut listed = ListedChunk::default();
        listed.records.push(ChunkRecord::listed(0, 1));
        listed.stamp(0, None);
        assert_eq!(listed.finish().find(0), None);
    }
}
