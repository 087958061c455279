//! Matrices along the last two axes, each factorized whole by one task.

use std::sync::Arc;

use outcore_dtype::DType;
use outcore_kernels::{Factor, Factorization};

use super::tall::{is_tall, tall};
use crate::expr::{grid, Expr};
use crate::ops::{algorithm, in_tiles, show};
use crate::task::{Access, Alone, Bound, Grid, Recipe, Work};
use crate::EngineError;

/// Bytes of one matrix: beyond, sizes of workspaces could not be counted. Far beyond what any memory holds.
const MATRIX_BYTES_MAX: u64 = 1 << 50;

/// The factors of every matrix of `x`, which lie along its last two axes: float64 or complex128, with as many leading axes
/// as there may be. `right` holds the right-hand sides of [`Factor::Solve`], with the same leading axes.
///
/// A matrix is one tile, and its task takes the workspace that the factorization says. QR of a tall matrix goes by tiles.
///
/// # Errors
/// Other types, shapes that do not go together, or matrices without elements. A matrix that has no such factors fails the
/// run.
pub fn factorize(factor: Factor, x: &Expr, right: Option<&Expr>) -> Result<Vec<Expr>, EngineError> {
    let label = label(factor);
    check(factor, &label, x, right)?;
    let batch = x.ndim() - 2;
    if matches!(factor, Factor::Qr | Factor::Triangle) && is_tall(x) {
        return tall(x, factor == Factor::Qr);
    }
    let axes = [batch, batch + 1];
    let is_whole = axes.iter().all(|&axis| x.tile[axis] == x.shape[axis]);
    let tile = if is_whole { x.tile.clone() } else { x.shape.clone() };
    let leading = grid::uncut(&x.shape, x.dtype, tile, &axes)[..batch].to_vec();
    let last = |of: &Expr| [of.shape[batch], of.shape[batch + 1]];
    let tiled = |of: &Expr| in_tiles(of, [&leading[..], &last(of)].concat());
    let sizes = Factorization {
        factor,
        dtype: x.dtype,
        rows: x.shape[batch] as usize,
        columns: x.shape[batch + 1] as usize,
        right: right.map_or(0, |right| right.shape[batch + 1] as usize),
    };
    let result = |(shape, dtype): (Vec<usize>, DType)| {
        let last: Vec<u64> = shape.iter().map(|&length| length as u64).collect();
        Grid {
            shape: [&x.shape[..batch], &last].concat(),
            tile: [&leading[..], &last].concat(),
            dtype,
        }
    };
    let inputs: Vec<Expr> = std::iter::once(x).chain(right).map(tiled).collect();
    let batched = Batched {
        label,
        sizes,
        operands: inputs.iter().map(|input| input.grid()).collect(),
        results: sizes.results().into_iter().map(result).collect(),
    };
    algorithm(Arc::new(batched), &inputs)
}

fn check(factor: Factor, label: &str, x: &Expr, right: Option<&Expr>) -> Result<(), EngineError> {
    let refuse = |reason: String| Err(EngineError::Shape(format!("{label}: {reason}")));
    if x.ndim() < 2 {
        return refuse(format!("{} has no rows and columns", show(&x.shape)));
    }
    let batch = x.ndim() - 2;
    let is_square = x.shape[batch] == x.shape[batch + 1];
    if !is_square && !any_shape(factor) {
        return refuse(format!("{} is not square along its last two axes", show(&x.shape)));
    }
    for of in std::iter::once(x).chain(right) {
        if !matches!(of.dtype, DType::F64 | DType::C128) || of.dtype != x.dtype {
            return Err(EngineError::DType(format!("{label}: {} beside {}", of.dtype, x.dtype)));
        }
        if of.shape[batch..].contains(&0) {
            return refuse(format!("matrices of shape {} have no elements", show(&of.shape)));
        }
        let matrix = of.shape[batch..]
            .iter()
            .fold(of.dtype.size() as u64, |bytes, &length| bytes.saturating_mul(length));
        if matrix > MATRIX_BYTES_MAX {
            return refuse(format!("a matrix of shape {} does not fit any memory", show(&of.shape)));
        }
    }
    let goes = |right: &Expr| right.ndim() == x.ndim() && right.shape[..=batch] == x.shape[..=batch];
    match right {
        Some(right) if !goes(right) => refuse(format!(
            "{} and {} do not go together",
            show(&x.shape),
            show(&right.shape)
        )),
        _ if right.is_some() != (factor == Factor::Solve) => refuse("takes other operands".into()),
        _ => Ok(()),
    }
}

fn any_shape(factor: Factor) -> bool {
    matches!(
        factor,
        Factor::Qr | Factor::QrComplete | Factor::Triangle | Factor::Svd | Factor::SvdComplete | Factor::SingularValues
    )
}

fn label(factor: Factor) -> String {
    match factor {
        Factor::QrComplete => "qr complete".into(),
        Factor::SvdComplete => "svd complete".into(),
        Factor::SingularValues => "svdvals".into(),
        Factor::Triangle => "qr triangle".into(),
        Factor::Inverse => "inv".into(),
        other => format!("{other:?}").to_lowercase(),
    }
}

#[derive(Clone, Debug)]
struct Batched {
    label: String,
    sizes: Factorization,
    operands: Vec<Grid>,
    results: Vec<Grid>,
}

impl Alone for Batched {
    fn key(&self) -> Vec<u8> {
        vec![]
    }

    fn recipe(&self) -> Option<Recipe> {
        Some(Recipe::new("factorize").text(self.sizes.factor.name()))
    }

    fn results(&self) -> &[Grid] {
        &self.results
    }
}

impl Work for Batched {
    fn label(&self) -> String {
        self.label.clone()
    }

    fn tasks(&self) -> u64 {
        self.operands[0].tiles()
    }

    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        (0..self.operands.len()).for_each(|set| each(set, task, Access::Read));
        let results = self.operands.len()..self.operands.len() + self.results.len();
        results.for_each(|set| each(set, task, Access::Create));
    }

    fn workspace_bytes(&self, _task: u64) -> u64 {
        self.sizes.workspace_bytes() as u64
    }

    fn operations(&self) -> f64 {
        let matrices: u64 = self.operands[0].shape.iter().rev().skip(2).product();
        self.sizes.operations() * matrices as f64
    }

    fn run(&self, task: u64, tiles: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let region = self.operands[0].region(task);
        let leading = &region[..region.len() - 2];
        let matrices: usize = leading.iter().map(|along| along.length as usize).product();
        for place in 0..matrices {
            let part = |length: usize| place * (length / matrices)..(place + 1) * (length / matrices);
            let inputs: Vec<&[u8]> = tiles.reads.iter().map(|tile| &tile[part(tile.len())]).collect();
            let outputs = tiles.writes.iter_mut();
            let mut outputs: Vec<&mut [u8]> = outputs
                .map(|tile| {
                    let part = part(tile.len());
                    &mut tile[part]
                })
                .collect();
            self.sizes.run(&inputs, &mut outputs, workspace).map_err(|failure| {
                let starts: Vec<u64> = leading.iter().map(|along| along.start).collect();
                let of = match starts.len() {
                    0 => String::new(),
                    _ => format!(" (matrix {place} of the block at {})", show(&starts)),
                };
                EngineError::LinAlg(format!("{}: {failure}{of}", self.label))
            })?;
        }
        Ok(())
    }
}
