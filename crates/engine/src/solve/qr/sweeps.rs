//! Products with the orthogonal factor of a dense QR factor, and what has the least residual, in bands of columns.
//!
//! Qᴴ is the tiles of reflectors in the order of elimination, Q the same backward. The band of a task has two tiles of rows in
//! memory, and the factor is read once for all bands that memory holds.

use std::sync::Arc;

use outcore_kernels::{Panel, PivotBlock, Pivoting, Reflectors, TileLayout};

use super::cut::QrCut;
use crate::expr::Expr;
use crate::ops::{self, show};
use crate::solve::band::by_bands;
use crate::task::costs::PER_ENTRY;
use crate::task::{Access, Alone, Bound, Grid, Recipe, TaskOrder, Work};
use crate::EngineError;

/// Columns of a band.
const BAND: u64 = 256;

/// Q X, or Qᴴ X (`adjoint`), for X of as many rows as the matrix, where `factor` has the tiles of its factor.
///
/// # Errors
/// X of another shape or type than the matrix; tiles that are no factor's.
pub fn qr_product(cut: &QrCut, factor: &Expr, x: &Expr, adjoint: bool) -> Result<Expr, EngineError> {
    let product = if adjoint { QrProduct::Adjoint } else { QrProduct::Itself };
    Ok(applied(cut, factor, x, product)?.swap_remove(0))
}

/// The first columns of Q.
///
/// # Errors
/// More columns than Q has; tiles that are no factor's.
pub fn qr_basis(cut: &QrCut, factor: &Expr, columns: u64) -> Result<Expr, EngineError> {
    if columns == 0 || columns > cut.rows() {
        let rows = cut.rows();
        return Err(EngineError::Argument(format!(
            "qr: {columns} columns of Q, which has {rows}"
        )));
    }
    let sweeps = QrSweeps::new(cut, factor, QrProduct::Basis, columns)?;
    Ok(ops::algorithm(Arc::new(sweeps), std::slice::from_ref(factor))?.swap_remove(0))
}

/// The X of the least |A X − B|, (n, k), for A of full column rank with at least as many rows as columns, and Qᴴ B, (m, k).
///
/// # Errors
/// A with more columns than rows; B of another shape or type than the matrix; tiles that are no factor's.
pub fn qr_least_squares(cut: &QrCut, factor: &Expr, b: &Expr) -> Result<[Expr; 2], EngineError> {
    if cut.rows() < cut.columns() {
        return Err(EngineError::Shape(format!(
            "least squares: ({}, {}) has more columns than rows",
            cut.rows(),
            cut.columns()
        )));
    }
    let mut results = applied(cut, factor, b, QrProduct::LeastSquares)?;
    let solution = results.swap_remove(1);
    Ok([solution, results.swap_remove(0)])
}

fn applied(cut: &QrCut, factor: &Expr, x: &Expr, product: QrProduct) -> Result<Vec<Expr>, EngineError> {
    if x.ndim() != 2 || x.shape[0] != cut.rows() || x.shape[1] == 0 {
        let (rows, columns) = (cut.rows(), cut.columns());
        return Err(EngineError::Shape(format!(
            "qr: a factor of ({rows}, {columns}) and columns of shape {}: {rows} and {} rows differ",
            show(&x.shape),
            x.shape.first().copied().unwrap_or(1)
        )));
    }
    if x.dtype != cut.dtype() {
        let dtype = cut.dtype();
        return Err(EngineError::DType(format!(
            "qr: a factor of {dtype} and columns of {}",
            x.dtype
        )));
    }
    let x = ops::in_tiles(x, vec![QrCut::side().min(cut.rows()), BAND.min(x.shape[1])]);
    let sweeps = QrSweeps::new(cut, factor, product, x.shape[1])?;
    ops::algorithm(Arc::new(sweeps), &[factor.clone(), x])
}

/// The product that is made of a band of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QrProduct {
    Itself,
    Adjoint,
    /// Q times columns of the identity.
    Basis,
    LeastSquares,
}

impl QrProduct {
    fn name(self) -> &'static str {
        match self {
            QrProduct::Itself => "Q product",
            QrProduct::Adjoint => "adjoint Q product",
            QrProduct::Basis => "Q basis",
            QrProduct::LeastSquares => "qr least squares",
        }
    }
}

