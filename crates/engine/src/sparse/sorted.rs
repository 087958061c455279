//! Tiles of a matrix made of sorted entries, once it is known how many each tile row has.

use std::sync::Arc;

use outcore_coding::tiles::{GrowingRow, TileEncoder};
use outcore_store::{Interval, PendingTile, RowBound, SparseOutput, SparseShape};

use super::bounds::limits_of;
use super::formula::{aligned, take};
use super::places::{Places, TileNumber};
use super::placing::{Made, MakeTiles, TilePart, TileResult};
use crate::expr::Expr;
use crate::task::{Access, Bound, Grid};
use crate::{ops, EngineError};

/// Buckets that are counted, at most.
const BUCKETS_MAX: u64 = 1 << 18;
/// Entries of which a task makes tiles, unless one bucket has more.
const PART_ENTRIES: u64 = 1 << 18;
/// Bytes by which several tile rows of a bucket may be longer than as many of one length.
const UNEVEN_BYTES: u64 = 128;

/// How entries are counted before they are sorted: by tile rows, each cut into columns of tiles as far as there are not too
/// many buckets; of very many tile rows, some together.
#[derive(Clone, Debug)]
pub(super) struct Buckets {
    places: Places,
    tile_rows: u64,
    /// Bits of the number of a tile row within its bucket.
    coarse: u32,
    /// Bits of the number of a bucket within its tile row.
    fine: u32,
}

impl Buckets {
    pub fn of(shape: &SparseShape, places: Places) -> Buckets {
        let tile_rows = shape.rows.div_ceil(u64::from(shape.side)).max(1);
        let (mut coarse, mut fine) = (0, 0);
        while (tile_rows - 1) >> coarse >= BUCKETS_MAX {
            coarse += 1;
        }
        while !places.is_wide && fine < places.block && tile_rows << (fine + 1) <= BUCKETS_MAX {
            fine += 1;
        }
        Buckets {
            places,
            tile_rows,
            coarse,
            fine,
        }
    }

    pub fn count(&self) -> u64 {
        (((self.tile_rows - 1) >> self.coarse) + 1) << self.fine
    }

    /// Bits of the first key below the number of its bucket.
    pub fn bits(&self) -> u32 {
        match self.places.is_wide {
            true => self.coarse,
            false => self.places.block + 2 * self.places.side + self.coarse - self.fine,
        }
    }

    /// Counts of so many entries that give the largest file, and the most tiles: as many in each tile row, and where they are
    /// fewer than tile rows, one here and there.
    pub fn foreseen(&self, entries: u64) -> Vec<u64> {
        let rows = self.count() >> self.fine;
        let before = |row: u64| (u128::from(row) * u128::from(entries) / u128::from(rows)) as u64;
        let mut counts = vec![0; self.count() as usize];
        for row in 0..rows {
            counts[(row << self.fine) as usize] = before(row + 1) - before(row);
        }
        counts
    }

    /// Tile rows that begin with one of a number, with so many entries, at most: those that have entries.
    fn rows(&self, first: u64, entries: u64) -> u64 {
        entries.min(self.tile_rows - first).min(1 << self.coarse)
    }
}

/// A matrix of sorted columns: keys, the most significant first, then values, if any. `inputs` are those, or any node
/// where there are no entries.
///
/// # Errors
/// A result too large to address.
pub(super) fn sorted_matrix(
    shape: &SparseShape,
    buckets: &Buckets,
    counts: &[u64],
    columns: &[Expr],
    inputs: &[Expr],
) -> Result<Expr, EngineError> {
    if counts.len() as u64 != buckets.count() {
        return Err(EngineError::Internal("counts of other tile rows".into()));
    }
    let grids = columns.iter().map(|column| column.grid()).collect();
    let sorted = Sorted::new(shape, buckets, counts, (grids, inputs.len()));
    Ok(ops::algorithm(Arc::new(Made::new(sorted)), inputs)?.swap_remove(0))
}

/// A tile of the result: some tile rows, or one that is made in parts.
#[derive(Clone, Debug)]
struct SortedPiece {
    /// Positions of the entries of each part.
    parts: Vec<Interval>,
    /// Entries of the largest bucket.
    most: u64,
}

#[derive(Clone, Debug)]
struct Sorted {
    places: Places,
    columns: Vec<Grid>,
    counts: Arc<[u64]>,
    pieces: Arc<[SortedPiece]>,
    result: TileResult,
}

/// Entries at positions cut where buckets end, into parts as large as they may be.
fn parts_of(start: u64, counts: &[u64]) -> Vec<Interval> {
    let (mut parts, mut at): (Vec<Interval>, u64) = (vec![], start);
    // No part is without entries: the last one ends the tile row.
    for &count in counts.iter().filter(|count| **count > 0) {
        match parts.last_mut() {
            Some(part) if part.length + count <= PART_ENTRIES => part.length += count,
            _ => parts.push(Interval::new(at, count)),
        }
        at += count;
    }
    parts
}

