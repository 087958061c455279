//! Where each list lies: a byte for its length, where it begins for every 32nd, and the large ones aside.

use std::ops::Range;

use super::types::{Extent, Vertex};
use crate::Malformed;

/// Lists between two of which it is known where they begin.
const STRIDE: usize = 32;
/// The length of a list that has more bytes than a byte can say.
const LARGE: u8 = u8::MAX;
/// That of a large list that has more than two bytes can say.
const HUGE: u16 = u16::MAX;
/// Vertices of which a member of a set is told apart by its lower half.
const RANGE_BITS: u32 = 16;

/// Numbers that ascend, each in the bytes of its lower half.
///
/// Invariant: `turns` has the places from which on the upper half is another, ascending, and which; before the first it is 0.
#[derive(Clone, Debug, Default)]
struct Ascending {
    low: Vec<u32>,
    turns: Vec<(u32, u32)>,
}

impl Ascending {
    fn push(&mut self, number: u64) {
        let high = (number >> 32) as u32;
        if self.turns.last().map_or(0, |(_, high)| *high) != high {
            self.turns.push((self.low.len() as u32, high));
        }
        self.low.push(number as u32);
    }

    #[inline]
    fn get(&self, place: usize) -> Option<u64> {
        let low = *self.low.get(place)?;
        if self.turns.is_empty() {
            return Some(u64::from(low));
        }
        let turns = self.turns.partition_point(|(from, _)| *from as usize <= place);
        let high = turns.checked_sub(1).map_or(0, |last| self.turns[last].1);
        Some(u64::from(high) << 32 | u64::from(low))
    }

    /// How many are no more than a number.
    fn up_to(&self, number: u64) -> usize {
        let high = (number >> 32) as u32;
        let from = self.turns.partition_point(|(_, other)| *other < high);
        let begin = match self.turns.get(from) {
            Some((begin, other)) if *other == high => *begin as usize,
            // None has this upper half.
            Some((begin, _)) if high > 0 => return *begin as usize,
            None if high > 0 => return self.low.len(),
            _ => 0,
        };
        let next = self.turns.partition_point(|(_, other)| *other <= high);
        let end = self.turns.get(next).map_or(self.low.len(), |(end, _)| *end as usize);
        begin + self.low[begin..end].partition_point(|low| *low <= number as u32)
    }
}

/// Vertices that ascend, each in two bytes.
///
/// Invariant: `begins[r]` is the place of the first of the range `r` of 2^16 vertices or of one behind, for every range up to
/// that of the last.
#[derive(Clone, Debug, Default)]
struct Members {
    low: Vec<u16>,
    begins: Vec<u32>,
}

impl Members {
    fn push(&mut self, vertex: Vertex) {
        let range = (vertex >> RANGE_BITS) as usize;
        self.begins
            .resize(self.begins.len().max(range + 1), self.low.len() as u32);
        self.low.push(vertex as u16);
    }

    fn len(&self) -> usize {
        self.low.len()
    }

    /// The places of those of a range.
    fn places(&self, range: usize) -> Range<usize> {
        let begin = |range: usize| self.begins.get(range).map_or(self.low.len(), |begin| *begin as usize);
        begin(range)..begin(range + 1)
    }

    /// How many are lower than a vertex.
    fn below(&self, vertex: Vertex) -> usize {
        let places = self.places((vertex >> RANGE_BITS) as usize);
        places.start + self.low[places].partition_point(|low| *low < vertex as u16)
    }

    fn iter(&self) -> impl Iterator<Item = Vertex> + '_ {
        let of = |range: usize| {
            let low = self.low[self.places(range)].iter();
            low.map(move |low| (range << RANGE_BITS) as Vertex | Vertex::from(*low))
        };
        (0..self.begins.len()).flat_map(of)
    }
}

/// The index of the lists of a section, in 1.125 bytes a vertex and 4 for each large list
/// (Zheng et al., FlashGraph, FAST 2015, section 3.5.1).
///
/// Invariants:
/// 1. `lengths[v]` is the bytes of v's list, or `LARGE` and then v is in `large`.
/// 2. `large_bytes` are the bytes of those, or `HUGE` and then the place is in `huge`, which ascends, with the bytes.
/// 3. `begins[v / 32]` is where the list of v begins if 32 divides v; lists lie one behind the other.
#[derive(Clone, Debug, Default)]
pub struct ListIndex {
    lengths: Vec<u8>,
    begins: Ascending,
    large: Members,
    large_bytes: Vec<u16>,
    huge: Vec<(u32, u64)>,
    total: u64,
}

