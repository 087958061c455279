//! The entries of a matrix at other places: their keys are functions of their fields.

use std::any::Any;
use std::sync::Arc;

use outcore_dtype::DType;
use outcore_store::SparseShape;

use super::columns::entry_columns;
use super::formula::Formula;
use super::keyed::KeyedMatrix;
use super::SparseMatrix;
use crate::expr::{Expr, Node};
use crate::task::{Parameters, Recipe};
use crate::EngineError;

/// Where entries go.
#[derive(Clone, Debug)]
pub struct Rearrangement {
    /// Keys of entries as functions of their fields.
    keys: Vec<Expr>,
    /// The result; its type is that of the operand.
    matrix: KeyedMatrix,
}

impl Rearrangement {
    /// Of keys over the fields of an entry.
    ///
    /// # Errors
    /// As [`KeyedMatrix::new`]; keys of another type.
    pub fn new(keys: Vec<Expr>, shape: SparseShape) -> Result<Rearrangement, EngineError> {
        let matrix = KeyedMatrix::new(shape, keys.len())?;
        match keys.iter().all(|key| key.dtype == DType::U64) {
            true => Ok(Rearrangement { keys, matrix }),
            false => Err(EngineError::DType("sparse: keys are uint64".into())),
        }
    }

    pub fn shape(&self) -> &SparseShape {
        self.matrix.shape()
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
        let digests = self.keys.iter().flat_map(|key| key.digest().0);
        self.matrix.key().into_iter().chain(digests).collect()
    }

    pub(super) fn described(&self, recipe: Recipe) -> Recipe {
        let keys = self.keys.iter().cloned();
        keys.fold(self.matrix.described(recipe), |recipe, key| {
            let key: Arc<dyn Any + Send + Sync> = key;
            recipe.node(Some(key))
        })
    }

    /// The one that parameters describe.
    ///
    /// # Errors
    /// They describe none.
    pub(crate) fn described_by(with: &mut Parameters<'_>) -> Result<Rearrangement, EngineError> {
        let matrix = KeyedMatrix::described_by(with)?;
        let keys = (0..matrix.keys()).map(|_| with.node::<Node>()?.ok_or_else(|| with.refusal("key")));
        Rearrangement::new(keys.collect::<Result<_, _>>()?, matrix.shape().clone())
    }

    /// Columns of the first `count` keys of all entries.
    fn columns(
        &self,
        matrix: &SparseMatrix,
        count: usize,
        values: Option<Arc<Formula>>,
    ) -> Result<Vec<Expr>, EngineError> {
        let types = [matrix.file.matrix().dtype, Some(DType::U64)];
        let formula = |key: &Expr| Formula::new(Some(key), None, types).map(Arc::new);
        let keys = self.keys[..count].iter().map(formula);
        entry_columns(matrix, keys.chain(values.map(Ok)).collect::<Result<_, _>>()?)
    }

    /// How many entries go to each bucket of tile rows, as an array.
    ///
    /// # Errors
    /// None for keys that there are.
    pub(super) fn counted(&self, matrix: &SparseMatrix) -> Result<Expr, EngineError> {
        self.matrix.counted(&self.columns(matrix, 1, None)?[0])
    }

    /// The matrix, of counts of entries.
    ///
    /// # Errors
    /// Counts that are not those of the matrix.
    pub(super) fn placed(&self, matrix: &SparseMatrix, counts: &[u64]) -> Result<Expr, EngineError> {
        let values = match (matrix.dtype(), &matrix.formula) {
            (None, _) => None,
            (Some(_), Some(formula)) => Some(formula.clone()),
            (stored, None) => Some(Arc::new(Formula::identity(stored)?)),
        };
        let columns = self.columns(matrix, self.keys.len(), values)?;
        let result = self.matrix.of_type(matrix.dtype());
        result.placed(columns, counts, &matrix.tiles)
    }

    /// The matrix at its largest.
    ///
    /// # Errors
    /// As [`Self::placed`].
    pub(super) fn foreseen(&self, matrix: &SparseMatrix) -> Result<Expr, EngineError> {
        let entries = (0..matrix.file.tiles()).map(|tile| matrix.entries_of(tile)).sum();
        self.placed(matrix, &self.matrix.foreseen(entries))
    }
}
