//! Lists of neighbours: coding and decoding.

use super::gaps::{few_gap_sums, gap_sums};
use super::types::{Extent, Vertex};
use crate::Malformed;

/// The most bytes that a list of so many neighbours takes.
pub fn list_bytes_max(degree: usize) -> usize {
    10 + degree.div_ceil(4) + 4 * degree + 4
}

/// The signed distance to the first neighbour, as a number without a sign.
fn distance(vertex: Vertex, first: Vertex) -> u64 {
    let apart = i64::from(first) - i64::from(vertex);
    ((apart << 1) ^ (apart >> 63)) as u64
}

/// Appends the list of a vertex, whose neighbours ascend, to `out`.
///
/// The first distance has up to 33 bits: where it does not fit into four bytes the neighbour stands for itself, and the
/// lowest bit of the count says so.
pub fn encode(vertex: Vertex, neighbours: &[Vertex], out: &mut Vec<u8>) {
    if neighbours.is_empty() {
        return;
    }
    let near = distance(vertex, neighbours[0]);
    let plain = near > u64::from(u32::MAX);
    let mut head = (neighbours.len() as u64) << 1 | u64::from(plain);
    while head >= 0x80 {
        out.push(head as u8 | 0x80);
        head >>= 7;
    }
    out.push(head as u8);
    let controls = out.len();
    out.resize(controls + neighbours.len().div_ceil(4), 0);
    let first = std::iter::once(if plain { neighbours[0] } else { near as u32 });
    let gaps = first.chain(neighbours.windows(2).map(|pair| pair[1] - pair[0]));
    for (at, gap) in gaps.enumerate() {
        let bytes = (4 - gap.leading_zeros() as usize / 8).max(1);
        out[controls + at / 4] |= ((bytes - 1) as u8) << (2 * (at % 4));
        out.extend_from_slice(&gap.to_le_bytes()[..bytes]);
    }
}

/// Bytes of a head, at most.
pub const HEAD_BYTES: usize = 5;

/// The head of a list of so many bytes, which begins with `list`: neighbours, whether the first stands for itself, and the
/// bytes of the head.
#[inline]
fn head(list: &[u8], list_bytes: u64) -> Result<(usize, bool, usize), Malformed> {
    let (mut value, mut shift) = (0u64, 0);
    for (at, byte) in list.iter().enumerate().take(HEAD_BYTES) {
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            let count = value >> 1;
            // Every gap has a byte at least, so that no count is believed beyond the bytes there are.
            if count == 0 || count > list_bytes {
                break;
            }
            return Ok((count as usize, value & 1 == 1, at + 1));
        }
    }
    Err(Malformed("a list whose number of neighbours is not to be believed"))
}

/// The neighbours that a list has.
///
/// # Errors
/// A count that cannot be.
pub fn degree(list: &[u8]) -> Result<usize, Malformed> {
    if list.is_empty() {
        return Ok(0);
    }
    head(list, list.len() as u64).map(|(count, ..)| count)
}

const SHORT: Malformed = Malformed("a list that is shorter than its neighbours");
const LONG: Malformed = Malformed("a list that is longer than its neighbours");
const OUTSIDE: Malformed = Malformed("a neighbour that is no vertex of the graph");
const TWICE: Malformed = Malformed("a neighbour that is in a list twice");

/// Puts the neighbours of a vertex behind what is in `out`; anything where there is an error.
///
/// # Errors
/// Bytes that are no list, or neighbours that a graph of so many vertices does not have.
pub fn decode(vertex: Vertex, list: &[u8], vertices: u64, out: &mut Vec<Vertex>) -> Result<(), Malformed> {
    if list.is_empty() {
        return Ok(());
    }
    let (count, plain, begin) = head(list, list.len() as u64)?;
    let (codes, gaps) = list[begin..].split_at_checked(count.div_ceil(4)).ok_or(SHORT)?;
    let near = first(vertex, plain, codes, gaps)?;
    let before = out.len();
    out.resize(before + count, 0);
    let (end, _) = sum(codes, gaps, u64::from(near), true, vertices, &mut out[before..])?;
    (end == gaps.len()).then_some(()).ok_or(LONG)
}