/// What is stored of an index; the rest follows from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexParts {
    pub lengths: Vec<u8>,
    /// Vertices with large lists, and the bytes of those.
    pub large: Vec<(Vertex, u64)>,
}

impl ListIndex {
    /// Adds the list of the next vertex.
    pub fn push(&mut self, bytes: u64) {
        if self.lengths.len().is_multiple_of(STRIDE) {
            self.begins.push(self.total);
        }
        if bytes >= u64::from(LARGE) {
            self.push_large(self.lengths.len() as Vertex, bytes);
        }
        self.lengths.push(bytes.min(u64::from(LARGE)) as u8);
        self.total += bytes;
    }

    fn push_large(&mut self, vertex: Vertex, bytes: u64) {
        if bytes >= u64::from(HUGE) {
            self.huge.push((self.large.len() as u32, bytes));
        }
        self.large.push(vertex);
        self.large_bytes.push(bytes.min(u64::from(HUGE)) as u16);
    }

    /// Bytes of the list at a place of `large`.
    #[inline]
    fn large_at(&self, place: usize) -> u64 {
        match self.large_bytes[place] {
            HUGE => {
                let at = self.huge.partition_point(|(huge, _)| (*huge as usize) < place);
                self.huge[at].1
            }
            bytes => u64::from(bytes),
        }
    }

    /// The index that was stored.
    ///
    /// # Errors
    /// Large lists that are none, or are missing; lengths that are too large together.
    pub fn new(parts: IndexParts) -> Result<ListIndex, Malformed> {
        let mut found = ListIndex::default();
        found.begins.low.reserve_exact(parts.lengths.len().div_ceil(STRIDE));
        found.large.low.reserve_exact(parts.large.len());
        found.large_bytes.reserve_exact(parts.large.len());
        let mut large = parts.large.into_iter();
        for (at, lengths) in parts.lengths.chunks(STRIDE).enumerate() {
            found.begins.push(found.total);
            for (place, length) in lengths.iter().enumerate() {
                let mut bytes = u64::from(*length);
                if *length == LARGE {
                    let next = large
                        .next()
                        .ok_or(Malformed("an index in which a large list is missing"))?;
                    if next.0 as usize != at * STRIDE + place || next.1 < u64::from(LARGE) {
                        return Err(Malformed("an index with a large list that is out of place"));
                    }
                    found.push_large(next.0, next.1);
                    bytes = next.1;
                }
                let total = found.total.checked_add(bytes).filter(|total| *total < 1 << 60);
                found.total = total.ok_or(Malformed("an index of more bytes than there can be"))?;
            }
        }
        if large.next().is_some() {
            return Err(Malformed("an index with a large list that is not large"));
        }
        found.lengths = parts.lengths;
        Ok(found)
    }

    /// The lengths, as they are stored.
    pub fn lengths(&self) -> &[u8] {
        &self.lengths
    }

