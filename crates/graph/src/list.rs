//! Lists of neighbours: coding and decoding.

use super::Vertex;

/// What is wrong with the bytes of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// Bytes of four gaps, at most.
const GROUP: usize = 16;

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

/// The head of a list: neighbours, whether the first stands for itself, and the bytes behind.
fn head(list: &[u8]) -> Result<(usize, bool, &[u8]), Malformed> {
    let (mut value, mut shift) = (0u64, 0);
    for (at, byte) in list.iter().enumerate().take(5) {
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            let count = value >> 1;
            // Every gap has a byte at least, so that no count is believed beyond the bytes there are.
            if count == 0 || count > list.len() as u64 {
                break;
            }
            return Ok((count as usize, value & 1 == 1, &list[at + 1..]));
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
    head(list).map(|(count, ..)| count)
}

const MASKS: [u32; 4] = [0xff, 0xffff, 0xff_ffff, 0xffff_ffff];

/// Puts the neighbours of a vertex into `out`, in place of what is there.
///
/// # Errors
/// Bytes that are no list, or neighbours that a graph of so many vertices does not have.
pub fn decode(vertex: Vertex, list: &[u8], vertices: u64, out: &mut Vec<Vertex>) -> Result<(), Malformed> {
    out.clear();
    if list.is_empty() {
        return Ok(());
    }
    let (count, plain, rest) = head(list)?;
    let short = Malformed("a list that is shorter than its neighbours");
    let (controls, gaps) = rest.split_at_checked(count.div_ceil(4)).ok_or(short)?;
    out.resize(count, 0);
    let mut at = 0;
    // Gaps first, sums after: there is nothing to wait for in either.
    let mut groups = out.chunks_exact_mut(4);
    let mut codes = controls.iter();
    for (group, code) in groups.by_ref().zip(codes.by_ref()) {
        let lengths = [code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6].map(usize::from);
        match gaps.get(at..).and_then(|gaps| gaps.first_chunk::<GROUP>()) {
            Some(bytes) => {
                let word = u128::from_le_bytes(*bytes);
                let mut shift = 0;
                for (gap, length) in group.iter_mut().zip(lengths) {
                    *gap = (word >> shift) as u32 & MASKS[length];
                    shift += 8 * (length + 1);
                }
                at += shift / 8;
            }
            None => at = slowly(gaps, at, lengths, group).ok_or(short)?,
        }
    }
    let tail = groups.into_remainder();
    if let Some(code) = codes.next() {
        let lengths = [code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6].map(usize::from);
        at = slowly(gaps, at, lengths, tail).ok_or(short)?;
    }
    if at != gaps.len() {
        return Err(Malformed("a list that is longer than its neighbours"));
    }
    sum(vertex, plain, vertices, out)
}

/// Gaps near the end, where there are not sixteen bytes to look at. Gives where they end.
fn slowly(gaps: &[u8], mut at: usize, lengths: [usize; 4], group: &mut [Vertex]) -> Option<usize> {
    for (gap, length) in group.iter_mut().zip(lengths) {
        let bytes = gaps.get(at..at + length + 1)?;
        let mut word = [0; 4];
        word[..bytes.len()].copy_from_slice(bytes);
        *gap = u32::from_le_bytes(word);
        at += length + 1;
    }
    Some(at)
}

/// Makes neighbours of gaps. All of them are below the last.
fn sum(vertex: Vertex, plain: bool, vertices: u64, out: &mut [Vertex]) -> Result<(), Malformed> {
    let outside = Malformed("a neighbour that is no vertex of the graph");
    if !plain {
        let near = u64::from(out[0]);
        let first = i64::from(vertex) + ((near >> 1) as i64 ^ -((near & 1) as i64));
        out[0] = u32::try_from(first).map_err(|_| outside)?;
    }
    let mut last = 0u64;
    for gap in out.iter_mut() {
        last += u64::from(*gap);
        *gap = last as u32;
    }
    (last < vertices).then_some(()).ok_or(outside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn there_and_back(vertex: Vertex, neighbours: &[Vertex]) {
        let (mut bytes, mut found) = (vec![7], vec![1, 2, 3]);
        encode(vertex, neighbours, &mut bytes);
        assert!(bytes.len() - 1 <= list_bytes_max(neighbours.len()));
        assert_eq!(degree(&bytes[1..]), Ok(neighbours.len()));
        decode(vertex, &bytes[1..], 1 << 32, &mut found).unwrap();
        assert_eq!(found, neighbours);
        for cut in 1..bytes.len() - 1 {
            assert!(
                decode(vertex, &bytes[1..=cut], 1 << 32, &mut found).is_err(),
                "cut at {cut}"
            );
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
        there_and_back(u32::MAX - 1, &[0, 0, 1, u32::MAX - 1]);
        there_and_back(1 << 31, &[0, 1 << 31, (1 << 31) + 1, u32::MAX - 1]);
    }

    proptest! {
        #[test]
        fn lists_come_back(vertex: u32, mut neighbours in prop::collection::vec(any::<u32>(), 0..70), shift in 0u32..31) {
            neighbours.iter_mut().for_each(|each| *each >>= shift);
            neighbours.sort_unstable();
            there_and_back(vertex >> shift, &neighbours);
        }

        #[test]
        fn any_bytes_are_a_list_or_an_error(vertex: u32, bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let mut found = vec![];
            if decode(vertex, &bytes, 1000, &mut found).is_ok() {
                prop_assert!(found.windows(2).all(|pair| pair[0] <= pair[1]));
                prop_assert!(found.last().is_none_or(|last| *last < 1000));
                prop_assert_eq!(degree(&bytes), Ok(found.len()));
            }
        }
    }
}