impl Sorted {
    fn new(shape: &SparseShape, buckets: &Buckets, counts: &[u64], (columns, inputs): (Vec<Grid>, usize)) -> Sorted {
        let (mut pieces, mut rows): (Vec<SortedPiece>, Vec<Vec<RowBound>>) = (vec![], vec![]);
        let mut at = 0;
        for (row, counts) in counts.chunks(1 << buckets.fine).enumerate() {
            let entries: u64 = counts.iter().sum();
            if entries == 0 {
                continue;
            }
            let parts = parts_of(at, counts);
            let most = counts.iter().copied().max().unwrap_or(0);
            let first = (row as u64) << buckets.coarse;
            let among = buckets.rows(first, entries);
            // Evenly over its tile rows entries take most.
            let bounds = (0..among).map(|row| {
                let entries = entries / among + u64::from(row < entries % among);
                let beyond = if among > 1 { UNEVEN_BYTES } else { 0 };
                RowBound {
                    number: first + row,
                    bytes: limits_of(shape, entries).bytes() + beyond,
                    entries,
                }
            });
            match (pieces.last_mut(), rows.last_mut()) {
                (
                    Some(SortedPiece {
                        parts: before,
                        most: largest,
                    }),
                    Some(rows),
                ) if before.len() == 1 && before[0].length + entries <= PART_ENTRIES => {
                    before[0].length += entries;
                    *largest = most.max(*largest);
                    rows.extend(bounds);
                }
                _ => {
                    rows.push(bounds.collect());
                    pieces.push(SortedPiece { parts, most });
                }
            }
            at += entries;
        }
        let output = SparseOutput::new(shape, shape.dtype, rows, false);
        Sorted {
            result: TileResult::new(output, inputs, None),
            places: buckets.places,
            columns,
            counts: counts.into(),
            pieces: pieces.into(),
        }
    }

    fn item(&self) -> usize {
        self.result.output.shape.dtype.map_or(0, |dtype| dtype.size())
    }

    fn positions(&self, TilePart { tile, part }: TilePart) -> Interval {
        self.pieces[tile as usize].parts[part as usize]
    }
}

impl MakeTiles for Sorted {
    fn label(&self) -> String {
        "sparse tiles".into()
    }
    fn key(&self) -> Vec<u8> {
        let SparseShape { rows, columns, .. } = self.result.output.shape;
        let words = [rows, columns, self.result.output.shape.side.into()];
        let words = words.iter().chain(&*self.counts);
        words.flat_map(|word| word.to_le_bytes()).collect()
    }
    fn result(&self) -> &TileResult {
        &self.result
    }
    fn parts(&self, tile: u64) -> u64 {
        self.pieces[tile as usize].parts.len() as u64
    }
    fn operands(&self, part: TilePart, each: &mut dyn FnMut(usize, u64, Access)) {
        let positions = self.positions(part);
        for (set, column) in self.columns.iter().enumerate() {
            positions
                .tiles(column.tile[0])
                .for_each(|tile| each(set, tile, Access::Read));
        }
    }
    fn workspace_bytes(&self, TilePart { tile, .. }: TilePart) -> u64 {
        let most = self.pieces[tile as usize].most;
        aligned(4 * most) + aligned(most * self.item() as u64)
    }
    fn operations(&self) -> f64 {
        self.counts.iter().sum::<u64>() as f64
    }
    fn make(&self, part: TilePart, bound: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let (piece, bounds) = (
            &self.pieces[part.tile as usize],
            &self.result.output.rows[part.tile as usize],
        );
        let positions = self.positions(part);
        let mut reads = &bound.reads[..];
        let columns = self.columns.iter().map(|column| {
            let tiles = positions.tiles(column.tile[0]);
            let (own, rest) = reads.split_at(tiles.clone().count());
            reads = rest;
            SortedColumn {
                tiles: own,
                first: tiles.start * column.tile[0],
                length: column.tile[0],
                item: column.dtype.size() as u64,
            }
        });
        let columns: Vec<SortedColumn<'_>> = columns.collect();
        let runs = self.runs(positions, &columns)?;
        let mut pending = PendingTile::new(&mut *bound.writes[0], bounds.len());
        let is_in_parts = piece.parts.len() > 1;
        for row in runs.chunk_by(|one, next| one.tile.0 == next.tile.0) {
            let own = row.iter().map(|run| run.positions.length).sum();
            let entries = if is_in_parts { bounds[0].entries } else { own };
            let limits = limits_of(&self.result.output.shape, entries);
            let mut made = match part.part {
                0 => GrowingRow::begin(pending.row(), limits),
                _ => GrowingRow::again(pending.row(), limits),
            };
            self.row(row, &columns, (&mut made, &mut *workspace))?;
            if !is_in_parts || part.part + 1 == piece.parts.len() as u64 {
                let entries = made.entries() as u64;
                let bytes = made.finish();
                pending.add(row[0].tile.0, bytes, entries);
            }
        }
        Ok(())
    }
}

