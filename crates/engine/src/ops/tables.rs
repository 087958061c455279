//! What tiles tell, gathered in a table: a few tables that are added to in turn, then taken together.

use std::fmt::Debug;
use std::sync::Arc;

use super::algorithm;
use crate::expr::Expr;
use crate::task::{Access, Algorithm, Bound, Grid, Recipe, Work};
use crate::EngineError;

/// Tables that tasks add to at once. Like all that decides it a constant, so that sums of floating-point numbers have the
/// same bits everywhere.
pub(super) const TABLES: u64 = 4;

/// The contents of a table, and how a tile gets into it.
pub(super) trait Tabled: Clone + Debug + Send + Sync + 'static {
    fn name(&self) -> String;
    fn key(&self) -> Vec<u8>;
    fn recipe(&self) -> Recipe;
    /// Inputs of which each task reads its own tile; those behind them are of one tile, which every task reads.
    fn tiled(&self) -> usize;
    /// Operations for one tile, for estimates of time.
    fn operations(&self) -> f64;
    /// Makes a table that of nothing.
    fn clear(&self, table: &mut [u8]);
    /// Adds what the tiles of a task tell, which are so many tiles below the first.
    fn add(&self, below: u64, tiles: &[&[u8]], table: &mut [u8]);
    fn merge(&self, from: &[u8], into: &mut [u8]);
}

/// The table of all tiles of `inputs`. Where `table` is an array of several tiles side by side, each of them is the table
/// of one band of columns, and the inputs that have as many tiles side by side are cut into the same bands. Of `tables` each
/// is added to by its own tasks, in the order of their tiles.
pub(super) fn gathered(of: impl Tabled, inputs: &[Expr], table: Grid, tables: u64) -> Result<Expr, EngineError> {
    let bands = table.counts()[1..].iter().product();
    let tiles = inputs[0].grid().counts()[0];
    let count = tables.min(tiles);
    let mut several = table.clone();
    several.shape[0] *= count;
    let is_banded = |(at, input): (usize, &Expr)| {
        let rows = if at < of.tiled() { tiles } else { 1 };
        bands > 1 && input.grid().tiles() == rows * bands
    };
    let gathering = Gathering {
        banded: inputs.iter().enumerate().map(is_banded).collect(),
        tiles,
        bands,
        tables: count,
        results: [table, several],
        of,
    };
    Ok(algorithm(Arc::new(gathering), inputs)?.swap_remove(0))
}

#[derive(Clone, Debug)]
struct Gathering<T> {
    of: T,
    /// Which inputs are cut into bands.
    banded: Vec<bool>,
    /// One above the other.
    tiles: u64,
    bands: u64,
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
    fn recipe(&self) -> Option<Recipe> {
        Some(self.of.recipe())
    }
    fn results(&self) -> &[Grid] {
        &self.results
    }
    fn works(&self, _inputs: &[Grid]) -> Vec<Arc<dyn Work>> {
        if self.results[0].tiles() == 0 {
            return vec![];
        }
        vec![Arc::new(self.clone())]
    }
}

impl<T: Tabled> Gathering<T> {
    /// The band of a task.
    fn band(&self, task: u64) -> u64 {
        task / (self.tiles + 1)
    }

    /// The tile of a task in its band; behind the last tile the tables of the band are taken together.
    fn tile(&self, task: u64) -> u64 {
        task % (self.tiles + 1)
    }

    fn table(&self, number: u64, band: u64) -> u64 {
        number * self.bands + band
    }
}

impl<T: Tabled> Work for Gathering<T> {
    fn label(&self) -> String {
        self.of.name()
    }
    fn tasks(&self) -> u64 {
        self.bands * (self.tiles + 1)
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let (band, tile, inputs) = (self.band(task), self.tile(task), self.banded.len());
        if tile == self.tiles {
            (0..self.tables).for_each(|number| each(inputs + 1, self.table(number, band), Access::Read));
            return each(inputs, band, Access::Create);
        }
        for (input, &is_banded) in self.banded.iter().enumerate() {
            let row = if input < self.of.tiled() { tile } else { 0 };
            let place = if is_banded { row * self.bands + band } else { row };
            each(input, place, Access::Read);
        }
        let access = if tile < self.tables {
            Access::Create
        } else {
            Access::Update
        };
        each(inputs + 1, self.table(tile % self.tables, band), access);
    }
    fn operations(&self) -> f64 {
        let tables = self.results[1].shape.iter().product::<u64>() as f64;
        self.of.operations() * (self.tiles * self.bands) as f64 + tables
    }
    fn run(&self, task: u64, tiles: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let (tile, table) = (self.tile(task), &mut *tiles.writes[0]);
        if tile == self.tiles {
            self.of.clear(table);
            tiles.reads.iter().for_each(|part| self.of.merge(part, table));
            return Ok(());
        }
        if tile < self.tables {
            self.of.clear(table);
        }
        self.of.add(tile, &tiles.reads, table);
        Ok(())
    }
}
