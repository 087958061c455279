//! What tiles tell, gathered in a table: a few tables that are added to in turn, then taken together.

use std::fmt::Debug;
use std::sync::Arc;

use super::algorithm;
use crate::expr::Expr;
use crate::task::{Access, Algorithm, Bound, Grid, Work};
use crate::EngineError;

/// Tables that tasks add to at once. A constant, so that sums of floating-point numbers have the same bits everywhere.
const TABLES: u64 = 4;

/// What a table holds, and how a tile gets into it.
pub(super) trait Tabled: Clone + Debug + Send + Sync + 'static {
    fn name(&self) -> String;
    fn key(&self) -> Vec<u8>;
    /// Inputs of which each task reads its own tile; those behind them are of one tile, which every task reads.
    fn tiled(&self) -> usize;
    /// Operations for one tile, for estimates of time.
    fn operations(&self) -> f64;
    /// Makes a table that of nothing.
    fn clear(&self, table: &mut [u8]);
    /// Adds what the tiles of a task tell.
    fn add(&self, tiles: &[&[u8]], table: &mut [u8]);
    fn merge(&self, from: &[u8], into: &mut [u8]);
}

/// The table of all tiles of `inputs`; `table` is an array of one tile.
pub(super) fn gathered(of: impl Tabled, inputs: &[Expr], table: Grid) -> Result<Expr, EngineError> {
    let tiles = inputs[0].grid().tiles();
    let count = TABLES.min(tiles);
    let mut several = table.clone();
    several.shape[0] *= count;
    let gathering = Gathering {
        inputs: inputs.len(),
        tiles,
        tables: count,
        results: [table, several],
        of,
    };
    Ok(algorithm(Arc::new(gathering), inputs)?.swap_remove(0))
}

#[derive(Clone, Debug)]
struct Gathering<T> {
    of: T,
    inputs: usize,
    tiles: u64,
    tables: u64,
    /// The result, and the tables.
    results: [Grid; 2],
}

impl<T: Tabled> Algorithm for Gathering<T> {
    fn name(&self) -> String {
        self.of.name()
    }
    fn key(&self) -> Vec<u8> {
        self.of.key()
    }
    fn results(&self) -> &[Grid] {
        &self.results
    }
    fn works(&self, _inputs: &[Grid]) -> Vec<Arc<dyn Work>> {
        if self.results[0].tiles() == 0 {
            return vec![];
        }
        vec![Arc::new(self.clone()), Arc::new(Total(self.clone()))]
    }
}

impl<T: Tabled> Work for Gathering<T> {
    fn label(&self) -> String {
        self.of.name()
    }
    fn tasks(&self) -> u64 {
        self.tiles
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        for input in 0..self.inputs {
            each(input, if input < self.of.tiled() { task } else { 0 }, Access::Read);
        }
        let access = if task < self.tables {
            Access::Create
        } else {
            Access::Update
        };
        each(self.inputs + 1, task % self.tables, access);
    }
    fn operations(&self) -> f64 {
        self.of.operations() * self.tiles as f64
    }
    fn run(&self, task: u64, tiles: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let table = &mut *tiles.writes[0];
        if task < self.tables {
            self.of.clear(table);
        }
        self.of.add(&tiles.reads, table);
        Ok(())
    }
}

/// The tables as one.
#[derive(Clone, Debug)]
struct Total<T>(Gathering<T>);

impl<T: Tabled> Work for Total<T> {
    fn label(&self) -> String {
        "total".into()
    }
    fn tasks(&self) -> u64 {
        1
    }
    fn operands(&self, _task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        (0..self.0.tables).for_each(|table| each(self.0.inputs + 1, table, Access::Read));
        each(self.0.inputs, 0, Access::Create);
    }
    fn operations(&self) -> f64 {
        self.0.results[1].shape.iter().product::<u64>() as f64
    }
    fn run(&self, _task: u64, tiles: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let result = &mut *tiles.writes[0];
        self.0.of.clear(result);
        tiles.reads.iter().for_each(|table| self.0.of.merge(table, result));
        Ok(())
    }
}
