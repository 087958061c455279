//! Sorted segments, lying one behind the other, become one.
//!
//! The segments are cut together, at values, into pieces that fit the cache. A piece of few segments is merged in
//! rounds of two, without branches on the data; one of many is sorted anew, which takes fewer sweeps, and so is one with
//! NaN or a negative zero, whose words do not compare.
//!
//! Measured with 64 MiB of random `int64` (`examples/sorting.rs`, ns per element on one core of a shared machine): 3.3 for
//! 2 segments, 6 for 8, 10 for 64; about 1.6 more per round, where sorting the pieces anew takes 13 to 16 for any number.
//! One comparison at a time takes 4.4 per round, since each waits for the one before.

use super::key::{SortKey, Word};
use super::radix::{Payload, RadixColumns, DIGIT_BITS_MAX};
use super::search::gallop;
use super::{encode, nothing, small, sort_words, take, view, view_mut, with_order, words_bytes, KeyOrder};
use outcore_dtype::{f16, DType};

/// Bytes of workspace that [`merge_segments`] takes for `count` elements.
pub fn merge_workspace_bytes(order: KeyOrder, count: usize) -> usize {
    match order.dtype.size() {
        1 => 0,
        size => count * size,
    }
}

/// Merges the sorted segments of `data` into `out`, stably; segment `i` ends before element `ends[i]`.
///
/// # Panics
/// When `ends` descend or do not end with the number of elements, `out` has another length than `data`, or `workspace`
/// is shorter than [`merge_workspace_bytes`] says; perhaps, when a segment is not sorted.
pub fn merge_segments(order: KeyOrder, data: &[u8], ends: &[usize], out: &mut [u8], workspace: &mut [u8]) {
    let count = order.count("merge_segments", data.len());
    check("merge_segments", count, ends, data.len(), out.len());
    let workspace = take("merge_segments", workspace, merge_workspace_bytes(order, count));
    with_order!(order, T, D => {
        if const { size_of::<T>() == 1 } {
            out.copy_from_slice(data);
            return small::count_bytes::<D>(order.dtype, out);
        }
        let pieces = Pieces::<T, (), D> {
            data: view(data),
            out: view_mut(out),
            out_payload: nothing(count),
            spare: view_mut(workspace),
            spare_payload: nothing(count),
            position: |_| (),
        };
        pieces.merge(ends);
    })
}

/// Bytes of workspace that [`merge_index`] takes for `count` elements.
pub fn merge_index_workspace_bytes(order: KeyOrder, count: usize) -> usize {
    words_bytes(order, count) + count * size_of::<u32>()
}

/// As [`merge_segments`], and writes to `index` (`u32`) where in `data` each element was.
///
/// # Panics
/// As [`merge_segments`]; when `index` has another number of elements, or there are more than 2³².
pub fn merge_index(
    order: KeyOrder,
    data: &[u8],
    ends: &[usize],
    out: &mut [u8],
    index: &mut [u8],
    workspace: &mut [u8],
) {
    let count = order.count("merge_index", data.len());
    check("merge_index", count, ends, data.len(), out.len());
    let workspace = take("merge_index", workspace, merge_index_workspace_bytes(order, count));
    let index: &mut [u32] = view_mut(index);
    assert_eq!(index.len(), count, "merge_index: positions");
    assert!(count as u64 <= 1 << 32, "merge_index: {count} positions in 32 bits");
    let (words, positions) = workspace.split_at_mut(words_bytes(order, count));
    let words = &mut words[..count * order.dtype.size()];
    with_order!(order, T, D => {
        let pieces = Pieces::<T, u32, D> {
            data: view(data),
            out: view_mut(out),
            out_payload: index,
            spare: view_mut(words),
            spare_payload: view_mut(positions),
            position: |at| at as u32,
        };
        pieces.merge(ends);
    })
}

fn check(what: &str, count: usize, ends: &[usize], data_bytes: usize, out_bytes: usize) {
    assert_eq!(data_bytes, out_bytes, "{what}: bytes of the segments and of the result");
    assert!(
        ends.is_sorted() && ends.last().copied().unwrap_or(0) == count,
        "{what}: ends of the segments of {count} elements"
    );
}

/// Elements, their payload and as much workspace fit the second-level cache of common processors.
const PIECE_BYTES: usize = 512 << 10;
/// Segments of a piece up to which rounds of two win over sorting.
const ROUNDS_SEGMENTS_MAX: usize = 128;

struct Pieces<'a, T, P, const DESCENDING: bool> {
    data: &'a [T],
    out: &'a mut [T],
    out_payload: &'a mut [P],
    spare: &'a mut [T],
    spare_payload: &'a mut [P],
    /// The payload of the element at a place of `data`.
    position: fn(usize) -> P,
}

