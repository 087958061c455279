//! Fourier transforms along an axis that is not cut.

use outcore_store::Interval;
use std::sync::{Arc, OnceLock};

use outcore_dtype::DType;
use outcore_kernels::{Fourier, FourierPlan};

use super::{algorithm, check_size, in_tiles, show};
use crate::expr::{grid, Expr};
use crate::task::{Access, Alone, Bound, Grid, Recipe, Work};
use crate::EngineError;

/// The transform of `x` along `axis`, times `scale`. `length` is that of the real side; complex transforms keep theirs.
/// Tiles reach along the axis from end to end. Where `cut` is given, those of `x` are taken as they are, and those of the
/// result have that length along the axis: a task reads and makes a line of tiles.
///
/// # Errors
/// An axis or a type that the transform does not take; a lane of another length than `length` says; a cut of 0.
pub fn fourier(
    kind: Fourier,
    x: &Expr,
    axis: usize,
    length: u64,
    scale: f64,
    cut: Option<u64>,
) -> Result<Expr, EngineError> {
    let Some(&own) = x.shape.get(axis) else {
        let reason = format!("fft: axis {axis} is out of bounds for shape {}", show(&x.shape));
        return Err(EngineError::Shape(reason));
    };
    let half = length / 2 + 1;
    let (given, made) = match kind {
        Fourier::Forward | Fourier::Backward => (length, length),
        Fourier::FromReal => (length, half),
        Fourier::ToReal => (half, length),
    };
    if own != given || length == 0 || length > 1 << 40 || cut == Some(0) {
        return Err(EngineError::Shape(format!(
            "fft: a transform of length {length} takes {given} elements along axis {axis}, not those of {}",
            show(&x.shape)
        )));
    }
    let Some(dtype) = transformed(kind, x.dtype) else {
        return Err(EngineError::DType(format!(
            "fft: {kind:?} of {} is not defined",
            x.dtype
        )));
    };
    let mut shape = x.shape.clone();
    shape[axis] = made;
    check_size("fft", &shape, dtype)?;
    let widest = if dtype.size() > x.dtype.size() { dtype } else { x.dtype };
    let mut tile = x.tile.clone();
    if cut.is_none() {
        tile = grid::uncut(&x.shape, widest, tile, &[axis]);
    }
    let input = in_tiles(x, tile.clone());
    let mut result = Grid { shape, tile, dtype };
    result.tile[axis] = cut.map_or(made, |cut| cut.min(made));
    let transform = Transform {
        kind,
        axis,
        length: length as usize,
        scale,
        input: input.grid(),
        results: [result],
        plan: Arc::default(),
    };
    Ok(algorithm(Arc::new(transform), &[input])?.swap_remove(0))
}

fn transformed(kind: Fourier, dtype: DType) -> Option<DType> {
    match (kind, dtype) {
        (Fourier::Forward | Fourier::Backward, DType::C64 | DType::C128) => Some(dtype),
        (Fourier::FromReal, DType::F32) => Some(DType::C64),
        (Fourier::FromReal, DType::F64) => Some(DType::C128),
        (Fourier::ToReal, DType::C64) => Some(DType::F32),
        (Fourier::ToReal, DType::C128) => Some(DType::F64),
        _ => None,
    }
}

#[derive(Clone)]
struct Transform {
    kind: Fourier,
    axis: usize,
    /// Of the real side.
    length: usize,
    scale: f64,
    input: Grid,
    results: [Grid; 1],
    /// Tables, made when the transform is first planned.
    plan: Arc<OnceLock<FourierPlan>>,
}

impl std::fmt::Debug for Transform {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} of {} along {}", self.kind, self.length, self.axis)
    }
}

impl Transform {
    fn plan(&self) -> &FourierPlan {
        let new = || FourierPlan::new(self.kind, self.input.dtype, self.length);
        self.plan.get_or_init(new)
    }

    /// The line of tiles of a grid that a task works on.
    fn line(&self, grid: &Grid, task: u64) -> impl Iterator<Item = u64> {
        let counts = grid.counts();
        let (parts, behind) = (counts[self.axis], counts[self.axis + 1..].iter().product::<u64>());
        (0..parts).map(move |part| (task / behind * parts + part) * behind + task % behind)
    }

