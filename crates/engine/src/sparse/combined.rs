//! Two sparse matrices of one shape, made one place by place: sums, products, extremes, comparisons.

use std::sync::Arc;

use outcore_coding::tiles::{GrowingRow, RowLimits, Tile};
use outcore_store::{Interval, PendingTile, RowBound, SparseFile, SparseOutput, TileRowRecord};

use super::formula::{aligned, Desk, Formula, RowPlace};
use super::merging::{compress, merge};
use super::opened::{fault, made_tiles, tiles_of};
use super::operand::SparseOperand;
use super::order::{sort_kept, TileEntry};
use super::placing::{Made, MakeTiles, TilePart, TileResult};
use super::SparseMatrix;
use crate::expr::Expr;
use crate::task::{Access, Bound, Recipe};
use crate::{ops, EngineError};

/// Two matrices of one shape, in tiles of one side, as a result that is stored: at each place at which one of them has an
/// entry, the value that a formula gives of both values, 0 where there is none.
///
/// # Errors
/// A result too large to address.
pub(super) fn combined_files(
    first: &SparseMatrix,
    second: &SparseMatrix,
    formula: Formula,
) -> Result<Expr, EngineError> {
    let combined = Combination::new([first, second], formula);
    let inputs = [first.tiles.clone(), second.tiles.clone()];
    Ok(ops::algorithm(Arc::new(Made::new(combined)), &inputs)?.swap_remove(0))
}

/// One of two matrices.
#[derive(Clone, Debug)]
struct CombinedMatrix {
    file: Arc<SparseFile>,
    formula: Option<Arc<Formula>>,
    /// Bytes of a value; of true, in a pattern.
    item: usize,
}

/// Tile rows of both that are made one tile.
#[derive(Clone, Debug)]
struct Piece {
    /// Numbers of tile rows.
    rows: Interval,
    /// The tile of each matrix that has some of them.
    tiles: [Option<u64>; 2],
}

#[derive(Clone, Debug)]
struct Combination {
    sides: [CombinedMatrix; 2],
    formula: Arc<Formula>,
    pieces: Arc<[Piece]>,
    result: TileResult,
}

/// A tile row of both.
struct RowPair<'r> {
    number: u64,
    records: [Option<&'r TileRowRecord>; 2],
}

impl<'r> RowPair<'r> {
    /// The tile row of each matrix alone.
    fn apart(&self) -> impl Iterator<Item = RowPair<'r>> + use<'r> {
        let (number, [first, second]) = (self.number, self.records);
        let alone = [[first, None], [None, second]];
        let is_there = |records: &[Option<&TileRowRecord>; 2]| records.iter().any(Option::is_some);
        alone
            .into_iter()
            .filter(is_there)
            .map(move |records| RowPair { number, records })
    }
}

impl CombinedMatrix {
    fn of(matrix: &SparseMatrix) -> CombinedMatrix {
        CombinedMatrix {
            file: matrix.file.clone(),
            formula: matrix.formula.clone(),
            item: matrix.dtype().map_or(1, |dtype| dtype.size()),
        }
    }

    /// The tile rows of a tile that lie in an interval.
    fn records(&self, tile: Option<u64>, rows: Interval) -> Vec<(&TileRowRecord, std::ops::Range<usize>)> {
        let tile_rows = tile.into_iter().flat_map(|tile| self.file.tile_rows(tile as usize));
        tile_rows
            .filter(|(record, _)| (rows.start..rows.end()).contains(&record.number))
            .collect()
    }

    fn desk_bytes(&self, record: Option<&TileRowRecord>) -> u64 {
        match (&self.formula, record) {
            (Some(formula), Some(record)) => formula.desk_bytes(&self.file, [record].into_iter()),
            _ => 0,
        }
    }

    /// Bytes of its entries in order.
    fn ordered_bytes(&self, entries: u64) -> u64 {
        aligned(4 * entries) + aligned(entries * self.item as u64)
    }
}

/// Where each tile of a matrix begins, in tile rows.
fn begins(side: &CombinedMatrix) -> impl Iterator<Item = u64> + '_ {
    let first = |tile| side.file.tile_rows(tile).next().map(|(record, _)| record.number);
    (0..side.file.tiles()).filter_map(first)
}

