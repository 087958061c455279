//! Where the records of a variable are: one a chunk, at equal distances.

use crate::base::interval::Interval;
use crate::chunked::manifest::UnitPlace;
use crate::chunked::one_file::UnitPlaces;

/// The records of a variable.
pub(super) struct RecordPlaces {
    pub begin: u64,
    /// Bytes of a record of this variable, and from one to the next.
    pub bytes: u64,
    pub distance: u64,
}

impl UnitPlaces for RecordPlaces {
    fn place(&self, unit: u64) -> Option<UnitPlace> {
        Some(UnitPlace {
            at: Interval::new(self.begin + unit * self.distance, self.bytes),
            skipped: 0,
        })
    }

    fn is_empty(&self) -> bool {
        false
    }
}
