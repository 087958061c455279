//! Work on one tile of a front: its assembly, products that are subtracted, and its end as a part of the factor.

use std::ops::Range;

use outcore_kernels::TileElements;

use super::children::{rows_of_block, Contribution};
use super::factorize::{Cholesky, FactoredMatrix};
use super::fronts::FrontNode;
use super::places::FrontPlaces;
use super::precision::RealNumber;
use crate::task::Bound;
use crate::EngineError;

/// Places of a tile that hold something: of rows in its columns, as runs of columns that lie together in both tiles.
pub(super) struct Run {
    pub from: usize,
    pub to: usize,
    pub length: usize,
}

/// Runs of ascending places.
pub(super) fn runs(places: &[u32]) -> Vec<Run> {
    let mut runs: Vec<Run> = vec![];
    for (from, &to) in places.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if run.to + run.length == to as usize => run.length += 1,
            _ => runs.push(Run {
                from,
                to: to as usize,
                length: 1,
            }),
        }
    }
    runs
}

/// Where a row of a tile begins, in elements: a tile on the diagonal has its lower triangle row by row.
pub(super) fn row_start(row: usize, width: usize, is_diagonal: bool) -> usize {
    match is_diagonal {
        true => row * (row + 1) / 2,
        false => row * width,
    }
}

/// The full square of a lower triangle that lies row by row; elements above the diagonal are 0.
pub(super) fn unpack(packed: &[u8], side: usize, item: usize, square: &mut [u8]) {
    let mut at = 0;
    for (row, full) in square.chunks_exact_mut((side * item).max(1)).take(side).enumerate() {
        let length = (row + 1) * item;
        full[..length].copy_from_slice(&packed[at..at + length]);
        full[length..].fill(0);
        at += length;
    }
}

/// The lower triangle of a square, row by row.
pub(super) fn pack(square: &[u8], side: usize, item: usize, packed: &mut [u8]) {
    let mut at = 0;
    for (row, full) in square.chunks_exact((side * item).max(1)).take(side).enumerate() {
        let length = (row + 1) * item;
        packed[at..at + length].copy_from_slice(&full[..length]);
        at += length;
    }
}

impl Cholesky {
    /// The columns of the matrix that a block of pivots is of.
    pub(super) fn columns_of(&self, node: &FrontNode, block: u32) -> Range<u32> {
        let block = node.block(block);
        node.columns.start + block.start..node.columns.start + block.end
    }

    /// Real numbers that an element is.
    pub(super) fn words(&self) -> usize {
        match self.panel().dtype().is_complex() {
            true => 2,
            false => 1,
        }
    }

    /// An entry of the upper triangle, in a row and a column of the order of elimination, as an element of the lower one:
    /// scaled, where rows and columns are.
    pub(super) fn transposed(&self, [row, column]: [u32; 2], value: &[u8]) -> [f64; 2] {
        let part = |bytes: &[u8]| bytes.first_chunk().map_or(0.0, |part| f64::from_ne_bytes(*part));
        // One scale after the other: their product may be beyond the numbers that there are.
        let scaled = |part: f64| part * self.scale(row) * self.scale(column);
        match self.words() {
            1 => [scaled(part(value)), 0.0],
            _ => [scaled(part(value)), -scaled(part(&value[size_of::<f64>()..]))],
        }
    }

    pub(super) fn assemble<R: RealNumber>(
        &self,
        node: &FrontNode,
        [row, column]: [u32; 2],
        (begin, end, is_first): (u32, u32, bool),
        bound: &mut Bound<'_>,
    ) -> Result<(), EngineError> {
        let Some(blocks) = node.blocks() else { return Ok(()) };
        let mut from = 0;
        let tile = &mut bound.writes[0][self.analysis().header(node, [row, column])..];
        if is_first {
            tile.fill(0);
            if column < blocks.pivots {
                from = self.sources(node, Some([row, column])).len();
                self.add_entries::<R>(node, [row, column], &bound.reads[..from], tile)?;
            }
        }
        let tile: &mut [R] = bytemuck::cast_slice_mut(tile);
        let contributions = &self.contributions()[begin as usize..end as usize];
        for (contribution, bytes) in contributions.iter().zip(&bound.reads[from..]) {
            self.add(node, [row, column], *contribution, bytemuck::cast_slice(bytes), tile);
        }
        Ok(())
    }

