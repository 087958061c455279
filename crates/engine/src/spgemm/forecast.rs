//! What the product of two sparse matrices will read, group by group as it runs, and the most that it will write.

use std::collections::{BTreeMap, BTreeSet};

use outcore_coding::tiles::{rows_bytes, ENTRIES_MAX};
use outcore_sparse::rows_product;
use outcore_store::{Io, PAGE};

use super::gustavson::StoredProduct;
use super::meeting::{blocks_of_tile, tile_cost, Meeting, RowRequest, TileColumns};
use super::operands::{Shares, SparseProduct, COPIES};
use crate::live;
use crate::run::Session;
use crate::EngineError;

/// The bytes that a product will read and write.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProductForecast {
    /// Bytes that are read of the first matrix, the second, and the mask; what is the same file counts once.
    pub read_bytes: [u64; 3],
    /// Whether exactly these are read: sums have room whatever they come to, and all tiles are known.
    pub exact: bool,
    /// Groups of tile rows of the first matrix.
    pub groups: u64,
    /// The most entries of the result, and the most bytes that are written.
    pub entries: u64,
    pub written_bytes: u64,
    /// Bytes of memory that are held.
    pub peak_bytes: u64,
}

/// The bytes that [`super::StoredProduct`] will read in a session, from the directories of the matrices; reads these, and the heads of
/// tile rows.
///
/// # Errors
/// As the product, of what is known before.
pub fn forecast(product: &StoredProduct<'_>, session: &Session) -> Result<ProductForecast, EngineError> {
    let what = &product.product;
    let (memory, io) = (live::forecast(session, product).shares.reading, session.io());
    let shape = what.check()?;
    rows_product(what.semiring, what.dtype).ok_or_else(|| what.no_semiring())?;
    let shares = Shares::of(what, memory, Shares::workers(memory, session.options().threads) as u64);
    let meeting = Meeting::new(what, shares, io)?;
    let mut said = Foreseen {
        what,
        io,
        seen: BTreeSet::new(),
        forecast: ProductForecast {
            read_bytes: [0, meeting.head_bytes, 0],
            exact: true,
            ..ProductForecast::default()
        },
        entries_of_second: (0..what.second.file.tiles())
            .flat_map(|tile| what.second.file.tile_rows(tile).map(|(record, _)| record.entries))
            .collect(),
        room: shares.sums / (COPIES * (8 + what.dtype.size() as u64)),
        meeting: &meeting,
        again: 0,
        longest: 0,
    };
    let mut next = what.tiles.start;
    let mut bytes = PAGE as u64;
    while next < what.tiles.end {
        let (group, after) = meeting.group(next, shares.first);
        for entries in said.group(&group)? {
            said.forecast.entries = said.forecast.entries.saturating_add(entries);
            let own = rows_bytes(entries, shape.layout()).next_multiple_of(64);
            bytes = bytes.saturating_add(own).saturating_add(RECORD_BYTES);
        }
        next = after;
    }
    // A group that is begun again is never larger than half of what it was.
    let attempts = u64::from(said.longest.checked_ilog2().unwrap_or(0)) + 1;
    if !said.forecast.exact {
        said.forecast.read_bytes[1] += said.again.saturating_mul(attempts);
    }
    Ok(ProductForecast {
        written_bytes: bytes,
        peak_bytes: memory,
        ..said.forecast
    })
}

/// Bytes of a tile row in the directory of a file.
const RECORD_BYTES: u64 = 40;

/// A forecast in the making.
struct Foreseen<'a> {
    what: &'a SparseProduct<'a>,
    io: &'a Io,
    meeting: &'a Meeting<'a>,
    /// Tiles of the second matrix that are in memory, where all of it may stay.
    seen: BTreeSet<usize>,
    forecast: ProductForecast,
    /// Of each tile row.
    entries_of_second: Vec<u64>,
    /// Entries of sums that there is room for.
    room: u64,
    /// Bytes of the second matrix that a group takes when it is begun again, and the most tile rows of one.
    again: u64,
    longest: usize,
}

