//! Sets of vertices.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

use outcore_coding::lists::Vertex;

/// A set of the vertices below a number, a bit for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    words: Vec<u64>,
    vertices: usize,
}

impl Bits {
    pub fn none(vertices: usize) -> Bits {
        Bits {
            words: vec![0; vertices.div_ceil(64)],
            vertices,
        }
    }

    pub fn all(vertices: usize) -> Bits {
        let mut bits = Bits {
            words: vec![u64::MAX; vertices.div_ceil(64)],
            vertices,
        };
        if let (Some(last), rest @ 1..) = (bits.words.last_mut(), vertices % 64) {
            *last >>= 64 - rest;
        }
        bits
    }

    /// Bytes that a set takes.
    pub fn memory_bytes(vertices: u64) -> u64 {
        vertices.div_ceil(64) * 8
    }

    pub fn has(&self, vertex: Vertex) -> bool {
        self.words[vertex as usize / 64] >> (vertex % 64) & 1 == 1
    }

    pub fn insert(&mut self, vertex: Vertex) {
        self.words[vertex as usize / 64] |= 1 << (vertex % 64);
    }

    pub fn remove(&mut self, vertex: Vertex) {
        self.words[vertex as usize / 64] &= !(1 << (vertex % 64));
    }

    /// Adds all of another set of the same vertices.
    pub fn extend(&mut self, other: &Bits) {
        self.words
            .iter_mut()
            .zip(&other.words)
            .for_each(|(word, more)| *word |= more);
    }

    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Vertices that may be in it.
    pub fn vertices(&self) -> usize {
        self.vertices
    }

    pub fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// The lowest of the set.
    pub fn first(&self) -> Option<Vertex> {
        let word = self.words.iter().position(|word| *word != 0)?;
        Some((64 * word) as Vertex + self.words[word].trailing_zeros())
    }

    /// Those of a range that are in the set, ascending.
    pub fn within(&self, range: Range<Vertex>) -> impl Iterator<Item = Vertex> + '_ {
        let (first, last) = (
            range.start as usize / 64,
            (range.end as usize).div_ceil(64).min(self.words.len()),
        );
        (first.min(last)..last).flat_map(move |at| {
            let mut word = self.words[at];
            let range = range.clone();
            std::iter::from_fn(move || {
                (word != 0).then(|| {
                    let bit = word.trailing_zeros();
                    word &= word - 1;
                    (64 * at) as Vertex + bit
                })
            })
            .filter(move |vertex| range.contains(vertex))
        })
    }

    /// Calls `each` with the members of a range, ascending, 32 vertices at a time that have any: the first of them, and their bits.
    pub fn blocks(&self, range: Range<Vertex>, mut each: impl FnMut(Vertex, u32)) {
        let end = u64::from(range.end).min(self.vertices as u64) as Vertex;
        blocks(range.start..end, |first, within| {
            let block = (self.words[first as usize / 64] >> (first % 64)) as u32 & within;
            if block != 0 {
                each(first, block);
            }
        });
    }

    /// All of the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Vertex> + '_ {
        self.within(0..self.vertices as Vertex)
    }

    /// The words, 64 vertices each: for parts that are worked on side by side.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    pub fn words(&self) -> &[u64] {
        &self.words
    }
}

/// Calls `each` with the blocks of 32 vertices that a range has some of: the first, and the bits of those.
pub fn blocks(range: Range<Vertex>, mut each: impl FnMut(Vertex, u32)) {
    for first in (range.start / 32 * 32..range.end).step_by(32) {
        let before = range.start.saturating_sub(first);
        let behind = 32 - (range.end - first).min(32);
        each(first, u32::MAX << before & u32::MAX >> behind);
    }
}

/// A set that several threads add to.
pub struct SharedBits(Vec<AtomicU64>);

impl SharedBits {
    pub fn none(vertices: usize) -> SharedBits {
        SharedBits((0..vertices.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    /// Adds a vertex; whether it was not there. One of several who add it at once is told so.
    pub fn insert(&self, vertex: Vertex) -> bool {
        let bit = 1 << (vertex % 64);
        let word = &self.0[vertex as usize / 64];
        word.load(SeqCst) & bit == 0 && word.fetch_or(bit, SeqCst) & bit == 0
    }

    pub fn has(&self, vertex: Vertex) -> bool {
        self.0[vertex as usize / 64].load(Relaxed) >> (vertex % 64) & 1 == 1
    }

    /// Takes a vertex out. This and `insert` are in the one order of all that are in one.
    pub fn remove(&self, vertex: Vertex) {
        self.0[vertex as usize / 64].fetch_and(!(1 << (vertex % 64)), SeqCst);
    }

    /// Makes `others` those of so many vertices that are not in this set.
    pub fn complement(&self, vertices: usize, others: &mut Bits) {
        *others = Bits::all(vertices);
        for (word, not) in others.words.iter_mut().zip(&self.0) {
            *word &= !not.load(Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_ascend() {
        let mut bits = Bits::none(200);
        for vertex in [0, 3, 63, 64, 150, 199] {
            bits.insert(vertex);
        }
        assert_eq!(bits.iter().collect::<Vec<_>>(), [0, 3, 63, 64, 150, 199]);
        assert_eq!(bits.within(3..150).collect::<Vec<_>>(), [3, 63, 64]);
        for (range, expected) in [
            (3..150, vec![(0, 1 << 3), (32, 1 << 31), (64, 1)]),
            (4..63, vec![]),
            (63..64, vec![(32, 1 << 31)]),
            (150..1000, vec![(128, 1 << 22), (192, 1 << 7)]),
            (64..64, vec![]),
        ] {
            let mut found = vec![];
            bits.blocks(range, |first, block| found.push((first, block)));
            assert_eq!(found, expected);
        }
        assert_eq!((bits.count(), bits.first()), (6, Some(0)));
        bits.remove(0);
        assert!(!bits.has(0) && bits.has(3));
        assert_eq!(Bits::all(70).count(), 70);
        assert_eq!(Bits::all(64).iter().count(), 64);
        assert!(Bits::all(0).is_empty());
    }
}