/// Neighbours that are decoded before they are looked at: a multiple of four.
const LOOKED_AT: usize = 16;

/// Whether any neighbour of a vertex is one of some. No more of the list is decoded than it takes to find one.
///
/// # Errors
/// As [`decode`], for what is decoded.
pub fn has_any(vertex: Vertex, list: &[u8], vertices: u64, is: impl Fn(Vertex) -> bool) -> Result<bool, Malformed> {
    if list.is_empty() {
        return Ok(false);
    }
    let (mut left, plain, begin) = head(list, list.len() as u64)?;
    let (mut codes, mut gaps) = list[begin..].split_at_checked(left.div_ceil(4)).ok_or(SHORT)?;
    let near = first(vertex, plain, codes, gaps)?;
    if u64::from(near) >= vertices {
        return Err(OUTSIDE);
    }
    // The lowest of them are those that most others lead to, in graphs that grew.
    if is(near) {
        return Ok(true);
    }
    let (mut last, mut is_first, mut near) = (u64::from(near), true, [0; LOOKED_AT]);
    while left > 0 {
        let near = &mut near[..left.min(LOOKED_AT)];
        let (these, behind) = codes.split_at(near.len().div_ceil(4));
        let (end, end_at) = sum(these, gaps, last, is_first, vertices, near)?;
        (last, is_first) = (end_at, false);
        if near.iter().any(|neighbour| is(*neighbour)) {
            return Ok(true);
        }
        (left, codes, gaps) = (left - near.len(), behind, &gaps[end..]);
    }
    gaps.is_empty().then_some(false).ok_or(LONG)
}

/// A long list, whose neighbours are decoded part by part.
///
/// Invariant: `codes` and `gaps` are where in the list those of neighbour `done` begin, and `last` is the neighbour before
/// it; `done` is a multiple of four before the end.
#[derive(Clone, Debug)]
pub struct ListParts {
    vertex: Vertex,
    vertices: u64,
    list_bytes: u64,
    count: usize,
    plain: bool,
    done: usize,
    codes: u64,
    gaps: u64,
    last: u64,
}

impl ListParts {
    /// The parts of a list of so many bytes, which begins with `begin`: `HEAD_BYTES` of it, or all.
    ///
    /// # Errors
    /// A count that cannot be.
    pub fn new(vertex: Vertex, begin: &[u8], list_bytes: u64, vertices: u64) -> Result<ListParts, Malformed> {
        let (count, plain, head) = head(begin, list_bytes)?;
        let (codes, gaps) = (head as u64, (head + count.div_ceil(4)) as u64);
        (gaps <= list_bytes).then_some(()).ok_or(SHORT)?;
        Ok(ListParts {
            vertex,
            vertices,
            list_bytes,
            count,
            plain,
            done: 0,
            codes,
            gaps,
            last: 0,
        })
    }

    /// Neighbours of the list.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Neighbours that were decoded.
    pub fn done(&self) -> usize {
        self.done
    }

    /// Where in the list the codes of the next `neighbours` are: a multiple of four, or what is left.
    pub fn codes(&self, neighbours: usize) -> Extent {
        Extent {
            offset: self.codes,
            bytes: neighbours.div_ceil(4) as u64,
        }
    }

    /// Where in the list the gaps of the next `neighbours` are, which have these codes.
    ///
    /// # Errors
    /// Gaps behind the end of the list.
    pub fn gaps(&self, neighbours: usize, codes: &[u8]) -> Result<Extent, Malformed> {
        let lengths = codes.iter().flat_map(|code| lengths(*code));
        let span = Extent {
            offset: self.gaps,
            bytes: lengths.take(neighbours).map(|length| length as u64 + 1).sum(),
        };
        (span.end() <= self.list_bytes).then_some(span).ok_or(SHORT)
    }