/// A part of the work on a band of columns.
#[derive(Clone, Copy, Debug)]
enum QrSweepStep {
    /// Takes a tile of X, or of the identity.
    Begin { row: u32 },
    /// Turns rows as a tile of reflectors says.
    Turn { pivot: u32, row: u32 },
    /// Takes rows of the solution, and solves with a diagonal tile of R.
    Solve { column: u32 },
    /// Subtracts products of a tile of R from rows above.
    Subtract { column: u32, row: u32 },
}

/// The tasks of all bands alike.
fn tasks_of(cut: &QrCut, product: QrProduct) -> Vec<QrSweepStep> {
    let down = cut.counts()[0];
    let mut tasks: Vec<QrSweepStep> = (0..down).map(|row| QrSweepStep::Begin { row }).collect();
    let turns = (0..cut.pivots()).flat_map(|pivot| (pivot..down).map(move |row| QrSweepStep::Turn { pivot, row }));
    match product {
        QrProduct::Adjoint | QrProduct::LeastSquares => tasks.extend(turns),
        QrProduct::Itself | QrProduct::Basis => {
            let turns: Vec<QrSweepStep> = turns.collect();
            tasks.extend(turns.into_iter().rev());
        }
    }
    if product == QrProduct::LeastSquares {
        for column in (0..cut.pivots()).rev() {
            tasks.push(QrSweepStep::Solve { column });
            tasks.extend((0..column).map(|row| QrSweepStep::Subtract { column, row }));
        }
    }
    tasks
}

#[derive(Clone, Debug)]
struct QrSweeps {
    cut: QrCut,
    product: QrProduct,
    reflectors: Reflectors,
    pivoting: Pivoting,
    tasks: Arc<[QrSweepStep]>,
    /// The columns that are turned and, for least squares, the solution.
    grids: Vec<Grid>,
}

const FACTOR: usize = 0;
const RIGHT: usize = 1;

impl QrSweeps {
    fn new(cut: &QrCut, factor: &Expr, product: QrProduct, columns: u64) -> Result<QrSweeps, EngineError> {
        let panel = Panel::new(cut.dtype()).filter(|_| cut.is_cut_of(factor));
        let panel = panel.ok_or_else(|| EngineError::Argument("qr: the tiles are not those of a QR factor".into()))?;
        let grid = |rows: u64| Grid {
            tile: vec![QrCut::side().min(rows), BAND.min(columns)],
            shape: vec![rows, columns],
            dtype: cut.dtype(),
        };
        let mut grids = vec![grid(cut.rows())];
        if product == QrProduct::LeastSquares {
            grids.push(grid(cut.columns()));
        }
        Ok(QrSweeps {
            cut: *cut,
            product,
            reflectors: Reflectors::new(panel),
            pivoting: Pivoting::new(panel),
            tasks: tasks_of(cut, product).into(),
            grids,
        })
    }

    /// The band of columns and the task in it.
    fn task(&self, task: u64) -> (u64, QrSweepStep) {
        let tasks = self.tasks.len() as u64;
        (task / tasks, self.tasks[(task % tasks) as usize])
    }

    fn bands(&self) -> u64 {
        self.grids[0].counts()[1]
    }

    /// The set of the columns that are turned; that of the solution is behind.
    fn turned(&self) -> usize {
        if self.product == QrProduct::Basis {
            RIGHT
        } else {
            RIGHT + 1
        }
    }

    /// Whether reflectors of a pivot leave a band as it is: columns of the identity have zeros in their rows.
    fn skips(&self, band: u64, pivot: u32) -> bool {
        let end = self.grids[0].region(band)[1].end();
        self.product == QrProduct::Basis && end <= u64::from(self.cut.rows_of(pivot).start)
    }
}

impl Alone for QrSweeps {
    fn key(&self) -> Vec<u8> {
        self.grids[0].shape[1].to_le_bytes().to_vec()
    }
    fn recipe(&self) -> Option<Recipe> {
        let recipe = self.cut.recipe(self.product.name());
        Some(match self.product {
            QrProduct::Basis => recipe.word(self.grids[0].shape[1]),
            _ => recipe,
        })
    }
    fn results(&self) -> &[Grid] {
        &self.grids
    }
}

