//! Which way sweeps go.

use std::ops::Range;

/// Which way a sweep goes through its batches; within a batch, vertices always ascend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heading {
    Ascending,
    Descending,
}

impl Heading {
    /// That of an iteration: it begins where the one before ended, with what the cache holds of that.
    pub fn of(iteration: u32) -> Heading {
        match iteration % 2 {
            0 => Heading::Ascending,
            _ => Heading::Descending,
        }
    }

    /// The next of some portions.
    pub(crate) fn next(self, portions: &mut Range<usize>) -> Option<usize> {
        match self {
            Heading::Ascending => portions.next(),
            Heading::Descending => portions.next_back(),
        }
    }
}
