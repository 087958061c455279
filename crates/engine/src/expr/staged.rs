//! Operators whose later steps follow from what earlier ones found: a driver runs one program after another.

use std::sync::Arc;

use outcore_store::Source;

// They and nodes are made of each other.
pub use super::{Next, Staged, StagedKey, Stages};

/// The memory and threads on which the programs of a staged operator count.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Bytes for tiles and workspaces.
    pub memory: u64,
    pub threads: usize,
}

/// What becomes of a result of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// It is small, and the next step is decided by it.
    Fact,
    /// It lies in a file of scratch until the whole computation is over.
    Stored,
}

/// A result of a stage, as the next step finds it.
#[derive(Clone)]
pub enum StageResult {
    Fact(Vec<u8>),
    Stored(Arc<dyn Source>),
}