impl Work for QrSweeps {
    fn label(&self) -> String {
        self.product.name().into()
    }
    fn tasks(&self) -> u64 {
        self.tasks.len() as u64 * self.bands()
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let (band, step) = self.task(task);
        let (cut, turned) = (&self.cut, self.turned());
        let tile = |row: u32| u64::from(row) * self.bands() + band;
        match step {
            QrSweepStep::Begin { row } => {
                if self.product != QrProduct::Basis {
                    each(RIGHT, tile(row), Access::Read);
                }
                each(turned, tile(row), Access::Create);
            }
            QrSweepStep::Turn { pivot, row } if !self.skips(band, pivot) => {
                each(FACTOR, cut.tile(row, pivot), Access::Read);
                each(FACTOR, cut.triangles(row, pivot), Access::Read);
                each(turned, tile(pivot), Access::Update);
                if row != pivot {
                    each(turned, tile(row), Access::Update);
                }
            }
            QrSweepStep::Turn { .. } => {}
            QrSweepStep::Solve { column } => {
                each(FACTOR, cut.diagonal(column), Access::Read);
                each(turned, tile(column), Access::Read);
                each(turned + 1, tile(column), Access::Create);
            }
            QrSweepStep::Subtract { column, row } => {
                each(FACTOR, cut.tile(row, column), Access::Read);
                each(turned + 1, tile(column), Access::Read);
                each(turned, tile(row), Access::Update);
            }
        }
    }
    fn orders(&self, memory: u64) -> Vec<TaskOrder> {
        let bytes = self.cut.rows() * BAND * self.cut.dtype().size() as u64;
        by_bands(self.tasks.len() as u32, self.bands(), bytes, memory)
    }
    fn workspace_bytes(&self, task: u64) -> u64 {
        let (band, step) = self.task(task);
        match step {
            QrSweepStep::Turn { .. } => {
                let columns = self.grids[0].region(band)[1].length;
                self.reflectors.workspace_bytes(columns as usize) as u64
            }
            _ => 0,
        }
    }
    fn operations(&self) -> f64 {
        let [m, k, columns] = [self.cut.rows(), self.cut.short(), self.grids[0].shape[1]].map(|side| side as f64);
        (PER_ENTRY + 4.0 * columns) * (m * k - k * k / 2.0)
    }
    fn run(&self, task: u64, bound: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let (band, step) = self.task(task);
        let (cut, layout) = (&self.cut, TileLayout::Rows);
        let columns = self.grids[0].region(band)[1];
        let width = columns.length as usize;
        match step {
            QrSweepStep::Begin { row } => match bound.reads.first() {
                Some(tile) => bound.writes[0].copy_from_slice(tile),
                None => identity(cut, row, [columns.start as usize, width], bound.writes[0]),
            },
            QrSweepStep::Turn { pivot, row } => {
                if let [v, t] = bound.reads[..] {
                    let of = (cut.sizes(row, pivot), v, t);
                    let adjoint = matches!(self.product, QrProduct::Adjoint | QrProduct::LeastSquares);
                    match &mut bound.writes[..] {
                        [c] => self.reflectors.apply(of, adjoint, (c, layout), width, workspace),
                        [c1, c2] => {
                            let c = ([&mut **c1, &mut **c2], layout);
                            self.reflectors.apply_below(of, adjoint, c, width, workspace);
                        }
                        _ => {}
                    }
                }
            }
            QrSweepStep::Solve { column } => {
                let x = &mut *bound.writes[0];
                x.copy_from_slice(&bound.reads[1][..x.len()]);
                self.pivoting.solve_upper(self.block(column), bound.reads[0], x, width);
            }
            QrSweepStep::Subtract { column, row } => {
                let sizes = [cut.rows_of(row).len(), width];
                let to = (&mut *bound.writes[0], layout);
                self.pivoting
                    .subtract_lower(self.block(column), bound.reads[0], bound.reads[1], to, sizes);
            }
        }
        Ok(())
    }
}

impl QrSweeps {
    /// A diagonal tile of R, whose columns are all of its rows.
    fn block(&self, column: u32) -> PivotBlock {
        let width = self.cut.columns_of(column).len();
        PivotBlock {
            height: width,
            first: 0,
            width,
        }
    }
}

/// A tile of rows of columns of the identity.
fn identity(cut: &QrCut, row: u32, [first, width]: [usize; 2], out: &mut [u8]) {
    out.fill(0);
    let item = cut.dtype().size();
    // Of a complex number the real part comes first.
    let one = 1.0f64.to_ne_bytes();
    for (place, row) in cut.rows_of(row).enumerate() {
        let row = row as usize;
        if (first..first + width).contains(&row) {
            let at = (place * width + row - first) * item;
            out[at..at + 8].copy_from_slice(&one);
        }
    }
}
