//! The factorization A = Q R of a dense matrix of any shape by tiles.

use std::sync::Arc;

use outcore_kernels::{Reflectors, TileLayout};
use outcore_store::FactorOutput;

use super::cut::{QrCut, QrRecord};
use super::orders::{qr_orders, QrStep, QrTasks};
use crate::expr::Expr;
use crate::ops::{self, show};
use crate::solve::dense::DenseRows;
use crate::solve::factorize::panel_of;
use crate::task::{Access, Alone, Bound, FileOutput, Grid, Recipe, TaskOrder, Work};
use crate::EngineError;

/// The factor of a dense matrix as tiles, with its cut.
///
/// # Errors
/// An array that is no matrix, or has no elements; another type than float64 and complex128.
pub fn dense_qr(x: &Expr) -> Result<(QrCut, Expr), EngineError> {
    if x.ndim() != 2 {
        return Err(EngineError::Shape(format!("qr: an array of shape {}", show(&x.shape))));
    }
    let panel = panel_of("qr", x.dtype)?;
    let cut =
        QrCut::of(x.shape[0], x.shape[1], x.dtype).map_err(|reason| EngineError::Shape(format!("qr: {reason}")))?;
    let lengths: Arc<[u64]> = cut.lengths().into();
    let factorization = DenseQr {
        cut,
        reflectors: Reflectors::new(panel),
        matrix: DenseRows::new(x.grid()),
        columns: x.tile[1],
        tasks: QrTasks::new(&cut),
        grids: [Grid::listed(&lengths)],
        listed: lengths,
    };
    let factor = ops::algorithm(Arc::new(factorization), std::slice::from_ref(x))?.swap_remove(0);
    Ok((cut, factor))
}

#[derive(Clone, Debug)]
struct DenseQr {
    cut: QrCut,
    reflectors: Reflectors,
    matrix: DenseRows,
    /// Of a tile of the matrix.
    columns: u64,
    tasks: QrTasks,
    listed: Arc<[u64]>,
    grids: [Grid; 1],
}

/// The set behind the matrix.
const FACTOR: usize = 1;

impl Alone for DenseQr {
    fn key(&self) -> Vec<u8> {
        vec![]
    }
    fn recipe(&self) -> Option<Recipe> {
        Some(Recipe::new("qr"))
    }
    fn results(&self) -> &[Grid] {
        &self.grids
    }
    fn listed(&self, _result: usize) -> Option<Arc<[u64]>> {
        Some(self.listed.clone())
    }
    fn file(&self, _result: usize) -> Option<FileOutput> {
        Some(FileOutput::Factor(FactorOutput {
            rows: self.cut.rows(),
            dtype: self.cut.dtype(),
            lengths: self.listed.clone(),
            record: Arc::new(QrRecord::new(&self.cut)),
        }))
    }
}

impl Work for DenseQr {
    fn label(&self) -> String {
        "tiled qr".into()
    }
    fn tasks(&self) -> u64 {
        self.tasks.count()
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let cut = &self.cut;
        match self.tasks.step(task) {
            QrStep::Assemble { part, column } => {
                let (row, rows) = cut.part(part);
                let sources = self.matrix.tiles(&rows, &cut.columns_of(column));
                sources.iter().for_each(|tile| each(0, *tile, Access::Read));
                let is_first = rows.start == cut.rows_of(row).start;
                let access = if is_first { Access::Create } else { Access::Update };
                each(FACTOR, cut.tile(row, column), access);
            }
            QrStep::Eliminate { pivot, row } => {
                let access = if row == pivot { Access::Create } else { Access::Update };
                each(FACTOR, cut.diagonal(pivot), access);
                each(FACTOR, cut.tile(row, pivot), Access::Update);
                each(FACTOR, cut.triangles(row, pivot), Access::Create);
            }
            QrStep::Turn { pivot, row, column } => {
                each(FACTOR, cut.tile(row, pivot), Access::Read);
                each(FACTOR, cut.triangles(row, pivot), Access::Read);
                each(FACTOR, cut.tile(pivot, column), Access::Update);
                if row != pivot {
                    each(FACTOR, cut.tile(row, column), Access::Update);
                }
            }
        }
    }
    fn orders(&self, memory: u64) -> Vec<TaskOrder> {
        qr_orders(&self.tasks, &self.cut, self.columns, memory)
    }
    fn workspace_bytes(&self, task: u64) -> u64 {
        match self.tasks.step(task) {
            QrStep::Assemble { .. } => 0,
            QrStep::Eliminate { pivot: column, .. } | QrStep::Turn { column, .. } => {
                self.reflectors.workspace_bytes(self.cut.columns_of(column).len()) as u64
            }
        }
    }
    fn operations(&self) -> f64 {
        let [m, n, k] = [self.cut.rows(), self.cut.columns(), self.cut.short()].map(|side| side as f64);
        4.0 * m * n * k - 2.0 * (m + n) * k * k + 4.0 * k.powi(3) / 3.0
    }
    fn run(&self, task: u64, bound: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let cut = &self.cut;
        match self.tasks.step(task) {
            QrStep::Assemble { part, column } => {
                let (row, rows) = cut.part(part);
                let of = [&cut.rows_of(row), &rows, &cut.columns_of(column)];
                self.matrix.copy_columns(of, &bound.reads, bound.writes[0]);
            }
            QrStep::Eliminate { pivot, row } => {
                let sizes = cut.sizes(row, pivot);
                if let [r, a, t] = &mut bound.writes[..] {
                    match row == pivot {
                        true => self.reflectors.factorize(sizes, a, r, t, workspace),
                        false => self.reflectors.factorize_below(sizes, r, a, t, workspace),
                    }
                }
            }
            QrStep::Turn { pivot, row, column } => {
                let of = (cut.sizes(row, pivot), bound.reads[0], bound.reads[1]);
                let (width, layout) = (cut.columns_of(column).len(), TileLayout::Columns);
                match &mut bound.writes[..] {
                    [c] => self.reflectors.apply(of, true, (c, layout), width, workspace),
                    [c1, c2] => self
                        .reflectors
                        .apply_below(of, true, ([c1, c2], layout), width, workspace),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}
