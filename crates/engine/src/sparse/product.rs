//! A sparse matrix times a dense one: how many of its columns at a time, which follows from the memory there is.

use std::sync::Arc;

use outcore_dtype::DType;
use outcore_sparse::Semiring;
use outcore_store::Io;

use super::bands::{pieces_of, Bands};
use super::formula::Formula;
use super::multiply::Multiply;
use super::operand::SparseOperand;
use super::times::Times;
use super::transposed::MultiplyTransposed;
use super::{of_file, SparseMatrix};
use crate::expr::staged::{Next, Room, StageResult, Staged, Stages};
use crate::expr::{grid, Expr};
use crate::ops;
use crate::task::{Grid, Recipe};
use crate::EngineError;

/// The sum of nothing.
///
/// # Errors
/// A type that does not make the semiring.
pub(super) fn zero_of(semiring: Semiring, dtype: DType) -> Result<Vec<u8>, EngineError> {
    semiring.zero(dtype).ok_or_else(|| {
        EngineError::DType(format!(
            "sparse product: {dtype} does not make the semiring {}",
            semiring.name()
        ))
    })
}

/// The result of so many rows.
pub(super) fn grid_of(rows: u64, x: &Expr) -> Grid {
    let shape = [rows, x.shape[1]];
    Grid {
        tile: grid::uncut(&shape, x.dtype, grid::default_tile(&shape, x.dtype), &[1]),
        shape: shape.to_vec(),
        dtype: x.dtype,
    }
}

/// The matrix, or its transpose, times the dense matrix `x`, whose shapes go together, in a semiring over the type of `x`.
///
/// # Errors
/// A type that does not make the semiring.
pub(super) fn product_of_file(
    matrix: &SparseMatrix,
    transposed: bool,
    x: &Expr,
    semiring: Semiring,
) -> Result<Expr, EngineError> {
    let shape = matrix.file.matrix();
    let rows = if transposed { shape.columns } else { shape.rows };
    let stored = matrix.dtype();
    let formula = match (&matrix.formula, stored) {
        (None, None) => None,
        (None, Some(stored)) if stored == x.dtype => None,
        (None, stored) => Some(Arc::new(Formula::identity(stored)?.converted(x.dtype)?)),
        (Some(formula), Some(stored)) if stored != x.dtype => Some(Arc::new(formula.converted(x.dtype)?)),
        (Some(formula), _) => Some(formula.clone()),
    };
    let times = Times {
        formula,
        pieces: pieces_of(&matrix.file, 0).into(),
        file: matrix.file.clone(),
        transposed,
        semiring,
        zero: zero_of(semiring, x.dtype)?,
        result: [grid_of(rows, x)],
    };
    let inputs = [matrix.tiles.clone(), x.clone()];
    Ok(ops::staged(Arc::new(times), &inputs)?.swap_remove(0))
}

/// A tile of the dense matrix takes no more, unless it is one row.
const DENSE_BYTES: u64 = 4 << 20;

/// A piece has no more bytes than this, unless a tile has: with more the dense rows are shared no better.
const PIECE_BYTES: u64 = 64 << 20;
/// What of the memory, and of the matrix, a piece is at most: there are enough of them for all threads to end together.
const PIECES: u64 = 32;

impl Times {
    /// The same in larger pieces, where they cost no column of a band.
    fn in_room(&self, room: Room) -> (Times, Bands) {
        let (least, file) = (self.bands(room), &self.file);
        let matrix: u64 = (0..file.tiles()).map(|tile| file.tile_bytes(tile)).sum();
        let bytes = (matrix / PIECES).min(room.memory / PIECES).min(PIECE_BYTES);
        let larger = Times {
            pieces: pieces_of(file, bytes).into(),
            ..self.clone()
        };
        match larger.bands(room) {
            bands if bands == least => (larger, bands),
            _ => (self.clone(), least),
        }
    }

