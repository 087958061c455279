//! Lists that are looked at again, kept in memory as they are coded.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use outcore_coding::lists::{has_any, Vertex};
use outcore_coding::Malformed;
use outcore_store::GraphFile;

use crate::graph::read::bits::SharedBits;
use crate::graph::read::gaps::{get, put};
use crate::live::each_part;
use crate::EngineError;

/// Pieces for each thread that are looked at before what was found there is taken.
const PIECES: usize = 8;
/// Bytes of lists for which one thread is enough.
const FEW_BYTES: u64 = 1 << 16;

/// Lists of some vertices, ascending, one behind the other.
///
/// Invariant: `bytes` are the gap between a vertex and the one after that before, the length of its list, and the list, of
/// each.
#[derive(Default)]
pub(crate) struct KeptPart {
    bytes: Vec<u8>,
    next: Vertex,
}

impl KeptPart {
    pub fn push(&mut self, vertex: Vertex, list: &[u8]) {
        put(&mut self.bytes, vertex - self.next);
        put(&mut self.bytes, list.len() as u32);
        self.bytes.extend_from_slice(list);
        self.next = vertex.wrapping_add(1);
    }

    /// Calls `each` with every vertex and its list.
    fn each(&self, mut each: impl FnMut(Vertex, &[u8]) -> Result<(), Malformed>) -> Result<(), Malformed> {
        let (mut rest, mut next) = (&self.bytes[..], 0u32);
        while !rest.is_empty() {
            let mut number = || {
                get(&mut || {
                    let (byte, behind) = rest.split_first()?;
                    rest = behind;
                    Some(*byte)
                })
            };
            let (gap, length) = (number(), number() as usize);
            let (list, behind) = rest.split_at(length);
            rest = behind;
            each(next + gap, list)?;
            next = (next + gap).wrapping_add(1);
        }
        Ok(())
    }
}

/// Lists that a sweep keeps as it goes, while they are no more than so many bytes: all of them, or none.
pub(crate) struct Keeping {
    most: u64,
    bytes: AtomicU64,
}

impl Keeping {
    pub fn new(most: u64) -> Keeping {
        Keeping {
            most,
            bytes: AtomicU64::new(0),
        }
    }

    /// Bytes that they take at most.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// Whether all were few enough yet.
    pub fn is_on(&self) -> bool {
        self.bytes.load(Relaxed) <= self.most
    }

    /// One of them cannot be kept, so none is.
    pub fn give_up(&self) {
        self.bytes.store(u64::MAX / 2, Relaxed);
    }

    /// A piece, if it is kept.
    pub fn keep(&self, mut piece: KeptPart) -> KeptPart {
        let bytes = piece.bytes.len() as u64;
        match self.bytes.fetch_add(bytes, Relaxed) + bytes <= self.most {
            true => {
                piece.bytes.shrink_to_fit();
                piece
            }
            false => KeptPart::default(),
        }
    }

    /// All of them, if none is missing.
    pub fn whole(self, pieces: Vec<KeptPart>) -> Option<UnmetLists> {
        let bytes = self.bytes.into_inner();
        (bytes <= self.most).then_some(UnmetLists { pieces, bytes })
    }
}

/// Lists of vertices that look for a neighbour.
pub(crate) struct UnmetLists {
    pieces: Vec<KeptPart>,
    bytes: u64,
}

impl UnmetLists {
    /// Bytes that they take.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Calls `take` with the vertices that have one of some neighbours, and are met then; forgets their lists, and those of all
    /// that were met before.
    ///
    /// # Errors
    /// Bytes that are no list.
    pub fn search(
        &mut self,
        file: &GraphFile,
        threads: usize,
        met: &SharedBits,
        is: impl Fn(Vertex) -> bool + Sync,
        mut take: impl FnMut(Vec<Vertex>),
    ) -> Result<(), EngineError> {
        let threads = if self.bytes < FEW_BYTES { 1 } else { threads.max(1) };
        let look = |piece: &mut KeptPart| {
            let (mut reached, mut rest) = (vec![], KeptPart::default());
            rest.bytes.reserve_exact(piece.bytes.len());
            piece.each(|vertex, list| {
                if met.has(vertex) {
                    return Ok(());
                }
                if has_any(vertex, list, file.shape().vertices, &is)? {
                    met.insert(vertex);
                    reached.push(vertex);
                } else {
                    rest.push(vertex, list);
                }
                Ok(())
            })?;
            if rest.bytes.len() < piece.bytes.len() {
                rest.bytes.shrink_to_fit();
                *piece = rest;
            }
            Ok(reached)
        };
        for pieces in self.pieces.chunks_mut(PIECES * threads) {
            let mut outcomes: Vec<Result<Vec<Vertex>, Malformed>> = vec![Ok(vec![]); pieces.len()];
            each_part(pieces.iter_mut().zip(&mut outcomes), threads, |(piece, outcome)| {
                *outcome = look(piece);
            });
            for outcome in outcomes {
                take(outcome.map_err(|Malformed(what)| EngineError::Store(file.malformed(what)))?);
            }
        }
        self.pieces.retain(|piece| !piece.bytes.is_empty());
        self.bytes = self.pieces.iter().map(|piece| piece.bytes.len() as u64).sum();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn members(piece: &KeptPart) -> Vec<(Vertex, Vec<u8>)> {
        let mut reached = vec![];
        piece
            .each(|vertex, list| {
                reached.push((vertex, list.to_vec()));
                Ok(())
            })
            .unwrap();
        reached
    }

    proptest! {
        #[test]
        fn a_piece_gives_what_was_put_there(
            lists in prop::collection::btree_map(any::<u32>(), prop::collection::vec(any::<u8>(), 0..300), 0..50),
        ) {
            let mut piece = KeptPart::default();
            lists.iter().for_each(|(vertex, list)| piece.push(*vertex, list));
            prop_assert_eq!(members(&piece), lists.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn all_lists_are_kept_or_none() {
        let piece = || {
            let mut piece = KeptPart::default();
            piece.push(3, &[1, 2, 3]);
            piece
        };
        let keeping = Keeping::new(10);
        let pieces: Vec<KeptPart> = (0..2).map(|_| keeping.keep(piece())).collect();
        assert!(keeping.is_on());
        assert_eq!(keeping.whole(pieces).map(|kept| kept.bytes()), Some(10));
        let keeping = Keeping::new(9);
        let pieces: Vec<KeptPart> = (0..2).map(|_| keeping.keep(piece())).collect();
        assert!(!keeping.is_on());
        assert!(pieces[1].bytes.is_empty());
        assert!(keeping.whole(pieces).is_none());
        let keeping = Keeping::new(9);
        keeping.give_up();
        assert!(keeping.keep(piece()).bytes.is_empty());
        assert!(!keeping.is_on());
    }
}