    /// Adds the entries of the matrix that belong to a tile of a block of pivots.
    fn add_entries<R: RealNumber>(
        &self,
        node: &FrontNode,
        [row, column]: [u32; 2],
        reads: &[&[u8]],
        tile: &mut [u8],
    ) -> Result<(), EngineError> {
        let (columns, rows) = (self.columns_of(node, column), node.block(row));
        let matrix = match self.matrix() {
            FactoredMatrix::Sparse(matrix) => matrix,
            FactoredMatrix::Dense(matrix) => {
                matrix.copy(&rows, &columns, reads, (tile, row == column));
                return Ok(());
            }
        };
        let tile: &mut [R] = bytemuck::cast_slice_mut(tile);
        let places = FrontPlaces::new(self.analysis(), node);
        let (width, words) = (columns.len(), self.words());
        let wanted = places.rows(&rows);
        let mut unknown = None;
        matrix.for_each(&columns, wanted.clone(), reads, |at, other, value| {
            if other < u64::from(at) || !wanted.contains(&other) {
                return;
            }
            let Some(place) = places.of(other as u32).filter(|place| rows.contains(place)) else {
                unknown = Some([other as u32, at]);
                return;
            };
            let start = row_start((place - rows.start) as usize, width, row == column);
            let element = (start + (at - columns.start) as usize) * words;
            let value = self.transposed([at, other as u32], value);
            tile[element..element + words]
                .iter_mut()
                .zip(value)
                .for_each(|(to, value)| *to += R::rounded(value));
        })?;
        match unknown {
            None => Ok(()),
            Some([row, column]) => Err(self.unknown(row, column)),
        }
    }

    /// Adds the elements of a child's tile that belong to a tile of the parent.
    fn add<R: RealNumber>(
        &self,
        node: &FrontNode,
        [row, column]: [u32; 2],
        contribution: Contribution,
        from: &[R],
        tile: &mut [R],
    ) {
        let child = self.child(contribution);
        let below = self.analysis().fronts.below(child);
        let places = FrontPlaces::new(self.analysis(), node);
        let words = self.words();
        let [own_rows, own_columns] = [contribution.row, contribution.column].map(|block| rows_of_block(child, block));
        let is_diagonal = contribution.row == contribution.column;
        // Rows and columns of the child's tile that are in the parent's.
        let within = |own: &Range<usize>, block: u32| {
            let (rows, block) = (&below[own.clone()], node.block(block));
            places.before(rows, block.start)..places.before(rows, block.end)
        };
        let (rows, columns) = (within(&own_rows, row), within(&own_columns, column));
        let targets = |own: &Range<usize>, some: &Range<usize>, block: u32| -> Vec<u32> {
            let first = node.block(block).start;
            let rows = below[own.start + some.start..own.start + some.end].iter();
            rows.filter_map(|row| Some(places.of(*row)? - first)).collect()
        };
        let row_targets = targets(&own_rows, &rows, row);
        let column_targets = targets(&own_columns, &columns, column);
        let column_runs = runs(&column_targets);
        let width = node.block(column).len();
        for (&target, own) in row_targets.iter().zip(rows) {
            let begin = row_start(own, own_columns.len(), is_diagonal) + columns.start;
            // A row of a triangle ends at the diagonal.
            let length = match is_diagonal {
                true => (own + 1).saturating_sub(columns.start).min(columns.len()),
                false => columns.len(),
            };
            let start = row_start(target as usize, width, row == column);
            for run in column_runs.iter().take_while(|run| run.from < length) {
                let count = run.length.min(length - run.from) * words;
                let (to, from_at) = ((start + run.to) * words, (begin + run.from) * words);
                let (to, from) = (&mut tile[to..to + count], &from[from_at..from_at + count]);
                to.iter_mut().zip(from).for_each(|(to, from)| *to += *from);
            }
        }
    }