    /// As many columns as there is room for beside what passes by: of two tasks at once, so that a refusal of one column is
    /// one of all.
    fn bands(&self, room: Room) -> Bands {
        let columns = self.result[0].shape[1].max(1);
        let item = self.dtype().size() as u64;
        let largest = self
            .pieces
            .iter()
            .map(|piece| self.workspace_bytes(piece) + self.piece_bytes(piece))
            .max();
        let rows = self.pieces.iter().map(|piece| piece.rows.length).max();
        let passing = 2 * (largest.unwrap_or(0) + DENSE_BYTES);
        let each = (self.file.matrix().columns + 2 * rows.unwrap_or(0)) * item;
        let fit = (room.memory.saturating_sub(passing) / each.max(1)).clamp(1, columns);
        // Bands of one width, as far as that goes.
        Bands {
            columns,
            width: columns.div_ceil(columns.div_ceil(fit)),
        }
    }
}

impl Staged for Times {
    fn name(&self) -> String {
        "sparse product".into()
    }
    fn key(&self) -> Vec<u8> {
        let formula = self.formula.iter().flat_map(|formula| formula.key());
        [self.semiring as u8, u8::from(self.transposed)]
            .iter()
            .chain(formula)
            .copied()
            .collect()
    }
    fn recipe(&self) -> Option<Recipe> {
        let recipe = Recipe::new("sparse product").text(self.semiring.name());
        let matrix = SparseMatrix {
            formula: self.formula.clone(),
            ..of_file(self.file.clone()).ok()?
        };
        Some(SparseOperand::Stored(matrix).described(recipe.flag(self.transposed)))
    }
    fn results(&self) -> &[Grid] {
        &self.result
    }
    fn begin(&self, inputs: &[Expr], room: Room) -> Result<Box<dyn Stages>, EngineError> {
        Ok(Box::new(PlannedProduct {
            nodes: self.nodes(inputs, room)?,
        }))
    }
}

impl Times {
    fn nodes(&self, inputs: &[Expr], room: Room) -> Result<Vec<Expr>, EngineError> {
        let result = &self.result[0];
        if result.tiles() == 0 || self.file.tiles() == 0 {
            let zero = ops::constant(self.nothing(), self.dtype())?;
            let zero = ops::broadcast_to(&zero, &result.shape)?;
            return Ok(vec![ops::in_tiles(&zero, result.tile.clone())]);
        }
        let (times, bands) = self.in_room(room);
        let mut tile = grid::default_tile(&inputs[1].shape, self.dtype());
        tile[1] = bands.width;
        let tile = match bands.count() {
            1 => grid::uncut(&inputs[1].shape, self.dtype(), inputs[1].tile.clone(), &[1]),
            _ => grid::cut_rows(&inputs[1].shape, self.dtype(), &tile),
        };
        let x = ops::in_tiles(&inputs[1], tile);
        let dense = x.grid();
        if dense.counts()[1] != bands.count() {
            let (tiles, bands) = (dense.counts()[1], bands.count());
            return Err(EngineError::Internal(format!(
                "sparse product: {tiles} tiles of columns, and {bands} bands"
            )));
        }
        let inputs = [inputs[0].clone(), x];
        let nodes = match self.transposed {
            false => ops::algorithm(Arc::new(Multiply::new(times, bands, dense)), &inputs)?,
            true => ops::algorithm(Arc::new(MultiplyTransposed::new(times, bands, dense)), &inputs)?,
        };
        Ok(vec![ops::in_tiles(&nodes[0], result.tile.clone())])
    }
}

struct PlannedProduct {
    nodes: Vec<Expr>,
}

impl Stages for PlannedProduct {
    fn next(&mut self, _found: &[StageResult], _room: Room, _io: &Io) -> Result<Next, EngineError> {
        Ok(Next::Done(self.nodes.clone()))
    }
    fn assume(&mut self, _after: usize, _room: Room) -> Result<Next, EngineError> {
        Ok(Next::Done(self.nodes.clone()))
    }
    fn lookup_bytes(&self) -> u64 {
        0
    }
}
