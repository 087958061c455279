//! The vertices that are active in an iteration.

use outcore_coding::lists::Vertex;

use super::batch::VertexSet;
use super::bits::Bits;
use crate::EngineError;

/// A set of vertices that costs what is in it: few are a list beside their bits, so that words without a bit are not looked
/// at; of many there are the bits alone.
///
/// Invariant: where `is_few`, `few` holds the members, each once, and ascending once they are normalized; else it is empty.
#[derive(Clone, Debug)]
pub struct Frontier {
    bits: Bits,
    few: Vec<Vertex>,
    is_few: bool,
}

/// Vertices of a graph for each that is in a list at most: to sort that takes no longer than to look through all words.
const SPARSE: usize = 512;
/// Those that are always few.
const FEW: usize = 64;

impl Frontier {
    pub fn none(vertices: usize) -> Frontier {
        Frontier {
            bits: Bits::none(vertices),
            few: vec![],
            is_few: true,
        }
    }

    /// Vertices that may be in it.
    pub fn vertices(&self) -> usize {
        self.bits.vertices()
    }

    fn most(&self) -> usize {
        (self.vertices() / SPARSE).max(FEW)
    }

    pub fn has(&self, vertex: Vertex) -> bool {
        self.bits.has(vertex)
    }

    pub fn insert(&mut self, vertex: Vertex) {
        if !self.is_few {
            self.bits.insert(vertex);
        } else if !self.bits.has(vertex) {
            self.bits.insert(vertex);
            self.few.push(vertex);
            if self.few.len() > self.most() {
                self.be_many();
            }
        }
    }

    /// Adds vertices, in any order: those of a long list as bits.
    ///
    /// # Errors
    /// One that is no vertex; none is added then.
    pub fn extend(&mut self, vertices: &[Vertex]) -> Result<(), EngineError> {
        are_vertices("activate", vertices, self.vertices())?;
        if vertices.len() <= self.most() {
            vertices.iter().for_each(|vertex| self.insert(*vertex));
        } else {
            let words = self.words_mut();
            for vertex in vertices {
                words[*vertex as usize / 64] |= 1 << (vertex % 64);
            }
        }
        Ok(())
    }

    /// Adds another set of the same vertices.
    pub fn add(&mut self, others: &Frontier) {
        match others.is_few {
            true => others.few.iter().for_each(|vertex| self.insert(*vertex)),
            false => {
                self.be_many();
                self.bits.extend(&others.bits);
            }
        }
    }

    /// The members, ascending; then it is empty.
    pub fn take(&mut self) -> Vec<Vertex> {
        self.normalize();
        let mut members = Vec::with_capacity(self.count() as usize);
        self.each(|vertex| members.push(vertex));
        self.clear();
        members
    }

    fn be_many(&mut self) {
        self.few.clear();
        self.is_few = false;
    }

    pub fn clear(&mut self) {
        if self.is_few {
            self.few.drain(..).for_each(|vertex| self.bits.remove(vertex));
        } else {
            self.bits.clear();
            self.is_few = true;
        }
    }

    pub fn is_empty(&self) -> bool {
        match self.is_few {
            true => self.few.is_empty(),
            false => self.bits.is_empty(),
        }
    }

    pub fn count(&self) -> u64 {
        match self.is_few {
            true => self.few.len() as u64,
            false => self.bits.count(),
        }
    }

    /// The members, if they are few.
    pub fn few(&self) -> Option<&[Vertex]> {
        self.is_few.then_some(&self.few[..])
    }

