//! The second read: what lies inside the brackets is kept, then the elements of the asked ranks are picked.

use outcore_store::Interval;
use std::sync::Arc;

use outcore_dtype::DType;
use outcore_kernels::sort::{nan_key, sift, sort_keys, sort_workspace_bytes};

use super::bracket::Brackets;
use super::runs::{each_column, QuantileRequest, Runs, TOGETHER};
use crate::expr::grid::PANEL_BYTES;
use crate::task::costs::PER_KEY;
use crate::task::{Access, Algorithm, Bound, Grid, Work};
use crate::EngineError;

#[derive(Clone, Debug)]
pub(super) struct Select {
    asked: QuantileRequest,
    runs: Runs,
    brackets: Arc<Brackets>,
    /// Where the elements that each run's brackets may hold begin among all that are kept, of (run, column, fraction).
    starts: Arc<Vec<u64>>,
    /// What is asked for; then the kept elements, and for (task, column, fraction) how many come up to the lower key
    /// and how many were kept.
    results: Vec<Grid>,
}

impl Select {
    pub fn new(asked: QuantileRequest, runs: Runs, brackets: Arc<Brackets>) -> Select {
        let (per_run, across, width) = (brackets.all.len(), asked.across() as usize, asked.x.tile[1] as usize);
        let asked_count = asked.fractions.len();
        let mut starts = vec![0; brackets.inside.len()];
        let mut at = 0;
        // In the order of tasks and, inside, of columns and fractions: of (run, column, fraction) already.
        debug_assert!(across * width * asked_count >= per_run);
        for (start, inside) in starts.iter_mut().zip(&brackets.inside) {
            *start = at;
            at += inside;
        }
        let mut results = asked.results();
        let tile = PANEL_BYTES / asked.x.dtype.size() as u64;
        results.push(Grid {
            shape: vec![at],
            tile: vec![tile.clamp(1, at.max(1))],
            dtype: asked.x.dtype,
        });
        let counts = 2 * asked.x.tile[1] * asked_count as u64;
        results.push(Grid {
            shape: vec![counts * asked.across() * runs.count(&asked)],
            tile: vec![counts],
            dtype: DType::I64,
        });
        Select {
            asked,
            runs,
            brackets,
            starts: Arc::new(starts),
            results,
        }
    }

    fn kept(&self) -> &Grid {
        &self.results[4]
    }

    /// The run of a task, its columns, and where its brackets are among those of all runs.
    fn place(&self, task: u64) -> (u64, std::ops::Range<usize>, std::ops::Range<usize>) {
        let (run, side) = (task / self.asked.across(), task % self.asked.across());
        let columns = self.asked.x.region(side)[1];
        let columns = columns.start as usize..columns.end() as usize;
        let fractions = self.asked.fractions.len();
        let base = run as usize * self.brackets.all.len();
        let places = base + columns.start * fractions..base + columns.end * fractions;
        (run, columns, places)
    }

    /// The elements that a task may keep, among those of all tasks.
    fn range(&self, task: u64) -> Interval {
        let (_, _, places) = self.place(task);
        let end = places.end - 1;
        Interval::between(self.starts[places.start], self.starts[end] + self.brackets.inside[end])
    }

    fn column_bytes(&self, run: u64) -> usize {
        let rows = self.runs.rows(&self.asked, run) as usize;
        (TOGETHER.min(self.asked.x.tile[1]) as usize * rows * self.asked.x.dtype.size()).next_multiple_of(64)
    }

    /// Most elements that one bracket keeps of all runs.
    fn most(&self) -> usize {
        let brackets = self.brackets.all.len();
        let of_all = |place: usize| self.brackets.inside[place..].iter().step_by(brackets).sum::<u64>();
        (0..brackets).map(of_all).max().unwrap_or(0) as usize
    }
}

