//! Changes of files, which new checksums cover up.
#![allow(clippy::unwrap_used)] // who runs it sees where it fails

#[path = "../src/base/checksum.rs"]
mod checksum;

use checksum::lookup3;

/// The longest block whose checksum is looked for.
const BLOCK_BYTES: usize = 6000;
const SIGNATURES: [&[u8; 4]; 15] = [
    b"OHDR", b"OCHK", b"BTHD", b"BTIN", b"BTLF", b"FRHP", b"FHIB", b"FAHD", b"FADB", b"EAHD", b"EAIB", b"EASB",
    b"EADB", b"SMTB", b"\x89HDF",
];

/// A block and the place of its checksum. A direct block of a heap has it in the midst, and counts it as zeros.
pub struct CheckedBlock {
    start: usize,
    end: usize,
    at: usize,
}

/// The blocks of a file that end with their checksum, and direct blocks of heaps.
pub fn checked_blocks(bytes: &[u8]) -> Vec<CheckedBlock> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let mut blocks = Vec::new();
    for start in 0..bytes.len().saturating_sub(4) {
        let signature = &bytes[start..start + 4];
        if SIGNATURES.iter().any(|own| *own == signature) {
            let last = bytes.len().saturating_sub(4).min(start + BLOCK_BYTES);
            let at = (start + 8..=last).find(|at| lookup3(&bytes[start..*at]) == word(*at));
            blocks.extend(at.map(|at| CheckedBlock { start, end: at, at }));
        } else if signature == b"FHDB" {
            let sizes = (9..17)
                .map(|power| start + (1 << power))
                .filter(|end| *end <= bytes.len());
            let mut places = sizes.flat_map(|end| (start + 9..start + 22).map(move |at| (end, at)));
            let fits = |(end, at): &(usize, usize)| {
                let mut block = bytes[start..*end].to_vec();
                block[at - start..at - start + 4].fill(0);
                lookup3(&block) == word(*at)
            };
            blocks.extend(places.find(fits).map(|(end, at)| CheckedBlock { start, end, at }));
        }
    }
    blocks
}

/// A generator of numbers, the same in every run (Marsaglia, "Xorshift RNGs", 2003).
pub struct Numbers(pub u64);

impl Numbers {
    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }

    /// Changes a few bytes, within blocks with checksums where `blocks` are to be covered up.
    pub fn change(&mut self, bytes: &mut [u8], blocks: &[CheckedBlock]) {
        for _ in 0..1 + self.below(4) {
            let block = blocks.get(self.below(blocks.len()));
            let (start, end) = block.map_or((0, bytes.len()), |block| (block.start + 4, block.end));
            let at = start + self.below(end - start);
            let end = bytes.len();
            match self.below(6) {
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes[at] = 0xff,
                2 => bytes[at] = bytes[at].wrapping_add(1),
                3 => bytes[at..end.min(at + 8)].fill(0xff),
                4 => bytes[at] = self.below(256) as u8,
                _ => {
                    // Eight bytes from elsewhere: addresses of other blocks, for the most part.
                    let from = self.below(end - 8);
                    let count = 8.min(end - at);
                    bytes.copy_within(from..from + count, at);
                }
            }
            if let Some(block) = block {
                if block.at < block.end {
                    bytes[block.at..block.at + 4].fill(0);
                }
                let sum = lookup3(&bytes[block.start..block.end]);
                bytes[block.at..block.at + 4].copy_from_slice(&sum.to_le_bytes());
            }
        }
    }
}
