//! Band matrices: their lower triangles in tiles of columns, each column from its diagonal on down.

use std::ops::Range;

use faer::{MatMut, MatRef};

use super::Hermitian;
use crate::factor::pivot_block::{matrix, rows_of, TileLayout};
use crate::factor::scalar::FactorScalar;

/// A band matrix of so many rows, whose tiles have `side` columns, each of its `depth` elements from the diagonal on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BandShape {
    pub rows: usize,
    pub side: usize,
    pub depth: usize,
}

impl BandShape {
    pub fn tiles(&self) -> usize {
        self.rows.div_ceil(self.side)
    }

    /// Columns of a tile.
    pub fn columns(&self, tile: usize) -> Range<usize> {
        tile * self.side..self.rows.min((tile + 1) * self.side)
    }

    /// Elements of a tile.
    pub fn elements(&self, tile: usize) -> usize {
        self.columns(tile).len() * self.depth
    }

    /// Tiles that have some columns.
    pub fn tiles_of(&self, columns: Range<usize>) -> Range<usize> {
        columns.start / self.side..columns.end.div_ceil(self.side)
    }
}

/// Tiles of a band beside each other, from a first one on.
pub(super) struct BandTiles<'a, T> {
    pub shape: BandShape,
    pub first: usize,
    pub tiles: Vec<&'a mut [T]>,
}

impl<'a, T: FactorScalar> BandTiles<'a, T> {
    pub fn new(shape: BandShape, first: usize, tiles: &'a mut [&mut [u8]]) -> BandTiles<'a, T> {
        let tiles = tiles.iter_mut().map(|tile| bytemuck::cast_slice_mut(tile)).collect();
        BandTiles { shape, first, tiles }
    }

    /// Columns of a range that one tile has, and those behind.
    fn split(&self, columns: &Range<usize>) -> (usize, Range<usize>, Range<usize>) {
        let tile = columns.start / self.shape.side;
        let end = columns.end.min((tile + 1) * self.shape.side);
        (tile - self.first, columns.start..end, end..columns.end)
    }

    /// Elements below the diagonal of some rows and columns, tile by tile.
    pub fn each_block(
        &mut self,
        rows: &Range<usize>,
        mut columns: Range<usize>,
        mut each: impl FnMut(Range<usize>, MatMut<'_, T>),
    ) {
        while !columns.is_empty() {
            let (tile, own, rest) = self.split(&columns);
            let depth = self.shape.depth;
            let start = (own.start - (tile + self.first) * self.shape.side) * depth + rows.start - own.start;
            let block = MatMut::from_column_major_slice_with_stride_mut(
                &mut self.tiles[tile][start..],
                rows.len(),
                own.len(),
                depth - 1,
            );
            each(own, block);
            columns = rest;
        }
    }

    /// A column from its diagonal on down.
    #[inline(always)]
    pub fn column(&mut self, column: usize) -> &mut [T] {
        let tile = column / self.shape.side - self.first;
        let start = column % self.shape.side * self.shape.depth;
        &mut self.tiles[tile][start..start + self.shape.depth]
    }

    /// The Hermitian block of some rows and their columns, whole.
    pub fn take_diagonal(&mut self, rows: &Range<usize>, mut whole: MatMut<'_, T>) {
        for (place, row) in rows.clone().enumerate() {
            let column = &self.column(row)[..rows.end - row];
            for (below, &value) in column.iter().enumerate() {
                whole[(place + below, place)] = value;
                whole[(place, place + below)] = value.conjugate();
            }
            whole[(place, place)] = T::of(column[0].real());
        }
    }

    pub fn put_diagonal(&mut self, rows: &Range<usize>, whole: MatRef<'_, T>) {
        for (place, row) in rows.clone().enumerate() {
            let count = rows.end - row;
            for (below, value) in self.column(row)[..count].iter_mut().enumerate() {
                *value = whole[(place + below, place)];
            }
        }
    }
}

impl Hermitian {
    /// A tile of a band of a diagonal tile of `width` columns and, unless last, the triangle below it, of which each column reaches
    /// `width` rows below the diagonal at most.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn band_tile(&self, width: usize, diagonal: &[u8], below: Option<&[u8]>, band: &mut [u8]) {
        in_type!(self, band_tile(width, diagonal, below, band));
    }

    /// A tile of a band of less depth, of the first elements of each column.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn narrowed(&self, width: usize, band: &[u8], narrow: &mut [u8]) {
        in_type!(self, narrowed(width, band, narrow));
    }

    /// A whole tile on the diagonal of a matrix, of its lower triangle.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn mirror(&self, width: usize, tile: &mut [u8]) {
        in_type!(self, mirror(width, tile));
    }
}

fn band_tile<T: FactorScalar>(width: usize, diagonal: &[u8], below: Option<&[u8]>, band: &mut [u8]) {
    let depth = rows_of::<T>(band, width);
    let diagonal = matrix::<T>(diagonal, width, width, TileLayout::Columns);
    let below = below.map(|below| matrix::<T>(below, rows_of::<T>(below, width), width, TileLayout::Columns));
    let band: &mut [T] = bytemuck::cast_slice_mut(band);
    for (column, out) in band.chunks_exact_mut(depth).enumerate() {
        out.fill(T::of(0.0));
        for row in column..width {
            out[row - column] = diagonal[(row, column)];
        }
        out[0] = T::of(out[0].real());
        let Some(below) = below else { continue };
        for row in 0..below.nrows().min(column + 1) {
            out[width + row - column] = below[(row, column)];
        }
    }
}

fn narrowed<T: FactorScalar>(width: usize, band: &[u8], narrow: &mut [u8]) {
    let (from, to) = (rows_of::<T>(band, width), rows_of::<T>(narrow, width));
    let (band, narrow): (&[T], &mut [T]) = (bytemuck::cast_slice(band), bytemuck::cast_slice_mut(narrow));
    for (narrow, band) in narrow.chunks_exact_mut(to).zip(band.chunks_exact(from)) {
        narrow.copy_from_slice(&band[..to]);
    }
}

fn mirror<T: FactorScalar>(width: usize, tile: &mut [u8]) {
    let tile: &mut [T] = bytemuck::cast_slice_mut(tile);
    for column in 0..width {
        tile[column * width + column] = T::of(tile[column * width + column].real());
        for row in column + 1..width {
            tile[row * width + column] = tile[column * width + row].conjugate();
        }
    }
}
