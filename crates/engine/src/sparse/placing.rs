//! Tiles of a sparse matrix that are made in any order, and then placed in the file one behind the other: a tile
//! lies behind all before it, whose lengths are known when they have been made.

use std::fmt::Debug;
use std::sync::Arc;

use outcore_dtype::DType;
use outcore_store::{place_pending, SparseOutput, FIRST_OFFSET};

use crate::task::{Access, Alone, Bound, FileOutput, Grid, Recipe, Work};
use crate::EngineError;

/// The maker of the tiles of a matrix that is stored.
pub(super) trait MakeTiles: Send + Sync + Debug {
    fn label(&self) -> String;
    /// As [`crate::task::Algorithm::key`].
    fn key(&self) -> Vec<u8>;
    fn result(&self) -> &TileResult;
    /// Tasks that make a tile one after the other: a large one in parts.
    fn parts(&self, _tile: u64) -> u64 {
        1
    }
    /// Calls `each` with what a part of a tile is made of.
    fn operands(&self, part: TilePart, each: &mut dyn FnMut(usize, u64, Access));
    fn workspace_bytes(&self, part: TilePart) -> u64;
    fn operations(&self) -> f64;
    /// Makes a part of a tile; after the last, the tile is as `PendingTile` has it.
    ///
    /// # Errors
    /// As [`Work::run`].
    fn make(&self, part: TilePart, bound: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError>;
}

/// The result of a maker of tiles.
#[derive(Clone, Debug)]
pub(super) struct TileResult {
    pub output: SparseOutput,
    /// How it is built again, where it is.
    recipe: Option<Recipe>,
    /// The set of the tiles, and that of where they end.
    grids: [Grid; 2],
    /// The number of the first, behind the sets of the inputs.
    first: usize,
}

impl TileResult {
    /// Of so many inputs.
    pub fn new(output: SparseOutput, inputs: usize, recipe: Option<Recipe>) -> TileResult {
        let tiles = output.lengths.len() as u64;
        let ends = Grid {
            shape: vec![tiles.min(1)],
            tile: vec![1],
            dtype: DType::U64,
        };
        TileResult {
            grids: [Grid::listed(&output.lengths), ends],
            output,
            recipe,
            first: inputs,
        }
    }

    fn tiles(&self) -> u64 {
        self.output.lengths.len() as u64
    }
}

/// A tile, and which part of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct TilePart {
    pub tile: u64,
    pub part: u64,
}

/// Makes each tile, and says where it goes when the one before has been placed. The tile that is made next stands between
/// the two, so that the other threads have work meanwhile.
#[derive(Clone, Debug)]
pub(super) struct Made<T> {
    of: T,
    /// Parts before each tile, and in all.
    before: Arc<[u64]>,
}

impl<T: MakeTiles> Made<T> {
    pub fn new(of: T) -> Made<T> {
        let parts = (0..of.result().tiles()).scan(0, |sum, tile| {
            *sum += of.parts(tile);
            Some(*sum)
        });
        Made {
            before: std::iter::once(0).chain(parts).collect(),
            of,
        }
    }
}

/// Tiles that are made before one is placed.
const AHEAD: u64 = 4;

enum TileStep {
    Make(TilePart),
    Place(u64),
}

impl<T: MakeTiles> Made<T> {
    /// First `AHEAD` tiles are made, then one is placed and one made in turn, then the last are placed.
    fn step(&self, task: u64) -> TileStep {
        let tiles = self.of.result().tiles();
        let ahead = AHEAD.min(tiles);
        // Tasks before those that belong to a tile: behind the first ones, the place of an earlier one goes before it.
        let begin = |tile: u64| self.before[tile as usize] + tile.saturating_sub(ahead);
        if task >= begin(tiles) {
            return TileStep::Place(tiles - ahead + task - begin(tiles));
        }
        let (mut low, mut high) = (0, tiles);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if begin(middle) <= task {
                low = middle;
            } else {
                high = middle;
            }
        }
        let within = task - begin(low);
        match low.checked_sub(ahead) {
            Some(earlier) if within == 0 => TileStep::Place(earlier),
            placed => TileStep::Make(TilePart {
                tile: low,
                part: within - u64::from(placed.is_some()),
            }),
        }
    }
}

impl<T: MakeTiles + Clone + 'static> Alone for Made<T> {
    fn key(&self) -> Vec<u8> {
        self.of.key()
    }
    fn results(&self) -> &[Grid] {
        &self.of.result().grids
    }
    fn recipe(&self) -> Option<Recipe> {
        self.of.result().recipe.clone()
    }
    fn listed(&self, result: usize) -> Option<Arc<[u64]>> {
        (result == 0).then(|| self.of.result().output.lengths.clone())
    }
    fn file(&self, result: usize) -> Option<FileOutput> {
        (result == 0).then(|| FileOutput::Sparse(self.of.result().output.clone()))
    }
}

impl<T: MakeTiles + Clone> Work for Made<T> {
    fn label(&self) -> String {
        self.of.label()
    }
    fn tasks(&self) -> u64 {
        self.before[self.before.len() - 1] + self.of.result().tiles()
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let [tiles, ends] = [self.of.result().first, self.of.result().first + 1];
        match self.step(task) {
            TileStep::Make(part) => {
                self.of.operands(part, each);
                let access = if part.part == 0 { Access::Create } else { Access::Update };
                each(tiles, part.tile, access);
            }
            TileStep::Place(tile) => {
                each(tiles, tile, Access::Update);
                each(ends, 0, if tile == 0 { Access::Create } else { Access::Update });
            }
        }
    }
    fn workspace_bytes(&self, task: u64) -> u64 {
        match self.step(task) {
            TileStep::Make(part) => self.of.workspace_bytes(part),
            TileStep::Place(_) => 0,
        }
    }
    fn operations(&self) -> f64 {
        self.of.operations()
    }
    fn run(&self, task: u64, bound: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        match self.step(task) {
            TileStep::Make(part) => self.of.make(part, bound, workspace),
            TileStep::Place(tile) => {
                let [made, end] = &mut bound.writes[..] else {
                    return Err(EngineError::Internal("a tile is placed without its end".into()));
                };
                let begin = match tile {
                    0 => FIRST_OFFSET,
                    _ => u64::from_ne_bytes(*end.first_chunk().expect("a number")),
                };
                let next = place_pending(made, begin);
                end[..8].copy_from_slice(&next.to_ne_bytes());
                Ok(())
            }
        }
    }
}
