//! Rows that lie beside each other, and columns at even distances, as a matrix of their own.

use std::sync::Arc;

use outcore_coding::tiles::{GrowingRow, Tile, TileEncoder};
use outcore_store::{Interval, PendingTile, RowBound, SparseFile, SparseOutput, SparseShape, TileRowRecord};

use super::bounds::limits_of;
use super::formula::{aligned, take, Formula, RowPlace};
use super::opened::{fault, made_tiles};
use super::operand::SparseOperand;
use super::placing::{Made, MakeTiles, TilePart, TileResult};
use super::SparseMatrix;
use crate::expr::Expr;
use crate::task::{Access, Bound, Parameters, Recipe};
use crate::{ops, EngineError};

/// Rows and columns of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartPlaces {
    pub rows: Interval,
    /// The first column, the distance to the next, and how many there are.
    pub columns: [u64; 3],
}

impl PartPlaces {
    /// # Errors
    /// Rows or columns outside of a matrix, or at no distance.
    pub fn check(&self, of: &SparseShape) -> Result<(), EngineError> {
        let [start, step, count] = self.columns;
        let last = |count: u64| (count - 1).checked_mul(step)?.checked_add(start);
        let has_columns = count == 0 || last(count).is_some_and(|last| last < of.columns);
        let has_rows = (self.rows.start.checked_add(self.rows.length)).is_some_and(|end| end <= of.rows);
        match step > 0 && has_columns && has_rows {
            true => Ok(()),
            false => Err(EngineError::Index(format!(
                "sparse: {self:?} lies outside ({}, {})",
                of.rows, of.columns
            ))),
        }
    }

    /// The shape of the part.
    pub fn shape(&self, of: &SparseShape) -> SparseShape {
        SparseShape {
            rows: self.rows.length,
            columns: self.columns[2],
            entries: 0,
            ..of.clone()
        }
    }

    fn words(&self) -> Vec<u64> {
        [&[self.rows.start, self.rows.length][..], &self.columns].concat()
    }

    pub(super) fn key(&self) -> Vec<u8> {
        self.words().iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    pub(super) fn described(&self, recipe: Recipe) -> Recipe {
        recipe.words(self.words())
    }

    /// The rows and columns that parameters describe.
    ///
    /// # Errors
    /// Parameters that describe none.
    pub(crate) fn described_by(with: &mut Parameters<'_>) -> Result<PartPlaces, EngineError> {
        let [start, length, first, step, count] = *with.words()? else {
            return Err(with.refusal("part"));
        };
        Ok(PartPlaces {
            rows: Interval::new(start, length),
            columns: [first, step, count],
        })
    }

    /// Where a column of the matrix is in the part.
    fn column(&self, at: u64) -> Option<u64> {
        let [start, step, count] = self.columns;
        let offset = at.checked_sub(start)?;
        (offset % step == 0 && offset / step < count).then_some(offset / step)
    }

    /// Columns of the part that lie among some of the matrix.
    fn columns_in(&self, columns: Interval) -> Interval {
        let [start, step, count] = self.columns;
        let before = |at: u64| at.saturating_sub(start).div_ceil(step).min(count);
        Interval::between(before(columns.start), before(columns.end()).max(before(columns.start)))
    }
}

/// A part of a stored matrix as a result that is stored.
///
/// # Errors
/// A result too large to address.
pub(super) fn part_of_file(matrix: &SparseMatrix, places: PartPlaces) -> Result<Expr, EngineError> {
    let part = MatrixPart::new(matrix, places)?;
    Ok(ops::algorithm(Arc::new(Made::new(part)), std::slice::from_ref(&matrix.tiles))?.swap_remove(0))
}

/// Tile rows of the part that one task makes.
#[derive(Clone, Debug)]
struct PartPiece {
    rows: Interval,
    /// The tiles that have their entries.
    tiles: Interval,
}

#[derive(Clone, Debug)]
struct MatrixPart {
    file: Arc<SparseFile>,
    formula: Arc<Formula>,
    places: PartPlaces,
    pieces: Arc<[PartPiece]>,
    result: TileResult,
}

/// A tile row that entries of a part come from.
struct PartSource<'r> {
    record: &'r TileRowRecord,
    tile: u64,
    bytes: std::ops::Range<usize>,
}

