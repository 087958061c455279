//! Which disk holds which block of a logical file.
//!
//! Blocks come in rounds. A round gives each disk as many blocks as its weight says, and the layout says in which order.
//! The blocks of a disk lie in its part of the file in the order of the file: the n-th of them is the part's n-th.

use std::sync::Arc;

/// Blocks of a round at most: what finding the place of one block may cost.
pub(crate) const ROUND_MAX: u64 = 4096;
/// Bytes of a block at least, and what they are a multiple of.
pub(crate) const BLOCK_BYTES_MIN: u64 = 4096;
pub(crate) const BLOCK_BYTES_MAX: u64 = 1 << 30;
/// 2⁶⁴ over the golden ratio: multiples of it fall evenly, and so do multiples of its multiples (Knuth, TAOCP 3, 6.4).
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The order of the disks within a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockLayout {
    /// The same in every round.
    Striped,
    /// The same, begun elsewhere in every round: no stride through the file meets one disk alone.
    Rotated,
    /// Another in every round, by a hash.
    Hashed,
}

impl BlockLayout {
    pub const ALL: [BlockLayout; 3] = [BlockLayout::Striped, BlockLayout::Rotated, BlockLayout::Hashed];

    pub fn name(self) -> &'static str {
        match self {
            BlockLayout::Striped => "striped",
            BlockLayout::Rotated => "rotated",
            BlockLayout::Hashed => "hashed",
        }
    }

    pub fn from_name(name: &str) -> Option<BlockLayout> {
        BlockLayout::ALL.into_iter().find(|layout| layout.name() == name)
    }
}

/// The rounds of one generation of a volume: disks by number, as often in a round as they weigh.
#[derive(Debug)]
pub(crate) struct Rounds {
    layout: BlockLayout,
    block: u64,
    disks: usize,
    /// The disk of each place, those of one disk far from one another.
    places: Vec<u16>,
    /// How often each disk comes.
    weights: Vec<u64>,
}

impl Rounds {
    /// # Errors
    /// What is wrong with the block size or the weights.
    pub(crate) fn new(layout: BlockLayout, block: u64, weights: &[u32]) -> Result<Rounds, String> {
        if !(BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&block) || !block.is_multiple_of(BLOCK_BYTES_MIN) {
            return Err(format!(
                "blocks of {block} bytes; they are a multiple of {BLOCK_BYTES_MIN} up to {BLOCK_BYTES_MAX}"
            ));
        }
        let divisor = weights.iter().fold(0, |so_far, &weight| gcd(so_far, u64::from(weight)));
        if divisor == 0 {
            return Err("no disk has a weight".into());
        }
        let weights: Vec<u64> = weights.iter().map(|&weight| u64::from(weight) / divisor).collect();
        let total: u64 = weights.iter().sum();
        if total > ROUND_MAX {
            return Err(format!(
                "weights that share no divisor add up to {total}, more than {ROUND_MAX}"
            ));
        }
        // Each place goes to the disk that is furthest behind its share.
        let mut behind = vec![0i64; weights.len()];
        let mut places = Vec::with_capacity(total as usize);
        for _ in 0..total {
            behind
                .iter_mut()
                .zip(&weights)
                .for_each(|(so_far, weight)| *so_far += *weight as i64);
            let next = (0..weights.len())
                .max_by_key(|&disk| (behind[disk], std::cmp::Reverse(disk)))
                .unwrap_or(0);
            behind[next] -= total as i64;
            places.push(next as u16);
        }
        Ok(Rounds {
            layout,
            block,
            disks: weights.len(),
            places,
            weights,
        })
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

/// A number that says nothing of the one it is made of (splitmix64, Steele, Lea and Flood 2014).
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(GOLDEN);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// `number` as a fraction of 2⁶⁴, of `count`.
fn scaled(number: u64, count: usize) -> usize {
    ((u128::from(number) * count as u128) >> 64) as usize
}

/// Where the blocks of one file are.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    rounds: Arc<Rounds>,
    key: u64,
}

/// Bytes of a file that follow one another on one disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockPiece {
    pub disk: usize,
    /// In the disk's part of the file.
    pub offset: u64,
    pub bytes: u64,
}

