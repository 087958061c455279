//! A placed program: what planning gives, `explain` prints and the driver plays.

use std::sync::Arc;

use outcore_store::{FramePool, Resumable, SinkPlan};

use crate::place::slabs::Slab;
use crate::place::{simulate, Limits, Placed, Window};
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

/// Bytes of the results among outputs that stay in memory.
pub(in crate::run) fn results_bytes(outputs: &[Output]) -> u64 {
    let frames = outputs.iter().map(|output| match output {
        Output::Memory { shape, dtype, .. } => {
            FramePool::frame_bytes(shape.iter().product::<u64>() as usize * dtype.size()) as u64
        }
        _ => 0,
    });
    frames.sum()
}

/// Bytes that may be moved beyond a forecast.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::run) struct Beyond {
    pub read: u64,
    pub spilled: u64,
}

/// A placed program with its outputs checked: what `explain` prints and `run` plays.
pub struct PreparedProgram {
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

impl PreparedProgram {
    /// Most bytes the ledger grants while the program runs.
    pub fn peak_bytes(&self) -> u64 {
        self.fixed_bytes + self.placed.program.totals.peak_bytes
    }

    /// Bytes of results in memory.
    pub fn results_bytes(&self) -> u64 {
        results_bytes(&self.outputs)
    }

    pub fn read_bytes(&self) -> u64 {
        self.placed.program.totals.read_bytes
    }

    pub fn written_bytes(&self) -> u64 {
        self.placed.program.totals.written_bytes + self.metadata_bytes
    }

    /// Bytes that a program like this one may move beyond those that this one does: of as many tasks, over tiles of other
    /// sizes. Nothing where an eighth of the memory less would do without spills as well; else every temporary tile may
    /// leave each time that it was written to, and come back for each use.
    pub(in crate::run) fn may_move_beyond(&self) -> Beyond {
        if self.placed.program.totals.spilled_bytes == 0 && self.is_roomy() {
            return Beyond::default();
        }
        let most = self.most_moved();
        // What is spilled here comes back at least once, but where policies spill what is dead.
        let spilled = self.placed.program.totals.spilled_bytes;
        let returned = match self.session.options().policy.drops_dead_temporaries() {
            true => spilled,
            false => 0,
        };
        Beyond {
            read: most.read.saturating_sub(returned),
            spilled: most.spilled.saturating_sub(spilled),
        }
    }

    /// Whether nothing is spilled with an eighth of the memory less.
    fn is_roomy(&self) -> bool {
        let limits = Limits {
            policy: self.session.options().policy,
            sample: false,
            ..Limits::new(
                self.memory - self.memory / 8,
                Window::of_tasks(self.placed.program.reach.tasks),
            )
        };
        let start: Vec<TileId> = self.start.iter().map(|&(tile, _)| tile).collect();
        let placed = simulate(&self.plan, &self.tiles, &self.placed.tasks, limits, &start);
        placed.is_ok_and(|program| program.totals.spilled_bytes == 0)
    }

    /// Bytes of tiles that a task leaves written, or spilled, and only a task after the next one takes up, each time: no
    /// more can be moved of them in this order, whatever there is room for.
    fn most_moved(&self) -> Beyond {
        let tasks = &self.placed.tasks;
        let tiles = self.tiles.weights.len();
        let (mut written, mut touched) = (vec![false; tiles], vec![None::<usize>; tiles]);
        let mut most = Beyond::default();
        for task in 0..tasks.len() {
            let outputs = || tasks.outputs(task).iter().map(|output| output.tile as usize);
            let inputs = tasks.inputs(task).iter().map(|&tile| tile as usize);
            for tile in inputs.chain(outputs()) {
                let Some(before) = touched[tile].as_mut() else {
                    continue;
                };
                if *before + 1 < task {
                    let bytes = self.tiles.weights[tile].frame;
                    most.read += bytes;
                    most.spilled += if std::mem::take(&mut written[tile]) { bytes } else { 0 };
                }
                *before = task;
            }
            for tile in outputs() {
                (written[tile], touched[tile]) = (true, Some(task));
            }
        }
        // Some policies do not know what is dead.
        if !self.session.options().policy.drops_dead_temporaries() {
            let left = written.iter().zip(&self.tiles.weights);
            most.spilled += left
                .filter(|(written, _)| **written)
                .map(|(_, weight)| weight.frame)
                .sum::<u64>();
        }
        most
    }

    /// Whether the run writes what is forecast, and not less.
    pub fn is_exact(&self) -> bool {
        self.outputs.iter().filter_map(Output::file).all(SinkPlan::is_exact)
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