    /// Puts the next `neighbours` into `out`, in place of what is there.
    ///
    /// # Errors
    /// Gaps that are not those of the codes, neighbours that are no vertices, a list that does not end with the last.
    pub fn decode(
        &mut self,
        neighbours: usize,
        codes: &[u8],
        gaps: &[u8],
        out: &mut Vec<Vertex>,
    ) -> Result<(), Malformed> {
        out.clear();
        out.resize(neighbours, 0);
        let is_first = self.done == 0 && neighbours > 0;
        if is_first {
            self.last = u64::from(first(self.vertex, self.plain, codes, gaps)?);
        }
        let (end, last) = sum(codes, gaps, self.last, is_first, self.vertices, out)?;
        if end != gaps.len() {
            return Err(LONG);
        }
        self.last = last;
        self.done += neighbours;
        self.codes += codes.len() as u64;
        self.gaps += gaps.len() as u64;
        if self.done == self.count && self.gaps != self.list_bytes {
            return Err(LONG);
        }
        Ok(())
    }
}

/// Bytes of the gaps of a code, each less one.
fn lengths(code: u8) -> [usize; 4] {
    [code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6].map(usize::from)
}

/// The first neighbour, of the codes and gaps of a list.
#[inline]
fn first(vertex: Vertex, plain: bool, codes: &[u8], gaps: &[u8]) -> Result<Vertex, Malformed> {
    // A copy of so few bytes would be a call.
    let word = match *gaps {
        [] => return Err(SHORT),
        [a] => [a, 0, 0, 0],
        [a, b] => [a, b, 0, 0],
        [a, b, c] => [a, b, c, 0],
        [a, b, c, d, ..] => [a, b, c, d],
    };
    let length = codes[0] & 3;
    if gaps.len() <= usize::from(length) {
        return Err(SHORT);
    }
    let gap = u32::from_le_bytes(word) & u32::MAX >> (24 - 8 * length);
    if plain {
        return Ok(gap);
    }
    let near = u64::from(gap);
    let first = i64::from(vertex) + ((near >> 1) as i64 ^ -((near & 1) as i64));
    u32::try_from(first).map_err(|_| OUTSIDE)
}

/// Gaps that are summed before a function for vectors of them is called.
const FEW: usize = 4;

