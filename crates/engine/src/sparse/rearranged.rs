//! The entries of a matrix at other places: their keys are counted by tile rows and sorted, and tiles are made of them.

use std::any::Any;
use std::sync::Arc;

use outcore_dtype::{DType, Scalar};
use outcore_kernels::{Binary, Tally};
use outcore_store::SparseShape;

use super::columns::entry_columns;
use super::formula::Formula;
use super::places::Places;
use super::sorted::{sorted_matrix, Buckets};
use super::SparseMatrix;
use crate::expr::{Expr, Node};
use crate::task::{Parameters, Recipe};
use crate::{ops, sort, EngineError};

/// Entries of a file, or of one that is foreseen.
fn entries_of(matrix: &SparseMatrix) -> u64 {
    (0..matrix.file.tiles()).map(|tile| matrix.entries_of(tile)).sum()
}

/// Where entries go.
#[derive(Clone, Debug)]
pub struct Rearrangement {
    /// Keys of entries as functions of their fields: places, or tile rows and places within them where these are wide.
    keys: Vec<Expr>,
    /// The result's; its type is that of the operand.
    shape: SparseShape,
    places: Places,
}

impl Rearrangement {
    /// Of keys over the fields of an entry.
    ///
    /// # Errors
    /// A shape whose places need more than 64 bits within a tile row; keys of another type or number.
    pub fn new(keys: Vec<Expr>, shape: SparseShape) -> Result<Rearrangement, EngineError> {
        let is_side = shape.side.is_power_of_two() && shape.side as usize <= outcore_coding::tiles::SIDE_MAX;
        let places = Places::new(&shape).filter(|places| is_side && keys.len() == 1 + usize::from(places.is_wide));
        let is_key = |key: &Expr| key.dtype == DType::U64;
        match places {
            Some(places) if keys.iter().all(is_key) => Ok(Rearrangement { keys, shape, places }),
            _ => Err(EngineError::Argument(format!(
                "sparse: {} keys are no places in ({}, {})",
                keys.len(),
                shape.rows,
                shape.columns
            ))),
        }
    }

    pub fn shape(&self) -> &SparseShape {
        &self.shape
    }

    /// Refuses keys that are none of the entries of a matrix.
    ///
    /// # Errors
    /// Nodes that are no functions of fields; dense operands of another shape.
    pub(super) fn check(&self, of: &SparseShape) -> Result<(), EngineError> {
        let types = [of.dtype, Some(DType::U64)];
        (self.keys.iter()).try_for_each(|key| Formula::new(Some(key), None, types)?.check(of))
    }

    pub(super) fn key(&self) -> Vec<u8> {
        let SparseShape { rows, columns, .. } = self.shape;
        let words = [rows, columns, self.shape.side.into()];
        let digests = self.keys.iter().flat_map(|key| key.digest().0);
        words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .chain(digests)
            .collect()
    }

    pub(super) fn described(&self, recipe: Recipe) -> Recipe {
        let SparseShape { rows, columns, .. } = self.shape;
        let recipe = recipe.words(vec![rows, columns, self.shape.side.into(), self.keys.len() as u64]);
        let keys = self.keys.iter().cloned();
        keys.fold(recipe, |recipe, key| {
            let key: Arc<dyn Any + Send + Sync> = key;
            recipe.node(Some(key))
        })
    }

    /// The one that parameters describe.
    ///
    /// # Errors
    /// They describe none.
    pub(crate) fn described_by(with: &mut Parameters<'_>) -> Result<Rearrangement, EngineError> {
        let [rows, columns, side, keys] = *with.words()? else {
            return Err(with.refusal("shape of a matrix"));
        };
        let shape = SparseShape {
            rows,
            columns,
            side: u32::try_from(side).map_err(|_| with.refusal("side of a tile"))?,
            entries: 0,
            dtype: None,
        };
        let keys = (0..keys.min(2)).map(|_| with.node::<Node>()?.ok_or_else(|| with.refusal("key")));
        Rearrangement::new(keys.collect::<Result<_, _>>()?, shape)
    }

    fn formulas(&self, matrix: &SparseMatrix) -> Result<Vec<Arc<Formula>>, EngineError> {
        let stored = matrix.file.matrix().dtype;
        let formula = |key: &Expr| Formula::new(Some(key), None, [stored, Some(DType::U64)]).map(Arc::new);
        self.keys.iter().map(formula).collect()
    }

    /// How many entries go to each bucket of tile rows, as an array.
    ///
    /// # Errors
    /// None for keys that there are.
    pub(super) fn counted(&self, matrix: &SparseMatrix) -> Result<Expr, EngineError> {
        let mut formulas = self.formulas(matrix)?;
        formulas.truncate(1);
        let keys = entry_columns(matrix, formulas)?.swap_remove(0);
        let bits = self.buckets().bits();
        let shift = ops::constant(Scalar::UInt(bits.into()), DType::U64)?;
        let numbers = match bits {
            0 => keys,
            _ => ops::binary(Binary::ShiftRight, &keys, &ops::broadcast_to(&shift, &keys.shape)?)?,
        };
        let numbers = ops::astype(&numbers, DType::I64)?;
        ops::tallied(Tally::Count, &numbers, None, None, self.buckets().count(), DType::I64)
    }

    fn buckets(&self) -> Buckets {
        Buckets::of(&self.shape, self.places)
    }

    /// The matrix, of counts of entries.
    ///
    /// # Errors
    /// Counts that are not those of the matrix.
    pub(super) fn placed(&self, matrix: &SparseMatrix, counts: &[u64]) -> Result<Expr, EngineError> {
        let mut formulas = self.formulas(matrix)?;
        let stored = matrix.file.matrix().dtype;
        let dtype = matrix.dtype();
        if dtype.is_some() {
            formulas.push(match &matrix.formula {
                Some(formula) => formula.clone(),
                None => Arc::new(Formula::identity(stored)?),
            });
        }
        let shape = SparseShape {
            dtype,
            ..self.shape.clone()
        };
        let buckets = self.buckets();
        if counts.iter().sum::<u64>() != entries_of(matrix) {
            return Err(EngineError::Argument("sparse: entries lie outside the matrix".into()));
        }
        if counts.iter().all(|count| *count == 0) {
            return sorted_matrix(shape, &buckets, counts, &[], std::slice::from_ref(&matrix.tiles));
        }
        let mut columns = entry_columns(matrix, formulas)?;
        // A sort is stable: the least significant key comes first.
        for key in (0..self.keys.len()).rev() {
            columns.swap(0, key);
            columns = sort::sort_by(&columns[0], &columns[1..], false, None)?;
            columns.swap(0, key);
        }
        sorted_matrix(shape, &buckets, counts, &columns, &columns)
    }

    /// The matrix with as many entries in each bucket: no other counts give a larger file.
    ///
    /// # Errors
    /// As [`Self::placed`].
    pub(super) fn foreseen(&self, matrix: &SparseMatrix) -> Result<Expr, EngineError> {
        let entries = entries_of(matrix);
        let buckets = self.buckets().count();
        let counts: Vec<u64> = (0..buckets)
            .map(|bucket| entries / buckets + u64::from(bucket < entries % buckets))
            .collect();
        self.placed(matrix, &counts)
    }
}
