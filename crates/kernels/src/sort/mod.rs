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
#[doc(hidden)]
pub mod internals;
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

pub use gather::{gather_items, scatter_items};
pub use merge::{merge_index, merge_index_workspace_bytes, merge_segments, merge_workspace_bytes};
pub use order::KeyOrder;
pub use search::{compare, count_less, count_less_equal, is_sorted, searchsorted, Side};
pub use sift::{nan_key, sift, Sifted};
pub use spread::{spread_index, spread_keys, spread_workspace_bytes, Splitters, SPLITTERS_MAX};

use key::{SortKey, Word};
use order::with_order;
use outcore_dtype::{f16, DType};
use radix::{Payload, RadixColumns, RadixExtent, RadixFinish};
use slices::{nothing, take, view, view_mut, Filling};

/// Bytes of workspace that [`sort_keys`] takes for `count` elements.
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
            if const { size_of::<T>() == 1 } {
                small::count_bytes::<D>(order.dtype, view_mut(data));
            } else {
                let found = encode::encode::<T, D>(data);
                sort_words::<T, (), D>(data, nothing(count), found, view_mut(workspace), nothing(count));
            }
        }
    })
}

/// Bytes of workspace that [`sort_keys_from`] takes for `count` elements in one place, or in several.
pub fn sort_keys_from_workspace_bytes(order: KeyOrder, count: usize, in_one_place: bool) -> usize {
    fn vectors<T: SortKey, const DESCENDING: bool>() -> bool {
        T::Word::vectors().is_some()
    }
    match (with_order!(order, T, D => vectors::<T, D>()), in_one_place) {
        (true, true) => 0,
        (true, false) => keys_bytes(order, count),
        (false, true) => sort_workspace_bytes(order, count),
        (false, false) => keys_bytes(order, count) + sort_workspace_bytes(order, count),
    }
}

/// Bytes of keys, to a multiple of what every key is aligned to.
fn keys_bytes(order: KeyOrder, count: usize) -> usize {
    (count * order.dtype.size()).next_multiple_of(size_of::<u64>())
}

/// Sorts the concatenation of `parts` into `places`, one behind the other, which it fills exactly.
///
/// As [`sort_keys`] after a copy; where the processor has vectors, the copy and the first sweep of the sort are one, and
/// only what is in several places is sorted elsewhere first.
///
/// # Panics
/// As [`sort_keys`]; when parts and places are not of one length.
pub fn sort_keys_from(order: KeyOrder, parts: &[&[u8]], places: &mut [&mut [u8]], workspace: &mut [u8]) {
    let bytes: usize = places.iter().map(|place| place.len()).sum();
    let total: usize = parts.iter().map(|part| part.len()).sum();
    assert_eq!(total, bytes, "sort_keys_from: bytes of the parts and of the result");
    let count = order.count("sort_keys_from", bytes);
    let wanted = sort_keys_from_workspace_bytes(order, count, places.len() <= 1);
    let workspace = take("sort_keys_from", workspace, wanted);
    with_order!(order, T, D => {
        if const { !<T as SortKey>::Word::HAS_VECTORS } {
            return sort_through::<T, D>(order, parts, places, workspace);
        }
        let Some(vectors) = <T as SortKey>::Word::vectors() else {
            return sort_through::<T, D>(order, parts, places, workspace);
        };
        let decode = encode::finish::<T, D>().unwrap_or(|_| {});
        let is_reversed = search::order_of_parts::<T, D>(parts);
        match (places, is_reversed) {
            (places, Some(is_reversed)) => put_parts::<T>(parts, places, is_reversed),
            ([place], None) => quick::sort_parts::<T, D>(parts, view_mut(place), vectors, decode, |_| ()),
            (places, None) => {
                let mut filling = Filling { places, at: 0 };
                let put = |words: &[_]| filling.put(bytemuck::cast_slice(words));
                quick::sort_parts::<T, D>(parts, view_mut(&mut workspace[..bytes]), vectors, decode, put);
            }
        }
    });
}

/// Copies `parts` to `places`, one behind the other or from the end.
fn put_parts<T: SortKey>(parts: &[&[u8]], places: &mut [&mut [u8]], is_reversed: bool) {
    const STRIP: usize = 2048;
    let mut buffer = [T::zeroed(); STRIP];
    let mut filling = Filling { places, at: 0 };
    if !is_reversed {
        return parts.iter().for_each(|part| filling.put(part));
    }
    for values in parts.iter().rev().flat_map(|part| view::<u8, T>(part).rchunks(STRIP)) {
        let turned = &mut buffer[..values.len()];
        turned.copy_from_slice(values);
        turned.reverse();
        filling.put(bytemuck::cast_slice(turned));
    }
}

/// Sorts `parts` in workspace, or in the only place, and copies them to the places.
fn sort_through<T: SortKey, const DESCENDING: bool>(
    order: KeyOrder,
    parts: &[&[u8]],
    places: &mut [&mut [u8]],
    workspace: &mut [u8],
) {
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    let count = bytes / size_of::<T>();
    let sort = |keys: &mut [u8], spare: &mut [u8]| {
        let spare = take("sort_keys_from", spare, sort_workspace_bytes(order, count));
        if const { size_of::<T>() == 1 } || search::runs::<T, DESCENDING>(parts) {
            copy_parts(parts, keys);
            sort_keys(order, keys, spare);
        } else {
            let keys: &mut [T] = view_mut(keys);
            let found = encode::encode_parts::<T, DESCENDING>(parts, keys);
            sort_words::<T, (), DESCENDING>(keys, nothing(count), found, view_mut(spare), nothing(count));
        }
    };
    if let [place] = places {
        return sort(place, workspace);
    }
    let (keys, spare) = workspace.split_at_mut(keys_bytes(order, count));
    let keys = &mut keys[..bytes];
    sort(keys, spare);
    Filling { places, at: 0 }.put(keys);
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
    columns: RadixColumns<'_, K, P>,
    spare: RadixColumns<'_, K, P>,
    extent: RadixExtent<K>,
    finish: Option<RadixFinish<K>>,
) {
    if const { !(K::HAS_VECTORS && P::NOTHING) } {
        return distribute::sort_by_radix(columns, spare, extent, finish);
    }
    match K::vectors() {
        Some(vectors) => quick::sort(columns.words, vectors, finish.unwrap_or(|_| {})),
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
    let mut columns = RadixColumns::new(view_mut(keys), &mut *payload);
    let mut spare = RadixColumns::new(spare_words, spare_payload);
    // Integers are words all through.
    if const { T::ZEROS.is_none() } || !found.special::<T, DESCENDING>() {
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
