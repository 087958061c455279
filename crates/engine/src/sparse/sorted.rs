//! Tiles of a matrix made of sorted entries, once it is known how many each tile row has.

use std::sync::Arc;

use outcore_coding::tiles::{put_tiles, segments_bytes_most, Tile, TileEncoder};
use outcore_store::{Interval, PendingTile, RowBound, SparseOutput, SparseShape};

use super::bounds::{item_of, row_bytes, tiles_most};
use super::formula::{aligned, take};
use super::multiply::listed_grid;
use super::places::{Places, TileNumber};
use super::placing::{ends_of, Made, MakeTiles, PLACED};
use crate::expr::Expr;
use crate::task::{Access, Bound, Grid};
use crate::{ops, EngineError};

/// Buckets of tile rows that are counted, at most.
const BUCKETS_MAX: u64 = 1 << 20;
/// Entries of which a task makes tiles, unless one bucket has more.
const PIECE_ENTRIES: u64 = 1 << 18;

/// Entries of each bucket of tile rows: of each tile row, unless there are very many.
#[derive(Clone, Debug)]
pub(super) struct BucketCounts {
    tile_rows: u64,
    /// Bits of the number of a tile row within its bucket.
    bits: u32,
    counts: Vec<u64>,
}

impl BucketCounts {
    /// The buckets of a matrix, not counted yet.
    pub fn of(shape: &SparseShape) -> BucketCounts {
        let tile_rows = shape.rows.div_ceil(u64::from(shape.side)).max(1);
        let mut bits = 0;
        while (tile_rows - 1) >> bits >= BUCKETS_MAX {
            bits += 1;
        }
        BucketCounts {
            tile_rows,
            bits,
            counts: vec![],
        }
    }

    pub fn bits(&self) -> u32 {
        self.bits
    }

    pub fn count(&self) -> u64 {
        ((self.tile_rows - 1) >> self.bits) + 1
    }

    /// # Errors
    /// Another number of counts.
    pub fn with(self, counts: &[u64]) -> Result<BucketCounts, EngineError> {
        match counts.len() as u64 == self.count() {
            true => Ok(BucketCounts {
                counts: counts.to_vec(),
                ..self
            }),
            false => Err(EngineError::Internal("counts of other tile rows".into())),
        }
    }

    /// Tile rows of a bucket with so many entries, at most: those that have entries.
    fn rows(&self, bucket: usize, entries: u64) -> u64 {
        let first = (bucket as u64) << self.bits;
        entries.min(self.tile_rows - first).min(1 << self.bits)
    }
}

/// A matrix of sorted columns: keys, the most significant first, then values, if any. `inputs` are those, or any node
/// where there are no entries.
///
/// # Errors
/// A result too large to address.
pub(super) fn sorted_matrix(
    shape: SparseShape,
    places: Places,
    buckets: BucketCounts,
    columns: &[Expr],
    inputs: &[Expr],
) -> Result<Expr, EngineError> {
    let grids = columns.iter().map(|column| column.grid()).collect();
    let sorted = Sorted::new(shape, places, buckets, grids, inputs.len());
    Ok(ops::algorithm(Arc::new(Made(sorted)), inputs)?.swap_remove(0))
}

/// Buckets that one task makes a tile of.
#[derive(Clone, Debug)]
struct SortedPiece {
    positions: Interval,
    /// Entries of its largest bucket.
    most: u64,
}

#[derive(Clone, Debug)]
struct Sorted {
    places: Places,
    columns: Vec<Grid>,
    inputs: usize,
    counts: Arc<[u64]>,
    pieces: Arc<[SortedPiece]>,
    output: SparseOutput,
    results: [Grid; 2],
}

impl Sorted {
    fn new(shape: SparseShape, places: Places, buckets: BucketCounts, columns: Vec<Grid>, inputs: usize) -> Sorted {
        let (mut pieces, mut rows): (Vec<SortedPiece>, Vec<Vec<RowBound>>) = (vec![], vec![]);
        let mut at = 0;
        for (bucket, &entries) in buckets.counts.iter().enumerate().filter(|(_, entries)| **entries > 0) {
            let is_full = pieces
                .last()
                .is_none_or(|piece| piece.positions.length + entries > PIECE_ENTRIES);
            if is_full {
                rows.push(vec![]);
                pieces.push(SortedPiece {
                    positions: Interval::new(at, 0),
                    most: 0,
                });
            }
            if let (Some(piece), Some(rows)) = (pieces.last_mut(), rows.last_mut()) {
                piece.positions.length += entries;
                piece.most = piece.most.max(entries);
                // Evenly over its tile rows they take most.
                let among = buckets.rows(bucket, entries);
                rows.extend((0..among).map(|row| {
                    let entries = entries / among + u64::from(row < entries % among);
                    RowBound {
                        number: ((bucket as u64) << buckets.bits) + row,
                        bytes: row_bytes(&shape, entries),
                        entries,
                    }
                }));
            }
            at += entries;
        }
        let output = SparseOutput::new(&shape, shape.dtype, rows, false);
        Sorted {
            results: [listed_grid(&output.lengths), ends_of(pieces.len() as u64)],
            output,
            places,
            columns,
            inputs,
            counts: buckets.counts.into(),
            pieces: pieces.into(),
        }
    }

