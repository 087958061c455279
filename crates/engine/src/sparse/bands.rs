//! How the dense sides of a product are cut: rows by the tiles of the sparse matrix, columns by what fits into memory.

use std::ops::Range;

use outcore_dtype::DType;
use outcore_store::{Interval, SparseFile};

use crate::task::Grid;

/// Columns of a dense matrix that are worked on together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bands {
    pub columns: u64,
    /// Columns of a band; the last may have fewer.
    pub width: u64,
}

impl Bands {
    pub fn count(&self) -> u64 {
        self.columns.div_ceil(self.width)
    }

    pub fn width_of(&self, band: u64) -> u64 {
        self.width.min(self.columns - band * self.width)
    }

    /// The result with tiles as wide as a band: those of all columns would need all bands of the rows at once.
    pub fn cut(&self, result: &Grid) -> Grid {
        Grid {
            tile: vec![result.tile[0], self.width],
            ..result.clone()
        }
    }
}

/// Tiles of a sparse matrix that are worked on together, and the rows that belong to them.
#[derive(Clone, Debug)]
pub(super) struct TilePiece {
    pub tiles: Range<u64>,
    /// They ascend, and there may be rows between those of two pieces.
    pub rows: Interval,
}

/// The matrix in pieces of so many bytes, or of one tile: in a larger one more tile rows share what they need of the dense
/// matrix while it is in the cache (the super tiles of FlashX 4.3.3).
pub(super) fn pieces_of(file: &SparseFile, bytes: u64) -> Vec<TilePiece> {
    let (side, rows) = (u64::from(file.matrix().side), file.matrix().rows);
    let mut pieces: Vec<TilePiece> = vec![];
    let mut held = 0;
    for tile in 0..file.tiles() {
        let mut numbers = file.tile_rows(tile).map(|(record, _)| record.number);
        let first = numbers.next().unwrap_or(0);
        let end = ((numbers.last().unwrap_or(first) + 1) * side).min(rows);
        held += file.tile_bytes(tile);
        match pieces.last_mut() {
            Some(piece) if held <= bytes && end - piece.rows.start <= PIECE_ROWS * side => {
                piece.tiles.end += 1;
                piece.rows = Interval::between(piece.rows.start, end);
            }
            _ => {
                held = file.tile_bytes(tile);
                pieces.push(TilePiece {
                    tiles: tile as u64..tile as u64 + 1,
                    rows: Interval::between(first * side, end),
                });
            }
        }
    }
    pieces
}

/// Tile rows of a piece of several tiles, at most: their sums stay in the cache that processors share.
const PIECE_ROWS: u64 = 64;

/// The pieces that some rows meet: a range of their numbers.
pub(super) fn meeting(pieces: &[Interval], rows: Interval) -> std::ops::Range<usize> {
    let first = pieces.partition_point(|piece| piece.end() <= rows.start);
    let last = pieces.partition_point(|piece| piece.start < rows.end());
    first..last.max(first)
}

/// Copies the rows that two blocks share. Each is a row of the matrix it begins with, the bytes of a row, and where in them
/// the columns begin; `bytes` of each row are copied.
pub(super) fn copy_rows(
    (from, from_row, from_pitch, from_at): (&[u8], u64, usize, usize),
    (to, to_row, to_pitch, to_at): (&mut [u8], u64, usize, usize),
    shared: Interval,
    bytes: usize,
) {
    if shared.is_empty() || bytes == 0 {
        return;
    }
    let from = &from[(shared.start - from_row) as usize * from_pitch..];
    let to = &mut to[(shared.start - to_row) as usize * to_pitch..];
    let rows = shared.length as usize;
    if from_pitch == bytes && to_pitch == bytes {
        to[..rows * bytes].copy_from_slice(&from[..rows * bytes]);
        return;
    }
    for row in 0..rows {
        to[row * to_pitch + to_at..][..bytes].copy_from_slice(&from[row * from_pitch + from_at..][..bytes]);
    }
}

/// Bytes of so many elements.
pub(super) fn bytes_of(elements: u64, dtype: DType) -> usize {
    elements as usize * dtype.size()
}