    /// Subtracts products of tiles of blocks of pivots from `begin` on.
    pub(super) fn update(
        &self,
        node: &FrontNode,
        [row, column]: [u32; 2],
        begin: u32,
        bound: &mut Bound<'_>,
        workspace: &mut [u8],
    ) -> Result<(), EngineError> {
        let (height, width) = (node.block(row).len(), node.block(column).len());
        let (panel, item, reads) = (self.panel(), self.size() as usize, &bound.reads);
        let tile = &mut bound.writes[0][self.analysis().header(node, [row, column])..];
        let inner = (begin..).map(|block| node.block(block).len());
        if row == column {
            let (square, spare) = workspace.split_at_mut(height * height * item);
            unpack(tile, height, item, square);
            for (l, inner) in reads.iter().zip(inner) {
                match self.analysis().elements(l, [height, inner], item)? {
                    TileElements::Full(l) => panel.subtract_square([height, inner], l, square),
                    // Elements above the diagonal are not packed.
                    low => panel.subtract_tiles([height, height, inner], low, low, square, spare),
                }
            }
            pack(square, height, item, tile);
            return Ok(());
        }
        for (pair, inner) in reads.chunks_exact(2).zip(inner) {
            let left = self.analysis().elements(pair[0], [height, inner], item)?;
            let right = self.analysis().elements(pair[1], [width, inner], item)?;
            panel.subtract_tiles([height, width, inner], left, right, tile, workspace);
        }
        Ok(())
    }

    /// Bytes that products of tiles of low rank take beside the tiles.
    pub(super) fn products_bytes(&self, node: &FrontNode, [row, column, begin]: [u32; 3]) -> u64 {
        let sides = [row, column, begin].map(|block| node.block(block).len());
        match self.analysis().low_rank {
            None => 0,
            // Blocks of pivots are about equal.
            Some(_) => self.panel().products_bytes([sides[0], sides[1], sides[2] + 1]) as u64,
        }
    }

    /// Bytes that a tile of pivots takes while its rank is found.
    pub(super) fn compress_bytes(&self, node: &FrontNode, tile: [u32; 2]) -> u64 {
        match self.analysis().low_rank {
            None => 0,
            Some(_) => self.panel().compress_bytes(tile.map(|block| node.block(block).len())) as u64,
        }
    }

    pub(super) fn finish(
        &self,
        node: &FrontNode,
        [row, column]: [u32; 2],
        bound: &mut Bound<'_>,
        workspace: &mut [u8],
    ) -> Result<(), EngineError> {
        let (height, width, item) = (node.block(row).len(), node.block(column).len(), self.size() as usize);
        let tile = &mut *bound.writes[0];
        let (square, rest) = workspace.split_at_mut(width * width * item);
        if row != column {
            unpack(bound.reads[0], width, item, square);
            let elements = &mut tile[self.analysis().header(node, [row, column])..];
            self.panel().solve_right([height, width], square, elements);
            if let Some(tolerance) = self.analysis().low_rank {
                // Rows of the factor are about as long as the diagonal is large, which is 1.
                let most = tolerance * (height as f64).sqrt();
                self.panel().compress([height, width], most, tile, rest);
            }
            return Ok(());
        }
        unpack(tile, width, item, square);
        let first = self.columns_of(node, column).start;
        let factorized = self.panel().factorize(width, square, rest);
        factorized.map_err(|pivot| self.refused(first, pivot))?;
        pack(square, width, item, tile);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triangles_are_packed_row_by_row() {
        let packed: Vec<u8> = (1..=6).collect();
        let mut square = vec![9; 9];
        unpack(&packed, 3, 1, &mut square);
        assert_eq!(square, [1, 0, 0, 2, 3, 0, 4, 5, 6]);
        let mut again = vec![0; 6];
        pack(&square, 3, 1, &mut again);
        assert_eq!(again, packed);
    }

    #[test]
    fn runs_are_places_that_lie_together() {
        let found: Vec<_> = runs(&[2, 3, 5, 6, 7, 11])
            .iter()
            .map(|run| (run.from, run.to, run.length))
            .collect();
        assert_eq!(found, [(0, 2, 2), (2, 5, 3), (5, 11, 1)]);
    }
}
