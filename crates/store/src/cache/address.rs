//! Which set a page belongs to, in a table that grows and shrinks by single sets (linear hashing).

use crate::memory::pages::doublings;

/// A page of a file: the file's number in the upper 24 bits, the page's in the lower 40.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Name(pub(super) u64);

const PAGE_BITS: u32 = 40;

/// Files that one cache can name in its life.
pub(super) const FILES_MAX: u64 = 1 << (64 - PAGE_BITS);

/// Pages that a file can have.
pub(super) const PAGES_MAX: u64 = 1 << PAGE_BITS;

impl Name {
    pub(super) fn new(file: u32, page: u64) -> Name {
        debug_assert!(page < PAGES_MAX);
        Name(u64::from(file) << PAGE_BITS | page)
    }

    pub(super) fn file(self) -> u32 {
        (self.0 >> PAGE_BITS) as u32
    }

    pub(super) fn page(self) -> u64 {
        self.0 & (PAGES_MAX - 1)
    }

    /// The part of the hash that a set keeps.
    pub(super) fn tag(self) -> u32 {
        (self.0.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32) as u32
    }

    /// A place on a circle of 2^64. Steps by the golden ratio: any run of neighbours lies evenly, so that the pages of a
    /// file that is read all over fill all sets alike, which random places would not (Knuth 6.4).
    fn place(self) -> u64 {
        let start = u64::from(self.file()).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let start = (start ^ start >> 29).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.page()
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(start ^ start >> 32)
    }
}

/// The number of the page's set among `sets`, at least `unit`.
///
/// With n = unit × 2^level sets and `split` more, a set below `split` has been split in two: set i's pages went to i and
/// n + i. `hash0` picks among n sets, `hash1` among 2n. Here the place's first digit, to the base `unit`, and `level` bits
/// after it name one of n equal arcs of the circle; the last bit counts most, so that halving an arc adds a set at the end.
pub(super) fn set_of(name: Name, unit: usize, sets: usize) -> usize {
    let level = doublings(unit, sets);
    let digits = u128::from(name.place()) * unit as u128;
    let (first, rest) = ((digits >> 64) as usize, (digits as u64).reverse_bits() as usize);
    let hash = |level: u32| first + unit * (rest & ((1 << level) - 1));
    let finer = hash(level + 1);
    if finer < sets {
        finer
    } else {
        hash(level)
    }
}

/// The set that is split to make set `sets`, or that takes its pages back.
pub(super) fn partner(unit: usize, sets: usize) -> usize {
    sets - (unit << doublings(unit, sets))
}

/// The largest number of sets up to `wanted` that comes about by doubling a small one, and that one.
pub(super) fn even(wanted: usize) -> (usize, usize) {
    let level = wanted.ilog2().saturating_sub(4);
    let unit = wanted >> level;
    (unit, unit << level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_set_takes_pages_from_its_partner_alone() {
        for unit in [1, 3, 16, 29] {
            for sets in unit..unit * 9 {
                let from = partner(unit, sets);
                assert!(from < sets);
                for page in 0..2000 {
                    let name = Name::new(page as u32 % 3, page);
                    let (before, after) = (set_of(name, unit, sets), set_of(name, unit, sets + 1));
                    assert!(before == after || (before, after) == (from, sets));
                }
            }
        }
    }

    #[test]
    fn the_pages_of_a_file_fill_all_sets_alike() {
        let (unit, sets) = even(1000);
        assert!(sets > 930);
        let mut pages = vec![0u32; sets];
        for page in 0..20 * sets as u64 {
            pages[set_of(Name::new(7, page), unit, sets)] += 1;
        }
        assert!(pages.iter().all(|count| (17..=23).contains(count)), "{pages:?}");
    }

    #[test]
    fn strides_do_not_crowd_a_few_sets() {
        let (unit, sets) = even(1000);
        for stride in [2, 3, 10, 64, 100, 1000, 4096, 65536, 1 << 20] {
            let mut pages = vec![0u32; sets];
            for step in 0..12 * sets as u64 {
                pages[set_of(Name::new(1, step * stride), unit, sets)] += 1;
            }
            assert!(pages.iter().all(|count| *count <= 30), "stride {stride}");
        }
    }
}
