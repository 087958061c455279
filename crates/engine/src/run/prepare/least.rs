//! The least that a program moves in any order, where its nests or products say so.

use std::collections::HashSet;

use crate::expr::{topological, Op};
use crate::plan::{ArrayKind, Pass, RootKind};
use crate::run::prepare::program::PreparedProgram;
use crate::task::NestReuse;

impl PreparedProgram {
    /// Bytes that a program with such nests and products moves at least in this memory, headers and metadata as here: each file once,
    /// and what the nests have to bring in. Nothing where no nest uses elements more often than they come in.
    pub fn least_bytes(&self) -> Option<u64> {
        let works = self.plan.works().flat_map(|step| step.work.reuses());
        let products = self.plan.passes().filter_map(product_reuse);
        let nests = works.chain(products).filter_map(|nest| nest.least_bytes(self.memory));
        let written = self.written_bytes() - self.placed.program.totals.spilled_bytes;
        Some(nests.max()?.max(self.once_bytes() + written))
    }

    /// Bytes of the elements of each tile of a file that is used, but for those in memory already: as many as reads give of them.
    fn once_bytes(&self) -> u64 {
        let mut seen: HashSet<u32> = self.start.iter().map(|(tile, _)| *tile).collect();
        let tiles = self.placed.tasks.inputs.iter().filter(|&&tile| seen.insert(tile));
        let of = |tile: u32| {
            let (array, index) = self.tiles.locate(tile);
            let array = &self.plan.arrays[array as usize];
            let is_stored = matches!(array.kind, ArrayKind::Source(_));
            let bytes = || {
                array
                    .node
                    .grid()
                    .bytes(index)
                    .min(self.tiles.weights[tile as usize].read)
            };
            is_stored.then(bytes).unwrap_or_default()
        };
        tiles.map(|&tile| of(tile)).sum()
    }
}

/// A product of which blocks stay in memory.
fn product_reuse(pass: &Pass) -> Option<NestReuse> {
    let root = pass.roots.iter().find(|root| root.kind == RootKind::Blocked)?;
    let (x, y) = (&root.node.inputs[0], &root.node.inputs[1]);
    let stored = |of| {
        let nodes = topological(std::slice::from_ref(of));
        let sources = nodes.into_iter().filter(|node| matches!(node.op, Op::Source(_)));
        sources.map(|source| source.id).collect::<HashSet<u64>>()
    };
    let (m, n) = (
        root.node.shape[root.node.ndim() - 2],
        root.node.shape[root.node.ndim() - 1],
    );
    if m.min(n) == 1 {
        return None;
    }
    let iterations = root.node.elements() as f64 * x.shape[x.ndim() - 1] as f64;
    let item = root.node.dtype.size().min(x.dtype.size()).min(y.dtype.size()) as u64;
    let is_of_one = !stored(x).is_disjoint(&stored(y));
    Some(NestReuse::of_product(iterations, item, is_of_one))
}
