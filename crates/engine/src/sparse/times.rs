//! What a product is made of, and the tiles of the sparse matrix as it goes through them.

use std::ops::Range;
use std::sync::Arc;

use outcore_coding::tiles::{Tile, TileRow};
use outcore_coding::Malformed;
use outcore_dtype::{DType, Scalar};
use outcore_kernels::{cast_kernel, UnaryKernel};
use outcore_sparse::{product_kernel, transposed_kernel, Semiring, TileProduct};
use outcore_store::{Interval, SparseFile};

use super::bands::TilePiece;
use crate::task::Grid;
use crate::EngineError;

/// The operands of a product.
#[derive(Clone, Debug)]
pub(super) struct Times {
    pub file: Arc<SparseFile>,
    /// What a task works on of the sparse matrix.
    pub pieces: Arc<[TilePiece]>,
    pub transposed: bool,
    pub semiring: Semiring,
    /// The sum of nothing.
    pub zero: Vec<u8>,
    pub result: [Grid; 1],
}

impl Times {
    pub fn dtype(&self) -> DType {
        self.result[0].dtype
    }

    /// Whether the matrix has values of another type than the product's.
    pub fn converts(&self) -> bool {
        self.file.matrix().dtype.is_some_and(|dtype| dtype != self.dtype())
    }

    /// The sum of nothing, as a number.
    pub fn nothing(&self) -> Scalar {
        match (self.semiring.name().split('_').next(), self.dtype()) {
            (Some("min"), DType::I64) => Scalar::Int(i64::MAX),
            (Some("max"), DType::I64) => Scalar::Int(i64::MIN),
            (Some("min"), _) => Scalar::Float(f64::INFINITY),
            (Some("max"), _) => Scalar::Float(f64::NEG_INFINITY),
            (_, DType::Bool) => Scalar::Bool(false),
            _ => Scalar::Int(0),
        }
    }
}

/// A tile row on the way through its tiles.
pub(super) struct OpenRow<'a> {
    number: u64,
    next: Option<Tile<'a>>,
    tiles: std::vec::IntoIter<Tile<'a>>,
}

/// Calls `each` with the number of a tile row and a tile of it: one column of tiles after the other, so that the rows or
/// sums that they share stay in the cache.
pub(super) fn by_columns<'a>(
    rows: &mut [OpenRow<'a>],
    mut each: impl FnMut(u64, Tile<'a>) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    while let Some(block) = rows.iter().filter_map(|row| Some(row.next?.block)).min() {
        for row in rows.iter_mut() {
            if let Some(tile) = row.next.filter(|tile| tile.block == block) {
                each(row.number, tile)?;
                row.next = row.tiles.next();
            }
        }
    }
    Ok(())
}

impl Times {
    /// The rows of each piece.
    pub(super) fn rows(&self) -> Arc<[Interval]> {
        self.pieces.iter().map(|piece| piece.rows).collect()
    }

    /// Bytes of a piece.
    pub(super) fn piece_bytes(&self, piece: &TilePiece) -> u64 {
        piece
            .tiles
            .clone()
            .map(|tile| self.file.tile_bytes(tile as usize))
            .sum()
    }

    /// Bytes that the values of a piece take in the type of the product, where that is another.
    pub(super) fn values_bytes(&self, piece: &TilePiece) -> u64 {
        if !self.converts() {
            return 0;
        }
        let rows = piece.tiles.clone().flat_map(|tile| self.file.tile_rows(tile as usize));
        rows.map(|(record, _)| (record.entries * self.dtype().size() as u64).next_multiple_of(8))
            .sum()
    }

    pub(super) fn kernel(&self) -> Result<TileProduct, EngineError> {
        let find = match self.transposed {
            false => product_kernel,
            true => transposed_kernel,
        };
        let valued = self.file.matrix().dtype.is_some();
        find(self.semiring, self.dtype(), valued)
            .ok_or_else(|| EngineError::Internal(format!("no product in {} of {}", self.semiring.name(), self.dtype())))
    }

    /// The tile rows of a piece, whose tiles these are, and in them the tiles of some columns of tiles, with their values in
    /// the type of the product.
    pub(super) fn opened<'a>(
        &self,
        piece: &TilePiece,
        tiles: &[&'a [u8]],
        blocks: &Range<u64>,
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
        let tile_rows = piece.tiles.clone().zip(tiles).flat_map(|(tile, bytes)| {
            let rows = self.file.tile_rows(tile as usize);
            rows.map(move |(record, place)| (record, &bytes[place]))
        });
        for (record, bytes) in tile_rows {
            let malformed = |fault| self.malformed(record.number, fault);
            let row = TileRow::new(bytes, item).map_err(malformed)?;
            let is_wanted = |tile: &Result<Tile<'_>, Malformed>| match tile {
                Ok(tile) => blocks.contains(&u64::from(tile.block)),
                Err(_) => true,
            };
            let tiles: Result<Vec<Tile<'a>>, Malformed> = row.tiles().filter(is_wanted).collect();
            let mut tiles = tiles.map_err(malformed)?;
            if let Some(convert) = convert {
                let entries: usize = tiles.iter().map(|tile| tile.entries).sum();
                let own = (entries * self.dtype().size()).next_multiple_of(8);
                let (values, rest) = workspace.split_at_mut(own);
                workspace = rest;
                convert_values(&mut tiles, values, self.dtype().size(), convert);
            }
            let mut tiles = tiles.into_iter();
            rows.push(OpenRow {
                number: record.number,
                next: tiles.next(),
                tiles,
            });
        }
        Ok(rows)
    }

    /// A tile row that cannot be what was written.
    pub(super) fn malformed(&self, tile_row: u64, Malformed(what): Malformed) -> EngineError {
        EngineError::Store(self.file.malformed(format!("{what}, in tile row {tile_row}")))
    }
}

/// Gives tiles values of another type, `item` bytes each.
fn convert_values<'a>(tiles: &mut [Tile<'a>], values: &'a mut [u8], item: usize, convert: UnaryKernel) {
    let mut rest = values;
    for tile in tiles {
        let (own, others) = rest.split_at_mut(tile.entries * item);
        convert(tile.values, own);
        *tile = tile.with_values(own);
        rest = others;
    }
}
