//! Results of sparse operands, whose files have to be there before it is known what tasks there are: a stage makes the
//! operands that are not stored, another counts where entries go, and then the tasks are planned.

use std::sync::Arc;

use outcore_sparse::Semiring;
use outcore_store::{Io, SparseFile, SparseShape};

use super::changed::changed_file;
use super::combined::combined_files;
use super::formula::Formula;
use super::keyed::KeyedMatrix;
use super::operand::SparseOperand;
use super::part::{part_of_file, PartPlaces};
use super::product::{grid_of, product_of_file, zero_of};
use super::rearranged::Rearrangement;
use super::SparseMatrix;
use crate::expr::staged::{Keep, Next, Room, StageResult, Staged, Stages};
use crate::expr::Expr;
use crate::ops::{self, show};
use crate::task::{Grid, Recipe};
use crate::EngineError;

/// The operators over sparse operands.
#[derive(Clone, Debug)]
enum Derivation {
    /// The product with a dense matrix, of the result's grid.
    Product {
        transposed: bool,
        semiring: Semiring,
        result: Grid,
    },
    /// The entries as their formula makes them.
    Changed,
    /// Two matrices place by place.
    Combination(Arc<Formula>),
    /// Some rows and columns.
    Part(PartPlaces),
    /// The entries at other places.
    Rearranged(Arc<Rearrangement>),
    /// Entries that are columns: the dense operands.
    Keyed(KeyedMatrix),
}

/// Sparse operands, and dense ones behind them.
#[derive(Clone, Debug)]
struct Derived {
    what: Derivation,
    operands: Vec<SparseOperand>,
    results: [Grid; 1],
}

/// The matrix, or its transpose, times the dense matrix `x`, in a semiring over the type of `x`. Sums have the same bits
/// however many columns are worked on together.
///
/// # Errors
/// Shapes that do not go together; a type that does not make the semiring.
pub fn product(matrix: &SparseOperand, transposed: bool, x: &Expr, semiring: Semiring) -> Result<Expr, EngineError> {
    let shape = matrix.shape();
    let (rows, inner) = match transposed {
        false => (shape.rows, shape.columns),
        true => (shape.columns, shape.rows),
    };
    if x.ndim() != 2 || x.shape[0] != inner {
        return Err(EngineError::Shape(format!(
            "sparse product: ({rows}, {inner}) @ {}: inner dimensions {inner} and {} differ",
            show(&x.shape),
            x.shape.first().copied().unwrap_or(1)
        )));
    }
    zero_of(semiring, x.dtype)?;
    let what = Derivation::Product {
        transposed,
        semiring,
        result: grid_of(rows, x),
    };
    derived(what, vec![matrix.clone()], std::slice::from_ref(x))
}

/// The matrix as a result that is stored: a file of its own.
///
/// # Errors
/// None for operands that there are.
pub fn stored(matrix: &SparseOperand) -> Result<Expr, EngineError> {
    match matrix {
        SparseOperand::Unmade(_) if matrix.formula().is_none() => Ok(matrix.node().clone()),
        _ => derived(Derivation::Changed, vec![matrix.clone()], &[]),
    }
}

/// Two matrices of one shape: at each place at which one of them has an entry, the value that a formula gives of both
/// values, 0 where there is none.
///
/// # Errors
/// Shapes or sides of tiles that differ; as [`Formula::new`].
pub fn combined(first: &SparseOperand, second: &SparseOperand, formula: Formula) -> Result<SparseOperand, EngineError> {
    let (a, b) = (first.shape(), second.shape());
    if (a.rows, a.columns) != (b.rows, b.columns) {
        return Err(EngineError::Shape(format!(
            "sparse: shapes ({}, {}) and ({}, {}) differ",
            a.rows, a.columns, b.rows, b.columns
        )));
    }
    if a.side != b.side {
        let sides = (a.side, b.side);
        return Err(EngineError::Argument(format!(
            "sparse: matrices in tiles of {} and {} rows",
            sides.0, sides.1
        )));
    }
    formula.check(a)?;
    let shape = SparseShape {
        entries: 0,
        dtype: formula.dtype(),
        ..a.clone()
    };
    let what = Derivation::Combination(Arc::new(formula));
    let node = derived(what, vec![first.clone(), second.clone()], &[])?;
    Ok(SparseOperand::of_result(node, shape))
}

