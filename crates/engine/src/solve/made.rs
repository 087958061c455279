//! The factor of a matrix as a node: a stage puts the matrix in the order of elimination, and then the tasks are planned.

use std::sync::Arc;

use outcore_store::{Io, SparseFile};

use super::analysis::Analysis;
use super::factorize::{cholesky_of_file, listed_grid};
use crate::expr::staged::{Keep, Next, Room, StageResult, Staged, Stages};
use crate::expr::Expr;
use crate::ops;
use crate::sparse::{SparseMatrix, SparseOperand};
use crate::task::Grid;
use crate::EngineError;

/// The factor of the matrix of an analysis; `permuted` has its rows and columns in the order of elimination, and of each row
/// the entries on and right of the diagonal count.
///
/// # Errors
/// A matrix of another shape or type.
pub fn cholesky(analysis: &Arc<Analysis>, permuted: &SparseOperand) -> Result<Expr, EngineError> {
    if let Some(matrix) = permuted.stored().filter(|matrix| matrix.formula.is_none()) {
        return cholesky_of_file(analysis, &matrix);
    }
    let factoring = Factoring {
        analysis: analysis.clone(),
        permuted: permuted.clone(),
        results: [listed_grid(&[1])],
    };
    Ok(ops::staged(Arc::new(factoring), std::slice::from_ref(permuted.node()))?.swap_remove(0))
}

#[derive(Clone, Debug)]
struct Factoring {
    analysis: Arc<Analysis>,
    permuted: SparseOperand,
    results: [Grid; 1],
}

impl Staged for Factoring {
    fn name(&self) -> String {
        "cholesky".into()
    }
    fn key(&self) -> Vec<u8> {
        self.analysis.digest.to_string().into_bytes()
    }
    fn results(&self) -> &[Grid] {
        &self.results
    }
    fn begin(&self, inputs: &[Expr], _room: Room) -> Result<Box<dyn Stages>, EngineError> {
        Ok(Box::new(FactoringStages {
            of: self.clone(),
            input: inputs[0].clone(),
        }))
    }
}

struct FactoringStages {
    of: Factoring,
    input: Expr,
}

impl FactoringStages {
    fn done(&self, matrix: &SparseMatrix) -> Result<Next, EngineError> {
        Ok(Next::Done(vec![cholesky_of_file(&self.of.analysis, matrix)?]))
    }
}

impl Stages for FactoringStages {
    fn next(&mut self, found: &[StageResult], _room: Room, _io: &Io) -> Result<Next, EngineError> {
        let Some(StageResult::Stored(source)) = found.first() else {
            return Ok(Next::Stage {
                label: "rows in the order of elimination".into(),
                awaits: "the rows of the matrix in the order of elimination".into(),
                outputs: vec![(self.input.clone(), Keep::Stored)],
            });
        };
        let file = source
            .clone()
            .shared()
            .and_then(|file| file.downcast::<SparseFile>().ok());
        let file = file.ok_or_else(|| EngineError::Internal("a stage made no sparse matrix".into()))?;
        self.of.permuted.made_in(&file);
        self.done(&self.of.permuted.over(file)?)
    }

    fn assume(&mut self, _after: usize, _room: Room) -> Result<Next, EngineError> {
        let output = self.input.sparse_output();
        let output = output.ok_or_else(|| EngineError::Internal(format!("{} is no matrix", self.input.label())))?;
        let identity = format!("matrix to come: {}", self.input.id);
        let file = Arc::new(SparseFile::foreseen(&output, identity));
        self.done(&self.of.permuted.over(file)?)
    }

    fn lookup_bytes(&self) -> u64 {
        self.input.sparse_output().map_or(0, |output| output.opening_bytes())
    }
}
