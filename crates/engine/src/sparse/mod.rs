//! Sparse matrices on disk: products of which only what is needed of the dense matrix is in memory (FlashX, Zheng 2017,
//! chapter 4).
//!
//! A stored sparse matrix is a node like any stored array: tiles of bytes, of different sizes, each some tile rows. Its
//! products are tile algorithms over them, so forecast, placement, limit and faults are those of every program.
//!
//! Uses `ops` and `sort` and the rooms below. Start with `multiply.rs`; files are made by `assemble.rs`.

mod adding;
mod assemble;
mod bands;
mod bounds;
mod changed;
mod columns;
mod combined;
mod encoding;
mod entries;
mod fields;
mod formula;
mod join;
mod keyed;
mod made;
mod merging;
mod multiply;
mod opened;
mod operand;
mod order;
mod parallel;
mod part;
mod pieces;
mod places;
mod placing;
mod product;
mod rearranged;
mod row_entries;
mod rows;
mod sorted;
mod times;
mod transposed;

use std::path::Path;
use std::sync::Arc;

use outcore_dtype::DType;
use outcore_store::{open_rows as open_compressed, open_sparse, CompressedRows, Io, Source, SparseFile, SparseShape};

use crate::expr::{Digest, Expr, Op};
use crate::{ops, EngineError};

pub use assemble::Assembler;
pub use columns::entry_columns;
pub use encoding::Duplicates;
pub(crate) use encoding::{Encoded, EntryEncoder};
pub use entries::Entries;
pub(crate) use entries::TileBytes;
pub use fields::{DenseOperand, Field};
pub use formula::Formula;
pub use join::join;
pub use keyed::KeyedMatrix;
pub use made::{combined, keyed, part, product, rearranged, stored};
pub(crate) use operand::formula_of;
pub use operand::{SparseOperand, UnmadeMatrix};
pub use outcore_sparse::{Broken, Incomplete, Number, Semiring};
pub(crate) use parallel::{each_in_order, in_order};
pub use part::PartPlaces;
pub use places::Places;
pub use rearranged::Rearrangement;
pub use row_entries::RowEntries;
pub(crate) use rows::Listed;

/// A stored sparse matrix.
#[derive(Clone, Debug)]
pub struct SparseMatrix {
    pub file: Arc<SparseFile>,
    /// Its tiles.
    pub tiles: Expr,
    /// The function of its entries as they pass by; none where they are as they are stored.
    pub formula: Option<Arc<Formula>>,
}

impl SparseMatrix {
    /// The type of the values; nothing of a pattern.
    pub fn dtype(&self) -> Option<DType> {
        match &self.formula {
            Some(formula) => formula.dtype(),
            None => self.file.matrix().dtype,
        }
    }

    /// Equal where the entries are.
    pub fn identity(&self) -> String {
        let file = self.file.identity();
        match &self.formula {
            Some(formula) => format!("{file} by {}", Digest::of(formula.key())),
            None => file.to_string(),
        }
    }
}

/// Opens a sparse matrix. Its directory is read, no entry.
///
/// # Errors
/// As [`open_sparse`].
pub fn open(path: &Path, io: &Io) -> Result<SparseMatrix, EngineError> {
    of_file(open_sparse(path, io)?)
}

/// A matrix whose file is open.
///
/// # Errors
/// A file with tiles too large to address.
pub fn of_file(file: Arc<SparseFile>) -> Result<SparseMatrix, EngineError> {
    let tiles = ops::source(file.clone())?;
    Ok(SparseMatrix {
        file,
        tiles,
        formula: None,
    })
}

/// The matrix that has such tiles.
///
/// # Errors
/// Tiles that are not those of a stored matrix.
pub fn of_tiles(tiles: &Expr) -> Result<SparseMatrix, EngineError> {
    let file = match &tiles.op {
        Op::Source(source) => source
            .0
            .clone()
            .shared()
            .and_then(|file| file.downcast::<SparseFile>().ok()),
        _ => None,
    };
    let refusal = || EngineError::Argument(format!("sparse: {} is no stored matrix", tiles.label()));
    Ok(SparseMatrix {
        file: file.ok_or_else(refusal)?,
        tiles: tiles.clone(),
        formula: None,
    })
}

/// Opens a matrix whose rows, or columns as rows, lie compressed in stored arrays: row pointers, columns, and values if any.
/// Its tiles are of `side` rows and made as they are read.
///
/// # Errors
/// Arrays that are not stored as they are, or do not go together; row pointers that fall.
pub fn open_rows(
    name: String,
    [indptr, indices]: [&Expr; 2],
    data: Option<&Expr>,
    [rows, columns]: [u64; 2],
    side: u32,
    io: &Io,
) -> Result<SparseMatrix, EngineError> {
    if !side.is_power_of_two() || side as usize > outcore_coding::tiles::SIDE_MAX {
        return Err(EngineError::Argument(format!("sparse: tiles of {side} rows")));
    }
    let arrays = CompressedRows {
        indptr: source_of(&name, indptr)?,
        indices: source_of(&name, indices)?,
        data: data.map(|data| source_of(&name, data)).transpose()?,
        name,
    };
    let shape = SparseShape {
        rows,
        columns,
        side,
        entries: indices.shape.first().copied().unwrap_or(0),
        dtype: data.map(|data| data.dtype),
    };
    of_file(open_compressed(arrays, shape, io)?)
}

fn source_of(name: &str, array: &Expr) -> Result<Arc<dyn Source>, EngineError> {
    match &array.op {
        Op::Source(source) => Ok(source.0.clone()),
        _ => Err(EngineError::Argument(format!(
            "{name}: {} is not stored as it is",
            array.label()
        ))),
    }
}
