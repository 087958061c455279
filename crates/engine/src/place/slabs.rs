//! Memory for the partial results of a pass's reductions, reserved as a whole while the pass is open.
//!
//! Results combine in a fixed binary tree over the tile numbers. In program order at most `log₂ T + 1` partials of one
//! result are alive at a time; tasks at work within the window add one each.

use outcore_store::FramePool;

use crate::cancel;
use crate::plan::{Accumulation, Pass, PassRoot, Plan, Producer};
use crate::schedule::tasks::{cell_extent, root_tile};
use crate::schedule::tiles::coordinates;
use crate::schedule::TaskList;

/// Partial results of one root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slab {
    /// Frames to hold ready.
    pub frames: u64,
    /// Bytes of one partial result.
    pub bytes: u64,
}

impl Slab {
    pub fn reserved(&self) -> u64 {
        self.frames * FramePool::frame_bytes(self.bytes as usize) as u64
    }
}

/// Bytes of one output element's accumulator.
pub fn accumulator_size(root: &PassRoot) -> Option<usize> {
    match root.accumulation.as_ref()? {
        Accumulation::Reduce { reducer, .. } => Some(reducer.op.accumulator_size(reducer.input)),
        Accumulation::Product => Some(root.node.dtype.size()),
    }
}

/// Bytes of the largest partial result of a root.
pub fn partial_bytes(pass: &Pass, root: &PassRoot) -> u64 {
    let first = cell_extent(pass, &vec![0; pass.domain.shape.len()]);
    let elements: u64 = root.spans.iter().map(|span| span.resolve(&first).length).product();
    elements * accumulator_size(root).unwrap_or(0) as u64
}

/// Position of a task among those of its result, in C order of the reduced dimensions: the leaf of the tree.
pub fn leaf(kept: &[usize], counts: &[u64], cell: &[u64]) -> u64 {
    (0..cell.len())
        .filter(|dim| !kept.contains(dim))
        .fold(0, |index, dim| index * counts[dim] + cell[dim])
}

/// Number of leaves of a result's tree.
pub fn leaves(kept: &[usize], counts: &[u64]) -> u64 {
    (0..counts.len())
        .filter(|dim| !kept.contains(dim))
        .map(|dim| counts[dim])
        .product()
}

/// Per pass, per root: the partial results that the order of `tasks` needs.
pub fn find_slabs(plan: &Plan, tasks: &TaskList, window: usize) -> Vec<Vec<Slab>> {
    let trees = |pass: &Pass| pass.roots.iter().map(|root| OpenTrees::new(pass, root)).collect();
    let passes = plan.producers.iter().map(Producer::pass);
    let mut open: Vec<Vec<OpenTrees>> = passes.clone().map(|pass| pass.map_or(vec![], trees)).collect();
    let counts: Vec<Vec<u64>> = passes
        .map(|pass| pass.map_or(vec![], |pass| pass.domain.counts()))
        .collect();
    let mut cell = Vec::new();
    for task in 0..tasks.len() {
        cancel::check();
        let pass = tasks.pass[task] as usize;
        if open[pass].iter().all(|trees| !trees.counted) {
            continue;
        }
        coordinates(&counts[pass], u64::from(tasks.cell[task]), &mut cell);
        for trees in open[pass].iter_mut().filter(|trees| trees.counted) {
            trees.add(&counts[pass], &cell);
        }
    }
    plan.producers
        .iter()
        .zip(&open)
        .map(|(producer, open)| {
            let Some(pass) = producer.pass() else { return vec![] };
            pass.roots
                .iter()
                .zip(open)
                .map(|(root, trees)| {
                    if !trees.counted {
                        return Slab::default();
                    }
                    // Tasks in flight hold one each, and may complete out of order.
                    let frames = (trees.peak + window as u64 + 2).min(pass.domain.cells());
                    Slab {
                        frames,
                        bytes: partial_bytes(pass, root),
                    }
                })
                .collect()
        })
        .collect()
}

/// Partial trees of one root, counted in program order.
struct OpenTrees {
    counted: bool,
    kept: Vec<usize>,
    /// Per result, how many of its leaves are in.
    filled: std::collections::HashMap<u64, Vec<u64>>,
    alive: u64,
    peak: u64,
    leaves: u64,
}

impl OpenTrees {
    fn new(pass: &Pass, root: &PassRoot) -> OpenTrees {
        use crate::plan::RootKind::{Contraction, Reduce};
        let kept = root.kept_dims();
        let leaves = leaves(&kept, &pass.domain.counts());
        OpenTrees {
            counted: matches!(root.kind, Reduce | Contraction),
            kept,
            filled: std::collections::HashMap::new(),
            alive: 0,
            peak: 0,
            leaves,
        }
    }

    fn add(&mut self, counts: &[u64], cell: &[u64]) {
        let result = root_tile(&self.kept, counts, cell);
        let leaf = leaf(&self.kept, counts, cell);
        let nodes = self.filled.entry(result).or_default();
        self.alive += 1;
        self.peak = self.peak.max(self.alive);
        // Nodes alive are (level, index) packed; siblings join at once.
        let (mut level, mut index, mut width) = (0u64, leaf, self.leaves);
        while width > 1 {
            let sibling = index ^ 1;
            if sibling < width {
                let key = level << 56 | sibling;
                match nodes.iter().position(|&node| node == key) {
                    Some(at) => {
                        nodes.swap_remove(at);
                        self.alive -= 1;
                    }
                    None => {
                        nodes.push(level << 56 | index);
                        return;
                    }
                }
            }
            level += 1;
            index /= 2;
            width = width.div_ceil(2);
        }
        self.filled.remove(&result);
        self.alive -= 1;
    }
}
