//! Tiles of a sparse matrix that are made in any order, and then placed in the file one behind the other: a tile
//! lies behind all before it, whose lengths are known when they have been made.

use std::fmt::Debug;
use std::sync::Arc;

use outcore_dtype::DType;
use outcore_store::{place_pending, SparseOutput, FIRST_OFFSET};

use crate::task::{Access, Alone, Bound, Grid, Recipe, Work};
use crate::EngineError;

/// The set of where tiles end, behind that of the tiles.
pub(super) const PLACED: usize = 1;

/// The maker of the tiles of a matrix that is stored.
pub(super) trait MakeTiles: Send + Sync + Debug {
    fn label(&self) -> String;
    /// As [`crate::task::Algorithm::key`].
    fn key(&self) -> Vec<u8>;
    /// As [`crate::task::Algorithm::recipe`].
    fn recipe(&self) -> Option<Recipe> {
        None
    }
    fn output(&self) -> &SparseOutput;
    /// The set of the tiles, and that of where they end.
    fn results(&self) -> &[Grid];
    fn tiles(&self) -> u64;
    /// Calls `each` with what a tile is made of.
    fn operands(&self, tile: u64, each: &mut dyn FnMut(usize, u64, Access));
    /// The set of the tiles, and that of where they end.
    fn sets(&self) -> [usize; 2];
    fn workspace_bytes(&self, tile: u64) -> u64;
    fn operations(&self) -> f64;
    /// Makes a tile, as `PendingTile` has it.
    ///
    /// # Errors
    /// As [`Work::run`].
    fn make(&self, tile: u64, bound: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError>;
}

/// Makes each tile, and says where it goes when the one before has been placed. The tile that is made next stands between
/// the two, so that the other threads have work meanwhile.
#[derive(Clone, Debug)]
pub(super) struct Made<T>(pub T);

/// The set of where tiles end: one number.
pub(super) fn ends_of(tiles: u64) -> Grid {
    Grid {
        shape: vec![tiles.min(1)],
        tile: vec![1],
        dtype: DType::U64,
    }
}

/// Tiles that are made before one is placed.
const AHEAD: u64 = 4;

enum TileStep {
    Make(u64),
    Place(u64),
}

impl<T: MakeTiles> Made<T> {
    /// First `AHEAD` tiles are made, then one is placed and one made in turn, then the last are placed.
    fn step(&self, task: u64) -> TileStep {
        let tiles = self.0.tiles();
        let ahead = AHEAD.min(tiles);
        if task < ahead {
            return TileStep::Make(task);
        }
        let turn = task - ahead;
        let both = tiles - ahead;
        match turn < 2 * both {
            true if turn.is_multiple_of(2) => TileStep::Place(turn / 2),
            true => TileStep::Make(ahead + turn / 2),
            false => TileStep::Place(turn - both),
        }
    }
}

impl<T: MakeTiles + Clone + 'static> Alone for Made<T> {
    fn key(&self) -> Vec<u8> {
        self.0.key()
    }
    fn results(&self) -> &[Grid] {
        self.0.results()
    }
    fn recipe(&self) -> Option<Recipe> {
        self.0.recipe()
    }
    fn listed(&self, result: usize) -> Option<Arc<[u64]>> {
        (result == 0).then(|| self.0.output().lengths.clone())
    }
    fn file(&self, result: usize) -> Option<SparseOutput> {
        (result == 0).then(|| self.0.output().clone())
    }
}

impl<T: MakeTiles + Clone> Work for Made<T> {
    fn label(&self) -> String {
        self.0.label()
    }
    fn tasks(&self) -> u64 {
        2 * self.0.tiles()
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let [tiles, ends] = self.0.sets();
        match self.step(task) {
            TileStep::Make(tile) => {
                self.0.operands(tile, each);
                each(tiles, tile, Access::Create);
            }
            TileStep::Place(tile) => {
                each(tiles, tile, Access::Update);
                each(ends, 0, if tile == 0 { Access::Create } else { Access::Update });
            }
        }
    }
    fn workspace_bytes(&self, task: u64) -> u64 {
        match self.step(task) {
            TileStep::Make(tile) => self.0.workspace_bytes(tile),
            TileStep::Place(_) => 0,
        }
    }
    fn operations(&self) -> f64 {
        self.0.operations()
    }
    fn run(&self, task: u64, bound: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        match self.step(task) {
            TileStep::Make(tile) => self.0.make(tile, bound, workspace),
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