    /// Keys of an entry.
    fn keys(&self) -> usize {
        1 + usize::from(self.places.is_wide)
    }
}

impl MakeTiles for Sorted {
    fn label(&self) -> String {
        "sparse tiles".into()
    }
    fn key(&self) -> Vec<u8> {
        let SparseShape { rows, columns, .. } = self.output.shape;
        let words = [rows, columns, self.output.shape.side.into()];
        let words = words.iter().chain(&*self.counts);
        words.flat_map(|word| word.to_le_bytes()).collect()
    }
    fn output(&self) -> &SparseOutput {
        &self.output
    }
    fn results(&self) -> &[Grid] {
        &self.results
    }
    fn tiles(&self) -> u64 {
        self.pieces.len() as u64
    }
    fn operands(&self, tile: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let positions = self.pieces[tile as usize].positions;
        for (set, column) in self.columns.iter().enumerate() {
            positions
                .tiles(column.tile[0])
                .for_each(|tile| each(set, tile, Access::Read));
        }
    }
    fn sets(&self) -> [usize; 2] {
        [self.inputs, self.inputs + PLACED]
    }
    fn workspace_bytes(&self, tile: u64) -> u64 {
        let (most, item) = (self.pieces[tile as usize].most, item_of(&self.output.shape));
        let tiles = tiles_most(&self.output.shape, most);
        let staged = aligned(4 * most) + aligned(most * item);
        staged + segments_bytes_most(tiles, most) + most * item + 2 * tiles * aligned(1)
    }
    fn operations(&self) -> f64 {
        self.counts.iter().sum::<u64>() as f64
    }
    fn make(&self, tile: u64, bound: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let positions = self.pieces[tile as usize].positions;
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
        let mut pending = PendingTile::new(&mut *bound.writes[0], self.output.rows[tile as usize].len());
        for row in runs.chunk_by(|one, next| one.tile.0 == next.tile.0) {
            let made = self.row(row, &columns, &mut *workspace)?;
            let bytes = put_tiles(&made, item_of(&self.output.shape) as usize, pending.row());
            let entries = made.iter().map(|tile| tile.entries as u64).sum();
            pending.add(row[0].tile.0, bytes, entries);
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
            let places = columns[self.keys() - 1].keys(rest);
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
                    return Err(EngineError::Internal("entries are out of order".into()));
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

    /// The tiles of a tile row.
    fn row<'w>(
        &self,
        runs: &[SortedRun],
        columns: &[SortedColumn<'_>],
        mut memory: &'w mut [u8],
    ) -> Result<Vec<Tile<'w>>, EngineError> {
        let item = item_of(&self.output.shape) as usize;
        let most = runs.iter().map(|run| run.positions.length).max().unwrap_or(0) as usize;
        let entries: &mut [u32] = bytemuck::cast_slice_mut(take(&mut memory, 4 * most));
        let values = take(&mut memory, most * item);
        let mut encoder = TileEncoder::default();
        let mut made = vec![];
        for run in runs {
            let count = run.positions.length as usize;
            let (entries, values) = (&mut entries[..count], &mut values[..count * item]);
            self.put_places(run, &columns[self.keys() - 1], entries)?;
            if item > 0 {
                let column = &columns[self.keys()];
                let mut done = 0;
                while done < values.len() {
                    let left = run.positions.start + (done / item) as u64;
                    let part = column.part(Interval::between(left, run.positions.end()));
                    values[done..done + part.len()].copy_from_slice(part);
                    done += part.len();
                }
            }
            let segments = take(&mut memory, segments_bytes_most(1, count as u64) as usize);
            let ordered = take(&mut memory, count * item);
            let length = encoder.encode(entries, values, item, segments, ordered);
            made.push(Tile {
                block: run.tile.1,
                entries: count,
                bytes: &segments[..length.bytes],
                segments: length.segments as usize,
                values: ordered,
            });
        }
        Ok(made)
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
        let shape = &self.output.shape;
        let inside = |number: u64, length: u64| length.saturating_sub(number * u64::from(shape.side));
        let extent = [inside(run.tile.0, shape.rows), inside(run.tile.1.into(), shape.columns)];
        let is_outside = |entry: &u32| u64::from(entry >> 16) >= extent[0] || u64::from(entry & 0xffff) >= extent[1];
        let side = u64::from(shape.side);
        if extent.iter().any(|length| *length < side) && entries.iter().any(is_outside) {
            return Err(EngineError::Internal("entries lie outside the matrix".into()));
        }
        match entries.windows(2).all(|pair| pair[0] < pair[1]) {
            true => Ok(()),
            false => Err(EngineError::Internal("two entries are at one place".into())),
        }
    }
}
