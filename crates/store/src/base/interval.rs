//! Intervals of indices.

use std::ops::Range;

/// Consecutive indices: along an axis, of the rows of a matrix, of the elements of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Interval {
    pub start: u64,
    pub length: u64,
}

impl Interval {
    #[inline]
    pub const fn new(start: u64, length: u64) -> Interval {
        Interval { start, length }
    }

    /// The indices from `start` to before `end`; empty where `end` is not behind `start`.
    #[inline]
    pub const fn between(start: u64, end: u64) -> Interval {
        Interval {
            start,
            length: end.saturating_sub(start),
        }
    }

    /// The index behind the last.
    #[inline]
    pub const fn end(self) -> u64 {
        self.start + self.length
    }

    #[inline]
    pub const fn is_empty(self) -> bool {
        self.length == 0
    }

    /// The indices that both have.
    #[inline]
    pub fn intersection(self, other: Interval) -> Interval {
        Interval::between(self.start.max(other.start), self.end().min(other.end()))
    }

    /// The numbers of the tiles of so many indices that the interval meets.
    #[inline]
    pub fn tiles(self, tile: u64) -> Range<u64> {
        if self.is_empty() {
            return 0..0;
        }
        self.start / tile..self.end().div_ceil(tile)
    }

    #[inline]
    pub fn indices(self) -> Range<u64> {
        self.start..self.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_said_by_its_length_or_by_its_end() {
        let interval = Interval::between(3, 8);
        assert_eq!(interval, Interval::new(3, 5));
        assert_eq!((interval.end(), interval.indices()), (8, 3..8));
        assert!(Interval::between(8, 3).is_empty() && !interval.is_empty());
    }

    #[test]
    fn intersections_hold_what_both_have() {
        for (first, second) in [(0..4, 2..9), (5..6, 0..9), (0..3, 3..6), (7..9, 1..2)] {
            let of = |range: &Range<u64>| Interval::between(range.start, range.end);
            let both: Vec<u64> = first.clone().filter(|at| second.contains(at)).collect();
            let intersection = of(&first).intersection(of(&second));
            assert_eq!(intersection.indices().collect::<Vec<_>>(), both, "{first:?} {second:?}");
        }
    }

    #[test]
    fn an_interval_meets_every_tile_that_has_one_of_its_indices() {
        for (interval, tiles) in [
            ((0, 4), 0..1),
            ((3, 2), 0..2),
            ((4, 4), 1..2),
            ((7, 6), 1..4),
            ((6, 0), 0..0),
        ] {
            assert_eq!(Interval::new(interval.0, interval.1).tiles(4), tiles, "{interval:?}");
        }
    }
}
