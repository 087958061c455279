//! What a product is made of, and the tiles of the sparse matrix as it goes through them.

use std::sync::Arc;

use outcore_dtype::{DType, Scalar};
use outcore_kernels::{cast_kernel, UnaryKernel};
use outcore_sparse::{product_kernel, transposed_kernel, Malformed, Semiring, Tile, TileProduct, TileRow};
use outcore_store::SparseFile;

use crate::task::Grid;
use crate::EngineError;

/// What is multiplied.
#[derive(Clone, Debug)]
pub(super) struct Times {
    pub file: Arc<SparseFile>,
    /// Rows of each tile of the sparse matrix.
    pub pieces: Arc<[(u64, u64)]>,
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
            true => transposed_kernel,
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

    /// A tile that cannot be what was written.
    pub(super) fn malformed(&self, task: u64, Malformed(what): Malformed) -> EngineError {
        let first = self.file.tile_rows(task as usize).next();
        let first = first.map_or(0, |(record, _)| record.number);
        EngineError::Store(
            self.file
                .malformed(format!("{what}, in tile row {first} or one of the next")),
        )
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
