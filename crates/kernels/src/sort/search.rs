//! Comparisons, positions in sorted keys, and whether keys are sorted.

use super::key::SortKey;
use super::{view, view_mut, with_order, KeyOrder};
use outcore_dtype::{f16, DType};
use std::cmp::Ordering;

/// Which of the places that keep the order [`searchsorted`] gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Before all equal elements.
    Left,
    /// Behind them.
    Right,
}

/// Whether the elements are in order.
pub fn is_sorted(order: KeyOrder, data: &[u8]) -> bool {
    with_order!(order, T, D => sorted::<T, D>(view(data)))
}

/// Elements that are compared before the outcome is looked at.
const GLANCE: usize = 512;

/// Whether no two neighbours are `wrong`, looked at from the front.
#[inline(always)]
fn throughout<T: Copy>(values: &[T], wrong: impl Fn(T, T) -> bool) -> bool {
    let mut from = 0;
    while from + 1 < values.len() {
        let to = values.len().min(from + GLANCE + 1);
        let (left, right) = (&values[from..to - 1], &values[from + 1..to]);
        let mut found = false;
        for (a, b) in left.iter().zip(right) {
            found |= wrong(*a, *b);
        }
        if found {
            return false;
        }
        from = to - 1;
    }
    true
}

pub fn sorted<T: SortKey, const DESCENDING: bool>(values: &[T]) -> bool {
    throughout(values, |a, b| b.before::<DESCENDING>(a))
}

/// Whether each element comes strictly before the one in front of it.
pub fn reversed<T: SortKey, const DESCENDING: bool>(values: &[T]) -> bool {
    throughout(values, |a, b| !b.before::<DESCENDING>(a))
}

/// Whether the first neighbours of `parts` look like an order or its reverse, so that a closer look is worth its while.
pub fn runs<T: SortKey, const DESCENDING: bool>(parts: &[&[u8]]) -> bool {
    let Some(first) = parts.iter().find(|part| !part.is_empty()) else {
        return true;
    };
    let first: &[T] = view(first);
    let first = &first[..first.len().min(GLANCE)];
    sorted::<T, DESCENDING>(first) || reversed::<T, DESCENDING>(first)
}

/// The order in which all of `parts` together are already: `false` for the one they are to be in, `true` for strictly the
/// opposite one.
pub fn order_of_parts<T: SortKey, const DESCENDING: bool>(parts: &[&[u8]]) -> Option<bool> {
    if !runs::<T, DESCENDING>(parts) {
        return None;
    }
    let parts: Vec<&[T]> = parts
        .iter()
        .map(|part| view(part))
        .filter(|part: &&[T]| !part.is_empty())
        .collect();
    let border = |pair: &[&[T]]| (pair[0][pair[0].len() - 1], pair[1][0]);
    let sorted = || {
        parts.iter().all(|part| sorted::<T, DESCENDING>(part))
            && parts.windows(2).map(border).all(|(a, b)| !b.before::<DESCENDING>(a))
    };
    let reversed = || {
        parts.iter().all(|part| reversed::<T, DESCENDING>(part))
            && parts.windows(2).map(border).all(|(a, b)| b.before::<DESCENDING>(a))
    };
    match (sorted(), reversed()) {
        (true, _) => Some(false),
        (false, true) => Some(true),
        _ => None,
    }
}

/// How the element `a` compares with the element `b`.
pub fn compare(order: KeyOrder, a: &[u8], b: &[u8]) -> Ordering {
    with_order!(order, T, D => {
        let (a, b): (T, T) = (bytemuck::pod_read_unaligned(a), bytemuck::pod_read_unaligned(b));
        if a.before::<D>(b) {
            Ordering::Less
        } else if b.before::<D>(a) {
            Ordering::Greater
        } else {
            Ordering::Equal
        }
    })
}

/// How many elements of `sorted` come before the element `key`: a binary search.
pub fn count_less(order: KeyOrder, sorted: &[u8], key: &[u8]) -> usize {
    with_order!(order, T, D => {
        let (sorted, key): (&[T], T) = (view(sorted), bytemuck::pod_read_unaligned(key));
        sorted.partition_point(|value| value.before::<D>(key))
    })
}

