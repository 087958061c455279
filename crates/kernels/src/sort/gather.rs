//! Items of any size moved by an index.

use super::view;

/// `target[i] = source[index[i]]`, for items of `item_bytes` and positions of `u32`.
///
/// # Panics
/// When a position lies outside `source`, or `target` and `index` differ in length.
pub fn gather_items(item_bytes: usize, index: &[u8], source: &[u8], target: &mut [u8]) {
    let index = positions("gather_items", item_bytes, index, target.len());
    match item_bytes {
        1 => gather::<1>(index, source, target),
        2 => gather::<2>(index, source, target),
        4 => gather::<4>(index, source, target),
        8 => gather::<8>(index, source, target),
        16 => gather::<16>(index, source, target),
        _ => {
            for (place, from) in target.chunks_exact_mut(item_bytes).zip(index) {
                let from = *from as usize * item_bytes;
                place.copy_from_slice(&source[from..from + item_bytes]);
            }
        }
    }
}

/// `target[index[i]] = source[i]`, for items of `item_bytes` and positions of `u32`.
///
/// # Panics
/// When a position lies outside `target`, or `source` and `index` differ in length.
pub fn scatter_items(item_bytes: usize, index: &[u8], source: &[u8], target: &mut [u8]) {
    let index = positions("scatter_items", item_bytes, index, source.len());
    match item_bytes {
        1 => scatter::<1>(index, source, target),
        2 => scatter::<2>(index, source, target),
        4 => scatter::<4>(index, source, target),
        8 => scatter::<8>(index, source, target),
        16 => scatter::<16>(index, source, target),
        _ => {
            for (item, to) in source.chunks_exact(item_bytes).zip(index) {
                let to = *to as usize * item_bytes;
                target[to..to + item_bytes].copy_from_slice(item);
            }
        }
    }
}

fn positions<'a>(what: &str, item_bytes: usize, index: &'a [u8], bytes: usize) -> &'a [u32] {
    let index: &[u32] = view(index);
    assert!(item_bytes > 0, "{what}: items of no size");
    assert_eq!(
        index.len() * item_bytes,
        bytes,
        "{what}: {} positions of items of {item_bytes} bytes",
        index.len()
    );
    index
}

fn gather<const N: usize>(index: &[u32], source: &[u8], target: &mut [u8]) {
    let (source, _) = source.as_chunks::<N>();
    let (target, _) = target.as_chunks_mut::<N>();
    for (place, from) in target.iter_mut().zip(index) {
        *place = source[*from as usize];
    }
}

fn scatter<const N: usize>(index: &[u32], source: &[u8], target: &mut [u8]) {
    let (source, _) = source.as_chunks::<N>();
    let (target, _) = target.as_chunks_mut::<N>();
    for (item, to) in source.iter().zip(index) {
        target[*to as usize] = *item;
    }
}