/// The matrix of entries that are columns: keys, the most significant first, then values, if there are any.
///
/// # Errors
/// Columns of other types or lengths.
pub fn keyed(matrix: KeyedMatrix, columns: &[Expr]) -> Result<SparseOperand, EngineError> {
    matrix.check(columns)?;
    let shape = matrix.shape().clone();
    let node = derived(Derivation::Keyed(matrix), vec![], columns)?;
    Ok(SparseOperand::of_result(node, shape))
}

/// Some rows and columns of a matrix.
///
/// # Errors
/// Rows or columns outside of the matrix.
pub fn part(matrix: &SparseOperand, places: PartPlaces) -> Result<SparseOperand, EngineError> {
    places.check(matrix.shape())?;
    let shape = SparseShape {
        dtype: matrix.dtype(),
        ..places.shape(matrix.shape())
    };
    let node = derived(Derivation::Part(places), vec![matrix.clone()], &[])?;
    Ok(SparseOperand::of_result(node, shape))
}

/// The entries of a matrix at other places.
///
/// # Errors
/// Keys that are none of its entries.
pub fn rearranged(matrix: &SparseOperand, rearrangement: Rearrangement) -> Result<SparseOperand, EngineError> {
    rearrangement.check(matrix.shape())?;
    let keeps_all = matrix.formula().is_none_or(|formula| formula.keeps_all());
    if !keeps_all {
        // They are counted when they are stored.
        let shape = SparseShape {
            entries: 0,
            dtype: matrix.dtype(),
            ..matrix.shape().clone()
        };
        let kept = SparseOperand::of_result(stored(matrix)?, shape);
        return rearranged(&kept, rearrangement);
    }
    let shape = SparseShape {
        entries: 0,
        dtype: matrix.dtype(),
        ..rearrangement.shape().clone()
    };
    let what = Derivation::Rearranged(Arc::new(rearrangement));
    let node = derived(what, vec![matrix.clone()], &[])?;
    Ok(SparseOperand::of_result(node, shape))
}

/// The result as a node: at once where all operands are stored, and nothing has to be counted.
///
/// # Errors
/// Errors of the operators.
fn derived(what: Derivation, operands: Vec<SparseOperand>, dense: &[Expr]) -> Result<Expr, EngineError> {
    let result = match &what {
        Derivation::Product { result, .. } => result.clone(),
        // A file: nobody takes it but for operators that know its tiles when it is made.
        _ => Grid {
            shape: vec![1, 1],
            tile: vec![1, 1],
            dtype: outcore_dtype::DType::U8,
        },
    };
    let inputs: Vec<Expr> = operands
        .iter()
        .map(|operand| operand.node().clone())
        .chain(dense.iter().cloned())
        .collect();
    let derived = Derived {
        what,
        operands,
        results: [result],
    };
    let stored: Option<Vec<SparseMatrix>> = derived.operands.iter().map(SparseOperand::stored).collect();
    match stored {
        Some(files) if !matches!(derived.what, Derivation::Rearranged(_) | Derivation::Keyed(_)) => {
            derived.over(&files, dense)
        }
        _ => Ok(ops::staged(Arc::new(derived), &inputs)?.swap_remove(0)),
    }
}

