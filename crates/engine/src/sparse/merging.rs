//! The entries of two tiles in one order.

/// Merges the entries of both, and their values: 0 where one has none. Gives how many there are.
pub(super) fn merge(
    entries: [&[u32]; 2],
    values: [&[u8]; 2],
    items: [usize; 2],
    (places, to): (&mut [u32], [&mut [u8]; 2]),
) -> usize {
    match items {
        [8, 8] => merge_items::<8, 8>(entries, values, places, to),
        [4, 4] => merge_items::<4, 4>(entries, values, places, to),
        [1, 1] => merge_items::<1, 1>(entries, values, places, to),
        _ => merge_any(entries, values, items, places, to),
    }
}

fn merge_items<const N: usize, const M: usize>(
    [a, b]: [&[u32]; 2],
    [x, y]: [&[u8]; 2],
    places: &mut [u32],
    [left, right]: [&mut [u8]; 2],
) -> usize {
    let ((x, _), (y, _)) = (x.as_chunks::<N>(), y.as_chunks::<M>());
    let ((left, _), (right, _)) = (left.as_chunks_mut::<N>(), right.as_chunks_mut::<M>());
    let (mut i, mut j, mut count) = (0, 0, 0);
    // Without a branch: which of two entries comes first cannot be foretold.
    while i < a.len() && j < b.len() {
        let (is_left, is_right) = (a[i] <= b[j], b[j] <= a[i]);
        places[count] = a[i].min(b[j]);
        left[count] = if is_left { x[i] } else { [0; N] };
        right[count] = if is_right { y[j] } else { [0; M] };
        i += usize::from(is_left);
        j += usize::from(is_right);
        count += 1;
    }
    for at in i..a.len() {
        (places[count], left[count], right[count]) = (a[at], x[at], [0; M]);
        count += 1;
    }
    for at in j..b.len() {
        (places[count], left[count], right[count]) = (b[at], [0; N], y[at]);
        count += 1;
    }
    count
}

fn merge_any(
    [a, b]: [&[u32]; 2],
    [x, y]: [&[u8]; 2],
    items: [usize; 2],
    places: &mut [u32],
    [left, right]: [&mut [u8]; 2],
) -> usize {
    let (mut i, mut j, mut count) = (0, 0, 0);
    while i < a.len() || j < b.len() {
        let (first, second) = (a.get(i).copied(), b.get(j).copied());
        let place = match (first, second) {
            (Some(first), Some(second)) => first.min(second),
            (first, second) => first.or(second).unwrap_or_default(),
        };
        places[count] = place;
        put(left, count, x, i, items[0], first == Some(place));
        put(right, count, y, j, items[1], second == Some(place));
        i += usize::from(first == Some(place));
        j += usize::from(second == Some(place));
        count += 1;
    }
    count
}

fn put(to: &mut [u8], at: usize, from: &[u8], place: usize, item: usize, is_there: bool) {
    let to = &mut to[at * item..(at + 1) * item];
    match is_there {
        true => to.copy_from_slice(&from[place * item..(place + 1) * item]),
        false => to.fill(0),
    }
}

/// Moves the entries that are kept, and their values, to the front; gives how many they are.
pub(super) fn compress(places: &mut [u32], values: &mut [u8], item: usize, mask: &[u8]) -> usize {
    fn items<const N: usize>(values: &mut [u8], mask: &[u8]) {
        let (values, _) = values.as_chunks_mut::<N>();
        let mut kept = 0;
        for (at, is_kept) in mask.iter().enumerate() {
            values[kept] = values[at];
            kept += usize::from(*is_kept);
        }
    }
    let mut kept = 0;
    for (at, is_kept) in mask.iter().enumerate() {
        places[kept] = places[at];
        kept += usize::from(*is_kept);
    }
    if kept == mask.len() {
        return kept;
    }
    match item {
        0 => {}
        1 => items::<1>(values, mask),
        2 => items::<2>(values, mask),
        4 => items::<4>(values, mask),
        8 => items::<8>(values, mask),
        _ => items::<16>(values, mask),
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_both_are_there_once_with_zeros_where_one_has_none() {
        let (a, b) = ([1u32, 4, 7], [2u32, 4, 9]);
        let (x, y) = ([10u64, 40, 70], [20u64, 41, 90]);
        let bytes = |numbers: &[u64; 3]| bytemuck::cast_slice::<u64, u8>(numbers).to_vec();
        for items in [[8, 8], [8, 4]] {
            let second: Vec<u8> = match items[1] {
                8 => bytes(&y),
                _ => y.iter().flat_map(|number| (*number as u32).to_ne_bytes()).collect(),
            };
            let (mut places, mut left, mut right) = ([0; 6], [0; 48], vec![0; 6 * items[1]]);
            let to = (&mut places[..], [&mut left[..], &mut right[..]]);
            assert_eq!(merge([&a, &b], [&bytes(&x), &second], items, to), 5);
            assert_eq!(places[..5], [1, 2, 4, 7, 9]);
            let number = |bytes: &[u8]| u64::from(bytes[0]);
            let left: Vec<u64> = left.chunks(8).take(5).map(number).collect();
            let right: Vec<u64> = right.chunks(items[1]).take(5).map(number).collect();
            assert_eq!((left, right), (vec![10, 0, 40, 70, 0], vec![0, 20, 41, 0, 90]));
        }
    }

    #[test]
    fn kept_entries_move_to_the_front() {
        let (mut places, mut values) = ([3, 5, 8], [1, 1, 2, 2, 3, 3]);
        assert_eq!(compress(&mut places, &mut values, 2, &[1, 0, 1]), 2);
        assert_eq!((&places[..2], &values[..4]), (&[3, 8][..], &[1, 1, 3, 3][..]));
    }
}
