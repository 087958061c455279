//! The tiles of a tile row that was read, as they are stored or as a formula makes them.

use outcore_coding::tiles::{Tile, TileRow};
use outcore_coding::Malformed;
use outcore_store::{SparseFile, TileRowRecord};

use super::formula::{Desk, Formula, RowPlace};
use crate::EngineError;

/// The error of a tile row that cannot be what was written.
pub(super) fn fault(file: &SparseFile, tile_row: u64, Malformed(what): Malformed) -> EngineError {
    EngineError::Store(file.malformed(format!("{what}, in tile row {tile_row}")))
}

/// The tiles that `is_wanted` names, by their columns of tiles.
///
/// # Errors
/// Bytes that are no tile row.
pub(super) fn tiles_of<'w>(
    file: &SparseFile,
    record: &TileRowRecord,
    bytes: &'w [u8],
    is_wanted: impl Fn(u32) -> bool,
) -> Result<Vec<Tile<'w>>, EngineError> {
    let item = file.matrix().dtype.map_or(0, |dtype| dtype.size());
    let row = TileRow::new(bytes, item).map_err(|what| fault(file, record.number, what))?;
    let wanted = |tile: &Result<Tile<'_>, Malformed>| tile.as_ref().map_or(true, |tile| is_wanted(tile.block));
    let tiles: Result<Vec<Tile<'w>>, Malformed> = row.tiles().filter(wanted).collect();
    tiles.map_err(|what| fault(file, record.number, what))
}

/// Tiles as a formula makes them on a desk, without those that keep no entry.
///
/// # Errors
/// An entry that a check of the formula refuses; places that cannot be.
pub(super) fn changed_tiles<'w>(
    file: &SparseFile,
    record: &TileRowRecord,
    tiles: Vec<Tile<'w>>,
    (formula, desk): (&Formula, &mut Desk<'w>),
) -> Result<Vec<Tile<'w>>, EngineError> {
    let place = RowPlace::of(file, record.number);
    formula.apply(tiles.into_iter(), place, desk, &|what| fault(file, record.number, what))
}

/// All tiles of a tile row as a formula makes them.
///
/// # Errors
/// As [`tiles_of`] and [`changed_tiles`].
pub(super) fn made_tiles<'w>(
    file: &SparseFile,
    record: &TileRowRecord,
    bytes: &'w [u8],
    made_by: (&Formula, &mut Desk<'w>),
) -> Result<Vec<Tile<'w>>, EngineError> {
    changed_tiles(file, record, tiles_of(file, record, bytes, |_| true)?, made_by)
}
