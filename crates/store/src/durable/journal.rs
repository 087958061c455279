//! What is durable of an output that may have to be gone on with: an append-only file of tiles and their checksums.
//!
//! A header of 64 bytes: mark, key (what is computed, in which tiles), a number drawn at random, checksum. Then a record of
//! 16 bytes for each tile: its number, the checksum of its bytes, and a checksum of the record, which takes in the random
//! number and the place: a record that is torn, flipped, moved or another journal's does not pass, and ends what is
//! believed. A tile is recorded when its bytes have been made durable.

use std::io::Read;
use std::path::Path;

use crc32c::{crc32c, crc32c_append};

use crate::base::directory::random;
use crate::io::{File, Mode};
use crate::{Io, StoreError};

const MARK: [u8; 16] = *b"outcore journal1";
pub(crate) const HEADER_BYTES: usize = 64;
pub(crate) const RECORD_BYTES: usize = 16;
/// A journal that says more is none of ours.
const BYTES_MAX: u64 = 1 << 30;

/// What was computed, in which tiles: equal keys go on with each other's work.
pub type JournalKey = [u8; 16];

/// A tile that is durable, and the checksum of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JournalRecord {
    pub tile: u64,
    pub checksum: u32,
}

pub(crate) struct Journal {
    file: File,
    nonce: u64,
    length: u64,
}

/// What a journal says, as far as it can be believed.
pub(crate) enum JournalContent {
    Nothing,
    /// It belongs to other work, or cannot be read.
    Other,
    Records(Journal, Vec<JournalRecord>),
}

fn header(key: &JournalKey, nonce: u64) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..16].copy_from_slice(&MARK);
    bytes[16..32].copy_from_slice(key);
    bytes[32..40].copy_from_slice(&nonce.to_le_bytes());
    let checksum = crc32c(&bytes[..60]);
    bytes[60..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

fn encode(record: JournalRecord, nonce: u64, place: u64) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    bytes[..8].copy_from_slice(&record.tile.to_le_bytes());
    bytes[8..12].copy_from_slice(&record.checksum.to_le_bytes());
    let seal = crc32c_append(crc32c(&nonce.to_le_bytes()), &place.to_le_bytes());
    let seal = crc32c_append(seal, &bytes[..12]);
    bytes[12..].copy_from_slice(&seal.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8], nonce: u64, place: u64) -> Option<JournalRecord> {
    let record = JournalRecord {
        tile: u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?),
        checksum: u32::from_le_bytes(bytes.get(8..12)?.try_into().ok()?),
    };
    (encode(record, nonce, place) == bytes).then_some(record)
}

impl Journal {
    /// Begins a journal, replacing what is at `path`.
    pub fn begin(path: &Path, key: &JournalKey, io: &Io) -> Result<Journal, StoreError> {
        let nonce = random();
        let file = io.open_plain(path, Mode::CreateUnaligned)?;
        io.write(&file, &header(key, nonce), 0)?;
        io.sync(&file)?;
        Ok(Journal {
            file,
            nonce,
            length: HEADER_BYTES as u64,
        })
    }

    /// The key of what a journal was begun for; nothing where there is none.
    pub fn key_at(path: &Path) -> Option<JournalKey> {
        let mut head = [0; HEADER_BYTES];
        std::fs::File::open(path).ok()?.read_exact(&mut head).ok()?;
        let key = head[16..32].try_into().ok()?;
        let nonce = u64::from_le_bytes(head[32..40].try_into().ok()?);
        (head == header(&key, nonce)).then_some(key)
    }

