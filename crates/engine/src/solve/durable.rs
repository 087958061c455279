//! Contribution blocks that are kept where a factorization may be gone on with: those of fronts in whose subtrees an
//! eighth of all operations is done since others that are kept. A run that goes on needs nothing of what lies below them.

use std::sync::Arc;

use outcore_store::{FactorOutput, FactorRecord};

use super::supernodes::Supernode;
use super::tree::NONE;
use super::Analysis;
use crate::task::FileOutput;

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

/// Bytes of the tiles of contribution blocks as two sets: of blocks that pass by, and of those that are kept. In each the
/// tiles of the other are empty. `first` is the first tile of a node.
pub(super) fn kept_apart(analysis: &Analysis, all: Arc<[u64]>, first: impl Fn(usize) -> u32) -> [Arc<[u64]>; 2] {
    let kept = is_kept(analysis);
    let mut sets = [vec![0; all.len()], vec![0; all.len()]];
    for (node, is_kept) in kept.iter().enumerate() {
        let begin = first(node) as usize;
        let end = if node + 1 < kept.len() {
            first(node + 1) as usize
        } else {
            all.len()
        };
        sets[usize::from(*is_kept)][begin..end].copy_from_slice(&all[begin..end]);
    }
    sets.map(Arc::from)
}

/// The file that a set of a factorization is: the factor, or the blocks that are kept of it.
pub(super) fn factor_file(set: usize, factor: FactorOutput) -> Option<FileOutput> {
    match set {
        0 => Some(FileOutput::Factor(factor)),
        2 => Some(FileOutput::Factor(FactorOutput {
            record: Arc::new(NoRecord),
            ..factor
        })),
        _ => None,
    }
}

/// The set that is beside a set of a factorization, of which `durable` has the bytes of tiles.
pub(super) fn durable_beside(set: usize, durable: &[u64]) -> Option<usize> {
    (set == 0 && durable.iter().any(|bytes| *bytes > 0)).then_some(2)
}

/// Blocks are no factor that anybody opens.
#[derive(Debug)]
struct NoRecord;

impl FactorRecord for NoRecord {
    fn sections(&self) -> Vec<&[u8]> {
        vec![]
    }
}
