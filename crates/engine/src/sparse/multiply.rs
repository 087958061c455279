//! The product, tile by tile: a band of columns of the dense matrix in memory, the sparse one passing by (FlashX 4.3.4).

use std::sync::Arc;

use outcore_sparse::multiply_tile;

use super::bands::{bytes_of, Bands};
use super::opened::fault;
use super::pieces::{fill, Fill, Join};
use super::times::{by_columns, Times};
use crate::task::{Access, Algorithm, Bound, Grid, Work};
use crate::EngineError;

/// Sets: the sparse tiles, the dense matrix, the result, what is held of the dense matrix, the products of each tile.
const DENSE: usize = 1;
const RESULT: usize = 2;
const HELD: usize = 3;
const PRODUCTS: usize = 4;

/// The product of a sparse matrix with a dense one.
#[derive(Clone, Debug)]
pub(super) struct Multiply {
    times: Times,
    bands: Bands,
    dense: Grid,
    results: [Grid; 3],
    lengths: Arc<[u64]>,
}

impl Multiply {
    pub fn new(times: Times, bands: Bands, dense: Grid) -> Multiply {
        let dtype = times.dtype();
        let row = |width: u64| width * dtype.size() as u64;
        let lengths: Arc<[u64]> = (0..bands.count())
            .flat_map(|band| times.pieces.iter().map(move |piece| (band, piece.rows.length)))
            .map(|(band, rows)| rows * row(bands.width_of(band)))
            .collect();
        let held = Grid {
            shape: vec![dense.shape[0], bands.columns],
            tile: vec![dense.shape[0], bands.width],
            dtype,
        };
        Multiply {
            results: [bands.cut(&times.result[0]), held, Grid::listed(&lengths)],
            lengths,
            times,
            bands,
            dense,
        }
    }

    /// Whether the dense matrix is held by being one tile of its own.
    fn is_held(&self) -> bool {
        self.dense.tiles() == 1
    }
}

impl Algorithm for Multiply {
    fn name(&self) -> String {
        "sparse product".into()
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
        (result + RESULT == PRODUCTS).then(|| self.lengths.clone())
    }
    fn works(&self, _inputs: &[Grid]) -> Vec<Arc<dyn Work>> {
        let mut works: Vec<Arc<dyn Work>> = vec![];
        for band in 0..self.bands.count() {
            if !self.is_held() {
                works.push(Arc::new(Fill {
                    band,
                    bands: self.bands,
                    dense: self.dense.clone(),
                    sets: (DENSE, HELD),
                }));
            }
            works.push(Arc::new(Band {
                of: self.times.clone(),
                bands: self.bands,
                band,
                held: if self.is_held() { DENSE } else { HELD },
            }));
        }
        works.push(Arc::new(Join {
            bands: self.bands,
            result: self.results[0].clone(),
            pieces: self.times.rows(),
            zero: self.times.zero.clone(),
            sets: (PRODUCTS, RESULT),
        }));
        works
    }
}

/// The products of all tiles with one band.
#[derive(Clone, Debug)]
struct Band {
    of: Times,
    bands: Bands,
    band: u64,
    held: usize,
}

impl Work for Band {
    fn label(&self) -> String {
        "sparse product".into()
    }
    fn tasks(&self) -> u64 {
        self.of.pieces.len() as u64
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let piece = &self.of.pieces[task as usize];
        piece.tiles.clone().for_each(|tile| each(0, tile, Access::Read));
        each(self.held, if self.held == HELD { self.band } else { 0 }, Access::Read);
        each(PRODUCTS, self.band * self.tasks() + task, Access::Create);
    }
    fn workspace_bytes(&self, task: u64) -> u64 {
        self.of.workspace_bytes(&self.of.pieces[task as usize])
    }
    fn operations(&self) -> f64 {
        2.0 * self.of.file.matrix().entries as f64 * self.bands.width_of(self.band) as f64
    }
    fn run(&self, task: u64, tiles: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let width = self.bands.width_of(self.band) as usize;
        let piece = &self.of.pieces[task as usize];
        let (x, own) = tiles.reads.split_last().expect("the dense matrix comes last");
        let y = &mut *tiles.writes[0];
        fill(y, &self.of.zero);
        let mut rows = self.of.opened(piece, own, &(0..u64::MAX), workspace)?;
        let matrix = self.of.file.matrix();
        let side = u64::from(matrix.side);
        let first = piece.rows.start;
        let row = |rows: u64| bytes_of(rows * width as u64, self.of.dtype());
        let kernel = self.of.kernel()?;
        by_columns(&mut rows, |number, tile| {
            let start = u64::from(tile.block) * side;
            let (columns, height) = (side.min(matrix.columns - start), side.min(matrix.rows - number * side));
            let at = row(number * side - first);
            let x = &x[row(start)..row(start + columns)];
            let y = &mut y[at..at + row(height)];
            multiply_tile(kernel, tile, width, x, y).map_err(|what| fault(&self.of.file, number, what))
        })?;
        Ok(())
    }
}