    /// Reads what a journal says. Untrusted: it may be anything.
    pub fn read(path: &Path, key: &JournalKey, io: &Io) -> Result<JournalContent, StoreError> {
        let text = match std::fs::metadata(path) {
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(JournalContent::Nothing),
            Ok(metadata) if metadata.is_file() && metadata.len() <= BYTES_MAX => std::fs::read(path),
            Ok(_) => return Ok(JournalContent::Other),
            Err(cause) => Err(cause),
        };
        let text = text.map_err(|cause| StoreError::io(path, 0, "read", cause))?;
        let nonce = text
            .get(32..40)
            .and_then(|bytes| bytes.try_into().ok())
            .map(u64::from_le_bytes);
        let Some(nonce) = nonce.filter(|&nonce| text.get(..HEADER_BYTES) == Some(&header(key, nonce)[..])) else {
            return Ok(JournalContent::Other);
        };
        let places = text[HEADER_BYTES..].chunks(RECORD_BYTES).zip(0..);
        let records: Vec<JournalRecord> = places.map_while(|(bytes, place)| decode(bytes, nonce, place)).collect();
        let length = (HEADER_BYTES + records.len() * RECORD_BYTES) as u64;
        let file = io.open_plain(path, Mode::ReopenUnaligned)?;
        file.set_len(length)?;
        let journal = Journal { file, nonce, length };
        Ok(JournalContent::Records(journal, records))
    }

    /// Appends records, durably.
    pub fn append(&mut self, records: &[JournalRecord], io: &Io) -> Result<(), StoreError> {
        if records.is_empty() {
            return Ok(());
        }
        let first = (self.length - HEADER_BYTES as u64) / RECORD_BYTES as u64;
        let bytes: Vec<u8> = records
            .iter()
            .zip(first..)
            .flat_map(|(&record, place)| encode(record, self.nonce, place))
            .collect();
        io.write(&self.file, &bytes, self.length)?;
        io.sync(&self.file)?;
        self.length += bytes.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: JournalKey = [7; 16];

    fn written(path: &Path, count: u64) -> Vec<JournalRecord> {
        let io = Io::buffered();
        let mut journal = Journal::begin(path, &KEY, &io).unwrap();
        let records: Vec<JournalRecord> = (0..count)
            .map(|tile| JournalRecord {
                tile,
                checksum: crc32c(&tile.to_le_bytes()),
            })
            .collect();
        journal.append(&records[..1], &io).unwrap();
        journal.append(&records[1..], &io).unwrap();
        records
    }

    fn believed(path: &Path, key: &JournalKey) -> Option<Vec<JournalRecord>> {
        match Journal::read(path, key, &Io::buffered()).unwrap() {
            JournalContent::Records(_, records) => Some(records),
            _ => None,
        }
    }

    #[test]
    fn what_was_recorded_is_believed_and_another_key_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        assert!(matches!(
            Journal::read(&path, &KEY, &Io::buffered()),
            Ok(JournalContent::Nothing)
        ));
        let records = written(&path, 5);
        assert_eq!(believed(&path, &KEY), Some(records));
        assert_eq!(believed(&path, &[8; 16]), None);
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let records = written(&path, 4);
        let whole = std::fs::read(&path).unwrap();
        for bit in 0..8 * whole.len() {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &bytes).unwrap();
            match (bit / 8).checked_sub(HEADER_BYTES) {
                Some(at) => assert_eq!(
                    believed(&path, &KEY).unwrap(),
                    records[..at / RECORD_BYTES],
                    "bit {bit}"
                ),
                // Bytes of the header that mean nothing are zero, and have to be.
                None => assert_eq!(believed(&path, &KEY), None, "bit {bit}"),
            }
        }
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let expected = length
                .checked_sub(HEADER_BYTES)
                .map(|rest| records[..rest / RECORD_BYTES].to_vec());
            assert_eq!(believed(&path, &KEY), expected, "{length} bytes");
        }
    }

    #[test]
    fn a_journal_goes_on_behind_its_last_whole_record() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let records = written(&path, 3);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 3]).unwrap();
        let JournalContent::Records(mut journal, found) = Journal::read(&path, &KEY, &Io::buffered()).unwrap() else {
            panic!("its header is whole")
        };
        assert_eq!(found, records[..2]);
        let next = JournalRecord { tile: 9, checksum: 1 };
        journal.append(&[next], &Io::buffered()).unwrap();
        assert_eq!(believed(&path, &KEY).unwrap(), [records[0], records[1], next]);
    }
}
