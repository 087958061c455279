//! How often each number occurs in a row: a few counters that are added to in turn, then summed.

use std::sync::Arc;

use outcore_kernels::tally;

use super::{algorithm, copy_tiled, show};
use crate::expr::Expr;
use crate::task::{Access, Algorithm, Bound, Grid, Work};
use crate::EngineError;
use outcore_dtype::DType;

/// Counters that tasks add to at once. A constant, so that sums of weights have the same bits everywhere.
const COUNTERS: u64 = 4;

/// How often each of the numbers `0 .. bins` is among the int64 elements of a row; with weights (float64) the sum of those
/// beside it. Other numbers are left out.
///
/// # Errors
/// Operands of other types, or shapes that differ.
pub fn bincount(numbers: &Expr, weights: Option<&Expr>, bins: u64) -> Result<Expr, EngineError> {
    let beside = weights.unwrap_or(numbers);
    if numbers.ndim() != 1 || numbers.shape != beside.shape {
        return Err(EngineError::Shape(format!(
            "bincount: numbers of shape {} and weights of shape {} are not two rows of one length",
            show(&numbers.shape),
            show(&beside.shape)
        )));
    }
    let dtype = weights.map_or(DType::I64, |weights| weights.dtype);
    if numbers.dtype != DType::I64 || !matches!(dtype, DType::I64 | DType::F64) {
        return Err(EngineError::DType(format!(
            "bincount: {} weighted by {dtype}",
            numbers.dtype
        )));
    }
    let tile = vec![bins.max(1)];
    let counters = COUNTERS.min(numbers.grid().tiles());
    let counting = Tally {
        numbers: numbers.grid(),
        weighted: weights.is_some(),
        counters,
        results: [
            Grid {
                shape: vec![bins],
                tile: tile.clone(),
                dtype,
            },
            Grid {
                shape: vec![bins * counters],
                tile,
                dtype,
            },
        ],
    };
    let mut inputs = vec![numbers.clone()];
    inputs.extend(weights.map(|weights| match weights.tile == numbers.tile {
        true => weights.clone(),
        false => copy_tiled(weights, numbers.tile.clone()),
    }));
    Ok(algorithm(Arc::new(counting), &inputs)?.swap_remove(0))
}

#[derive(Clone, Debug)]
struct Tally {
    numbers: Grid,
    weighted: bool,
    counters: u64,
    /// The counts, and the counters.
    results: [Grid; 2],
}

impl Tally {
    fn inputs(&self) -> usize {
        1 + usize::from(self.weighted)
    }
}

impl Algorithm for Tally {
    fn name(&self) -> String {
        "bincount".into()
    }
    fn key(&self) -> Vec<u8> {
        vec![]
    }
    fn results(&self) -> &[Grid] {
        &self.results
    }
    fn works(&self, _inputs: &[Grid]) -> Vec<Arc<dyn Work>> {
        if self.results[0].shape[0] == 0 {
            return vec![];
        }
        vec![Arc::new(self.clone()), Arc::new(Total(self.clone()))]
    }
}

impl Work for Tally {
    fn label(&self) -> String {
        self.name()
    }
    fn tasks(&self) -> u64 {
        self.numbers.tiles()
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        (0..self.inputs()).for_each(|set| each(set, task, Access::Read));
        let access = if task < self.counters {
            Access::Create
        } else {
            Access::Update
        };
        each(self.inputs() + 1, task % self.counters, access);
    }
    fn operations(&self) -> f64 {
        15.0 * self.numbers.shape[0] as f64
    }
    fn run(&self, task: u64, tiles: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let counter = &mut *tiles.writes[0];
        if task < self.counters {
            counter.fill(0);
        }
        tally(tiles.reads[0], tiles.reads.get(1).copied(), counter);
        Ok(())
    }
}

/// The sum of the counters.
#[derive(Clone, Debug)]
struct Total(Tally);

impl Work for Total {
    fn label(&self) -> String {
        "total".into()
    }
    fn tasks(&self) -> u64 {
        1
    }
    fn operands(&self, _task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let inputs = self.0.inputs();
        (0..self.0.counters).for_each(|counter| each(inputs + 1, counter, Access::Read));
        each(inputs, 0, Access::Create);
    }
    fn operations(&self) -> f64 {
        self.0.results[1].shape[0] as f64
    }
    fn run(&self, _task: u64, tiles: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let result = &mut *tiles.writes[0];
        result.fill(0);
        for counter in &tiles.reads {
            outcore_kernels::add_tallies(self.0.results[0].dtype, counter, result);
        }
        Ok(())
    }
}
