//! Sorting, merging and searching of keys.
//!
//! **Invariant.** The order is total: ascending or descending by value, -0 equal to +0, NaN last in both directions and
//! equal to NaN. Every sort and merge is stable and moves the elements' own bits, so the result is a function of the
//! sequence alone, however it was cut into runs.
//!
//! Workspace is the caller's: each kernel has a function beside it that says how many bytes it takes.

mod distribute;
mod encode;
mod gather;
mod key;
mod merge;
mod order;
mod quick;
mod radix;
mod search;
mod sift;
mod slices;
mod small;
mod spread;
#[cfg(test)]
mod tests;

pub use gather::{gather_items, scatter_items};
pub use merge::{merge_index, merge_index_workspace_bytes, merge_segments, merge_workspace_bytes};
pub use order::KeyOrder;
pub use search::{compare, count_less, count_less_equal, is_sorted, searchsorted, Side};
pub use sift::{nan_key, sift, Sifted};
pub use spread::{spread_index, spread_keys, spread_workspace_bytes, Splitters, SPLITTERS_MAX};

use key::{SortKey, Word};
use order::with_order;
use outcore_dtype::{f16, DType};
use radix::{Columns, Extent, Finish, Payload};
use slices::{nothing, take, view, view_mut, Filling};

/// Bytes of workspace that [`sort_keys`] and [`sort_keys_from`] take for `count` elements.
pub fn sort_workspace_bytes(order: KeyOrder, count: usize) -> usize {
    match order.dtype.size() {
        1 => 0,
        size => count * size,
    }
}

/// Sorts `data` where it lies.
///
/// `O(n)` for sorted and for reversed data. Else the words are cut in two again and again with vectors of the processor
/// ([`quick`]), or sorted by radix ([`radix`]) where it has none; see the figures there.
///
/// # Panics
/// When `workspace` is shorter than [`sort_workspace_bytes`] says, or a slice is not aligned to the elements.
pub fn sort_keys(order: KeyOrder, data: &mut [u8], workspace: &mut [u8]) {
    let count = order.count("sort_keys", data.len());
    let workspace = take("sort_keys", workspace, sort_workspace_bytes(order, count));
    with_order!(order, T, D => {
        let data: &mut [T] = view_mut(data);
        if !already::<T, (), D>(data, nothing(count)) {
            if size_of::<T>() == 1 {
                small::count_bytes::<D>(order.dtype, view_mut(data));
            } else {
                let found = encode::encode::<T, D>(data);
                sort_words::<T, (), D>(data, nothing(count), found, view_mut(workspace), nothing(count));
            }
        }
    })
}

/// Sorts the concatenation of `parts` into `places`, one behind the other, which it fills exactly.
///
/// As [`sort_keys`] after a copy; the copy and the first sweep of the sort are one. Takes `keys`, as long as the parts
/// together, as workspace as well, unless there is one place only.
pub fn sort_keys_from(
    order: KeyOrder,
    parts: &[&[u8]],
    places: &mut [&mut [u8]],
    keys: &mut [u8],
    workspace: &mut [u8],
) {
    if let [place] = places {
        return sort_parts(order, parts, place, workspace, None);
    }
    let room: usize = places.iter().map(|place| place.len()).sum();
    assert_eq!(room, keys.len(), "sort_keys_from: bytes of the places and of the keys");
    sort_parts(order, parts, keys, workspace, Some(Filling { places, at: 0 }));
}

/// Sorts `parts` in `keys`, and copies them from there to `places`.
fn sort_parts(
    order: KeyOrder,
    parts: &[&[u8]],
    keys: &mut [u8],
    workspace: &mut [u8],
    mut places: Option<Filling<'_, '_>>,
) {
    let count = order.count("sort_keys_from", keys.len());
    let workspace = take("sort_keys_from", workspace, sort_workspace_bytes(order, count));
    let total: usize = parts.iter().map(|part| part.len()).sum();
    assert_eq!(
        total,
        keys.len(),
        "sort_keys_from: bytes of the parts and of the result"
    );
    with_order!(order, T, D => {
        if size_of::<T>() == 1 || search::runs::<T, D>(parts) {
            copy_parts(parts, keys);
            sort_keys(order, keys, workspace);
        } else {
            let decode = encode::finish::<T, D>().unwrap_or(|_| {});
            let done = quick::sort_parts::<T, D>(parts, view_mut(keys), view_mut(workspace), |words| {
                decode(words);
                if let Some(places) = &mut places {
                    places.put(bytemuck::cast_slice(words));
                }
            });
            if done {
                return;
            }
            let keys: &mut [T] = view_mut(keys);
            let found = encode::encode_parts::<T, D>(parts, keys);
            sort_words::<T, (), D>(keys, nothing(count), found, view_mut(workspace), nothing(count));
        }
    });
    if let Some(places) = &mut places {
        places.put(keys);
    }
}

