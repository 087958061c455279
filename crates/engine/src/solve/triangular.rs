//! Systems with a dense triangular matrix, in bands of columns of the right-hand sides: the matrix is read row of tiles by row of
//! tiles, once for all bands that memory holds.

use std::ops::Range;
use std::sync::Arc;

use outcore_kernels::{Transposition, Triangle};

use super::band::by_bands;
use super::factorize::panel_of;
use super::numbering::group_of;
use crate::expr::Expr;
use crate::ops::{self, show};
use crate::task::costs::PER_ENTRY;
use crate::task::{Access, Alone, Bound, Grid, Recipe, TaskOrder, Work};
use crate::EngineError;

/// Rows and columns of a tile of the matrix, and columns of a band.
const SIDE: u64 = 512;
const BAND: u64 = 256;

/// X of T X = B, (n, k), or of the transpose or adjoint of T, for the lower triangle of `t`, or the upper one, with its diagonal or
/// with ones in the place of that: `[is_lower, has_unit_diagonal]`.
///
/// # Errors
/// A matrix that is not square; right-hand sides of other rows or another type; another type than float64 and complex128.
pub fn triangular_solved(t: &Expr, b: &Expr, is: [bool; 2], of_matrix: Transposition) -> Result<Expr, EngineError> {
    let is_square = t.ndim() == 2 && t.shape[0] == t.shape[1] && t.shape[0] > 0;
    if !is_square || b.ndim() != 2 || b.shape[0] != t.shape[0] || b.shape[1] == 0 {
        return Err(EngineError::Shape(format!(
            "solve_triangular: a matrix of shape {} and right-hand sides of {}",
            show(&t.shape),
            show(&b.shape)
        )));
    }
    if t.dtype != b.dtype {
        return Err(EngineError::DType(format!(
            "solve_triangular: a matrix of {} and right-hand sides of {}",
            t.dtype, b.dtype
        )));
    }
    let side = SIDE.min(t.shape[0]);
    let solve = TriangularSolve {
        triangle: Triangle::new(panel_of("solve_triangular", t.dtype)?, is, of_matrix),
        grid: Grid {
            shape: b.shape.clone(),
            tile: vec![side, BAND.min(b.shape[1])],
            dtype: b.dtype,
        },
    };
    if solve.tasks() > u64::from(u32::MAX) {
        return Err(EngineError::Shape(format!(
            "solve_triangular: a matrix of shape {} has too many tiles",
            show(&t.shape)
        )));
    }
    let inputs = [
        ops::in_tiles(t, vec![side, side]),
        ops::in_tiles(b, solve.grid.tile.clone()),
    ];
    Ok(ops::algorithm(Arc::new(solve), &inputs)?.swap_remove(0))
}

#[derive(Clone, Debug)]
struct TriangularSolve {
    triangle: Triangle,
    /// Of the solution.
    grid: Grid,
}

const MATRIX: usize = 0;
const RIGHT: usize = 1;
const SOLUTION: usize = 2;

/// A part of the work on a band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TriangularStep {
    Begin {
        row: u64,
    },
    /// Solves with the diagonal tile of a row.
    Solve {
        row: u64,
    },
    /// Subtracts the product of another tile of the row.
    Subtract {
        row: u64,
        column: u64,
    },
}

impl TriangularSolve {
    fn counts(&self) -> [u64; 2] {
        let counts = self.grid.counts();
        [counts[0], counts[1]]
    }

    fn tasks_of_band(&self) -> u64 {
        let rows = self.counts()[0];
        rows + rows * (rows + 1) / 2
    }

    /// Tiles of a row beside its diagonal.
    fn columns(&self, row: u64) -> Range<u64> {
        match self.triangle.is_lower {
            true => 0..row,
            false => row + 1..self.counts()[0],
        }
    }

    /// The band and the step. Of rows of the matrix in the order of the solution, a transposed one first solves, and then gives to
    /// the rows behind; another first takes.
    fn step(&self, task: u64) -> (u64, TriangularStep) {
        let [rows, _] = self.counts();
        let (band, at) = (task / self.tasks_of_band(), task % self.tasks_of_band());
        if at < rows {
            return (band, TriangularStep::Begin { row: at });
        }
        let at = at - rows;
        let takes = self.triangle.of_matrix == Transposition::None;
        // Tiles of a row with its diagonal: 1, 2, … where it takes, and as many as rows are left where it gives.
        let start = |place: u64| match takes {
            true => place * (place + 1) / 2,
            false => place * rows - place * place.saturating_sub(1) / 2,
        };
        let place = group_of(rows, at, start);
        let row = if self.triangle.solves_forward() {
            place
        } else {
            rows - 1 - place
        };
        let (at, columns) = (at - start(place), self.columns(row));
        let step = match at.checked_sub(if takes { 0 } else { 1 }) {
            Some(at) if at < columns.end - columns.start => TriangularStep::Subtract {
                row,
                column: columns.start + at,
            },
            _ => TriangularStep::Solve { row },
        };
        (band, step)
    }