impl Algorithm for Select {
    fn name(&self) -> String {
        "select".into()
    }
    fn key(&self) -> Vec<u8> {
        let fractions = self.asked.fractions.iter().map(|fraction| fraction.to_bits());
        let known = u64::from(self.brackets.all.iter().any(|bracket| bracket.low.is_some()));
        let numbers = [self.brackets.total()].into_iter().chain(fractions).chain([known]);
        [self.runs.key(), numbers.flat_map(u64::to_le_bytes).collect()].concat()
    }
    fn results(&self) -> &[Grid] {
        &self.results
    }
    fn works(&self, _inputs: &[Grid]) -> Vec<Arc<dyn Work>> {
        vec![Arc::new(self.clone()), Arc::new(Pick(self.clone()))]
    }
}

impl Work for Select {
    fn label(&self) -> String {
        "keep what lies near".into()
    }

    fn tasks(&self) -> u64 {
        self.runs.count(&self.asked) * self.asked.across()
    }

    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let across = self.asked.across();
        let tiles = self.runs.range(&self.asked, task / across);
        tiles.for_each(|tile| each(0, tile * across + task % across, Access::Read));
        each(6, task, Access::Create);
        let (range, tile) = (self.range(task), self.kept().tile[0]);
        for target in range.tiles(tile) {
            let first = target * tile >= range.start;
            each(5, target, if first { Access::Create } else { Access::Update });
        }
    }

    fn workspace_bytes(&self, task: u64) -> u64 {
        let kept = self.range(task).length;
        self.column_bytes(task / self.asked.across()) as u64 + kept * self.asked.x.dtype.size() as u64
    }

    fn operations(&self) -> f64 {
        let elements = self.asked.x.shape.iter().product::<u64>() as f64;
        PER_KEY / 10.0 * elements * self.asked.fractions.len() as f64
    }

    fn run(&self, task: u64, tiles: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let item = self.asked.x.dtype.size();
        let fractions = self.asked.fractions.len();
        let (run, columns, places) = self.place(task);
        let rows = self.runs.rows(&self.asked, run) as usize;
        let (space, kept) = workspace.split_at_mut(self.column_bytes(run));
        let (counts, targets) = tiles.writes.split_first_mut().ok_or_else(changed)?;
        let range = self.range(task);
        let nan = nan_key(self.asked.x.dtype);
        let mut complete = true;
        each_column(
            &self.asked.x,
            &tiles.reads,
            columns.len(),
            rows,
            space,
            |column, values| {
                for fraction in 0..fractions {
                    let within = column * fractions + fraction;
                    let place = places.start + within;
                    let bracket = &self.brackets.all[columns.start * fractions + within];
                    let room = self.brackets.inside[place] as usize * item;
                    let kept = &mut kept[(self.starts[place] - range.start) as usize * item..][..room];
                    let mut found = [0u8; 16];
                    if let Some(low) = &bracket.low {
                        let high = bracket.high.as_deref().or(nan.as_deref());
                        let sifted = sift(self.asked.order, values, low, high, kept);
                        complete &= sifted.inside * item <= room;
                        found[..8].copy_from_slice(&(sifted.up_to_low as u64).to_ne_bytes());
                        found[8..].copy_from_slice(&(sifted.inside as u64).to_ne_bytes());
                    }
                    counts[within * 16..][..16].copy_from_slice(&found);
                }
            },
        );
        if !complete {
            return Err(changed());
        }
        let tile = self.kept().tile[0];
        for (target, number) in targets.iter_mut().zip(range.start / tile..) {
            let begin = number * tile;
            let within = range.intersection(Interval::new(begin, tile));
            let part = &kept[(within.start - range.start) as usize * item..][..within.length as usize * item];
            target[(within.start - begin) as usize * item..][..part.len()].copy_from_slice(part);
        }
        Ok(())
    }
}

fn changed() -> EngineError {
    EngineError::Plan("the elements are others than when their keys were noted: they must be the same each time".into())
}

/// Picks the elements of the asked ranks out of the kept ones.
#[derive(Clone, Debug)]
struct Pick(Select);

impl Pick {
    fn tasks_before(&self) -> u64 {
        self.0.tasks()
    }