/// Elements of one segment, by their places.
type MergeStretch = std::ops::Range<usize>;

impl<T: SortKey, P: Payload, const DESCENDING: bool> Pieces<'_, T, P, DESCENDING> {
    /// Cuts pieces off the front of all segments until nothing is left.
    fn merge(mut self, ends: &[usize]) {
        let mut starts = 0;
        let mut segments: Vec<MergeStretch> = ends
            .iter()
            .map(|end| std::mem::replace(&mut starts, *end)..*end)
            .filter(|segment| !segment.is_empty())
            .collect();
        let piece_length = PIECE_BYTES / (size_of::<T>() + size_of::<P>());
        let mut stretches = Vec::with_capacity(segments.len());
        let mut next_bounds = Vec::with_capacity(segments.len() + 1);
        let mut step = (piece_length / segments.len().max(1)).max(1);
        let mut done = 0;
        while !segments.is_empty() {
            self.cut(&mut segments, step, &mut stretches);
            let length = stretches.iter().map(|stretch| stretch.len()).sum::<usize>();
            assert!(length > 0, "merge: a segment is not sorted");
            self.merge_piece(&stretches, done, length, &mut next_bounds);
            done += length;
            segments.retain(|segment| !segment.is_empty());
            // Where segments do not overlap, few contribute; then each may contribute more.
            let fitting = step.saturating_mul(piece_length) / length;
            step = fitting.clamp(step / 2, step * 4).clamp(1, piece_length);
        }
    }

    /// Takes from every segment what does not come behind the smallest of the segments' `step`-th elements.
    fn cut(&self, segments: &mut [MergeStretch], step: usize, stretches: &mut Vec<MergeStretch>) {
        let data = self.data;
        let candidates = segments.iter().filter(|segment| segment.len() > step);
        let bound = candidates.map(|segment| data[segment.start + step - 1]).reduce(|a, b| {
            if b.before::<DESCENDING>(a) {
                b
            } else {
                a
            }
        });
        stretches.clear();
        for segment in segments {
            let end = match bound {
                Some(bound) => gallop(&data[..segment.end], segment.start, |value| {
                    !bound.before::<DESCENDING>(value)
                }),
                None => segment.end,
            };
            if end > segment.start {
                stretches.push(segment.start..end);
            }
            segment.start = end;
        }
    }

    /// Merges `stretches` to the elements of the result from `from` on.
    fn merge_piece(&mut self, stretches: &[MergeStretch], from: usize, length: usize, bounds: &mut Vec<usize>) {
        let to = from + length;
        let (out, payload) = (&mut self.out[from..to], &mut self.out_payload[from..to]);
        let (spare, spare_payload) = (&mut self.spare[from..to], &mut self.spare_payload[from..to]);
        let rounds = usize::BITS - (stretches.len() - 1).leading_zeros();
        // The result of the last round shall be in `out`.
        let starts_in_out = rounds.is_multiple_of(2) || stretches.len() > ROUNDS_SEGMENTS_MAX;
        let (first, first_payload) = if starts_in_out {
            (&mut *out, &mut *payload)
        } else {
            (&mut *spare, &mut *spare_payload)
        };
        bounds.clear();
        let mut filled = 0;
        for stretch in stretches {
            let end = filled + stretch.len();
            first[filled..end].copy_from_slice(&self.data[stretch.clone()]);
            if !P::NOTHING {
                for (place, at) in first_payload[filled..end].iter_mut().zip(stretch.clone()) {
                    *place = (self.position)(at);
                }
            }
            filled = end;
            bounds.push(end);
        }
        if stretches.len() == 1 {
            return;
        }
        let found = encode::encode::<T, DESCENDING>(first);
        // Words of few bits are sorted in one sweep.
        let sort = stretches.len() > ROUNDS_SEGMENTS_MAX
            || found.special::<T, DESCENDING>()
            || (rounds > 1 && found.extent().bits <= DIGIT_BITS_MAX);
        if sort {
            if !starts_in_out {
                out.copy_from_slice(spare);
                payload.copy_from_slice(spare_payload);
            }
            return sort_words::<T, P, DESCENDING>(out, payload, found, view_mut(spare), spare_payload);
        }
        let mut a = RadixColumns::<T::Word, P>::new(view_mut(out), payload);
        let mut b = RadixColumns::<T::Word, P>::new(view_mut(spare), spare_payload);
        if !rounds.is_multiple_of(2) {
            std::mem::swap(&mut a, &mut b);
        }
        for _ in 0..rounds {
            round(&a, &mut b, bounds);
            std::mem::swap(&mut a, &mut b);
        }
        if let Some(finish) = encode::finish::<T, DESCENDING>() {
            finish(a.words);
        }
    }
}