fn copy_parts(parts: &[&[u8]], out: &mut [u8]) {
    let mut rest = out;
    for part in parts {
        let place;
        (place, rest) = rest.split_at_mut(part.len());
        place.copy_from_slice(part);
    }
}

/// Bytes of workspace that [`sort_index`] takes for `count` elements.
pub fn sort_index_workspace_bytes(order: KeyOrder, count: usize) -> usize {
    words_bytes(order, count) + count * size_of::<u32>()
}

/// Bytes of `count` keys, to a multiple of what positions are aligned to.
fn words_bytes(order: KeyOrder, count: usize) -> usize {
    (count * order.dtype.size()).next_multiple_of(size_of::<u32>())
}

/// Sorts `keys` where they lie and writes to `index` (`u32`) where each of them was.
///
/// # Panics
/// As [`sort_keys`]; when `index` has another number of elements, or there are more than 2³².
pub fn sort_index(order: KeyOrder, keys: &mut [u8], index: &mut [u8], workspace: &mut [u8]) {
    let count = order.count("sort_index", keys.len());
    let workspace = take("sort_index", workspace, sort_index_workspace_bytes(order, count));
    let index: &mut [u32] = view_mut(index);
    assert_eq!(index.len(), count, "sort_index: positions");
    assert!(count as u64 <= 1 << 32, "sort_index: {count} positions in 32 bits");
    for (position, place) in index.iter_mut().enumerate() {
        *place = position as u32;
    }
    let (words, positions) = workspace.split_at_mut(words_bytes(order, count));
    let words = &mut words[..count * order.dtype.size()];
    with_order!(order, T, D => {
        let keys: &mut [T] = view_mut(keys);
        if !already::<T, u32, D>(keys, index) {
            let found = encode::encode::<T, D>(keys);
            let positions = view_mut(positions);
            sort_words::<T, u32, D>(keys, index, found, view_mut(words), positions);
        }
    })
}

/// Whether `values` were in order, or are now because they were in strictly the opposite order.
fn already<T: SortKey, P: Payload, const DESCENDING: bool>(values: &mut [T], payload: &mut [P]) -> bool {
    if search::sorted::<T, DESCENDING>(values) {
        return true;
    }
    let reversed = search::reversed::<T, DESCENDING>(values);
    if reversed {
        values.reverse();
        payload.reverse();
    }
    reversed
}

/// Sorts `columns` stably, with `spare` as workspace, in the way that is fastest here.
fn sort_all<K: Word, P: Payload>(
    columns: Columns<'_, K, P>,
    spare: Columns<'_, K, P>,
    extent: Extent<K>,
    finish: Option<Finish<K>>,
) {
    match K::vectors() {
        Some(vectors) if P::NOTHING => quick::sort(columns.words, spare.words, vectors, finish.unwrap_or(|_| {})),
        _ => distribute::sort_by_radix(columns, spare, extent, finish),
    }
}

/// Sorts what [`encode::encode`] has turned into words, and turns them back.
fn sort_words<T: SortKey, P: Payload, const DESCENDING: bool>(
    keys: &mut [T],
    payload: &mut [P],
    found: encode::Found<T::Word>,
    spare_words: &mut [T::Word],
    spare_payload: &mut [P],
) {
    let finish = encode::finish::<T, DESCENDING>();
    let mut columns = Columns::new(view_mut(keys), &mut *payload);
    let mut spare = Columns::new(spare_words, spare_payload);
    if !found.special::<T, DESCENDING>() {
        return sort_all(columns, spare, found.extent(), finish);
    }
    let apart = encode::set_apart::<T, P, DESCENDING>(&mut columns, &mut spare);
    let numbers = apart.number_count;
    let (sorted, workspace) = (columns.range(0, numbers), spare.range(0, numbers));
    sort_all(sorted, workspace, apart.numbers.extent(), finish);
    encode::decode::<T, DESCENDING>(&mut columns.words[numbers..]);
    let end = numbers + apart.zero_count;
    encode::put_zeros::<T, P, DESCENDING>(&mut keys[..end], &mut payload[..end], numbers);
}
