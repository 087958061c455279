//! The tiles of a Hermitian matrix, and of all that its eigenvalues are made by.

use std::ops::Range;
use std::sync::Arc;

use outcore_dtype::DType;
use outcore_kernels::{BandShape, BlockChase, MergeSizes, SweepRecord};

use crate::task::Grid;

/// The sets between the steps, behind the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EigenSet {
    /// Tiles of the lower triangle, of which all below the diagonal become reflectors.
    Tiles,
    /// The triangles that are left below diagonal tiles, and the triangles of reflectors, of each column of tiles.
    Corners,
    Triangles,
    /// Products of the rest with the reflectors: of tiles, and of their adjoints.
    Low,
    High,
    /// The other factor of the update.
    Updates,
    Middles,
    Band,
    Blocks,
    Narrow,
    Sweeps,
    Tridiagonal,
    Nodes,
    Records,
    /// Vectors of parts of the tridiagonal matrix.
    Parts,
    Projections,
}

const SETS: [EigenSet; 16] = [
    EigenSet::Tiles,
    EigenSet::Corners,
    EigenSet::Triangles,
    EigenSet::Low,
    EigenSet::High,
    EigenSet::Updates,
    EigenSet::Middles,
    EigenSet::Band,
    EigenSet::Blocks,
    EigenSet::Narrow,
    EigenSet::Sweeps,
    EigenSet::Tridiagonal,
    EigenSet::Nodes,
    EigenSet::Records,
    EigenSet::Parts,
    EigenSet::Projections,
];

/// The sets of the results.
pub(super) const VALUES: usize = 1;
pub(super) const VECTORS: usize = 2;

/// A part of the tridiagonal matrix: its tiles, and the parts that it is made of unless it is one tile.
#[derive(Clone, Debug)]
pub(super) struct TridiagonalPart {
    pub tiles: Range<u32>,
    pub halves: Option<[u32; 2]>,
    /// The number of its record.
    pub record: u32,
    /// The number of its first tile of vectors.
    pub first: u64,
}

impl TridiagonalPart {
    /// The number of a tile of its vectors.
    pub fn vectors(&self, row: u32, column: u32) -> u64 {
        let across = u64::from(self.tiles.end - self.tiles.start);
        self.first + u64::from(row - self.tiles.start) * across + u64::from(column - self.tiles.start)
    }
}

/// The cut of a matrix and its parts. Its rows, type and eigenvectors alone decide, so that the bits are the same at every limit.
#[derive(Debug)]
pub(super) struct HermitianCut {
    rows: usize,
    dtype: DType,
    /// Half widths of the band, which is the side of a tile, and of the narrow band.
    sizes: [usize; 2],
    columns: Range<u64>,
    parts: Vec<TridiagonalPart>,
    /// The number of the first tile of reflectors of each row of them, and behind.
    block_starts: Vec<u64>,
    sweep_starts: Vec<u64>,
    listed: Vec<Arc<[u64]>>,
}

/// Tiles along a side: one of two halves at least, and few enough for numbers of 32 bits of all tasks.
const TILES: Range<u64> = 2..1025;