impl Map {
    /// Of a file of this number: files of one block begin on all disks alike.
    pub(crate) fn new(rounds: Arc<Rounds>, file: [u8; 16]) -> Map {
        let key = mixed(mixed(u128::from_le_bytes(file) as u64) ^ (u128::from_le_bytes(file) >> 64) as u64);
        Map { rounds, key }
    }

    pub(crate) fn block(&self) -> u64 {
        self.rounds.block
    }

    /// The disks of a round, in the order of its blocks.
    fn order(&self, round: u64, order: &mut Vec<u16>) {
        let places = &self.rounds.places;
        order.clear();
        order.extend_from_slice(places);
        let first = scaled(self.key, places.len());
        match self.rounds.layout {
            BlockLayout::Striped => order.rotate_left(first),
            BlockLayout::Rotated => {
                let turn = scaled(round.wrapping_mul(GOLDEN), places.len());
                order.rotate_left((first + turn) % places.len());
            }
            // Fisher and Yates's shuffle.
            BlockLayout::Hashed => {
                let mut state = mixed(self.key ^ mixed(round));
                for last in (1..order.len()).rev() {
                    state = mixed(state);
                    order.swap(last, scaled(state, last + 1));
                }
            }
        }
    }

    /// Gives `each` the pieces of `bytes` bytes at `offset`, in their order.
    pub(crate) fn pieces(&self, offset: u64, bytes: u64, mut each: impl FnMut(BlockPiece)) {
        let block = self.rounds.block;
        let count = self.rounds.places.len() as u64;
        let (mut at, end) = (offset, offset + bytes);
        let mut order = Vec::new();
        let mut seen = vec![0u64; self.rounds.disks];
        let mut round = None;
        let mut next = 0;
        while at < end {
            let number = at / block;
            if round != Some(number / count) {
                round = Some(number / count);
                self.order(number / count, &mut order);
                seen.fill(0);
                next = 0;
            }
            let place = (number % count) as usize;
            while next < place {
                seen[usize::from(order[next])] += 1;
                next += 1;
            }
            let disk = usize::from(order[place]);
            let rank = number / count * self.rounds.weights[disk] + seen[disk];
            let within = at % block;
            let length = (block - within).min(end - at);
            each(BlockPiece {
                disk,
                offset: rank * block + within,
                bytes: length,
            });
            at += length;
        }
    }