impl MatrixPart {
    fn new(matrix: &SparseMatrix, places: PartPlaces) -> Result<MatrixPart, EngineError> {
        let formula = match &matrix.formula {
            Some(formula) => formula.clone(),
            None => Arc::new(Formula::identity(matrix.file.matrix().dtype)?),
        };
        let shape = places.shape(matrix.file.matrix());
        let recipe = places.described(Recipe::new("sparse part"));
        let mut part = MatrixPart {
            result: TileResult::new(SparseOutput::new(&shape, formula.dtype(), vec![], false), 1, None),
            pieces: Arc::new([]),
            file: matrix.file.clone(),
            formula,
            places,
        };
        part.cut(SparseOperand::Stored(matrix.clone()).described(recipe));
        Ok(part)
    }

    /// Finds which tile rows of the part have entries at most, and makes pieces of those that begin in one tile.
    fn cut(&mut self, recipe: Recipe) {
        let side = u64::from(self.result.output.shape.side);
        let (mut pieces, mut bounds): (Vec<PartPiece>, Vec<Vec<RowBound>>) = (vec![], vec![]);
        let tiles = if self.places.columns[2] == 0 {
            0
        } else {
            self.file.tiles()
        };
        for tile in 0..tiles as u64 {
            for (record, _) in self.file.tile_rows(tile as usize) {
                let own = Interval::new(record.number * side, side).intersection(self.places.rows);
                if own.is_empty() {
                    continue;
                }
                let own = Interval::new(own.start - self.places.rows.start, own.length);
                for number in own.tiles(side) {
                    if let Some(row) = bounds.last_mut().and_then(|rows| rows.last_mut()) {
                        if row.number == number {
                            row.entries += record.entries;
                            if let Some(piece) = pieces.last_mut() {
                                piece.tiles = Interval::between(piece.tiles.start, tile + 1);
                            }
                            continue;
                        }
                    }
                    let row = RowBound {
                        number,
                        bytes: 0,
                        entries: record.entries,
                    };
                    match (pieces.last_mut(), bounds.last_mut()) {
                        (Some(piece), Some(rows)) if piece.tiles.start == tile => {
                            piece.rows = Interval::between(piece.rows.start, number + 1);
                            rows.push(row);
                        }
                        _ => {
                            bounds.push(vec![row]);
                            pieces.push(PartPiece {
                                rows: Interval::new(number, 1),
                                tiles: Interval::new(tile, 1),
                            });
                        }
                    }
                }
            }
        }
        let shape = self.result.output.shape.clone();
        for row in bounds.iter_mut().flatten() {
            row.bytes = limits_of(&shape, row.entries).bytes();
        }
        self.result = TileResult::new(SparseOutput::new(&shape, shape.dtype, bounds, false), 1, Some(recipe));
        self.pieces = pieces.into();
    }

    /// The tile rows that a tile row of the part comes from.
    fn sources(&self, piece: &PartPiece, number: u64) -> Vec<PartSource<'_>> {
        let side = u64::from(self.result.output.shape.side);
        let own = Interval::new(number * side, side.min(self.places.rows.length - number * side));
        let own = Interval::new(own.start + self.places.rows.start, own.length);
        let numbers = own.tiles(side);
        let rows = piece.tiles.indices().flat_map(|tile| {
            let rows = self.file.tile_rows(tile as usize);
            rows.map(move |(record, bytes)| PartSource { record, tile, bytes })
        });
        rows.filter(|source| numbers.contains(&source.record.number)).collect()
    }

    fn row_workspace(&self, piece: &PartPiece, bound: &RowBound) -> u64 {
        let sources = self.sources(piece, bound.number);
        let desk = |source: &PartSource<'_>| self.formula.desk_bytes(&self.file, [source.record].into_iter());
        let limits = limits_of(&self.result.output.shape, bound.entries);
        let entries = limits.entries;
        sources.iter().map(desk).sum::<u64>() + aligned(4 * entries) + aligned(entries * limits.item as u64)
    }
}