impl HermitianCut {
    /// # Errors
    /// There are no such eigenvectors, or the matrix is one tile or beyond all numbers of tiles.
    pub fn new(
        rows: u64,
        dtype: DType,
        sizes: [usize; 2],
        columns: Option<Range<u64>>,
    ) -> Result<HermitianCut, String> {
        let tiles = rows.div_ceil(sizes[0] as u64);
        if !TILES.contains(&tiles) {
            return Err(format!(
                "eigh: a matrix of {rows} rows has {tiles} tiles of {} along a side, and {} to {} are taken",
                sizes[0],
                TILES.start,
                TILES.end - 1
            ));
        }
        if let Some(columns) = &columns {
            if columns.is_empty() || columns.end > rows {
                let (first, end) = (columns.start, columns.end);
                return Err(format!("eigh: eigenvectors {first} to {end} of {rows}"));
            }
        }
        let mut cut = HermitianCut {
            rows: rows as usize,
            dtype,
            sizes,
            columns: columns.unwrap_or(0..0),
            parts: vec![],
            block_starts: vec![],
            sweep_starts: vec![],
            listed: vec![],
        };
        let mut counts = (0, 0);
        divide(&mut cut.parts, &mut counts, 0..tiles as u32);
        let rows_of_blocks = 0..cut.tiles();
        cut.block_starts = starts(rows_of_blocks.clone().map(|row| cut.chase_steps(row as usize)));
        cut.sweep_starts = starts(rows_of_blocks.map(|row| cut.record().tiles(row as usize) as u64));
        cut.listed = SETS.iter().map(|&set| cut.lengths(set).into()).collect();
        Ok(cut)
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn sizes(&self) -> [usize; 2] {
        self.sizes
    }

    pub fn side(&self) -> usize {
        self.sizes[0]
    }

    /// Tiles along a side.
    pub fn tiles(&self) -> u32 {
        self.rows.div_ceil(self.sizes[0]) as u32
    }

    pub fn columns(&self) -> Range<u64> {
        self.columns.clone()
    }

    /// Bands of columns of the eigenvectors.
    pub fn bands(&self) -> u64 {
        (self.columns.end - self.columns.start).div_ceil(self.side() as u64)
    }

    /// Columns of a band, of all eigenvectors.
    pub fn band_columns(&self, band: u64) -> Range<usize> {
        let first = self.columns.start + band * self.side() as u64;
        first as usize..(first + self.side() as u64).min(self.columns.end) as usize
    }

    pub fn rows_of(&self, tile: u32) -> Range<usize> {
        self.rows_of_tiles(&(tile..tile + 1))
    }

    pub fn rows_of_tiles(&self, tiles: &Range<u32>) -> Range<usize> {
        let of = |tile: u32| (tile as usize * self.side()).min(self.rows);
        of(tiles.start)..of(tiles.end)
    }

    pub fn height(&self, tile: u32) -> usize {
        self.rows_of(tile).len()
    }

    /// Reflectors of a column of tiles.
    pub fn reflectors(&self, column: u32) -> usize {
        self.height(column + 1)
    }

    pub fn item(&self) -> usize {
        self.dtype.size()
    }

    /// The number of a tile of the lower triangle.
    pub fn lower(&self, row: u32, column: u32) -> u64 {
        u64::from(row) * (u64::from(row) + 1) / 2 + u64::from(column)
    }

    /// The number of a tile below the diagonal.
    pub fn below(&self, row: u32, column: u32) -> u64 {
        u64::from(row) * u64::from(row.saturating_sub(1)) / 2 + u64::from(column)
    }

    pub fn band_shape(&self) -> BandShape {
        self.shape(self.sizes[0])
    }

    pub fn narrow_shape(&self) -> BandShape {
        self.shape(self.sizes[1])
    }

    fn shape(&self, half: usize) -> BandShape {
        BandShape {
            rows: self.rows,
            side: self.sizes[0],
            depth: 2 * half,
        }
    }

    /// Blocks of columns whose steps a tile of reflectors has.
    pub fn blocks_of(&self, row: usize, step: usize) -> Vec<BlockChase> {
        let each = self.sizes[0] / self.sizes[1];
        let chase = |block| BlockChase::of(self.rows, self.sizes, block, step);
        (row * each..(row + 1) * each).map_while(chase).collect()
    }

    /// Steps of the first block of a row of tiles of reflectors.
    pub fn chase_steps(&self, row: usize) -> u64 {
        let first = row * self.sizes[0] + self.sizes[1];
        self.rows.saturating_sub(first).div_ceil(self.sizes[0]) as u64
    }

    /// The number of a tile of reflectors of blocks.
    pub fn blocks(&self, row: usize, step: usize) -> u64 {
        self.block_starts[row] + step as u64
    }

    pub fn record(&self) -> SweepRecord {
        SweepRecord {
            rows: self.rows,
            side: self.sizes[0],
            width: self.sizes[1],
        }
    }

    /// The number of a tile of reflectors of sweeps.
    pub fn sweeps(&self, row: usize, tile: usize) -> u64 {
        self.sweep_starts[row] + tile as u64
    }

    /// Parts of the tridiagonal matrix, those that it is made of before each; the whole is the last.
    pub fn parts(&self) -> &[TridiagonalPart] {
        &self.parts
    }

    pub fn whole(&self) -> &TridiagonalPart {
        self.parts.last().expect("a matrix has a part")
    }

    /// The part of the whole that has a tile.
    pub fn half(&self, whole: &TridiagonalPart, tile: u32) -> &TridiagonalPart {
        let halves = whole.halves.expect("of tiles there are two at least");
        let [upper, lower] = halves.map(|half| &self.parts[half as usize]);
        if upper.tiles.contains(&tile) {
            upper
        } else {
            lower
        }
    }

    pub fn merge(&self, part: &TridiagonalPart) -> Option<MergeSizes> {
        let halves = part.halves?;
        Some(MergeSizes {
            halves: halves.map(|half| self.rows_of_tiles(&self.parts[half as usize].tiles).len()),
        })
    }

    /// The number of a projection of a band of columns on reflectors.
    pub fn projection(&self, column: u32, band: u64) -> u64 {
        band * u64::from(self.tiles() - 1) + u64::from(column)
    }

    /// The name of the users' function.
    pub fn name(&self) -> &'static str {
        if self.columns.is_empty() {
            "eigvalsh"
        } else {
            "eigh"
        }
    }

    /// Results, before the sets between the steps.
    pub fn results(&self) -> usize {
        if self.columns.is_empty() {
            1
        } else {
            2
        }
    }

    /// The number of a set, behind the matrix and the results.
    pub fn set(&self, set: EigenSet) -> usize {
        1 + self.results() + set as usize
    }

    pub fn listed(&self, result: usize) -> Option<Arc<[u64]>> {
        self.listed.get(result.checked_sub(self.results())?).cloned()
    }

