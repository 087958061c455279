//! The product, tile by tile: a band of columns of the dense matrix in memory, the sparse one passing by (FlashX 4.3.4).

use std::sync::Arc;

use outcore_kernels::{cast_kernel, UnaryKernel};
use outcore_sparse::{multiply_tile, product_kernel, Malformed, Tile, TileProduct, TileRow};
use outcore_store::SparseFile;

use super::bands::{bytes_of, Bands};
use super::pieces::{fill, Fill, Join};
use super::product::Times;
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
            .flat_map(|band| times.pieces.iter().map(move |(_, rows)| (band, *rows)))
            .map(|(band, rows)| rows * row(bands.width_of(band)))
            .collect();
        let held = Grid {
            shape: vec![dense.shape[0], bands.columns],
            tile: vec![dense.shape[0], bands.width],
            dtype,
        };
        Multiply {
            results: [times.result[0].clone(), held, listed_grid(&lengths)],
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

/// A set of tiles of bytes that differ in number.
pub(super) fn listed_grid(lengths: &[u64]) -> Grid {
    let longest = lengths.iter().copied().max().unwrap_or(1).max(1);
    Grid {
        shape: vec![lengths.len() as u64, longest],
        tile: vec![1, longest],
        dtype: outcore_dtype::DType::U8,
    }
}

impl Algorithm for Multiply {
    fn name(&self) -> String {
        "sparse product".into()
    }
    fn key(&self) -> Vec<u8> {
        let mut key = vec![self.times.semiring as u8];
        key.extend(self.bands.width.to_ne_bytes());
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
            pieces: self.times.pieces.clone(),
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
        each(0, task, Access::Read);
        each(self.held, if self.held == HELD { self.band } else { 0 }, Access::Read);
        each(PRODUCTS, self.band * self.tasks() + task, Access::Create);
    }
    fn workspace_bytes(&self, task: u64) -> u64 {
        self.of.values_bytes(task)
    }
    fn operations(&self) -> f64 {
        2.0 * self.of.file.matrix().entries as f64 * self.bands.width_of(self.band) as f64
    }
    fn run(&self, task: u64, tiles: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let width = self.bands.width_of(self.band) as usize;
        let (x, y) = (tiles.reads[1], &mut *tiles.writes[0]);
        fill(y, &self.of.zero);
        let mut rows = self.of.opened(task, tiles.reads[0], workspace)?;
        let matrix = self.of.file.matrix();
        let side = u64::from(matrix.side);
        let first = self.of.pieces[task as usize].0;
        let row = |rows: u64| bytes_of(rows * width as u64, self.of.dtype());
        let kernel = self.of.kernel(width)?;
        // One column of tiles after the other, so that what they share of the dense matrix stays in the cache.
        while let Some(block) = rows.iter().filter_map(|row| row.next.map(|tile| tile.block)).min() {
            let start = u64::from(block) * side;
            let columns = side.min(matrix.columns.saturating_sub(start));
            if columns == 0 {
                return Err(self.of.malformed(task, Malformed("a tile lies beside the matrix")));
            }
            let x = &x[row(start)..row(start + columns)];
            for tile_row in rows
                .iter_mut()
                .filter(|row| row.next.is_some_and(|tile| tile.block == block))
            {
                let tile = tile_row.next.expect("filtered");
                let height = side.min(matrix.rows - tile_row.number * side);
                let at = row(tile_row.number * side - first);
                let y = &mut y[at..at + row(height)];
                let sizes = (height as usize, columns as usize);
                multiply_tile(kernel, tile, sizes, width, x, y).map_err(|fault| self.of.malformed(task, fault))?;
                tile_row.advance().map_err(|fault| self.of.malformed(task, fault))?;
            }
        }
        Ok(())
    }
}

/// A tile row on the way through its tiles.
pub(super) struct OpenRow<'a> {
    pub number: u64,
    pub next: Option<Tile<'a>>,
    tiles: Box<dyn Iterator<Item = Result<Tile<'a>, Malformed>> + 'a>,
}

impl OpenRow<'_> {
    pub fn advance(&mut self) -> Result<(), Malformed> {
        self.next = self.tiles.next().transpose()?;
        Ok(())
    }
}

impl Times {
    /// Bytes that the values of a tile take in the type of the product, where that is another.
    pub(super) fn values_bytes(&self, task: u64) -> u64 {
        if !self.converts() {
            return 0;
        }
        let rows = self.file.tile_rows(task as usize);
        rows.map(|(record, _)| (record.entries * self.dtype().size() as u64).next_multiple_of(8))
            .sum()
    }

    pub(super) fn kernel(&self, width: usize) -> Result<TileProduct, EngineError> {
        let find = match self.transposed {
            false => product_kernel,
            true => outcore_sparse::transposed_kernel,
        };
        let valued = self.file.matrix().dtype.is_some();
        find(self.semiring, self.dtype(), valued, width)
            .ok_or_else(|| EngineError::Internal(format!("no product in {} of {}", self.semiring.name(), self.dtype())))
    }

    /// The tile rows of a tile, with their values in the type of the product.
    pub(super) fn opened<'a>(
        &self,
        task: u64,
        bytes: &'a [u8],
        workspace: &'a mut [u8],
    ) -> Result<Vec<OpenRow<'a>>, EngineError> {
        let matrix = self.file.matrix();
        let item = matrix.dtype.map_or(0, |dtype| dtype.size());
        let convert = match matrix.dtype {
            Some(dtype) if self.converts() => Some(cast_kernel(dtype, self.dtype())),
            _ => None,
        };
        let mut workspace = workspace;
        let mut rows = vec![];
        for (record, place) in self.file.tile_rows(task as usize) {
            let row = TileRow::new(&bytes[place], item).map_err(|fault| self.malformed(task, fault))?;
            if row.entries() != record.entries {
                return Err(self.malformed(task, Malformed("a tile row has other entries than the directory says")));
            }
            let mut open = OpenRow {
                number: record.number,
                next: None,
                tiles: match convert {
                    None => Box::new(row.tiles()),
                    Some(convert) => {
                        let own = (record.entries as usize * self.dtype().size()).next_multiple_of(8);
                        let (values, rest) = workspace.split_at_mut(own);
                        workspace = rest;
                        converted(row, values, (item, self.dtype().size()), convert)
                    }
                },
            };
            open.advance().map_err(|fault| self.malformed(task, fault))?;
            rows.push(open);
        }
        Ok(rows)
    }

    pub(super) fn malformed(&self, task: u64, fault: Malformed) -> EngineError {
        malformed(&self.file, task, fault)
    }
}

/// A tile row whose values are converted as a whole.
fn converted<'a>(
    row: TileRow<'a>,
    values: &'a mut [u8],
    (from, to): (usize, usize),
    convert: UnaryKernel,
) -> Box<dyn Iterator<Item = Result<Tile<'a>, Malformed>> + 'a> {
    let entries = row.entries() as usize;
    convert(&row.values()[..entries * from], &mut values[..entries * to]);
    let values = &*values;
    let mut at = 0;
    Box::new(row.tiles().map(move |tile| {
        tile.map(|tile| {
            let own = &values[at..at + tile.entries * to];
            at += tile.entries * to;
            tile.with_values(own)
        })
    }))
}

/// A tile that cannot be what was written.
fn malformed(file: &SparseFile, task: u64, Malformed(what): Malformed) -> EngineError {
    let first = file
        .tile_rows(task as usize)
        .next()
        .map_or(0, |(record, _)| record.number);
    EngineError::Store(file.malformed(format!("{what}, in tile row {first} or one of the next")))
}
