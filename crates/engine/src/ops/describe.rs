//! The facts of columns that a summary is made of, in one look at every element.

use outcore_dtype::DType;
use outcore_kernels::{clear_facts, describe, merge_facts, FACTS};

use super::tables::{gathered, Tabled, TABLES};
use super::{in_tiles, show};
use crate::expr::{grid, Expr};
use crate::task::{Grid, Recipe};
use crate::EngineError;

/// Of each column of the float64 matrix `x`, NaN passed over: how many elements there are and are not 0, the least and the
/// greatest, Σ|x|, Σx², the mean as the sum of two numbers, and Σd² to Σd⁴ of distances from it; the rows of a matrix.
///
/// # Errors
/// Another type, or another number of axes.
pub fn described(x: &Expr) -> Result<Expr, EngineError> {
    if x.ndim() != 2 {
        return Err(EngineError::Shape(format!(
            "summary: an array of shape {} is no matrix",
            show(&x.shape)
        )));
    }
    if x.dtype != DType::F64 {
        return Err(EngineError::DType(format!("summary: {} is not float64", x.dtype)));
    }
    let columns = x.shape[1];
    let x = in_tiles(x, grid::uncut(&x.shape, x.dtype, x.tile.clone(), &[1]));
    let table = Grid {
        shape: vec![FACTS as u64, columns],
        tile: vec![FACTS as u64, columns.max(1)],
        dtype: DType::F64,
    };
    let of = Describing {
        elements: x.tile.iter().product(),
    };
    gathered(of, &[x], table, TABLES)
}

#[derive(Clone, Debug)]
struct Describing {
    /// Of a tile.
    elements: u64,
}

impl Tabled for Describing {
    fn name(&self) -> String {
        "summary".into()
    }
    fn key(&self) -> Vec<u8> {
        vec![]
    }
    fn recipe(&self) -> Recipe {
        Recipe::new("describe")
    }
    fn tiled(&self) -> usize {
        1
    }
    fn operations(&self) -> f64 {
        24.0 * self.elements as f64
    }
    fn clear(&self, table: &mut [u8]) {
        clear_facts(table);
    }
    fn add(&self, _below: u64, tiles: &[&[u8]], table: &mut [u8]) {
        describe(tiles[0], table);
    }
    fn merge(&self, from: &[u8], into: &mut [u8]) {
        merge_facts(from, into);
    }
}