impl Derived {
    fn label(&self) -> &'static str {
        match &self.what {
            Derivation::Product { .. } => "sparse product",
            Derivation::Changed => "sparse entries",
            Derivation::Combination(_) => "sparse combination",
            Derivation::Part(_) => "sparse part",
            Derivation::Rearranged(_) => "sparse rearrangement",
            Derivation::Keyed(_) => "sparse of columns",
        }
    }

    /// The result over files, where nothing has to be counted.
    fn over(&self, files: &[SparseMatrix], dense: &[Expr]) -> Result<Expr, EngineError> {
        match (&self.what, files, dense) {
            (
                Derivation::Product {
                    transposed, semiring, ..
                },
                [matrix],
                [x],
            ) => product_of_file(matrix, *transposed, x, *semiring),
            (Derivation::Changed, [matrix], _) => changed_file(matrix),
            (Derivation::Combination(formula), [first, second], _) => {
                combined_files(first, second, (**formula).clone())
            }
            (Derivation::Part(places), [matrix], _) => part_of_file(matrix, *places),
            _ => Err(EngineError::Internal("sparse operands are others than planned".into())),
        }
    }
}

impl Staged for Derived {
    fn name(&self) -> String {
        self.label().into()
    }
    fn key(&self) -> Vec<u8> {
        let mut key = match &self.what {
            Derivation::Product {
                transposed, semiring, ..
            } => vec![*semiring as u8, u8::from(*transposed)],
            Derivation::Changed => vec![],
            Derivation::Combination(formula) => formula.key().to_vec(),
            Derivation::Part(places) => places.key(),
            Derivation::Rearranged(rearrangement) => rearrangement.key(),
            Derivation::Keyed(matrix) => matrix.key(),
        };
        for operand in &self.operands {
            key.extend(operand.formula().map_or(&[0][..], |formula| formula.key()));
        }
        key
    }
    fn results(&self) -> &[Grid] {
        &self.results
    }
    fn recipe(&self) -> Option<Recipe> {
        let recipe = Recipe::new(self.label());
        let recipe = match &self.what {
            Derivation::Product {
                transposed, semiring, ..
            } => recipe.text(semiring.name()).flag(*transposed),
            Derivation::Changed => recipe,
            Derivation::Combination(formula) => formula.described(recipe),
            Derivation::Part(places) => places.described(recipe),
            Derivation::Rearranged(rearrangement) => rearrangement.described(recipe),
            Derivation::Keyed(matrix) => matrix.described(recipe),
        };
        let operands = self.operands.iter();
        Some(operands.fold(recipe, |recipe, operand| operand.described(recipe)))
    }
    fn begin(&self, inputs: &[Expr], _room: Room) -> Result<Box<dyn Stages>, EngineError> {
        let is_unmade = |at: &usize| self.operands[*at].stored().is_none();
        Ok(Box::new(Deriving {
            of: self.clone(),
            unmade: (0..self.operands.len()).filter(is_unmade).collect(),
            inputs: inputs.to_vec(),
            files: None,
        }))
    }
}

struct Deriving {
    of: Derived,
    inputs: Vec<Expr>,
    /// Operands that a stage makes.
    unmade: Vec<usize>,
    /// All operands, once they are there.
    files: Option<Vec<SparseMatrix>>,
}

/// The file that a stage has stored.
fn file_of(result: &StageResult) -> Result<Arc<SparseFile>, EngineError> {
    let file = match result {
        StageResult::Stored(source) => source
            .clone()
            .shared()
            .and_then(|file| file.downcast::<SparseFile>().ok()),
        StageResult::Fact(_) => None,
    };
    file.ok_or_else(|| EngineError::Internal("a stage made no sparse matrix".into()))
}

/// The error of a plan whose operands another thread has made since.
fn stale() -> EngineError {
    EngineError::Stale("operands of this program are made by now; plan it again".into())
}

/// The stage that counts entries.
fn counting(counts: Expr) -> Next {
    Next::Stage {
        label: "tile rows".into(),
        awaits: "how many entries each tile row has".into(),
        outputs: vec![(counts, Keep::Fact)],
    }
}

impl Deriving {
    /// The operands, of which those that are made are in these files.
    fn over(&self, made: &[Arc<SparseFile>]) -> Result<Vec<SparseMatrix>, EngineError> {
        let of = |(at, operand): (usize, &SparseOperand)| match self.unmade.iter().position(|unmade| *unmade == at) {
            Some(place) => operand.over(made[place].clone()),
            None => (operand.stored()).ok_or_else(|| EngineError::Internal("an operand is not stored".into())),
        };
        self.of.operands.iter().enumerate().map(of).collect()
    }

