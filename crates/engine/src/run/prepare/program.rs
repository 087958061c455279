//! A placed program: what planning gives, `explain` prints and the driver plays.

use std::sync::Arc;

use outcore_store::{Resumable, SinkPlan};

use crate::place::slabs::Slab;
use crate::place::Placed;
use crate::plan::Plan;
use crate::run::prepare::planning::ReturnFreed;
use crate::run::session::residency::{KeptKey, Value, Worth};
use crate::run::session::Session;
use crate::schedule::{TileId, TileTable};

pub(in crate::run) enum Output {
    Memory {
        shape: Vec<u64>,
        dtype: outcore_dtype::DType,
        tile: Vec<u64>,
    },
    File(SinkPlan),
    Resumed(Arc<Resumable>),
}

impl Output {
    /// What there is to know of an output in files.
    pub(in crate::run) fn file(&self) -> Option<&SinkPlan> {
        match self {
            Output::Memory { .. } => None,
            Output::File(plan) => Some(plan),
            Output::Resumed(resumable) => Some(resumable.plan()),
        }
    }
}

/// A placed program with its outputs checked: what `explain` prints and `run` plays.
pub struct Program {
    pub session: Arc<Session>,
    pub plan: Plan,
    pub tiles: TileTable,
    pub placed: Placed,
    pub slabs: Vec<Vec<Slab>>,
    pub fixed_bytes: u64,
    /// The part of them that buffers of encoded I/O and the program itself take.
    pub(in crate::run) unseen_bytes: u64,
    /// What tiles and partial results may take.
    pub memory: u64,
    /// Bytes of headers and metadata the outputs write.
    pub metadata_bytes: u64,
    pub plan_seconds: f64,
    pub(in crate::run) outputs: Vec<Output>,
    pub(in crate::run) start: Vec<(TileId, KeptKey)>,
    /// Values computed before, which stand in the plan.
    pub(in crate::run) used: Vec<Value>,
    /// What to remember of the outputs, if anything. Those beyond the requested ones are made to be remembered.
    pub(in crate::run) worths: Vec<Option<Worth>>,
    pub(in crate::run) requested: usize,
    /// Dropped after the rest.
    pub(in crate::run) _freed: ReturnFreed,
}

impl Program {
    /// Most bytes the ledger grants while the program runs.
    pub fn peak_bytes(&self) -> u64 {
        self.fixed_bytes + self.placed.program.totals.peak_bytes
    }

    pub fn read_bytes(&self) -> u64 {
        self.placed.program.totals.read_bytes
    }

    pub fn written_bytes(&self) -> u64 {
        self.placed.program.totals.written_bytes + self.metadata_bytes
    }

    pub(in crate::run) fn moved_bytes(&self) -> u64 {
        self.read_bytes() + self.written_bytes()
    }

    /// Whether it reads no more than what it needs and does not find in memory, once.
    pub(in crate::run) fn moves_least(&self) -> bool {
        let found = |&(tile, _): &(TileId, KeptKey)| self.tiles.weights[tile as usize].read;
        let totals = &self.placed.program.totals;
        let once = self.tiles.source_bytes(&self.plan);
        let least = once.saturating_sub(self.start.iter().map(found).sum());
        totals.spilled_bytes == 0 && totals.read_bytes <= least
    }

    /// Tiles that the program finds in memory, and their bytes.
    pub fn starts_from(&self) -> (usize, u64) {
        let weight = |&(tile, _): &(TileId, KeptKey)| self.tiles.weights[tile as usize].frame;
        (self.start.len(), self.start.iter().map(weight).sum())
    }

    /// Values computed before that stand in the plan, and their bytes.
    pub fn knows(&self) -> (usize, u64) {
        let bytes = |value: &Value| value.array.nbytes();
        (self.used.len(), self.used.iter().map(bytes).sum())
    }

    /// Values computed beside the results, to be remembered, and their bytes.
    pub fn remembers(&self) -> (usize, u64) {
        let made = &self.plan.outputs[self.requested..];
        let bytes = |&array: &u32| self.plan.arrays[array as usize].node.nbytes();
        (made.len(), made.iter().map(bytes).sum())
    }
}