    /// How long the part on each disk is of a file of `bytes` bytes.
    pub(crate) fn part_lengths(&self, bytes: u64) -> Vec<u64> {
        let block = self.rounds.block;
        let count = self.rounds.places.len() as u64;
        let blocks = bytes.div_ceil(block);
        let whole = blocks / count;
        let mut lengths: Vec<u64> = self
            .rounds
            .weights
            .iter()
            .map(|weight| whole * weight * block)
            .collect();
        self.pieces(
            whole * count * block,
            bytes.saturating_sub(whole * count * block),
            |piece| {
                lengths[piece.disk] = piece.offset + piece.bytes;
            },
        );
        // A file that ends inside the last block of a round.
        if blocks > 0 && blocks.is_multiple_of(count) && !bytes.is_multiple_of(block) {
            self.pieces((blocks - 1) * block, bytes % block, |piece| {
                lengths[piece.disk] = piece.offset + piece.bytes;
            });
        }
        lengths
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn map(layout: BlockLayout, weights: &[u32], file: u8) -> Map {
        Map::new(Arc::new(Rounds::new(layout, 4096, weights).unwrap()), [file; 16])
    }

    fn disks(map: &Map, blocks: impl Iterator<Item = u64>, count: usize) -> Vec<u64> {
        let mut met = vec![0; count];
        for block in blocks {
            map.pieces(block * 4096, 1, |piece| met[piece.disk] += 1);
        }
        met
    }

    /// The largest share of a disk over an even one.
    fn skew(met: &[u64]) -> f64 {
        let even = met.iter().sum::<u64>() as f64 / met.len() as f64;
        met.iter()
            .map(|&count| (count as f64 / even - 1.0).abs())
            .fold(0.0, f64::max)
    }

    #[test]
    fn strides_meet_all_disks_alike_where_rounds_are_rotated_or_hashed() {
        for (layout, even) in [
            (BlockLayout::Striped, false),
            (BlockLayout::Rotated, true),
            (BlockLayout::Hashed, true),
        ] {
            let mut worst: f64 = 0.0;
            for count in [2, 3, 4, 7, 8] {
                let map = map(layout, &vec![1; count], 7);
                for stride in 2..=64u64 {
                    let met = disks(&map, (0..16384).map(|step| step * stride), count);
                    worst = worst.max(skew(&met));
                }
            }
            assert_eq!(worst <= 0.1, even, "{layout:?}: {worst}");
        }
    }

    #[test]
    fn the_first_blocks_of_many_files_lie_on_all_disks_as_they_weigh() {
        let weights = [1u32, 3, 4];
        for layout in BlockLayout::ALL {
            let rounds = Arc::new(Rounds::new(layout, 4096, &weights).unwrap());
            let mut met = [0u64; 3];
            for file in 0..8000u128 {
                let map = Map::new(rounds.clone(), file.to_le_bytes());
                map.pieces(0, 1, |piece| met[piece.disk] += 1);
            }
            for (met, weight) in met.iter().zip(weights) {
                let share = f64::from(weight) * 1000.0;
                assert!(
                    (*met as f64 - share).abs() < 0.1 * share,
                    "{layout:?}: {met} of {share}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn every_byte_has_one_place_and_parts_have_no_gaps(
            layout in 0..3usize,
            weights in prop::collection::vec(0..6u32, 1..6),
            blocks in 0..60u64,
            tail in 0..4096u64,
            file in any::<u8>(),
        ) {
            prop_assume!(weights.iter().any(|&weight| weight > 0));
            let map = map(BlockLayout::ALL[layout], &weights, file);
            let bytes = blocks * 4096 + tail;
            let mut seen: Vec<Vec<(u64, u64)>> = vec![vec![]; weights.len()];
            let mut total = 0;
            map.pieces(0, bytes, |piece| {
                seen[piece.disk].push((piece.offset, piece.bytes));
                total += piece.bytes;
            });
            prop_assert_eq!(total, bytes);
            for (disk, lengths) in seen.iter().zip(map.part_lengths(bytes)) {
                // In the order of the file, one behind the other, to the part's end.
                let mut at = 0;
                for &(offset, bytes) in disk {
                    prop_assert_eq!(offset, at);
                    at += bytes;
                }
                prop_assert_eq!(at, lengths);
            }
        }

        #[test]
        fn a_round_gives_each_disk_what_it_weighs(
            layout in 0..3usize,
            weights in prop::collection::vec(0..9u32, 1..9),
            first in 0..1000u64,
            file in any::<u8>(),
        ) {
            prop_assume!(weights.iter().any(|&weight| weight > 0));
            let map = map(BlockLayout::ALL[layout], &weights, file);
            let count = map.rounds.places.len() as u64;
            let met = disks(&map, first * count..(first + 1) * count, weights.len());
            prop_assert_eq!(met, map.rounds.weights.clone());
        }

        #[test]
        fn a_range_has_the_places_of_its_bytes(
            layout in 0..3usize,
            weights in prop::collection::vec(1..5u32, 1..5),
            offset in 0..200_000u64,
            bytes in 1..100_000u64,
        ) {
            let map = map(BlockLayout::ALL[layout], &weights, 3);
            let mut pieces = Vec::new();
            map.pieces(offset, bytes, |piece| pieces.push(piece));
            let mut at = offset;
            for piece in pieces {
                let mut alone = None;
                map.pieces(at, 1, |one| alone = Some(one));
                prop_assert_eq!(alone, Some(BlockPiece { bytes: 1, ..piece }));
                at += piece.bytes;
            }
        }
    }

    #[test]
    fn weights_and_blocks_are_bounded() {
        assert!(Rounds::new(BlockLayout::Striped, 4096, &[0, 0]).is_err());
        assert!(Rounds::new(BlockLayout::Striped, 4095, &[1]).is_err());
        assert!(Rounds::new(BlockLayout::Striped, 0, &[1]).is_err());
        assert!(Rounds::new(BlockLayout::Striped, u64::MAX, &[1]).is_err());
        assert!(Rounds::new(BlockLayout::Striped, 4096, &[999, 1000, 997, 991, 983]).is_err());
        assert_eq!(
            Rounds::new(BlockLayout::Striped, 4096, &[1000; 64])
                .unwrap()
                .places
                .len(),
            64
        );
    }
}