    /// The members, for a sweep: it has to be normalized.
    pub fn chosen(&self) -> VertexSet<'_> {
        match self.is_few {
            true => VertexSet::Listed(&self.few),
            false => VertexSet::Of(&self.bits),
        }
    }

    /// Calls `each` with every member.
    pub fn each(&self, mut each: impl FnMut(Vertex)) {
        match self.is_few {
            true => self.few.iter().for_each(|vertex| each(*vertex)),
            false => self.bits.iter().for_each(each),
        }
    }

    /// Keeps the members that are wanted; they stay in their order.
    pub fn retain(&mut self, mut is_wanted: impl FnMut(Vertex) -> bool) {
        let Frontier { bits, few, is_few } = self;
        if *is_few {
            few.retain(|vertex| {
                let stays = is_wanted(*vertex);
                if !stays {
                    bits.remove(*vertex);
                }
                stays
            });
            return;
        }
        for (word, at) in bits.words_mut().iter_mut().zip(0..) {
            let mut rest = *word;
            while rest != 0 {
                let bit = rest.trailing_zeros();
                rest &= rest - 1;
                if !is_wanted(64 * at + bit) {
                    *word &= !(1 << bit);
                }
            }
        }
    }

    /// Adds the members to a set of the same vertices.
    pub fn add_to(&self, others: &mut Bits) {
        match self.is_few {
            true => self.few.iter().for_each(|vertex| others.insert(*vertex)),
            false => others.extend(&self.bits),
        }
    }

    /// The words of a set of many, which it is from now on, 64 vertices each: for parts that are worked on side by side.
    pub fn words_mut(&mut self) -> &mut [u64] {
        self.be_many();
        self.bits.words_mut()
    }

    /// Brings few into order, and makes a list of many that have become few.
    pub fn normalize(&mut self) {
        if self.is_few {
            if !self.few.is_sorted() {
                self.few.sort_unstable();
            }
        } else if self.bits.count() <= self.most() as u64 {
            self.few.extend(self.bits.iter());
            self.is_few = true;
        }
    }
}

/// Refuses what a call is given if one of it is none of so many vertices.
pub(crate) fn are_vertices(call: &str, given: &[Vertex], vertices: usize) -> Result<(), EngineError> {
    match given.iter().max().filter(|highest| **highest as usize >= vertices) {
        None => Ok(()),
        Some(highest) => {
            let text = format!("{call}: {highest} is no vertex; there are {vertices}");
            Err(EngineError::Index(text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn members(frontier: &Frontier) -> Vec<Vertex> {
        let mut members = vec![];
        frontier.each(|vertex| members.push(vertex));
        members
    }

    #[test]
    fn few_are_a_list_and_many_are_bits() {
        let mut frontier = Frontier::none(1 << 17);
        (0..256).rev().for_each(|vertex| frontier.insert(3 * vertex));
        assert_eq!(frontier.few().map(<[Vertex]>::len), Some(256));
        frontier.insert(0);
        assert_eq!(frontier.count(), 256);
        frontier.insert(1);
        assert!(frontier.few().is_none());
        assert_eq!(frontier.count(), 257);
        frontier.retain(|vertex| vertex < 30);
        frontier.normalize();
        assert_eq!(frontier.few(), Some(&[0, 1, 3, 6, 9, 12, 15, 18, 21, 24, 27][..]));
        frontier.clear();
        assert!(frontier.is_empty() && !frontier.has(3));
    }

    proptest! {
        #[test]
        fn it_is_a_set(steps in prop::collection::vec((0u32..1000, 0u8..12), 0..600)) {
            let (mut frontier, mut set) = (Frontier::none(1000), BTreeSet::new());
            for (vertex, what) in steps {
                match what {
                    4 => {
                        let many: Vec<Vertex> = (0..vertex % 100).map(|at| (7 * at + vertex) % 1000).rev().collect();
                        frontier.extend(&many).unwrap();
                        set.extend(many);
                    }
                    5 if vertex < 100 => {
                        let taken = std::mem::take(&mut set);
                        prop_assert_eq!(frontier.take(), taken.into_iter().collect::<Vec<_>>());
                    }
                    0 => { frontier.retain(|other| other % 3 != vertex % 3); set.retain(|other| other % 3 != vertex % 3); }
                    1 => frontier.normalize(),
                    6 => {
                        let mut others = Frontier::none(1000);
                        (0..vertex % 200).for_each(|at| others.insert((11 * at + vertex) % 1000));
                        frontier.add(&others);
                        others.each(|other| { set.insert(other); });
                    }
                    2 if vertex < 200 => { frontier.clear(); set.clear(); }
                    3 => { frontier.words_mut()[vertex as usize / 64] |= 1 << (vertex % 64); set.insert(vertex); }
                    _ => { frontier.insert(vertex); set.insert(vertex); }
                }
                prop_assert_eq!(frontier.has(vertex), set.contains(&vertex));
                prop_assert_eq!(frontier.count() as usize, set.len());
                prop_assert_eq!(frontier.is_empty(), set.is_empty());
            }
            let mut others = Bits::none(1000);
            frontier.add_to(&mut others);
            prop_assert_eq!(others.iter().collect::<Vec<_>>(), set.iter().copied().collect::<Vec<_>>());
            frontier.normalize();
            prop_assert_eq!(members(&frontier), set.into_iter().collect::<Vec<_>>());
        }
    }
}
