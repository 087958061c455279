//! The first read: every `stride`-th key of each column of sorted runs.

use outcore_dtype::DType;
use outcore_kernels::sort::{count_less, nan_key, sort_keys, sort_workspace_bytes};

use super::runs::{each_column, QuantileRequest, Runs, TOGETHER};
use crate::task::costs::PER_KEY;
use crate::task::{Access, Alone, Bound, Grid, Work};
use crate::EngineError;

#[derive(Clone, Debug)]
pub(super) struct Note {
    asked: QuantileRequest,
    runs: Runs,
    /// Noted keys of (run, column), and how many elements are not NaN.
    results: [Grid; 2],
}

impl Note {
    pub fn new(asked: QuantileRequest, runs: Runs) -> Note {
        let (count, columns, width) = (runs.count(&asked), asked.columns(), asked.x.tile[1]);
        let keys = Grid {
            shape: vec![count, columns, runs.noted],
            tile: vec![1, width, runs.noted],
            dtype: asked.x.dtype,
        };
        let counts = Grid {
            shape: vec![count, columns],
            tile: vec![1, width],
            dtype: DType::I64,
        };
        Note {
            asked,
            runs,
            results: [keys, counts],
        }
    }
}

impl Alone for Note {
    fn key(&self) -> Vec<u8> {
        self.runs.key()
    }
    fn results(&self) -> &[Grid] {
        &self.results
    }
}

impl Work for Note {
    fn label(&self) -> String {
        "note quantiles".into()
    }

    fn tasks(&self) -> u64 {
        self.runs.count(&self.asked) * self.asked.across()
    }

    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let across = self.asked.across();
        let tiles = self.runs.range(&self.asked, task / across);
        tiles.for_each(|tile| each(0, tile * across + task % across, Access::Read));
        each(1, task, Access::Create);
        each(2, task, Access::Create);
    }

    fn workspace_bytes(&self, task: u64) -> u64 {
        let rows = self.runs.rows(&self.asked, task / self.asked.across());
        let space = TOGETHER.min(self.asked.x.tile[1]) * rows * self.asked.x.dtype.size() as u64;
        space.next_multiple_of(64) + sort_workspace_bytes(self.asked.order, rows as usize) as u64
    }

    fn operations(&self) -> f64 {
        PER_KEY * self.asked.x.shape.iter().product::<u64>() as f64
    }

    fn run(&self, task: u64, tiles: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let asked = &self.asked;
        let item = asked.x.dtype.size();
        let rows = self.runs.rows(asked, task / asked.across()) as usize;
        let width = asked.x.region(task % asked.across())[1].length as usize;
        let space = (TOGETHER.min(asked.x.tile[1]) as usize * rows * item).next_multiple_of(64);
        let (space, sort) = workspace.split_at_mut(space);
        let [keys, counts] = &mut tiles.writes[..] else {
            return Err(EngineError::Internal("keys and counts are noted".into()));
        };
        let (noted, stride) = (self.runs.noted as usize, self.runs.stride as usize);
        let nan = nan_key(asked.x.dtype);
        each_column(&asked.x, &tiles.reads, width, rows, space, |column, values| {
            sort_keys(asked.order, values, sort);
            let numbers = nan.as_ref().map_or(rows, |nan| count_less(asked.order, values, nan));
            counts[column * 8..][..8].copy_from_slice(&(numbers as i64).to_ne_bytes());
            let places = keys[column * noted * item..][..noted * item].chunks_exact_mut(item);
            for (place, at) in places.zip((0..).step_by(stride)) {
                // Behind the last run's end nothing is looked at.
                let at: usize = usize::min(at, rows - 1);
                place.copy_from_slice(&values[at * item..][..item]);
            }
        });
        Ok(())
    }
}