    pub fn grids(&self) -> Vec<Grid> {
        let rows = self.rows as u64;
        let mut grids = vec![Grid {
            shape: vec![rows],
            tile: vec![rows],
            dtype: DType::F64,
        }];
        if !self.columns.is_empty() {
            let (columns, side) = (self.columns.end - self.columns.start, self.side() as u64);
            grids.push(Grid {
                shape: vec![rows, columns],
                tile: vec![side, side.min(columns)],
                dtype: self.dtype,
            });
        }
        grids.extend(self.listed.iter().map(|lengths| Grid::listed(lengths)));
        grids
    }

    /// Bytes of the tridiagonal matrix: its diagonal, what is below, their scale, and the direction of each row.
    fn tridiagonal_bytes(&self) -> usize {
        8 * (2 * self.rows + 2) + self.item() * self.rows
    }

    /// Bytes of each tile of a set.
    fn lengths(&self, set: EigenSet) -> Vec<u64> {
        let (tiles, item) = (self.tiles(), self.item());
        let bytes = |elements: usize| (elements * item) as u64;
        let numbers = |elements: usize| (elements * 8) as u64;
        let columns = 0..tiles - 1;
        // Of tiles below the diagonal with as many columns as there are reflectors.
        let panels = |rows: Range<u32>| -> Vec<u64> {
            let of_row = |row: u32| (0..row).map(move |column| (row, column));
            let of = |(row, column)| bytes(self.height(row) * self.reflectors(column));
            rows.flat_map(of_row).map(of).collect()
        };
        let squares = columns.clone().map(|column| bytes(self.reflectors(column).pow(2)));
        match set {
            EigenSet::Tiles => (0..tiles)
                .flat_map(|row| (0..=row).map(move |column| (row, column)))
                .map(|(row, column)| bytes(self.height(row) * self.height(column)))
                .collect(),
            EigenSet::Corners => columns
                .map(|column| bytes(self.reflectors(column) * self.side()))
                .collect(),
            EigenSet::Triangles | EigenSet::Middles => squares.collect(),
            EigenSet::Low | EigenSet::Updates => panels(1..tiles),
            EigenSet::High => panels(1..tiles - 1),
            EigenSet::Band => (0..tiles as usize)
                .map(|tile| bytes(self.band_shape().elements(tile)))
                .collect(),
            EigenSet::Narrow => (0..tiles as usize)
                .map(|tile| bytes(self.narrow_shape().elements(tile)))
                .collect(),
            EigenSet::Blocks => {
                let each = BlockChase::elements(self.sizes);
                let of_row = |row: usize| (0..self.chase_steps(row) as usize).map(move |step| (row, step));
                let of = |(row, step)| bytes(self.blocks_of(row, step).len() * each);
                (0..tiles as usize).flat_map(of_row).map(of).collect()
            }
            EigenSet::Sweeps => {
                let count = self.sweep_starts.last().copied().unwrap_or(0);
                vec![bytes(self.record().elements()); count as usize]
            }
            EigenSet::Tridiagonal => vec![self.tridiagonal_bytes() as u64],
            EigenSet::Nodes => self
                .parts
                .iter()
                .map(|part| numbers(MergeSizes::node_elements(self.rows_of_tiles(&part.tiles).len())))
                .collect(),
            EigenSet::Records => {
                let merges = self.parts.iter().filter_map(|part| self.merge(part));
                merges.map(|sizes| numbers(sizes.record_elements())).collect()
            }
            EigenSet::Parts => {
                let smaller = &self.parts[..self.parts.len() - 1];
                let of_part = |part: &TridiagonalPart| {
                    let columns = part.tiles.clone();
                    let of_row = move |row: u32| columns.clone().map(move |column| (row, column));
                    part.tiles.clone().flat_map(of_row).collect::<Vec<_>>()
                };
                let of = |(row, column)| numbers(self.height(row) * self.height(column));
                smaller.iter().flat_map(of_part).map(of).collect()
            }
            EigenSet::Projections => (0..self.bands())
                .flat_map(|band| columns.clone().map(move |column| (band, column)))
                .map(|(band, column)| bytes(self.reflectors(column) * self.band_columns(band).len()))
                .collect(),
        }
    }
}

/// Adds the parts that some tiles are made of, and their own; of `counts` those of records and of tiles of vectors.
fn divide(parts: &mut Vec<TridiagonalPart>, counts: &mut (u32, u64), tiles: Range<u32>) -> u32 {
    let count = tiles.end - tiles.start;
    let halves = (count > 1).then(|| {
        let middle = tiles.start + count / 2;
        [tiles.start..middle, middle..tiles.end].map(|half| divide(parts, counts, half))
    });
    parts.push(TridiagonalPart {
        tiles,
        halves,
        record: counts.0,
        first: counts.1,
    });
    counts.0 += u32::from(halves.is_some());
    counts.1 += u64::from(count) * u64::from(count);
    parts.len() as u32 - 1
}

fn starts(counts: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut starts = vec![0];
    for count in counts {
        starts.push(starts[starts.len() - 1] + count);
    }
    starts
}
