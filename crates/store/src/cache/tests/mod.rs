//! The cache as its users see it: every byte right, nothing lost, nobody left waiting.

mod faults;
mod filling;
mod flusher;
mod hit_rates;
mod load;
mod serving;

use std::path::Path;
use std::sync::Arc;

use super::{ByteSpan, CacheOptions, CachePolicy, CachedFile, PageCache};
use crate::io::Mode;
use crate::{Io, Ledger};

pub(super) const PAGE: usize = 512;

pub(super) fn options() -> CacheOptions {
    CacheOptions {
        page_bytes: PAGE,
        request_bytes: 16 * PAGE,
        ..CacheOptions::default()
    }
}

/// A cache of `sets` sets.
pub(super) fn cache_of(io: &Io, sets: usize, options: CacheOptions) -> Arc<PageCache> {
    let page = options.page_bytes + super::core::PAGE_OVERHEAD;
    let bytes = (sets * 12 + options.request_bytes.div_ceil(options.page_bytes) + 1) * page;
    PageCache::new(io, &Ledger::new(1 << 30), bytes, options).unwrap()
}

pub(super) fn byte(at: usize) -> u8 {
    (at.wrapping_mul(0x9e37_79b1) >> 13) as u8
}

/// A file of `bytes` bytes that tell where they are.
pub(super) fn written(io: &Io, bytes: usize) -> &'static Path {
    let path = Path::new("pages");
    let file = io.open(path, Mode::Create).unwrap();
    let data: Vec<u8> = (0..bytes).map(byte).collect();
    io.write(&file, &data, 0).unwrap();
    path
}

pub(super) fn span(offset: usize, bytes: usize) -> ByteSpan {
    ByteSpan {
        offset: offset as u64,
        bytes: bytes as u32,
    }
}

/// Visits spans, holds every byte against the pattern, and says in which order they were served.
pub(super) fn check(file: &CachedFile, spans: &[ByteSpan]) -> Vec<usize> {
    let mut order = Vec::new();
    let mut scratch = Vec::new();
    let mut each = |index: usize, pages: super::Pages<'_>| {
        let ByteSpan { offset, bytes } = spans[index];
        let data = pages.contiguous(&mut scratch);
        assert_eq!(data.len(), bytes as usize);
        for (at, found) in data.iter().enumerate() {
            assert_eq!(*found, byte(offset as usize + at), "request {index}, byte {at}");
        }
        order.push(index);
    };
    file.visit(spans, &mut each).unwrap();
    let mut all = order.clone();
    all.sort();
    assert!(all.into_iter().eq(0..spans.len()), "each request is served once");
    order
}

/// Numbers that look random and are the same every time.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ self.0 >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((u128::from(mixed ^ mixed >> 32) * bound as u128) >> 64) as usize
    }
}

pub(super) const POLICIES: [CachePolicy; 4] = [
    CachePolicy::Lru,
    CachePolicy::Lfu,
    CachePolicy::Clock,
    CachePolicy::Gclock,
];
