//! The vertices of a search, level by level, in few bytes: for who goes back from the farthest.

use crate::graph::read::bits::Bits;
use crate::graph::read::frontier::Frontier;
use crate::graph::read::gaps::{get, put};

/// Levels, the last of which is taken first. A level is coded as the gaps between its vertices, seven bits in a byte, or if
/// that is more as bits.
///
/// Invariant: `gaps` has for each level that is no bits its gaps, and behind them their bytes, as a number that is read
/// backwards; for one that is 0, and its bits are the last of `many`.
pub(crate) struct Layers {
    gaps: Vec<u8>,
    many: Vec<Bits>,
    vertices: usize,
    count: u32,
}

/// Bytes of memory for each vertex, of which no search needs more: one whose vertices all are levels of their own.
pub(crate) const LAYERS_BYTES_MOST: u64 = 6;

impl Layers {
    /// Of a graph of so many vertices, in so many bytes or little more: that many do not move as they grow.
    pub fn new(vertices: usize, bytes: usize) -> Layers {
        Layers {
            gaps: Vec::with_capacity(bytes),
            many: vec![],
            vertices,
            count: 0,
        }
    }

    /// How many levels there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> u64 {
        self.gaps.len() as u64 + self.many.len() as u64 * Bits::memory_bytes(self.vertices as u64)
    }

    /// Adds a level, which is normalized and not empty.
    pub fn push(&mut self, level: &Frontier) {
        self.count += 1;
        let begin = self.gaps.len();
        let most = match level.few() {
            Some(_) => usize::MAX,
            None => begin + self.vertices / 8,
        };
        let mut next = 0;
        level.each(|vertex| {
            if self.gaps.len() <= most {
                put(&mut self.gaps, vertex - next);
            }
            next = vertex + 1;
        });
        let bytes = match self.gaps.len() {
            end if end <= most => end - begin,
            _ => {
                self.gaps.truncate(begin);
                let mut bits = Bits::none(self.vertices);
                level.add_to(&mut bits);
                self.many.push(bits);
                0
            }
        };
        let end = self.gaps.len();
        put(&mut self.gaps, bytes as u32);
        self.gaps[end..].reverse();
    }

    /// Makes `level` the last level that is left; whether there was one.
    pub fn pop(&mut self, level: &mut Frontier) -> bool {
        level.clear();
        let Some(left) = self.count.checked_sub(1) else {
            return false;
        };
        self.count = left;
        let bytes = get(&mut || self.gaps.pop()) as usize;
        if bytes == 0 {
            let bits = self.many.pop().expect("a level that is no gaps is bits");
            level.words_mut().copy_from_slice(bits.words());
        } else {
            let begin = self.gaps.len() - bytes;
            let mut coded = self.gaps[begin..].iter().copied();
            let mut next = 0;
            while coded.len() > 0 {
                next += get(&mut || coded.next());
                level.insert(next);
                next += 1;
            }
            self.gaps.truncate(begin);
        }
        level.normalize();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcore_coding::lists::Vertex;
    use proptest::prelude::*;

    fn frontier(vertices: usize, members: &[Vertex]) -> Frontier {
        let mut level = Frontier::none(vertices);
        members.iter().for_each(|vertex| level.insert(*vertex));
        level.normalize();
        level
    }

    proptest! {
        #[test]
        fn levels_come_back_last_first(
            vertices in 1usize..5000,
            levels in prop::collection::vec((1u32..5000, 0u32..5000), 0..40),
        ) {
            let levels: Vec<Vec<Vertex>> = levels
                .into_iter()
                .map(|(step, from)| (from % vertices as u32..vertices as u32).step_by(step as usize).collect())
                .collect();
            let mut layers = Layers::new(vertices, 0);
            for _ in 0..2 {
                levels.iter().for_each(|level| layers.push(&frontier(vertices, level)));
                prop_assert_eq!(layers.count() as usize, levels.len());
                let mut level = Frontier::none(vertices);
                for expected in levels.iter().rev() {
                    prop_assert!(layers.pop(&mut level));
                    let mut members = vec![];
                    level.each(|vertex| members.push(vertex));
                    prop_assert_eq!(&members, expected);
                }
                prop_assert!(!layers.pop(&mut level) && level.is_empty());
                prop_assert_eq!(layers.bytes(), 0);
            }
        }
    }

    #[test]
    fn a_path_takes_a_few_bytes_a_vertex_and_large_levels_take_bits() {
        let vertices = 1 << 22;
        let mut layers = Layers::new(vertices, 0);
        (0..1 << 12).for_each(|vertex| layers.push(&frontier(vertices, &[vertex << 10 | 1])));
        assert!(layers.bytes() <= LAYERS_BYTES_MOST << 12);
        let mut layers = Layers::new(vertices, 0);
        let every = frontier(vertices, &(0..vertices as Vertex).step_by(2).collect::<Vec<_>>());
        layers.push(&every);
        assert!(layers.bytes() <= vertices as u64 / 8 + 16);
    }
}