    fn height(&self, row: u64) -> usize {
        let start = row * self.grid.tile[0];
        (self.grid.shape[0] - start).min(self.grid.tile[0]) as usize
    }

    /// The rows of the solution that a tile beside the diagonal takes from and gives to.
    fn sides(&self, row: u64, column: u64) -> [u64; 2] {
        match self.triangle.of_matrix {
            Transposition::None => [column, row],
            _ => [row, column],
        }
    }
}

impl Alone for TriangularSolve {
    fn key(&self) -> Vec<u8> {
        let Triangle {
            is_lower,
            has_unit_diagonal,
            of_matrix,
            ..
        } = self.triangle;
        vec![u8::from(is_lower), u8::from(has_unit_diagonal), of_matrix.number()]
    }
    fn recipe(&self) -> Option<Recipe> {
        let triangle = &self.triangle;
        let recipe = Recipe::new("triangular solves").flag(triangle.is_lower);
        Some(
            recipe
                .flag(triangle.has_unit_diagonal)
                .word(triangle.of_matrix.number().into()),
        )
    }
    fn results(&self) -> &[Grid] {
        std::slice::from_ref(&self.grid)
    }
}

impl Work for TriangularSolve {
    fn label(&self) -> String {
        "triangular solves".into()
    }
    fn tasks(&self) -> u64 {
        self.tasks_of_band() * self.counts()[1]
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let ([rows, bands], (band, step)) = (self.counts(), self.step(task));
        let tile = |row: u64| row * bands + band;
        match step {
            TriangularStep::Begin { row } => {
                each(RIGHT, tile(row), Access::Read);
                each(SOLUTION, tile(row), Access::Create);
            }
            TriangularStep::Solve { row } => {
                each(MATRIX, row * rows + row, Access::Read);
                each(SOLUTION, tile(row), Access::Update);
            }
            TriangularStep::Subtract { row, column } => {
                let [from, to] = self.sides(row, column);
                each(MATRIX, row * rows + column, Access::Read);
                each(SOLUTION, tile(from), Access::Read);
                each(SOLUTION, tile(to), Access::Update);
            }
        }
    }
    fn orders(&self, memory: u64) -> Vec<TaskOrder> {
        let bytes = self.grid.shape[0] * self.grid.tile[1] * self.grid.dtype.size() as u64;
        by_bands(self.tasks_of_band() as u32, self.counts()[1], bytes, memory)
    }
    fn operations(&self) -> f64 {
        (self.grid.shape[0] as f64).powi(2) * (PER_ENTRY / 2.0 + self.grid.shape[1] as f64)
    }
    fn run(&self, task: u64, bound: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let (band, step) = self.step(task);
        let width = self.grid.region(band)[1].length as usize;
        match step {
            TriangularStep::Begin { .. } => bound.writes[0].copy_from_slice(bound.reads[0]),
            TriangularStep::Solve { row } => {
                let (height, tile) = (self.height(row), bound.reads[0]);
                if let Some(zero) = self.triangle.zero(height, tile) {
                    let at = row * self.grid.tile[0] + zero as u64;
                    return Err(EngineError::LinAlg(format!(
                        "solve_triangular: the matrix is singular: element {at} of its diagonal is 0"
                    )));
                }
                self.triangle.solve(height, tile, bound.writes[0], width);
            }
            TriangularStep::Subtract { row, column } => {
                let sizes = [row, column].map(|tile| self.height(tile));
                let (tile, x) = (bound.reads[0], bound.reads[1]);
                self.triangle.subtract(sizes, tile, x, bound.writes[0], width);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use outcore_dtype::DType;
    use outcore_kernels::Panel;

    use super::*;

    #[test]
    fn rows_are_solved_when_they_have_taken_all_and_give_once() {
        for is_lower in [false, true] {
            for of_matrix in [Transposition::None, Transposition::Transpose, Transposition::Adjoint] {
                let panel = Panel::new(DType::F64).unwrap();
                let solve = TriangularSolve {
                    triangle: Triangle::new(panel, [is_lower, false], of_matrix),
                    grid: Grid {
                        shape: vec![45, 2],
                        tile: vec![10, 1],
                        dtype: DType::F64,
                    },
                };
                let mut seen = vec![];
                let mut solved = vec![];
                for task in 0..solve.tasks_of_band() {
                    let (band, step) = solve.step(task);
                    assert_eq!(band, 0);
                    assert!(!seen.contains(&step));
                    seen.push(step);
                    match step {
                        TriangularStep::Begin { .. } => {}
                        TriangularStep::Solve { row } => solved.push(row),
                        TriangularStep::Subtract { row, column } => {
                            assert!(if is_lower { column < row } else { column > row });
                            let [from, to] = solve.sides(row, column);
                            assert!(solved.contains(&from) && !solved.contains(&to));
                        }
                    }
                }
                assert_eq!(solved.len(), 5);
            }
        }
    }
}
