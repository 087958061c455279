//! The product of the transposed matrix: rows of the dense matrix pass by with the tiles, sums stay in memory. The result
//! is cut into a few blocks, so that several tasks add to it at once, each block in the order of the tile rows.

use outcore_store::Interval;
use std::sync::Arc;

use outcore_sparse::multiply_tile;

use super::bands::{bytes_of, Bands};
use super::opened::fault;
use super::pieces::{fill, CutRows, Join};
use super::times::{by_columns, Times};
use crate::task::{Access, Algorithm, Bound, Grid, Work};
use crate::EngineError;

/// Sets: the sparse tiles, the dense matrix, the result, the rows of each tile, the sums.
const DENSE: usize = 1;
const RESULT: usize = 2;
const ROWS: usize = 3;
const SUMS: usize = 4;
/// Blocks of sums. A constant, so that nothing depends on the threads.
const BLOCKS: u64 = 16;

/// The product of a transposed sparse matrix with a dense one.
#[derive(Clone, Debug)]
pub(super) struct MultiplyTransposed {
    times: Times,
    bands: Bands,
    dense: Grid,
    results: [Grid; 3],
    /// Bytes of the rows of each tile, and of the sums of each block.
    lengths: [Arc<[u64]>; 2],
    /// Rows of the result in each block.
    blocks: Arc<[Interval]>,
}

impl MultiplyTransposed {
    pub fn new(times: Times, bands: Bands, dense: Grid) -> MultiplyTransposed {
        let matrix = times.file.matrix();
        let side = u64::from(matrix.side);
        let height = matrix.columns.div_ceil(side).div_ceil(BLOCKS) * side;
        let blocks: Arc<[Interval]> = (0..matrix.columns.div_ceil(height))
            .map(|block| Interval::new(block * height, height.min(matrix.columns - block * height)))
            .collect();
        let item = times.dtype().size() as u64;
        let lengths = |pieces: &[Interval]| -> Arc<[u64]> {
            (0..bands.count())
                .flat_map(|band| pieces.iter().map(move |rows| rows.length * bands.width_of(band) * item))
                .collect()
        };
        let lengths = [lengths(&times.rows()), lengths(&blocks)];
        MultiplyTransposed {
            results: [
                bands.cut(&times.result[0]),
                Grid::listed(&lengths[0]),
                Grid::listed(&lengths[1]),
            ],
            lengths,
            blocks,
            times,
            bands,
            dense,
        }
    }
}

impl Algorithm for MultiplyTransposed {
    fn name(&self) -> String {
        "transposed sparse product".into()
    }
    fn key(&self) -> Vec<u8> {
        let mut key = vec![self.times.semiring as u8];
        key.extend(self.bands.width.to_ne_bytes());
        key.extend(self.times.pieces.len().to_ne_bytes());
        key.extend(self.times.formula.iter().flat_map(|formula| formula.key()));
        key
    }
    fn results(&self) -> &[Grid] {
        &self.results
    }
    fn listed(&self, result: usize) -> Option<Arc<[u64]>> {
        let own = result.checked_sub(ROWS - RESULT)?;
        Some(self.lengths[own].clone())
    }
    fn works(&self, _inputs: &[Grid]) -> Vec<Arc<dyn Work>> {
        let cut = CutRows {
            bands: self.bands,
            dense: self.dense.clone(),
            pieces: self.times.rows(),
            sets: (DENSE, ROWS),
        };
        let join = Join {
            bands: self.bands,
            result: self.results[0].clone(),
            pieces: self.blocks.clone(),
            zero: self.times.zero.clone(),
            sets: (SUMS, RESULT),
        };
        let add = Add {
            of: self.times.clone(),
            bands: self.bands,
            blocks: self.blocks.clone(),
        };
        vec![Arc::new(cut), Arc::new(add), Arc::new(join)]
    }
}

/// Band by band, piece by piece, block by block.
#[derive(Clone, Debug)]
struct Add {
    of: Times,
    bands: Bands,
    blocks: Arc<[Interval]>,
}

impl Add {
    /// Band, piece and block of a task.
    fn place(&self, task: u64) -> (u64, u64, u64) {
        let (pieces, blocks) = (self.of.pieces.len() as u64, self.blocks.len() as u64);
        (task / blocks / pieces, task / blocks % pieces, task % blocks)
    }
}

impl Work for Add {
    fn label(&self) -> String {
        "transposed sparse product".into()
    }
    fn tasks(&self) -> u64 {
        self.bands.count() * self.of.pieces.len() as u64 * self.blocks.len() as u64
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let (band, piece, block) = self.place(task);
        let tiles = self.of.pieces[piece as usize].tiles.clone();
        tiles.for_each(|tile| each(0, tile, Access::Read));
        each(ROWS, band * self.of.pieces.len() as u64 + piece, Access::Read);
        let access = if piece == 0 { Access::Create } else { Access::Update };
        each(SUMS, band * self.blocks.len() as u64 + block, access);
    }
    fn workspace_bytes(&self, task: u64) -> u64 {
        self.of.workspace_bytes(&self.of.pieces[self.place(task).1 as usize])
    }
    fn operations(&self) -> f64 {
        2.0 * self.of.file.matrix().entries as f64 * self.bands.columns as f64
    }
    fn run(&self, task: u64, tiles: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let (band, piece, block) = self.place(task);
        let width = self.bands.width_of(band) as usize;
        let (x, own) = tiles.reads.split_last().expect("the rows come last");
        let y = &mut *tiles.writes[0];
        if piece == 0 {
            fill(y, &self.of.zero);
        }
        let matrix = self.of.file.matrix();
        let side = u64::from(matrix.side);
        let piece = &self.of.pieces[piece as usize];
        let (first, block) = (piece.rows.start, self.blocks[block as usize]);
        let row = |rows: u64| bytes_of(rows * width as u64, self.of.dtype());
        let kernel = self.of.kernel()?;
        let blocks = block.start / side..block.end().div_ceil(side);
        let mut rows = self.of.opened(piece, own, &blocks, workspace)?;
        by_columns(&mut rows, |number, next| {
            let start = u64::from(next.block) * side;
            let (columns, height) = (side.min(matrix.columns - start), side.min(matrix.rows - number * side));
            let at = row(number * side - first);
            let y = &mut y[row(start - block.start)..row(start - block.start + columns)];
            multiply_tile(kernel, next, width, &x[at..at + row(height)], y)
                .map_err(|what| fault(&self.of.file, number, what))
        })?;
        Ok(())
    }
}