    /// Files as large as those to be made are at most.
    fn foreseen(&self) -> Result<Vec<SparseMatrix>, EngineError> {
        let file = |at: &usize| {
            let node = &self.inputs[*at];
            let output = node.sparse_output();
            let output = output.ok_or_else(|| EngineError::Internal(format!("{} is no matrix", node.label())))?;
            let identity = format!("matrix to come: {}", node.id);
            Ok(Arc::new(SparseFile::foreseen(&output, identity)))
        };
        let made: Result<Vec<_>, EngineError> = self.unmade.iter().map(file).collect();
        self.over(&made?)
    }

    fn make(&self) -> Next {
        let outputs = self.unmade.iter().map(|at| (self.inputs[*at].clone(), Keep::Stored));
        Next::Stage {
            label: "sparse operands".into(),
            awaits: "the tiles of sparse operands".into(),
            outputs: outputs.collect(),
        }
    }

    /// The step once the operands are there.
    fn after_making(&self, files: &[SparseMatrix]) -> Result<Next, EngineError> {
        match &self.of.what {
            Derivation::Rearranged(rearrangement) => Ok(counting(rearrangement.counted(&files[0])?)),
            Derivation::Keyed(matrix) => Ok(counting(matrix.counted(&self.inputs[0])?)),
            _ => Ok(Next::Done(vec![self.of.over(files, &self.inputs[files.len()..])?])),
        }
    }
}

impl Stages for Deriving {
    fn next(&mut self, found: &[StageResult], _room: Room, _io: &Io) -> Result<Next, EngineError> {
        let Some(files) = &self.files else {
            if found.is_empty() && !self.unmade.is_empty() {
                return Ok(self.make());
            }
            if found.len() != self.unmade.len() {
                return Err(stale());
            }
            let made: Vec<Arc<SparseFile>> = found.iter().map(file_of).collect::<Result<_, _>>()?;
            for (at, file) in self.unmade.iter().zip(&made) {
                self.of.operands[*at].made_in(file);
            }
            let files = self.over(&made)?;
            let next = self.after_making(&files);
            self.files = Some(files);
            return next;
        };
        let [StageResult::Fact(counts)] = found else {
            return Err(stale());
        };
        let counts = counts
            .chunks_exact(size_of::<u64>())
            .filter_map(|count| count.first_chunk());
        let counts: Vec<u64> = counts.map(|count| u64::from_ne_bytes(*count)).collect();
        let made = match &self.of.what {
            Derivation::Rearranged(rearrangement) => rearrangement.placed(&files[0], &counts)?,
            Derivation::Keyed(matrix) => matrix.placed(self.inputs.clone(), &counts, &self.inputs[0])?,
            _ => return Err(EngineError::Internal("entries are counted for nobody".into())),
        };
        Ok(Next::Done(vec![made]))
    }

    fn assume(&mut self, after: usize, _room: Room) -> Result<Next, EngineError> {
        let making = usize::from(!self.unmade.is_empty());
        let files = self.foreseen()?;
        match &self.of.what {
            Derivation::Rearranged(rearrangement) if after > making => {
                Ok(Next::Done(vec![rearrangement.foreseen(&files[0])?]))
            }
            Derivation::Keyed(matrix) if after > making => {
                let counts = matrix.foreseen(self.inputs[0].shape[0]);
                Ok(Next::Done(vec![matrix.placed(
                    self.inputs.clone(),
                    &counts,
                    &self.inputs[0],
                )?]))
            }
            _ => self.after_making(&files),
        }
    }

    /// Headers and directories of the files that were made.
    fn lookup_bytes(&self) -> u64 {
        let outputs = self.unmade.iter().filter_map(|at| self.inputs[*at].sparse_output());
        outputs.map(|output| output.opening_bytes()).sum()
    }
}