/// Both matrices cut where one has a tile that begins.
fn pieces_of(sides: &[CombinedMatrix; 2]) -> Vec<Piece> {
    let mut cuts: Vec<u64> = sides.iter().flat_map(begins).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let starts: Vec<Vec<u64>> = sides.iter().map(|side| begins(side).collect()).collect();
    let ends = cuts.iter().skip(1).copied().chain([u64::MAX]);
    let pieces = cuts.iter().zip(ends).map(|(&start, end)| {
        let rows = Interval::between(start, end);
        let tile = |side: usize| {
            let tile = starts[side].partition_point(|begin| *begin <= start).checked_sub(1)?;
            Some(tile as u64).filter(|tile| !sides[side].records(Some(*tile), rows).is_empty())
        };
        Piece {
            rows,
            tiles: [tile(0), tile(1)],
        }
    });
    pieces.filter(|piece| piece.tiles != [None, None]).collect()
}

impl Combination {
    fn new(matrices: [&SparseMatrix; 2], formula: Formula) -> Combination {
        let sides = matrices.map(CombinedMatrix::of);
        let recipe = formula.described(Recipe::new("sparse combination"));
        let operands = matrices.iter().map(|matrix| SparseOperand::Stored((*matrix).clone()));
        let recipe = operands.fold(recipe, |recipe, operand| operand.described(recipe));
        let pieces: Arc<[Piece]> = pieces_of(&sides).into();
        let shape = matrices[0].file.matrix();
        let mut combined = Combination {
            result: TileResult::new(SparseOutput::new(shape, formula.dtype(), vec![], false), 2, None),
            sides,
            formula: Arc::new(formula),
            pieces: pieces.clone(),
        };
        let rows = |piece: &Piece| -> Vec<RowBound> {
            let pairs = combined.pairs(piece);
            let bound = |pair: &RowPair<'_>| combined.row_bound(pair);
            match combined.sides.iter().any(|side| side.file.is_foreseen()) {
                // Tile rows that are foreseen at one place may come to two.
                true => pairs.iter().flat_map(RowPair::apart).map(|pair| bound(&pair)).collect(),
                false => pairs.iter().map(bound).collect(),
            }
        };
        let rows = pieces.iter().map(rows).collect();
        let output = SparseOutput::new(shape, combined.formula.dtype(), rows, false);
        combined.result = TileResult::new(output, 2, Some(recipe));
        combined
    }

    /// The tile rows of a piece, ascending.
    fn pairs(&self, piece: &Piece) -> Vec<RowPair<'_>> {
        let mut pairs: Vec<RowPair<'_>> = vec![];
        for (place, side) in self.sides.iter().enumerate() {
            for (record, _) in side.records(piece.tiles[place], piece.rows) {
                match pairs.iter_mut().find(|pair| pair.number == record.number) {
                    Some(pair) => pair.records[place] = Some(record),
                    None => {
                        let mut records = [None, None];
                        records[place] = Some(record);
                        pairs.push(RowPair {
                            number: record.number,
                            records,
                        });
                    }
                }
            }
        }
        pairs.sort_unstable_by_key(|pair| pair.number);
        pairs
    }

    /// A tile row of the result, at most.
    fn most(&self, pair: &RowPair<'_>) -> RowLimits {
        let of = |place: usize| match pair.records[place] {
            Some(record) => {
                let tiles = Formula::tiles_most(&self.sides[place].file, record.entries, record.bytes);
                (tiles, record.entries)
            }
            None => (0, 0),
        };
        let (a, b) = (of(0), of(1));
        RowLimits {
            tiles: a.0 + b.0,
            entries: a.1.saturating_add(b.1),
            item: self.formula.item(),
        }
    }

    fn row_bound(&self, pair: &RowPair<'_>) -> RowBound {
        let limits = self.most(pair);
        RowBound {
            number: pair.number,
            bytes: limits.bytes(),
            entries: limits.entries,
        }
    }

    fn pair_bytes(&self, pair: &RowPair<'_>) -> u64 {
        let entries = self.most(pair).entries;
        let of = |place: usize| {
            let (side, record) = (&self.sides[place], pair.records[place]);
            let own = record.map_or(0, |record| record.entries);
            side.desk_bytes(record) + side.ordered_bytes(own) + aligned(entries * side.item as u64)
        };
        let item = self.formula.item() as u64;
        let passing = aligned(4 * entries) + aligned(entries) + aligned(entries * item);
        of(0) + of(1) + self.formula.fixed_bytes() + passing
    }
}