/// How many elements of `sorted` come before the element `key` or equal it.
pub fn count_less_equal(order: KeyOrder, sorted: &[u8], key: &[u8]) -> usize {
    with_order!(order, T, D => {
        let (sorted, key): (&[T], T) = (view(sorted), bytemuck::pod_read_unaligned(key));
        sorted.partition_point(|value| !key.before::<D>(*value))
    })
}

/// Where each of `values` belongs in `sorted`: `base` plus the number of elements before it (`Left`), or before it or
/// equal to it (`Right`), as `int64` into `out`.
///
/// Values that are in order themselves are found by galloping from one to the next, `O(m log(n / m))`; others by binary
/// search, several at a time so that their cache misses overlap.
pub fn searchsorted(order: KeyOrder, sorted: &[u8], values: &[u8], side: Side, base: i64, out: &mut [u8]) {
    let out: &mut [i64] = view_mut(out);
    with_order!(order, T, D => {
        let (sorted, values): (&[T], &[T]) = (view(sorted), view(values));
        assert_eq!(values.len(), out.len(), "searchsorted: values and positions");
        match side {
            Side::Left => positions(sorted, values, base, out, |element: T, value| element.before::<D>(value)),
            Side::Right => positions(sorted, values, base, out, |element: T, value| !value.before::<D>(element)),
        }
    })
}

/// Values whose searches advance together.
const TOGETHER: usize = 8;

fn positions<T: Copy>(sorted: &[T], values: &[T], base: i64, out: &mut [i64], left_of: impl Fn(T, T) -> bool + Copy) {
    // In order under `left_of` is all that galloping needs: no value belongs left of the one before.
    let mut at = 0;
    for (values, out) in values.chunks(GLANCE).zip(out.chunks_mut(GLANCE)) {
        let ascending = throughout(values, |a, b| left_of(b, a) && !left_of(a, b));
        if ascending {
            // Chunks need not follow each other.
            if at > 0 && !left_of(sorted[at - 1], values[0]) {
                at = 0;
            }
            for (value, place) in values.iter().zip(out) {
                at = gallop(sorted, at, |element| left_of(element, *value));
                *place = base + at as i64;
            }
            continue;
        }
        let (groups, rest) = values.as_chunks::<TOGETHER>();
        let (places, rest_places) = out.as_chunks_mut::<TOGETHER>();
        for (group, places) in groups.iter().zip(places) {
            *places = search_together(sorted, group, left_of).map(|at| base + at as i64);
        }
        for (value, place) in rest.iter().zip(rest_places) {
            *place = base + sorted.partition_point(|element| left_of(*element, *value)) as i64;
        }
    }
}

/// The partition point at or behind `from`, in steps that double.
pub fn gallop<T: Copy>(sorted: &[T], from: usize, left_of: impl Fn(T) -> bool) -> usize {
    let rest = &sorted[from..];
    let mut step = 1;
    while step <= rest.len() && left_of(rest[step - 1]) {
        step *= 2;
    }
    let low = step / 2;
    let high = rest.len().min(step);
    from + low + rest[low..high].partition_point(|element| left_of(*element))
}

/// Binary searches in step: the same lengths are halved for all values, without branches.
fn search_together<T: Copy>(sorted: &[T], values: &[T; TOGETHER], left_of: impl Fn(T, T) -> bool) -> [usize; TOGETHER] {
    let mut from = [0; TOGETHER];
    let mut length = sorted.len();
    while length > 1 {
        let half = length / 2;
        for lane in 0..TOGETHER {
            let right = left_of(sorted[from[lane] + half - 1], values[lane]);
            from[lane] += if right { half } else { 0 };
        }
        length -= half;
    }
    if length == 1 {
        for lane in 0..TOGETHER {
            from[lane] += usize::from(left_of(sorted[from[lane]], values[lane]));
        }
    }
    from
}
