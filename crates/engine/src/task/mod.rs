//! Contracts of tile algorithms: work that names its tiles itself, beside the fused passes whose tiles follow from spans.
//!
//! An algorithm works on *tile sets*: its inputs, then its results, then what it keeps for itself between its tasks.
//! Everything it needs of memory is said before it runs, so placement decides for it as it does for passes.
//!
//! Uses `error.rs` alone. Start with `Algorithm` and `Work` below.

pub mod costs;
mod recipe;
mod reuse;

use std::fmt::Debug;
use std::sync::Arc;

use outcore_dtype::DType;
use outcore_store::{FactorOutput, Interval, SparseOutput};

use crate::EngineError;

pub use recipe::{Parameter, Parameters, Recipe};
pub use reuse::{NestReuse, NestUse};

/// An array cut into tiles, numbered in C order of the grid.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grid {
    pub shape: Vec<u64>,
    pub tile: Vec<u64>,
    pub dtype: DType,
}

impl Grid {
    /// A set of tiles of so many bytes, in a row each.
    pub fn listed(lengths: &[u64]) -> Grid {
        let longest = lengths.iter().copied().max().unwrap_or(1).max(1);
        Grid {
            shape: vec![lengths.len() as u64, longest],
            tile: vec![1, longest],
            dtype: DType::U8,
        }
    }

    /// Tiles along each axis.
    pub fn counts(&self) -> Vec<u64> {
        let lengths = self.shape.iter().zip(&self.tile);
        lengths.map(|(&length, &tile)| length.div_ceil(tile.max(1))).collect()
    }

    pub fn tiles(&self) -> u64 {
        self.counts().iter().product()
    }

    /// The interval of a tile along each axis.
    pub fn region(&self, mut tile: u64) -> Vec<Interval> {
        let counts = self.counts();
        let mut region = vec![Interval::default(); counts.len()];
        for axis in (0..counts.len()).rev() {
            let start = tile % counts[axis] * self.tile[axis];
            tile /= counts[axis];
            region[axis] = Interval::new(start, self.tile[axis].min(self.shape[axis] - start));
        }
        region
    }

    pub fn elements(&self, tile: u64) -> u64 {
        self.region(tile).iter().map(|along| along.length).product()
    }

    pub fn bytes(&self, tile: u64) -> u64 {
        self.elements(tile) * self.dtype.size() as u64
    }
}

/// The access of a task to a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    /// The first to touch it: what is in its memory before means nothing.
    Create,
    /// Reads and writes what an earlier task left.
    Update,
}

/// An order of all tasks of a work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskOrder {
    /// As `explain` calls it. Works that propose orders of one name go by it together.
    pub name: &'static str,
    pub tasks: Vec<u32>,
}

/// The place of a task among sweeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepPlace {
    /// The number of its sweep, in the order of the work.
    pub sweep: u32,
    /// Where along the sweep it begins, and how far a sweep is behind the one before it.
    pub position: i64,
    pub lag: i64,
}

/// The place of a task in a nest of loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NestPlace {
    /// The number of the nest.
    pub nest: u32,
    /// Pieces of up to three loops.
    pub pieces: [u32; 3],
}

/// Tasks over tiles.
///
/// What it promises:
/// 1. `operands` and `workspace_bytes` are pure. A task names a tile once.
/// 2. Every tile of a result is created by exactly one task, and not read or updated by a task numbered lower.
/// 3. `run` allocates nothing but small bookkeeping: what grows with tiles is workspace.
///
/// What it gets: tasks that touch one tile, one of them writing, take effect in the order of their numbers, whatever else
/// runs at once. So results have the same bits at every limit and number of threads.
pub trait Work: Send + Sync + Debug {
    fn label(&self) -> String;
    fn tasks(&self) -> u64;
    /// Calls `each` with the tile set (inputs, then results), the tile and the access of every operand of a task.
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access));
    /// Orders beside that of the numbers which may move fewer bytes where tiles have so much memory: the schedule takes the best by
    /// simulation. Tasks of which one writes a tile that the other touches keep the order of their numbers, so that bits are the
    /// same in any order; an order in which they do not is passed over.
    fn orders(&self, _memory: u64) -> Vec<TaskOrder> {
        vec![]
    }
    /// Whether its tasks call functions of the user.
    fn calls_functions(&self) -> bool {
        false
    }
    /// Whether orders of its tasks are searched for among those of all tasks of the program.
    fn is_searched(&self) -> bool {
        false
    }
    /// Whether a task of a work whose orders are searched for only brings tiles to how they are before the work.
    fn is_preparation(&self, _task: u64) -> bool {
        false
    }
    /// The place of a task among sweeps over the same tiles, where there are such: a few sweeps may go over them together, each
    /// behind the one before.
    fn sweep_place(&self, _task: u64) -> Option<SweepPlace> {
        None
    }
    /// The place of a task in a nest whose loops may be gone through in blocks.
    fn nest_place(&self, _task: u64) -> Option<NestPlace> {
        None
    }
    /// Memory besides the operands while a task runs, in bytes.
    fn workspace_bytes(&self, _task: u64) -> u64 {
        0
    }
    /// Memory that the work's own records take as long as it is there, in bytes: lists of tasks and of what they touch.
    fn record_bytes(&self) -> u64 {
        0
    }
    /// The uses of arrays in its nests, which bound the bytes that are moved.
    fn reuses(&self) -> Vec<NestReuse> {
        vec![]
    }
    /// Operations of all tasks, for estimates of time.
    fn operations(&self) -> f64;
    /// Runs a task. `workspace` is what `workspace_bytes` says, not cleared.
    ///
    /// # Errors
    /// What makes the whole run fail: data that cannot be what the plan took it for.
    fn run(&self, task: u64, tiles: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError>;
}

