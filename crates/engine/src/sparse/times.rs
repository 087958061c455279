//! What a product is made of, and the tiles of the sparse matrix as it goes through them.

use std::ops::Range;
use std::sync::Arc;

use outcore_coding::tiles::Tile;
use outcore_dtype::{DType, Scalar};
use outcore_sparse::{product_kernel, transposed_kernel, Semiring, TileProduct};
use outcore_store::{Interval, SparseFile};

use super::bands::TilePiece;
use super::formula::Formula;
use super::opened::{changed_tiles, tiles_of};
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
    /// What is made of the entries; nothing where they are multiplied as they are.
    pub formula: Option<Arc<Formula>>,
    pub result: [Grid; 1],
}

impl Times {
    pub fn dtype(&self) -> DType {
        self.result[0].dtype
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

    /// Bytes of memory that the formula takes for a piece.
    pub(super) fn workspace_bytes(&self, piece: &TilePiece) -> u64 {
        let Some(formula) = &self.formula else { return 0 };
        let rows = piece.tiles.clone().flat_map(|tile| self.file.tile_rows(tile as usize));
        formula.desk_bytes(&self.file, rows.map(|(record, _)| record))
    }

    pub(super) fn kernel(&self) -> Result<TileProduct, EngineError> {
        let find = match self.transposed {
            false => product_kernel,
            true => transposed_kernel,
        };
        let valued = match &self.formula {
            Some(formula) => formula.dtype().is_some(),
            None => self.file.matrix().dtype.is_some(),
        };
        find(self.semiring, self.dtype(), valued)
            .ok_or_else(|| EngineError::Internal(format!("no product in {} of {}", self.semiring.name(), self.dtype())))
    }

    /// The tile rows of a piece, whose tiles these are, and in them the tiles of some columns of tiles, as the formula makes
    /// them.
    pub(super) fn opened<'a>(
        &self,
        piece: &TilePiece,
        tiles: &[&'a [u8]],
        blocks: &Range<u64>,
        workspace: &'a mut [u8],
    ) -> Result<Vec<OpenRow<'a>>, EngineError> {
        let records = || piece.tiles.clone().flat_map(|tile| self.file.tile_rows(tile as usize));
        let mut desk = self.formula.as_ref().map(|formula| {
            let most = records().map(|(record, _)| record.entries).max();
            (formula, formula.desk(workspace, most.unwrap_or(0)))
        });
        let bytes_of = |(tile, bytes): (u64, &&'a [u8])| {
            let bytes: &'a [u8] = bytes;
            self.file
                .tile_rows(tile as usize)
                .map(move |(record, place)| (record, &bytes[place]))
        };
        let mut rows = vec![];
        for (record, bytes) in piece.tiles.clone().zip(tiles).flat_map(bytes_of) {
            let mut tiles = tiles_of(&self.file, record, bytes, |block| blocks.contains(&u64::from(block)))?;
            if let Some((formula, desk)) = &mut desk {
                tiles = changed_tiles(&self.file, record, tiles, (formula, desk))?;
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
}