    /// Elements before and behind the axis in a line of tiles.
    fn around(&self, task: u64) -> (usize, usize) {
        let first = self.line(&self.input, task).next().unwrap_or_default();
        let region = self.input.region(first);
        let count = |axes: &[Interval]| axes.iter().map(|along| along.length as usize).product();
        (count(&region[..self.axis]), count(&region[self.axis + 1..]))
    }
}

impl Alone for Transform {
    fn key(&self) -> Vec<u8> {
        let cut = self.results[0].tile[self.axis];
        let words = [self.axis as u64, self.length as u64, self.scale.to_bits(), cut];
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn recipe(&self) -> Option<Recipe> {
        let recipe = Recipe::new("fourier").text(self.kind.name());
        let cut = self.results[0].tile[self.axis];
        Some(
            recipe
                .word(self.axis as u64)
                .word(self.length as u64)
                .float(self.scale)
                .word(cut),
        )
    }

    fn results(&self) -> &[Grid] {
        &self.results
    }
}

impl Work for Transform {
    fn label(&self) -> String {
        format!("fft {:?}", self.kind).to_lowercase()
    }

    fn tasks(&self) -> u64 {
        let counts = self.input.counts().into_iter().enumerate();
        let others = counts.filter(|&(axis, _)| axis != self.axis);
        others.map(|(_, count)| count).product()
    }

    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        self.line(&self.input, task)
            .for_each(|tile| each(0, tile, Access::Read));
        self.line(&self.results[0], task)
            .for_each(|tile| each(1, tile, Access::Create));
    }

    fn workspace_bytes(&self, task: u64) -> u64 {
        let (before, behind) = self.around(task);
        let joined = |grid: &Grid| match grid.counts()[self.axis] {
            1 => 0,
            _ => before * grid.shape[self.axis] as usize * behind * grid.dtype.size(),
        };
        (self.plan().workspace_bytes(behind) + joined(&self.input) + joined(&self.results[0])) as u64
    }

    fn operations(&self) -> f64 {
        let elements = self.input.shape.iter().product::<u64>() as f64;
        5.0 * elements * (self.length as f64).log2().max(1.0)
    }

    fn run(&self, task: u64, tiles: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let (plan, around) = (self.plan(), self.around(task));
        let bytes = |tiles: &mut dyn Iterator<Item = usize>| tiles.sum::<usize>();
        let (given, rest) = match &tiles.reads[..] {
            [whole] => (*whole, workspace),
            parts => {
                let (whole, rest) = workspace.split_at_mut(bytes(&mut parts.iter().map(|part| part.len())));
                join(parts, around.0, whole);
                (&*whole, rest)
            }
        };
        match &mut tiles.writes[..] {
            [whole] => plan.run(given, around, self.scale, whole, rest),
            parts => {
                let (whole, rest) = rest.split_at_mut(bytes(&mut parts.iter().map(|part| part.len())));
                plan.run(given, around, self.scale, whole, rest);
                split(whole, around.0, parts);
            }
        }
        Ok(())
    }
}

/// Blocks `[outer, length, inner]` of a few lengths, one behind the other along the middle axis.
fn join(parts: &[&[u8]], outer: usize, whole: &mut [u8]) {
    let lane = whole.len() / outer.max(1);
    let mut start = 0;
    for part in parts {
        let length = part.len() / outer.max(1);
        for (place, data) in whole
            .chunks_exact_mut(lane.max(1))
            .zip(part.chunks_exact(length.max(1)))
        {
            place[start..start + length].copy_from_slice(data);
        }
        start += length;
    }
}

/// The reverse of [`join`].
fn split(whole: &[u8], outer: usize, parts: &mut [&mut [u8]]) {
    let lane = whole.len() / outer.max(1);
    let mut start = 0;
    for part in parts {
        let length = part.len() / outer.max(1);
        for (place, data) in part
            .chunks_exact_mut(length.max(1))
            .zip(whole.chunks_exact(lane.max(1)))
        {
            place.copy_from_slice(&data[start..start + length]);
        }
        start += length;
    }
}