impl MakeTiles for MatrixPart {
    fn label(&self) -> String {
        "sparse part".into()
    }
    fn key(&self) -> Vec<u8> {
        [self.formula.key(), &self.places.key()].concat()
    }
    fn result(&self) -> &TileResult {
        &self.result
    }
    fn operands(&self, TilePart { tile, .. }: TilePart, each: &mut dyn FnMut(usize, u64, Access)) {
        let tiles = self.pieces[tile as usize].tiles.indices();
        tiles.for_each(|tile| each(0, tile, Access::Read));
    }
    fn workspace_bytes(&self, TilePart { tile, .. }: TilePart) -> u64 {
        let (piece, rows) = (&self.pieces[tile as usize], &self.result.output.rows[tile as usize]);
        rows.iter().map(|row| self.row_workspace(piece, row)).max().unwrap_or(0)
    }
    fn operations(&self) -> f64 {
        self.result
            .output
            .rows
            .iter()
            .flatten()
            .map(|row| row.entries as f64)
            .sum()
    }
    fn make(
        &self,
        TilePart { tile, .. }: TilePart,
        bound: &mut Bound<'_>,
        workspace: &mut [u8],
    ) -> Result<(), EngineError> {
        let (piece, rows) = (&self.pieces[tile as usize], &self.result.output.rows[tile as usize]);
        let mut pending = PendingTile::new(&mut *bound.writes[0], rows.len());
        for row in rows {
            let limits = limits_of(&self.result.output.shape, row.entries);
            let mut made = GrowingRow::begin(pending.row(), limits);
            self.row(piece, row, &bound.reads, (&mut made, &mut *workspace))?;
            let entries = made.entries();
            if entries > 0 {
                let bytes = made.finish();
                pending.add(row.number, bytes, entries as u64);
            }
        }
        Ok(())
    }
}

/// A tile whose entries go to a tile of the part, or some of them.
struct PartTile<'w> {
    tile: Tile<'w>,
    place: RowPlace,
}

impl MatrixPart {
    /// Makes the tiles of a tile row of the part.
    fn row<'w>(
        &self,
        piece: &PartPiece,
        bound: &RowBound,
        reads: &[&'w [u8]],
        (made, mut memory): (&mut GrowingRow<'_>, &'w mut [u8]),
    ) -> Result<(), EngineError> {
        let _stored = self.file.matrix().dtype.map_or(0, |dtype| dtype.size());
        let mut tiles: Vec<PartTile<'w>> = vec![];
        for source in self.sources(piece, bound.number) {
            let bytes: &'w [u8] = &reads[(source.tile - piece.tiles.start) as usize][source.bytes.clone()];
            let desk = self.formula.desk_bytes(&self.file, [source.record].into_iter());
            let mut desk = self
                .formula
                .desk(take(&mut memory, desk as usize), source.record.entries);
            let own = made_tiles(&self.file, source.record, bytes, (&self.formula, &mut desk))?;
            let place = RowPlace::of(&self.file, source.record.number);
            tiles.extend(own.into_iter().map(|tile| PartTile { tile, place }));
        }
        let item = self.result.output.shape.dtype.map_or(0, |dtype| dtype.size());
        let most = bound.entries as usize;
        let entries: &mut [u32] = bytemuck::cast_slice_mut(take(&mut memory, 4 * most));
        let values = take(&mut memory, most * item);
        let (mut encoder, mut counts) = (TileEncoder::default(), vec![]);
        let side = u64::from(self.result.output.shape.side);
        let first_row = bound.number * side;
        let height = side.min(self.places.rows.length - first_row) as usize;
        let blocks = self.blocks(&tiles);
        for near in blocks.chunk_by(|one, next| one.0 == next.0) {
            let block = near[0].0;
            let of = PartBlock {
                part: self,
                first_row: first_row + self.places.rows.start,
                height,
                block,
                item,
            };
            let near: Vec<&PartTile<'_>> = near.iter().map(|(_, tile)| &tiles[*tile]).collect();
            let count = of.collect(&near, (&mut counts, entries, values))?;
            if count > 0 {
                made.add(&mut encoder, block as u32, &entries[..count], &values[..count * item]);
            }
        }
        Ok(())
    }