    /// Vertices with large lists, ascending, and the bytes of those.
    pub fn large(&self) -> impl Iterator<Item = (Vertex, u64)> + '_ {
        self.large.iter().zip((0..).map(|place| self.large_at(place)))
    }

    /// Vertices.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Bytes of all lists together.
    pub fn total_bytes(&self) -> u64 {
        self.total
    }

    /// Bytes of memory that an index takes, where so many lists are large, and all have so many bytes together.
    pub fn memory_bytes(vertices: u64, large: u64, total: u64) -> u64 {
        let ranges = (vertices >> RANGE_BITS) + 1;
        let huge = large.min(total / u64::from(HUGE));
        let strides = vertices.div_ceil(STRIDE as u64);
        vertices + 4 * strides + 4 * large + 4 * ranges + size_of::<(u32, u64)>() as u64 * huge
    }

    /// Bytes of a list.
    pub fn bytes_of(&self, vertex: Vertex) -> u64 {
        match self.lengths[vertex as usize] {
            LARGE => {
                // It is there (invariant 1).
                self.large_at(self.large.below(vertex))
            }
            length => u64::from(length),
        }
    }

    /// Where the list of a vertex lies; vertices from `len` on lie behind all.
    pub fn span(&self, vertex: Vertex) -> Extent {
        let mut spans = self.spans(vertex..vertex.saturating_add(1));
        spans.next().map_or(
            Extent {
                offset: self.total,
                bytes: 0,
            },
            |(_, span)| span,
        )
    }

    /// The vertices of a range, and where their lists lie.
    pub fn spans(&self, range: Range<Vertex>) -> impl Iterator<Item = (Vertex, Extent)> + '_ {
        let range = range.start..range.end.min(self.lengths.len() as Vertex);
        let mut offset = self.begin(range.start);
        let mut large = self.large.below(range.start);
        range.map(move |vertex| {
            let bytes = match self.lengths[vertex as usize] {
                LARGE => {
                    large += 1;
                    self.large_at(large - 1)
                }
                length => u64::from(length),
            };
            let span = Extent { offset, bytes };
            offset += bytes;
            (vertex, span)
        })
    }

    /// Calls `each` with some vertices, ascending, and where their lists lie: those whose bits are set, of 32 from `first` on,
    /// which 32 divides.
    pub fn each_of(&self, first: Vertex, mut bits: u32, mut each: impl FnMut(Vertex, Extent)) {
        let Some(begin) = self.begins.get(first as usize / STRIDE) else {
            return;
        };
        let rest = &self.lengths[first as usize..];
        if let Some(lengths) = rest.first_chunk::<STRIDE>().filter(|lengths| !has_large(lengths)) {
            let offsets = offsets(lengths);
            while bits != 0 {
                let place = bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let span = Extent {
                    offset: begin + u64::from(offsets[place]),
                    bytes: u64::from(lengths[place]),
                };
                each(first + place as Vertex, span);
            }
            return;
        }
        let (mut offset, mut vertex) = (begin, first);
        let mut large = None;
        for length in rest {
            if bits == 0 {
                return;
            }
            let mut bytes = u64::from(*length);
            if *length == LARGE {
                let place = large.unwrap_or_else(|| self.large.below(vertex));
                bytes = self.large_at(place);
                large = Some(place + 1);
            }
            if bits & 1 == 1 {
                each(vertex, Extent { offset, bytes });
            }
            (offset, vertex, bits) = (offset + bytes, vertex + 1, bits >> 1);
        }
    }

    /// Where the lists of 32 vertices end, of which the first is `first`.
    pub fn end_of(&self, first: Vertex) -> u64 {
        self.begins.get(first as usize / STRIDE + 1).unwrap_or(self.total)
    }

    fn begin(&self, vertex: Vertex) -> u64 {
        if vertex as usize >= self.lengths.len() {
            return self.total;
        }
        let block = vertex as usize / STRIDE;
        let before = &self.lengths[block * STRIDE..vertex as usize];
        let mut bytes: u64 = before.iter().map(|length| u64::from(*length)).sum();
        let large = before.iter().filter(|length| **length == LARGE).count();
        if large > 0 {
            let from = self.large.below((block * STRIDE) as Vertex);
            let more = (from..from + large).map(|place| self.large_at(place) - u64::from(LARGE));
            bytes += more.sum::<u64>();
        }
        self.begins.get(block).map_or(self.total, |begin| begin + bytes)
    }

    /// The first vertex whose list does not end before a byte: where a part of a section begins.
    pub fn vertex_at(&self, offset: u64) -> Vertex {
        let block = self.begins.up_to(offset).saturating_sub(1);
        let first = (block * STRIDE) as Vertex;
        self.spans(first..Vertex::MAX)
            .find(|(_, span)| span.end() > offset)
            .map_or(self.lengths.len() as Vertex, |(vertex, _)| vertex)
    }
}

fn has_large(lengths: &[u8; STRIDE]) -> bool {
    lengths.iter().fold(false, |any, length| any | (*length == LARGE))
}

