//! A matrix of entries in any order, given as columns: their keys are counted by tile rows and sorted, and tiles are made of
//! them.

use outcore_dtype::{DType, Scalar};
use outcore_kernels::{Binary, Tally};
use outcore_store::SparseShape;

use super::operand::{dtype_of, name_of};
use super::places::Places;
use super::sorted::{sorted_matrix, Buckets};
use crate::expr::Expr;
use crate::task::{Parameters, Recipe};
use crate::{ops, sort, EngineError};

/// The matrix that entries make whose keys are known: places, or tile rows and places within them where these are wide.
#[derive(Clone, Debug)]
pub struct KeyedMatrix {
    shape: SparseShape,
    places: Places,
}

impl KeyedMatrix {
    /// Of so many keys an entry.
    ///
    /// # Errors
    /// A shape whose places need more than 64 bits within a tile row, or another number of keys.
    pub fn new(shape: SparseShape, keys: usize) -> Result<KeyedMatrix, EngineError> {
        let is_side = shape.side.is_power_of_two() && shape.side as usize <= outcore_coding::tiles::SIDE_MAX;
        let places = Places::new(&shape).filter(|places| is_side && keys == places.keys());
        let refusal = || {
            let SparseShape { rows, columns, .. } = shape;
            EngineError::Argument(format!("sparse: {keys} keys are no places in ({rows}, {columns})"))
        };
        Ok(KeyedMatrix {
            places: places.ok_or_else(refusal)?,
            shape,
        })
    }

    pub fn shape(&self) -> &SparseShape {
        &self.shape
    }

    /// Keys of an entry.
    pub fn keys(&self) -> usize {
        self.places.keys()
    }

    /// Refuses columns that are no keys and values of entries.
    ///
    /// # Errors
    /// Another number, type or length of columns.
    pub(super) fn check(&self, columns: &[Expr]) -> Result<(), EngineError> {
        let count = self.keys() + usize::from(self.shape.dtype.is_some());
        let types = |at: usize| match at < self.keys() {
            true => Some(DType::U64),
            false => self.shape.dtype,
        };
        let is_column = |(at, column): (usize, &Expr)| {
            column.ndim() == 1 && column.shape == columns[0].shape && Some(column.dtype) == types(at)
        };
        match columns.len() == count && columns.iter().enumerate().all(is_column) {
            true => Ok(()),
            false => Err(EngineError::Argument(
                "sparse: columns are no keys and values of entries".into(),
            )),
        }
    }

    pub(super) fn key(&self) -> Vec<u8> {
        let SparseShape { rows, columns, .. } = self.shape;
        let words = [rows, columns, self.shape.side.into()];
        let dtype = name_of(self.shape.dtype);
        words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .chain(dtype.bytes())
            .collect()
    }

    pub(super) fn described(&self, recipe: Recipe) -> Recipe {
        let SparseShape { rows, columns, .. } = self.shape;
        recipe
            .words(vec![rows, columns, self.shape.side.into(), self.keys() as u64])
            .text(name_of(self.shape.dtype))
    }

    /// The matrix that parameters describe.
    ///
    /// # Errors
    /// Parameters that describe none.
    pub(crate) fn described_by(with: &mut Parameters<'_>) -> Result<KeyedMatrix, EngineError> {
        let [rows, columns, side, keys] = *with.words()? else {
            return Err(with.refusal("shape of a matrix"));
        };
        let dtype = dtype_of(with)?;
        let shape = SparseShape {
            rows,
            columns,
            side: u32::try_from(side).map_err(|_| with.refusal("side of a tile"))?,
            entries: 0,
            dtype,
        };
        KeyedMatrix::new(shape, keys.min(2) as usize)
    }

    /// How many entries go to each bucket of tile rows, as an array.
    ///
    /// # Errors
    /// None for keys that there are.
    pub(super) fn counted(&self, key: &Expr) -> Result<Expr, EngineError> {
        let buckets = Buckets::of(&self.shape, self.places);
        let shift = ops::constant(Scalar::UInt(buckets.bits().into()), DType::U64)?;
        let numbers = match buckets.bits() {
            0 => key.clone(),
            _ => ops::binary(Binary::ShiftRight, key, &ops::broadcast_to(&shift, &key.shape)?)?,
        };
        let numbers = ops::astype(&numbers, DType::I64)?;
        ops::tallied(Tally::Count, &numbers, None, None, buckets.count(), DType::I64)
    }

    /// The matrix, of counts of entries. `node` is any, for where there are none.
    ///
    /// # Errors
    /// Counts that are not those of the entries.
    pub(super) fn placed(&self, mut columns: Vec<Expr>, counts: &[u64], node: &Expr) -> Result<Expr, EngineError> {
        let buckets = Buckets::of(&self.shape, self.places);
        if counts.iter().sum::<u64>() != columns[0].shape[0] {
            return Err(EngineError::Argument("sparse: entries lie outside the matrix".into()));
        }
        if columns[0].shape[0] == 0 {
            return sorted_matrix(&self.shape, &buckets, counts, &[], std::slice::from_ref(node));
        }
        // A sort is stable: the least significant key comes first.
        for key in (0..self.keys()).rev() {
            columns.swap(0, key);
            columns = sort::sort_by(&columns[0], &columns[1..], false, None)?;
            columns.swap(0, key);
        }
        sorted_matrix(&self.shape, &buckets, counts, &columns, &columns)
    }

    /// As [`Buckets::foreseen`].
    pub(super) fn foreseen(&self, entries: u64) -> Vec<u64> {
        Buckets::of(&self.shape, self.places).foreseen(entries)
    }

    /// The same with values of another type.
    pub(super) fn of_type(&self, dtype: Option<DType>) -> KeyedMatrix {
        KeyedMatrix {
            shape: SparseShape {
                dtype,
                ..self.shape.clone()
            },
            places: self.places,
        }
    }
}
