//! The least that a program moves in any order, where its nests or products say so.

use std::collections::{HashMap, HashSet};

use crate::expr::{Expr, Op};
use crate::plan::{ArrayId, ArrayKind, Pass, RootKind};
use crate::run::prepare::program::PreparedProgram;
use crate::task::NestReuse;

impl PreparedProgram {
    /// Bytes that a program with such nests and products moves at least in this memory, headers and metadata as here: each file once,
    /// and what the nests have to bring in. Nothing where no nest uses elements more often than they come in, and for nests over
    /// values that are neither in files as they are nor stored: these may come and go for nothing.
    pub fn least_bytes(&self) -> Option<u64> {
        let is_counted = |arrays: Vec<ArrayId>| arrays.into_iter().all(|array| self.is_moved_whole(array));
        let works = self.plan.works().filter(|step| is_counted(step.accessed(|_| true)));
        let works = works.flat_map(|step| step.work.reuses());
        let products = self.plan.passes().filter_map(|pass| self.product_reuse(pass));
        let nests = works.chain(products).filter_map(|nest| nest.least_bytes(self.memory));
        let written = self.written_bytes() - self.placed.program.totals.spilled_bytes;
        Some(nests.max()?.max(self.once_bytes() + written))
    }

    /// Whether an element of an array has to be read for each use after it left, and written where it was made.
    fn is_moved_whole(&self, array: ArrayId) -> bool {
        let info = &self.plan.arrays[array as usize];
        let first = self.tiles.first[array as usize] as usize;
        let tiles = &self.tiles.weights[first..][..info.tiles() as usize];
        match info.kind {
            ArrayKind::Source(_) => tiles.iter().map(|tile| tile.read).sum::<u64>() >= info.node.nbytes(),
            _ => !info.outputs.is_empty(),
        }
    }

    /// Bytes of the elements of each tile of a file that is used, but for those in memory already. Where a file is read in several
    /// tilings, by the one with the most.
    fn once_bytes(&self) -> u64 {
        let mut seen: HashSet<u32> = self.start.iter().map(|(tile, _)| *tile).collect();
        let mut of_arrays: HashMap<ArrayId, u64> = HashMap::new();
        for &tile in self.placed.tasks.inputs.iter().filter(|&&tile| seen.insert(tile)) {
            let (array, index) = self.tiles.locate(tile);
            let grid = self.plan.arrays[array as usize].node.grid();
            let bytes = grid.bytes(index).min(self.tiles.weights[tile as usize].read);
            *of_arrays.entry(array).or_default() += bytes;
        }
        let mut of_files: HashMap<&str, u64> = HashMap::new();
        for (array, bytes) in of_arrays {
            if let ArrayKind::Source(source) = &self.plan.arrays[array as usize].kind {
                let most = of_files.entry(source.origin()).or_default();
                *most = bytes.max(*most);
            }
        }
        of_files.into_values().sum()
    }

    /// A product of two files that is stored, and of which blocks stay in memory.
    fn product_reuse(&self, pass: &Pass) -> Option<NestReuse> {
        let root = pass.roots.iter().find(|root| root.kind == RootKind::Blocked)?;
        let node = &root.node;
        let [m, n] = node.shape[..] else { return None };
        let [x, y] = [&node.inputs[0], &node.inputs[1]].map(stored);
        let (x, y) = (x?, y?);
        let is_whole = |of: &Expr| {
            let array = self.plan.arrays.iter().position(|array| array.node.id == of.id);
            array.is_some_and(|array| self.is_moved_whole(array as ArrayId))
        };
        let is_stored = !self.plan.arrays[root.array as usize].outputs.is_empty();
        if m.min(n) == 1 || !is_stored || !is_whole(x) || !is_whole(y) {
            return None;
        }
        let iterations = node.elements() as f64 * node.inputs[0].shape[1] as f64;
        let is_of_one = source_name(x) == source_name(y);
        Some(NestReuse::of_product(iterations, node.dtype.size() as u64, is_of_one))
    }
}

/// The file that an operand is, also transposed.
fn stored(operand: &Expr) -> Option<&Expr> {
    match operand.op {
        Op::Permute(_) => stored(&operand.inputs[0]),
        Op::Source(_) => Some(operand),
        _ => None,
    }
}

fn source_name(source: &Expr) -> Option<String> {
    match &source.op {
        Op::Source(key) => Some(key.0.origin().to_string()),
        _ => None,
    }
}