/// Merges the runs of `from` by twos into `to`; `bounds` are where they end, and afterwards where the merged ones do.
fn round<K: Word, P: Payload>(from: &RadixColumns<'_, K, P>, to: &mut RadixColumns<'_, K, P>, bounds: &mut Vec<usize>) {
    let mut start = 0;
    let runs = bounds.len();
    for pair in (0..runs).step_by(2) {
        let middle = bounds[pair];
        let end = bounds[runs.min(pair + 2) - 1];
        let left = (&from.words[start..middle], &from.payload[start..middle]);
        let right = (&from.words[middle..end], &from.payload[middle..end]);
        merge_two(left, right, &mut to.words[start..end], &mut to.payload[start..end]);
        bounds[pair / 2] = end;
        start = end;
    }
    bounds.truncate(runs.div_ceil(2));
}

/// Independent merges that run in one loop, so that each waits for its own comparisons only.
const STREAMS: usize = 4;

/// One merge that is under way: what is left of both sides and where the next element goes.
#[derive(Clone, Copy)]
struct Stream {
    left: usize,
    left_end: usize,
    right: usize,
    right_end: usize,
}

fn merge_two<K: Word, P: Payload>(
    (a, a_payload): (&[K], &[P]),
    (b, b_payload): (&[K], &[P]),
    out: &mut [K],
    out_payload: &mut [P],
) {
    if a.is_empty() || b.is_empty() || b[0] >= a[a.len() - 1] {
        out[..a.len()].copy_from_slice(a);
        out[a.len()..].copy_from_slice(b);
        out_payload[..a.len()].copy_from_slice(a_payload);
        out_payload[a.len()..].copy_from_slice(b_payload);
        return;
    }
    let mut streams = split(a, b);
    loop {
        let steps = streams
            .iter()
            .map(|stream| (stream.left_end - stream.left).min(stream.right_end - stream.right))
            .min()
            .unwrap_or(0);
        if steps < 8 {
            break;
        }
        for _ in 0..steps {
            for stream in &mut streams {
                step(stream, (a, a_payload), (b, b_payload), out, out_payload);
            }
        }
    }
    for mut stream in streams {
        while stream.left < stream.left_end && stream.right < stream.right_end {
            step(&mut stream, (a, a_payload), (b, b_payload), out, out_payload);
        }
        let at = stream.left + stream.right;
        let left = stream.left..stream.left_end;
        out[at..at + left.len()].copy_from_slice(&a[left.clone()]);
        out_payload[at..at + left.len()].copy_from_slice(&a_payload[left.clone()]);
        let at = at + left.len();
        let right = stream.right..stream.right_end;
        out[at..at + right.len()].copy_from_slice(&b[right.clone()]);
        out_payload[at..at + right.len()].copy_from_slice(&b_payload[right]);
    }
}

/// Writes the next element of a stream neither side of which is empty.
#[inline(always)]
fn step<K: Word, P: Payload>(
    stream: &mut Stream,
    (a, a_payload): (&[K], &[P]),
    (b, b_payload): (&[K], &[P]),
    out: &mut [K],
    out_payload: &mut [P],
) {
    let (left, right) = (a[stream.left], b[stream.right]);
    let take_right = right < left;
    let at = stream.left + stream.right;
    out[at] = if take_right { right } else { left };
    if !P::NOTHING {
        let (left, right) = (a_payload[stream.left], b_payload[stream.right]);
        out_payload[at] = if take_right { right } else { left };
    }
    stream.left += usize::from(!take_right);
    stream.right += usize::from(take_right);
}

/// Cuts the merge of `a` and `b` into merges of equal length.
fn split<K: Word>(a: &[K], b: &[K]) -> [Stream; STREAMS] {
    let length = a.len() + b.len();
    let mut streams = [Stream {
        left: 0,
        left_end: a.len(),
        right: 0,
        right_end: b.len(),
    }; STREAMS];
    for cut in 1..STREAMS {
        let rank = length * cut / STREAMS;
        let left = taken_from_left(a, b, rank);
        streams[cut - 1].left_end = left;
        streams[cut - 1].right_end = rank - left;
        streams[cut].left = left;
        streams[cut].right = rank - left;
    }
    streams
}

/// How many of the first `rank` merged elements come from `a` (Siebert and Träff, "Perfectly load-balanced, optimal,
/// stable, parallel merge").
fn taken_from_left<K: Word>(a: &[K], b: &[K], rank: usize) -> usize {
    let (mut low, mut high) = (rank.saturating_sub(b.len()), rank.min(a.len()));
    while low < high {
        let left = low + (high - low) / 2;
        // `a[left]` precedes the last element taken from `b` unless that one is strictly smaller.
        if b[rank - left - 1] < a[left] {
            high = left;
        } else {
            low = left + 1;
        }
    }
    low
}
