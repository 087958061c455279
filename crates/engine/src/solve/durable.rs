//! The sets that a factorization makes. Some contribution blocks are kept, so that the work can be gone on with: those of fronts
//! in whose subtrees an eighth of all operations is done since others that are kept. Nothing below them is done again.

use std::sync::Arc;

use outcore_dtype::DType;
use outcore_store::{FactorOutput, FactorRecord};

use super::supernodes::Supernode;
use super::tree::NONE;
use super::Analysis;
use crate::task::{FileOutput, Grid};

/// The part of all operations that is lost at most, but for those of a front that is not complete.
const PART: f64 = 8.0;

/// By node of the fronts: whether its contribution block is kept.
fn is_kept(analysis: &Analysis) -> Vec<bool> {
    let most = analysis.operations() / PART;
    let nodes = &analysis.fronts.nodes;
    let mut since = vec![0.0; nodes.len()];
    let mut kept = vec![false; nodes.len()];
    for (number, node) in nodes.iter().enumerate() {
        let own = &analysis.supernodes[node.supernodes.start as usize..node.supernodes.end as usize];
        since[number] += own.iter().map(Supernode::operations).sum::<f64>();
        if node.parent == NONE {
            continue;
        }
        match since[number] >= most {
            true => kept[number] = true,
            false => since[node.parent as usize] += since[number],
        }
    }
    kept
}

/// The sets that a factorization makes: tiles of the factor, contribution blocks that pass by, and those that are kept. The two
/// sets of blocks number tiles alike; in each the tiles of the other are empty.
#[derive(Clone, Debug)]
pub(super) struct FactorSets {
    listed: [Arc<[u64]>; 3],
    grids: [Grid; 3],
}

const FACTOR: usize = 0;
const PASSING: usize = 1;
const KEPT: usize = 2;

impl FactorSets {
    /// Sets of tiles of so many bytes; `first` is the first tile of the contribution block of a node.
    pub fn new(
        analysis: &Analysis,
        factor: Arc<[u64]>,
        contribution: &[u64],
        first: impl Fn(usize) -> u32,
    ) -> FactorSets {
        let kept = is_kept(analysis);
        let mut sets = [vec![0; contribution.len()], vec![0; contribution.len()]];
        for (node, is_kept) in kept.iter().enumerate() {
            let begin = first(node) as usize;
            let end = if node + 1 < kept.len() {
                first(node + 1) as usize
            } else {
                contribution.len()
            };
            sets[usize::from(*is_kept)][begin..end].copy_from_slice(&contribution[begin..end]);
        }
        let [passing, kept] = sets.map(Arc::from);
        let listed = [factor, passing, kept];
        FactorSets {
            grids: [FACTOR, PASSING, KEPT].map(|set| Grid::listed(&listed[set])),
            listed,
        }
    }

    pub fn grids(&self) -> &[Grid] {
        &self.grids
    }

    /// Bytes of each tile of a set.
    pub fn listed(&self, set: usize) -> &Arc<[u64]> {
        &self.listed[set]
    }

    /// The set that a tile of contribution blocks is in.
    pub fn of_contribution(&self, tile: u32) -> usize {
        match self.listed[KEPT][tile as usize] > 0 {
            true => KEPT,
            false => PASSING,
        }
    }

    /// The file that a set is: the factor, or the blocks that are kept of it.
    pub fn file(&self, set: usize, rows: u64, dtype: DType, record: Arc<dyn FactorRecord>) -> Option<FileOutput> {
        let record = match set {
            FACTOR => record,
            KEPT => Arc::new(NoRecord),
            _ => return None,
        };
        Some(FileOutput::Factor(FactorOutput {
            rows,
            dtype,
            lengths: self.listed[set].clone(),
            record,
        }))
    }

    /// The set that is kept beside a set.
    pub fn beside(&self, set: usize) -> Option<usize> {
        (set == FACTOR && self.listed[KEPT].iter().any(|bytes| *bytes > 0)).then_some(KEPT)
    }

    /// Bytes that the lists take.
    pub fn bytes(&self) -> usize {
        self.listed.iter().map(|listed| size_of_val(&**listed)).sum()
    }
}

/// Blocks are no factor that anybody opens.
#[derive(Debug)]
struct NoRecord;

impl FactorRecord for NoRecord {
    fn sections(&self) -> Vec<&[u8]> {
        vec![]
    }
}
