//! The tiles of pivots of a dense LU factor: exchanges, the determinant, and the growth of elements.

use std::sync::Arc;

use outcore_dtype::{Complex, DType};

use super::slabs::{SlabCut, SlabExchanges};
use crate::expr::Expr;
use crate::ops;
use crate::task::{Access, Alone, Bound, Grid, Recipe, Work};
use crate::EngineError;

/// Numbers of the sums: determinant as real part, imaginary part and power of two; its sign as real and imaginary part, the
/// logarithm of its size; the largest sizes in the matrix and in U.
pub const SUMS: u64 = 8;

/// The sums of a factor, (8,), and of each row the one that it was exchanged with, (n,).
///
/// # Errors
/// Tiles that are no factor's.
pub fn lu_pivots(cut: &SlabCut, factor: &Expr) -> Result<[Expr; 2], EngineError> {
    if !cut.is_cut_of(factor) {
        return Err(EngineError::Argument(
            "lu pivots: the tiles are not those of a dense LU factor".into(),
        ));
    }
    let grid = |length: u64, tile: u64, dtype| Grid {
        shape: vec![length],
        tile: vec![tile],
        dtype,
    };
    let pivots = SlabPivots {
        cut: *cut,
        grids: [grid(SUMS, SUMS, DType::F64), grid(cut.rows(), cut.width(), DType::I64)],
    };
    let mut results = ops::algorithm(Arc::new(pivots), std::slice::from_ref(factor))?;
    let pivots = results.swap_remove(1);
    Ok([results.swap_remove(0), pivots])
}

#[derive(Clone, Debug)]
struct SlabPivots {
    cut: SlabCut,
    grids: [Grid; 2],
}

impl SlabPivots {
    /// Multiplies the determinant by pivots and by −1 for each exchange, with its power of two apart, so that it has one at any
    /// size.
    fn multiply(&self, slab: u32, tile: &SlabExchanges<'_>, sums: &mut [f64]) {
        let mut determinant = Complex::new(sums[0], sums[1]);
        let first = self.cut.columns(slab).start;
        let parts = self.cut.dtype().size() / 8;
        let diagonal: &[f64] = bytemuck::cast_slice(tile.diagonal);
        for ((row, &pivot), value) in (first..).zip(tile.pivots).zip(diagonal.chunks_exact(parts)) {
            let value = Complex::new(value[0], value.get(1).copied().unwrap_or(0.0));
            let (value, power) = scaled(value);
            determinant *= if pivot == row { value } else { -value };
            let (scaled, again) = scaled(determinant);
            determinant = scaled;
            sums[2] += power + again;
        }
        [sums[0], sums[1]] = [determinant.re, determinant.im];
    }
}

/// A number with its larger part of size 1 to 2, and the power of two that it was divided by. Zero, infinities and NaN stay.
fn scaled(value: Complex<f64>) -> (Complex<f64>, f64) {
    let size = value.re.abs().max(value.im.abs());
    if !(size > 0.0 && size.is_finite()) {
        return (value, 0.0);
    }
    // Subnormal numbers have no exponent of their own.
    let (value, size, before) = match size < f64::MIN_POSITIVE {
        true => (value * 2f64.powi(60), size * 2f64.powi(60), -60),
        false => (value, size, 0),
    };
    let exponent = ((size.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    // Half of the power at a time: the inverse of the largest would be subnormal.
    let half = exponent / 2;
    let value = value * 2f64.powi(-half) * 2f64.powi(half - exponent);
    (value, f64::from(exponent + before))
}

impl Alone for SlabPivots {
    fn key(&self) -> Vec<u8> {
        vec![]
    }
    fn recipe(&self) -> Option<Recipe> {
        let recipe = Recipe::new("lu pivots").word(self.cut.rows());
        Some(recipe.flag(self.cut.dtype() == DType::C128))
    }
    fn results(&self) -> &[Grid] {
        &self.grids
    }
}

impl Work for SlabPivots {
    fn label(&self) -> String {
        "lu pivots".into()
    }
    fn tasks(&self) -> u64 {
        u64::from(self.cut.slabs())
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        each(0, self.cut.pivots(task as u32), Access::Read);
        each(1, 0, if task == 0 { Access::Create } else { Access::Update });
        each(2, task, Access::Create);
    }
    fn operations(&self) -> f64 {
        self.cut.rows() as f64
    }
    fn run(&self, task: u64, bound: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let (cut, slab) = (&self.cut, task as u32);
        let tile = SlabExchanges::new(bound.reads[0], cut.columns(slab).len(), cut.dtype().size());
        let rows: &mut [i64] = bytemuck::cast_slice_mut(bound.writes[1]);
        rows.iter_mut()
            .zip(tile.pivots)
            .for_each(|(row, &pivot)| *row = i64::from(pivot));
        let sums: &mut [f64] = bytemuck::cast_slice_mut(bound.writes[0]);
        if task == 0 {
            sums.copy_from_slice(&[1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
        }
        self.multiply(slab, &tile, sums);
        let size = sums[0].hypot(sums[1]);
        let divisor = if size == 0.0 { 1.0 } else { size };
        sums[3] = sums[0] / divisor;
        sums[4] = sums[1] / divisor;
        sums[5] = size.ln() + sums[2] * std::f64::consts::LN_2;
        for (sum, size) in sums[6..].iter_mut().zip(tile.sizes) {
            if size > *sum || size.is_nan() {
                *sum = size;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaled_numbers_are_of_size_one_to_two_and_exact() {
        for value in [1.0, -3.0, 1e300, f64::MAX, 5e-324, -1e-310, 0.75] {
            for value in [Complex::new(value, 0.0), Complex::new(value / 4.0, value)] {
                let (mantissa, power) = scaled(value);
                let size = mantissa.re.abs().max(mantissa.im.abs());
                assert!((1.0..2.0).contains(&size), "{value}");
                let half = (power / 2.0).trunc();
                let again = mantissa * half.exp2() * (power - half).exp2();
                assert!((again - value).norm() <= 1e-323, "{value} {again}");
            }
        }
        for value in [0.0, f64::INFINITY] {
            assert_eq!(scaled(Complex::new(value, 0.0)), (Complex::new(value, 0.0), 0.0));
        }
    }
}
