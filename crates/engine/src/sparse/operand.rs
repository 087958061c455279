//! Operands of sparse operators: matrices that are stored, and such that a computation makes of others before it reads them.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use outcore_dtype::DType;
use outcore_store::{SparseFile, SparseShape};

use super::formula::Formula;
use super::{of_file, of_tiles, SparseMatrix};
use crate::expr::{Expr, Node};
use crate::task::{Parameters, Recipe};
use crate::EngineError;

/// A sparse matrix as operators take it.
#[derive(Clone, Debug)]
pub enum SparseOperand {
    Stored(SparseMatrix),
    Unmade(UnmadeMatrix),
}

/// A matrix that is the result of an operator. A stage of whatever reads it stores it in scratch, from where it goes with
/// its last reader.
#[derive(Clone, Debug)]
pub struct UnmadeMatrix {
    /// The result that becomes its file.
    node: Expr,
    /// Of the file; its entries are not counted.
    shape: SparseShape,
    /// As in a stored matrix.
    formula: Option<Arc<Formula>>,
    /// The file, once a computation has made it: the next ones read it.
    made: Arc<OnceLock<Arc<SparseFile>>>,
}

impl SparseOperand {
    /// The result of an operator, of a shape and a type.
    pub fn of_result(node: Expr, shape: SparseShape) -> SparseOperand {
        SparseOperand::Unmade(UnmadeMatrix {
            node,
            shape,
            formula: None,
            made: Arc::default(),
        })
    }

    /// The matrix in a file, where it is in one.
    pub fn stored(&self) -> Option<SparseMatrix> {
        match self {
            SparseOperand::Stored(matrix) => Some(matrix.clone()),
            SparseOperand::Unmade(unmade) => {
                let file = unmade.made.get()?.clone();
                let formula = unmade.formula.clone();
                Some(SparseMatrix {
                    formula,
                    ..of_file(file).ok()?
                })
            }
        }
    }

    /// Says in which file it is from now on.
    pub fn made_in(&self, file: &Arc<SparseFile>) {
        if let SparseOperand::Unmade(unmade) = self {
            let _ = unmade.made.set(file.clone());
        }
    }

    /// Rows, columns and tiles; the type is that of the entries before the formula.
    pub fn shape(&self) -> &SparseShape {
        match self {
            SparseOperand::Stored(matrix) => matrix.file.matrix(),
            SparseOperand::Unmade(unmade) => &unmade.shape,
        }
    }

    pub fn formula(&self) -> Option<&Arc<Formula>> {
        match self {
            SparseOperand::Stored(matrix) => matrix.formula.as_ref(),
            SparseOperand::Unmade(unmade) => unmade.formula.as_ref(),
        }
    }

    /// The type of the values; nothing of a pattern.
    pub fn dtype(&self) -> Option<DType> {
        match self.formula() {
            Some(formula) => formula.dtype(),
            None => self.shape().dtype,
        }
    }

    /// The same file, whose entries a formula changes.
    ///
    /// # Errors
    /// A formula with dense operands of another shape.
    pub fn with_formula(&self, formula: Formula) -> Result<SparseOperand, EngineError> {
        formula.check(self.shape())?;
        let formula = Some(Arc::new(formula));
        Ok(match self.clone() {
            SparseOperand::Stored(matrix) => SparseOperand::Stored(SparseMatrix { formula, ..matrix }),
            SparseOperand::Unmade(unmade) => SparseOperand::Unmade(UnmadeMatrix { formula, ..unmade }),
        })
    }

    /// Its tiles, or the result that they will be.
    pub fn node(&self) -> &Expr {
        match self {
            SparseOperand::Stored(matrix) => &matrix.tiles,
            SparseOperand::Unmade(unmade) => &unmade.node,
        }
    }

    /// The file that an operand was made of, as an operand.
    pub(crate) fn over(&self, file: Arc<SparseFile>) -> Result<SparseMatrix, EngineError> {
        Ok(SparseMatrix {
            formula: self.formula().cloned(),
            ..of_file(file)?
        })
    }

    /// A recipe with what [`SparseOperand::described_by`] asks of it, beside its node.
    pub(super) fn described(&self, recipe: Recipe) -> Recipe {
        let recipe = match self {
            SparseOperand::Stored(_) => recipe.flag(false),
            SparseOperand::Unmade(unmade) => {
                let SparseShape { rows, columns, .. } = unmade.shape;
                let recipe = recipe.flag(true).words(vec![rows, columns, unmade.shape.side.into()]);
                recipe.text(name_of(unmade.shape.dtype))
            }
        };
        match self.formula() {
            Some(formula) => formula.described(recipe.flag(true)),
            None => recipe.flag(false),
        }
    }

    /// The operand that parameters describe, with its node.
    ///
    /// # Errors
    /// They describe none.
    pub(crate) fn described_by(with: &mut Parameters<'_>, node: &Expr) -> Result<SparseOperand, EngineError> {
        let operand = match with.flag()? {
            false => SparseOperand::Stored(of_tiles(node)?),
            true => {
                let [rows, columns, side] = *with.words()? else {
                    return Err(with.refusal("shape of a matrix"));
                };
                let side = u32::try_from(side).ok().filter(|side| side.is_power_of_two());
                let shape = SparseShape {
                    rows,
                    columns,
                    side: side.ok_or_else(|| with.refusal("side of a tile"))?,
                    entries: 0,
                    dtype: dtype_of(with)?,
                };
                SparseOperand::of_result(node.clone(), shape)
            }
        };
        match with.flag()? {
            false => Ok(operand),
            true => operand.with_formula(formula_of(with)?),
        }
    }
}

/// The name of a type of values.
pub(super) fn name_of(dtype: Option<DType>) -> &'static str {
    dtype.map_or("pattern", DType::name)
}

/// The type of values that a parameter names.
///
/// # Errors
/// It names none.
pub(super) fn dtype_of(with: &mut Parameters<'_>) -> Result<Option<DType>, EngineError> {
    match with.text()? {
        "pattern" => Ok(None),
        name => DType::from_name(name).map(Some).ok_or_else(|| with.refusal("type")),
    }
}

impl Formula {
    /// A recipe with its nodes and types.
    pub(super) fn described(&self, recipe: Recipe) -> Recipe {
        let nodes = self.nodes().iter().cloned();
        let recipe = nodes.fold(recipe, |recipe, node| {
            recipe.node(node.map(|node| -> Arc<dyn Any + Send + Sync> { node }))
        });
        let [stored, dtype] = self.types();
        recipe.text(name_of(stored)).text(name_of(dtype))
    }
}

/// The formula that parameters describe.
///
/// # Errors
/// They describe none.
pub(crate) fn formula_of(with: &mut Parameters<'_>) -> Result<Formula, EngineError> {
    let (value, kept) = (with.node::<Node>()?, with.node::<Node>()?);
    let types = [dtype_of(with)?, dtype_of(with)?];
    Formula::new(value.as_ref(), kept.as_ref(), types)
}