    /// The columns of tiles of the part that entries of some tiles may go to, ascending, and which tiles these are.
    fn blocks(&self, tiles: &[PartTile<'_>]) -> Vec<(u64, usize)> {
        let side = u64::from(self.result.output.shape.side);
        let of = |(at, tile)| self.columns_of(tile).tiles(side).map(move |block| (block, at));
        let mut blocks: Vec<(u64, usize)> = tiles.iter().enumerate().flat_map(of).collect();
        blocks.sort_unstable();
        blocks
    }

    /// The columns of the part that lie in a tile.
    fn columns_of(&self, tile: &PartTile<'_>) -> Interval {
        let first = u64::from(tile.tile.block) * tile.place.side;
        let width = tile.place.width(tile.tile.block);
        self.places.columns_in(Interval::new(first, width))
    }
}

/// A tile of the part.
struct PartBlock<'p> {
    part: &'p MatrixPart,
    /// Its first row, in the matrix.
    first_row: u64,
    /// Its rows.
    height: usize,
    block: u64,
    item: usize,
}

impl PartBlock<'_> {
    /// Calls `each` with the number of every entry of a tile that goes here, and its row and column here.
    fn walk(&self, tile: &PartTile<'_>, mut each: impl FnMut(usize, u32, u32)) -> Result<(), EngineError> {
        let side = u64::from(self.part.result.output.shape.side);
        let column = u64::from(tile.tile.block) * tile.place.side;
        let extent = (tile.place.height as usize, tile.place.width(tile.tile.block) as usize);
        let end = self.first_row + self.height as u64;
        let mut at = 0;
        let walked = tile.tile.for_each(extent.0, extent.1, |r, c| {
            let row = tile.place.first + u64::from(r);
            if row >= self.first_row && row < end {
                if let Some(to) = self.part.places.column(column + u64::from(c)) {
                    if to / side == self.block {
                        each(at, (row - self.first_row) as u32, (to % side) as u32);
                    }
                }
            }
            at += 1;
        });
        let number = tile.place.first / tile.place.side;
        walked.map_err(|what| fault(&self.part.file, number, what))
    }

    /// Puts the entries that go here in order, and their values, and gives how many they are: by counting those of each
    /// row, whose columns ascend from tile to tile.
    fn collect(
        &self,
        tiles: &[&PartTile<'_>],
        (counts, entries, values): (&mut Vec<u32>, &mut [u32], &mut [u8]),
    ) -> Result<usize, EngineError> {
        counts.clear();
        counts.resize(self.height, 0);
        for tile in tiles {
            self.walk(tile, |_, row, _| counts[row as usize] += 1)?;
        }
        let mut sum = 0;
        for count in counts.iter_mut() {
            sum += std::mem::replace(count, sum);
        }
        for tile in tiles {
            self.walk(tile, |at, row, column| {
                let place = &mut counts[row as usize];
                let to = *place as usize;
                *place += 1;
                entries[to] = row << 16 | column;
                let bytes = &tile.tile.values[at * self.item..(at + 1) * self.item];
                values[to * self.item..(to + 1) * self.item].copy_from_slice(bytes);
            })?;
        }
        Ok(sum as usize)
    }
}
