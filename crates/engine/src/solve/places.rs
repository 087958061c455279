//! Where rows of the matrix are in a front.

use super::analysis::Analysis;
use super::fronts::FrontNode;

/// Places of rows in a front.
pub(super) struct FrontPlaces<'a> {
    columns: std::ops::Range<u32>,
    below: &'a [u32],
}

impl<'a> FrontPlaces<'a> {
    pub(super) fn new(analysis: &'a Analysis, node: &FrontNode) -> FrontPlaces<'a> {
        FrontPlaces {
            columns: node.columns.clone(),
            below: analysis.fronts.below(node),
        }
    }

    /// The place of a row of the front, nothing of another.
    pub(super) fn of(&self, row: u32) -> Option<u32> {
        match row < self.columns.end {
            true => row.checked_sub(self.columns.start),
            false => {
                let at = self.below.binary_search(&row).ok()?;
                Some(self.columns.len() as u32 + at as u32)
            }
        }
    }

    /// The interval of the matrix that has the rows of an interval of places, and those up to the row of the next place.
    pub(super) fn rows(&self, places: &std::ops::Range<u32>) -> std::ops::Range<u64> {
        let pivots = self.columns.len() as u32;
        let row = |place: u32| match place.checked_sub(pivots) {
            None => u64::from(self.columns.start + place),
            Some(below) => self.below.get(below as usize).map_or(u64::MAX, |row| u64::from(*row)),
        };
        row(places.start)..row(places.end)
    }

    /// How many of some ascending rows of the front lie before a place.
    pub(super) fn before(&self, rows: &[u32], place: u32) -> usize {
        let pivots = self.columns.len() as u32;
        let end = match place.checked_sub(pivots) {
            None => self.columns.start + place,
            Some(below) if (below as usize) < self.below.len() => match below {
                0 => self.columns.end,
                _ => self.below[below as usize],
            },
            Some(_) => return rows.len(),
        };
        rows.partition_point(|row| *row < end)
    }
}
