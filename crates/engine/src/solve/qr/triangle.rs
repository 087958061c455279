//! R of a QR factor as an array.

use std::sync::Arc;

use outcore_kernels::{Panel, Reflectors};

use super::cut::QrCut;
use crate::expr::Expr;
use crate::ops;
use crate::task::costs::PER_ELEMENT;
use crate::task::{Access, Alone, Bound, Grid, Recipe, Work};
use crate::EngineError;

/// R, (k, n) for the smaller side k of the matrix, where `factor` has the tiles of its factor.
///
/// # Errors
/// Tiles that are no factor's.
pub fn qr_triangle(cut: &QrCut, factor: &Expr) -> Result<Expr, EngineError> {
    let panel = Panel::new(cut.dtype()).filter(|_| cut.is_cut_of(factor));
    let panel =
        panel.ok_or_else(|| EngineError::Argument("qr triangle: the tiles are not those of a QR factor".into()))?;
    let shape = vec![cut.short(), cut.columns()];
    let triangle = QrTriangle {
        cut: *cut,
        reflectors: Reflectors::new(panel),
        grids: [Grid {
            tile: shape.iter().map(|&side| side.min(QrCut::side())).collect(),
            shape,
            dtype: cut.dtype(),
        }],
    };
    Ok(ops::algorithm(Arc::new(triangle), std::slice::from_ref(factor))?.swap_remove(0))
}

#[derive(Clone, Debug)]
struct QrTriangle {
    cut: QrCut,
    reflectors: Reflectors,
    grids: [Grid; 1],
}

impl QrTriangle {
    /// Row and column of a tile.
    fn place(&self, task: u64) -> (u32, u32) {
        let across = u64::from(self.cut.counts()[1]);
        ((task / across) as u32, (task % across) as u32)
    }
}

impl Alone for QrTriangle {
    fn key(&self) -> Vec<u8> {
        vec![]
    }
    fn recipe(&self) -> Option<Recipe> {
        Some(self.cut.recipe("qr triangle"))
    }
    fn results(&self) -> &[Grid] {
        &self.grids
    }
}

impl Work for QrTriangle {
    fn label(&self) -> String {
        "qr triangle".into()
    }
    fn tasks(&self) -> u64 {
        self.grids[0].tiles()
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let (row, column) = self.place(task);
        if row == column {
            each(0, self.cut.diagonal(column), Access::Read);
        } else if row < column {
            each(0, self.cut.tile(row, column), Access::Read);
        }
        each(1, task, Access::Create);
    }
    fn operations(&self) -> f64 {
        PER_ELEMENT * self.grids[0].shape.iter().product::<u64>() as f64
    }
    fn run(&self, task: u64, bound: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let width = self.grids[0].region(task)[1].length as usize;
        match bound.reads.first() {
            Some(tile) => self.reflectors.by_rows(width, tile, bound.writes[0]),
            None => bound.writes[0].fill(0),
        }
        Ok(())
    }
}