/// Makes neighbours of gaps behind the neighbour `last`, which is the first of them with `is_first`. Gives the bytes of the
/// gaps, and the last neighbour: all are below it.
fn sum(
    codes: &[u8],
    gaps: &[u8],
    last: u64,
    is_first: bool,
    vertices: u64,
    out: &mut [Vertex],
) -> Result<(usize, u64), Malformed> {
    let sums = if out.len() <= FEW { few_gap_sums } else { gap_sums() };
    let (end, next) = sums(codes, gaps, last, is_first, out).ok_or(SHORT)?;
    if next >= vertices {
        return Err(OUTSIDE);
    }
    let behind = out.get(1..).unwrap_or_default();
    let is_again = !is_first && out.first().is_some_and(|first| u64::from(*first) == last);
    // All of them are looked at: the compiler compares a vector at a time then.
    let any = out
        .iter()
        .zip(behind)
        .fold(is_again, |any, (one, next)| any | (one == next));
    (!any).then_some((end, next)).ok_or(TWICE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn by_parts(vertex: Vertex, list: &[u8], vertices: u64, most: usize) -> Result<Vec<Vertex>, Malformed> {
        let (mut all, mut part) = (vec![], vec![]);
        if list.is_empty() {
            return Ok(all);
        }
        let within = |span: Extent| list.get(span.offset as usize..span.end() as usize).ok_or(SHORT);
        let begin = &list[..list.len().min(HEAD_BYTES)];
        let mut parts = ListParts::new(vertex, begin, list.len() as u64, vertices)?;
        while parts.done() < parts.count() {
            let neighbours = most.min(parts.count() - parts.done());
            let codes = within(parts.codes(neighbours))?;
            let gaps = within(parts.gaps(neighbours, codes)?)?;
            parts.decode(neighbours, codes, gaps, &mut part)?;
            assert_eq!(part.len(), neighbours);
            all.extend(&part);
        }
        Ok(all)
    }

    fn there_and_back(vertex: Vertex, neighbours: &[Vertex]) {
        let (mut bytes, mut found) = (vec![7], vec![1, 2, 3]);
        encode(vertex, neighbours, &mut bytes);
        assert!(bytes.len() - 1 <= list_bytes_max(neighbours.len()));
        assert_eq!(degree(&bytes[1..]), Ok(neighbours.len()));
        decode(vertex, &bytes[1..], 1 << 32, &mut found).unwrap();
        assert_eq!(found[..3], [1, 2, 3]);
        assert_eq!(found[3..], *neighbours);
        for wanted in neighbours.iter().chain(&[vertex, 0, 77]) {
            let is_there = has_any(vertex, &bytes[1..], 1 << 32, |neighbour| neighbour == *wanted);
            assert_eq!(is_there, Ok(neighbours.contains(wanted)));
        }
        for most in [4, 8, 400] {
            assert_eq!(by_parts(vertex, &bytes[1..], 1 << 32, most), Ok(neighbours.to_vec()));
        }
        for cut in 1..bytes.len() - 1 {
            assert!(
                decode(vertex, &bytes[1..=cut], 1 << 32, &mut found).is_err(),
                "cut at {cut}"
            );
            assert!(by_parts(vertex, &bytes[1..=cut], 1 << 32, 4).is_err(), "cut at {cut}");
        }
        if let Some(last) = neighbours.last() {
            assert!(decode(vertex, &bytes[1..], u64::from(*last), &mut found).is_err());
        }
    }

    #[test]
    fn the_farthest_neighbours() {
        there_and_back(0, &[]);
        there_and_back(0, &[0]);
        there_and_back(0, &[u32::MAX - 1]);
        there_and_back(u32::MAX - 1, &[0, 1, u32::MAX - 1]);
        there_and_back(1 << 31, &[0, 1 << 31, (1 << 31) + 1, u32::MAX - 1]);
    }

    #[test]
    fn a_neighbour_that_is_in_a_list_twice_is_refused_wherever_it_stands() {
        for length in 2..40 {
            for again in 0..length - 1 {
                let neighbours: Vec<Vertex> = (0..length).map(|at| 3 * (at - u32::from(at > again))).collect();
                let (mut bytes, mut found) = (vec![], vec![]);
                encode(7, &neighbours, &mut bytes);
                assert_eq!(decode(7, &bytes, 1000, &mut found), Err(TWICE), "{neighbours:?}");
                for most in [4, 8, 400] {
                    assert_eq!(by_parts(7, &bytes, 1000, most), Err(TWICE), "{neighbours:?} by {most}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn lists_come_back(vertex: u32, mut neighbours in prop::collection::vec(any::<u32>(), 0..70), shift in 0u32..31) {
            neighbours.iter_mut().for_each(|each| *each >>= shift);
            neighbours.sort_unstable();
            neighbours.dedup();
            there_and_back(vertex >> shift, &neighbours);
        }

        #[test]
        fn any_bytes_are_a_list_or_an_error(vertex: u32, bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let mut found = vec![];
            let whole = decode(vertex, &bytes, 1000, &mut found).map(|()| found.clone());
            prop_assert_eq!(by_parts(vertex, &bytes, 1000, 8).ok(), whole.clone().ok());
            if whole.is_ok() {
                prop_assert!(found.windows(2).all(|pair| pair[0] < pair[1]));
                prop_assert!(found.last().is_none_or(|last| *last < 1000));
                prop_assert_eq!(degree(&bytes), Ok(found.len()));
            }
        }
    }
}
