//! Running sums, products and extrema along an axis: one read, one write.
//!
//! Tiles are worked through in order; what each hands to the next along the axis is a thin tile of its own, the carry
//! (scans with a state, TPIE section 4.1).

use outcore_store::Interval;
use std::sync::Arc;

use outcore_dtype::DType;
use outcore_kernels::{scan as accumulate, Scan};

use super::{algorithm, in_tiles, show};
use crate::expr::Expr;
use crate::task::{Access, Alone, Bound, Grid, Recipe, Work};
use crate::EngineError;

/// The elements of `x` accumulated along `axis`, in its own type. Where `starts` is given, a row of bool as long as the
/// first axis, along which it is then, accumulation begins anew at every place that it marks.
///
/// # Errors
/// An axis that there is not; a type that the operation does not take; marks of another shape.
pub fn scan(op: Scan, x: &Expr, axis: usize, starts: Option<&Expr>) -> Result<Expr, EngineError> {
    if axis >= x.ndim() {
        let reason = format!("scan: axis {axis} is out of bounds for shape {}", show(&x.shape));
        return Err(EngineError::Shape(reason));
    }
    if !op.supports(x.dtype) {
        return Err(EngineError::DType(format!(
            "scan: {op:?} of {} is not defined",
            x.dtype
        )));
    }
    if let Some(starts) = starts {
        if axis != 0 || starts.dtype != DType::Bool || starts.shape != x.shape[..1] {
            return Err(EngineError::Shape(format!(
                "scan: marks of shape {} and {} along axis {axis} of shape {}",
                show(&starts.shape),
                starts.dtype,
                show(&x.shape)
            )));
        }
    }
    let mut carry = x.grid();
    (carry.shape[axis], carry.tile[axis]) = (1, 1);
    let scanning = Accumulate {
        op,
        axis,
        is_marked: starts.is_some(),
        results: [x.grid(), carry],
    };
    let marks = starts.map(|starts| in_tiles(starts, vec![x.tile[0]]));
    let inputs: Vec<Expr> = std::iter::once(x.clone()).chain(marks).collect();
    Ok(algorithm(Arc::new(scanning), &inputs)?.swap_remove(0))
}

#[derive(Clone, Debug)]
struct Accumulate {
    op: Scan,
    axis: usize,
    /// Whether a second input says where to begin anew.
    is_marked: bool,
    /// The result, and what its tiles hand on.
    results: [Grid; 2],
}

impl Accumulate {
    /// The carry of a tile, and whether the tile is the first along the axis.
    fn carry(&self, tile: u64) -> (u64, bool) {
        let counts = self.results[0].counts();
        let inner: u64 = counts[self.axis + 1..].iter().product();
        let (before, within) = (tile / inner, tile % inner);
        let along = counts[self.axis];
        (before / along * inner + within, before % along == 0)
    }
}

impl Alone for Accumulate {
    fn key(&self) -> Vec<u8> {
        (self.axis as u64).to_le_bytes().to_vec()
    }

    fn recipe(&self) -> Option<Recipe> {
        Some(Recipe::new("scan").text(self.op.name()).word(self.axis as u64))
    }

    fn results(&self) -> &[Grid] {
        &self.results
    }
}

impl Work for Accumulate {
    fn label(&self) -> String {
        format!("cumulative {}", format!("{:?}", self.op).to_lowercase())
    }

    fn tasks(&self) -> u64 {
        self.results[0].tiles()
    }

    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let (carry, first) = self.carry(task);
        each(0, task, Access::Read);
        if self.is_marked {
            let counts = self.results[0].counts();
            each(1, task / counts[1..].iter().product::<u64>(), Access::Read);
        }
        let result = 1 + usize::from(self.is_marked);
        each(result, task, Access::Create);
        each(result + 1, carry, if first { Access::Create } else { Access::Update });
    }

    fn operations(&self) -> f64 {
        10.0 * self.results[0].shape.iter().product::<u64>() as f64
    }

    fn run(&self, task: u64, tiles: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let grid = &self.results[0];
        let region = grid.region(task);
        let length = |axes: &[Interval]| axes.iter().map(|along| along.length as usize).product::<usize>();
        let (outer, inner) = (length(&region[..self.axis]), length(&region[self.axis + 1..]));
        let along = region[self.axis].length as usize;
        let (_, first) = self.carry(task);
        let [result, carry] = &mut tiles.writes[..] else {
            return Err(EngineError::Internal("a scan writes a tile and a carry".into()));
        };
        accumulate(
            self.op,
            grid.dtype,
            tiles.reads[0],
            [outer, along, inner],
            (carry, !first),
            tiles.reads.get(1).copied(),
            result,
        );
        Ok(())
    }
}