    fn buffer_bytes(&self) -> usize {
        (self.0.most() * self.0.asked.x.dtype.size()).next_multiple_of(64)
    }
}

impl Work for Pick {
    fn label(&self) -> String {
        "pick".into()
    }

    fn tasks(&self) -> u64 {
        1
    }

    fn operands(&self, _task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        (0..self.0.kept().tiles()).for_each(|tile| each(5, tile, Access::Read));
        (0..self.tasks_before()).for_each(|tile| each(6, tile, Access::Read));
        (1..5).for_each(|set| each(set, 0, Access::Create));
    }

    fn workspace_bytes(&self, _task: u64) -> u64 {
        (self.buffer_bytes() + sort_workspace_bytes(self.0.asked.order, self.0.most())) as u64
    }

    fn operations(&self) -> f64 {
        PER_KEY * self.0.brackets.total() as f64
    }

    fn run(&self, _task: u64, tiles: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let select = &self.0;
        let (asked, brackets) = (&select.asked, &select.brackets);
        let item = asked.x.dtype.size();
        let (kept, counts) = tiles.reads.split_at(select.kept().tiles() as usize);
        let (buffer, sort) = workspace.split_at_mut(self.buffer_bytes());
        let [first, second, between, numbers] = &mut tiles.writes[..] else {
            return Err(EngineError::Internal("four results are picked".into()));
        };
        let (columns, fractions) = (asked.columns() as usize, asked.fractions.len());
        for (place, bracket) in brackets.all.iter().enumerate() {
            let (column, fraction) = (place / fractions, place % fractions);
            let side = column as u64 / asked.x.tile[1];
            let within = (column as u64 % asked.x.tile[1]) as usize * fractions + fraction;
            let (mut up_to_low, mut held) = (0u64, 0usize);
            for run in 0..select.runs.count(asked) {
                let found = &counts[(run * asked.across() + side) as usize][within * 16..][..16];
                let (found, _) = found.as_chunks::<8>();
                up_to_low += u64::from_ne_bytes(found[0]);
                let count = u64::from_ne_bytes(found[1]);
                let start = select.starts[run as usize * brackets.all.len() + place];
                let mut at = start;
                while at < start + count {
                    let tile = select.kept().tile[0];
                    let to = ((at / tile + 1) * tile).min(start + count);
                    let from = (at % tile) as usize * item;
                    let part = &kept[(at / tile) as usize][from..from + (to - at) as usize * item];
                    buffer[held..held + part.len()].copy_from_slice(part);
                    held += part.len();
                    at = to;
                }
            }
            let inside = &mut buffer[..held];
            if held > 0 {
                sort_keys(asked.order, inside, sort);
            }
            let at = fraction * columns + column;
            for (rank, result) in [(bracket.ranks[0], &mut *first), (bracket.ranks[1], &mut *second)] {
                let value = pick(rank, up_to_low, inside, item, bracket, asked.x.dtype)?;
                result[at * item..][..item].copy_from_slice(&value);
            }
            between[at * 8..][..8].copy_from_slice(&bracket.between.to_ne_bytes());
        }
        for (place, count) in numbers.chunks_exact_mut(8).zip(&brackets.numbers) {
            place.copy_from_slice(&(*count as i64).to_ne_bytes());
        }
        Ok(())
    }
}

/// The element of a rank.
fn pick(
    rank: u64,
    up_to_low: u64,
    inside: &[u8],
    item: usize,
    bracket: &super::bracket::Bracket,
    dtype: DType,
) -> Result<Vec<u8>, EngineError> {
    let Some(low) = &bracket.low else {
        return Ok(nan_key(dtype).unwrap_or_else(|| vec![0; item]));
    };
    let Some(at) = rank.checked_sub(up_to_low) else {
        return Ok(low.clone());
    };
    match (inside.get(at as usize * item..(at as usize + 1) * item), &bracket.high) {
        (Some(value), _) => Ok(value.to_vec()),
        (None, Some(high)) => Ok(high.clone()),
        (None, None) => Err(changed()),
    }
}