/// The tiles of a task, in the order in which `operands` names them: those read, and those created or updated. Each is
/// as long as the tile (less than its row of the grid where tiles differ in size), C-contiguous, and begins on a page where it
/// was not read from a file at an odd place.
#[derive(Default)]
pub struct Bound<'a> {
    pub reads: Vec<&'a [u8]>,
    pub writes: Vec<&'a mut [u8]>,
}

/// A file that tiles of different sizes make.
#[derive(Clone, Debug)]
pub enum FileOutput {
    Sparse(SparseOutput),
    Factor(FactorOutput),
}

/// An operator that the fuser does not look into: it takes whole tiles of its inputs and makes whole tiles of its results.
pub trait Algorithm: Send + Sync + Debug {
    fn name(&self) -> String;
    /// Everything that makes its results differ from those of another algorithm over the same inputs. Equal names and
    /// keys are equal algorithms.
    fn key(&self) -> Vec<u8>;
    /// Its results and, after them, the sets that it keeps for itself.
    fn results(&self) -> &[Grid];
    /// Bytes of each tile of a result whose tiles differ in size. Its grid has one row for each tile, as long as the
    /// largest; a tile is the front of its row, and the rest of that is not there. Other algorithms may take such a set;
    /// it is an operand of nothing else, and stored only where [`Self::file`] says how.
    fn listed(&self, _result: usize) -> Option<Arc<[u64]>> {
        None
    }
    /// The file that such a result is, tile by tile, where it is one.
    fn file(&self, _result: usize) -> Option<FileOutput> {
        None
    }
    /// The result whose tiles spare a run that is gone on with most of the work on the tiles of this one that are left; it
    /// is a file of its own while this one is made.
    fn beside(&self, _result: usize) -> Option<usize> {
        None
    }
    /// How it is built of its inputs by another process; nothing where only stages of operators build it.
    fn recipe(&self) -> Option<Recipe> {
        None
    }
    /// Functions of the user that it calls, by name, where these are equal to themselves only.
    fn functions(&self) -> Vec<String> {
        vec![]
    }
    /// Its tasks, given how its inputs are cut; one work runs after the other.
    fn works(&self, inputs: &[Grid]) -> Vec<Arc<dyn Work>>;
}

/// An algorithm that is a single work: its name is the work's label.
pub trait Alone: Work + Clone + 'static {
    /// As [`Algorithm::key`].
    fn key(&self) -> Vec<u8>;
    /// As [`Algorithm::results`].
    fn results(&self) -> &[Grid];
    /// As [`Algorithm::listed`].
    fn listed(&self, _result: usize) -> Option<Arc<[u64]>> {
        None
    }
    /// As [`Algorithm::file`].
    fn file(&self, _result: usize) -> Option<FileOutput> {
        None
    }
    /// As [`Algorithm::beside`].
    fn beside(&self, _result: usize) -> Option<usize> {
        None
    }
    /// As [`Algorithm::recipe`].
    fn recipe(&self) -> Option<Recipe> {
        None
    }
    /// As [`Algorithm::functions`].
    fn functions(&self) -> Vec<String> {
        vec![]
    }
}

impl<T: Alone> Algorithm for T {
    fn name(&self) -> String {
        self.label()
    }
    fn key(&self) -> Vec<u8> {
        Alone::key(self)
    }
    fn results(&self) -> &[Grid] {
        Alone::results(self)
    }
    fn listed(&self, result: usize) -> Option<Arc<[u64]>> {
        Alone::listed(self, result)
    }
    fn file(&self, result: usize) -> Option<FileOutput> {
        Alone::file(self, result)
    }
    fn beside(&self, result: usize) -> Option<usize> {
        Alone::beside(self, result)
    }
    fn recipe(&self) -> Option<Recipe> {
        Alone::recipe(self)
    }
    fn functions(&self) -> Vec<String> {
        Alone::functions(self)
    }
    fn works(&self, _inputs: &[Grid]) -> Vec<Arc<dyn Work>> {
        vec![Arc::new(self.clone())]
    }
}