/// Some tiles of a column.
struct SortedColumn<'a> {
    tiles: &'a [&'a [u8]],
    /// The position of their first element.
    first: u64,
    /// Elements of a tile.
    length: u64,
    item: u64,
}

impl<'a> SortedColumn<'a> {
    /// As many of the elements at positions as lie in one tile.
    fn part(&self, positions: Interval) -> &'a [u8] {
        let at = positions.start - self.first;
        let within = at % self.length;
        let length = positions.length.min(self.length - within);
        let bytes = (within * self.item) as usize..((within + length) * self.item) as usize;
        &self.tiles[(at / self.length) as usize][bytes]
    }

    fn keys(&self, positions: Interval) -> &'a [u64] {
        bytemuck::cast_slice(self.part(positions))
    }
}

/// Sorted entries of one tile.
struct SortedRun {
    tile: TileNumber,
    positions: Interval,
}

impl Sorted {
    /// Where the entries of each tile are.
    fn runs(&self, positions: Interval, columns: &[SortedColumn<'_>]) -> Result<Vec<SortedRun>, EngineError> {
        let (mut runs, mut at): (Vec<SortedRun>, u64) = (vec![], positions.start);
        while at < positions.end() {
            let rest = Interval::between(at, positions.end());
            let places = columns[self.places.keys() - 1].keys(rest);
            let number = self.places.tile(places[0]);
            let mut tile = self.places.row_and_block(number);
            let mut most = places.len();
            if self.places.is_wide {
                let rows = columns[0].keys(rest);
                tile.0 = rows[0];
                most = most.min(rows.partition_point(|row| *row <= tile.0));
            }
            let length = places[..most].partition_point(|place| self.places.tile(*place) <= number) as u64;
            match runs.last_mut() {
                Some(last) if last.tile == tile => last.positions.length += length,
                Some(last) if last.tile > tile => {
                    return Err(EngineError::Argument("sparse: entries are out of order".into()));
                }
                _ => runs.push(SortedRun {
                    tile,
                    positions: Interval::new(at, length),
                }),
            }
            at += length;
        }
        Ok(runs)
    }

    /// Adds the tiles of a tile row.
    fn row(
        &self,
        runs: &[SortedRun],
        columns: &[SortedColumn<'_>],
        (made, mut memory): (&mut GrowingRow<'_>, &mut [u8]),
    ) -> Result<(), EngineError> {
        let item = self.item();
        let most = runs.iter().map(|run| run.positions.length).max().unwrap_or(0) as usize;
        let entries: &mut [u32] = bytemuck::cast_slice_mut(take(&mut memory, 4 * most));
        let values = take(&mut memory, most * item);
        let mut encoder = TileEncoder::default();
        for run in runs {
            let count = run.positions.length as usize;
            let (entries, values) = (&mut entries[..count], &mut values[..count * item]);
            self.put_places(run, &columns[self.places.keys() - 1], entries)?;
            if let Some(column) = columns.get(self.places.keys()) {
                let (mut done, mut rest) = (0, run.positions);
                while done < values.len() {
                    let part = column.part(rest);
                    values[done..done + part.len()].copy_from_slice(part);
                    done += part.len();
                    rest = Interval::between(rest.start + part.len() as u64 / column.item, rest.end());
                }
            }
            made.add(&mut encoder, run.tile.1, entries, values);
        }
        Ok(())
    }

    /// Puts the places of a run within their tile.
    fn put_places(&self, run: &SortedRun, column: &SortedColumn<'_>, entries: &mut [u32]) -> Result<(), EngineError> {
        let mut done = 0;
        while done < entries.len() {
            let rest = Interval::between(run.positions.start + done as u64, run.positions.end());
            let places = column.keys(rest);
            for (entry, place) in entries[done..].iter_mut().zip(places) {
                *entry = self.places.inside(*place);
            }
            done += places.len();
        }
        let shape = &self.result.output.shape;
        let inside = |number: u64, length: u64| length.saturating_sub(number * u64::from(shape.side));
        let extent = [inside(run.tile.0, shape.rows), inside(run.tile.1.into(), shape.columns)];
        let is_outside = |entry: &u32| u64::from(entry >> 16) >= extent[0] || u64::from(entry & 0xffff) >= extent[1];
        let side = u64::from(shape.side);
        if extent.iter().any(|length| *length < side) && entries.iter().any(is_outside) {
            return Err(EngineError::Argument("sparse: entries lie outside the matrix".into()));
        }
        match entries.windows(2).all(|pair| pair[0] < pair[1]) {
            true => Ok(()),
            false => Err(EngineError::Argument("sparse: two entries are at one place".into())),
        }
    }
}
