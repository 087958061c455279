//! For tests alone: the ways of sorting, each by itself.
//!
//! A sort takes the way that suits the processor, and leaves it where the data were cut unevenly too often. A call from
//! outside cannot ask for the way of another processor, and data that use up the cuts are made for that purpose or never
//! seen. As with lookups of kernels, what is handed out are plain functions on one type each, compiled here.

use super::distribute::sort_by_radix;
use super::key::Word;
use super::order::with_order;
use super::quick::{self, Quick};
use super::radix::{RadixColumns, RadixExtent, RadixFinish};
use super::slices::nothing;
use super::{sort_through, KeyOrder};
use crate::fence::vectors::Vectors;
use outcore_dtype::{f16, DType};

/// Ways of sorting words of one type; `finish` is given each word once, in ranges that are in order.
pub struct Ways<K> {
    /// As on processors without vectors.
    pub by_radix: fn(words: &mut [K], finish: RadixFinish<K>),
    /// Where this processor has vectors.
    pub by_cuts: Option<Cuts<K>>,
}

/// Sorting by cuts with whole vectors.
pub struct Cuts<K> {
    pub vectors: Vectors<K>,
    pub sort: fn(words: &mut [K], vectors: Vectors<K>, finish: RadixFinish<K>),
    /// No range is cut more often than `cuts` says.
    pub sort_within: fn(words: &mut [K], vectors: Vectors<K>, cuts: u32, finish: RadixFinish<K>),
}

pub fn ways_16() -> Ways<u16> {
    ways()
}

pub fn ways_32() -> Ways<u32> {
    ways()
}

pub fn ways_64() -> Ways<u64> {
    ways()
}

fn ways<K: Word>() -> Ways<K> {
    Ways {
        by_radix: |words, finish| {
            let spare = &mut vec![K::ZERO; words.len()][..];
            let (count, extent) = (words.len(), RadixExtent::of(words));
            let (words, spare) = (
                RadixColumns::new(words, nothing(count)),
                RadixColumns::new(spare, nothing(count)),
            );
            sort_by_radix(words, spare, extent, Some(finish));
        },
        by_cuts: K::vectors().map(|vectors| Cuts {
            vectors,
            sort: |words, vectors, finish| quick::sort(words, vectors, finish),
            sort_within: |words, vectors, cuts, finish| Quick { vectors, finish }.sort(words, cuts),
        }),
    }
}

/// [`super::sort_keys_from`] as on processors without vectors: all parts are brought together first, and then sorted in the
/// way of this processor.
///
/// # Panics
/// When `workspace` is shorter than the keys, to a multiple of eight bytes, and the keys once more.
pub fn sort_keys_through(order: KeyOrder, parts: &[&[u8]], places: &mut [&mut [u8]], workspace: &mut [u8]) {
    with_order!(order, T, D => sort_through::<T, D>(order, parts, places, workspace));
}