impl Foreseen<'_> {
    /// Counts what a group reads; gives the most entries of each of its tile rows.
    fn group(&mut self, group: &[usize]) -> Result<Vec<u64>, EngineError> {
        let (meeting, first) = (self.meeting, &self.what.first.file);
        let mut rows: Vec<(u64, u64, TileColumns)> = vec![];
        for tile in group {
            let cost = tile_cost(first, *tile, self.io)?;
            if !meeting.same.first_is_second || self.seen.insert(*tile) {
                self.forecast.read_bytes[0] += cost;
            }
            let blocks = blocks_of_tile(self.what.first, *tile, self.io)?;
            let listed = first.tile_rows(*tile).map(|(record, _)| record).zip(blocks);
            rows.extend(
                listed
                    .filter(|(record, _)| meeting.is_wanted(record.number))
                    .map(|(record, blocks)| (record.number, record.entries, blocks)),
            );
        }
        self.forecast.groups += u64::from(!group.is_empty());
        self.longest = self.longest.max(rows.len());
        let masks = self.mask(rows.iter().map(|(number, ..)| *number), &rows)?;
        let wanted = |at: usize| RowRequest {
            number: rows[at].0,
            first: rows[at].2.as_deref(),
            mask: masks[at].as_deref(),
        };
        let needed = meeting.needed((0..rows.len()).map(wanted));
        let mut bytes = 0;
        for tile in &needed {
            if !meeting.stays || self.seen.insert(*tile) {
                bytes += tile_cost(&self.what.second.file, *tile, self.io)?;
            }
        }
        let entries: Vec<u64> = rows.iter().map(|row| self.most(row)).collect();
        let sum = entries.iter().fold(0u64, |sum, own| sum.saturating_add(*own));
        let most = entries.iter().copied().max().unwrap_or(0);
        let fits = sum.saturating_add(most) <= self.room && most <= ENTRIES_MAX as u64;
        let is_known = rows.iter().all(|(.., blocks)| blocks.is_some()) && self.knows_masks(&masks);
        self.forecast.exact &= is_known && (meeting.stays || rows.len() < 2 || fits);
        if !meeting.stays && !fits && rows.len() > 1 {
            // Tile row by tile row, and what was begun before.
            self.again = self.again.max(bytes);
            bytes = 0;
            for at in 0..rows.len() {
                for tile in meeting.needed([wanted(at)].into_iter()) {
                    bytes += tile_cost(&self.what.second.file, tile, self.io)?;
                }
            }
        }
        self.forecast.read_bytes[1] += bytes;
        Ok(entries)
    }

    /// The tiles of the mask in each tile row of a group, where there is one, and what is read of it.
    fn mask(
        &mut self,
        numbers: impl Iterator<Item = u64>,
        rows: &[(u64, u64, TileColumns)],
    ) -> Result<Vec<TileColumns>, EngineError> {
        let Some((mask, _)) = self.what.mask else {
            return Ok(rows.iter().map(|_| None).collect());
        };
        if self.meeting.same.mask_is_first {
            return Ok(rows.iter().map(|(.., blocks)| blocks.clone()).collect());
        }
        let mut found = BTreeMap::new();
        for tile in self.meeting.mask_tiles(numbers) {
            if !self.meeting.same.mask_is_second || self.seen.insert(tile) {
                self.forecast.read_bytes[2] += tile_cost(&mask.file, tile, self.io)?;
            }
            let numbers = mask.file.tile_rows(tile).map(|(record, _)| record.number);
            found.extend(numbers.zip(blocks_of_tile(mask, tile, self.io)?));
        }
        let of_row = |(number, ..): &(u64, u64, TileColumns)| found.remove(number).unwrap_or(Some(vec![]));
        Ok(rows.iter().map(of_row).collect())
    }

    /// Whether what is read does not depend on tiles of the mask that are not known.
    fn knows_masks(&self, masks: &[TileColumns]) -> bool {
        self.meeting.head_bytes == 0 || masks.iter().all(Option::is_some)
    }

    /// The most entries of a tile row of the product.
    fn most(&self, (number, entries, blocks): &(u64, u64, TileColumns)) -> u64 {
        let each = &self.entries_of_second;
        let terms = match blocks {
            None => u128::from(*entries) * u128::from(self.meeting.terms(None, each)),
            Some(blocks) => blocks
                .iter()
                .map(|(block, own)| u128::from(*own) * u128::from(self.meeting.terms(Some(*block), each)))
                .sum(),
        };
        // More are an error.
        terms.min(self.meeting.places(*number)).min(ENTRIES_MAX as u128) as u64
    }
}