impl MakeTiles for Combination {
    fn label(&self) -> String {
        "sparse combination".into()
    }
    fn key(&self) -> Vec<u8> {
        let own = self.sides.iter().flat_map(|side| match &side.formula {
            Some(formula) => [&[1][..], formula.key()].concat(),
            None => vec![0],
        });
        self.formula.key().iter().copied().chain(own).collect()
    }
    fn result(&self) -> &TileResult {
        &self.result
    }
    fn operands(&self, TilePart { tile, .. }: TilePart, each: &mut dyn FnMut(usize, u64, Access)) {
        for (set, tile) in self.pieces[tile as usize].tiles.iter().enumerate() {
            tile.iter().for_each(|tile| each(set, *tile, Access::Read));
        }
    }
    fn workspace_bytes(&self, TilePart { tile, .. }: TilePart) -> u64 {
        let pairs = self.pairs(&self.pieces[tile as usize]);
        pairs.iter().map(|pair| self.pair_bytes(pair)).max().unwrap_or(0)
    }
    fn operations(&self) -> f64 {
        self.sides.iter().map(|side| side.file.matrix().entries as f64).sum()
    }
    fn make(
        &self,
        TilePart { tile, .. }: TilePart,
        bound: &mut Bound<'_>,
        workspace: &mut [u8],
    ) -> Result<(), EngineError> {
        let piece = &self.pieces[tile as usize];
        let pairs = self.pairs(piece);
        let mut pending = PendingTile::new(&mut *bound.writes[0], pairs.len());
        let mut reads = bound.reads.iter();
        let bytes = piece
            .tiles
            .map(|tile| tile.and_then(|_| reads.next()).copied().unwrap_or_default());
        for pair in pairs {
            let rows: [&[u8]; 2] = std::array::from_fn(|place| {
                let side = &self.sides[place];
                let own = side.records(piece.tiles[place], piece.rows);
                let place_of = own.into_iter().find(|(record, _)| record.number == pair.number);
                place_of.map_or(&[][..], |(_, at)| &bytes[place][at])
            });
            let made = GrowingRow::begin(pending.row(), self.most(&pair));
            let mut row = CombinedRow::new(self, &pair, rows, (made, &mut *workspace))?;
            row.run()?;
            let entries = row.made.entries();
            if entries > 0 {
                let bytes = row.made.finish();
                pending.add(pair.number, bytes, entries as u64);
            }
        }
        Ok(())
    }
}

/// A tile row of both on the way to one.
struct CombinedRow<'c, 'w, 'm> {
    of: &'c Combination,
    number: u64,
    tiles: [Vec<Tile<'w>>; 2],
    desk: Desk<'w>,
    ordered: [OrderedTile<'w>; 2],
    /// Places of both, and their values there.
    entries: &'w mut [u8],
    values: [&'w mut [u8]; 2],
    mask: &'w mut [u8],
    results: &'w mut [u8],
    made: GrowingRow<'m>,
}

/// Entries of a tile in order.
struct OrderedTile<'w> {
    entries: &'w mut [u8],
    values: &'w mut [u8],
    count: usize,
}

impl OrderedTile<'_> {
    fn entries(&self) -> &[u32] {
        &bytemuck::cast_slice(self.entries)[..self.count]
    }
}

