//! Operators whose later steps follow from what earlier ones found: a driver runs one program after another.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use outcore_store::{Io, Source};

use super::Expr;
use crate::task::Grid;
use crate::EngineError;

/// What the programs of a staged operator may count on.
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
pub enum Found {
    Fact(Vec<u8>),
    Stored(Arc<dyn Source>),
}

/// What comes next.
pub enum Next {
    /// A program for these results. `awaits` says in words what later stages wait for.
    Stage {
        label: String,
        awaits: String,
        outputs: Vec<(Expr, Keep)>,
    },
    /// Nodes, cut as the operator's results are, that give them: they take its place in the rest of the computation.
    Done(Vec<Expr>),
}

/// An operator that is computed in stages. Its results have the same bits whatever the room.
pub trait Staged: Send + Sync + Debug {
    fn name(&self) -> String;
    /// Everything that makes its results differ from those of another operator over the same inputs.
    fn key(&self) -> Vec<u8>;
    fn results(&self) -> &[Grid];
    /// Begins to compute it. Pure: it only decides what the first stage is.
    ///
    /// # Errors
    /// Room in which no stage fits.
    fn begin(&self, inputs: &[Expr], room: Room) -> Result<Box<dyn Stages>, EngineError>;
}

/// A staged operator while it is computed.
pub trait Stages: Send {
    /// The next step, given what the last stage found; nothing at first. `io` is for what must be looked up in stored
    /// results: those reads are counted, and bounded by `lookup_bytes`.
    ///
    /// # Errors
    /// What `io` reports, and facts that cannot be.
    fn next(&mut self, found: &[Found], room: Room, io: &Io) -> Result<Next, EngineError>;
    /// The step after the one given last as if its facts were the worst they can be, so that its forecast is a bound.
    ///
    /// # Errors
    /// Room in which it does not fit.
    fn assume(&mut self, room: Room) -> Result<Next, EngineError>;
    /// Most bytes that `next` reads.
    fn lookup_bytes(&self) -> u64;
}

/// A staged operator, equal to others of its name and key.
#[derive(Clone, Debug)]
pub struct StagedKey(pub Arc<dyn Staged>);

impl PartialEq for StagedKey {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.name(), self.0.key()) == (other.0.name(), other.0.key())
    }
}

impl Eq for StagedKey {}

impl Hash for StagedKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.0.name(), self.0.key()).hash(state);
    }
}
