//! One set of pages: all that is known of them, in two cache lines.

use std::sync::Mutex;

use crate::memory::pages::prefetch;

/// Pages of a set. Beyond 12 the hit rate hardly grows (SAFS, 2.5.2).
pub(super) const WAYS: usize = 12;

/// What a way has that had no page yet.
pub(super) const NO_FRAME: u32 = u32::MAX;

/// The places of a set's pages, one bit each.
pub(super) const ALL: u16 = (1 << WAYS) - 1;

/// Invariants, for each way:
/// 1. Its frame, if it has one, belongs to this way of this set alone; a way that is held has one.
/// 2. `loading`, `dirty` and `writing` are parts of `held`; none but `dirty` and `writing` overlap.
/// 3. A frame has an owner only while its way is loading, or while the set is locked; so a page that is held and not
///    loading can be pinned under the lock.
/// 4. The frame of a way that is writing is pinned by who writes it.
pub(super) struct Set {
    /// Half of the hash of each page's name. The whole name is the frame's, in the cache line that pinning needs anyway.
    pub(super) tags: [u32; WAYS],
    pub(super) frames: [u32; WAYS],
    /// What the policy remembers.
    pub(super) uses: [u8; WAYS],
    /// Ways that have a page.
    pub(super) held: u16,
    /// Whose page is being read.
    pub(super) loading: u16,
    /// Whose page has bytes that the file has not.
    pub(super) dirty: u16,
    /// Whose page is on its way to the file.
    pub(super) writing: u16,
    pub(super) hand: u8,
}

/// A set under its lock.
#[repr(align(128))]
pub(super) struct Line(pub(super) Mutex<Set>);

impl Line {
    /// Has both cache lines come.
    #[inline]
    pub(super) fn expect(&self) {
        prefetch(self);
    }
}

const _: () = assert!(size_of::<Line>() == 128);

/// The bits of a mask, lowest first.
pub(super) fn ways(mut mask: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let way = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (way < u16::BITS as usize).then_some(way)
    })
}

impl Set {
    pub(super) fn new(uses: [u8; WAYS], frames: [u32; WAYS]) -> Set {
        Set {
            tags: [0; WAYS],
            frames,
            uses,
            held: 0,
            loading: 0,
            dirty: 0,
            writing: 0,
            hand: 0,
        }
    }

    /// The way of the page with this tag that `is` says yes to.
    #[inline]
    pub(super) fn find(&self, tag: u32, is: impl Fn(u32) -> bool) -> Option<usize> {
        let mut same = 0u16;
        for (way, other) in self.tags.iter().enumerate() {
            same |= u16::from(*other == tag) << way;
        }
        ways(same & self.held).find(|&way| is(self.frames[way]))
    }

    /// Exchanges a page of this set with one of another: frames and all.
    pub(super) fn exchange(&mut self, way: usize, other: &mut Set, other_way: usize) {
        std::mem::swap(&mut self.tags[way], &mut other.tags[other_way]);
        std::mem::swap(&mut self.frames[way], &mut other.frames[other_way]);
        std::mem::swap(&mut self.uses[way], &mut other.uses[other_way]);
        let masks = [
            (&mut self.held, &mut other.held),
            (&mut self.loading, &mut other.loading),
            (&mut self.dirty, &mut other.dirty),
            (&mut self.writing, &mut other.writing),
        ];
        for (mine, theirs) in masks {
            let (here, there) = (*mine >> way & 1, *theirs >> other_way & 1);
            *mine = *mine & !(1 << way) | there << way;
            *theirs = *theirs & !(1 << other_way) | here << other_way;
        }
    }

    /// Forgets the page of a way.
    pub(super) fn clear(&mut self, way: usize) {
        let bit = 1 << way;
        (self.tags[way], self.held, self.loading) = (0, self.held & !bit, self.loading & !bit);
        (self.dirty, self.writing) = (self.dirty & !bit, self.writing & !bit);
    }
}