impl<'c, 'w, 'm> CombinedRow<'c, 'w, 'm> {
    fn new(
        of: &'c Combination,
        pair: &RowPair<'_>,
        rows: [&'w [u8]; 2],
        (made, workspace): (GrowingRow<'m>, &'w mut [u8]),
    ) -> Result<CombinedRow<'c, 'w, 'm>, EngineError> {
        let mut rest = workspace;
        let mut tiles = [vec![], vec![]];
        for (place, record) in pair.records.iter().enumerate() {
            let Some(record) = record else { continue };
            let side = &of.sides[place];
            let (memory, after) = rest.split_at_mut(side.desk_bytes(Some(record)) as usize);
            rest = after;
            tiles[place] = of.tiles_of(place, record, rows[place], memory)?;
        }
        let entries = of.most(pair).entries as usize;
        let mut desk = of.formula.desk(rest, 0);
        let ordered = [0, 1].map(|place: usize| {
            let own = pair.records[place].map_or(0, |record| record.entries) as usize;
            OrderedTile {
                entries: desk.take(4 * own),
                values: desk.take(own * of.sides[place].item),
                count: 0,
            }
        });
        Ok(CombinedRow {
            number: pair.number,
            tiles,
            ordered,
            entries: desk.take(4 * entries),
            values: [0, 1].map(|place: usize| desk.take(entries * of.sides[place].item)),
            mask: desk.take(entries),
            results: desk.take(entries * of.formula.item()),
            made,
            desk,
            of,
        })
    }

    /// Goes through the columns of tiles of both.
    fn run(&mut self) -> Result<(), EngineError> {
        let mut next = [0, 0];
        loop {
            let heads = [0, 1].map(|place: usize| self.tiles[place].get(next[place]).copied());
            let Some(block) = heads.iter().flatten().map(|tile| tile.block).min() else {
                return Ok(());
            };
            for (place, head) in heads.iter().enumerate() {
                self.ordered[place].count = 0;
                if let Some(tile) = head.filter(|tile| tile.block == block) {
                    self.order(place, &tile)?;
                    next[place] += 1;
                }
            }
            self.join(block)?;
        }
    }

    fn order(&mut self, place: usize, tile: &Tile<'_>) -> Result<(), EngineError> {
        let (side, ordered) = (&self.of.sides[place], &mut self.ordered[place]);
        let row = RowPlace::of(&side.file, self.number);
        let extent = (row.height as usize, row.width(tile.block) as usize);
        let is_pattern = tile.values.is_empty();
        let entry = TileEntry {
            kept: None,
            values: tile.values,
            item: if is_pattern { 0 } else { side.item },
        };
        let entries: &mut [u32] = bytemuck::cast_slice_mut(ordered.entries);
        sort_kept(tile, extent, entry, (&mut self.desk.counts, entries, ordered.values))
            .map_err(|what| fault(&side.file, self.number, what))?;
        if is_pattern {
            ordered.values[..tile.entries].fill(1);
        }
        ordered.count = tile.entries;
        Ok(())
    }

    /// Makes the tile of the entries of both that are in order.
    fn join(&mut self, block: u32) -> Result<(), EngineError> {
        let [a, b] = &self.ordered;
        let places: &mut [u32] = bytemuck::cast_slice_mut(self.entries);
        let [x, y] = &mut self.values;
        let items = [self.of.sides[0].item, self.of.sides[1].item];
        let count = merge(
            [a.entries(), b.entries()],
            [a.values, b.values],
            items,
            (places, [x, y]),
        );
        let places = &mut places[..count];
        let formula = &self.of.formula;
        let item = formula.item();
        let side = u64::from(self.of.result.output.shape.side);
        let origin = [self.number * side, u64::from(block) * side];
        let operands = [&x[..count * items[0]], &y[..count * items[1]]];
        let mask_bytes = if formula.keeps_all() { 0 } else { count };
        let (results, mask) = (&mut self.results[..count * item], &mut self.mask[..mask_bytes]);
        formula.evaluate_both(places, operands, origin, &mut self.desk, (results, mask))?;
        let kept = match formula.keeps_all() {
            true => count,
            false => compress(places, results, item, mask),
        };
        if kept == 0 {
            return Ok(());
        }
        let results = &results[..kept * item];
        self.made.add(&mut self.desk.encoder, block, &places[..kept], results);
        Ok(())
    }
}

impl Combination {
    /// The tiles of a tile row of one matrix, as its own formula makes them.
    fn tiles_of<'w>(
        &self,
        place: usize,
        record: &TileRowRecord,
        bytes: &'w [u8],
        memory: &'w mut [u8],
    ) -> Result<Vec<Tile<'w>>, EngineError> {
        let side = &self.sides[place];
        match &side.formula {
            None => tiles_of(&side.file, record, bytes, |_| true),
            Some(formula) => {
                let mut desk = formula.desk(memory, record.entries);
                made_tiles(&side.file, record, bytes, (formula, &mut desk))
            }
        }
    }
}