/// Where each list begins, counted from the first.
fn offsets(lengths: &[u8; STRIDE]) -> [u16; STRIDE] {
    let mut next = 0;
    lengths.map(|length| {
        let offset = next;
        next += u16::from(length);
        offset
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Many blocks without a large list, and some with one or more.
    fn lengths() -> impl Strategy<Value = Vec<u64>> {
        let large = prop_oneof![
            254..257u64,
            65_533..65_538u64,
            1u64..1 << 33,
            (1u64 << 32) - 3..(1 << 32) + 2
        ];
        let each = prop_oneof![8 => Just(0u64), 64 => 1..255u64, 1 => large];
        prop::collection::vec(each, 0..256)
    }

    proptest! {
        #[test]
        fn numbers_that_ascend(steps in prop::collection::vec(prop_oneof![0u64..3, 0u64..1 << 34, Just(1u64 << 32)], 0..80), near in 0u64..3) {
            let (mut numbers, mut all, mut last) = (Ascending::default(), vec![], 0);
            for step in steps {
                last += step;
                numbers.push(last);
                all.push(last);
            }
            for (place, number) in all.iter().enumerate() {
                prop_assert_eq!(numbers.get(place), Some(*number));
                let other = (number + near).saturating_sub(1);
                for number in [other, other ^ 1 << 32] {
                    prop_assert_eq!(numbers.up_to(number), all.partition_point(|each| *each <= number));
                }
            }
            prop_assert_eq!(numbers.get(all.len()), None);
        }

        #[test]
        fn members_are_found_in_any_range(steps in prop::collection::vec(prop_oneof![1u32..3, 1u32..1 << 18], 0..100), near in 0u32..3) {
            let (mut members, mut all, mut last) = (Members::default(), vec![], 0);
            for step in steps {
                last += step;
                members.push(last);
                all.push(last);
            }
            prop_assert_eq!(members.iter().collect::<Vec<_>>(), all.clone());
            prop_assert_eq!(members.len(), all.len());
            for vertex in all.iter().map(|vertex| (vertex + near).saturating_sub(1)).chain([0, Vertex::MAX]) {
                prop_assert_eq!(members.below(vertex), all.partition_point(|each| *each < vertex));
            }
        }

        #[test]
        fn every_list_is_found(lengths in lengths(), masks in prop::collection::vec(any::<u32>(), 8)) {
            let mut index = ListIndex::default();
            lengths.iter().for_each(|bytes| index.push(*bytes));
            let large: Vec<_> = index.large().collect();
            let of = (0..).zip(&lengths).filter(|(_, bytes)| **bytes >= 255).map(|(vertex, bytes)| (vertex, *bytes));
            prop_assert!(large.iter().copied().eq(of));
            let parts = IndexParts { lengths: index.lengths().to_vec(), large };
            let index = ListIndex::new(parts).unwrap();
            let mut offset = 0;
            for (vertex, bytes) in lengths.iter().enumerate() {
                let vertex = vertex as Vertex;
                prop_assert_eq!(index.span(vertex), Extent { offset, bytes: *bytes });
                prop_assert_eq!(index.bytes_of(vertex), *bytes);
                if *bytes > 0 {
                    prop_assert_eq!(index.vertex_at(offset), vertex);
                    prop_assert_eq!(index.vertex_at(offset + bytes - 1), vertex);
                }
                offset += bytes;
            }
            for (first, bits) in (0..lengths.len() as Vertex + 32).step_by(32).zip(masks) {
                let mut found = vec![];
                index.each_of(first, bits, |vertex, span| found.push((vertex, span)));
                let wanted = |vertex: &Vertex| bits >> (vertex - first) & 1 == 1 && (*vertex as usize) < lengths.len();
                let expected: Vec<_> = (first..first + 32).filter(wanted).map(|vertex| (vertex, index.span(vertex))).collect();
                prop_assert_eq!(found, expected);
                prop_assert_eq!(index.end_of(first), index.span((first + 32).min(lengths.len() as Vertex)).offset);
            }
            prop_assert_eq!(index.total_bytes(), offset);
            prop_assert_eq!(index.vertex_at(offset) as usize, lengths.len());
            prop_assert_eq!(index.span(lengths.len() as Vertex), Extent { offset, bytes: 0 });
        }
    }

    #[test]
    fn large_lists_that_lie_are_refused() {
        let new = |lengths: &[u8], large: &[(Vertex, u64)]| {
            ListIndex::new(IndexParts {
                lengths: lengths.to_vec(),
                large: large.to_vec(),
            })
            .is_ok()
        };
        assert!(new(&[3, 255], &[(1, 300)]));
        assert!(!new(&[3, 255], &[]));
        assert!(!new(&[3, 255], &[(0, 300)]));
        assert!(!new(&[3, 255], &[(1, 254)]));
        assert!(!new(&[3, 255], &[(1, 300), (2, 300)]));
        assert!(!new(&[255, 255], &[(0, 1 << 59), (1, 1 << 59)]));
    }
}
